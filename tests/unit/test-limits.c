/* SPDX-License-Identifier: Apache-2.0 */
/* What the processes of the daemon may have together, against what the systemd unit gives them. */
#include "config.h"

#include <unistd.h>

#include "src/broker/internal.h"
#include "src/broker/limits.h"
#include "src/config/config.h"
#include "src/opener/helper.h"
#include "src/opener/judge.h"
#include "src/opener/stuck.h"
#include "src/profiler/setup.h"
#include "src/symbolizer/setup.h"
#include "tests/unit/test.h"

#ifndef WITH_SANITIZERS /* no such limits there */
/* The default config with so many destinations. */
static struct config *load(uint32_t n_destinations)
{
	char path[] = "/tmp/test-limits.XXXXXX";
	int fd = mkstemp(path);
	struct config *c = NULL;

	CHECK_INT(fd, >=, 0);
	for (uint32_t i = 0; i < n_destinations; i++)
		CHECK_INT(dprintf(fd, "[export:x%u]\nendpoint = http://localhost:4318\n", i), >, 0);
	(void)close(fd);
	CHECK_INT(config_load(&c, path, false, stderr), ==, 0);
	(void)unlink(path);
	return c;
}

/* What the unit says: the limit, and for how many CPUs and destinations it is enough. */
struct unit {
	uint64_t memory_max;
	uint32_t n_cpus, n_destinations;
};

static struct unit read_unit(void)
{
	const char *top = getenv("srcdir"), *said;
	unsigned long mib = 0;
	struct unit u = {0};
	char path[4096], text[16384];
	size_t n;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/etc/perfwalk.service.in", top ? top : ".");
	f = fopen(path, "re");
	CHECK(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	(void)fclose(f);
	text[n] = '\0';
	said = strstr(text, "all processes on up to ");
	CHECK(said);
	CHECK_INT(sscanf(said, "all processes on up to %u CPUs and with up to %u destinations",
			 &u.n_cpus, &u.n_destinations),
		  ==, 2);
	said = strstr(text, "\nMemoryMax=");
	CHECK(said);
	CHECK_INT(sscanf(said, "\nMemoryMax=%luM", &mib), ==, 1);
	u.memory_max = (uint64_t)mib << 20;
	return u;
}

static uint64_t sum_of(uint32_t n_cpus, uint32_t n_destinations)
{
	struct config *c = load(n_destinations);
	struct broker b = {.options.config = c};
	struct limits_basis basis = limits_basis_of(c, n_cpus, n_cpus);
	/* In memory, and nobody's data: windows and payloads on their way. */
	uint64_t sum = HANDOVER_MAX_BYTES + PAYLOADS_MAX_BYTES;

	b.events[0].cpus.n = n_cpus;
	sum += limits_data_of(LIMITS_BROKER) + limits_data_of(LIMITS_OPENER) * (1 + STUCK_MAX) +
	       limits_data_of(LIMITS_JUDGE) * (1 + JUDGE_MAX_DYING);
	for (int kind = 0; kind < PEER_N; kind++) {
		struct privileges p = {.uid = 0};

		if (kind == PEER_SCREEN) /* the daemon has none */
			continue;
		broker_limit(&b, (enum peer)kind, &p);
		printf("%s: %" PRIu64 " MiB\n", peer_name((enum peer)kind), p.max_data >> 20);
		CHECK_INT(p.max_data, >, 0);
		sum += p.max_data * (kind == PEER_READER ? n_cpus : 1);
	}
	printf("%u CPUs, %u destinations: together %" PRIu64 " MiB\n", n_cpus, n_destinations,
	       sum >> 20);
	CHECK_INT(limits_memory_of_all(&basis, n_cpus), ==, sum);
	config_free(c);
	return sum;
}

/* There is a reader for each CPU, and a queue for each destination. */
static void test_sum(void)
{
	struct unit u = read_unit();
	uint32_t cpus[] = {1, 2, 4, 8, 9, 10, 16, 32, u.n_cpus};

	CHECK_INT(u.n_cpus, >=, 32);
	CHECK_INT(u.memory_max, ==, LIMITS_UNIT_BYTES);
	for (size_t i = 0; i < ARRAY_SIZE(cpus); i++) {
		for (uint32_t n = 1; n <= u.n_destinations; n++)
			CHECK_INT(sum_of(cpus[i], n), <=, u.memory_max);
	}
	/* As the comment says what more of them need. */
	CHECK_INT(sum_of(u.n_cpus + 10, 1) - sum_of(u.n_cpus, 1), ==, 10 * (8 << 20));
	CHECK_INT(sum_of(2, 3) - sum_of(2, 2), ==, 128 << 20);
}
#endif

/* A child that can be replaced without a loss goes first, one that holds samples last. */
static void test_oom_scores(void)
{
	int scores[PEER_N] = {0};

	for (size_t i = 0; i < n_peer_rows; i++)
		scores[peer_rows[i].kind] = peer_rows[i].oom_score;
	CHECK_INT(OPENER_OOM_SCORE, >, scores[PEER_READER]);
	CHECK_INT(scores[PEER_READER], >, scores[PEER_SYMBOLIZER]);
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
