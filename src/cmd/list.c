/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfwalk list: what there is to sample on this host, by the names that record's options take.
 * Containers and units are what control groups say, as for samples; no container engine is asked.
 * What engines wrote down of their containers is collected first and read after all privileges are
 * given up: users' labels are in it.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/broker/opener.h"
#include "src/broker/privileges.h"
#include "src/cmd/cmd.h"
#include "src/cmd/setup.h"
#include "src/host/host.h"
#include "src/sample/sample.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/text.h"

#define MAX_PROCESSES (1u << 22)
#define CGROUP_BYTES  65536

#define MAX_CONTAINERS	4096
#define MAX_STATE_BYTES (1 << 20)
#define NAME_BYTES	256

const struct command list_command = {
	.name = "list",
	.usage = "list events|containers|units|processes",
	.summary = "what record can be asked for on this host",
	.epilog = "events: for -e; containers: for --container; units: for --unit; processes: for "
		  "-p.\n"
		  "\nExamples:\n  perfwalk list events\n  perfwalk list containers\n",
};

struct entry {
	uint32_t pid;
	char comm[32];
	char name[NAME_BYTES]; /* of the container */
	struct host_cgroup cgroup;
};

struct entries {
	ARRAY(struct entry) items;
};

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

static int add_process(struct entries *list, uint32_t pid, char *buf)
{
	char path[4096], comm[64];
	size_t n = read_proc(pid, "comm", comm, sizeof(comm));
	struct entry *e;

	if (n == 0) /* gone meanwhile */
		return 0;
	comm[strcspn(comm, "\n")] = '\0';
	e = array_push(&list->items);
	if (!e)
		return -ENOMEM;
	*e = (struct entry){.pid = pid, .cgroup = {.runtime = ""}};
	(void)text_clean(e->comm, sizeof(e->comm), comm, SIZE_MAX);
	n = read_proc(pid, "cgroup", buf, CGROUP_BYTES);
	if (n && host_parse_cgroup_file(buf, n, path, sizeof(path)))
		host_parse_cgroup_path(path, &e->cgroup);
	return 0;
}

static int find_processes(struct entries *list)
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

struct state {
	char id[65];
	char *text;
	size_t n;
};

struct states {
	ARRAY(struct state) items;
};

static const char *container_of(const struct entry *e)
{
	return e->cgroup.container_id;
}

/* Before privileges are given up, and nothing of it looked at. */
static void read_state(struct states *s, const char *id)
{
	_cleanup_close_ int fd = opener_container_state(id);
	struct state *state = fd < 0 ? NULL : array_push(&s->items);
	ssize_t got = 1;

	if (!state)
		return;
	*state = (struct state){.text = malloc(MAX_STATE_BYTES)};
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

static int drop_privileges(void)
{
	struct privileges p;

	(void)setup_choose_user(&p, "perfwalk");
	p.parent_pid = (uint32_t)getppid();
	p.max_open_files = 64;
	return privileges_drop(&p);
}

/* The name of each container, in an order where equal ids are neighbours. */
static int find_names(struct entries *list)
{
	struct states s = {.items = ARRAY_INIT(MAX_CONTAINERS)};
	const char *last = "";
	int r;

	for (uint32_t i = 0; i < list->items.n; i++) {
		const char *id = container_of(&list->items.items[i]);

		if (*id && strcmp(id, last) != 0)
			read_state(&s, id);
		last = id;
	}
	r = drop_privileges();
	for (uint32_t i = 0, k = 0; r == 0 && i < list->items.n && k < s.items.n; i++) {
		struct entry *e = &list->items.items[i];
		const struct state *state = &s.items.items[k];
		int order = strcmp(container_of(e), state->id);

		if (order == 0 && state->text)
			(void)host_parse_container_state(state->text, state->n, state->id, e->name,
							 sizeof(e->name));
		if (order > 0) {
			k++;
			i--;
		}
	}
	free_states(&s);
	return r;
}

/* ---- Tables ---- */

static void print_processes(const struct entries *list)
{
	(void)printf("%8s  %-16s %-24s %s\n", "PID", "COMM", "CONTAINER", "UNIT");
	for (uint32_t i = 0; i < list->items.n; i++) {
		const struct entry *e = &list->items.items[i];
		char owner[64] = "-";

		if (e->cgroup.container_id[0])
			(void)snprintf(owner, sizeof(owner), "%s %.12s",
				       *e->cgroup.runtime ? e->cgroup.runtime : "container",
				       e->cgroup.container_id);
		(void)printf("%8u  %-16s %-24s %s\n", e->pid, e->comm, owner,
			     e->cgroup.unit[0] ? e->cgroup.unit : "-");
	}
}

static int compare_containers(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int r = strcmp(container_of(x), container_of(y));

	return r ? r : x->pid < y->pid ? -1 : x->pid > y->pid;
}

static int compare_units(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int r = strcmp(x->cgroup.unit, y->cgroup.unit);

	return r ? r : x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* The first behind i that is of another group. */
static uint32_t end_of_group(const struct entries *list, uint32_t i,
			     const char *(*group)(const struct entry *))
{
	uint32_t end = i + 1;

	while (end < list->items.n &&
	       strcmp(group(&list->items.items[i]), group(&list->items.items[end])) == 0)
		end++;
	return end;
}

static const char *unit_of(const struct entry *e)
{
	return e->cgroup.unit;
}

/* Each with the number of its processes and the first of them. */
static void print_units(const struct entries *list)
{
	uint32_t n = 0;

	for (uint32_t i = 0, end; i < list->items.n; i = end) {
		const struct entry *e = &list->items.items[i];

		end = end_of_group(list, i, unit_of);
		if (!e->cgroup.unit[0])
			continue;
		if (n++ == 0)
			(void)printf("%-40s %9s  %s\n", "UNIT", "PROCESSES", "FIRST");
		(void)printf("%-40s %9u  %s[%u]\n", e->cgroup.unit, end - i, e->comm, e->pid);
	}
	if (n == 0)
		(void)puts("no systemd units on this host, as far as control groups say");
}

static void print_containers(const struct entries *list)
{
	uint32_t n = 0;

	for (uint32_t i = 0, end; i < list->items.n; i = end) {
		const struct entry *e = &list->items.items[i];

		end = end_of_group(list, i, container_of);
		if (!*container_of(e))
			continue;
		if (n++ == 0)
			(void)printf("%-64s %-32s %-10s %9s  %s\n", "CONTAINER", "NAME", "RUNTIME",
				     "PROCESSES", "FIRST");
		(void)printf("%-64s %-32s %-10s %9u  %s[%u]\n", container_of(e),
			     *e->name ? e->name : "-", *e->cgroup.runtime ? e->cgroup.runtime : "-",
			     end - i, e->comm, e->pid);
	}
	if (n == 0)
		(void)puts("no containers on this host, as far as control groups say");
}

static void print_events(void)
{
	const char *name;

	for (unsigned int i = 0; (name = sample_event_known(i)); i++) {
		struct sample_event e;
		char error[256];
		int r = sample_event_parse(name, &e, error, sizeof(error));

		if (r == 0)
			r = sample_event_try(&e);
		(void)printf("%-20s %-9s %s\n", name,
			     sample_event_is_hardware(&e) ? "hardware" : "software",
			     r == 0			   ? ""
			     : r == -EACCES || r == -EPERM ? "not permitted: see perfwalk check"
							   : "not on this machine");
	}
	(void)printf("%-20s %-9s %s\n", "rNNN", "hardware", "a number of the processor's manual");
	(void)printf("%-20s %-9s %s\n", "SUBSYSTEM:NAME", "tracepoint",
		     "as sched:sched_switch; they stand in /sys/kernel/tracing/events");
}

static int on_option(void *ctx, int id, const char *value)
{
	return 0;
}

static int list_processes(struct entries *list, char what)
{
	int r;

	if (!sample_has_proc()) {
		(void)fputs("perfwalk: list: " SAMPLE_NO_PROC "\n", stderr);
		return -ENODEV;
	}
	r = find_processes(list);
	if (r == 0 && list->items.n && what != 'p')
		qsort(list->items.items, list->items.n, sizeof(*list->items.items),
		      what == 'c' ? compare_containers : compare_units);
	if (r < 0) {
		(void)fprintf(stderr, "perfwalk: list: /proc cannot be read: %s\n", strerror(-r));
		return r;
	}
	if (what == 'p')
		print_processes(list);
	else if (what == 'u')
		print_units(list);
	else if ((r = find_names(list)) == 0)
		print_containers(list);
	else
		(void)fprintf(stderr, "perfwalk: list: privileges cannot be given up: %s\n",
			      strerror(-r));
	return r;
}

int list_main(int argc, char **argv)
{
	/* By their first letters from here on. */
	static const char *const kinds[] = {"events", "containers", "units", "processes"};
	int first, r = options_parse(&list_command, argc, argv, on_option, NULL, &first);
	struct entries list = {.items = ARRAY_INIT(MAX_PROCESSES)};

	if (r > 0)
		return EXIT_CODE_OK;
	if (r < 0 ||
	    options_choose(&list_command, "kind", kinds, ARRAY_SIZE(kinds), argv[first]) < 0 ||
	    options_end(&list_command, argc, argv, first + 1) < 0)
		return EXIT_CODE_USAGE;
	if (argv[first][0] == 'e') {
		print_events();
	} else {
		r = list_processes(&list, argv[first][0]);
		array_deinit(&list.items);
	}
	if (r < 0)
		return exit_code_of(r);
	return fflush(stdout) == 0 ? EXIT_CODE_OK : EXIT_CODE_FAILURE;
}
