/* SPDX-License-Identifier: Apache-2.0 */
/* The host model on the real /proc, for a child of ours. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/host/host.h"
#include "util/cleanup.h"
#include "util/clock.h"

static int open_proc(uint32_t pid, const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_maps(void *ctx, uint32_t pid)
{
	return open_proc(pid, "maps");
}

static int open_cgroup(void *ctx, uint32_t tid)
{
	return open_proc(tid, "cgroup");
}

static int open_file(void *ctx, uint32_t pid, uint32_t alternate_pid, uint64_t start, uint64_t end,
		     const struct host_file_key *key, const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return st.st_ino == key->inode ? TAKE_FD(fd) : -ESTALE;
}

static int process_info(void *ctx, uint32_t pid, uint64_t *ret_start_ns, uint32_t *ret_parent,
			char comm[17], char *exe, size_t n_exe, bool *ret_is_kernel)
{
	_cleanup_close_ int fd = open_proc(pid, "stat");
	char text[1024], path[64], *p;
	unsigned long long start;
	unsigned int flags;
	ssize_t n;

	if (fd < 0)
		return fd;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return -ESRCH;
	text[n] = '\0';
	p = strrchr(text, ')');
	if (!p || sscanf(p + 2,
			 "%*c %u %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
			 "%*d %llu",
			 ret_parent, &flags, &start) != 3)
		return -EPROTO;
	*p = '\0';
	snprintf(comm, 17, "%.16s", strchr(text, '(') + 1);
	*ret_start_ns = start * (NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
	*ret_is_kernel = flags & 0x00200000; /* PF_KTHREAD */
	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	n = readlink(path, exe, n_exe - 1);
	exe[n > 0 ? n : 0] = '\0';
	return 0;
}

static uint64_t now(void *ctx)
{
	return clock_monotonic_ns();
}

static const struct host_source source = {NULL, open_maps,    open_file, open_cgroup, NULL,
					  NULL, process_info, now,	 NULL};
static const struct host_limits limits = {.max_open_files = 16};

static void in_the_child(int ready)
{
	(void)prctl(PR_SET_NAME, "a child\x01");
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	CHECK_INT(write(ready, "x", 1), ==, 1);
	for (;;)
		(void)pause();
}

static pid_t start_child(void)
{
	int ready[2];
	char byte;
	pid_t pid;

	CHECK_INT(pipe(ready), ==, 0);
	pid = fork();
	CHECK_INT(pid, >=, 0);
	if (!pid)
		in_the_child(ready[1]);
	CHECK_INT(read(ready[0], &byte, 1), ==, 1);
	(void)close(ready[0]);
	(void)close(ready[1]);
	return pid;
}

/* By that the host model knows it. */
static void check_zombie(pid_t child)
{
	char comm[17], exe[4096] = "x";
	uint64_t start_ns;
	uint32_t parent;
	bool is_kernel;
	siginfo_t info;

	CHECK_INT(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), ==, 0);
	CHECK_INT(process_info(NULL, (uint32_t)child, &start_ns, &parent, comm, exe, sizeof(exe),
			       &is_kernel),
		  ==, 0);
	CHECK_STR(exe, "");
	CHECK(!is_kernel);
}

static void test_child(void)
{
	_cleanup_(host_freep) struct host *h = NULL;
	/* Anonymous code of ours, inherited by the child. */
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t before = clock_get_ns(CLOCK_BOOTTIME), t;
	pid_t child = start_child();
	struct host_process *p;
	struct host_mapping *m;
	char self[4096] = "";

	CHECK(code != MAP_FAILED);
	CHECK_INT(readlink("/proc/self/exe", self, sizeof(self) - 1), >, 0);
	CHECK_INT(host_new(&h, &source, &limits), ==, 0);
	t = clock_monotonic_ns();
	p = host_process_get(h, (uint32_t)child, (uint32_t)child, t);
	CHECK(p);
	CHECK_STR(p->comm, "a child?");
	CHECK_STR(p->executable_path, self);
	CHECK_INT(p->parent_pid, ==, getpid());
	CHECK_INT(p->start_time_ns + 20 * NSEC_PER_MSEC, >=, before);
	CHECK_INT(p->start_time_ns, <=, clock_get_ns(CLOCK_BOOTTIME));
	CHECK_INT(p->start_unix_ns, <=, clock_realtime_ns());
	CHECK_INT(p->start_unix_ns, >, clock_realtime_ns() - 60 * NSEC_PER_SEC);
	CHECK(!p->is_kernel);

	m = host_mapping_find(h, p, (uintptr_t)test_child, t);
	CHECK(m);
	CHECK_INT(m->kind, ==, HOST_MAPPING_FILE);
	CHECK_STR(m->file->path, self);
	CHECK_INT(host_file_open(h, p, m), >=, 0);
	m = host_mapping_find(h, p, (uintptr_t)strlen, t);
	CHECK(m);
	CHECK_INT(m->kind, ==, HOST_MAPPING_FILE);
	m = host_mapping_find(h, p, (uintptr_t)code, t);
	CHECK(m);
	CHECK_INT(m->kind, ==, HOST_MAPPING_ANON);
	CHECK(!host_mapping_find(h, p, (uintptr_t)self, t)); /* the stack */
	CHECK_INT(host_stats(h)->open_files, ==, 1);
	/* It was there; whether the cgroup tells anything depends on the machine. */
	(void)host_cgroup_get(h, p, (uint32_t)child, 0);
	CHECK_INT(host_stats(h)->cgroup_reads, ==, 1);

	/* Gone: what is known stays until it is collected. */
	CHECK_INT(kill(child, SIGKILL), ==, 0);
	check_zombie(child);
	CHECK_INT(waitpid(child, NULL, 0), ==, child);
	host_on_lost(h);
	t += NSEC_PER_SEC;
	CHECK(host_process_get(h, (uint32_t)child, (uint32_t)child, t) == p);
	CHECK(host_mapping_find(h, p, (uintptr_t)test_child, t));
	CHECK_INT(host_stats(h)->maps_failed, ==, 1);
	host_on_exit(h, (uint32_t)child, (uint32_t)child, t);
	host_collect(h);
	host_collect(h);
	CHECK_INT(host_stats(h)->processes, ==, 0);
	(void)munmap(code, 4096);
}

static void test_process_that_never_was(void)
{
	_cleanup_(host_freep) struct host *h = NULL;
	struct host_process *p;

	CHECK_INT(host_new(&h, &source, &limits), ==, 0);
	p = host_process_get(h, 0x7fffffff, 0x7fffffff, clock_monotonic_ns());
	CHECK(p);
	CHECK_STR(p->comm, "");
	CHECK(!host_mapping_find(h, p, 0x400000, clock_monotonic_ns()));
	CHECK(!host_cgroup_get(h, p, 0x7fffffff, 0));
}

static void test_kernel_thread(void)
{
	_cleanup_(host_freep) struct host *h = NULL;
	struct host_process *p;

	CHECK_INT(host_new(&h, &source, &limits), ==, 0);
	p = host_process_get(h, 2, 2, clock_monotonic_ns());
	if (!p || strcmp(p->comm, "kthreadd") != 0)
		return; /* a pid namespace of our own */
	CHECK(p->is_kernel);
	CHECK(!host_mapping_find(h, p, 0x400000, clock_monotonic_ns()));
	CHECK_INT(host_stats(h)->maps_reads, ==, 0);
}

/* A clock that stands still. */
static uint64_t standing(void *ctx)
{
	return NSEC_PER_SEC;
}

/* With thousands of mappings the kernel is asked for one, where it can answer that. */
static void test_many_mappings(void)
{
	enum { N = 8192 };
	_cleanup_(host_freep) struct host *h = NULL;
	uint8_t *area = mmap(NULL, N * 4096UL, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct host_source standing_source = source;
	uint32_t pid = (uint32_t)getpid();
	uint64_t t = clock_monotonic_ns();
	struct host_process *p;
	struct host_mapping *m;
	void *code, *file;
	char path[4096] = "";
	struct utsname u;
	int fd, major, minor;

	CHECK(area != MAP_FAILED);
	for (size_t i = 0; i < N; i += 2)
		CHECK_INT(mprotect(area + i * 4096, 4096, PROT_READ | PROT_EXEC), ==, 0);
	standing_source.wall = standing;
	CHECK_INT(host_new(&h, &standing_source, &limits), ==, 0);
	p = host_process_get(h, pid, pid, t);
	CHECK(p);
	CHECK(host_mapping_find(h, p, (uintptr_t)area, t));
	CHECK_INT(host_stats(h)->maps_reads, ==, 1);

	/* Seconds later by the records' clock. */
	code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	CHECK_INT(fd, >=, 0);
	file = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 4096);
	CHECK(code != MAP_FAILED && file != MAP_FAILED);
	(void)close(fd);
	t += 30 * NSEC_PER_SEC;
	m = host_mapping_find(h, p, (uintptr_t)code, t);
	CHECK_INT(host_stats(h)->maps_reads, ==, 1);
	CHECK_INT(host_stats(h)->maps_queries, ==, 1);
	CHECK_INT(uname(&u), ==, 0);
	CHECK_INT(sscanf(u.release, "%d.%d", &major, &minor), ==, 2);
	if (!m) {
		CHECK(major < 6 || (major == 6 && minor < 11));
		SKIP("Linux %s cannot be asked for a single mapping", u.release);
	}
	CHECK_INT(m->kind, ==, HOST_MAPPING_ANON);
	CHECK_INT(m->start, <=, (uintptr_t)code);
	m = host_mapping_find(h, p, (uintptr_t)file + 16, t);
	CHECK(m);
	CHECK_INT(m->kind, ==, HOST_MAPPING_FILE);
	CHECK_INT(m->start, ==, (uintptr_t)file);
	CHECK_INT(m->end, ==, (uintptr_t)file + 4096);
	CHECK_INT(m->file_offset, ==, 4096);
	CHECK_INT(readlink("/proc/self/exe", path, sizeof(path) - 1), >, 0);
	CHECK_STR(m->file->path, path);
	CHECK_INT(host_file_open(h, p, m), >=, 0); /* the test opens by inode */
	/* Of a hole nothing is said, and not asked again soon. */
	CHECK(!host_mapping_find(h, p, (uintptr_t)area + 4096, t));
	CHECK(!host_mapping_find(h, p, (uintptr_t)area + 4096, t));
	CHECK_INT(host_stats(h)->maps_queries, ==, 3);
	CHECK_INT(host_stats(h)->maps_reads, ==, 1);
	(void)munmap(area, N * 4096UL);
	(void)munmap(code, 4096);
	(void)munmap(file, 4096);
}

int main(void)
{
	RUN(test_child);
	RUN(test_process_that_never_was);
	RUN(test_kernel_thread);
	RUN(test_many_mappings);
	return 0;
}
