/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfwalk list: what there is to sample on this host, by the names that record's options take.
 * Containers and units are what control groups say, as for samples; no container engine is asked.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cmd/cmd.h"
#include "src/host/host.h"
#include "src/sample/sample.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/text.h"

#define MAX_PROCESSES (1u << 22)
#define CGROUP_BYTES  65536

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

static const char *group_of(const struct entry *e, bool containers)
{
	return containers ? e->cgroup.container_id : e->cgroup.unit;
}

static int compare(const void *a, const void *b, void *ctx)
{
	const struct entry *x = a, *y = b;
	const bool *containers = ctx;
	int r = strcmp(group_of(x, *containers), group_of(y, *containers));

	return r ? r : x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* Each group once, with the number of its processes and the first of them. */
static void print_groups(struct entries *list, bool containers)
{
	uint32_t n_groups = 0;

	if (list->items.n)
		qsort_r(list->items.items, list->items.n, sizeof(*list->items.items), compare,
			&containers);
	for (uint32_t i = 0, end; i < list->items.n; i = end) {
		const struct entry *e = &list->items.items[i];
		const char *group = group_of(e, containers);

		for (end = i + 1;
		     end < list->items.n &&
		     strcmp(group_of(&list->items.items[end], containers), group) == 0;)
			end++;
		if (!*group)
			continue;
		if (n_groups++ == 0)
			(void)printf("%-*s %-10s %9s  %s\n", containers ? 64 : 40,
				     containers ? "CONTAINER" : "UNIT", containers ? "RUNTIME" : "",
				     "PROCESSES", "FIRST");
		(void)printf("%-*s %-10s %9u  %s[%u]\n", containers ? 64 : 40, group,
			     containers ? e->cgroup.runtime : "", end - i, e->comm, e->pid);
	}
	if (n_groups == 0)
		(void)printf("no %s on this host, as far as control groups say\n",
			     containers ? "containers" : "systemd units");
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

int list_main(int argc, char **argv)
{
	int first, r = options_parse(&list_command, argc, argv, on_option, NULL, &first);
	struct entries list = {.items = ARRAY_INIT(MAX_PROCESSES)};
	const char *what = r == 0 && first + 1 == argc ? argv[first] : "";

	if (r != 0)
		return r > 0 ? EXIT_CODE_OK : EXIT_CODE_USAGE;
	if (strcmp(what, "events") == 0) {
		print_events();
	} else if (strcmp(what, "containers") == 0 || strcmp(what, "units") == 0 ||
		   strcmp(what, "processes") == 0) {
		r = find_processes(&list);
		if (r < 0)
			(void)fprintf(stderr, "perfwalk: list: /proc cannot be read: %s\n",
				      strerror(-r));
		else if (what[0] == 'p')
			print_processes(&list);
		else
			print_groups(&list, what[0] == 'c');
		array_deinit(&list.items);
	} else {
		(void)fputs("perfwalk: list: what: events, containers, units or processes?\n",
			    stderr);
		return EXIT_CODE_USAGE;
	}
	return r == 0 && fflush(stdout) == 0 ? EXIT_CODE_OK : EXIT_CODE_FAILURE;
}
