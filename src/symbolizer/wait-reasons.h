/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a thread waited for, by where in the kernel it stood: the reason becomes the outermost frame
 * of its stack.
 */
#include <stddef.h>
#include <stdint.h>

#include "src/profile/profile.h"

/* kernel: names of the kernel's functions, user: of the program's next to them, both leaf first;
 * NULL: unknown. guess: what the system call's arguments say, for futexes, which serve many
 * purposes.
 * PROFILE_MARKER_WAIT: it is none that is known. */
enum profile_marker wait_reason_find(const char *const *kernel, size_t n_kernel,
				     const char *const *user, size_t n_user,
				     enum profile_marker guess);

/* The same where the kernel's names are not known, but what its system call waits for. */
enum profile_marker wait_reason_of_call(const char *const *user, size_t n_user,
					enum profile_marker reason);

/* Of the samples of off-CPU time from the first one on, whose frames have their names. */
void wait_reasons_put(struct profile *p, uint32_t type, uint32_t first_sample);
