/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of children that a broker has. Another one is a row here, and its main. */
#include "src/broker/internal.h"
#include "src/broker/peers.h"
#include "util/cleanup.h"

const struct peer_row peer_rows[] = {
	{
		.kind = PEER_SCREEN,
		.max = 1,
		.set_up = broker_set_up_screen,
	},
	{
		.kind = PEER_EXPORTER,
		.max = 1,
		.oom_score = 200,
		.set_up = broker_set_up_exporter,
	},
	{
		.kind = PEER_FETCHER,
		.max = 1,
		.oom_score = 400,
		.set_up = broker_set_up_fetcher,
	},
	{
		.kind = PEER_SYMBOLIZER,
		.max = 1,
		.feeds = PEER_BIT(PEER_EXPORTER) | PEER_BIT(PEER_SCREEN) | PEER_BIT(PEER_METRICS),
		.oom_score = 500,
		.finds = "names",
		.may_ask = ASK_BIT(MESSAGE_ASK_DEBUG_FILE) | ASK_BIT(MESSAGE_ASK_SPLIT_FILE),
		.set_up = broker_set_up_symbolizer,
	},
	{
		.kind = PEER_PROFILER,
		.max = 1,
		.feeds = PEER_BIT(PEER_SYMBOLIZER),
		.oom_score = 100,
		.hears_of_files = true,
		.finds = "callers",
		.may_ask = ASK_BIT(MESSAGE_ASK_MAPS) | ASK_BIT(MESSAGE_ASK_FILE) |
			   ASK_BIT(MESSAGE_ASK_CGROUP) | ASK_BIT(MESSAGE_ASK_CGROUP_PATH) |
			   ASK_BIT(MESSAGE_ASK_CONTAINER) | ASK_BIT(MESSAGE_ASK_PROCESS) |
			   ASK_BIT(MESSAGE_ASK_USER) | ASK_BIT(MESSAGE_ASK_PERF_MAP) |
			   /* While it reads a recording. */
			   ASK_BIT(MESSAGE_ASK_RECORDED_FILE),
		.set_up = broker_set_up_profiler,
	},
	{
		.kind = PEER_METRICS,
		.max = 1,
		.oom_score = 300,
		.may_ask = ASK_BIT(MESSAGE_ASK_STATISTICS) | ASK_BIT(MESSAGE_ASK_FLUSH),
		.set_up = broker_set_up_metrics,
	},
};
const size_t n_peer_rows = ARRAY_SIZE(peer_rows);
