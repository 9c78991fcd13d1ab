/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a family: a child with two more threads, and its own child. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "src/broker/tasks.h"
#include "tests/unit/test.h"

enum { N_THREADS = 2, N_FAMILY = N_THREADS + 2 };

static void tell(int fd, pid_t tid)
{
	CHECK_INT(write(fd, &tid, sizeof(tid)), ==, sizeof(tid));
}

static void *sleep_in_thread(void *fd)
{
	tell(*(int *)fd, (pid_t)syscall(SYS_gettid));
	(void)pause();
	return NULL;
}

/* Each says its id when it is there. */
static void be_family(int fd)
{
	pthread_t thread;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < N_THREADS; i++)
		CHECK_INT(pthread_create(&thread, NULL, sleep_in_thread, &fd), ==, 0);
	if (fork() == 0)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	tell(fd, getpid());
	for (;;)
		(void)pause();
}

static pid_t start_family(pid_t *ret_ids)
{
	int fds[2];
	pid_t pid;

	CHECK_INT(pipe(fds), ==, 0);
	pid = fork();
	CHECK_INT(pid, >=, 0);
	if (pid == 0)
		be_family(fds[1]);
	for (int i = 0; i < N_FAMILY; i++)
		CHECK_INT(read(fds[0], &ret_ids[i], sizeof(*ret_ids)), ==, sizeof(*ret_ids));
	(void)close(fds[0]);
	(void)close(fds[1]);
	return pid;
}

static bool is_among(pid_t id, const pid_t *ids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ids[i] == id)
			return true;
	return false;
}

static void test_family(void)
{
	pid_t ids[N_FAMILY], tasks[N_FAMILY + 4];
	pid_t family[2] = {getppid(), start_family(ids)};

	CHECK_INT(tasks_list(&family[1], 1, tasks, N_FAMILY + 4), ==, N_FAMILY);
	for (int i = 0; i < N_FAMILY; i++)
		CHECK(is_among(ids[i], tasks, N_FAMILY));
	for (size_t max = 1; max < N_FAMILY; max++)
		CHECK_INT(tasks_list(&family[1], 1, tasks, max), ==, max);
	CHECK_INT(tasks_list_processes(&family[1], 1, tasks, N_FAMILY), ==, 2);
	CHECK_INT(tasks[0], ==, family[1]);
	CHECK(is_among(tasks[1], ids, N_FAMILY));
	CHECK_INT(getpgid(tasks[1]), ==, getpgid(family[1]));
	/* The place for processes is as large as that for threads. */
	CHECK_INT(tasks_list(family, 2, tasks, 1), ==, 1);
	CHECK_INT(kill(family[1], SIGKILL), ==, 0);
	CHECK_INT(waitpid(family[1], NULL, 0), ==, family[1]);
	CHECK_INT(tasks_list(&family[1], 1, tasks, N_FAMILY), ==, 0);
}

int main(void)
{
	if (access("/proc/thread-self/children", R_OK) < 0)
		SKIP("this kernel does not list the children of processes");
	RUN(test_family);
	return 0;
}
