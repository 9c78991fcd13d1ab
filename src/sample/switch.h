/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Private to src/sample: decodes samples of SAMPLE_USE_SWITCHES. */
#include "src/sample/sample.h"

struct switch_layout {
	bool is_used; /* false: these are samples of another use, or plain switches */
	struct sample_switch_fields fields;
	uint32_t
		n_payload; /* the least that has all fields; UINT32_MAX: there is no such payload */
	uint64_t regs_mask;
	uint32_t n_regs; /* of regs_mask */
};

/* The layout of such samples with that sample_type and these options. */
void switch_layout(const struct sample_options *options, uint64_t sample_type,
		   struct switch_layout *ret);
/* Decodes a PERF_RECORD_SAMPLE of n bytes, 8-aligned, to a RECORD_SWITCH without a CPU, or to a
 * RECORD_BAD. */
void switch_decode(const struct switch_layout *l, const void *bytes, size_t n, struct record *ret);
