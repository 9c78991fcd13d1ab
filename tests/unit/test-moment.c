/* SPDX-License-Identifier: Apache-2.0 */
/* Which samples a reader still sees as they were. */
#include <time.h>

#include "src/reader/moment.h"
#include "tests/unit/test.h"

static bool saw(uint64_t sample_ns, uint64_t n_switches)
{
	const struct moment rest = {1000, 7}, now = {3000, 7 + n_switches};

	return moment_saw(&now, &rest, sample_ns);
}

static void test_saw(void)
{
	CHECK(saw(2000, 1));
	/* It has waited for something since the sample, or not at all for it. */
	CHECK(!saw(2000, 2));
	CHECK(!saw(2000, 0));
	/* It was busy then, and waited. */
	CHECK(!saw(1000, 1));
	CHECK(!saw(500, 1));
}

static bool saw_since(uint64_t sample_ns, uint64_t n_switches)
{
	const struct moment rest = {1000, 7}, woke = {500000, 20}, now = {600000, 20 + n_switches};

	return moment_saw_since(&now, &woke, &rest, sample_ns);
}

static void test_saw_since(void)
{
	CHECK(saw_since(490000, 0));
	/* It has waited since it woke. */
	CHECK(!saw_since(490000, 1));
	/* The sample did not wake it, or not at once. */
	CHECK(!saw_since(400000, 0));
	CHECK(!saw_since(500001, 0));
	/* It was busy then, and may have waited. */
	CHECK(!moment_saw_since(&(struct moment){3000, 7}, &(struct moment){2000, 7},
				&(struct moment){1500, 7}, 1500));
}

static void test_now(void)
{
	const struct moment first = moment_now();
	const struct timespec moment = {.tv_nsec = 1000000};
	struct moment second;

	(void)nanosleep(&moment, NULL);
	second = moment_now();
	CHECK_INT(second.time_ns, >, first.time_ns);
	CHECK_INT(second.n_switches, >, first.n_switches);
}

int main(void)
{
	RUN(test_saw);
	RUN(test_saw_since);
	RUN(test_now);
	return 0;
}
