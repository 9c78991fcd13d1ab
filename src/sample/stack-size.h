/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decides how many bytes of each user stack the kernel copies, from what the walks of recent
 * samples needed (stack_size = auto). The caller changes the events.
 */
#include <stdbool.h>
#include <stdint.h>

enum { STACK_SIZE_FIRST = 16 << 10, STACK_SIZE_LARGEST = 65528 };

struct stack_size {
	uint32_t bytes, max_bytes; /* current size; the most that the rings have room for */
	uint32_t asked;		   /* 0: no change is pending */
	/* In this period: user stacks; those cut because the copy was full; those that needed more
	 * than the next smaller size, including the cut ones. */
	uint64_t begin_ns, n, cut, beyond;
	/* A trial of larger sizes: the size before it (0: no trial), and the share of cut stacks
	 * then. */
	uint32_t trial_from;
	double trial_cut;
	/* No size larger than this has paid, with so many stacks cut; 0: no trial has failed. */
	uint32_t refused_from;
	double refused_cut;
	bool shrunk; /* the last change was a shrink */
	/* periods in which the next smaller size would have been enough */
	uint32_t calm, calm_wanted;
};

/* The largest size with which a ring holds a quarter of a second of a busy CPU, at least
 * STACK_SIZE_FIRST. */
uint32_t stack_size_max(uint64_t ring_bytes, uint32_t rate_hz);
void stack_size_init(struct stack_size *s, uint32_t bytes, uint64_t ring_bytes, uint32_t rate_hz);

/* Counts a walked stack, copied up to max_stack bytes. cut: it was longer, and a larger copy would
 * have had at least one more frame. */
void stack_size_count(struct stack_size *s, uint64_t max_stack, uint64_t depth_bytes, bool cut);
/* The size to change to; 0: no change. At most one change is pending. */
uint32_t stack_size_decide(struct stack_size *s, uint64_t now_ns);
/* Reports that the size has been changed to this, or that a change was refused. */
void stack_size_set(struct stack_size *s, uint32_t bytes);
