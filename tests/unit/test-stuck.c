/* SPDX-License-Identifier: Apache-2.0 */
/* Whose files are refused while helpers are stuck, and whose are not. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "src/opener/stuck.h"
#include "tests/unit/test.h"
#include "util/clock.h"

#define MINUTE_NS (STUCK_REFUSED_SECONDS * NSEC_PER_SEC)

static uint64_t now = 1000;

/* One that does not end until it is killed. */
static pid_t helper(void)
{
	pid_t pid = fork();

	CHECK_INT(pid, >=, 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
	return pid;
}

static void end_all(struct stuck_table *t)
{
	for (uint32_t i = 0; i < STUCK_MAX; i++) {
		if (t->helpers[i].pid) {
			CHECK_INT(kill(t->helpers[i].pid, SIGKILL), ==, 0);
			CHECK_INT(waitid(P_PID, (id_t)t->helpers[i].pid, NULL, WEXITED | WNOWAIT),
				  ==, 0);
		}
	}
	CHECK_INT(stuck_reap(t), ==, 0);
}

static struct stuck_subject subject(uint32_t pid, uint32_t major, uint32_t minor, uint32_t uid)
{
	return (struct stuck_subject){pid, major, minor, uid};
}

static bool allows(struct stuck_table *t, struct stuck_subject s)
{
	return stuck_allows(t, &s, now);
}

static void learn(struct stuck_table *t, struct stuck_subject s)
{
	stuck_learn(t, &s);
}

static void add(struct stuck_table *t, struct stuck_subject s)
{
	stuck_add(t, helper(), &s, now);
}

static void test_one_is_stuck(void)
{
	struct stuck_table t = {0};

	add(&t, subject(7, 0, 40, 1000));
	/* The process, and the device; not those of a disk or unknown ones. */
	CHECK(!allows(&t, subject(7, 8, 1, 1000)));
	CHECK(!allows(&t, subject(8, 0, 40, 1001)));
	CHECK(allows(&t, subject(8, 8, 40, 1000)));
	CHECK(allows(&t, subject(8, 0, 0, 1000)));
	CHECK(allows(&t, subject(8, 0, 41, 1000)));
	CHECK_INT(t.n_refused, ==, 2);
	now += MINUTE_NS;
	CHECK(!allows(&t, subject(7, 8, 1, 1000)));
	end_all(&t);
	CHECK(allows(&t, subject(7, 8, 1, 1000)));
	CHECK(allows(&t, subject(8, 0, 40, 1001)));
}

/* A busy host makes an innocent late: the second time counts. */
static void test_late_again(void)
{
	struct stuck_table t = {0};

	add(&t, subject(7, 0, 40, 1000));
	end_all(&t);
	CHECK(!allows(&t, subject(7, 8, 1, 1000)));
	now += STUCK_FIRST_SECONDS * NSEC_PER_SEC;
	CHECK(allows(&t, subject(7, 8, 1, 1000)));
	CHECK(allows(&t, subject(8, 0, 40, 1001)));
	/* Another process, on the same device. */
	add(&t, subject(9, 0, 40, 1000));
	end_all(&t);
	now += MINUTE_NS - 1;
	CHECK(!allows(&t, subject(9, 8, 1, 1000)));
	CHECK(!allows(&t, subject(8, 0, 40, 1001)));
	now += 1;
	CHECK(allows(&t, subject(8, 0, 40, 1001)));
	/* That is long ago. */
	now += MINUTE_NS;
	add(&t, subject(9, 0, 40, 1000));
	end_all(&t);
	now += STUCK_FIRST_SECONDS * NSEC_PER_SEC;
	CHECK(allows(&t, subject(9, 0, 40, 1000)));
}

/* Everybody's device, which a path led away from. */
static void test_a_device_that_answered_is_not_to_blame(void)
{
	struct stuck_table t = {0};

	add(&t, subject(7, 8, 1, 1000));
	CHECK(allows(&t, subject(8, 8, 1, 1001)));
	learn(&t, subject(9, 0, 33, 0));
	add(&t, subject(7, 0, 33, 1000));
	CHECK(allows(&t, subject(8, 0, 33, 1001)));
	CHECK(!allows(&t, subject(7, 0, 33, 1001)));
	end_all(&t);
}

/* One who makes a filesystem after the other. */
static void test_many_are_stuck(void)
{
	struct stuck_table t = {0};

	learn(&t, subject(1, 0, 33, 0));
	for (uint32_t i = 0; i < STUCK_FEW; i++) {
		CHECK(allows(&t, subject(100 + i, 0, 50 + i, 1000)));
		add(&t, subject(100 + i, 0, 50 + i, 1000));
	}
	CHECK_INT(stuck_reap(&t), ==, STUCK_FEW);
	CHECK(!allows(&t, subject(200, 0, 70, 1000)));
	CHECK(!allows(&t, subject(200, 0, 0, 1000)));
	CHECK(allows(&t, subject(200, 0, 33, 1000)));
	CHECK(allows(&t, subject(200, 0, 70, 1001)));
	CHECK(allows(&t, subject(200, 0, 0, 1001)));
	/* With the help of others. */
	for (uint32_t i = STUCK_FEW; i < STUCK_MAX; i++) {
		CHECK(allows(&t, subject(100 + i, 0, 50 + i, 1000 + i)));
		add(&t, subject(100 + i, 0, 50 + i, 1000 + i));
	}
	CHECK(!allows(&t, subject(200, 0, 33, 0)));
	end_all(&t);
	CHECK(allows(&t, subject(200, 0, 70, 1000)));
}

int main(void)
{
	RUN(test_one_is_stuck);
	RUN(test_late_again);
	RUN(test_a_device_that_answered_is_not_to_blame);
	RUN(test_many_are_stuck);
	return 0;
}
