/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Interning string table: equal texts get equal ids, id 0 is the empty string. Strings are never
 * removed one by one; the table is bounded in bytes and counts what it refuses.
 */
#include <stddef.h>
#include <stdint.h>

#include "util/hash.h"

typedef uint32_t strid;
#define STRID_EMPTY 0u

struct strtab {
	char *bytes; /* all strings, each with its terminating 0 */
	size_t n_bytes, cap_bytes, max_bytes;
	uint32_t *offsets; /* id -> offset in bytes */
	uint32_t n, cap;
	struct hash_index index;
	uint64_t n_refused;
};

/* max_bytes: limit of all strings together, at most 4 GiB. Allocates nothing yet. */
void strtab_init(struct strtab *t, size_t max_bytes);
void strtab_deinit(struct strtab *t);
/* Forgets all strings (every id but 0 becomes invalid) and keeps the memory. */
void strtab_clear(struct strtab *t);

/*
 * The id of the text of n bytes, cut at its first 0 byte. If the table is full or memory is short,
 * the text is refused and counted, and the result is the id of the empty string.
 */
strid strtab_put_n(struct strtab *t, const char *text, size_t n);
strid strtab_put(struct strtab *t, const char *text);

/* Valid until the next put. An id out of range gives "". */
const char *strtab_get(const struct strtab *t, strid id);
/* Memory held, in bytes. */
size_t strtab_bytes(const struct strtab *t);
