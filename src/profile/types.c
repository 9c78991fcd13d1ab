/* SPDX-License-Identifier: Apache-2.0 */
/* The types of a profile: their samples and counters, and what a sample of each stands for. */
#include <string.h>

#include "src/profile/profile.h"

void profile_set_type(struct profile *p, uint32_t type, const struct profile_type *facts)
{
	struct profile_type t = *facts;

	memcpy(&t.samples, &p->types[type].samples, sizeof(t.samples));
	memcpy(t.counters, p->types[type].counters, sizeof(t.counters));
	t.variance = p->types[type].variance;
	p->types[type] = t;
}

uint32_t profile_add_type(struct profile *p, const struct profile_type *facts)
{
	if (p->n_types == PROFILE_MAX_TYPES)
		return PROFILE_NONE;
	memset(p->types[p->n_types].counters, 0, sizeof(p->types[0].counters));
	p->types[p->n_types].variance = 0;
	profile_set_type(p, p->n_types, facts);
	return p->n_types++;
}

void profile_clear_samples(struct profile *p)
{
	for (uint32_t i = 0; i < p->n_types; i++) {
		struct profile_type *t = &p->types[i];

		for (int c = 0; c < PROFILE_N_COUNTERS; c++)
			p->counters[c] += t->counters[c];
		memset(t->counters, 0, sizeof(t->counters));
		t->variance = 0;
		array_clear(&t->samples);
	}
	array_clear(&p->residents);
	array_clear(&p->kills);
	array_clear(&p->victims);
	p->n_types = 1;
	p->types[0].event = p->types[0].unit = STRID_EMPTY;
}

uint64_t profile_counter(const struct profile *p, enum profile_counter c)
{
	uint64_t n = p->counters[c];

	for (uint32_t i = 0; i < p->n_types; i++)
		n += p->types[i].counters[c];
	return n;
}

/* Do the values say how many samples they are? *ret: so many. */
static bool count_in_values(const struct profile_type *t, uint64_t *ret)
{
	*ret = 0;
	for (uint32_t i = 0; i < t->samples.n; i++)
		*ret += t->samples.items[i].n;
	return t->weighted && (*ret || t->samples.n == 0);
}

static uint64_t all_samples(const struct profile_type *t, const uint64_t *c)
{
	uint64_t n;

	return count_in_values(t, &n) ? n + c[PROFILE_SAMPLES_FILTERED] +
						c[PROFILE_SAMPLES_DROPPED] + c[PROFILE_SAMPLES_DIED]
				      : c[PROFILE_SAMPLES];
}

uint64_t profile_type_counter(const struct profile_type *t, enum profile_counter c)
{
	return c == PROFILE_SAMPLES ? all_samples(t, t->counters) : t->counters[c];
}

uint64_t profile_view_counter(const struct profile *p, enum profile_counter c)
{
	uint64_t counters[PROFILE_N_COUNTERS];

	for (int i = 0; i < PROFILE_N_COUNTERS; i++)
		counters[i] = profile_counter(p, (enum profile_counter)i);
	return c == PROFILE_SAMPLES ? all_samples(&p->types[0], counters) : counters[c];
}

void profile_clear_counters(struct profile *p)
{
	memset(p->counters, 0, sizeof(p->counters));
	for (uint32_t i = 0; i < p->n_types; i++)
		memset(p->types[i].counters, 0, sizeof(p->types[i].counters));
}

void profile_view(const struct profile *p, uint32_t type, struct profile *ret)
{
	*ret = *p;
	ret->n_types = 1;
	if (type == 0)
		return;
	memset(ret->counters, 0, sizeof(ret->counters));
	ret->types[0] = p->types[type];
	ret->types[0].samples.cap = ret->types[0].samples.max = ret->types[0].samples.n;
}

bool profile_weigh(struct profile *p)
{
	struct profile_type *t = &p->types[0];
	uint64_t period = profile_period(p);

	if (t->period_ns) {
		t->event = strtab_put(&p->strings, profile_period_type(p));
		t->unit = strtab_put(&p->strings, profile_period_unit(p));
		if (t->event == STRID_EMPTY || t->unit == STRID_EMPTY)
			return false;
	}
	for (uint32_t i = 0; i < t->samples.n; i++) {
		struct profile_sample *s = &t->samples.items[i];

		s->n = profile_size(s->value) <= UINT32_MAX ? (uint32_t)profile_size(s->value) : 0;
		s->value = profile_product(s->value, period);
	}
	t->period_ns = 0;
	t->period_events = 1;
	t->rate_hz = 0;
	t->weighted = true;
	return true;
}

bool profile_is_difference(const struct profile *p)
{
	const struct profile_type *t = &p->types[0];

	for (uint32_t i = 0; i < t->samples.n; i++)
		if (t->samples.items[i].value < 0)
			return true;
	return false;
}

uint64_t profile_covered_ns(const struct profile *p)
{
	uint64_t window = p->end_unix_ns > p->start_unix_ns ? p->end_unix_ns - p->start_unix_ns : 0;

	return window > p->gaps_ns ? window - p->gaps_ns : 0;
}

uint64_t profile_period(const struct profile *p)
{
	const struct profile_type *t = &p->types[0];

	return t->period_events ? t->period_events : t->period_ns ? t->period_ns : 1;
}

bool profile_has_period(const struct profile *p)
{
	const struct profile_type *t = &p->types[0];

	return t->period_events || t->period_ns;
}

const char *profile_period_type(const struct profile *p)
{
	const struct profile_type *t = &p->types[0];

	return t->period_events ? profile_text(p, t->event) : t->period_ns ? "cpu" : "";
}

const char *profile_period_unit(const struct profile *p)
{
	const struct profile_type *t = &p->types[0];

	if (t->period_events)
		return t->unit != STRID_EMPTY ? profile_text(p, t->unit) : "count";
	return t->period_ns ? "nanoseconds" : "";
}

uint32_t profile_find_type(const struct profile *p, const char *event)
{
	for (uint32_t i = 0; i < p->n_types; i++) {
		if (strcmp(profile_text(p, p->types[i].event), event) == 0)
			return i;
	}
	return PROFILE_NONE;
}

uint32_t profile_asked_type(const struct profile *p, const char *event)
{
	uint32_t type = event ? profile_find_type(p, event) : 0;

	return type == PROFILE_NONE ? 0 : type;
}

const char *profile_type_name(const struct profile *p, uint32_t type)
{
	struct profile view, before;
	const char *name;

	profile_view(p, type, &view);
	name = profile_period_type(&view);
	for (uint32_t i = 0; i < type; i++) {
		profile_view(p, i, &before);
		if (strcmp(profile_period_type(&before), name) == 0)
			return profile_text(p, view.types[0].event);
	}
	return name;
}

bool profile_is_off_cpu(const struct profile *p, uint32_t type)
{
	const struct profile_type *t = &p->types[type];

	return strcmp(profile_text(p, t->event), PROFILE_OFF_CPU) == 0 &&
	       strcmp(profile_text(p, t->unit), "nanoseconds") == 0;
}

bool profile_is_in_use(const struct profile *p, uint32_t type)
{
	return strncmp(profile_text(p, p->types[type].event), "inuse_", strlen("inuse_")) == 0;
}

bool profile_is_objects(const struct profile *p, uint32_t type)
{
	const char *event = profile_text(p, p->types[type].event);

	return strcmp(event, "alloc_objects") == 0 || strcmp(event, "inuse_objects") == 0;
}

bool profile_is_wall(const struct profile *p, uint32_t type)
{
	const struct profile_type *t = &p->types[type];

	return strcmp(profile_text(p, t->event), PROFILE_WALL) == 0 &&
	       strcmp(profile_text(p, t->unit), "nanoseconds") == 0;
}

bool profile_is_growth(const struct profile *p, uint32_t type)
{
	return strcmp(profile_text(p, p->types[type].event), PROFILE_GROWTH) == 0;
}

bool profile_is_wakeups(const struct profile *p, uint32_t type)
{
	return strcmp(profile_text(p, p->types[type].event), PROFILE_WAKEUPS) == 0;
}

uint64_t profile_stacks_incomplete(const struct profile *p)
{
	uint64_t n = 0;

	for (int c = PROFILE_STACKS_TRUNCATED; c <= PROFILE_STACKS_NO_REGS; c++)
		n += profile_counter(p, (enum profile_counter)c);
	return n;
}
