/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the allocation library needs to know about the processor. One arch-*.c is compiled in. */
#include <stddef.h>
#include <stdint.h>

/*
 * perfwalk sets its probes on the following functions. They do nothing; a probe reads their
 * arguments in the registers. Their first instruction is one that every kernel emulates in a probe,
 * without a single step.
 *
 * A block of so many bytes was sampled; on average one is sampled every mean bytes. table: the
 * address of the table of tracked blocks; 0: this block's end will not be reported.
 */
void perfwalk_alloc_sample(const void *block, size_t bytes, uint64_t mean, uint64_t table);
/* A tracked block is about to be freed. undone: the last block that this thread reported so was not
 * freed after all. */
void perfwalk_free_sample(const void *block, uint64_t undone);

/* A counter of the processor that differs at each call, for random numbers. */
uint64_t arch_cycles(void);
