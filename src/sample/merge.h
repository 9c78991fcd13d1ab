/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Private to src/sample: feeds the merge with rings that belong to no event (for tests). */
#include "src/sample/decode.h"
#include "src/sample/sample.h"

/*
 * How late a record may arrive: the kernel takes its time before it is visible in the ring, and a
 * virtual machine may lose its CPU in between.
 */
#define MERGE_GUARD_NS UINT64_C(2000000)

/* Takes ownership of the mapped ring (unmapped with the CPU). Lost counts are read from fd unless
 * it is -1. index: of the event; MERGE_SIDEBAND: the CPU's side band. */
#define MERGE_SIDEBAND UINT32_MAX
int merger_add_ring(struct merger *m, int cpu, uint32_t index, const struct ring *ring);
