/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of children that a broker has. Another one is a row here, and its main. */
#include "src/broker/internal.h"
#include "src/broker/peers.h"
#include "src/reader/setup.h"
#include "util/cleanup.h"

static uint32_t count_screens(const void *ctx)
{
	const struct broker *b = ctx;

	return b->options.screen != NULL;
}

static uint32_t count_exporters(const void *ctx)
{
	const struct broker *b = ctx;

	return !b->options.capture && !b->options.screen;
}

static uint32_t count_fetchers(const void *ctx)
{
	const struct broker *b = ctx;

	return b->debug_cache.fd >= 0;
}

static uint32_t count_metrics(const void *ctx)
{
	const struct broker *b = ctx;

	return b->metrics.fd >= 0;
}

/* They are started for CPUs, while there is something to read (readers.c). */
static uint32_t count_readers(const void *ctx)
{
	return 0;
}

const struct peer_row peer_rows[] = {
	{
		.kind = PEER_SCREEN,
		.max = 1,
		.count = count_screens,
		.set_up = broker_set_up_screen,
	},
	{
		.kind = PEER_EXPORTER,
		.max = 1,
		.stops_after = PEER_BIT(PEER_SYMBOLIZER),
		.oom_score = 200,
		.count = count_exporters,
		.set_up = broker_set_up_exporter,
	},
	{
		.kind = PEER_FETCHER,
		.max = 1,
		.stops_after = PEER_BIT(PEER_SYMBOLIZER),
		.is_optional = true,
		.oom_score = 400,
		.count = count_fetchers,
		.set_up = broker_set_up_fetcher,
	},
	{
		.kind = PEER_SYMBOLIZER,
		.max = 1,
		.feeds = PEER_BIT(PEER_EXPORTER) | PEER_BIT(PEER_SCREEN) | PEER_BIT(PEER_METRICS),
		.stops_after = PEER_BIT(PEER_PROFILER),
		.oom_score = 500,
		.finds = "names",
		.may_ask = ASK_BIT(MESSAGE_ASK_DEBUG_FILE) | ASK_BIT(MESSAGE_ASK_SPLIT_FILE),
		.set_up = broker_set_up_symbolizer,
	},
	{
		.kind = PEER_PROFILER,
		.max = 1,
		.feeds = PEER_BIT(PEER_SYMBOLIZER),
		.is_started_to_finish = true, /* the rings fill up meanwhile */
		.oom_score = 100,
		.hears_of_files = true,
		.finds = "callers",
		.may_ask = ASK_BIT(MESSAGE_ASK_MAPS) | ASK_BIT(MESSAGE_ASK_FILE) |
			   ASK_BIT(MESSAGE_ASK_CGROUP) | ASK_BIT(MESSAGE_ASK_CGROUP_PATH) |
			   ASK_BIT(MESSAGE_ASK_CONTAINER) | ASK_BIT(MESSAGE_ASK_PROCESS) |
			   ASK_BIT(MESSAGE_ASK_USER) | ASK_BIT(MESSAGE_ASK_PERF_MAP) |
			   ASK_BIT(MESSAGE_ASK_MEMORY) | ASK_BIT(MESSAGE_ASK_BLOCKED) |
			   ASK_BIT(MESSAGE_ASK_CONTEXT) | ASK_BIT(MESSAGE_ASK_COPY) |
			   ASK_BIT(MESSAGE_ASK_ALLOCATOR) | ASK_BIT(MESSAGE_ASK_TABLE) |
			   ASK_BIT(MESSAGE_ASK_RESIDENT) | ASK_BIT(MESSAGE_ASK_KILLS) |
			   /* While it reads a recording. */
			   ASK_BIT(MESSAGE_ASK_RECORDED_FILE),
		.set_up = broker_set_up_profiler,
	},
	{
		.kind = PEER_READER,
		.max = READERS_MAX,
		.feeds = PEER_BIT(PEER_PROFILER),
		.is_optional = true,
		.oom_score = 600,
		.finds = "frames",
		.count = count_readers,
		.set_up = broker_set_up_reader,
	},
	{
		.kind = PEER_METRICS,
		.max = 1,
		.stops_after = PEER_BIT(PEER_SYMBOLIZER) |
			       PEER_BIT(PEER_EXPORTER), /* it has metrics of both */
		.oom_score = 300,
		.may_ask = ASK_BIT(MESSAGE_ASK_STATISTICS) | ASK_BIT(MESSAGE_ASK_FLUSH),
		.count = count_metrics,
		.set_up = broker_set_up_metrics,
	},
};
const size_t n_peer_rows = ARRAY_SIZE(peer_rows);
