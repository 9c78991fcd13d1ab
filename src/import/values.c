/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of files: what they measure, and which of them are added up.
 *
 * A measure is the counted thing (cpu, inuse_space) and its unit. Files have either numbers of
 * samples, with a period in the unit, or values in the unit itself. Only equal measures are added:
 * samples of one period as numbers of samples, everything else in the unit. So neither the order of
 * the files nor their periods change a sum.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/import/builder.h"
#include "util/cleanup.h"
#include "util/text.h"

static const struct unit_name {
	const char *name, *unit;
	uint64_t scale;
} units[] = {
	{"", "count", 1},
	{"1", "count", 1},
	{"count", "count", 1},
	{"ns", "nanoseconds", 1},
	{"nanosecond", "nanoseconds", 1},
	{"nanoseconds", "nanoseconds", 1},
	{"us", "nanoseconds", 1000},
	{"µs", "nanoseconds", 1000}, /* the micro sign, and the Greek letter */
	{"μs", "nanoseconds", 1000},
	{"microsecond", "nanoseconds", 1000},
	{"microseconds", "nanoseconds", 1000},
	{"ms", "nanoseconds", 1000000},
	{"millisecond", "nanoseconds", 1000000},
	{"milliseconds", "nanoseconds", 1000000},
	{"s", "nanoseconds", 1000000000},
	{"second", "nanoseconds", 1000000000},
	{"seconds", "nanoseconds", 1000000000},
	{"b", "bytes", 1},
	{"by", "bytes", 1},
	{"byte", "bytes", 1},
	{"bytes", "bytes", 1},
	/* pprof's kb is 1024, too. */
	{"kb", "bytes", 1 << 10},
	{"kib", "bytes", 1 << 10},
	{"kiby", "bytes", 1 << 10},
	{"kilobyte", "bytes", 1 << 10},
	{"kilobytes", "bytes", 1 << 10},
	{"mb", "bytes", 1 << 20},
	{"mib", "bytes", 1 << 20},
	{"miby", "bytes", 1 << 20},
	{"megabyte", "bytes", 1 << 20},
	{"megabytes", "bytes", 1 << 20},
};

static const char *canonical(const char *unit, uint64_t *ret_scale)
{
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcasecmp(unit, units[i].name) == 0) {
			*ret_scale = units[i].scale;
			return units[i].unit;
		}
	}
	*ret_scale = 1;
	return unit;
}

strid import_text(struct import *im, const char *text)
{
	char clean[4096];

	if (!text || !*text)
		return STRID_EMPTY;
	return strtab_put_n(&im->p->strings, clean, text_shorten(clean, sizeof(clean), text, NULL));
}

struct import_measure import_measure_values(struct import *im, const char *type, const char *unit)
{
	struct import_measure m = {.what = import_text(im, type && *type ? type : "values")};

	m.unit = import_text(im, canonical(unit ? unit : "", &m.scale));
	return m;
}

struct import_measure import_measure_samples(struct import *im, const char *period_type,
					     const char *period_unit, int64_t period)
{
	struct import_measure m = {.counted = true};

	if (period <= 0 || !period_type)
		return (struct import_measure){.what = import_text(im, "samples"),
					       .unit = import_text(im, "count"),
					       .scale = 1,
					       .counted = true};
	m = import_measure_values(im, period_type, period_unit);
	m.counted = true;
	if (__builtin_mul_overflow(m.scale, (uint64_t)period, &m.scale))
		m.scale = INT64_MAX;
	m.period = m.scale;
	return m;
}

bool import_measure_equal(const struct import_measure *a, const struct import_measure *b)
{
	return a->what == b->what && a->unit == b->unit;
}

bool import_measure_fits(const struct import *im, const struct import_measure *m)
{
	const struct import_facts *f = im->facts;

	if (f->measure.what != STRID_EMPTY || !f->like_what)
		return import_measure_equal(m, &f->measure);
	return strcmp(profile_text(im->p, m->what), f->like_what) == 0 &&
	       strcmp(profile_text(im->p, m->unit), f->like_unit) == 0;
}

bool import_is_called(const char *wanted, const char *name, const char *unit)
{
	size_t n = strlen(name);
	uint64_t scale;

	if (strcmp(wanted, name) == 0)
		return true;
	return strncmp(wanted, name, n) == 0 && (wanted[n] == ':' || wanted[n] == '/') &&
	       (strcasecmp(wanted + n + 1, unit) == 0 ||
		strcasecmp(wanted + n + 1, canonical(unit, &scale)) == 0);
}

/* ---- Adding up ---- */

static int cannot_tell(struct import *im, const struct import_measure *m, const char *whose)
{
	return import_damaged(
		im,
		"%s not say what their counts are: they cannot be added to %s:%s, which "
		"is added up by its values",
		whose, profile_text(im->p, m->what), profile_text(im->p, m->unit));
}

/* The first values give the profile its measure. */
static void take(struct import *im, const struct import_measure *m)
{
	bool time = strcmp(profile_text(im->p, m->unit), "nanoseconds") == 0;
	struct profile *p = im->p;
	struct profile_type *t = &p->types[0];

	im->facts->measure = *m;
	im->took = true;
	t->event = m->counted && !m->period ? t->event : m->what;
	t->unit = m->unit;
	t->weighted = !m->counted;
	if (!m->counted)
		t->period_events = 1;
	else if (time && strcmp(profile_text(p, m->what), "cpu") == 0)
		t->period_ns = m->period;
	else
		t->period_events = m->period;
	if (time && m->period)
		t->rate_hz = (uint32_t)((UINT64_C(1000000000) + m->period / 2) / m->period);
}

/* For the heading of the output. */
static void remember_period(struct import_facts *f, uint64_t period)
{
	for (uint32_t i = 0; i < f->n_periods; i++)
		if (f->periods[i] == period)
			return;
	if (f->n_periods < ARRAY_SIZE(f->periods))
		f->periods[f->n_periods++] = period;
}

int import_begin_values(struct import *im, const struct import_measure *m)
{
	struct import_measure *have = &im->facts->measure;
	struct profile *p = im->p;

	im->took = false;
	if (have->what == STRID_EMPTY && !(im->facts->has_unknown && !m->counted))
		take(im, m);
	else if (have->what != STRID_EMPTY && !import_measure_equal(have, m))
		return 0;
	else if (im->facts->has_unknown && !(m->counted && m->period == have->period))
		return cannot_tell(im, m, "the files before it do");
	else if (!p->types[0].weighted && !(m->counted && m->period == have->period) &&
		 !profile_weigh(p))
		return -ENOMEM;
	remember_period(im->facts, m->period);
	im->counted = m->counted;
	im->scale = p->types[0].weighted ? m->scale : 1;
	return 1;
}

int import_begin_unknown(struct import *im)
{
	if (im->p->types[0].weighted)
		return cannot_tell(im, &im->facts->measure, "folded stacks do");
	im->facts->has_unknown = true;
	im->counted = true;
	im->scale = 1;
	return 0;
}

void import_name_event(struct import *im, const char *name, uint32_t rate_hz)
{
	struct profile_type *t = &im->p->types[0];
	strid event = import_text(im, name);

	if (im->took) {
		t->event = event != STRID_EMPTY && !t->weighted ? event : t->event;
		t->rate_hz = rate_hz ? rate_hz : t->rate_hz;
		return;
	}
	/* With several events or rates the profile has none. */
	if (event != STRID_EMPTY && event != t->event)
		t->event = im->facts->measure.what;
	if (rate_hz && rate_hz != t->rate_hz)
		t->rate_hz = 0;
}

/* ---- When ---- */

#define MAX_SPANS 4096

/* Adds a span: those that overlap or touch it, [at, end), become one with it. */
static int put_span(struct import_facts *f, struct import_span span)
{
	uint32_t at = f->n_spans, end;

	while (at && f->spans[at - 1].end_unix_ns >= span.start_unix_ns)
		at--;
	/*
	 * If there are too many, it merges with its neighbour, and the time between counts as
	 * sampled.
	 */
	if (at == MAX_SPANS)
		at--;
	for (end = at; end < f->n_spans && (f->spans[end].start_unix_ns <= span.end_unix_ns ||
					    (end == at && f->n_spans == MAX_SPANS));
	     end++) {
		if (f->spans[end].start_unix_ns < span.start_unix_ns)
			span.start_unix_ns = f->spans[end].start_unix_ns;
		if (f->spans[end].end_unix_ns > span.end_unix_ns)
			span.end_unix_ns = f->spans[end].end_unix_ns;
	}
	if (!f->spans)
		f->spans = calloc(MAX_SPANS, sizeof(*f->spans));
	if (!f->spans)
		return -ENOMEM;
	memmove(f->spans + at + 1, f->spans + end, (f->n_spans - end) * sizeof(*f->spans));
	f->n_spans = f->n_spans + 1 - (end - at);
	f->spans[at] = span;
	return 0;
}

int import_add_time(struct import *im, uint64_t start_unix_ns, uint64_t duration_ns)
{
	struct import_span span = {start_unix_ns, start_unix_ns + duration_ns};
	struct import_facts *f = im->facts;
	struct profile *p = im->p;
	uint64_t covered = 0;
	int r;

	if (!start_unix_ns || span.end_unix_ns < start_unix_ns)
		return 0;
	r = put_span(f, span);
	for (uint32_t i = 0; i < f->n_spans; i++)
		covered += f->spans[i].end_unix_ns - f->spans[i].start_unix_ns;
	if (f->n_spans) {
		p->start_unix_ns = f->spans[0].start_unix_ns;
		p->end_unix_ns = f->spans[f->n_spans - 1].end_unix_ns;
		p->gaps_ns = p->end_unix_ns - p->start_unix_ns - covered;
	}
	return r;
}

/* ---- Messages ---- */

void import_note(struct import *im, enum import_outcome outcome, const char *format, ...)
{
	size_t n = strlen(im->error);
	va_list ap;

	if (im->outcome < (int)outcome)
		im->outcome = outcome;
	n += (size_t)snprintf(im->error + n, IMPORT_ERROR_MAX - n, "%s", n ? "; " : "");
	va_start(ap, format);
	if (n < IMPORT_ERROR_MAX)
		(void)vsnprintf(im->error + n, IMPORT_ERROR_MAX - n, format, ap);
	va_end(ap);
}

void import_list_add(struct import_list *l, const struct import_measure *m)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (import_measure_equal(&l->items[i], m))
			return;
	if (l->n < ARRAY_SIZE(l->items))
		l->items[l->n++] = *m;
}

const char *import_list_text(const struct import *im, const struct import_list *l, char *buf,
			     size_t size)
{
	size_t at = 0;

	buf[0] = '\0';
	for (uint32_t i = 0; i < l->n && at < size; i++)
		at += (size_t)snprintf(buf + at, size - at, "%s%.40s:%.20s", i ? ", " : "",
				       profile_text(im->p, l->items[i].what),
				       profile_text(im->p, l->items[i].unit));
	return buf;
}
