/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Blocks of memory in use, by process and address. Those that one thread allocated with the same
 * stack share a place, which keeps their sums: memory in use is reported by place.
 *
 * Bounded by the number of blocks and by the bytes of their stacks; what finds no room is refused.
 */
#include <stdbool.h>
#include <stdint.h>

struct kept_blocks;
struct switch_stack;

struct live_block_facts {
	uint64_t address, time_ns; /* when it was allocated */
	uint64_t table;		   /* in which the process itself keeps its blocks; 0: unknown */
	double bytes, objects;	   /* for how many it stands */
	uint32_t pid, tid, cpu;	   /* who allocated it, and where */
};

/* What a thread has in use of one stack. */
struct live_place {
	uint32_t pid, tid, cpu;
	uint32_t n; /* its blocks */
	double bytes, objects;
	/* Of these sums, as estimates. */
	double bytes_variance, objects_variance;
	const struct switch_stack *stack; /* borrowed */
};

/* The variance of a picked block's estimate: it was picked with the probability 1 / objects. */
static inline double live_block_bytes_variance(double bytes, double objects)
{
	return bytes * bytes * (1 - 1 / objects);
}
static inline double live_block_objects_variance(double objects)
{
	return objects * objects - objects;
}

struct live_blocks;
/* 0 or -ENOMEM. */
int live_blocks_new(struct live_blocks **ret, uint32_t max_blocks, uint64_t max_stack_bytes);
struct live_blocks *live_blocks_free(struct live_blocks *b);
/*
 * Keeps the blocks in k, too; borrowed. First adds those that another profiler kept there, all with
 * that stack. Returns how many they are. Only for a new table of at most KEPT_BLOCKS_MAX blocks.
 * live_blocks_free() leaves k as it is.
 */
uint32_t live_blocks_adopt(struct live_blocks *b, struct kept_blocks *k,
			   const struct switch_stack *stack);

/* Adds a block. A block that is known at the address ends: its end was missed. Copies the stack,
 * without kernel frames. false: there is no room. */
bool live_blocks_add(struct live_blocks *b, const struct live_block_facts *facts,
		     const struct switch_stack *stack);
/* Ends a block, if it is known. tid: the thread that frees it. */
void live_blocks_end(struct live_blocks *b, uint32_t pid, uint32_t tid, uint64_t address);
/* The last block that this thread freed is in use after all. */
void live_blocks_undo_end(struct live_blocks *b, uint32_t pid, uint32_t tid, uint64_t address);
/* Ends the blocks of a process that were added before time_ns and that is_live() denies. Returns
 * how many. */
uint32_t live_blocks_prune(struct live_blocks *b, uint32_t pid, uint64_t time_ns,
			   bool (*is_live)(void *ctx, uint64_t address), void *ctx);
void live_blocks_end_process(struct live_blocks *b, uint32_t pid);
/* The address of the table in which the process itself keeps them. 0: unknown. The process says it,
 * so it is untrusted. */
uint64_t live_blocks_table(const struct live_blocks *b, uint32_t pid);

/* When its main thread ended; only for a process that has blocks. 0: it has not. */
void live_blocks_set_exit(struct live_blocks *b, uint32_t pid, uint64_t time_ns);
uint64_t live_blocks_exit(const struct live_blocks *b, uint32_t pid);

/* Calls fn for each place that has blocks, of one process or of all. fn must not change them. */
void live_blocks_each_of(const struct live_blocks *b, uint32_t pid,
			 void (*fn)(void *ctx, const struct live_place *place), void *ctx);
void live_blocks_each(const struct live_blocks *b,
		      void (*fn)(void *ctx, const struct live_place *place), void *ctx);
/* How many blocks there are. */
uint32_t live_blocks_count(const struct live_blocks *b);
/* The process after that one, in no order; first: UINT32_MAX. UINT32_MAX: there are no more. */
uint32_t live_blocks_next_process(const struct live_blocks *b, uint32_t pid);
