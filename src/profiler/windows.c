/* SPDX-License-Identifier: Apache-2.0 */
/* From the rings to windows: what was drained, what time it is of, and that nothing is missing. */
#include <string.h>

#include "src/process/status-page.h"
#include "src/profile/window.h"
#include "src/profiler/profiler.h"
#include "util/clock.h"
#include "util/ensure.h"
#include "util/log.h"

#define SETTLED_NS     (10 * NSEC_PER_MSEC)
#define ENOUGH_WAKEUPS 256 /* of a CPU in a quarter of a second */

/* The broker owns the events: it makes others, or says that it does not. */
static void adapt_stack_size(struct profiler *p)
{
	struct message m = {.type = MESSAGE_STACK_SIZE};

	if (!p->setup.adapt_stack_size)
		return;
	m.stack_size.bytes = stack_size_decide(&p->stack_size, clock_monotonic_ns());
	if (m.stack_size.bytes && message_send(PROTOCOL_CONTROL_FD, &m, NULL, 0) < 0)
		stack_size_set(&p->stack_size, p->stack_size.bytes);
}

/*
 * Without a clock of our choice (before Linux 4.1) the age of the youngest record of a drain is the
 * best guess at how the clocks differ, and the least of a window the best of these. Each window has
 * its own: the clocks drift, and one of them is set.
 */
static void learn_clock_offset(struct profiler *p, uint64_t youngest_ns)
{
	uint64_t offset_ns = clock_realtime_ns() - youngest_ns;

	if (p->setup.events[0].features.clockid || !youngest_ns)
		return;
	if (!p->offset_known || offset_ns < p->clock_offset_ns)
		p->clock_offset_ns = offset_ns;
	p->offset_known = true;
}

/* A record may be on its way for a while: what is as young as that may still come. 0: the clocks
 * differ. */
static uint64_t settled_ns(const struct profiler *p, uint64_t now)
{
	return p->setup.events[0].features.clockid ? now - SETTLED_NS : 0;
}

static void note_drained(struct profiler *p, uint64_t begin_ns, uint64_t youngest_ns, bool flush)
{
	uint64_t limit = merger_limit(p->merger), now = settled_ns(p, begin_ns);

	if (now == 0)
		now = youngest_ns;
	else if (flush)
		now = begin_ns;
	now = now < limit ? now : limit;
	now = now > youngest_ns ? now : youngest_ns;
	p->drained_ns = now > p->drained_ns ? now : p->drained_ns;
}

/* The rings fill up meanwhile. On a busy host only the CPU time is ours to answer for. */
static void note_pause(struct profiler *p)
{
	uint64_t now = clock_monotonic_ns(), cpu = clock_get_ns(CLOCK_THREAD_CPUTIME_ID);
	struct status_page *s = p->role.status;

	if (s->drained_ns && now - s->drained_ns > s->drain_gap_ns)
		s->drain_gap_ns = now - s->drained_ns;
	if (s->drained_ns && cpu - p->drained_cpu_ns > s->drain_cpu_ns)
		s->drain_cpu_ns = cpu - p->drained_cpu_ns;
	s->drained_ns = now;
	p->drained_cpu_ns = cpu;
}

bool profiler_picks_blocks(const struct profiler *p, uint32_t index)
{
	const struct sample_options *o = &p->setup.events[index].options;

	return p->setup.of_tasks && o->use == SAMPLE_USE_BLOCKS && !o->switch_fields.plain;
}

/* Wake-ups are, too, also where places are unknown: who releases a lock most is in any part. */
static bool is_example(const struct profiler *p, uint32_t index)
{
	return profiler_picks_blocks(p, index) ||
	       (p->setup.of_tasks && p->setup.events[index].options.use == SAMPLE_USE_WAKEUPS);
}

/* Each copy holds up the thread, and more than enough say nothing new. */
static void count_example(struct profiler *p, const struct record *r)
{
	bool of_wakeup = p->setup.events[r->index].options.use == SAMPLE_USE_WAKEUPS;
	struct block_grants *grants = of_wakeup ? p->wakeup_grants : p->block_grants;
	uint32_t enough = of_wakeup ? ENOUGH_WAKEUPS : attribution_enough_stacks(p->attribution);
	const struct message m = {.type = MESSAGE_ENOUGH,
				  .cpu = {.index = r->index, .cpu = (int32_t)r->cpu}};

	if (block_grants_used_up(grants, r->cpu, r->time_ns, enough))
		(void)message_send(PROTOCOL_CONTROL_FD, &m, NULL, 0);
}

static void tell_places_known(struct profiler *p, uint64_t now)
{
	bool known = attribution_places_known(p->attribution, now);
	const struct message m = {.type = MESSAGE_PLACES_KNOWN, .places.known = known};

	if (known != p->places_known && message_send(PROTOCOL_CONTROL_FD, &m, NULL, 0) == 0)
		p->places_known = known;
}

void profiler_drain(struct profiler *p, bool flush)
{
	uint64_t youngest_ns = 0, begin_ns = clock_monotonic_ns();
	struct record r;

	if (!p->merger || p->finished)
		return;
	role_job_begin(&p->role);
	merger_begin(p->merger, flush ? UINT64_MAX : settled_ns(p, begin_ns));
	attribution_begin(p->attribution);
	while (merger_next(p->merger, &r)) {
		if (r.time_ns > youngest_ns)
			youngest_ns = r.time_ns;
		p->n_sideband += r.from_sideband;
		if (r.type == RECORD_SAMPLE && is_example(p, r.index))
			count_example(p, &r);
		if (!attribution_asks_for(p->attribution, &r))
			merger_pass_over(p->merger);
		else if (!attribution_record(p->attribution, &r))
			merger_filter(p->merger);
	}
	attribution_look_at_forked(p->attribution, youngest_ns);
	role_job_end(&p->role);
	note_drained(p, begin_ns, youngest_ns, flush);
	learn_clock_offset(p, youngest_ns);
	note_pause(p);
	adapt_stack_size(p);
	tell_places_known(p, begin_ns);
	if (profile_nearly_full(attribution_profile(p->attribution)))
		profiler_close_window(p);
}

/* The part of a pause that has passed goes into the window that ends; the rest goes into the
 * next. */
static void count_pause(struct profiler *p)
{
	uint64_t now = clock_monotonic_ns();

	if (!p->paused_since_ns)
		return;
	attribution_profile(p->attribution)->counters[PROFILE_PAUSED_MS] +=
		(now - p->paused_since_ns) / NSEC_PER_MSEC;
	p->paused_since_ns = now;
}

void profiler_pause(struct profiler *p, bool paused)
{
	if (paused && !p->paused_since_ns) {
		p->paused_since_ns = clock_monotonic_ns();
		profiler_drain(p, true);
		attribution_close(p->attribution, p->drained_ns, true);
	}
	if (paused)
		return;
	if (p->paused_since_ns)
		attribution_miss_ends(p->attribution);
	count_pause(p);
	p->paused_since_ns = 0;
}

static void set_replay_facts(struct profiler *p)
{
	if (!p->offset_known) {
		p->clock_offset_ns = replay_clock_offset_ns(p->replay);
		p->offset_known = true;
	}
	p->window_start_unix_ns = UINT64_MAX;
	attribution_put_host(p->attribution, replay_host(p->replay));
}

static void grow_to_hold(struct profile *prof, uint64_t time_unix_ns)
{
	if (time_unix_ns < prof->start_unix_ns)
		prof->start_unix_ns = time_unix_ns;
	if (time_unix_ns >= prof->end_unix_ns)
		prof->end_unix_ns = time_unix_ns + 1;
}

/* From the clock of the events to the wall's; the window grows to hold all samples. */
static void place_in_time(struct profiler *p, struct profile *prof)
{
	for (uint32_t type = 0; type < prof->n_types; type++) {
		const struct profile_type *of = &prof->types[type];

		for (uint32_t i = 0; i < of->samples.n; i++)
			grow_to_hold(prof, of->samples.items[i].time_unix_ns += p->clock_offset_ns);
	}
	for (uint32_t i = 0; i < prof->residents.n; i++)
		grow_to_hold(prof, prof->residents.items[i].time_unix_ns);
	for (uint32_t i = 0; i < prof->kills.n; i++)
		grow_to_hold(prof, prof->kills.items[i].time_unix_ns);
	for (uint32_t i = 0; i < prof->victims.n; i++)
		grow_to_hold(prof, prof->victims.items[i].time_unix_ns);
}

static struct place_of_event place_of(struct sample_tally t)
{
	return (struct place_of_event){t.samples, t.filtered, t.lost};
}

/*
 * Off-CPU time has as many samples as there are waits, whatever came from the rings. What a counter
 * tells beyond the last sample of a task is a row of none.
 */
static bool all_counted(const struct profile_type *t, const struct setup_event *e)
{
	uint64_t n = t->counters[PROFILE_SAMPLES_FILTERED] + t->counters[PROFILE_SAMPLES_DROPPED];

	for (uint32_t i = 0; i < t->samples.n; i++)
		n += t->samples.items[i].n;
	return e->options.use != SAMPLE_USE_EVENT || n == t->counters[PROFILE_SAMPLES];
}

/* All that was read from the rings is in a window, or is told to be missing. */
static bool agrees(const struct place_of_event *place, struct sample_tally t)
{
	return place->samples == t.samples && place->filtered == t.filtered &&
	       place->lost == t.lost;
}

/* By event, from the end of the last window to here. */
static void find_place(struct profiler *p, struct handover_window *w)
{
	const struct profile *prof = attribution_profile(p->attribution);

	for (uint32_t i = 0; i < SAMPLE_MAX_EVENTS; i++) {
		struct place_of_event *place = &p->place.events[i];

		if (p->merger && p->role.status->counts.windows == 0)
			*place = place_of(merger_start(p->merger, i));
		w->begin.events[i] = *place;
		if (i < prof->n_types || i < p->setup.n_events) {
			const uint64_t *c = attribution_counters(p->attribution, i);

			ensure(i >= prof->n_types || i >= p->setup.n_events ||
			       all_counted(&prof->types[i], &p->setup.events[i]));
			place->samples += c[PROFILE_SAMPLES];
			place->filtered += c[PROFILE_SAMPLES_FILTERED];
			place->lost += c[PROFILE_SAMPLES_LOST] + c[PROFILE_BLOCKS_UNCOPIED];
		}
		w->end.events[i] = *place;
		ensure(place->filtered <= place->samples);
		ensure(!p->merger || agrees(place, ledger_sum(p->ledger, i)));
	}
}

static uint32_t event_of_switches(const struct profiler *p)
{
	for (uint32_t i = 0; i < p->setup.n_events; i++) {
		if (p->setup.events[i].options.use == SAMPLE_USE_SWITCHES)
			return i;
	}
	return UINT32_MAX;
}

static void hand_over(struct profiler *p, struct profile *prof)
{
	struct handover_window w = {.n_samples = profile_n_samples(prof),
				    .switches = event_of_switches(p)};
	struct handover_item *items;
	uint32_t n_items;

	find_place(p, &w);
	w.fd = window_write(prof);
	if (w.fd < 0) {
		log_error("a window of %llu samples is lost: %s", (unsigned long long)w.n_samples,
			  strerror(-w.fd));
		handover_give_up(p->handover, &w);
		return;
	}
	items = attribution_window_items(p->attribution, &n_items);
	handover_push(p->handover, &w, items, n_items);
}

/* A task ends with up to a period of events since its last sample, and each has a count of its own:
 * of many short ones that is much. */
static void add_missed(struct profiler *p)
{
	for (uint32_t i = 0; i < p->setup.n_events && p->merger && p->setup.of_tasks; i++) {
		const struct sample_options *o = &p->setup.events[i].options;

		if (o->event.bytes && o->period)
			attribution_add_missed(p->attribution, i, merger_read_count(p->merger, i));
	}
}

void profiler_close_window(struct profiler *p)
{
	struct profile *prof = attribution_profile(p->attribution);
	uint64_t now = clock_realtime_ns();

	/* The symbolizer may take long for the last one, which has all up to the end. Another one
	 * would tell again what is in use. */
	if (p->finished)
		return;
	if (p->merger)
		attribution_add_lost(p->attribution, merger_read_lost(p->merger));
	add_missed(p);
	attribution_close(p->attribution, p->drained_ns, false);
	attribution_read_residents(p->attribution, now, true);
	/* A file's window is as old as its samples: the loop below finds both its ends. */
	if (p->replay)
		set_replay_facts(p);
	prof->start_unix_ns = p->window_start_unix_ns;
	prof->end_unix_ns = p->replay ? 0 : now;
	place_in_time(p, prof);
	if (!p->replay && !p->setup.events[0].features.frame_pointers)
		prof->types[0].stack_bytes = p->setup.events[0].options.stack_bytes;
	count_pause(p);
	hand_over(p, prof);
	p->role.status->counts.windows++;
	attribution_count_said(p->attribution, &p->role.status->counts.said);
	attribution_next_window(p->attribution);
	p->window_start_unix_ns = now;
	if (p->setup.events[0].features.clockid)
		p->clock_offset_ns = clock_realtime_ns() - clock_monotonic_ns();
	else if (!p->replay)
		p->offset_known = false;
}
