/* SPDX-License-Identifier: Apache-2.0 */
#include "src/symbolizer/counted.h"

#include "util/log.h"

_Static_assert(PROFILE_N_COUNTERS <= STATUS_MAX_COUNTERS, "each has its place");

void counted_read(struct counted *c, const struct profile *p)
{
	*c = (struct counted){0};
	for (int i = 0; i < PROFILE_N_COUNTERS; i++)
		c->counters[i] = profile_counter(p, (enum profile_counter)i);
	for (uint32_t i = 0; i < p->n_types && i < STATUS_MAX_EVENTS; i++) {
		c->lost[i] = p->types[i].counters[PROFILE_SAMPLES_LOST];
		c->throttled[i] = p->types[i].counters[PROFILE_SAMPLES_THROTTLED];
	}
}

void counted_add_since(struct counted *c, const struct profile *p, const struct counted *before)
{
	struct counted now;

	counted_read(&now, p);
	for (int i = 0; i < PROFILE_N_COUNTERS; i++)
		c->counters[i] += now.counters[i] - before->counters[i];
	for (int i = 0; i < STATUS_MAX_EVENTS; i++) {
		c->lost[i] += now.lost[i] - before->lost[i];
		c->throttled[i] += now.throttled[i] - before->throttled[i];
	}
}

void counted_publish(const struct counted *c, struct status_counts *to)
{
	to->windows_named += c->windows_named;
	to->payloads += c->payloads;
	to->payload_bytes += c->payload_bytes;
	for (int i = 0; i < PROFILE_N_COUNTERS; i++)
		to->counters[i] += c->counters[i];
	for (int i = 0; i < STATUS_MAX_EVENTS; i++) {
		to->events[i].lost += c->lost[i];
		to->events[i].throttled += c->throttled[i];
	}
}

/* What is of no type yet is of none. */
static uint64_t *counters_of(struct profile *p, uint32_t event)
{
	return event < p->n_types ? p->types[event].counters : p->counters;
}

void counted_missing(struct profile *p, const struct arrivals_gap *gaps, uint32_t switches)
{
	uint64_t n_died = 0;

	for (uint32_t i = 0; i < STATUS_MAX_EVENTS; i++) {
		uint64_t *c = counters_of(p, i);

		if (i == switches) {
			p->counters[PROFILE_SWITCHES_LOST] += gaps[i].lost + gaps[i].died;
			continue;
		}
		c[PROFILE_SAMPLES] += gaps[i].samples;
		c[PROFILE_SAMPLES_FILTERED] += gaps[i].filtered;
		c[PROFILE_SAMPLES_LOST] += gaps[i].lost;
		c[PROFILE_SAMPLES_DROPPED] += gaps[i].dropped;
		c[PROFILE_SAMPLES_DIED] += gaps[i].died;
		n_died += gaps[i].died;
	}
	if (n_died)
		log_warning("%llu samples are lost: the process that had them died",
			    (unsigned long long)n_died);
}

void counted_unreadable(struct profile *p, const struct message *m)
{
	for (uint32_t i = 0; i < STATUS_MAX_EVENTS; i++) {
		const struct place_of_event *begin = &m->window.begin.events[i];
		const struct place_of_event *end = &m->window.end.events[i];
		uint64_t samples = end->samples - begin->samples;
		uint64_t filtered = end->filtered - begin->filtered;
		uint64_t *c = counters_of(p, i);

		if (i == m->window.switches) {
			p->counters[PROFILE_SWITCHES_LOST] += end->lost - begin->lost + samples;
			continue;
		}
		c[PROFILE_SAMPLES] += samples;
		c[PROFILE_SAMPLES_FILTERED] += filtered;
		c[PROFILE_SAMPLES_LOST] += end->lost - begin->lost;
		c[PROFILE_SAMPLES_DROPPED] += samples - filtered;
	}
}
