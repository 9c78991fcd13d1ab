/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Stacks of blocked threads that were read a moment after the switch, with frames that an
 * interpreter keeps in memory. A thread that ran meanwhile may have changed these, so the stack is
 * believed only once every switch up to the end of the read is known, and none is its thread's.
 * Until then, and if one is, the block has the stack that was copied at the switch itself.
 */
#include <stdbool.h>
#include <stdint.h>

struct block_proofs;
struct switch_out;
struct switch_stack;
struct switches;

/* s: borrowed. 0 or -ENOMEM. */
int block_proofs_new(struct block_proofs **ret, struct switches *s);
struct block_proofs *block_proofs_free(struct block_proofs *p);

/* Of a block with a stack, as switches_stack() was told. Copied. false: too many wait. */
bool block_proofs_add(struct block_proofs *p, const struct switch_out *block, uint64_t read_ns,
		      const struct switch_stack *stack);
/* All switches before time_ns have been given: how many stacks are not believed. */
uint32_t block_proofs_judge(struct block_proofs *p, uint64_t time_ns);
