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
	RUN(test_now);
	return 0;
}
