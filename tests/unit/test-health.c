/* SPDX-License-Identifier: Apache-2.0 */
/* What makes /healthz and /readyz fail, each alone, and that the answer names it. */
#include "src/metrics/health.h"
#include "src/process/statistics.h"
#include "tests/unit/test.h"
#include "util/clock.h"

static const char *const names[] = {"near", "far"};
static struct statistics s;
static char why[128];

static void begin(void)
{
	s = (struct statistics){.n_processes = 2,
				.n_destinations = 2,
				.n_cpus = 4,
				.drained_before_ns = NSEC_PER_SEC};
	for (uint32_t i = 0; i < s.n_processes; i++) {
		s.processes[i].wanted = s.processes[i].ready = 1;
		s.processes[i].pid = 100 + i;
	}
	(void)strcpy(s.processes[0].name, "profiler");
	(void)strcpy(s.processes[1].name, "exporter");
}

static void check(bool alive, bool ready, const char *part)
{
	CHECK_INT(health_is_alive(&s, why, sizeof(why)), ==, alive);
	CHECK(*why && !strchr(why, '\n'));
	if (!alive)
		CHECK(strstr(why, part) != NULL);
	CHECK_INT(health_is_ready(&s, names, why, sizeof(why)), ==, ready);
	CHECK(strstr(why, part) != NULL);
}

static void test_good(void)
{
	begin();
	check(true, true, "4 CPUs");
	CHECK(strstr(why, "unreachable") == NULL);
}

static void test_processes(void)
{
	begin();
	s.processes[1].pid = 0;
	check(false, false, "exporter");
	s.processes[1].wanted = 0; /* such a one may be missing */
	check(true, true, "4 CPUs");
	s.processes[0].ready = 0;
	check(true, false, "profiler");
}

static void test_rings(void)
{
	begin();
	s.drained_before_ns = UINT64_MAX;
	check(false, false, "just been started");
	s.drained_before_ns = 5 * NSEC_PER_SEC;
	check(true, true, "4 CPUs");
	s.drained_before_ns = 5 * NSEC_PER_SEC + 1;
	check(false, false, "5.0 s ago");
}

static void test_sampling(void)
{
	begin();
	s.paused = true;
	check(true, false, "paused");
	begin();
	s.n_cpus = 0;
	check(true, false, "no CPU");
}

/* Queue and spool are for these times: it is said, and it is no failure. */
static void test_destinations(void)
{
	char whole[64], cut[64];

	begin();
	s.destinations[1].down = 1;
	s.destinations[1].queue_payloads = 7;
	check(true, true, "export:far is unreachable, 7 profiles wait");
	CHECK(strstr(why, "near") == NULL);
	s.destinations[0].down = 1;
	CHECK(health_is_ready(&s, names, whole, sizeof(whole)));
	CHECK_INT(strlen(whole), ==, sizeof(whole) - 1);
	for (size_t n = 1; n < sizeof(cut); n++) {
		memset(cut, 'x', sizeof(cut));
		CHECK(health_is_ready(&s, names, cut, n));
		CHECK_INT(strlen(cut), ==, n - 1);
		CHECK(strncmp(cut, whole, n - 1) == 0);
	}
}

int main(void)
{
	RUN(test_good);
	RUN(test_processes);
	RUN(test_rings);
	RUN(test_sampling);
	RUN(test_destinations);
	return 0;
}
