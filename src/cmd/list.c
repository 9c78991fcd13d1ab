/* SPDX-License-Identifier: Apache-2.0 */
/* perfwalk list: what there is to sample on this host, by the names that record's options take, and
 * which windows the daemon has kept. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cmd/cmd.h"
#include "src/cmd/profile-types.h"
#include "src/cmd/running.h"
#include "src/cmd/services.h"
#include "src/cmd/view.h"
#include "src/cmd/windows.h"
#include "src/process/sandbox.h"
#include "src/sample/sample.h"
#include "util/text.h"

/* By their first letters further on. */
static const char *const kinds[] = {"events",	"types",     "containers", "units",
				    "services", "processes", "windows"};

enum { OPT_TRACE, OPT_SPAN, OPT_LAST };
#define TEXT(field) OPTION_TEXT(struct windows_wanted, field)

static const struct option_spec options[] = {
	{0, "trace", "ID", "only windows with samples of that trace, 32 hexadecimal digits",
	 OPT_TRACE},
	{0, "span", "ID", "only windows with samples of that span, 16 hexadecimal digits",
	 OPT_SPAN},
	{0, "service", "GLOB", "only services with a matching name, or windows with their samples",
	 TEXT(service)},
	{0, "last", "TIME", "only windows of the last 10m, 2h, 1d ...", OPT_LAST},
	{0, "store", "DIRECTORY", "where windows are kept; default: that of the daemon's config",
	 TEXT(store)},
};

const struct command list_command = {
	.name = "list",
	.usage = "list events|types|containers|units|processes|services [GLOB]\n"
		 "       perfwalk list windows [--trace ID] [--span ID] [--service GLOB] [--last "
		 "TIME]",
	.summary = "list what record can sample on this host, or what the daemon kept",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.words = kinds,
	.n_words = ARRAY_SIZE(kinds),
	.epilog = "events      for -e\n"
		  "types       of profiles, and what each needs on this host\n"
		  "containers  for --container\n"
		  "units       for --unit\n"
		  "services    for --service; with GLOB only those with a matching name\n"
		  "processes   for -p\n"
		  "windows     that the daemon kept here (files for report), with these samples\n"
		  "\nExamples:\n  perfwalk list events\n  perfwalk list containers\n"
		  "  perfwalk list windows --last 1h --span 00f067aa0ba902b7\n",
};

static void print_processes(const struct running_list *list)
{
	(void)printf("%8s  %-16s %-24s %s\n", "PID", "COMM", "CONTAINER", "UNIT");
	for (uint32_t i = 0; i < list->items.n; i++) {
		const struct running *e = &list->items.items[i];
		char owner[64] = "-";

		if (e->cgroup.container_id[0])
			(void)snprintf(owner, sizeof(owner), "%s %.*s",
				       *e->cgroup.runtime ? e->cgroup.runtime : "container",
				       e->cgroup.is_named ? 48 : 12, e->cgroup.container_id);
		(void)printf("%8u  %-16s %-24s %s\n", e->pid, e->comm, owner,
			     e->cgroup.unit[0] ? e->cgroup.unit : "-");
	}
}

static int compare_units(const void *a, const void *b)
{
	const struct running *x = a, *y = b;
	int r = strcmp(x->cgroup.unit, y->cgroup.unit);

	return r ? r : x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* The first after i that is in another group. */
static uint32_t end_of_group(const struct running_list *list, uint32_t i,
			     const char *(*group)(const struct running *))
{
	uint32_t end = i + 1;

	while (end < list->items.n &&
	       strcmp(group(&list->items.items[i]), group(&list->items.items[end])) == 0)
		end++;
	return end;
}

static const char *unit_of(const struct running *e)
{
	return e->cgroup.unit;
}

/* Each with the number of its processes and the first of them. */
static void print_units(const struct running_list *list)
{
	uint32_t n = 0;

	for (uint32_t i = 0, end; i < list->items.n; i = end) {
		const struct running *e = &list->items.items[i];

		end = end_of_group(list, i, unit_of);
		if (!e->cgroup.unit[0])
			continue;
		if (n++ == 0)
			(void)printf("%-40s %9s  %s\n", "UNIT", "PROCESSES", "FIRST");
		(void)printf("%-40s %9u  %s[%u]\n", e->cgroup.unit, end - i, e->comm, e->pid);
	}
	if (n == 0)
		(void)puts("the control groups show no systemd units on this host");
}

static void print_containers(const struct running_list *list)
{
	uint32_t n = 0;

	for (uint32_t i = 0, end; i < list->items.n; i = end) {
		const struct running *e = &list->items.items[i];

		end = end_of_group(list, i, running_container);
		if (!*running_container(e))
			continue;
		if (n++ == 0)
			(void)printf("%-64s %-32s %-10s %9s  %s\n", "CONTAINER", "NAME", "RUNTIME",
				     "PROCESSES", "FIRST");
		(void)printf("%-64s %-32s %-10s %9u  %s[%u]\n", running_container(e),
			     *e->container ? e->container : "-",
			     *e->cgroup.runtime ? e->cgroup.runtime : "-", end - i, e->comm,
			     e->pid);
	}
	if (n == 0)
		(void)puts("the control groups show no containers on this host");
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
	(void)printf("%-20s %-9s %s\n", "CACHE-ACCESSES", "hardware",
		     "such as L1-dcache-load-misses, LLC-loads, dTLB-store-misses");
	(void)printf("%-20s %-9s %s\n", "rNNN", "hardware", "a number from the processor's manual");
	(void)printf("%-20s %-9s %s\n", "SUBSYSTEM:NAME", "tracepoint",
		     "such as sched:sched_switch; they are listed in /sys/kernel/tracing/events");
	(void)printf("%-20s %-9s %s\n", "uprobe:/PATH:NAME", "function",
		     "each call, such as uprobe:/usr/lib/libx.so:x_open");
	(void)printf("%-20s %-9s %s\n", "usdt:/PATH:P:NAME", "marker",
		     "perfwalk debug marker FILE lists those of a file");
}

static void print_types(void)
{
	struct profile_reached types[PROFILE_TYPES_N];

	profile_types_find(types);
	(void)printf("%-14s %-40s %s\n", "TYPE", "OPTIONS", "HERE");
	for (int i = 0; i < PROFILE_TYPES_N; i++) {
		const struct profile_reached *t = &types[i];

		(void)printf("%-14s %-40s %s%s%s\n", t->name, *t->options ? t->options : "-",
			     profile_reach_text(t->reach), *t->why ? "; " : "", t->why);
		if (t->mend)
			(void)printf("%-14s -> %s\n", "", t->mend);
	}
}

static const char *or_none(const char *text)
{
	return *text ? text : "-";
}

/* Each with the number of its processes, and the first of them. */
static void print_services(const struct serving_list *list, const char *glob)
{
	uint32_t n = 0;

	for (uint32_t i = 0, end; i < list->items.n; i = end) {
		const struct serving *s = &list->items.items[i];
		const char *spans = s->spans;

		for (end = i + 1;
		     end < list->items.n && strcmp(list->items.items[end].service, s->service) == 0;
		     end++)
			spans = *spans ? spans : list->items.items[end].spans;
		if (glob && fnmatch(glob, s->service, 0) != 0)
			continue;
		if (n++ == 0)
			(void)printf("%-40s %-16s %9s  %s\n", "SERVICE", "SPANS", "PROCESSES",
				     "FIRST");
		(void)printf("%-40s %-16s %9u  %s[%u]\n", or_none(s->service), or_none(spans),
			     end - i, s->comm, s->pid);
	}
	if (n == 0)
		(void)puts(list->items.n ? "no service has such a name" : "no process may be read");
}

/* glob NULL: all. */
static int list_services(const char *glob)
{
	struct serving_list list = {0};
	int r;

	if (!sample_has_proc()) {
		(void)fputs("perfwalk: list: " SAMPLE_NO_PROC "\n", stderr);
		return -ENODEV;
	}
	r = services_find(&list, sandbox_choose_mode(SANDBOX_ERRNO));
	if (r == 0)
		print_services(&list, glob);
	else
		(void)fprintf(stderr, "perfwalk: list: %s\n", strerror(-r));
	services_deinit(&list);
	return r;
}

static int list_processes(struct running_list *list, char what)
{
	int r;

	if (!sample_has_proc()) {
		(void)fputs("perfwalk: list: " SAMPLE_NO_PROC "\n", stderr);
		return -ENODEV;
	}
	r = running_find(list);
	if (r == 0 && list->items.n && what == 'u')
		qsort(list->items.items, list->items.n, sizeof(*list->items.items), compare_units);
	if (r < 0) {
		(void)fprintf(stderr, "perfwalk: list: /proc cannot be read: %s\n", strerror(-r));
		return r;
	}
	if (what == 'p')
		print_processes(list);
	else if (what == 'u')
		print_units(list);
	else if ((r = running_name_containers(list, sandbox_choose_mode(SANDBOX_ERRNO))) == 0)
		print_containers(list);
	else
		(void)fprintf(stderr, "perfwalk: list: privileges cannot be dropped: %s\n",
			      strerror(-r));
	return r;
}

static int on_option(void *ctx, int id, const char *value)
{
	struct windows_wanted *w = ctx;

	switch (id) {
	case OPT_TRACE:
		w->trace = value;
		return view_check_id(&list_command, "--trace", value, 32);
	case OPT_SPAN:
		w->span = value;
		return view_check_id(&list_command, "--span", value, 16);
	default:
		return text_parse_duration_ns(value, &w->last_ns) == 0 && w->last_ns
			       ? 0
			       : options_complain(&list_command, "--last", value,
						  "expected a time such as 10m, 2h, 1d, or a "
						  "number of seconds");
	}
}

/* Options may come after the words. The words are in ret, at most two; 1: --help was printed. */
static int parse(int argc, char **argv, struct windows_wanted *w, const char *ret[2])
{
	int n = 0, first, r;

	for (;; argc -= first, argv += first) {
		r = options_parse(&list_command, argc, argv, on_option, w, &first);
		if (r != 0 || first >= argc)
			return r;
		if (n == 2)
			return options_end(&list_command, argc, argv, first);
		ret[n++] = argv[first];
	}
}

/* What is given must be of use. */
static int check(char kind, const char *glob, struct windows_wanted *w)
{
	if (glob && kind != 's')
		return options_refuse(&list_command,
				      "unexpected argument %s; see perfwalk list --help", glob);
	if (kind != 'w' && (w->trace || w->span || w->store || w->last_ns))
		return options_refuse(&list_command, "--trace, --span, --last and --store are for "
						     "perfwalk list windows");
	if (kind != 'w' && kind != 's' && w->service)
		return options_refuse(&list_command,
				      "--service is for perfwalk list services and windows");
	if (glob && w->service)
		return options_refuse(&list_command, "takes GLOB or --service, not both");
	return 0;
}

static int list_kind(char kind, const char *glob)
{
	struct running_list list = {0};
	int r = 0;

	if (kind == 'e') {
		print_events();
	} else if (kind == 't') {
		print_types();
	} else if (kind == 's') {
		r = list_services(glob);
	} else {
		r = list_processes(&list, kind);
		running_deinit(&list);
	}
	if (r < 0)
		return exit_code_of(r);
	return fflush(stdout) == 0 ? EXIT_CODE_OK : EXIT_CODE_FAILURE;
}

int list_main(int argc, char **argv)
{
	struct windows_wanted wanted = {0};
	const char *words[2] = {0};
	int r = parse(argc, argv, &wanted, words);

	if (r > 0)
		return EXIT_CODE_OK;
	if (r < 0 || options_choose(&list_command, "kind", words[0]) < 0 ||
	    check(words[0][0], words[1], &wanted) < 0)
		return EXIT_CODE_USAGE;
	return words[0][0] == 'w' ? windows_list(&list_command, &wanted)
				  : list_kind(words[0][0], words[1] ? words[1] : wanted.service);
}
