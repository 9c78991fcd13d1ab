/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Code as rows of the window: the module of an address, and markers. Each function returns
 * PROFILE_NONE if the window is full.
 *
 * Rows are cached where they belong: a file has its row, a process that of its compiled code, each
 * with the number of its window, so a warm sample needs no look-up by string.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/profile/profile.h"

struct attribution;
struct file_state;
struct host_mapping;
struct unwind_mapping;

/* Adds an untrusted text to the window's strings, without control characters. */
strid attribution_put_clean(struct attribution *a, const char *text);

/* What the attribution keeps of the file of a mapping of a->process, which it opens at first sight.
 * Borrowed. NULL: no memory. */
struct file_state *attribution_open_file(struct attribution *a, struct host_mapping *m);

/*
 * For unwind_walk(), with the attribution as ctx: the mapping of a->process at pc and a->time_ns,
 * whose tag is the row of its module. false: nothing is mapped there.
 */
bool attribution_find_mapping(void *ctx, uint64_t pc, struct unwind_mapping *ret);

/* The row of a file that a->process has mapped at start, executable, and by how much its addresses
 * exceed those of the file. false: nothing is mapped there, or no file. */
bool attribution_code_row(struct attribution *a, uint64_t start, uint32_t *ret_row,
			  uint64_t *ret_bias);

/* The rows of the kernel, and of unknown code. */
uint32_t attribution_kernel_row(struct attribution *a);
uint32_t attribution_unknown_row(struct attribution *a);

/* The frame of a marker. */
uint32_t attribution_marker(struct attribution *a, enum profile_marker marker);
/* The marker that the first n of a->frames end with; PROFILE_N_MARKERS: none. */
uint32_t attribution_last_marker(const struct attribution *a, uint32_t n);
