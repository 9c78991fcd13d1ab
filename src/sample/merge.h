/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside of src/sample: the merge fed with rings that are not an event's. */
#include "src/sample/decode.h"
#include "src/sample/sample.h"

/*
 * How long a record may be on its way: its time is taken before it is seen in the ring, and in a
 * virtual machine the CPU may be taken away in between.
 */
#define MERGE_GUARD_NS UINT64_C(2000000)

/* Takes the mapped ring over (unmapped with the CPU); fd is not read for lost counts when -1.
 * index: of the event; MERGE_SIDEBAND: it is the CPU's side band. */
#define MERGE_SIDEBAND UINT32_MAX
int merger_add_ring(struct merger *m, int cpu, uint32_t index, const struct ring *ring);
