/* SPDX-License-Identifier: Apache-2.0 */
#include "src/perf-data/internal.h"

uint64_t perf_data_step(const struct perf_data *d, uint64_t at)
{
	struct perf_event_header h;
	uint64_t left = d->data_end - at, size;
	uint32_t extra;

	if (left < sizeof(h))
		return 0;
	memcpy(&h, d->records + at, sizeof(h));
	size = h.size;
	if (size < sizeof(h) || size > left)
		return 0;
	/* Payloads that the record's 16-bit size does not include. */
	if (h.type == PERF_DATA_AUXTRACE && size >= sizeof(h) + sizeof(uint64_t)) {
		uint64_t payload;

		memcpy(&payload, d->records + at + sizeof(h), sizeof(payload));
		return payload <= left - size ? size + payload : 0;
	}
	if (h.type == PERF_DATA_TRACING_DATA && size >= sizeof(h) + sizeof(extra)) {
		memcpy(&extra, d->records + at + sizeof(h), sizeof(extra));
		extra = (extra + 7) & ~7u;
		return extra <= left - size ? size + extra : 0;
	}
	return size;
}
