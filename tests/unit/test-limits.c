/* SPDX-License-Identifier: Apache-2.0 */
/* What the processes of the daemon may have together, against what the systemd unit gives them. */
#include "config.h"

#include <unistd.h>

#include "src/broker/internal.h"
#include "src/config/config.h"
#include "src/opener/helper.h"
#include "src/profiler/handover.h"
#include "src/symbolizer/payloads.h"
#include "tests/unit/test.h"

#ifndef WITH_SANITIZERS /* no such limits there */
/* The default config with one destination. */
static struct config *load(void)
{
	char path[] = "/tmp/test-limits.XXXXXX";
	int fd = mkstemp(path);
	struct config *c = NULL;

	CHECK_INT(fd, >=, 0);
	CHECK_INT(dprintf(fd, "[export:x]\nendpoint = http://localhost:4318\n"), >, 0);
	(void)close(fd);
	CHECK_INT(config_load(&c, path, false, stderr), ==, 0);
	(void)unlink(path);
	return c;
}

static uint64_t memory_max(void)
{
	const char *top = getenv("srcdir");
	unsigned long mib = 0;
	char path[4096], line[512];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/etc/perfwalk.service.in", top ? top : ".");
	f = fopen(path, "re");
	CHECK(f);
	while (fgets(line, sizeof(line), f))
		(void)sscanf(line, "MemoryMax=%luM", &mib);
	(void)fclose(f);
	CHECK_INT(mib, >, 0);
	return (uint64_t)mib << 20;
}

static void test_sum(void)
{
	struct config *c = load();
	struct broker b = {.rows = peer_rows, .n_rows = n_peer_rows, .options.config = c};
	/* In memory, and nobody's data: windows and payloads on their way. */
	uint64_t sum = HANDOVER_MAX_BYTES + PAYLOADS_MAX_BYTES;

	sum += BROKER_DATA_BYTES * (1 + 1 + OPENER_MAX_STUCK);
	for (int kind = 0; kind < PEER_N; kind++) {
		struct privileges p = {.uid = 0};

		if (kind == PEER_SCREEN) /* the daemon has none */
			continue;
		broker_limit(&b, (enum peer)kind, &p);
		printf("%s: %" PRIu64 " MiB\n", peer_name((enum peer)kind), p.max_data >> 20);
		CHECK_INT(p.max_data, >, 0);
		sum += p.max_data;
	}
	printf("together %" PRIu64 " MiB, the unit has %" PRIu64 "\n", sum >> 20,
	       memory_max() >> 20);
	CHECK_INT(sum, <=, memory_max());
	config_free(c);
}
#endif

/* A child that can be replaced without a loss goes first, one that holds samples last. */
static void test_oom_scores(void)
{
	int scores[PEER_N] = {0};

	for (size_t i = 0; i < n_peer_rows; i++)
		scores[peer_rows[i].kind] = peer_rows[i].oom_score;
	CHECK_INT(scores[PEER_SYMBOLIZER], >, scores[PEER_FETCHER]);
	CHECK_INT(scores[PEER_FETCHER], >, scores[PEER_METRICS]);
	CHECK_INT(scores[PEER_METRICS], >, scores[PEER_EXPORTER]);
	CHECK_INT(scores[PEER_EXPORTER], >, scores[PEER_PROFILER]);
	CHECK_INT(scores[PEER_PROFILER], >, 0);
}

int main(void)
{
#ifndef WITH_SANITIZERS
	RUN(test_sum);
#endif
	RUN(test_oom_scores);
	return 0;
}
