/* SPDX-License-Identifier: Apache-2.0 */
/* Each error of opening an event says what was found on this machine and what to do. */
#include "tests/unit/test.h"

#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/sample/event.h"
#include "util/cleanup.h"

static const struct sample_options options = {
	.rate_hz = 99, .stack_bytes = 4096, .regs_mask = 0x1c0, .ring_bytes = 1 << 20};
static char text[1024];

static void expect(int error, pid_t pid, const char *part)
{
	memset(text, 'x', sizeof(text));
	event_explain(error, pid, 5, &options, text, sizeof(text));
	if (!strstr(text, part)) {
		fprintf(stderr, "errno %d: \"%s\" lacks \"%s\"\n", -error, text, part);
		exit(1);
	}
}

static void test_each_errno(void)
{
	char limit_text[32], small[16];
	struct sample_circumstances here;
	struct rlimit limit;

	CHECK_INT(getrlimit(RLIMIT_NOFILE, &limit), ==, 0);
	snprintf(limit_text, sizeof(limit_text), "limit %llu", (unsigned long long)limit.rlim_cur);
	expect(-EMFILE, -1, limit_text);
	expect(-EMFILE, -1, "LimitNOFILE=");
	expect(-ENFILE, -1, "fs.file-max");
	expect(-EINVAL, -1, "perf_event_max_sample_rate");
	expect(-EINVAL, -1, "99 Hz");
	expect(-E2BIG, -1, "4096 bytes");
	expect(-ENODEV, -1, "CPU 5 is offline");
	expect(-ENOENT, -1, "cpu-clock");
	expect(-EOPNOTSUPP, -1, "cpu-clock");
	expect(-EBUSY, -1, "another profiler");
	expect(-ESRCH, 77, "process 77");
	sample_read_circumstances(&here);
	expect(-ENOSYS, -1, here.seccomp > 0 ? "hidden by a seccomp filter" : "qemu-user");
	expect(-ENOMEM, -1, "memory");
	expect(-EIO, -1, strerror(EIO));
	ring_explain(-EPERM, text, sizeof(text));
	CHECK(strstr(text, "CAP_IPC_LOCK"));
	ring_explain(-EINVAL, text, sizeof(text));
	CHECK(strstr(text, strerror(EINVAL)));
	/* No more than there is room for, and nothing without room. */
	memset(small, 'x', sizeof(small));
	event_explain(-EINVAL, -1, 5, &options, small, 8);
	CHECK_INT(strlen(small), ==, 7);
	CHECK_INT(small[8], ==, 'x');
	event_explain(-EINVAL, -1, 5, &options, small, 0);
}

/* In a child without any privilege, on the real system call. The quota of locked memory is the
 * user's: one that nobody else has, nor another run of this test. */
static void unprivileged(void (*test)(void))
{
	uid_t user = 20000 + (uid_t)getpid() % 40000;
	int status;
	pid_t pid = fork();

	CHECK_INT(pid, >=, 0);
	if (!pid) {
		if (setgroups(0, NULL) < 0 || setresuid(user, user, user) < 0)
			_exit(77);
		test();
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), ==, pid);
	CHECK(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		SKIP("cannot change user");
	CHECK_INT(WEXITSTATUS(status), ==, 0);
}

static void whole_cpu(void)
{
	struct sample_features f;
	char value[64];
	long paranoid = event_read_number("/proc/sys/kernel/perf_event_paranoid", -99);
	int r = sample_probe(&options, -1, &f, text, sizeof(text));

	if (paranoid < 1)
		return; /* allowed to all */
	CHECK_INT(r, <, 0);
	snprintf(value, sizeof(value), "perf_event_paranoid is %ld", paranoid);
	CHECK(strstr(text, value));
	CHECK(strstr(text, "CAP_"));
	CHECK(strstr(text, "sysctl"));
}

static void own_task(void)
{
	long paranoid = event_read_number("/proc/sys/kernel/perf_event_paranoid", -99);
	struct sample_features f;
	struct sample_cpu c;
	int cpu, r = sample_probe(&options, getpid(), &f, text, sizeof(text));

	if (paranoid > 2)
		return;
	CHECK_INT(r, ==, 0);
	CHECK_INT(f.kernel, ==, paranoid < 2);
	CHECK_INT(sample_online_cpus(&cpu, 1), !=, 0);
	CHECK_INT(sample_open_cpu(&options, &f, cpu, getpid(), NULL, &c, text, sizeof(text)), ==,
		  0);
	sample_close_cpu(&c);
}

static void others_task(void)
{
	long paranoid = event_read_number("/proc/sys/kernel/perf_event_paranoid", -99);
	struct sample_features f;
	int r = sample_probe(&options, 1, &f, text, sizeof(text));

	CHECK_INT(r, <, 0);
	CHECK(paranoid > 2 || strstr(text, "process 1 ")); /* that refuses one's own, too */
	CHECK(strstr(text, "paranoid"));
}

/* The quota of locked memory is spent: rings shrink, then the error says so. */
static void little_memory(void)
{
	struct sample_features f;
	struct sample_cpu c[32];
	struct rlimit none = {0, 0};
	uint64_t bytes = 0, smallest = UINT64_MAX;
	int cpus[512], n, r = 0;
	struct ring ring;

	if (event_read_number("/proc/sys/kernel/perf_event_paranoid", -99) > 2 ||
	    event_read_number("/proc/sys/kernel/perf_event_paranoid", -99) < 0)
		return;
	CHECK_INT(sample_probe(&options, getpid(), &f, text, sizeof(text)), ==, 0);
	CHECK_INT(setrlimit(RLIMIT_MEMLOCK, &none), ==, 0);
	n = sample_online_cpus(cpus, ARRAY_SIZE(cpus));
	CHECK_INT(n, >, 0);
	if (n > 16)
		return; /* the quota grows with the CPUs */
	for (size_t i = 0; i < ARRAY_SIZE(c) && r >= 0; i++) {
		CHECK_INT(sample_open_cpu(&options, &f, cpus[0], getpid(), NULL, &c[i], text,
					  sizeof(text)),
			  ==, 0);
		/* The first leaves room for something smaller than the others ask for. */
		bytes = i ? 1 << 20 : 1 << 18;
		r = ring_map(&ring, c[i].sample_fd, &bytes, true); /* kept until the child ends */
		if (r >= 0 && bytes < smallest)
			smallest = bytes;
	}
	CHECK_INT(smallest, <, 1 << 18);
	CHECK(r == -EPERM || r == -ENOMEM);
}

int main(void)
{
	RUN(test_each_errno);
	unprivileged(whole_cpu);
	unprivileged(own_task);
	unprivileged(others_task);
	unprivileged(little_memory);
	return 0;
}
