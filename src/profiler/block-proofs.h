/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Stacks of blocked threads that were read after the switch: with frames that an interpreter keeps
 * in memory, or all of the stack. A thread that ran meanwhile may have changed it. So a stack is
 * believed only once all switches up to the end of its read are known, and none of them is of its
 * thread. Until then, or otherwise, the block has the stack that was copied at the switch, or none.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/profiler/switches.h"

/* Most reads end a fraction of a millisecond after their switch, and records come in order. */
#define BLOCK_PROOFS_MAX 256

/* Private, but for the check at each switch. */
struct block_proofs {
	struct switches *switches;
	uint64_t first_ns; /* the earliest end of a read */
	uint32_t n;
	struct waiting_proof {
		struct switch_out block;
		uint64_t read_ns;
		struct switch_stack *stack;
		bool late; /* there was no copy at the switch */
	} waiting[BLOCK_PROOFS_MAX];
};

/* s: borrowed. 0 or -ENOMEM. */
int block_proofs_new(struct block_proofs **ret, struct switches *s);
struct block_proofs *block_proofs_free(struct block_proofs *p);

/* Adds a stack of a block that switches_stack() has a stack of; read_ns: the end of the read.
 * Copies both. false: too many wait. */
bool block_proofs_add(struct block_proofs *p, const struct switch_out *block, uint64_t read_ns,
		      const struct switch_stack *stack);
/* Does the same for a block that switches_unseen() offered. */
bool block_proofs_add_late(struct block_proofs *p, const struct switch_out *block, uint64_t read_ns,
			   const struct switch_stack *stack);
/* Judges the stacks after all switches before time_ns. Returns how many of block_proofs_add() are
 * not believed. */
uint32_t block_proofs_judge(struct block_proofs *p, uint64_t time_ns);
/* Is there any to judge? */
static inline bool block_proofs_are_due(const struct block_proofs *p, uint64_t time_ns)
{
	return time_ns > p->first_ns;
}
