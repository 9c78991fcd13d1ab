/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How many bytes of each user stack to have copied, found from what the walks of the last samples
 * needed (stack_size = auto). It only decides; who asks for it changes the events.
 */
#include <stdbool.h>
#include <stdint.h>

enum { STACK_SIZE_FIRST = 16 << 10, STACK_SIZE_LARGEST = 65528 };

struct stack_size {
	uint32_t bytes, max_bytes; /* in force; what the rings have room for */
	uint32_t asked;		   /* 0: no change is under way */
	/* Of this period: user stacks; those cut because the copy was full; those that needed the
	 * copy beyond the next smaller size, the cut among them. */
	uint64_t begin_ns, n, cut, beyond;
	/* Larger sizes that have yet to show that they pay: where they came from (0: none on
	 * trial), and the share of cut stacks then. */
	uint32_t trial_from;
	double trial_cut;
	/* Nothing larger than this has paid, when so many were cut; 0: none was tried in vain. */
	uint32_t refused_from;
	double refused_cut;
	bool shrunk;		    /* the last change was to less than was needed */
	uint32_t calm, calm_wanted; /* periods in which the next smaller size would have done */
};

/* The largest size for which a ring holds a quarter of a second of a busy CPU; no less than
 * STACK_SIZE_FIRST for that. */
uint32_t stack_size_max(uint64_t ring_bytes, uint32_t rate_hz);
void stack_size_init(struct stack_size *s, uint32_t bytes, uint64_t ring_bytes, uint32_t rate_hz);

/* A walked stack, of which up to max_stack bytes were to be copied. cut: it was longer, and a
 * larger copy would have had at least one more frame. */
void stack_size_count(struct stack_size *s, uint64_t max_stack, uint64_t depth_bytes, bool cut);
/* The size to change to; 0: none now. At most one change is under way. */
uint32_t stack_size_decide(struct stack_size *s, uint64_t now_ns);
/* This size is in force now. */
void stack_size_set(struct stack_size *s, uint32_t bytes);
