/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which process holds the samples of settled windows, which no profiler keeps any more: the
 * symbolizer, until the exporter has settled their payloads, and the exporter that got them. If one
 * dies, only those payloads are lost that no other process holds: those that the symbolizer has not
 * sent to the exporter that runs now, and those in the exporter's memory whose symbolizer has gone.
 * The status page of the dead process says how many samples they have.
 */
#include <stdint.h>

#include "src/process/status-page.h"

struct custody {
	uint64_t lost;	  /* samples, since the start */
	uint64_t counted; /* of these, by symbolizers that have settled a window since */
	/* Samples that dead symbolizers had sent and the exporter may not have read yet. It has
	 * once its page says that it read to the end of the symbolizer of that start. */
	uint64_t in_socket, symbolizer;
};

/* The symbolizer of that start has died. exporter: the start of the exporter that runs; 0: none. */
void custody_symbolizer_died(struct custody *c, const struct status_custody *page, uint64_t start,
			     uint64_t exporter);
void custody_exporter_died(struct custody *c, const struct status_custody *page);
