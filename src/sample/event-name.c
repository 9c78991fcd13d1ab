/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events by their names in perf: the kernel's generic events (linux/perf_event.h; the same on every
 * machine, though not every machine counts them), raw numbers from the processor's manual, and
 * tracepoints, which have numbers in tracefs that differ from boot to boot.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/sample/event.h"
#include "src/sample/tracepoint.h"
#include "src/sample/uprobe.h"
#include "util/cleanup.h"
#include "util/text.h"

#define HARDWARE(name) PERF_TYPE_HARDWARE, PERF_COUNT_HW_##name, false
#define SOFTWARE(name) PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##name, false
#define BYTES(name)    PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##name, true

/* For events that come in bursts: the kernel's rate control adapts too slowly for these. */
#define DAEMON_PERIOD 100
/* Primes, so that a loop that touches the same number of pages again and again is not always
 * sampled at the same page. With pages of 4 KiB a sample stands for 52 KiB, and for 244 KiB in the
 * daemon. */
#define BYTES_PERIOD	    13
#define BYTES_DAEMON_PERIOD 61
#define BYTES_STACK	    (24u << 10)
#define COUNTED_STACK	    (8u << 10)

static const struct {
	const char *name, *other; /* the second name in perf list */
	uint32_t type;
	uint64_t config;
	bool bytes;
} known_events[] = {
	{"cpu-clock", NULL, SOFTWARE(CPU_CLOCK)},
	{"task-clock", NULL, SOFTWARE(TASK_CLOCK)},
	{"page-faults", "faults", SOFTWARE(PAGE_FAULTS)},
	{"minor-faults", NULL, SOFTWARE(PAGE_FAULTS_MIN)},
	{"major-faults", NULL, SOFTWARE(PAGE_FAULTS_MAJ)},
	{"context-switches", "cs", SOFTWARE(CONTEXT_SWITCHES)},
	{"cpu-migrations", "migrations", SOFTWARE(CPU_MIGRATIONS)},
	{"alignment-faults", NULL, SOFTWARE(ALIGNMENT_FAULTS)},
	{"emulation-faults", NULL, SOFTWARE(EMULATION_FAULTS)},
	/* Not in perf: pages touched for the first time. The kernel counts a minor fault when the
	 * page is mapped, so a sample can have its size; page-faults counts it earlier. */
	{"memory_growth", "memory-growth", BYTES(PAGE_FAULTS_MIN)},
	{"cycles", "cpu-cycles", HARDWARE(CPU_CYCLES)},
	{"instructions", NULL, HARDWARE(INSTRUCTIONS)},
	{"cache-references", NULL, HARDWARE(CACHE_REFERENCES)},
	{"cache-misses", NULL, HARDWARE(CACHE_MISSES)},
	{"branches", "branch-instructions", HARDWARE(BRANCH_INSTRUCTIONS)},
	{"branch-misses", NULL, HARDWARE(BRANCH_MISSES)},
	{"bus-cycles", NULL, HARDWARE(BUS_CYCLES)},
	{"ref-cycles", NULL, HARDWARE(REF_CPU_CYCLES)},
};

const char *sample_event_known(unsigned int i)
{
	return i < ARRAY_SIZE(known_events) ? known_events[i].name : NULL;
}

static void set(struct sample_event *ret, const char *name, uint32_t type, uint64_t config)
{
	*ret = (struct sample_event){.type = type, .config = config};
	(void)snprintf(ret->name, sizeof(ret->name), "%s", name);
}

/* The kernel's caches by their names in perf, in the order of their numbers; then the operations
 * and the results: L1-dcache-loads, LLC-load-misses. */
static const char *const caches[] = {"L1-dcache", "L1-icache", "LLC", "dTLB",
				     "iTLB",	  "branch",    "node"};
static const struct {
	const char *accesses, *misses;
} cache_operations[] = {
	{"loads", "load-misses"},
	{"stores", "store-misses"},
	{"prefetches", "prefetch-misses"},
};

static bool parse_cache(const char *text, struct sample_event *ret)
{
	for (uint64_t i = 0; i < ARRAY_SIZE(caches); i++) {
		size_t n = strlen(caches[i]);

		if (strncmp(text, caches[i], n) != 0 || text[n] != '-')
			continue;
		for (uint64_t j = 0; j < ARRAY_SIZE(cache_operations); j++) {
			bool misses = strcmp(text + n + 1, cache_operations[j].misses) == 0;

			if (!misses && strcmp(text + n + 1, cache_operations[j].accesses) != 0)
				continue;
			set(ret, text, PERF_TYPE_HW_CACHE, i | j << 8 | (uint64_t)misses << 16);
			return true;
		}
	}
	return false;
}

/* rNNN: hexadecimal, from the processor's manual. */
static bool parse_raw(const char *text, struct sample_event *ret)
{
	size_t n = strlen(text);

	if (text[0] != 'r' || n < 2 || n > 17 ||
	    strspn(text + 1, "0123456789abcdefABCDEF") != n - 1)
		return false;
	set(ret, text, PERF_TYPE_RAW, strtoull(text + 1, NULL, 16));
	return true;
}

static bool is_name(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-",
			    text[i]))
			return false;
	}
	return n > 0;
}

static int parse_tracepoint(const char *name, const char *colon, struct sample_event *ret,
			    char *error, size_t n_error)
{
	char text[32];
	int r;

	if (!is_name(name, (size_t)(colon - name)) || !is_name(colon + 1, strlen(colon + 1)) ||
	    strlen(name) >= sizeof(ret->name)) {
		snprintf(error, n_error,
			 "a tracepoint is SUBSYSTEM:NAME, such as sched:sched_switch");
		return -EINVAL;
	}
	r = tracepoint_read(name, "id", text, sizeof(text));
	if (r > 0 && text[0] >= '0' && text[0] <= '9') {
		set(ret, name, PERF_TYPE_TRACEPOINT, strtoull(text, NULL, 10));
		return 0;
	}
	event_explain_tracepoint(r, name, error, n_error);
	return -ENOENT;
}

static bool is_known(const char *text, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(known_events); i++) {
		const char *const names[] = {known_events[i].name, known_events[i].other};

		for (size_t j = 0; j < ARRAY_SIZE(names); j++) {
			if (names[j] && strlen(names[j]) == n && memcmp(text, names[j], n) == 0)
				return true;
		}
	}
	return false;
}

int sample_event_parse(const char *text, struct sample_event *ret, char *error, size_t n_error)
{
	const char *names[ARRAY_SIZE(known_events)], *near, *colon = strchr(text, ':');

	if (strncmp(text, "uprobe:", 7) == 0 || strncmp(text, "usdt:", 5) == 0)
		return uprobe_parse(text, ret, error, n_error);
	if (colon && is_known(text, (size_t)(colon - text))) {
		snprintf(error, n_error,
			 "events take no modifiers here: use --all-user or --all-kernel");
		return -EINVAL;
	}
	if (colon)
		return parse_tracepoint(text, colon, ret, error, n_error);
	for (size_t i = 0; i < ARRAY_SIZE(known_events); i++) {
		names[i] = known_events[i].name;
		if (strcmp(text, names[i]) == 0 ||
		    (known_events[i].other && strcmp(text, known_events[i].other) == 0)) {
			set(ret, names[i], known_events[i].type, known_events[i].config);
			ret->bytes = known_events[i].bytes;
			return 0;
		}
	}
	if (parse_raw(text, ret) || parse_cache(text, ret))
		return 0;
	near = text_nearest(text, names, ARRAY_SIZE(names));
	snprintf(error, n_error,
		 "unknown event%s%s%s; cpu-clock, task-clock, cycles, instructions, cache-misses, "
		 "branch-misses, LLC-load-misses, page-faults, context-switches, cpu-migrations, "
		 "rNNN, SUBSYSTEM:TRACEPOINT, uprobe:/PATH:FUNCTION or usdt:/PATH:PROVIDER:NAME",
		 near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
	return -EINVAL;
}

bool sample_event_is_time(const struct sample_event *e)
{
	return !e->name[0] ||
	       (e->type == PERF_TYPE_SOFTWARE &&
		(e->config == PERF_COUNT_SW_CPU_CLOCK || e->config == PERF_COUNT_SW_TASK_CLOCK));
}

uint64_t sample_event_period(const struct sample_event *e, bool daemon)
{
	if (sample_event_is_time(e) || sample_event_is_hardware(e))
		return 0;
	if (e->bytes)
		return daemon ? BYTES_DAEMON_PERIOD : BYTES_PERIOD;
	return daemon ? DAEMON_PERIOD : 1;
}

uint32_t sample_event_stack_bytes(const struct sample_event *e)
{
	/* One in so many pages: even a program that only touches memory has few samples. */
	return e->bytes ? BYTES_STACK : COUNTED_STACK;
}

bool sample_event_is_hardware(const struct sample_event *e)
{
	return e->name[0] && (e->type == PERF_TYPE_HARDWARE || e->type == PERF_TYPE_HW_CACHE ||
			      e->type == PERF_TYPE_RAW);
}

bool sample_event_is_kernel(const struct sample_event *e)
{
	return e->name[0] && !e->uprobe &&
	       (e->type == PERF_TYPE_TRACEPOINT ||
		(e->type == PERF_TYPE_SOFTWARE && (e->config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
						   e->config == PERF_COUNT_SW_CPU_MIGRATIONS)));
}

bool sample_event_equal(const struct sample_event *a, const struct sample_event *b)
{
	return a->type == b->type && a->config == b->config && a->bytes == b->bytes &&
	       a->uprobe == b->uprobe;
}

uint32_t sample_event_sites(const struct sample_event *e)
{
	return e->uprobe ? e->uprobe->n_sites : 1;
}
