/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the allocation library must know about the processor; one arch-*.c is compiled in. */
#include <stddef.h>
#include <stdint.h>

/*
 * The places that perfwalk sets its probes at. They do nothing; what the arguments say is in the
 * registers then. The first instruction is one that every kernel passes by without a single step.
 *
 * A block of that many bytes was sampled. On average one is every mean bytes. table: where those
 * stand whose end will be told, too; 0: this one's will not.
 */
void perfwalk_alloc_sample(const void *block, size_t bytes, uint64_t mean, uint64_t table);
/* A tracked block is about to end. undone: the end that this thread told last did not happen. */
void perfwalk_free_sample(const void *block, uint64_t undone);

/* Changes all the time. */
uint64_t arch_cycles(void);
