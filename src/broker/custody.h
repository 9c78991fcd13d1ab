/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which process holds the samples of settled windows, which no profiler keeps any more: the
 * symbolizer until the exporter has settled their payloads, and the exporter that got them. If one
 * dies, only what no other process holds is lost: payloads that the symbolizer has not sent to the
 * exporter that runs now, and payloads in the exporter's memory whose symbolizer has gone. The
 * status page of the dead process says how many samples these have.
 */
#include <stdint.h>

#include "src/process/status-page.h"

struct custody {
	uint64_t lost;	  /* samples, since the start */
	uint64_t counted; /* of these, by symbolizers that have settled a window since */
	/* The last symbolizers had sent so many; the exporter says when it has read to the end of
	 * the one of that start. */
	uint64_t in_socket, symbolizer;
};

/* The symbolizer of that start has died. exporter: the start of the one that runs; 0: none does. */
void custody_symbolizer_died(struct custody *c, const struct status_custody *page, uint64_t start,
			     uint64_t exporter);
void custody_exporter_died(struct custody *c, const struct status_custody *page);
