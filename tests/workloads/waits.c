/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that block, each in a function and for a reason of its own, for as many rounds as the
 * argument says. Each prints at the end how long it was blocked by its own clocks: wall time less
 * CPU time. A round in which it was preempted, and so waited for a CPU, too, is told apart: KIND
 * SURE UNSURE, in nanoseconds.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))
#define KEEP  __asm__ volatile("" ::: "memory") /* no tail call */

enum { SHORT_MS = 4, LONG_MS = 12 };

struct waiter {
	const char *name;
	void (*wait)(void);
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

APART static void wait_child(void)
{
	(void)waitpid(child, NULL, 0);
	KEEP;
}

static struct waiter waiters[] = {
	{.name = "lock", .wait = wait_lock},	   {.name = "condition", .wait = wait_condition},
	{.name = "sleep", .wait = wait_sleep},	   {.name = "poll", .wait = wait_poll},
	{.name = "epoll", .wait = wait_epoll},	   {.name = "pipe", .wait = wait_pipe},
	{.name = "network", .wait = wait_network}, {.name = "file_lock", .wait = wait_file_lock},
	{.name = "signal", .wait = wait_signal},   {.name = "child", .wait = wait_child},
};
enum { N_WAITERS = sizeof(waiters) / sizeof(waiters[0]) };

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

		if (w->wait == wait_child && (child = fork()) == 0) {
			pause_ms(LONG_MS);
			_exit(0);
		}
		preempted = n_preempted();
		wall = now(CLOCK_MONOTONIC);
		cpu = now(CLOCK_THREAD_CPUTIME_ID);
		w->wait();
		cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
		wall = now(CLOCK_MONOTONIC) - wall;
		ns = wall > cpu ? wall - cpu : 0;
		*(n_preempted() == preempted ? &w->sure_ns : &w->unsure_ns) += ns;
		if (w->wait == wait_lock || w->wait == wait_file_lock)
			pause_ms(1);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	char path[] = "/tmp/perfwalk-waits.XXXXXX";
	pthread_t threads[N_WAITERS], others[2];
	sigset_t usr1;

	rounds = argc > 1 ? atoi(argv[1]) : 100;
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, NULL);
	lock_file[0] = mkstemp(path);
	lock_file[1] = open(path, O_RDWR);
	if (unlink(path) < 0 || lock_file[1] < 0 || pipe(feed_pipe) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, feed_socket) < 0)
		return 1;
	pthread_create(&others[0], NULL, hold, NULL);
	pthread_create(&others[1], NULL, feed, NULL);
	for (int i = 0; i < N_WAITERS; i++)
		pthread_create(&threads[i], NULL, run, &waiters[i]);
	for (int i = 0; i < N_WAITERS; i++)
		pthread_join(threads[i], NULL);
	done = 1;
	pthread_join(others[0], NULL);
	pthread_join(others[1], NULL);
	for (int i = 0; i < N_WAITERS; i++)
		printf("%s %llu %llu\n", waiters[i].name, (unsigned long long)waiters[i].sure_ns,
		       (unsigned long long)waiters[i].unsure_ns);
	return 0;
}
