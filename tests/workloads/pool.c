/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool MILLISECONDS: threads that wait for work all of that time, in a condition and in epoll, and
 * some whose waits are none of an idle thread: for an answer, for a lock, and again and again for a
 * condition. Prints how long it lived, in milliseconds.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define N_WORKERS 2

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, tick = PTHREAD_COND_INITIALIZER;
static int ended, answer[2], stop[2];

static uint64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

__attribute__((noinline)) static void *idle_worker(void *arg)
{
	(void)arg;
	(void)pthread_mutex_lock(&mutex);
	while (!ended)
		(void)pthread_cond_wait(&work, &mutex);
	(void)pthread_mutex_unlock(&mutex);
	return NULL;
}

__attribute__((noinline)) static void *idle_server(void *arg)
{
	struct epoll_event e = {.events = EPOLLIN};
	int fd = epoll_create1(0);

	(void)arg;
	(void)epoll_ctl(fd, EPOLL_CTL_ADD, stop[0], &e);
	(void)epoll_wait(fd, &e, 1, -1);
	return NULL;
}

__attribute__((noinline)) static void *busy_client(void *arg)
{
	char byte;

	(void)arg;
	(void)recv(answer[0], &byte, 1, 0);
	return NULL;
}

__attribute__((noinline)) static void *busy_locker(void *arg)
{
	(void)arg;
	(void)pthread_mutex_lock(&held);
	(void)pthread_mutex_unlock(&held);
	return NULL;
}

__attribute__((noinline)) static void *busy_ticker(void *arg)
{
	(void)arg;
	(void)pthread_mutex_lock(&mutex);
	while (!ended)
		(void)pthread_cond_wait(&tick, &mutex);
	(void)pthread_mutex_unlock(&mutex);
	return NULL;
}

int main(int argc, char **argv)
{
	static void *(*const others[])(void *) = {idle_server, busy_client, busy_locker,
						  busy_ticker};
	uint64_t begin = now_ms(), ms = argc > 1 ? (uint64_t)atoll(argv[1]) : 1000;
	pthread_t threads[N_WORKERS + 4];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, answer) < 0 || pipe(stop) < 0)
		return 1;
	(void)pthread_mutex_lock(&held);
	for (size_t i = 0; i < N_WORKERS + 4; i++)
		if (pthread_create(&threads[i], NULL,
				   i < N_WORKERS ? idle_worker : others[i - N_WORKERS], NULL) != 0)
			return 1;
	while (now_ms() < begin + ms) {
		(void)usleep(50000);
		(void)pthread_cond_signal(&tick);
	}
	(void)pthread_mutex_lock(&mutex);
	ended = 1;
	(void)pthread_mutex_unlock(&mutex);
	(void)pthread_cond_broadcast(&work);
	(void)pthread_cond_broadcast(&tick);
	(void)pthread_mutex_unlock(&held);
	if (write(stop[1], "", 1) != 1 || write(answer[1], "", 1) != 1)
		return 1;
	for (size_t i = 0; i < N_WORKERS + 4; i++)
		(void)pthread_join(threads[i], NULL);
	printf("%llu\n", (unsigned long long)(now_ms() - begin));
	return 0;
}
