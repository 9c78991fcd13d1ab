/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "src/cmd/allocations.h"
#include "src/cmd/off-cpu-events.h"
#include "src/cmd/run-events.h"
#include "src/cmd/uprobes.h"
#include "src/sample/uprobe.h"
#include "util/log.h"

_Static_assert(1 + CONFIG_MAX_EVENTS <= SAMPLE_MAX_EVENTS, "all events of a config have room");

#define DEFAULT_BUDGET 1000 /* the table's */
#define ENDS_TO_BLOCKS 4    /* they bring no stack, and each that is missed is taken for a leak */

struct reading {
	const char *place;
	FILE *errors;
	struct broker_event *events;
	uint32_t n;
};

static int refuse(const struct reading *r, const struct config_event *e, const char *why)
{
	(void)fprintf(r->errors, "%s: [event:%s]: %s\n", r->place, e->name, why);
	return -EINVAL;
}

/* That there is nothing of it, not that this user may not: then the start fails, and says why. */
static bool is_missing(int e)
{
	return e == -ENOENT || e == -EOPNOTSUPP || e == -ENODEV || e == -EINVAL;
}

static int check(const struct reading *r, const struct config_event *c,
		 const struct broker_event *e)
{
	if (strcmp(e->event.name, "cpu-clock") == 0)
		return refuse(r, c,
			      "CPU time is sampled in any case, as [profiler] says: leave "
			      "this section out");
	for (uint32_t i = 1; i < r->n; i++) {
		const struct sample_event *other = &r->events[i].event;

		if (sample_event_equal(other, &e->event) &&
		    strcmp(r->events[i].filter, e->filter) == 0)
			return refuse(r, c,
				      "another section has the same event by another name: "
				      "leave one of them out");
	}
	if (!c->kernel && sample_event_is_kernel(&e->event))
		return refuse(r, c,
			      "it happens inside the kernel, so with kernel = no there is "
			      "none: leave kernel out");
	if (is_missing(sample_event_try(&e->event)))
		return refuse(r, c,
			      sample_event_is_hardware(&e->event)
				      ? "this host has no processor counter for it, as most "
					"virtual machines: leave this section out"
				      : "the kernel of this host does not count it: leave "
					"this section out");
	return 0;
}

/* The kernel reads the filter here, where what is wrong can be told of its section. */
static int set_filter(const struct reading *r, const struct config_event *c, struct broker_event *e)
{
	char error[1024];

	if (!c->filter)
		return 0;
	if (strlen(c->filter) >= sizeof(e->filter))
		return refuse(r, c, "filter: expected at most 511 characters");
	memcpy(e->filter, c->filter, strlen(c->filter) + 1);
	if (sample_filter_try(&e->event, e->filter, error, sizeof(error)) == -EINVAL)
		return refuse(r, c, error);
	return 0;
}

static int add(struct reading *r, const struct config *config, const struct config_event *c)
{
	struct broker_event e = {
		.period = c->period,
		.budget = c->budget,
		.rate_hz =
			c->samples_per_second ? c->samples_per_second : config->samples_per_second,
		.stack_bytes = c->stack_size_bytes,
		.only_user = !c->kernel,
		.only_kernel = !c->user,
	};
	char error[1200];

	if (sample_event_parse(c->event ? c->event : c->name, &e.event, error, sizeof(error)) < 0)
		return refuse(r, c, error);
	if (e.event.uprobe && !c->user)
		return refuse(r, c, "it happens in user code, so with user = no there is none");
	if (uprobes_place(&e.event, 0, error, sizeof(error)) < 0)
		return refuse(r, c, error);
	if (set_filter(r, c, &e) < 0)
		return -EINVAL;
	if (!e.period && !c->samples_per_second)
		e.period = sample_event_period(&e.event, true);
	if (e.period && !e.stack_bytes && !config->stack_size_bytes)
		e.stack_bytes = sample_event_stack_bytes(&e.event);
	if (e.period && sample_event_is_time(&e.event))
		return refuse(r, c,
			      "a clock is sampled at a rate: samples_per_second in place of "
			      "period");
	if (check(r, c, &e) < 0)
		return -EINVAL;
	if (!e.period && !sample_event_is_time(&e.event) && !sample_event_is_hardware(&e.event))
		log_warning("[event:%s]: samples_per_second: the kernel guesses how many events a "
			    "sample stands for, often many times too many: use period",
			    c->name);
	if (c->event)
		(void)snprintf(e.event.name, sizeof(e.event.name), "%s", c->name);
	r->events[r->n++] = e;
	return 0;
}

/* [profiler] memory_growth, unless a section says more of it. */
static int add_memory_growth(struct reading *r, const struct config *c)
{
	char name[] = "memory_growth";
	struct config_event e = {
		.name = name, .budget = DEFAULT_BUDGET, .user = true, .kernel = true};

	for (uint32_t i = 1; i < r->n; i++) {
		if (r->events[i].event.bytes)
			return 0;
	}
	if (r->n == SAMPLE_MAX_EVENTS)
		return refuse(
			r, &e,
			"memory_growth of [profiler] is one event more than 5: leave one out");
	return add(r, c, &e);
}

/* What takes how many: nobody has seen the events that a section adds. */
#define TOO_MANY                                                                                   \
	"too many events: 6 at most. [off_cpu] takes 2, or 3 with locks; [alloc] 2; CPU time, "    \
	"memory_growth and each [event:NAME] 1: leave something out"

static int refuse_off_cpu(const struct reading *r, const char *why)
{
	(void)fprintf(r->errors, "%s: [off_cpu]: enabled: %s\n", r->place, why);
	return -EINVAL;
}

/* The kernel damages samples of two software events that are one (Linux 6.18). */
static bool is_taken(const struct reading *r, const struct sample_event *plain)
{
	for (uint32_t i = 0; i < r->n; i++) {
		struct sample_event named = r->events[i].event;

		if (sample_event_equal(&named, plain))
			return true;
	}
	return false;
}

/* A thread is followed from CPU to CPU, wherever it runs. */
static int add_off_cpu(struct reading *r, const struct config *c)
{
	struct broker_event *events = &r->events[r->n];
	char error[512];

	if (c->include[CONFIG_FILTER_CPUS] || c->exclude[CONFIG_FILTER_CPUS])
		return refuse_off_cpu(r, "threads go from CPU to CPU: leave include_cpus and "
					 "exclude_cpus of [filter] out");
	if (r->n + OFF_CPU_N_EVENTS + c->off_cpu_locks > SAMPLE_MAX_EVENTS)
		return refuse_off_cpu(r, TOO_MANY);
	if (off_cpu_events(events, false, error, sizeof(error)) < 0)
		return refuse_off_cpu(r, error);
	if (events[0].switch_fields.plain && is_taken(r, &events[0].event))
		return refuse_off_cpu(r,
				      "without tracefs it samples context-switches itself: mount "
				      "-t tracefs none /sys/kernel/tracing, or leave that "
				      "[event:NAME] out");
	events[0].wall = c->off_cpu_wall;
	r->n += OFF_CPU_N_EVENTS;
	if (!c->off_cpu_locks)
		return 0;
	events[2] = events[1];
	if (off_cpu_wakeups(&events[1], false, error, sizeof(error)) < 0)
		return refuse_off_cpu(r, error);
	r->n++;
	return 0;
}

static int refuse_alloc(const struct reading *r, const char *why)
{
	(void)fprintf(r->errors, "%s: [alloc]: enabled: %s\n", r->place, why);
	return -EINVAL;
}

static int add_alloc(struct reading *r, const struct config *c)
{
	struct broker_event *events = &r->events[r->n];
	char error[1200];

	if (r->n + ALLOCATIONS_N_EVENTS > SAMPLE_MAX_EVENTS)
		return refuse_alloc(r, TOO_MANY);
	if (allocations_events(events, error, sizeof(error)) < 0)
		return refuse_alloc(r, error);
	for (uint32_t i = 0; i < ALLOCATIONS_N_EVENTS; i++) {
		int e;

		if (uprobes_place(&events[i].event, 0, error, sizeof(error)) < 0)
			return refuse_alloc(r, error);
		/* Here it is a config that is refused, and later the end of the daemon. */
		e = sample_event_try(&events[i].event);
		if (e < 0) {
			uprobe_explain(events[i].event.uprobe, e, error, sizeof(error));
			return refuse_alloc(r, error);
		}
		allocations_name(&events[i]);
	}
	events[0].stack_bytes = c->stack_size_bytes ? 0 : ALLOCATIONS_STACK;
	events[0].budget = c->alloc_budget;
	events[1].budget = ENDS_TO_BLOCKS * c->alloc_budget;
	r->n += ALLOCATIONS_N_EVENTS;
	return 0;
}

int run_events(const struct config *c, const char *place, struct broker_event *events,
	       uint32_t *ret_n, FILE *errors)
{
	struct reading r = {place ? place : "environment", errors, events, 1};
	int result = 0;

	events[0] = (struct broker_event){.rate_hz = c->samples_per_second};
	for (size_t i = 0; i < c->n_events; i++)
		result = add(&r, c, &c->events[i]) < 0 ? -EINVAL : result;
	if (result == 0 && c->memory_growth)
		result = add_memory_growth(&r, c);
	if (result == 0 && c->alloc)
		result = add_alloc(&r, c);
	if (result == 0 && c->off_cpu)
		result = add_off_cpu(&r, c);
	if (result == 0)
		*ret_n = r.n;
	return result;
}
