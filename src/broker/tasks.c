/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/broker/tasks.h"
#include "util/cleanup.h"

#define MAX_CHILDREN_BYTES 16384

/* Adds the children that /proc knows of a thread's process (CONFIG_PROC_CHILDREN). */
static void add_children(pid_t pid, pid_t tid, pid_t *list, size_t *n, size_t max)
{
	_cleanup_free_ char *text = malloc(MAX_CHILDREN_BYTES);
	char path[64], *p = text;
	_cleanup_close_ int fd = -EBADF;
	ssize_t got;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = fd >= 0 && text ? read(fd, text, MAX_CHILDREN_BYTES - 1) : -1;
	if (got <= 0)
		return;
	text[got] = '\0';
	while (*n < max) {
		long child = strtol(p, &p, 10);

		if (child <= 0)
			return;
		list[(*n)++] = (pid_t)child;
	}
}

/* The processes that it lists are in all, the threads in tasks; NULL: nobody asks for these. */
static size_t list_all(const pid_t *pids, size_t n_pids, pid_t *all, pid_t *tasks, size_t max,
		       size_t *ret_n_tasks)
{
	size_t n_all = n_pids < max ? n_pids : max, n = 0;

	memcpy(all, pids, n_all * sizeof(*all));
	for (size_t i = 0; i < n_all; i++) {
		struct dirent *entry;
		char path[48];
		DIR *d;

		(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)all[i]);
		d = opendir(path);
		if (!d)
			continue;
		while (n < max && (entry = readdir(d))) {
			pid_t tid = (pid_t)atoi(entry->d_name);

			if (tid <= 0)
				continue;
			if (tasks)
				tasks[n++] = tid;
			add_children(all[i], tid, all, &n_all, max);
		}
		(void)closedir(d);
	}
	*ret_n_tasks = n;
	return n_all;
}

size_t tasks_list_processes(const pid_t *pids, size_t n_pids, pid_t *processes, size_t max)
{
	size_t n_tasks;

	return list_all(pids, n_pids, processes, NULL, max, &n_tasks);
}

size_t tasks_list(const pid_t *pids, size_t n_pids, pid_t *tasks, size_t max)
{
	_cleanup_free_ pid_t *all = calloc(max, sizeof(*all));
	size_t n = 0;

	if (all)
		(void)list_all(pids, n_pids, all, tasks, max, &n);
	return n;
}

static size_t list_threads(pid_t pid, pid_t *tasks, size_t max)
{
	struct dirent *entry;
	size_t n = 0;
	char path[48];
	DIR *d;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d && n < max && (entry = readdir(d))) {
		if (atoi(entry->d_name) > 0)
			tasks[n++] = (pid_t)atoi(entry->d_name);
	}
	if (d)
		(void)closedir(d);
	return n;
}

size_t tasks_list_host(pid_t *tasks, size_t max)
{
	DIR *d = opendir("/proc");
	struct dirent *entry;
	size_t n = 0;

	while (d && n < max && (entry = readdir(d))) {
		if (atoi(entry->d_name) > 0)
			n += list_threads((pid_t)atoi(entry->d_name), &tasks[n], max - n);
	}
	if (d)
		(void)closedir(d);
	return n;
}

char tasks_state(pid_t pid, int *ret_threads)
{
	char path[32], text[512], state = 0;
	_cleanup_close_ int fd = -EBADF;
	const char *end = NULL;
	ssize_t n;

	*ret_threads = 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (n > 0) {
		text[n] = '\0';
		end = strrchr(text, ')');
	}
	/* Fields 3 and 20. */
	return end && sscanf(end,
			     ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d "
			     "%*d %*d %*d %d",
			     &state, ret_threads) == 2
		       ? state
		       : 0;
}

bool tasks_has_ended(pid_t pid, bool is_thread)
{
	int n_threads;
	char state;

	if (kill(pid, 0) < 0 && errno == ESRCH)
		return true;
	state = tasks_state(pid, &n_threads);
	return (state == 'Z' || state == 'X') && (is_thread || n_threads <= 1);
}
