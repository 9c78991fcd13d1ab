/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The functions of a profile. A function's row is remembered by (module, start address, source
 * file): a thousand addresses in one function cost one demangling.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/profile/profile.h"
#include "symbolize/symbolize.h"
#include "util/array.h"
#include "util/hash.h"

struct function_key {
	uint64_t start;
	uint32_t module, function;
	strid file;
	bool inlined;
};

struct function_rows {
	ARRAY(struct function_key) keys;
	struct hash_index index;
	enum symbol_demangling demangling; /* of new names; in full at first */
};

/* *rows must be all 0. */
void function_rows_init(struct function_rows *rows);
void function_rows_deinit(struct function_rows *rows);
/* The profile was cleared: forgets all rows. */
void function_rows_clear(struct function_rows *rows);

/* The row of a function of a module of p, which is added if it is new; PROFILE_NONE: it does not
 * fit, or has no name. */
uint32_t function_rows_put(struct function_rows *rows, struct profile *p, uint32_t module,
			   const struct symbol *s);
/* Makes the names of a recorded file again from the linkage names. */
void function_rows_demangle_again(const struct function_rows *rows, struct profile *p);
/* Adds an untrusted text to p's strings, without control characters. */
strid function_rows_clean(struct profile *p, const char *text);
