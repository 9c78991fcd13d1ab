/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Names for addresses in the kernel: functions from kallsyms, and lines and inlined functions of
 * the kernel proper from its debug file (vmlinux with debugging information), where there is one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/symbolize.h"

struct kernel_names;

/* The debug file by build id, else by a path below the directory of debug files, else, if fetch,
 * from elsewhere: a descriptor that becomes the callee's, -EINPROGRESS when it may come, or another
 * negative number. Called at most twice, and again when that may have changed. */
typedef int (*kernel_open_fn)(void *ctx, const uint8_t *build_id, size_t n, const char *path,
			      bool fetch);

/* limits: borrowed, and looked at again at each reading. */
int kernel_names_new(struct kernel_names **ret, const struct symbol_limits *limits,
		     kernel_open_fn open_debug, void *ctx);
struct kernel_names *kernel_names_free(struct kernel_names *k);
DEFINE_CLEANUP(struct kernel_names *, kernel_names_free)

/* Takes fd: the text of /proc/kallsyms; the bytes of /sys/kernel/notes, which have the build id. */
void kernel_names_set_kallsyms(struct kernel_names *k, int fd);
void kernel_names_set_notes(struct kernel_names *k, int fd);
/* The limits are other ones now. */
void kernel_names_forget_file(struct kernel_names *k);

/* Whether the debug file is under way. */
bool kernel_names_awaits(const struct kernel_names *k);
/* A debug file has arrived, or is not available, or not yet. True: it is the kernel's, whose
 * frames may get lines now. */
bool kernel_names_debug_file_came(struct kernel_names *k, const uint8_t *build_id,
				  size_t n_build_id, bool found);
/* It is asked for again, if it was awaited, or in any case. True: as above. */
bool kernel_names_ask_again(struct kernel_names *k, bool all);

/* Reads kallsyms again, for what was loaded since, if that is due. True: it was read again since
 * the last call, and frames in modules are to be named anew. now_ns: CLOCK_MONOTONIC. */
bool kernel_names_refresh(struct kernel_names *k, uint64_t now_ns);
/*
 * The functions at an address, as symbol_file_lines() gives them, with the name that kallsyms has;
 * lines false: that alone. Of one in a module, start is a number that another one there does not
 * have. 0: *ret_n >= 1; 1: none is known. Texts until the next call.
 */
int kernel_names_lookup(struct kernel_names *k, uint64_t address, bool lines, struct symbol *chain,
			size_t max, size_t *ret_n);
/* Gives back what can be read again. */
void kernel_names_trim(struct kernel_names *k);
