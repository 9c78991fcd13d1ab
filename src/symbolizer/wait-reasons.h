/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a thread waits for, by its place in the kernel: the reason becomes the outermost frame of
 * its stack.
 */
#include <stddef.h>
#include <stdint.h>

#include "src/profile/profile.h"

/* kernel: names of the kernel's functions; user: of the program's functions next to them; both leaf
 * first; NULL: unknown. guess: the reason by the system call's arguments, for futexes, which serve
 * many purposes. PROFILE_MARKER_WAIT: unknown. */
enum profile_marker wait_reason_find(const char *const *kernel, size_t n_kernel,
				     const char *const *user, size_t n_user,
				     enum profile_marker guess);

/* The reason if the kernel's names are unknown, but the system call's reason is known. */
enum profile_marker wait_reason_of_call(const char *const *user, size_t n_user,
					enum profile_marker reason);

/* Adds the reasons to the samples of a type of off-CPU time from first_sample on, whose frames have
 * their names. */
void wait_reasons_put(struct profile *p, uint32_t type, uint32_t first_sample);
