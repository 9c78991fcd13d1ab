/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The samples of a profile thread by thread, each in the order of time. */
#include "src/profile/profile.h"

struct by_thread {
	uint32_t *order; /* rows of samples */
	uint32_t *first; /* by thread: its first position in order; one more for the end */
	uint32_t *same;	 /* by thread: the first row of that thread, which has all its samples */
};

/* 0 or -ENOMEM. The caller calls by_thread_deinit() either way. */
int by_thread_build(struct by_thread *b, const struct profile *p);
void by_thread_deinit(struct by_thread *b);
