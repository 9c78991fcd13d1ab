/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Decodes the bytes of one perf record (perf_event_open(2)), also of records in a file. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/sample/sample.h"
#include "src/sample/switch.h"

/* The fields of perf_event_attr that define the layout of an event's records. */
struct record_layout {
	uint64_t sample_type, read_format, branch_type, regs_mask;
	uint64_t kernel_regs_valid; /* struct sample_features */
	bool sample_id_all;
	bool switches_out; /* records of tasks that stop are wanted, too */
	struct switch_layout switches;
};

/*
 * Decodes one record of n bytes with its header; bytes is 8-aligned, and the pointers in ret point
 * into it. Never fails: a record that contradicts itself becomes RECORD_BAD. false: the record is
 * of no use, and ret is unchanged.
 */
bool record_decode(const struct record_layout *layout, const void *bytes, size_t n,
		   struct record *ret);

/*
 * The offset of the time in a record of that type and size; 0: none. So the merge can order records
 * without decoding them.
 */
size_t record_time_offset(const struct record_layout *layout, uint32_t type, size_t n);
