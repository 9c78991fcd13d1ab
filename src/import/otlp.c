/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP profiles (v1development): ProfilesData, or ExportProfilesServiceRequest, which has the same
 * wire format. All samples refer to the dictionary of their message, so that is read first; a
 * location becomes a frame when a stack first needs it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/wire-read.h"
#include "src/import/builder.h"
#include "src/profile/labels.h"
#include "util/cleanup.h"

/* Field numbers of ProfilesDictionary, less one. */
enum { T_MAPPING, T_LOCATION, T_FUNCTION, T_LINK, T_STRING, T_ATTRIBUTE, T_STACK, N_TABLES };

#define MAX_NAME_BYTES 512

struct span {
	const uint8_t *bytes;
	size_t n;
};

struct otlp_file {
	struct import *im;
	ARRAY(struct span) tables[N_TABLES];
	uint32_t *frames; /* by location */
	char *texts[16];
	struct profile_process process; /* of the current resource */
	FILE *said;			/* its other attributes, in the form of labels.h */
	char *said_text;
	size_t n_said;
	ARRAY(uint64_t) times; /* of the current sample */
};

enum text_place {
	TEXT_KEY,
	TEXT_VALUE,
	TEXT_MODULE,
	TEXT_BUILD_ID,
	TEXT_LANGUAGE,
	TEXT_THREAD,
	TEXT_SCRATCH,
	TEXT_RESOURCE,
	TEXT_RESOURCE_KEY,
	TEXT_TYPE,
	TEXT_UNIT,
	TEXT_PERIOD_TYPE,
	TEXT_PERIOD_UNIT
};

/* ---- Fields ---- */

static uint64_t number_of(const struct span *s, uint32_t number)
{
	struct cursor c = cursor_make(s->bytes, s->n);
	struct wire_field f;

	while (wire_read_field(&c, &f))
		if (f.number == number && f.type != WIRE_BYTES)
			return f.value;
	return 0;
}

static struct span bytes_of(const struct span *s, uint32_t number)
{
	struct cursor c = cursor_make(s->bytes, s->n);
	struct wire_field f;

	while (wire_read_field(&c, &f))
		if (f.number == number && f.type == WIRE_BYTES)
			return (struct span){f.bytes, f.n};
	return (struct span){NULL, 0};
}

static const struct span *row(const struct otlp_file *o, unsigned int table, uint64_t index)
{
	return index < o->tables[table].n ? &o->tables[table].items[index] : NULL;
}

static const char *keep_text(struct otlp_file *o, enum text_place place, const struct span *s)
{
	free(o->texts[place]);
	o->texts[place] = s && s->n ? strndup((const char *)s->bytes, s->n) : NULL;
	return o->texts[place];
}

static const char *text_of(struct otlp_file *o, enum text_place place, uint64_t index)
{
	return keep_text(o, place, index ? row(o, T_STRING, index) : NULL);
}

/* Key and value of an attribute of the dictionary; text NULL: a number. */
static const char *attribute_of(struct otlp_file *o, uint64_t index, const char **ret_text,
				uint64_t *ret_number)
{
	const struct span *a = row(o, T_ATTRIBUTE, index);
	struct span value = a ? bytes_of(a, 2) : (struct span){NULL, 0}, text = bytes_of(&value, 1);

	*ret_text = NULL;
	*ret_number = 0;
	if (!a || index == 0)
		return NULL;
	if (text.bytes)
		*ret_text = keep_text(o, TEXT_VALUE, &text);
	else if (number_of(&value, 8))
		*ret_text = text_of(o, TEXT_VALUE, number_of(&value, 8));
	else
		*ret_number = number_of(&value, 3);
	return text_of(o, TEXT_KEY, number_of(a, 1));
}

/* Calls fn for each number of a repeated field of s, packed or not. */
static int each_number(struct otlp_file *o, const struct span *s, uint32_t number,
		       int (*fn)(struct otlp_file *o, void *ctx, uint64_t value), void *ctx)
{
	struct cursor c = cursor_make(s->bytes, s->n);
	struct wire_field f;
	int r = 0;

	while (r == 0 && wire_read_field(&c, &f)) {
		struct cursor list = cursor_make(f.bytes, f.n);

		if (f.number != number)
			continue;
		if (f.type != WIRE_BYTES)
			r = fn(o, ctx, f.value);
		while (f.type == WIRE_BYTES && r == 0 && cursor_left(&list) > 0) {
			uint64_t value = wire_read_varint(&list);

			r = cursor_ok(&list)
				    ? fn(o, ctx, value)
				    : import_damaged(o->im, "a list of numbers is damaged");
		}
	}
	return r;
}

/* ---- Frames ---- */

static int mapping_attribute(struct otlp_file *o, void *ctx, uint64_t index)
{
	struct import_frame *f = ctx;
	const char *text, *key;
	uint64_t number;

	key = attribute_of(o, index, &text, &number);
	if (key && text && strcmp(key, "process.executable.build_id.gnu") == 0) {
		const struct span s = {(const uint8_t *)text, strlen(text)};

		f->build_id = keep_text(o, TEXT_BUILD_ID, &s);
	}
	return 0;
}

/* Code that a runtime compiled is in anonymous memory, or in a mapping that the writer named; its
 * other frames have no address. */
static void set_runtime(struct import_frame *f, enum profile_runtime runtime)
{
	if (f->kind == PROFILE_MODULE_RUNTIME) /* the writer named the mapping so */
		return;
	f->kind = f->module || f->address ? PROFILE_MODULE_JIT : PROFILE_MODULE_RUNTIME;
	f->runtime = runtime;
}

static int location_attribute(struct otlp_file *o, void *ctx, uint64_t index)
{
	struct import_frame *f = ctx;
	enum profile_runtime runtime;
	const char *text, *key;
	uint64_t number;

	key = attribute_of(o, index, &text, &number);
	if (!key || !text || strcmp(key, "profile.frame.type") != 0)
		return 0;
	if (strcmp(text, "kernel") == 0)
		f->kind = PROFILE_MODULE_KERNEL;
	else if (strcmp(text, "abort-marker") == 0)
		f->kind = PROFILE_MODULE_MARKER;
	else if (strcmp(text, "go") == 0 || strcmp(text, "rust") == 0)
		f->language = strcmp(text, "go") == 0 ? "go" : "rust";
	runtime = profile_runtime_by_name(text);
	if (runtime != PROFILE_N_RUNTIMES)
		set_runtime(f, runtime);
	return 0;
}

static void mapping_read(struct otlp_file *o, uint64_t index, struct import_frame *f)
{
	const struct span *m = index ? row(o, T_MAPPING, index) : NULL;

	if (!m)
		return;
	f->memory_start = number_of(m, 1);
	f->memory_limit = number_of(m, 2);
	f->file_offset = number_of(m, 3);
	f->module = text_of(o, TEXT_MODULE, number_of(m, 4));
	import_set_kind(f);
	(void)each_number(o, m, 5, mapping_attribute, f);
}

static char *text_copy(struct otlp_file *o, uint64_t index)
{
	const char *text = text_of(o, TEXT_SCRATCH, index);

	return text ? strdup(text) : NULL;
}

static uint32_t location_frame(struct otlp_file *o, uint64_t index)
{
	struct import_line lines[IMPORT_MAX_CHAIN + 1] = {0};
	char *texts[3 * (IMPORT_MAX_CHAIN + 1)] = {NULL};
	struct import_frame frame = {.kind = PROFILE_MODULE_FILE, .lines = lines};
	const struct span *location = &o->tables[T_LOCATION].items[index];
	struct cursor c = cursor_make(location->bytes, location->n);
	struct wire_field f;

	mapping_read(o, number_of(location, 1), &frame);
	frame.address = number_of(location, 2);
	while (wire_read_field(&c, &f)) {
		const struct span line = {f.bytes, f.n}, *function;
		char **text;

		if (f.number != 3 || f.type != WIRE_BYTES)
			continue;
		/* If there are too many lines, the last is the outermost function. */
		if (frame.n > IMPORT_MAX_CHAIN)
			frame.n--;
		text = texts + 3 * frame.n;
		function = row(o, T_FUNCTION, number_of(&line, 1));
		if (!function)
			continue;
		for (int i = 0; i < 3; i++) /* fields may be left from a line without a name */
			free(text[i]);
		text[0] = text_copy(o, number_of(function, 1));
		text[1] = text_copy(o, number_of(function, 2));
		text[2] = text_copy(o, number_of(function, 3));
		lines[frame.n] =
			(struct import_line){.name = text[0] ? text[0] : text[1],
					     .system_name = text[1],
					     .file = text[2],
					     .line = (uint32_t)number_of(&line, 2),
					     .column = (uint32_t)number_of(&line, 3),
					     .start_line = (uint32_t)number_of(function, 4)};
		frame.n += lines[frame.n].name != NULL;
	}
	(void)each_number(o, location, 4, location_attribute, &frame);
	if (frame.n == 1 && import_is_marker(lines[0].name, &frame.address))
		frame.kind = PROFILE_MODULE_MARKER;
	else if (frame.kind == PROFILE_MODULE_MARKER)
		frame.kind = PROFILE_MODULE_FILE; /* from another profiler */
	o->frames[index] = import_add_frame(o->im, &frame);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		free(texts[i]);
	return o->frames[index];
}

static int push_location(struct otlp_file *o, void *ctx, uint64_t index)
{
	if (index >= o->tables[T_LOCATION].n)
		return import_damaged(
			o->im, "a stack names location %" PRIu64 ", which does not exist", index);
	return import_push(o->im, o->frames[index] == PROFILE_NONE ? location_frame(o, index)
								   : o->frames[index]);
}

/* ---- Samples ---- */

struct sample_facts {
	uint64_t tid, cpu;
	const char *thread;
};

static int sample_attribute(struct otlp_file *o, void *ctx, uint64_t index)
{
	struct sample_facts *s = ctx;
	const char *text, *key;
	uint64_t number;

	key = attribute_of(o, index, &text, &number);
	if (!key)
		return 0;
	if (strcmp(key, "thread.id") == 0) {
		s->tid = number;
	} else if (strcmp(key, "cpu.logical_number") == 0) {
		s->cpu = number;
	} else if (text && strcmp(key, "thread.name") == 0) {
		const struct span name = {(const uint8_t *)text, strlen(text)};

		s->thread = keep_text(o, TEXT_THREAD, &name);
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
		r = each_number(o, sample, 4, count_value, &v);
	if (r < 0)
		return r;
	n_times = o->times.n;
	if (n_times == 0)
		return v.sum ? import_add_sample(o->im, thread, v.sum, 0, fallback_time, cpu) : 0;
	t.n = v.n == n_times || v.n == 0;
	if (v.n == n_times)
		return each_number(o, sample, 4, add_timed, &t);
	/* The first ones get the remainder. */
	for (int64_t n = (int64_t)n_times; t.i < n_times && r == 0;) {
		int64_t left = v.sum % n, at = (int64_t)t.i;
		int64_t more = at < profile_size(left) ? (left < 0 ? -1 : 1) : 0;

		r = add_timed(o, &t, v.n ? (uint64_t)(v.sum / n + more) : 1);
	}
	return r;
}

static void keep_id(struct otlp_file *o, const char *key, const struct span *id, FILE **out,
		    char **text, size_t *n)
{
	static const char digits[] = "0123456789abcdef";
	char hex[2 * LABEL_TRACE_BYTES + 1] = "";

	for (size_t i = 0; i < id->n; i++) {
		hex[2 * i] = digits[id->bytes[i] >> 4];
		hex[2 * i + 1] = digits[id->bytes[i] & 15];
	}
	import_keep_label(out, &(struct label){.key = key, .text = hex, .unit = ""}, text, n);
}

/* The labels for the span that a sample was in; "": none. */
static strid link_labels(struct otlp_file *o, uint64_t index)
{
	const struct span *link = index ? row(o, T_LINK, index) : NULL;
	const struct span trace = link ? bytes_of(link, 1) : (struct span){NULL, 0};
	const struct span span = link ? bytes_of(link, 2) : (struct span){NULL, 0};
	_cleanup_free_ char *text = NULL;
	FILE *out = NULL;
	size_t n;

	if (trace.n != LABEL_TRACE_BYTES || span.n != LABEL_SPAN_BYTES)
		return STRID_EMPTY;
	keep_id(o, LABEL_TRACE, &trace, &out, &text, &n);
	keep_id(o, LABEL_SPAN, &span, &out, &text, &n);
	return out && fclose(out) == 0 ? strtab_put(&o->im->p->strings, text) : STRID_EMPTY;
}

static int sample_read(struct otlp_file *o, const struct span *sample, uint64_t time)
{
	struct sample_facts facts = {0};
	struct profile *p = o->im->p;
	const struct span *stack = row(o, T_STACK, number_of(sample, 1));
	struct profile_thread thread;
	uint32_t process;
	int r;

	import_begin_stack(o->im);
	if (!stack)
		return import_damaged(o->im,
				      "a sample names stack %" PRIu64 ", which does not exist",
				      number_of(sample, 1));
	r = each_number(o, stack, 1, push_location, NULL);
	if (r == 0)
		r = each_number(o, sample, 2, sample_attribute, &facts);
	if (r < 0)
		return r;
	process = profile_add_process(p, &o->process);
	if (process == PROFILE_NONE)
		return -ENOMEM;
	thread = (struct profile_thread){
		.process = process,
		.tid = (uint32_t)facts.tid,
		.name = strtab_put(&p->strings, facts.thread ? facts.thread : ""),
		.labels = link_labels(o, number_of(sample, 3)),
	};
	return add_samples(o, sample, profile_add_labelled_thread(p, &thread), (uint32_t)facts.cpu,
			   time);
}

static strid keep(struct otlp_file *o, const char *text)
{
	return strtab_put(&o->im->p->strings, text ? text : "");
}

static void take_fact(char **field, const char *text)
{
	if (!*field && text)
		*field = strdup(text);
}

static int profile_attribute(struct otlp_file *o, void *ctx, uint64_t index)
{
	const char *text, *key;
	uint64_t number;

	key = attribute_of(o, index, &text, &number);
	if (!key || strncmp(key, "perfwalk.", 9) != 0)
		return 0;
	if (!text && strcmp(key, "perfwalk.cpus") == 0)
		o->im->facts->n_cpus =
			o->im->facts->n_cpus ? o->im->facts->n_cpus : (uint32_t)number;
	else if (!text)
		import_counter(o->im, key + 9, number);
	else if (strcmp(key, "perfwalk.comm") == 0)
		o->process.comm = keep(o, text);
	else if (strcmp(key, "perfwalk.title") == 0)
		take_fact(&o->im->facts->title, text);
	else if (strcmp(key, "perfwalk.kernel_release") == 0)
		take_fact(&o->im->facts->kernel_release, text);
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
	const char *text = text_of(o, place, number_of(type, field));

	return text ? text : "";
}

static struct otlp_kind kind_of(struct otlp_file *o, const struct span *profile)
{
	const struct span sample_type = bytes_of(profile, 1), period_type = bytes_of(profile, 5);
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

	key = attribute_of(o, index, &text, &number);
	s->found |=
		key && text && strcmp(key, "perfwalk.event") == 0 && strcmp(text, s->wanted) == 0;
	return 0;
}

/* Our files call time "cpu", but the first Profile of a type has the name of its event. */
static bool is_of_event(struct otlp_file *o, const struct span *profile, const char *name)
{
	struct event_search s = {.wanted = name};

	return each_number(o, profile, 11, match_event, &s) == 0 && s.found;
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
								   (int64_t)number_of(profile, 6))
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

/* What is in use at one moment is no part of what is at another, as what is counted would be. */
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
	uint64_t time = number_of(profile, 3);
	struct wire_field f;
	int r;

	r = begin_profile(o, profile);
	if (r <= 0)
		return r;
	r = check_moment(o, time);
	if (r < 0)
		return r;
	/* The attributes have the name of the event; the period's type is only "cpu". */
	r = each_number(o, profile, 11, profile_attribute, NULL);
	if (r == 0)
		r = import_add_time(o->im, time, number_of(profile, 4));
	while (r == 0 && wire_read_field(&c, &f)) {
		const struct span sample = {f.bytes, f.n};

		if (f.number == 2 && f.type == WIRE_BYTES)
			r = sample_read(o, &sample, time);
	}
	return r;
}

/* ---- Resources ---- */

/* Joins namespace, pod and container, which come in any order, to one name. */
static strid join_name(struct otlp_file *o, strid name, const char *part)
{
	const char *before = profile_text(o->im->p, name);
	char text[MAX_NAME_BYTES];

	if (!*before)
		return keep(o, part);
	(void)snprintf(text, sizeof(text), "%s/%s", before, part ? part : "");
	return keep(o, text);
}

/* An attribute without a field of its own: texts, numbers and truth values. */
static void keep_attribute(struct otlp_file *o, const char *key, const char *text,
			   const struct span *value)
{
	struct cursor c = cursor_make(value->bytes, value->n);
	struct label l = {.key = key, .text = text, .unit = ""};
	struct wire_field f;
	bool known = text != NULL;

	while (!text && wire_read_field(&c, &f)) {
		known = f.type == WIRE_VARINT && (f.number == 2 || f.number == 3);
		l.number = (int64_t)f.value;
		l.unit = f.number == 2 ? "bool" : "";
	}
	if (known)
		import_keep_label(&o->said, &l, &o->said_text, &o->n_said);
}

/* Does a resource's service have a name of its own, which does not follow from the process? */
static bool is_own_name(struct otlp_file *o, const char *service)
{
	const char *path = profile_text(o->im->p, o->process.executable_path);
	const char *slash = strrchr(path, '/');

	return *service && strcmp(service, slash ? slash + 1 : path) != 0 &&
	       strcmp(service, profile_text(o->im->p, o->process.comm)) != 0 &&
	       strcmp(service, "kernel") != 0 && strcmp(service, "unknown_service") != 0;
}

static void end_resource(struct otlp_file *o, const char *service)
{
	if (is_own_name(o, service))
		import_keep_label(
			&o->said,
			&(struct label){.key = "service.name", .text = service, .unit = ""},
			&o->said_text, &o->n_said);
	if (o->said && fclose(o->said) == 0)
		o->process.attributes = strtab_put(&o->im->p->strings, o->said_text);
	free(o->said_text);
	o->said = NULL;
	o->said_text = NULL;
}

/* Attributes that all have, or that follow from others. */
static bool is_derived(const char *key)
{
	static const char *const keys[] = {"process.pid",	  "process.creation.time",
					   "service.name",	  "host.name",
					   "k8s.namespace.name",  "k8s.pod.name",
					   "k8s.container.name",  "k8s.deployment.name",
					   "k8s.replicaset.name", "os.type"};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (strcmp(key, keys[i]) == 0)
			return true;
	}
	return false;
}

static void resource_attribute(struct otlp_file *o, const struct span *attribute,
			       char service[MAX_NAME_BYTES])
{
	const struct span name = bytes_of(attribute, 1), value = bytes_of(attribute, 2);
	const struct span string = bytes_of(&value, 1);
	const char *key = keep_text(o, TEXT_RESOURCE_KEY, &name);
	const char *text = keep_text(o, TEXT_RESOURCE, &string);
	struct profile_process *p = &o->process;
	const struct {
		const char *key;
		strid *field;
	} texts[] = {
		{"process.executable.path", &p->executable_path},
		{"process.executable.name", &p->comm},
		{"process.linux.cgroup", &p->cgroup},
		{"container.id", &p->container_id},
		{"container.name", &p->container_name},
		{"container.runtime.name", &p->container_runtime},
		{"k8s.pod.uid", &p->pod_uid},
		{"systemd.unit", &p->systemd_unit},
	};

	bool known;

	if (!key)
		return;
	known = is_derived(key);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (strcmp(key, texts[i].key) == 0) {
			*texts[i].field = keep(o, text);
			known = true;
		}
	}
	if (!known)
		keep_attribute(o, key, text, &value);
	if (strcmp(key, "k8s.namespace.name") == 0 || strcmp(key, "k8s.pod.name") == 0 ||
	    strcmp(key, "k8s.container.name") == 0)
		p->container_name = join_name(o, p->container_name, text);
	if (strcmp(key, "service.name") == 0 && text)
		(void)snprintf(service, MAX_NAME_BYTES, "%s", text);
	if (strcmp(key, "process.pid") == 0)
		p->pid = (uint32_t)number_of(&value, 3);
	else if (strcmp(key, "service.name") == 0 && p->comm == STRID_EMPTY && text &&
		 strcmp(text, "unknown_service") != 0)
		p->comm = keep(o, text);
	else if (strcmp(key, "host.name") == 0)
		take_fact(&o->im->facts->host_name, text);
}

static void resource_read(struct otlp_file *o, const struct span *resource)
{
	struct cursor c = cursor_make(resource->bytes, resource->n);
	char service[MAX_NAME_BYTES] = "";
	struct wire_field f;

	o->process = (struct profile_process){0};
	while (wire_read_field(&c, &f)) {
		const struct span attribute = {f.bytes, f.n};

		if (f.number == 1 && f.type == WIRE_BYTES)
			resource_attribute(o, &attribute, service);
	}
	end_resource(o, service);
}

/* Profiles of perfwalk have counters, in the first of many; others have none. */
static int scope_read(struct otlp_file *o, const struct span *scope)
{
	const struct span facts = bytes_of(scope, 1), name = bytes_of(&facts, 1);
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
	const struct span resource = bytes_of(rp, 1);
	struct cursor c = cursor_make(rp->bytes, rp->n);
	struct wire_field f;
	int r = 0;

	resource_read(o, &resource);
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
	const struct span dictionary = bytes_of(message, 2);
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
