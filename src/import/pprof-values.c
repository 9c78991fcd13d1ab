/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses among the values of pprof samples: those named by the user, else those of the kind that
 * the profile has, else the default ones, else the last, as pprof does.
 *
 * If each value is the number of samples times the file's period, as in CPU profiles, the number is
 * read with the period: that says the same, and also how many samples there were.
 */
#include <errno.h>
#include <string.h>

#include "src/import/pprof-internal.h"

#define NO_TYPE PPROF_MAX_TYPES

static const char *text(const char *t)
{
	return t ? t : "";
}

static uint32_t find_type(const struct pprof_file *pp, const char *name, const char *unit)
{
	for (uint32_t i = 0; i < pp->n_types; i++) {
		if (strcmp(text(pp->types[i].name), name) == 0 &&
		    (!unit || strcmp(text(pp->types[i].unit), unit) == 0))
			return i;
	}
	return NO_TYPE;
}

/* The number of blocks in the off-CPU time behind it: no kind of its own. */
static bool counts_blocks(const struct pprof_file *pp, uint32_t type)
{
	const struct pprof_type *t = &pp->types[type];

	return strcmp(text(t->name), "contentions") == 0 && strcmp(text(t->unit), "count") == 0 &&
	       type + 1 < pp->n_types && strcmp(text(t[1].name), PROFILE_OFF_CPU) == 0;
}

struct product {
	uint32_t factor, product; /* types */
	uint64_t scale, period;
};

static int check_product(struct pprof_file *pp, void *ctx, const struct wire_field *sample)
{
	const struct product *p = ctx;
	int64_t values[PPROF_MAX_TYPES];

	pprof_read_values(pp, sample, values);
	return profile_product(values[p->product], p->scale) ==
			       profile_product(values[p->factor], p->period)
		       ? 0
		       : 1;
}

struct choice {
	struct pprof_file *pp;
	uint32_t samples, period_type; /* types; NO_TYPE: none */
	struct import_measure
		counted; /* samples that stand for the period; period 0: no such samples */
};

static int choice_init(struct choice *c, struct pprof_file *pp)
{
	struct import *im = pp->im;
	struct import_measure values;
	struct product p;
	int r = 0;

	*c = (struct choice){.pp = pp, .samples = find_type(pp, "samples", "count")};
	c->counted = import_measure_samples(im, pp->period_type.name, pp->period_type.unit,
					    (int64_t)pp->period);
	c->period_type = find_type(pp, text(pp->period_type.name), text(pp->period_type.unit));
	if (c->samples != NO_TYPE && c->period_type != NO_TYPE && c->counted.period) {
		values = import_measure_values(im, pp->types[c->period_type].name,
					       pp->types[c->period_type].unit);
		p = (struct product){c->samples, c->period_type, values.scale, c->counted.period};
		r = pprof_each_sample(pp, check_product, &p);
	}
	if (r != 0)
		c->counted = import_measure_samples(im, NULL, NULL, 0);
	return r < 0 ? r : 0;
}

/* The measure of a type's values. as_values: also if samples and their period say the same. */
static struct import_measure measure_of(const struct choice *c, uint32_t type, bool as_values,
					uint32_t *ret_type)
{
	const struct pprof_type *t = &c->pp->types[type];

	*ret_type = type;
	if (type == c->samples)
		return c->counted;
	if (type == c->period_type && c->samples != NO_TYPE && c->counted.period && !as_values) {
		*ret_type = c->samples;
		return c->counted;
	}
	return import_measure_values(c->pp->im, t->name, t->unit);
}

/* A type that only counts what is in another one. */
static bool is_number(const struct choice *c, uint32_t type)
{
	return type == c->samples || counts_blocks(c->pp, type);
}

static uint32_t find_called(const struct choice *c, uint32_t from)
{
	const struct pprof_file *pp = c->pp;
	uint32_t kind = 0;

	for (uint32_t i = from; i < pp->n_types; i++)
		if (import_is_called(pp->im->event, text(pp->types[i].name),
				     text(pp->types[i].unit)))
			return i;
	/* All types but numbers are kinds. */
	for (uint32_t i = 0; i < pp->n_types; i++)
		if (!is_number(c, i) && kind++ == pp->event_kind)
			return i;
	return NO_TYPE;
}

static uint32_t find_fitting(const struct choice *c)
{
	uint32_t type;

	for (uint32_t i = 0; i < c->pp->n_types; i++) {
		struct import_measure m = measure_of(c, i, false, &type);

		if (import_measure_fits(c->pp->im, &m))
			return i;
	}
	return NO_TYPE;
}

static uint32_t find_default(const struct pprof_file *pp)
{
	uint32_t type = pp->default_type ? find_type(pp, pp->default_type, NULL) : NO_TYPE;

	return type != NO_TYPE ? type : pp->n_types - 1;
}

static uint32_t find_wanted(const struct choice *c)
{
	const struct import_facts *f = c->pp->im->facts;

	if (c->pp->im->event)
		return find_called(c, 0);
	if (f->measure.what != STRID_EMPTY || f->like_what)
		return find_fitting(c);
	return find_default(c->pp);
}

/* Reports the values that are not read. */
static void say_choice(const struct choice *c, const struct import_measure *chosen)
{
	struct import *im = c->pp->im;
	struct import_list others = {.n = 0};
	char names[256];
	uint32_t type;

	for (uint32_t i = 0; i < c->pp->n_types; i++) {
		struct import_measure m = measure_of(c, i, false, &type);

		if (!is_number(c, i) && !import_measure_equal(&m, chosen) &&
		    (!im->event || import_is_called(im->event, text(c->pp->types[i].name),
						    text(c->pp->types[i].unit))))
			import_list_add(&others, &m);
	}
	if (others.n)
		import_note(im, IMPORT_CHOSE,
			    "%s:%s of each sample is read, %s left out: --event chooses",
			    profile_text(im->p, chosen->what), profile_text(im->p, chosen->unit),
			    import_list_text(im, &others, names, sizeof(names)));
}

int pprof_choose_values(struct pprof_file *pp)
{
	struct import *im = pp->im;
	struct import_measure m;
	struct choice c;
	uint32_t type;
	int r = choice_init(&c, pp);

	for (uint32_t i = 0; i < pp->n_types; i++) {
		m = import_measure_values(im, pp->types[i].name, pp->types[i].unit);
		import_list_add(&im->kinds, &m);
	}
	type = find_wanted(&c);
	if (r < 0 || type == NO_TYPE)
		return r;
	m = measure_of(&c, type, im->event != NULL, &pp->chosen);
	pp->samples = type > 0 && counts_blocks(pp, type - 1) ? type - 1 : c.samples;
	r = import_begin_values(im, &m);
	if (r == 0)
		return import_damaged(im,
				      "its values are %s:%s, the files before it have %s:%s: they "
				      "cannot be added up",
				      profile_text(im->p, m.what), profile_text(im->p, m.unit),
				      profile_text(im->p, im->facts->measure.what),
				      profile_text(im->p, im->facts->measure.unit));
	im->n_event = r > 0;
	im->kind = 0;
	for (uint32_t i = 0; i < type; i++)
		im->kind += !is_number(&c, i);
	if (r > 0)
		say_choice(&c, &m);
	return r;
}
