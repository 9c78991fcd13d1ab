/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that block, each in a function and for a reason of its own, for as many rounds as the
 * argument says. Each prints at the end how long it was blocked by its own clocks: wall time less
 * CPU time. A round in which it was preempted, and so waited for a CPU, too, is told apart: KIND
 * SURE UNSURE, in nanoseconds. With "more" as second argument these are other kinds, some of which
 * need rights or a disk: "lacks KIND REASON" of those that cannot be had.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))
#define KEEP  __asm__ volatile("" ::: "memory") /* no tail call */

enum { SHORT_MS = 4, LONG_MS = 12 };

struct waiter {
	const char *name;
	void (*wait)(void);
	void (*prepare)(void); /* before each round; NULL: nothing */
	void (*end)(void);     /* after it */
	uint64_t sure_ns, unsure_ns;
};

static int rounds, feed_pipe[2], feed_socket[2], lock_file[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, bell_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t bell = PTHREAD_COND_INITIALIZER;
static volatile int done;

static void pause_ms(int ms)
{
	struct timespec t = {.tv_nsec = ms * 1000000L};

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR)
		;
}

/* ---- What is waited for ---- */

APART static void wait_lock(void)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	KEEP;
}

APART static void wait_condition(void)
{
	pthread_mutex_lock(&bell_mutex);
	pthread_cond_wait(&bell, &bell_mutex);
	pthread_mutex_unlock(&bell_mutex);
	KEEP;
}

APART static void wait_sleep(void)
{
	pause_ms(LONG_MS);
	KEEP;
}

APART static void wait_poll(void)
{
	(void)poll(NULL, 0, LONG_MS);
	KEEP;
}

APART static void wait_epoll(void)
{
	static __thread int fd = -1;
	struct epoll_event e;

	if (fd < 0)
		fd = epoll_create1(0);
	(void)epoll_wait(fd, &e, 1, SHORT_MS);
	KEEP;
}

APART static void wait_pipe(void)
{
	char c;

	if (read(feed_pipe[0], &c, 1) != 1)
		abort();
	KEEP;
}

APART static void wait_network(void)
{
	char c;

	if (recv(feed_socket[0], &c, 1, 0) != 1)
		abort();
	KEEP;
}

APART static void wait_file_lock(void)
{
	if (flock(lock_file[0], LOCK_EX) < 0 || flock(lock_file[0], LOCK_UN) < 0)
		abort();
	KEEP;
}

APART static void wait_signal(void)
{
	struct timespec t = {.tv_nsec = LONG_MS * 1000000L};
	sigset_t none;

	sigemptyset(&none);
	sigaddset(&none, SIGUSR1);
	(void)sigtimedwait(&none, NULL, &t);
	KEEP;
}

static pid_t child;

static void fork_child(void)
{
	child = fork();
	if (child == 0) {
		pause_ms(LONG_MS);
		_exit(0);
	}
}

APART static void wait_child(void)
{
	(void)waitpid(child, NULL, 0);
	KEEP;
}

/* ---- More of them ---- */

#define PAGE 4096

static int disk_file = -1, inode_file = -1, fault_fd = -1, listener = -1;
static char *faulting; /* two pages: of the thread that waits for one, and of who holds an inode */
static struct sockaddr_in address;
static pthread_t sleeper;

APART static void wait_disk(void)
{
	static char block[PAGE];

	block[0]++;
	if (pwrite(disk_file, block, sizeof(block), 0) != sizeof(block) || fdatasync(disk_file) < 0)
		abort();
	KEEP;
}

static void drop_page(void)
{
	(void)madvise(faulting, PAGE, MADV_DONTNEED);
}

APART static void wait_page_fault(void)
{
	*(volatile char *)faulting = 1;
	KEEP;
}

APART static void wait_kernel_lock(void)
{
	if (pwrite(inode_file, "", 1, 0) != 1)
		abort();
	KEEP;
}

APART static void vfork_child(void)
{
	pause_ms(LONG_MS);
	_exit(0);
}

/* The child is on the same stack, in a function of its own. */
APART static void wait_vfork(void)
{
	child = vfork();
	if (child == 0)
		vfork_child();
	KEEP;
}

static int clone_child(void *ctx)
{
	(void)ctx;
	vfork_child();
	return 0;
}

/* As posix_spawn() does it: the child is on a stack of its own. */
APART static void wait_clone(void)
{
	static char stack[64 << 10] __attribute__((aligned(16)));

	child = clone(clone_child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
	if (child < 0)
		abort();
	KEEP;
}

static void reap_child(void)
{
	(void)waitpid(child, NULL, 0);
}

static void *sleep_and_end(void *ctx)
{
	pause_ms(LONG_MS);
	return NULL;
}

static void start_sleeper(void)
{
	if (pthread_create(&sleeper, NULL, sleep_and_end, NULL) != 0)
		abort();
}

APART static void wait_join(void)
{
	pthread_join(sleeper, NULL);
	KEEP;
}

APART static void wait_accept(void)
{
	int fd = accept(listener, NULL, NULL);

	if (fd < 0)
		abort();
	(void)close(fd);
	KEEP;
}

APART static void wait_select(void)
{
	struct timeval t = {.tv_usec = LONG_MS * 1000};

	(void)select(0, NULL, NULL, NULL, &t);
	KEEP;
}

static void *connect_often(void *ctx)
{
	while (!done) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

		pause_ms(SHORT_MS);
		(void)connect(fd, (struct sockaddr *)&address, sizeof(address));
		(void)close(fd);
	}
	return NULL;
}

/* Gives each page that is missing, but late. */
static void *serve_faults(void *ctx)
{
	struct pollfd p = {.fd = fault_fd, .events = POLLIN};
	struct uffd_msg m;

	while (!done) {
		struct uffdio_zeropage zero = {.range.len = PAGE};

		if (poll(&p, 1, 10) != 1 || read(fault_fd, &m, sizeof(m)) != sizeof(m))
			continue;
		pause_ms(SHORT_MS);
		zero.range.start = m.arg.pagefault.address & ~(uint64_t)(PAGE - 1);
		(void)ioctl(fault_fd, UFFDIO_ZEROPAGE, &zero);
	}
	return NULL;
}

/* Waits inside write() for a page of what it writes, and so holds the lock of the inode. */
static void *hold_inode(void *ctx)
{
	while (!done) {
		(void)madvise(faulting + PAGE, PAGE, MADV_DONTNEED);
		if (pwrite(inode_file, faulting + PAGE, 1, 1) != 1)
			abort();
		pause_ms(1);
	}
	return NULL;
}

static int set_up_faults(void)
{
	struct uffdio_register r = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	struct uffdio_api api = {.api = UFFD_API};

	fault_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	inode_file = memfd_create("inode", MFD_CLOEXEC);
	faulting = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fault_fd < 0 || inode_file < 0 || faulting == MAP_FAILED)
		return -errno;
	r.range.start = (uintptr_t)faulting;
	r.range.len = 2 * PAGE;
	return ioctl(fault_fd, UFFDIO_API, &api) < 0 || ioctl(fault_fd, UFFDIO_REGISTER, &r) < 0
		       ? -errno
		       : 0;
}

enum { TMPFS = 0x01021994, RAMFS = (int)0x858458f6 };

static int set_up_disk(const char *path)
{
	struct statfs s;

	disk_file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (disk_file < 0 || fstatfs(disk_file, &s) < 0)
		return -errno;
	(void)unlink(path);
	return (int)s.f_type == TMPFS || (int)s.f_type == RAMFS ? -EMEDIUMTYPE : 0;
}

static int set_up_listener(void)
{
	socklen_t n = sizeof(address);

	address = (struct sockaddr_in){.sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
			       listen(listener, 100) < 0 ||
			       getsockname(listener, (struct sockaddr *)&address, &n) < 0
		       ? -errno
		       : 0;
}

/* ---- All of them ---- */

static struct waiter more_waiters[] = {
	{.name = "disk", .wait = wait_disk},
	{.name = "page_fault", .wait = wait_page_fault, .prepare = drop_page},
	{.name = "kernel_lock", .wait = wait_kernel_lock},
	{.name = "vfork", .wait = wait_vfork, .end = reap_child},
	{.name = "clone", .wait = wait_clone, .end = reap_child},
	{.name = "join", .wait = wait_join, .prepare = start_sleeper},
	{.name = "accept", .wait = wait_accept},
	{.name = "select", .wait = wait_select},
};

static struct waiter waiters[] = {
	{.name = "lock", .wait = wait_lock},
	{.name = "condition", .wait = wait_condition},
	{.name = "sleep", .wait = wait_sleep},
	{.name = "poll", .wait = wait_poll},
	{.name = "epoll", .wait = wait_epoll},
	{.name = "pipe", .wait = wait_pipe},
	{.name = "network", .wait = wait_network},
	{.name = "file_lock", .wait = wait_file_lock},
	{.name = "signal", .wait = wait_signal},
	{.name = "child", .wait = wait_child, .prepare = fork_child},
};
enum {
	N_WAITERS = sizeof(waiters) / sizeof(waiters[0]),
	N_MORE = sizeof(more_waiters) / sizeof(more_waiters[0]),
	MAX_OTHERS = 3,
};

/* ---- Those who make them wait ---- */

/* Holds the locks most of the time. */
static void *hold(void *ctx)
{
	while (!done) {
		pthread_mutex_lock(&mutex);
		(void)flock(lock_file[1], LOCK_EX);
		pause_ms(LONG_MS);
		(void)flock(lock_file[1], LOCK_UN);
		pthread_mutex_unlock(&mutex);
		pause_ms(1);
	}
	return NULL;
}

/* A thread that is done reads no more, and must not make this one wait while others need it. */
static void *feed(void *ctx)
{
	(void)fcntl(feed_pipe[1], F_SETFL, O_NONBLOCK);
	while (!done) {
		pause_ms(SHORT_MS);
		if ((write(feed_pipe[1], "", 1) < 0 && errno != EAGAIN) ||
		    (send(feed_socket[1], "", 1, MSG_DONTWAIT) < 0 && errno != EAGAIN))
			abort();
		pthread_mutex_lock(&bell_mutex);
		pthread_cond_broadcast(&bell);
		pthread_mutex_unlock(&bell_mutex);
	}
	return NULL;
}

/* ---- Clocks ---- */

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static long n_preempted(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return u.ru_nivcsw;
}

static void *run(void *ctx)
{
	struct waiter *w = ctx;

	for (int i = 0; i < rounds; i++) {
		uint64_t wall, cpu, ns;
		long preempted;

		if (w->prepare)
			w->prepare();
		preempted = n_preempted();
		wall = now(CLOCK_MONOTONIC);
		cpu = now(CLOCK_THREAD_CPUTIME_ID);
		w->wait();
		cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
		wall = now(CLOCK_MONOTONIC) - wall;
		ns = wall > cpu ? wall - cpu : 0;
		*(n_preempted() == preempted ? &w->sure_ns : &w->unsure_ns) += ns;
		if (w->end)
			w->end();
		if (w->wait == wait_lock || w->wait == wait_file_lock ||
		    w->wait == wait_kernel_lock)
			pause_ms(1);
	}
	return NULL;
}

/* Runs those that are wanted, while the others make them wait. */
static void run_all(struct waiter *all, int n, void *(*const *others)(void *), int n_others)
{
	pthread_t threads[N_WAITERS + N_MORE], other_threads[MAX_OTHERS];

	for (int i = 0; i < n_others; i++)
		pthread_create(&other_threads[i], NULL, others[i], NULL);
	for (int i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, run, &all[i]);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	done = 1;
	for (int i = 0; i < n_others; i++)
		pthread_join(other_threads[i], NULL);
	for (int i = 0; i < n; i++)
		printf("%s %llu %llu\n", all[i].name, (unsigned long long)all[i].sure_ns,
		       (unsigned long long)all[i].unsure_ns);
}

static int wait_more(const char *disk_path)
{
	const int faults = set_up_faults(), disk = set_up_disk(disk_path);
	void *(*others[MAX_OTHERS])(void *) = {connect_often};
	int n_others = 1, n = 0;

	if (set_up_listener() < 0)
		return 1;
	if (faults == 0) {
		others[n_others++] = serve_faults;
		others[n_others++] = hold_inode;
	}
	for (int i = 0; i < N_MORE; i++) {
		const struct waiter w = more_waiters[i];
		int e = w.wait == wait_disk					  ? disk
			: w.wait == wait_page_fault || w.wait == wait_kernel_lock ? faults
										  : 0;

		if (e < 0)
			printf("lacks %s %s\n", w.name, strerror(-e));
		else
			more_waiters[n++] = w;
	}
	run_all(more_waiters, n, others, n_others);
	return 0;
}

int main(int argc, char **argv)
{
	void *(*const others[])(void *) = {hold, feed};
	char path[] = "/tmp/perfwalk-waits.XXXXXX";
	sigset_t usr1;

	rounds = argc > 1 ? atoi(argv[1]) : 100;
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, NULL);
	lock_file[0] = mkstemp(path);
	lock_file[1] = open(path, O_RDWR);
	if (unlink(path) < 0 || lock_file[1] < 0)
		return 1;
	if (argc > 2 && strcmp(argv[2], "more") == 0)
		return wait_more(path);
	if (pipe(feed_pipe) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, feed_socket) < 0)
		return 1;
	run_all(waiters, N_WAITERS, others, 2);
	return 0;
}
