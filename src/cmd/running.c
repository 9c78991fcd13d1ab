/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We collect the engines' files about containers first, and parse them after all privileges are
 * given up, because they contain labels of users.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/broker/filter-texts.h"
#include "src/broker/limits.h"
#include "src/cmd/running.h"
#include "src/opener/opener.h"
#include "src/process/filter.h"
#include "src/process/privileges.h"
#include "src/process/setup.h"
#include "util/cleanup.h"
#include "util/text.h"

#define MAX_PROCESSES	(1u << 22)
#define CGROUP_BYTES	65536
#define MAX_CONTAINERS	4096
#define MAX_STATE_BYTES (1 << 20)

/* The start of a file of /proc/PID; its length, 0 when it cannot be read. */
static size_t read_proc(uint32_t pid, const char *name, char *buf, size_t size)
{
	char path[64];
	size_t n = 0;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && n < size - 1) {
		ssize_t r = read(fd, buf + n, size - 1 - n);

		if (r <= 0)
			break;
		n += (size_t)r;
	}
	(void)close_fd(fd);
	buf[n] = '\0';
	return n;
}

static int add_process(struct running_list *list, uint32_t pid, char *buf)
{
	char path[4096], comm[64];
	size_t n = read_proc(pid, "comm", comm, sizeof(comm));
	struct running *e;

	if (n == 0) /* gone meanwhile */
		return 0;
	comm[strcspn(comm, "\n")] = '\0';
	e = array_push(&list->items);
	if (!e)
		return -ENOMEM;
	*e = (struct running){.pid = pid, .cgroup = {.runtime = ""}};
	(void)text_clean(e->comm, sizeof(e->comm), comm, SIZE_MAX);
	n = read_proc(pid, "cgroup", buf, CGROUP_BYTES);
	if (!n || !host_parse_cgroup_file(buf, n, path, sizeof(path)))
		return 0;
	host_parse_cgroup_path(path, &e->cgroup);
	if (e->cgroup.is_named)
		(void)snprintf(e->container, sizeof(e->container), "%s", e->cgroup.container_id);
	e->cgroup.path = strdup(path);
	return e->cgroup.path ? 0 : -ENOMEM;
}

void running_deinit(struct running_list *list)
{
	for (uint32_t i = 0; i < list->items.n; i++)
		free(list->items.items[i].cgroup.path);
	array_deinit(&list->items);
}

int running_find(struct running_list *list)
{
	_cleanup_free_ char *buf = malloc(CGROUP_BYTES);
	DIR *d = opendir("/proc");
	struct dirent *entry;
	int r = d && buf ? 0 : d ? -ENOMEM : -errno;

	list->items.max = MAX_PROCESSES;
	while (d && r == 0 && (entry = readdir(d))) {
		uint64_t pid;

		if (isdigit((unsigned char)entry->d_name[0]) &&
		    text_parse_u64(entry->d_name, 1, UINT32_MAX, &pid) == 0)
			r = add_process(list, (uint32_t)pid, buf);
	}
	if (d)
		(void)closedir(d);
	return r;
}

/* ---- Containers' names ---- */

struct container_state {
	char id[65];
	char *text;
	size_t n;
};

struct states {
	ARRAY(struct container_state) items;
};

const char *running_container(const struct running *e)
{
	return e->cgroup.container_id;
}

/* Before privileges are given up, and nothing of it looked at. */
static void read_state(struct states *s, const char *id)
{
	_cleanup_close_ int fd = opener_container_state(id);
	struct container_state *state = fd < 0 ? NULL : array_push(&s->items);
	ssize_t got = 1;

	if (!state)
		return;
	*state = (struct container_state){.text = malloc(MAX_STATE_BYTES)};
	(void)snprintf(state->id, sizeof(state->id), "%s", id);
	while (state->text && got > 0 && state->n < MAX_STATE_BYTES) {
		got = read(fd, state->text + state->n, MAX_STATE_BYTES - state->n);
		state->n += got > 0 ? (size_t)got : 0;
	}
}

static void free_states(struct states *s)
{
	for (uint32_t i = 0; i < s->items.n; i++)
		free(s->items.items[i].text);
	array_deinit(&s->items);
}

int running_drop_privileges(enum sandbox_mode seccomp)
{
	struct privileges p;
	int r;

	(void)setup_choose_user(&p, "perfwalk");
	p.parent_pid = (uint32_t)getppid();
	limits_set(&p, LIMITS_LISTER, NULL);
	r = privileges_drop(&p);
	/* Where there are no filters, the rest has to do. */
	if (r == 0)
		(void)sandbox_filter_calls(PEER_SYMBOLIZER, seccomp);
	return r;
}

static int compare_containers(const void *a, const void *b)
{
	const struct running *x = a, *y = b;
	int r = strcmp(running_container(x), running_container(y));

	return r ? r : x->pid < y->pid ? -1 : x->pid > y->pid;
}

int running_name_containers(struct running_list *list, enum sandbox_mode seccomp)
{
	struct states s = {.items = ARRAY_INIT(MAX_CONTAINERS)};
	const char *last = "";
	int r;

	if (list->items.n)
		qsort(list->items.items, list->items.n, sizeof(*list->items.items),
		      compare_containers);
	for (uint32_t i = 0; i < list->items.n; i++) {
		const struct running *e = &list->items.items[i];
		const char *id = running_container(e);

		if (*id && !e->cgroup.is_named && strcmp(id, last) != 0)
			read_state(&s, id);
		last = id;
	}
	r = running_drop_privileges(seccomp);
	for (uint32_t i = 0, k = 0; r == 0 && i < list->items.n && k < s.items.n; i++) {
		struct running *e = &list->items.items[i];
		const struct container_state *state = &s.items.items[k];
		int order = strcmp(running_container(e), state->id);

		if (order == 0 && state->text)
			(void)host_parse_container_state(state->text, state->n, state->id,
							 e->container, sizeof(e->container));
		if (order > 0) {
			k++;
			i--;
		}
	}
	free_states(&s);
	return r;
}

/* ---- Filters ---- */

static bool thread_passes(const struct filter *f, struct filter_subject *s, uint32_t pid)
{
	struct dirent *entry;
	bool found = false;
	char path[64];
	DIR *d;

	(void)snprintf(path, sizeof(path), "/proc/%u/task", pid);
	d = opendir(path);
	while (d && !found && (entry = readdir(d))) {
		char comm[64];

		(void)snprintf(path, sizeof(path), "task/%.20s/comm", entry->d_name);
		if (read_proc(pid, path, comm, sizeof(comm)) == 0)
			continue;
		comm[strcspn(comm, "\n")] = '\0';
		s->thread = comm;
		found = filter_passes(f, s);
		s->thread = NULL;
	}
	if (d)
		(void)closedir(d);
	return found;
}

static bool passes(const struct filter *f, const struct running *e)
{
	struct filter_subject s = {.comm = e->comm,
				   .thread = e->comm,
				   .cgroup = e->cgroup.path,
				   .container_id = e->cgroup.container_id,
				   .container = *e->container ? e->container : NULL};

	s.has_uid = f->asks_user && opener_user(e->pid, &s.uid) == 0;
	return filter_passes(f, &s) || (f->includes[FILTER_COMM] && thread_passes(f, &s, e->pid));
}

static int add_rule(void *ctx, const char *text)
{
	return filter_add(ctx, text);
}

static int find_any(const struct config *c)
{
	struct running_list list = {0};
	struct filter f = {0};
	int r = filter_texts_each(c, true, add_rule, &f);

	if (r == 0)
		r = running_find(&list);
	/* Without a filter: what decides is in files of /proc. */
	if (r == 0 && f.asks_container)
		r = running_name_containers(&list, SANDBOX_NO);
	for (uint32_t i = 0; i < list.items.n && r == 0; i++)
		r = passes(&f, &list.items.items[i]);
	running_deinit(&list);
	filter_deinit(&f);
	return r;
}

int running_any(const struct config *c)
{
	int status, r;
	pid_t pid;

	/* That is in their memory. */
	if (c->include[CONFIG_FILTER_SERVICE] || c->exclude[CONFIG_FILTER_SERVICE])
		return -ENODATA;
	pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		r = find_any(c);
		_exit(r < 0 ? 2 : r);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) > 1)
		return -ECHILD;
	return WEXITSTATUS(status);
}
