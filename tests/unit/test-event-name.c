/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <errno.h>

#include "src/sample/sample.h"

static struct sample_event event;
static char error[512];

static int parse(const char *text)
{
	error[0] = '\0';
	return sample_event_parse(text, &event, error, sizeof(error));
}

static void test_names(void)
{
	CHECK_INT(parse("page-faults"), ==, 0);
	CHECK_INT(event.type, ==, PERF_TYPE_SOFTWARE);
	CHECK_INT(event.config, ==, PERF_COUNT_SW_PAGE_FAULTS);
	CHECK(!sample_event_is_time(&event) && !sample_event_is_hardware(&event));
	CHECK_INT(parse("cs"), ==, 0);
	CHECK_STR(event.name, "context-switches");
	CHECK(sample_event_is_kernel(&event));
	CHECK_INT(parse("task-clock"), ==, 0);
	CHECK(sample_event_is_time(&event));
	CHECK_INT(parse("branch-misses"), ==, 0);
	CHECK(sample_event_is_hardware(&event));
	event = (struct sample_event){0};
	CHECK(sample_event_is_time(&event) && !sample_event_is_hardware(&event));
}

static void test_raw(void)
{
	CHECK_INT(parse("r01c2"), ==, 0);
	CHECK_INT(event.type, ==, PERF_TYPE_RAW);
	CHECK_INT(event.config, ==, 0x1c2);
	CHECK_INT(parse("rffffffffffffffff"), ==, 0);
	CHECK_INT(parse("r10000000000000000"), ==, -EINVAL);
	CHECK_INT(parse("r"), ==, -EINVAL);
	CHECK_INT(parse("r0x1"), ==, -EINVAL);
}

static void test_caches(void)
{
	CHECK_INT(parse("L1-dcache-loads"), ==, 0);
	CHECK_INT(event.type, ==, PERF_TYPE_HW_CACHE);
	CHECK_INT(event.config, ==, PERF_COUNT_HW_CACHE_L1D);
	CHECK(sample_event_is_hardware(&event) && !sample_event_is_time(&event));
	CHECK_INT(parse("LLC-load-misses"), ==, 0);
	CHECK_STR(event.name, "LLC-load-misses");
	CHECK_INT(event.config, ==, PERF_COUNT_HW_CACHE_LL | PERF_COUNT_HW_CACHE_RESULT_MISS << 16);
	CHECK_INT(parse("dTLB-store-misses"), ==, 0);
	CHECK_INT(event.config, ==,
		  PERF_COUNT_HW_CACHE_DTLB | PERF_COUNT_HW_CACHE_OP_WRITE << 8 |
			  PERF_COUNT_HW_CACHE_RESULT_MISS << 16);
	CHECK_INT(parse("node-prefetches"), ==, 0);
	CHECK_INT(event.config, ==,
		  PERF_COUNT_HW_CACHE_NODE | PERF_COUNT_HW_CACHE_OP_PREFETCH << 8);
	CHECK_INT(parse("branch-loads"), ==, 0); /* and the event of the generic kind: */
	CHECK_INT(parse("branch-misses"), ==, 0);
	CHECK_INT(event.type, ==, PERF_TYPE_HARDWARE);
	CHECK_INT(parse("L1-dcache"), ==, -EINVAL);
	CHECK_INT(parse("LLC-"), ==, -EINVAL);
	CHECK_INT(parse("LLC-load"), ==, -EINVAL);
}

static void test_wrong(void)
{
	CHECK_INT(parse(""), ==, -EINVAL);
	CHECK_INT(parse("page-fautls"), ==, -EINVAL);
	CHECK(strstr(error, "did you mean page-faults?") != NULL);
	CHECK_INT(parse("cycles:u"), ==, -EINVAL);
	CHECK(strstr(error, "--all-user") != NULL);
	CHECK_INT(parse("faults,cs"), ==, -EINVAL); /* who takes lists takes them apart */
	/* Not a way to other files. */
	CHECK_INT(parse("sched:../../../../etc"), ==, -EINVAL);
	CHECK_INT(parse("../sched:sched_switch"), ==, -EINVAL);
	CHECK_INT(parse("sched:"), ==, -EINVAL);
	CHECK_INT(parse(":x"), ==, -EINVAL);
	CHECK_INT(parse("sched:no_such_thing"), ==, -ENOENT);
	CHECK(error[0] != '\0');
}

int main(void)
{
	RUN(test_names);
	RUN(test_raw);
	RUN(test_caches);
	RUN(test_wrong);
	return 0;
}
