/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP profiles (v1development): ProfilesData, or ExportProfilesServiceRequest, which has the same
 * wire format. All samples refer to the dictionary of their message, so that is read first.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/wire-read.h"
#include "src/import/otlp-internal.h"
#include "src/profile/labels.h"
#include "util/cleanup.h"
#include "util/text.h"

#define MEMORY_FIELD 15 /* proto/kept-memory.proto */

/* ---- Samples ---- */

struct sample_facts {
	uint64_t tid, cpu;
	const char *thread;
	FILE *labels; /* the link, and other attributes; NULL: none */
	char *text;
	size_t n;
};

static int sample_attribute(struct otlp_file *o, void *ctx, uint64_t index)
{
	struct sample_facts *s = ctx;
	const char *text, *key;
	uint64_t number;

	key = otlp_attribute(o, index, &text, &number);
	if (!key || !*key)
		return 0;
	if (strcmp(key, "thread.id") == 0) {
		s->tid = number;
	} else if (strcmp(key, "cpu.logical_number") == 0) {
		s->cpu = number;
	} else if (text && strcmp(key, "thread.name") == 0) {
		const struct span name = {(const uint8_t *)text, strlen(text)};

		s->thread = otlp_keep_text(o, TEXT_THREAD, &name);
	} else {
		import_keep_label(
			&s->labels,
			&(struct label){
				.key = key, .text = text, .number = (int64_t)number, .unit = ""},
			&s->text, &s->n);
	}
	return 0;
}

struct values {
	uint64_t n;
	int64_t sum;
};

static int count_value(struct otlp_file *o, void *ctx, uint64_t value)
{
	struct values *v = ctx;

	v->n++;
	v->sum = profile_sum(v->sum, (int64_t)value);
	return 0;
}

struct timed {
	size_t i;
	uint32_t thread, cpu;
	int64_t n; /* samples of each value; 0: unknown */
};

static int add_timed(struct otlp_file *o, void *ctx, uint64_t value)
{
	struct timed *t = ctx;
	uint64_t time = o->times.items[t->i++];

	return value ? import_add_sample(o->im, t->thread, (int64_t)value, t->n, time, t->cpu) : 0;
}

/* The timestamps of a sample, packed or not. */
static int times_read(struct otlp_file *o, const struct span *sample)
{
	struct cursor c = cursor_make(sample->bytes, sample->n);
	struct wire_field f;

	array_clear(&o->times);
	while (wire_read_field(&c, &f)) {
		struct cursor list = cursor_make(f.bytes, f.n);

		if (f.number != 5)
			continue;
		while (f.type != WIRE_BYTES || cursor_left(&list) >= 8) {
			uint64_t *time = array_push(&o->times);

			if (!time)
				return -ENOMEM;
			*time = f.type == WIRE_BYTES ? cursor_u64(&list) : f.value;
			if (f.type != WIRE_BYTES)
				break;
		}
	}
	return 0;
}

/*
 * Each timestamp is a sample of its own, with the value at its position, or 1. Another number of
 * values violates the specification; then the sum of the values is distributed.
 */
static int add_samples(struct otlp_file *o, const struct span *sample, uint32_t thread,
		       uint32_t cpu, uint64_t fallback_time)
{
	struct timed t = {.thread = thread, .cpu = cpu};
	struct values v = {0};
	size_t n_times;
	int r;

	r = times_read(o, sample);
	if (r == 0)
		r = otlp_each_number(o, sample, 4, count_value, &v);
	if (r < 0)
		return r;
	n_times = o->times.n;
	if (n_times == 0)
		return v.sum ? import_add_sample(o->im, thread, v.sum, 0, fallback_time, cpu) : 0;
	t.n = v.n == n_times || v.n == 0;
	if (v.n == n_times)
		return otlp_each_number(o, sample, 4, add_timed, &t);
	/* The first ones get the remainder. */
	for (int64_t n = (int64_t)n_times; t.i < n_times && r == 0;) {
		int64_t left = v.sum % n, at = (int64_t)t.i;
		int64_t more = at < profile_size(left) ? (left < 0 ? -1 : 1) : 0;

		r = add_timed(o, &t, v.n ? (uint64_t)(v.sum / n + more) : 1);
	}
	return r;
}

static void keep_id(struct sample_facts *facts, const char *key, const struct span *id)
{
	char hex[2 * LABEL_TRACE_BYTES + 1];

	text_format_hex(hex, id->bytes, id->n);
	import_keep_label(&facts->labels, &(struct label){.key = key, .text = hex, .unit = ""},
			  &facts->text, &facts->n);
}

/* The ids of the span that a sample was in. */
static void keep_link(struct otlp_file *o, struct sample_facts *facts, uint64_t index)
{
	const struct span *link = index ? otlp_row(o, T_LINK, index) : NULL;
	const struct span trace = link ? otlp_bytes(link, 1) : (struct span){NULL, 0};
	const struct span span = link ? otlp_bytes(link, 2) : (struct span){NULL, 0};

	if (trace.n != LABEL_TRACE_BYTES || span.n != LABEL_SPAN_BYTES)
		return;
	keep_id(facts, LABEL_TRACE, &trace);
	keep_id(facts, LABEL_SPAN, &span);
}

/* Ends the facts' labels. */
static strid take_labels(struct otlp_file *o, struct sample_facts *facts)
{
	strid labels = STRID_EMPTY;

	if (facts->labels && fclose(facts->labels) == 0)
		labels = strtab_put_n(&o->im->p->strings, facts->text, facts->n);
	free(facts->text);
	return labels;
}

static int add_labelled(struct otlp_file *o, const struct span *sample,
			const struct sample_facts *facts, strid labels, uint64_t time)
{
	struct profile *p = o->im->p;
	struct profile_thread thread = {
		.process = profile_add_process(p, &o->process),
		.tid = (uint32_t)facts->tid,
		.name = strtab_put(&p->strings, facts->thread ? facts->thread : ""),
		.labels = labels,
	};

	return thread.process == PROFILE_NONE
		       ? -ENOMEM
		       : add_samples(o, sample, profile_add_labelled_thread(p, &thread),
				     (uint32_t)facts->cpu, time);
}

static int sample_read(struct otlp_file *o, const struct span *sample, uint64_t time)
{
	struct sample_facts facts = {0};
	const struct span *stack = otlp_row(o, T_STACK, otlp_number(sample, 1));
	strid labels;
	int r;

	import_begin_stack(o->im);
	if (!stack)
		return import_damaged(o->im,
				      "a sample names stack %" PRIu64 ", which does not exist",
				      otlp_number(sample, 1));
	r = otlp_each_number(o, stack, 1, otlp_push_location, NULL);
	keep_link(o, &facts, otlp_number(sample, 3));
	if (r == 0)
		r = otlp_each_number(o, sample, 2, sample_attribute, &facts);
	labels = take_labels(o, &facts);
	return r < 0 ? r : add_labelled(o, sample, &facts, labels, time);
}

static int profile_attribute(struct otlp_file *o, void *ctx, uint64_t index)
{
	const char *text, *key;
	uint64_t number;

	key = otlp_attribute(o, index, &text, &number);
	if (!key || strncmp(key, "perfwalk.", 9) != 0)
		return 0;
	if (!text && strcmp(key, "perfwalk.cpus") == 0)
		o->im->facts->n_cpus =
			o->im->facts->n_cpus ? o->im->facts->n_cpus : (uint32_t)number;
	else if (!text)
		import_counter(o->im, key + 9, number);
	else if (strcmp(key, "perfwalk.comm") == 0)
		otlp_take_comm(o, text);
	else if (strcmp(key, "perfwalk.title") == 0)
		otlp_take_fact(&o->im->facts->title, text);
	else if (strcmp(key, "perfwalk.kernel_release") == 0)
		otlp_take_fact(&o->im->facts->kernel_release, text);
	else if (strcmp(key, "perfwalk.event") == 0)
		import_name_event(o->im, text, 0);
	return 0;
}

/* Type and unit of the values of a Profile. */
struct otlp_kind {
	const char *type, *unit, *period_type, *period_unit;
	bool counted; /* numbers of samples */
};

static const char *name_of(struct otlp_file *o, enum text_place place, const struct span *type,
			   uint32_t field)
{
	const char *text = otlp_text(o, place, otlp_number(type, field));

	return text ? text : "";
}

static struct otlp_kind kind_of(struct otlp_file *o, const struct span *profile)
{
	const struct span sample_type = otlp_bytes(profile, 1),
			  period_type = otlp_bytes(profile, 5);
	struct otlp_kind k = {
		.type = name_of(o, TEXT_TYPE, &sample_type, 1),
		.unit = name_of(o, TEXT_UNIT, &sample_type, 2),
		.period_type = name_of(o, TEXT_PERIOD_TYPE, &period_type, 1),
		.period_unit = name_of(o, TEXT_PERIOD_UNIT, &period_type, 2),
	};

	k.counted = !*k.type ||
		    (strcmp(k.type, "samples") == 0 && (!*k.unit || strcmp(k.unit, "count") == 0));
	return k;
}

/* Does the name mean the type of its values, or the event of its samples? */
static bool is_called(const struct otlp_kind *k, const char *name)
{
	return import_is_called(name, k->type, k->unit) ||
	       (k->counted && import_is_called(name, k->period_type, k->period_unit));
}

struct event_search {
	const char *wanted;
	bool found;
};

static int match_event(struct otlp_file *o, void *ctx, uint64_t index)
{
	struct event_search *s = ctx;
	const char *text, *key;
	uint64_t number;

	key = otlp_attribute(o, index, &text, &number);
	s->found |=
		key && text && strcmp(key, "perfwalk.event") == 0 && strcmp(text, s->wanted) == 0;
	return 0;
}

/* Our files call time "cpu", but the first Profile of a type has the name of its event. */
static bool is_of_event(struct otlp_file *o, const struct span *profile, const char *name)
{
	struct event_search s = {.wanted = name};

	return otlp_each_number(o, profile, 11, match_event, &s) == 0 && s.found;
}

/*
 * All Profiles read from a file must have the same types of values and periods. Otherwise numbers
 * of samples and their time would count twice.
 */
static bool is_wanted(struct otlp_file *o, const struct span *profile, const struct otlp_kind *k,
		      const struct import_measure *m)
{
	struct import *im = o->im;
	const strid shape[4] = {import_text(im, k->type), import_text(im, k->unit),
				import_text(im, k->period_type), import_text(im, k->period_unit)};
	bool wanted = true;

	if (im->n_event)
		return memcmp(im->shape, shape, sizeof(shape)) == 0;
	if (im->event)
		wanted = is_called(k, im->event) || is_of_event(o, profile, im->event);
	else if (im->facts->measure.what != STRID_EMPTY || im->facts->like_what)
		wanted = import_measure_fits(im, m);
	if (wanted)
		memcpy(im->shape, shape, sizeof(shape));
	return wanted;
}

/* 1: read its samples; 0: leave them out. */
static int begin_profile(struct otlp_file *o, const struct span *profile)
{
	struct otlp_kind k = kind_of(o, profile);
	struct import *im = o->im;
	struct import_measure values =
		import_measure_values(im, *k.type ? k.type : "samples", k.unit);
	struct import_measure m = k.counted
					  ? import_measure_samples(im, k.period_type, k.period_unit,
								   (int64_t)otlp_number(profile, 6))
					  : values;
	int r;

	import_list_add(&im->kinds, &values);
	import_list_add(&im->kinds, &m);
	r = is_wanted(o, profile, &k, &m) ? import_begin_values(im, &m) : 0;
	if (r < 0)
		return r;
	im->n_event += r > 0;
	if (r == 0 && (!im->event || is_called(&k, im->event))) {
		im->n_others++;
		import_list_add(&im->others, &m);
	}
	return r;
}

/* Memory in use at one moment and at another does not add up, unlike counts. */
static int check_moment(struct otlp_file *o, uint64_t start_unix_ns)
{
	struct import *im = o->im;
	const char *what = profile_text(im->p, im->facts->measure.what);

	if (strncmp(what, "inuse_", strlen("inuse_")) != 0)
		return 0;
	if (im->in_use_unix_ns && im->in_use_unix_ns != start_unix_ns)
		return import_damaged(im,
				      "it has %s of several moments, which do not add up: choose "
				      "one (with --last, a time below the interval)",
				      what);
	im->in_use_unix_ns = start_unix_ns;
	return 0;
}

static int profile_read(struct otlp_file *o, const struct span *profile)
{
	struct cursor c = cursor_make(profile->bytes, profile->n);
	uint64_t time = otlp_number(profile, 3);
	struct wire_field f;
	int r;

	r = begin_profile(o, profile);
	if (r <= 0)
		return r;
	r = check_moment(o, time);
	if (r < 0)
		return r;
	/* The attributes have the name of the event; the period's type is only "cpu". */
	r = otlp_each_number(o, profile, 11, profile_attribute, NULL);
	if (r == 0)
		r = import_add_time(o->im, time, otlp_number(profile, 4));
	while (r == 0 && wire_read_field(&c, &f)) {
		const struct span sample = {f.bytes, f.n};

		if (f.number == 2 && f.type == WIRE_BYTES)
			r = sample_read(o, &sample, time);
	}
	return r;
}

/* ---- Resources ---- */

/* Profiles of perfwalk have counters, in the first of many; others have none. */
static int scope_read(struct otlp_file *o, const struct span *scope)
{
	const struct span facts = otlp_bytes(scope, 1), name = otlp_bytes(&facts, 1);
	struct cursor c = cursor_make(scope->bytes, scope->n);
	struct wire_field f;
	int r = 0;

	o->im->uncounted = name.n != 8 || memcmp(name.bytes, "perfwalk", 8) != 0;
	while (r == 0 && wire_read_field(&c, &f)) {
		const struct span profile = {f.bytes, f.n};

		if (f.number == 2 && f.type == WIRE_BYTES)
			r = profile_read(o, &profile);
	}
	return r;
}

static int resource_profiles_read(struct otlp_file *o, const struct span *rp)
{
	const struct span resource = otlp_bytes(rp, 1);
	struct cursor c = cursor_make(rp->bytes, rp->n);
	struct wire_field f;
	int r = 0;

	otlp_read_resource(o, &resource);
	while (r == 0 && wire_read_field(&c, &f)) {
		const struct span scope = {f.bytes, f.n};

		if (f.number == 2 && f.type == WIRE_BYTES)
			r = scope_read(o, &scope);
	}
	return r;
}

/* ---- The message ---- */

static int dictionary_read(struct otlp_file *o, const struct span *dictionary)
{
	struct cursor c = cursor_make(dictionary->bytes, dictionary->n);
	struct wire_field f;

	while (wire_read_field(&c, &f)) {
		struct span *item;

		if (f.number < 1 || f.number > N_TABLES || f.type != WIRE_BYTES)
			continue;
		item = array_push(&o->tables[f.number - 1]);
		if (!item)
			return -ENOMEM;
		*item = (struct span){f.bytes, f.n};
	}
	if (!cursor_ok(&c))
		return import_damaged(o->im, "the dictionary is damaged");
	o->frames = malloc(((size_t)o->tables[T_LOCATION].n + 1) * sizeof(*o->frames));
	if (!o->frames)
		return -ENOMEM;
	memset(o->frames, 0xff, ((size_t)o->tables[T_LOCATION].n + 1) * sizeof(*o->frames));
	return 0;
}

static int message_read(struct otlp_file *o, const struct span *message)
{
	const struct span dictionary = otlp_bytes(message, 2);
	struct cursor c = cursor_make(message->bytes, message->n);
	struct wire_field f;
	int r;

	if (!dictionary.bytes)
		return import_damaged(o->im, "it holds no OTLP profiles: it has no dictionary");
	r = dictionary_read(o, &dictionary);
	while (r == 0 && wire_read_field(&c, &f)) {
		const struct span rp = {f.bytes, f.n};

		if (f.number == 1 && f.type == WIRE_BYTES)
			r = resource_profiles_read(o, &rp);
		else if (f.number == MEMORY_FIELD && f.type == WIRE_BYTES)
			r = otlp_read_memory(o, &rp);
	}
	if (r == 0 && !cursor_ok(&c))
		r = import_damaged(o->im, "it is damaged, or truncated at byte %zu",
				   (size_t)(c.cur - c.start));
	return r;
}

int import_read_otlp(struct import *im, const uint8_t *bytes, size_t n)
{
	const struct span message = {bytes, n};
	struct otlp_file o = {.im = im};
	int r;

	for (int i = 0; i < N_TABLES; i++)
		o.tables[i].max = UINT32_MAX / 2;
	o.times.max = UINT32_MAX / 2;
	r = message_read(&o, &message);
	for (int i = 0; i < N_TABLES; i++)
		array_deinit(&o.tables[i]);
	array_deinit(&o.times);
	for (size_t i = 0; i < ARRAY_SIZE(o.texts); i++)
		free(o.texts[i]);
	free(o.frames);
	return r;
}
