/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Names for the frames of a profile: which source knows an address (ELF file, vdso, kallsyms, what
 * compilers write down), each asked once per address, symbol tables and lines cached within a byte
 * budget.
 */
#include <stdint.h>

#include "src/process/message.h"
#include "src/profile/profile.h"
#include "src/symbolizer/code-names.h"
#include "src/symbolizer/file-names.h"
#include "symbolize/symbolize.h"

struct role;
struct ask;
struct namer;

/* closed, ctx: as file_names_new() has them. recorded: samples are not of now and here. */
int namer_new(struct namer **ret, struct role *role, struct ask *ask, uint64_t max_table_bytes,
	      uint32_t max_files, bool recorded, file_names_closed_fn closed, void *ctx);
struct namer *namer_free(struct namer *n);

/* Where modules are added. */
struct file_names *namer_files(struct namer *n);
/* As file_names_debug_file_came(), file_names_ask_again() and file_names_n_awaited(), and for the
 * kernel's too. */
void namer_debug_file_came(struct namer *n, const uint8_t *build_id, size_t n_build_id, bool found);
void namer_ask_again(struct namer *n, bool all);
uint32_t namer_n_awaited(const struct namer *n);
void namer_add_code(struct namer *n, enum code_source source, uint32_t pid,
		    uint64_t start_time_unix_ns, int fd);
/* Takes both: /proc/kallsyms and /sys/kernel/notes; -1: not available. */
void namer_set_kernel(struct namer *n, int kallsyms_fd, int notes_fd);
/* Whether frames get their source lines, and inlined functions lines of their own; neither at
 * first. True: that is another answer than before, which frames with names do not follow. */
bool namer_set_lines(struct namer *n, bool lines, bool inlined);
/* How mangled names are shown; in full at first. True as above. */
bool namer_set_demangling(struct namer *n, enum symbol_demangling style);

/* How long a window lasts, of which naming may take a quarter; sparing: one percent. 0, and at
 * first: no limit. */
void namer_set_window(struct namer *n, uint64_t window_ns, bool sparing);
/* Names every frame of p's samples from first_sample on (of other types: of all) that has no name
 * yet, and gives their modules their ids. */
void namer_name(struct namer *n, struct profile *p, uint32_t first_sample);
/* How many frames the last namer_name() had no time for; the next one tries them again. */
uint64_t namer_n_put_off(const struct namer *n);
/* Names that a recorded file brought, from those as linked. */
void namer_demangle_again(struct namer *n, struct profile *p);
/* p was cleared: row numbers of before mean nothing any more. */
void namer_forget_rows(struct namer *n);
