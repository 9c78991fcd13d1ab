/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Code as rows of the window: the module of an address, and markers. Every row is PROFILE_NONE
 * where the window is full.
 *
 * Rows are cached where they belong: a file carries its row, a process that of its compiled code,
 * each stamped with its window, so a warm sample costs no look-up by string.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/profile/profile.h"

struct attribution;
struct file_state;
struct host_mapping;
struct unwind_mapping;

/* Text of strangers into the window's strings, made clean. */
strid attribution_put_clean(struct attribution *a, const char *text);

/* What hangs on the file of a mapping of a->process, opened at first sight; NULL without memory. */
struct file_state *attribution_open_file(struct attribution *a, struct host_mapping *m);

/*
 * For unwind_walk(), ctx is the attribution: the mapping of a->process at pc and a->time_ns. Its
 * tag is the row of its module. false: nothing is mapped there.
 */
bool attribution_find_mapping(void *ctx, uint64_t pc, struct unwind_mapping *ret);

/* The row of a file that a->process has mapped at start, executable, and what its addresses have
 * more than those of the file. false: there is none, or it is no file's. */
bool attribution_code_row(struct attribution *a, uint64_t start, uint32_t *ret_row,
			  uint64_t *ret_bias);

/* The rows of the kernel, and of code of which nothing is known. */
uint32_t attribution_kernel_row(struct attribution *a);
uint32_t attribution_unknown_row(struct attribution *a);

/* The frame of a marker. */
uint32_t attribution_marker(struct attribution *a, enum profile_marker marker);
/* The marker that the first n of a->frames end with; PROFILE_N_MARKERS: none. */
uint32_t attribution_last_marker(const struct attribution *a, uint32_t n);
