/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Bytes of one perf record -> struct record. Also used for records that come from a file. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/sample/sample.h"

/* What decides the shape of the records of one event: the fields of its perf_event_attr. */
struct record_layout {
	uint64_t sample_type, read_format, branch_type, regs_mask;
	uint64_t kernel_regs_valid; /* struct sample_features */
	bool sample_id_all;
};

/*
 * Decodes one whole record of n bytes, its header included; bytes is 8-aligned and the pointers in
 * ret lead into it. Never fails: what contradicts itself becomes RECORD_BAD. false: a record that
 * says nothing to us (ret is not touched then).
 */
bool record_decode(const struct record_layout *layout, const void *bytes, size_t n,
		   struct record *ret);

/*
 * Where the time stands in a record of that type and size, from its start; 0: nowhere. For the
 * merge, which must not decode a record to know its turn.
 */
size_t record_time_offset(const struct record_layout *layout, uint32_t type, size_t n);
