/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How many stacks of blocks are enough. Events of whole CPUs have a grant that the kernel keeps.
 * An inherited event of tasks cannot have one (PERF_EVENT_IOC_REFRESH), so its samples are counted
 * here.
 */
#include <stdbool.h>
#include <stdint.h>

#define BLOCK_GRANTS_QUARTER_NS UINT64_C(250000000)

struct block_grants;
/* NULL: no memory. Free it with free(). */
struct block_grants *block_grants_new(void);
/* Counts a sample of a CPU. true: it is that of so many within a quarter of a second. */
bool block_grants_used_up(struct block_grants *g, uint32_t cpu, uint64_t time_ns, uint32_t enough);
