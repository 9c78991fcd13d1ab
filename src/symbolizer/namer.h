/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Names for the frames of a profile, from the source that knows the address: an ELF file, the vdso,
 * kallsyms, or a file of a just-in-time compiler. Each address is looked up once; symbol tables and
 * lines are cached within a byte budget.
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

/* closed, ctx: as in file_names_new(). recorded: the samples come from a file, perhaps of another
 * host. 0 or -ENOMEM. */
int namer_new(struct namer **ret, struct role *role, struct ask *ask, uint64_t max_table_bytes,
	      uint32_t max_files, bool recorded, file_names_closed_fn closed, void *ctx);
struct namer *namer_free(struct namer *n);

/* The files, to which modules are added. Borrowed. */
struct file_names *namer_files(struct namer *n);
/* As file_names_debug_file_came(), file_names_ask_again() and file_names_n_awaited(), also for the
 * kernel's debug file. */
void namer_debug_file_came(struct namer *n, const uint8_t *build_id, size_t n_build_id, bool found);
void namer_ask_again(struct namer *n, bool all);
uint32_t namer_n_awaited(const struct namer *n);
/* As code_names_add(). */
void namer_add_code(struct namer *n, enum code_source source, uint32_t pid,
		    uint64_t start_time_unix_ns, int fd);
/* Takes descriptors of /proc/kallsyms and /sys/kernel/notes; -1: not available. */
void namer_set_kernel(struct namer *n, int kallsyms_fd, int notes_fd);
/* Sets whether frames get source lines, and inlined functions frames of their own; neither at
 * first. true: that has changed, but frames that have names keep them. */
bool namer_set_lines(struct namer *n, bool lines, bool inlined);
/* Sets how mangled names are shown; in full at first. Returns the same. */
bool namer_set_demangling(struct namer *n, enum symbol_demangling style);

/* Sets the length of a window. Naming may take a quarter of it; sparing: one percent. 0, and at
 * first: no limit; 0, for a capture: the kernel's names are parsed where some are looked up. */
void namer_set_window(struct namer *n, uint64_t window_ns, bool sparing);
/* Names every frame without a name in p's samples of the first type from first_sample on, and in
 * all samples of other types. Sets the ids of their modules. */
void namer_name(struct namer *n, struct profile *p, uint32_t first_sample);
/* How many frames the last namer_name() had no time for; the next one tries them again. */
uint64_t namer_n_put_off(const struct namer *n);
/* Makes the names of a recorded file again from the linkage names. */
void namer_demangle_again(struct namer *n, struct profile *p);
/* The profile was cleared: forgets all rows. */
void namer_forget_rows(struct namer *n);
