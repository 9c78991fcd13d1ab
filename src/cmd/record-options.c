/* SPDX-License-Identifier: Apache-2.0 */
/* The options of perfwalk record, and the checks of their values. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cmd/cmd.h"
#include "src/cmd/record.h"
#include "src/render/format.h"
#include "util/clock.h"
#include "util/runtime-rows.h"
#include "util/text.h"

enum {
	OPT_PID,
	OPT_TID,
	OPT_CPU,
	OPT_USER,
	OPT_COMM,
	OPT_SERVICE,
	OPT_UNIT,
	OPT_CONTAINER,
	OPT_CGROUP,
	OPT_EVENT,
	OPT_FILTER,
	OPT_MEMORY,
	OPT_ALLOC,
	OPT_GROWN_AFTER,
	OPT_OFF_CPU,
	OPT_LOCKS,
	OPT_WALL,
	OPT_EVERYTHING,
	OPT_COUNT,
	OPT_FREQ,
	OPT_DURATION,
	OPT_OUTPUT,
	OPT_FORMAT,
	OPT_GRAPH,
	OPT_CALL_GRAPH,
	OPT_STACK,
	OPT_DEMANGLE
};

#define FLAG(field) OPTION_FLAG(struct record_options, field)

static const struct option_spec option_table[] = {
	{'a', "all", NULL, "the whole host (the default without -p, -t and COMMAND)", FLAG(all)},
	{'p', "pid", "PID[,PID...]", "these processes, with their threads and what they fork",
	 OPT_PID},
	{'t', "tid", "TID[,TID...]", "only these threads", OPT_TID},
	{'C', "cpu", "CPUS", "on these CPUs only: 0-3,8", OPT_CPU},
	{'u', "user", "USER[,USER...]", "only processes of these users, names or numbers",
	 OPT_USER},
	{0, "comm", "GLOB", "only processes or threads with a matching name", OPT_COMM},
	{0, "service", "GLOB", "only processes of services with a matching name", OPT_SERVICE},
	{0, "unit", "UNIT", "only this systemd unit; * ? [...] work", OPT_UNIT},
	{0, "container", "ID|NAME", "only containers whose id or name begins with this",
	 OPT_CONTAINER},
	{0, "cgroup", "PATH", "only this control group and the groups below it", OPT_CGROUP},
	{'e', "event", "EVENT[,EVENT...]",
	 "the event to count (repeatable); default CPU time: see below", OPT_EVENT},
	{0, "filter", "EXPRESSION",
	 "only matching events of the tracepoint before it: 'prev_state == 2'", OPT_FILTER},
	{0, "memory", NULL, "where memory grows: pages touched for the first time, in bytes",
	 OPT_MEMORY},
	{0, "alloc", NULL, "memory allocated and in use, by a library loaded into COMMAND",
	 OPT_ALLOC},
	{0, "grown-after", "TIME",
	 "with --alloc: in use are only blocks allocated later than TIME after the start",
	 OPT_GROWN_AFTER},
	{0, "off-cpu", NULL, "also how long threads were blocked, where, and what for",
	 OPT_OFF_CPU},
	{0, "locks", NULL, "like --off-cpu, and which locks they waited for and who released them",
	 OPT_LOCKS},
	{0, "wall", NULL, "also all time of each thread: on a CPU, waiting for one, and blocked",
	 OPT_WALL},
	{0, "idle", NULL, "off-CPU and wall time also of threads that only waited for work",
	 FLAG(idle)},
	{0, "everything", NULL, "CPU time, --wall, --locks and --memory together", OPT_EVERYTHING},
	{'c', "count", "COUNT", "take a sample every COUNT events, instead of -F", OPT_COUNT},
	{'F', "freq", "HZ", "samples a second on each CPU; default 99", OPT_FREQ},
	{'d', "duration", "TIME", "how long: 10, 10s, 2m; default until Ctrl-C, or COMMAND ends",
	 OPT_DURATION},
	{'o', "output", "FILE", "write FILE (repeatable); the suffix chooses the format: see below",
	 OPT_OUTPUT},
	{0, "format", "NAME", "the format, regardless of the suffix; -o - is standard output",
	 OPT_FORMAT},
	{'g', "graph", NULL, "the same as --call-graph auto, the default", OPT_GRAPH},
	{0, "call-graph", "MODE", "stacks by dwarf[,BYTES], fp (frame pointers) or auto",
	 OPT_CALL_GRAPH},
	{0, "stack-size", "BYTES",
	 "bytes of stack copied with each sample: 1K to 65528; default 32K, 8K with -c", OPT_STACK},
	{'K', "all-kernel", NULL, "only samples taken inside the kernel", FLAG(only_kernel)},
	{'U', "all-user", NULL, "only samples taken in user code", FLAG(only_user)},
	{0, "user-only", NULL,
	 "leave kernel frames out; kernel time is shown at the function that called it",
	 FLAG(user_only)},
	{0, "no-lines", NULL, "no source files and lines", FLAG(no_lines)},
	{0, "no-inline", NULL, "no frames for inlined functions", FLAG(no_inline)},
	{0, "no-interpreters", NULL, "do not read the stacks of " RUNTIME_NAMES " programs",
	 FLAG(no_interpreters)},
	{0, "no-native-frames", NULL,
	 "leave out an interpreter's own functions where the program's are known",
	 FLAG(no_native_frames)},
	{0, "demangle", "STYLE", "names of C++, Rust and D: full (the default), simple or none",
	 OPT_DEMANGLE},
	{0, "strict", NULL, "exit with 5 if any sample was lost or dropped", FLAG(strict)},
	{'q', "quiet", NULL, "no progress, no summary", FLAG(quiet)},
	{'v', "verbose", NULL, "print more messages", FLAG(verbose)},
};

static const char *value_of(int id, unsigned int i)
{
	return id == OPT_EVENT	    ? sample_event_known(i)
	       : id == OPT_FORMAT   ? format_name(i, false)
	       : id == OPT_DEMANGLE ? config_demangle_name(i)
				    : NULL;
}

const struct command record_command = {
	.name = "record",
	.usage = "record [-a | -p PID[,PID...] | -t TID[,TID...] | -- COMMAND...] [-F HZ] [-d "
		 "TIME] [-o FILE]...",
	.summary = "capture stacks for a while: flame graph, folded stacks, pprof, summary",
	.options = option_table,
	.n_options = ARRAY_SIZE(option_table),
	.value = value_of,
	.epilog =
		"Outputs by suffix, and their names for --format:\n"
		"  .html .svg .folded .pb.gz  html (page), svg, folded, pprof\n"
		"  .speedscope.json           speedscope\n"
		"  .json .json.gz             firefox, firefox-gzip (Firefox Profiler)\n"
		"  .perf.txt .script          perf-script\n"
		"  .otlp .otlp.json           otlp, otlp-json (OpenTelemetry)\n"
		"  .ndjson                    ndjson (an object for each stack, for databases)\n"
		"Events: cpu-clock, task-clock, cycles, instructions, cache-misses,\n"
		"branch-misses, page-faults, context-switches, cpu-migrations, memory_growth,\n"
		"rNNN, SUBSYSTEM:TRACEPOINT, calls of a function (uprobe:/PATH:FUNCTION), and\n"
		"passes of a marker (usdt:/PATH:PROVIDER:NAME). perfwalk list events shows them.\n"
		"Up to 6 at once: -e cpu-clock -e page-faults. -F, -c and --stack-size apply to\n"
		"all; EVENT/freq=HZ/, EVENT/period=COUNT/ and EVENT/stack-size=BYTES/ apply to\n"
		"one, and win. EVENT/filter=EXPRESSION/ filters a tracepoint, EVENT/name=TEXT/\n"
		"renames an event. html, svg, folded and firefox hold the first event only.\n"
		"\n"
		"--alloc loads a library into COMMAND that picks a block every 512 KiB (or\n"
		"PERFWALK_ALLOC_BYTES), and adds alloc_space, inuse_space, alloc_objects and\n"
		"inuse_objects. Go programs and Java VMs need no library.\n"
		"--off-cpu adds off_cpu, the nanoseconds that threads were blocked. Its stacks\n"
		"begin with what they waited for: [wait: lock], condition, sleep, poll, network,\n"
		"pipe, disk, page fault, child, signal, file lock, kernel lock, freezer.\n"
		"\n"
		"Different filters (-u, --comm, --service, --unit, --container, --cgroup, -C)\n"
		"must all match; several values of one filter match if any does.\n"
		"\n"
		"Exit codes: 0 ok, 1 failure, 2 usage, 3 not permitted, 4 not supported here,\n"
		"5 --strict and data was lost. With COMMAND: its own status (128 plus the signal\n"
		"that ended it, usually 143 after -d), 125 if perfwalk itself failed, 126 if\n"
		"COMMAND cannot be executed, 127 if it is not found.\n"
		"\n"
		"Examples:\n"
		"  perfwalk record -a -d 10 -o out.html -o out.folded -o out.pb.gz\n"
		"  perfwalk record -p 1234 -F 199 -d 30s -o nginx.html\n"
		"  perfwalk record -o build.html -- make -j4\n"
		"  perfwalk record -e cpu-clock/freq=199/ -e page-faults -o out.pb.gz -- make\n",
};

static int parse_stack_size(struct record_options *o, const char *option, const char *value)
{
	if (record_parse_stack_bytes(value, &o->stack_bytes) < 0)
		return options_complain(&record_command, option, value, "bytes from 1K to 65528");
	return 0;
}

static int parse_call_graph(struct record_options *o, const char *value)
{
	if (strcmp(value, "auto") == 0) {
		o->stacks = SAMPLE_STACKS_AUTO;
		return 0;
	}
	if (strcmp(value, "fp") == 0) {
		o->stacks = SAMPLE_STACKS_FP;
		return 0;
	}
	if (strncmp(value, "dwarf", 5) != 0 || (value[5] && value[5] != ','))
		return options_complain(&record_command, "--call-graph", value,
					"dwarf, dwarf,BYTES, fp or auto");
	o->stacks = SAMPLE_STACKS_DWARF;
	return value[5] ? parse_stack_size(o, "--call-graph", value + 6) : 0;
}

/* Options that are lists of [filter], checked as there. */
static const struct filter_option {
	const char *name;
	enum config_filter filter;
} filter_options[] = {
	[OPT_CPU] = {"-C", CONFIG_FILTER_CPUS},
	[OPT_USER] = {"-u", CONFIG_FILTER_USER},
	[OPT_COMM] = {"--comm", CONFIG_FILTER_COMM},
	[OPT_SERVICE] = {"--service", CONFIG_FILTER_SERVICE},
	[OPT_UNIT] = {"--unit", CONFIG_FILTER_UNIT},
	[OPT_CONTAINER] = {"--container", CONFIG_FILTER_CONTAINER},
	[OPT_CGROUP] = {"--cgroup", CONFIG_FILTER_CGROUP},
};

static int include(struct record_options *o, const struct filter_option *option, const char *value)
{
	char error[600];

	if (config_include(o->config, option->filter, value, error, sizeof(error)) < 0)
		return options_complain(&record_command, option->name, value, error);
	return 0;
}

static int parse_count(const char *option, const char *value, uint64_t max, const char *expected,
		       uint64_t *ret)
{
	if (text_parse_u64(value, 1, max, ret) < 0)
		return options_complain(&record_command, option, value, expected);
	return 0;
}

static int parse_time(const char *option, const char *value, const char *expected, uint64_t *ret_ns)
{
	if (text_parse_duration_ns(value, ret_ns) < 0 || *ret_ns == 0)
		return options_complain(&record_command, option, value, expected);
	return 0;
}

static int parse_ids(struct record_options *o, const char *option, const char *value,
		     bool *ret_which)
{
	*ret_which = true;
	return options_parse_ids(&record_command, option, value, o->pids, &o->n_pids);
}

static int parse_demangling(struct record_options *o, const char *value)
{
	if (!config_demangle_parse(value, &o->demangle))
		return options_complain(&record_command, "--demangle", value,
					"full, simple or none");
	return 0;
}

/* What is recorded. */
static int add_types(struct record_options *o, int id, const char *value)
{
	switch (id) {
	case OPT_EVENT:
		o->events_given = true;
		return record_events_parse(o, value);
	case OPT_FILTER:
		return record_events_filter(o, value);
	case OPT_ALLOC:
		record_ask_for(o, "alloc_space");
		return record_add_allocations(o);
	case OPT_MEMORY:
		record_ask_for(o, "memory_growth");
		return record_add_memory_growth(o);
	case OPT_EVERYTHING:
		o->locks_if_possible = !o->locks || o->locks_if_possible;
		o->off_cpu = o->wall = o->locks = true;
		return record_add_memory_growth(o);
	default:
		record_ask_for(o, id == OPT_WALL ? "wall" : "off_cpu");
		o->off_cpu = true;
		o->wall |= id == OPT_WALL;
		o->locks |= id == OPT_LOCKS;
		o->locks_if_possible &= id != OPT_LOCKS;
		return 0;
	}
}

static int on_option(void *ctx, int id, const char *value)
{
	struct record_options *o = ctx;

	if ((size_t)id < ARRAY_SIZE(filter_options) && filter_options[id].name)
		return include(o, &filter_options[id], value);
	switch (id) {
	case OPT_PID:
		return parse_ids(o, "-p", value, &o->processes);
	case OPT_TID:
		return parse_ids(o, "-t", value, &o->threads);
	case OPT_FREQ:
		return parse_count("-F", value, RECORD_MAX_HZ,
				   "expected a number of samples a second, from 1 to 10000",
				   &o->rate_hz);
	case OPT_COUNT:
		return parse_count("-c", value, RECORD_MAX_COUNT,
				   "expected a number of events, at least 1", &o->period);
	case OPT_DURATION:
		return parse_time("-d", value,
				  "expected a time such as 500ms, 10s, 2m, or a number of seconds",
				  &o->duration_ns);
	case OPT_GROWN_AFTER:
		return parse_time("--grown-after", value,
				  "expected a time such as 500ms, 10s or 2m", &o->grown_after_ns);
	case OPT_OUTPUT:
		return outputs_add(&o->outputs, &record_command, value);
	case OPT_FORMAT:
		return outputs_set_format(&o->outputs, &record_command, value);
	case OPT_GRAPH:
		return parse_call_graph(o, "auto");
	case OPT_CALL_GRAPH:
		return parse_call_graph(o, value);
	case OPT_STACK:
		return parse_stack_size(o, "--stack-size", value);
	case OPT_DEMANGLE:
		return parse_demangling(o, value);
	default:
		return add_types(o, id, value);
	}
}

static int check_options(struct record_options *o, bool command)
{
	int r;

	if ((int)o->all + o->processes + o->threads + command > 1)
		return options_refuse(&record_command,
				      "-a, -p, -t and COMMAND exclude each other: choose one");
	if (o->only_user && o->only_kernel)
		return options_refuse(&record_command,
				      "--all-user and --all-kernel exclude each other");
	if (o->only_kernel && o->user_only)
		return options_refuse(
			&record_command,
			"--all-kernel and --user-only exclude each other: choose one");
	if (o->outputs.n == 0 && o->quiet)
		return options_refuse(&record_command,
				      "--quiet without -o gives no result; add -o FILE");
	if (o->grown_after_ns && !o->allocations)
		return options_refuse(&record_command, "--grown-after needs --alloc");
	r = outputs_choose_formats(&o->outputs, &record_command, false);
	if (r == 0)
		r = record_events_check(o);
	return r == 0 && o->off_cpu ? record_add_off_cpu(o, command || o->n_pids > 0) : r;
}

int record_options_parse(struct record_options *o, int argc, char **argv, int *ret_first)
{
	int r;

	o->command = &record_command;
	r = options_parse(&record_command, argc, argv, on_option, o, ret_first);

	return r != 0 ? r : check_options(o, *ret_first < argc);
}
