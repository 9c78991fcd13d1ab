/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU of a thread in /proc/PID/task/TID/stat. */
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>

#include "src/reader/thread-stat.h"
#include "tests/unit/fake-stat.h"
#include "tests/unit/test.h"

/* The kernel's own file, of a thread that stays on one CPU after the other. */
static void test_own(void)
{
	int fd = open("/proc/thread-self/stat", O_RDONLY | O_CLOEXEC);
	cpu_set_t all, one;

	CHECK(fd >= 0 && sched_getaffinity(0, sizeof(all), &all) == 0);
	CHECK(prctl(PR_SET_NAME, ") 1 2 (", 0, 0, 0) == 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		if (sched_setaffinity(0, sizeof(one), &one) < 0)
			continue; /* it went offline */
		CHECK_INT(thread_stat_cpu(fd), ==, sched_getcpu());
	}
	(void)close(fd);
}

static void test_made(void)
{
	int fd = fake_stat_new();
	off_t n;

	CHECK(fd >= 0);
	CHECK_INT(thread_stat_cpu(fd), ==, THREAD_STAT_NO_CPU);
	fake_stat_set(fd, 0);
	CHECK_INT(thread_stat_cpu(fd), ==, 0);
	fake_stat_set(fd, 4095);
	CHECK_INT(thread_stat_cpu(fd), ==, 4095);
	fake_stat_set(fd, UINT32_MAX);
	CHECK_INT(thread_stat_cpu(fd), ==, THREAD_STAT_NO_CPU);
	/* Cut anywhere in front of the CPU's end, it is not a shorter number. */
	fake_stat_set(fd, 12);
	n = lseek(fd, 0, SEEK_END) - (off_t)strlen(" 0 0\n");
	for (; n >= 0; n--) {
		CHECK(ftruncate(fd, n) == 0);
		CHECK_INT(thread_stat_cpu(fd), ==, THREAD_STAT_NO_CPU);
	}
	(void)close(fd);
	CHECK_INT(thread_stat_cpu(-1), ==, THREAD_STAT_NO_CPU);
}

int main(void)
{
	test_own();
	test_made();
	return 0;
}
