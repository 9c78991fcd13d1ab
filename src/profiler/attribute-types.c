/* SPDX-License-Identifier: Apache-2.0 */
/* The types of the window's samples: what a sample of each event is worth, and what it counts. */
#include <string.h>

#include "src/profiler/attribute-internal.h"
#include "src/profiler/known-stacks.h"
#include "src/profiler/setup.h"
#include "util/clock.h"

/* What a sample of an event is worth. A sample of time stands for its period. Any other stands
 * for a number of events, which its record says if the kernel chose the period. */
static struct profile_type event_type(struct attribution *a, const struct setup_event *e)
{
	const struct sample_options *o = &e->options;
	bool time = sample_event_is_time(&o->event), bytes = o->event.bytes;

	if (o->use == SAMPLE_USE_PICKED || o->use == SAMPLE_USE_ENDED)
		return (struct profile_type){
			.period_events = 1,
			.event = strtab_put(&a->profile.strings, o->event.name),
			.unit = strtab_put(&a->profile.strings, "bytes"),
			.weighted = true,
			.stack_bytes = o->use == SAMPLE_USE_PICKED ? o->stack_bytes : 0,
		};
	if (o->use == SAMPLE_USE_WAKEUPS)
		return (struct profile_type){
			.period_events = 1,
			.event = strtab_put(&a->profile.strings, o->event.name),
			.weighted = true,
			.stack_bytes = e->features.frame_pointers ? 0 : o->stack_bytes,
		};
	if (o->use == SAMPLE_USE_BLOCKS)
		return (struct profile_type){
			.period_events = 1,
			.event = strtab_put(&a->profile.strings, PROFILE_OFF_CPU),
			.unit = strtab_put(&a->profile.strings, "nanoseconds"),
			.weighted = true,
			.stack_bytes = e->features.frame_pointers ? 0 : o->stack_bytes,
		};
	return (struct profile_type){
		.period_ns = !time	 ? 0
			     : o->period ? o->period
					 : NSEC_PER_SEC / o->rate_hz,
		.period_events = time		       ? 0
				 : o->period && !bytes ? o->period
						       : 1,
		.event = strtab_put(&a->profile.strings, sample_event_name(o, &e->features)),
		.unit = strtab_put(&a->profile.strings, bytes ? "bytes" : ""),
		.weighted = bytes || (!time && !o->period),
		.rate_hz = o->period ? 0 : o->rate_hz,
		.stack_bytes = e->features.frame_pointers ? 0 : o->stack_bytes,
	};
}

/* The same of a file. */
static struct profile_type recorded_type(struct attribution *a, const struct perf_data_event *e)
{
	return (struct profile_type){
		.period_ns = e->period_ns,
		.period_events = e->period_events,
		.event = strtab_put(&a->profile.strings, e->name),
		.weighted = e->weighted,
		.rate_hz = e->rate_hz,
	};
}

static void put_type(struct attribution *a, uint32_t i, const struct profile_type *t)
{
	a->weighted[i] = t->weighted;
	if (i == 0)
		profile_set_type(&a->profile, 0, t);
	else
		(void)profile_add_type(&a->profile, t);
}

static void put_recorded_type(struct attribution *a)
{
	struct profile_type t = recorded_type(a, replay_event(a->replay));

	put_type(a, 0, &t);
}

static void put_event_types(struct attribution *a)
{
	for (uint32_t i = 0; i < a->setup->n_events; i++) {
		/* The last one; its samples are the time of the type before it. */
		if (a->setup->events[i].options.use == SAMPLE_USE_SWITCHES)
			continue;

		struct profile_type t = event_type(a, &a->setup->events[i]);

		put_type(a, i, &t);
	}
}

void attribution_put_types(struct attribution *a)
{
	memset(a->switch_counters, 0, sizeof(a->switch_counters));
	if (a->replay)
		put_recorded_type(a);
	else
		put_event_types(a);
	if (a->allocations)
		allocations_put_types(a->allocations);
	if (a->off_cpu)
		off_cpu_put_types(a->off_cpu);
}

uint64_t *attribution_counters(struct attribution *a, uint32_t event)
{
	if (event >= a->profile.n_types ||
	    (event < a->setup->n_events &&
	     a->setup->events[event].options.use == SAMPLE_USE_SWITCHES))
		return a->switch_counters;
	return a->profile.types[event].counters;
}

int64_t attribution_sample_value(const struct attribution *a, const struct record *r)
{
	const struct sample_options *o = &a->setup->events[r->index].options;
	uint64_t period = r->sample.period;

	if (!a->weighted[r->index])
		return 1;
	if (a->replay || !o->event.bytes)
		return (int64_t)period;
	if (o->period)
		period = o->period;
	return profile_product((int64_t)period,
			       r->sample.page_bytes ? r->sample.page_bytes : a->page_bytes);
}

void attribution_put_errors(struct attribution *a)
{
	for (uint32_t i = 0; i < a->setup->n_events && !a->replay; i++) {
		const struct sample_options *o = &a->setup->events[i].options;
		double variance = every_nth_end_window(&a->picks[i], o->period);

		if (o->event.bytes && i < a->profile.n_types)
			a->profile.types[i].variance = variance;
	}
}

void attribution_add_missed(struct attribution *a, uint32_t event, uint64_t counted)
{
	uint64_t n =
		every_nth_missed(&a->picks[event], a->setup->events[event].options.period, counted);
	/* Nobody knows which of the tasks that have ended. */
	const struct record r = {.pid = UINT32_MAX};
	struct profile_sample s = {
		.value = profile_product((int64_t)(n < INT64_MAX ? n : INT64_MAX), a->page_bytes),
		.n = 0,
	};

	if (n == 0 || event >= a->profile.n_types)
		return;
	s.time_unix_ns = a->time_ns;
	s.thread = attribution_thread_row(a, &r, NULL);
	s.stack = attribution_waiting_stack(a, NULL, PROFILE_NONE);
	if (s.thread != PROFILE_NONE && s.stack != PROFILE_NONE)
		(void)profile_add_sample_of(&a->profile, event, &s);
}

bool attribution_places_known(struct attribution *a, uint64_t time_ns)
{
	return a->off_cpu && off_cpu_places_known(a->off_cpu, time_ns);
}
