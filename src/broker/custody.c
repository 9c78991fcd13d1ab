/* SPDX-License-Identifier: Apache-2.0 */
#include "src/broker/custody.h"

#include "util/log.h"

static void lose(struct custody *c, uint64_t n_samples)
{
	if (n_samples > 0)
		log_warning("%llu samples are lost: the processes that had their payloads died",
			    (unsigned long long)n_samples);
	c->lost += n_samples;
}

void custody_symbolizer_died(struct custody *c, const struct status_custody *page, uint64_t start,
			     uint64_t exporter)
{
	uint64_t unsent = page->unsent < page->unsettled ? page->unsent : page->unsettled;

	if (!exporter || page->exporter != exporter) {
		lose(c, page->unsettled);
		return;
	}
	lose(c, unsent);
	c->in_socket += page->unsettled - unsent;
	c->symbolizer = start;
}

void custody_exporter_died(struct custody *c, const struct status_custody *page)
{
	lose(c, page->orphans + (page->symbolizer < c->symbolizer ? c->in_socket : 0));
	c->in_socket = 0;
}
