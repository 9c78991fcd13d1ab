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

/* Opens the debug file by build id, else by a path below the directory of debug files, else, if
 * fetch, from a server. Returns a descriptor, which the kernel names own; -EINPROGRESS: it may
 * still come; another negative number. Called at most twice, and again when the answer may have
 * changed. */
typedef int (*kernel_open_fn)(void *ctx, const uint8_t *build_id, size_t n, const char *path,
			      bool fetch);

/* limits: borrowed, and read again at each reading. 0 or -ENOMEM. */
int kernel_names_new(struct kernel_names **ret, const struct symbol_limits *limits,
		     kernel_open_fn open_debug, void *ctx);
struct kernel_names *kernel_names_free(struct kernel_names *k);
DEFINE_CLEANUP(struct kernel_names *, kernel_names_free)

/* Take fd: the text of /proc/kallsyms, and the bytes of /sys/kernel/notes, which have the build
 * id. */
void kernel_names_set_kallsyms(struct kernel_names *k, int fd);
void kernel_names_set_notes(struct kernel_names *k, int fd);
/* The limits have changed: the debug file is read again. */
void kernel_names_forget_file(struct kernel_names *k);

/* May the debug file still come? */
bool kernel_names_awaits(const struct kernel_names *k);
/* A debug file has arrived, or is not available, or not yet. true: it is the kernel's, whose frames
 * may get lines now. */
bool kernel_names_debug_file_came(struct kernel_names *k, const uint8_t *build_id,
				  size_t n_build_id, bool found);
/* Asks for the debug file again if it was awaited, or (all) in any case. true: as above. */
bool kernel_names_ask_again(struct kernel_names *k, bool all);

/* Reads kallsyms again if it is time, for modules that were loaded since. true: it was read again
 * since the last call, and frames in modules must be named again. now_ns: CLOCK_MONOTONIC. */
bool kernel_names_refresh(struct kernel_names *k, uint64_t now_ns);
/*
 * The functions at an address, as symbol_file_lines() gives them, with the name from kallsyms;
 * lines false: only that function. For a function in a module, start is a number that no other
 * function has. 0: *ret_n >= 1; 1: none is known. Texts are valid until the next call.
 */
int kernel_names_lookup(struct kernel_names *k, uint64_t address, bool lines, struct symbol *chain,
			size_t max, size_t *ret_n);
/* Frees what can be read again. */
void kernel_names_trim(struct kernel_names *k);
