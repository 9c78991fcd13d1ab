/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events that perfwalk record and top count, and how often they sample them: -e, -F and -c, as
 * in perf record. -F, -c and --stack-size apply to all events, wherever they are on the command
 * line; the text between the slashes after an event applies to that event, and takes precedence.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/cmd/allocations.h"
#include "src/cmd/cmd.h"
#include "src/cmd/off-cpu-events.h"
#include "src/cmd/record.h"
#include "src/cmd/uprobes.h"
#include "src/sample/uprobe.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

#define DEFAULT_HZ	    99
#define DEFAULT_STACK	    (32u << 10)
#define MIN_TIME_COUNT	    (NSEC_PER_SEC / RECORD_MAX_HZ)
#define RING_MIN_BYTES	    (UINT64_C(2) << 20)
#define RING_MAX_BYTES	    (UINT64_C(32) << 20)
#define COUNTED_RINGS_BYTES (2 * RING_MAX_BYTES)
#define MAX_TEXT	    1024
#define BLOCKS_RING_BYTES   (UINT64_C(4) << 20)
#define SWITCHES_RING_BYTES (UINT64_C(2) << 20)

static const char term_help[] =
	"expected freq=HZ (1 to 10000), period=COUNT (from 1), stack-size=BYTES (1K to 65528), "
	"filter=EXPRESSION or name=TEXT between the slashes, separated by commas: "
	"page-faults/period=1/, for instance";

/* An event of -e, and the options after it. */
struct given_event {
	struct broker_event event;
	char label[sizeof(((struct sample_event *)0)->name)];
};

int record_parse_stack_bytes(const char *value, uint64_t *ret)
{
	return text_parse_bytes(value, ret) < 0 || *ret < 1024 || *ret > 65528 ? -EINVAL : 0;
}

static bool parse_stack_term(const char *text, uint32_t *ret)
{
	uint64_t bytes;

	if (record_parse_stack_bytes(text, &bytes) < 0)
		return false;
	*ret = (uint32_t)bytes;
	return true;
}

/* A text of letters that every format and table takes as one word. */
static bool parse_name(const char *text, char *ret, size_t n_ret)
{
	size_t n = strlen(text);

	if (n == 0 || n >= n_ret ||
	    strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:") != n)
		return false;
	memcpy(ret, text, n + 1);
	return true;
}

static bool parse_filter(const char *text, char ret[SAMPLE_MAX_FILTER])
{
	size_t n = strlen(text);

	if (n == 0 || n >= SAMPLE_MAX_FILTER)
		return false;
	memcpy(ret, text, n + 1);
	return true;
}

/* Last has it, as with perf. */
static bool parse_term(const char *term, struct given_event *given)
{
	struct broker_event *e = &given->event;
	uint64_t hz;

	if (strncmp(term, "freq=", 5) == 0 &&
	    text_parse_u64(term + 5, 1, RECORD_MAX_HZ, &hz) == 0) {
		e->rate_hz = (uint32_t)hz;
		e->period = 0;
		return true;
	}
	if (strncmp(term, "period=", 7) == 0 &&
	    text_parse_u64(term + 7, 1, RECORD_MAX_COUNT, &e->period) == 0) {
		e->rate_hz = 0;
		return true;
	}
	if (strncmp(term, "name=", 5) == 0)
		return parse_name(term + 5, given->label, sizeof(given->label));
	if (strncmp(term, "filter=", 7) == 0)
		return parse_filter(term + 7, e->filter);
	return strncmp(term, "stack-size=", 11) == 0 &&
	       parse_stack_term(term + 11, &e->stack_bytes);
}

/* How far it is to one of the characters of stop, or to the end; a text in quotes, as filters have
 * them, is passed over. */
static size_t length_until(const char *text, const char *stop)
{
	size_t n = 0;

	while (text[n] && !strchr(stop, text[n])) {
		const char *end =
			text[n] == '"' || text[n] == '\'' ? strchr(text + n + 1, text[n]) : NULL;

		n = end ? (size_t)(end - text) + 1 : n + 1;
	}
	return n;
}

/* "freq=99,stack-size=8K": what stands between the slashes. */
static bool parse_terms(char *terms, struct given_event *given)
{
	for (bool more = true; more;) {
		size_t n = length_until(terms, ",");

		more = terms[n] != '\0';
		terms[n] = '\0';
		if (!parse_term(terms, given))
			return false;
		terms += n + 1;
	}
	return true;
}

/* Says what takes how many: nobody has seen the events that options of types add. */
static int refuse_many(const struct record_options *o)
{
	return options_refuse(o->command,
			      "too many events: 6 at most. --off-cpu, --wall or both take 2, or "
			      "3 with --locks; --alloc takes 2; --memory, CPU time and each -e "
			      "take 1: leave something out, or take two captures");
}

static int add_event(struct record_options *o, const struct given_event *given)
{
	const struct broker_event *e = &given->event;

	if (o->n_events == SAMPLE_MAX_EVENTS)
		return options_complain(o->command, "-e", e->event.name,
					"too many: 6 events at most");
	memcpy(o->labels[o->n_events], given->label, sizeof(given->label));
	o->events[o->n_events++] = *e;
	return 0;
}

/* One event of a list: EVENT or EVENT/TERMS/. value: for messages. */
static int parse_one(struct record_options *o, char *text, const char *value)
{
	struct given_event given = {.label = ""};
	char *slash = strchr(text + uprobe_prefix(text), '/'), *end = slash;
	char error[512];

	if (slash) {
		end += 1 + length_until(slash + 1, "/");
		if (*end != '/' || end[1])
			return options_complain(o->command, "-e", value, term_help);
		*slash = *end = '\0';
	}
	if (sample_event_parse(text, &given.event.event, error, sizeof(error)) < 0)
		return options_complain(o->command, "-e", text, error);
	if (slash && !parse_terms(slash + 1, &given))
		return options_complain(o->command, "-e", value, term_help);
	return add_event(o, &given);
}

/* The end of the event that begins here: a comma that is not between slashes. */
static size_t event_length(const char *text)
{
	size_t n = uprobe_prefix(text);

	n += strcspn(text + n, ",/");

	if (text[n] == '/') {
		n += 1 + length_until(text + n + 1, "/");
		n += strcspn(text + n, ",");
	}
	return n;
}

int record_events_parse(struct record_options *o, const char *value)
{
	char text[MAX_TEXT];
	int r = 0;

	if (strpbrk(value, "{}"))
		return options_complain(o->command, "-e", value,
					"events cannot be grouped here: write A,B or -e A -e B");
	for (size_t n; r == 0; value += n + 1) {
		n = event_length(value);
		if (n >= sizeof(text))
			return options_complain(o->command, "-e", value,
						"too long: 1023 characters at most");
		memcpy(text, value, n);
		text[n] = '\0';
		r = parse_one(o, text, value);
		if (!value[n])
			break;
	}
	return r;
}

void record_ask_for(struct record_options *o, const char *event)
{
	if (!o->asked && !o->events_given)
		o->asked = event;
}

int record_add_memory_growth(struct record_options *o)
{
	if (o->memory_growth)
		return 0;
	o->memory_growth = true;
	return record_events_parse(o, "memory_growth");
}

int record_add_allocations(struct record_options *o)
{
	struct broker_event events[ALLOCATIONS_N_EVENTS];
	char error[512];
	int r;

	if (o->allocations)
		return 0;
	o->allocations = true;
	if (o->n_events + ALLOCATIONS_N_EVENTS > SAMPLE_MAX_EVENTS)
		return refuse_many(o);
	if (allocations_events(events, error, sizeof(error)) < 0)
		return options_refuse(o->command, "--alloc: %s", error);
	for (uint32_t i = 0; i < ALLOCATIONS_N_EVENTS; i++) {
		struct broker_event named = events[i];
		struct given_event given = {.event = events[i]};

		allocations_name(&named);
		(void)snprintf(given.label, sizeof(given.label), "%s", named.event.name);
		r = add_event(o, &given);
		if (r < 0)
			return r;
	}
	return 0;
}

int record_events_filter(struct record_options *o, const char *value)
{
	char *filter = o->n_events ? o->events[o->n_events - 1].filter : NULL;
	char both[2 * SAMPLE_MAX_FILTER];

	if (!filter)
		return options_refuse(o->command, "--filter is for the event before it: -e EVENT "
						  "--filter EXPRESSION");
	/* Several of one event must all hold, as with perf. */
	(void)snprintf(both, sizeof(both), filter[0] ? "(%s) && (%s)" : "%s%s", filter, value);
	return parse_filter(both, filter)
		       ? 0
		       : options_complain(o->command, "--filter", value,
					  "expected an expression of 1 to 511 characters, such as "
					  "'prev_state == 2'");
}

static int check_filter(const struct record_options *o, const struct broker_event *e)
{
	char error[1024];

	if (!e->filter[0] ||
	    sample_filter_try(&e->event, e->filter, error, sizeof(error)) != -EINVAL)
		return 0; /* also where this user may not open it: that is told by the start */
	return options_complain(o->command, "-e", e->event.name, error);
}

/* Each event is another one, and is called otherwise; name=... have taken effect. */
static int check_if_twice(const struct record_options *o, uint32_t i)
{
	const struct broker_event *e = &o->events[i];

	for (uint32_t j = 0; j < i; j++) {
		const struct broker_event *other = &o->events[j];

		if (sample_event_equal(&other->event, &e->event) &&
		    strcmp(other->filter, e->filter) == 0)
			return options_complain(o->command, "-e", e->event.name,
						"the event is given twice");
		if (strcmp(other->event.name, e->event.name) == 0)
			return options_complain(o->command, "-e", e->event.name,
						"two events have this name: give one of them "
						"another by EVENT/name=TEXT/");
	}
	return 0;
}

/* The file that the process sees. It may see no allocation library, such as in a container; then
 * its allocations are those of Go or Java. */
static int place(const struct record_options *o, const struct broker_event *e, char *error,
		 size_t n_error)
{
	int r = uprobes_place(&e->event, o->n_pids > 0 ? o->pids[0] : 0, error, n_error);

	if (r == -ENOENT && (e->use == SAMPLE_USE_PICKED || e->use == SAMPLE_USE_ENDED))
		r = uprobes_place(&e->event, 0, error, n_error);
	return r;
}

static int check_one(const struct record_options *o, const struct broker_event *e)
{
	char error[1200];

	if (o->only_kernel && e->event.uprobe)
		return options_complain(o->command, "-e", e->event.name,
					"it happens in user code, which --all-kernel leaves out");
	if (place(o, e, error, sizeof(error)) < 0)
		return options_complain(o->command, "-e", e->event.name, error);
	return check_filter(o, e);
}

static int check_events(struct record_options *o)
{
	int r = 0;

	for (uint32_t i = 0; i < o->n_events && r == 0; i++) {
		r = check_one(o, &o->events[i]);
		if (o->labels[i][0])
			memcpy(o->events[i].event.name, o->labels[i], sizeof(o->labels[i]));
	}
	for (uint32_t i = 1; i < o->n_events && r == 0; i++)
		r = check_if_twice(o, i);
	return r;
}

static uint32_t default_stack_bytes(const struct broker_event *e, bool counted)
{
	if (e->use == SAMPLE_USE_PICKED)
		return ALLOCATIONS_STACK;
	return counted ? sample_event_stack_bytes(&e->event) : DEFAULT_STACK;
}

/* How often: what was asked for, else what suits the event. */
static int choose_distance(const struct record_options *o, struct broker_event *e)
{
	bool time = sample_event_is_time(&e->event);

	if (!e->period && !e->rate_hz) {
		e->period = o->period;
		/* -F is meant for CPU time: of pages at a rate the kernel would guess the sum. */
		e->rate_hz = e->event.bytes ? 0 : (uint32_t)o->rate_hz;
	}
	if (e->period && time && e->period < MIN_TIME_COUNT)
		return options_refuse(o->command,
				      o->n_events > 1
					      ? "-c of a clock is in nanoseconds, at least 100000; "
						"for another event write EVENT/period=COUNT/"
					      : "-c of a clock is in nanoseconds, at least 100000");
	if (!e->period && !e->rate_hz)
		e->period = sample_event_period(&e->event, false);
	if (!e->rate_hz)
		e->rate_hz = DEFAULT_HZ;
	if (!e->stack_bytes)
		e->stack_bytes = (uint32_t)o->stack_bytes;
	if (!e->stack_bytes)
		e->stack_bytes = default_stack_bytes(e, e->period && !time);
	return 0;
}

/* Half a second of samples of a busy CPU fits its ring, whatever the rate, within limits. Events
 * that are counted come in bursts: they get the largest, as far as all have room together. */
static void choose_rings(struct record_options *o)
{
	uint32_t n_counted = 0;

	for (uint32_t i = 0; i < o->n_events; i++)
		n_counted += o->events[i].period > 0;
	for (uint32_t i = 0; i < o->n_events; i++) {
		struct broker_event *e = &o->events[i];
		uint64_t want = (uint64_t)e->rate_hz * (e->stack_bytes + 1024) / 2;

		e->ring_bytes = !e->period	? RING_MIN_BYTES
				: n_counted > 2 ? COUNTED_RINGS_BYTES / n_counted
						: RING_MAX_BYTES;
		while (e->ring_bytes < RING_MAX_BYTES && e->ring_bytes < want && !e->period)
			e->ring_bytes *= 2;
	}
}

/* Off-CPU time is there besides CPU time, unless -e says of what else. */
static void put_cpu_time(struct record_options *o)
{
	if (!o->off_cpu || o->events_given || o->n_events == 0 || o->n_events == SAMPLE_MAX_EVENTS)
		return;
	memmove(&o->events[1], &o->events[0], o->n_events * sizeof(o->events[0]));
	memmove(&o->labels[1], &o->labels[0], o->n_events * sizeof(o->labels[0]));
	o->events[0] = (struct broker_event){.period = 0};
	o->labels[0][0] = '\0';
	o->n_events++;
}

int record_events_check(struct record_options *o)
{
	int r = 0;

	put_cpu_time(o);
	if (o->period && o->rate_hz)
		return options_refuse(o->command,
				      "-c and -F exclude each other: a period or a rate");
	if (o->period && o->n_events == 0)
		return options_refuse(o->command, "-c needs an event to count: add -e EVENT");
	for (uint32_t i = 0; i < o->n_events; i++) {
		if (o->only_user && sample_event_is_kernel(&o->events[i].event))
			return options_complain(
				o->command, "-e", o->events[i].event.name,
				"it happens inside the kernel, which --all-user leaves out");
	}
	r = check_events(o);
	if (o->n_events == 0)
		o->n_events = 1; /* one without a name: CPU time */
	for (uint32_t i = 0; i < o->n_events && r == 0; i++) {
		o->events[i].grown_after_ns =
			o->events[i].use == SAMPLE_USE_PICKED ? o->grown_after_ns : 0;
		r = choose_distance(o, &o->events[i]);
	}
	if (r == 0)
		choose_rings(o);
	return r;
}

/* A thread is followed from CPU to CPU, wherever it runs. */
static int check_off_cpu(const struct record_options *o)
{
	static const enum config_filter refused[] = {CONFIG_FILTER_CPUS, CONFIG_FILTER_UNIT,
						     CONFIG_FILTER_CONTAINER, CONFIG_FILTER_CGROUP};

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		if (o->config->include[refused[i]])
			return options_refuse(o->command,
					      "--off-cpu goes with -a, -p, -t, -u, --comm and a "
					      "COMMAND, not with -C, --unit, --container or "
					      "--cgroup");
	}
	if (o->n_events + OFF_CPU_N_EVENTS + o->locks > SAMPLE_MAX_EVENTS)
		return refuse_many(o);
	return 0;
}

/* Between the others, which begin at events. */
static int add_wakeups(struct record_options *o, struct broker_event *events, bool of_tasks)
{
	struct broker_event wakeups;
	char error[512];

	if (off_cpu_wakeups(&wakeups, of_tasks, error, sizeof(error)) < 0) {
		if (!o->locks_if_possible)
			return options_complain(o->command, "--locks", "sched:sched_waking", error);
		log_warning("--everything leaves locks out: %s", error);
		o->locks = false;
		return 0;
	}
	events[2] = events[1];
	events[1] = wakeups;
	events[1].ring_bytes = BLOCKS_RING_BYTES;
	o->n_events++;
	return 0;
}

/* The kernel writes samples of a wrong size of two software events that are one (Linux 6.18). */
static int check_if_plain(const struct record_options *o, const struct broker_event *blocks)
{
	for (uint32_t i = 0; i < o->n_events && blocks->switch_fields.plain; i++) {
		struct sample_event named = o->events[i].event;

		if (sample_event_equal(&named, &blocks->event))
			return options_complain(
				o->command, "-e", named.name,
				"without tracefs --off-cpu samples this event itself, and the "
				"kernel damages samples of two of them: mount -t tracefs none "
				"/sys/kernel/tracing, or leave one out");
	}
	return 0;
}

int record_add_off_cpu(struct record_options *o, bool of_tasks)
{
	struct broker_event *events = &o->events[o->n_events];
	char error[512];
	int r = check_off_cpu(o);

	if (r < 0)
		return r;
	r = off_cpu_events(events, of_tasks, error, sizeof(error));
	if (r < 0)
		return options_complain(o->command, "--off-cpu", "sched:sched_switch", error);
	r = check_if_plain(o, &events[0]);
	if (r < 0)
		return r;
	record_say_if_plain(&events[0]);
	if (o->stack_bytes)
		events[0].stack_bytes = (uint32_t)o->stack_bytes;
	events[0].ring_bytes = BLOCKS_RING_BYTES;
	events[1].ring_bytes = SWITCHES_RING_BYTES;
	events[0].wall = o->wall;
	o->n_events += OFF_CPU_N_EVENTS;
	return o->locks ? add_wakeups(o, events, of_tasks) : 0;
}
