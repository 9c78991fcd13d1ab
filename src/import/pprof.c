/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof. Tables and samples may come in any order, and refer to each other by any ids. A first pass
 * notes where each entry is; a second one reads the samples and makes a frame of a location when it
 * is first used.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/import/pprof-internal.h"
#include "src/profile/labels.h"
#include "util/cleanup.h"
#include "util/text.h"

/* Field numbers of Profile. */
enum {
	F_SAMPLE_TYPE = 1,
	F_SAMPLE,
	F_MAPPING,
	F_LOCATION,
	F_FUNCTION,
	F_STRING,
	F_DROP_FRAMES,
	F_KEEP_FRAMES,
	F_TIME,
	F_DURATION,
	F_PERIOD_TYPE,
	F_PERIOD,
	F_COMMENT,
	F_DEFAULT_TYPE
};

/* ---- The tables ---- */

static uint64_t first_number(const uint8_t *bytes, size_t n, uint32_t number)
{
	struct cursor c = cursor_make(bytes, n);
	struct wire_field f;

	while (wire_read_field(&c, &f))
		if (f.number == number && f.type == WIRE_VARINT)
			return f.value;
	return 0;
}

static int table_add(struct pprof_table *t, const struct wire_field *f)
{
	struct pprof_entry *e = array_push(&t->items);

	if (!e)
		return -ENOMEM;
	*e = (struct pprof_entry){first_number(f->bytes, f->n, 1), f->bytes, f->n, PROFILE_NONE, 0};
	return hash_index_add(&t->index, hash_u64(e->id), t->items.n - 1);
}

static struct pprof_entry *table_find(struct pprof_table *t, uint64_t id)
{
	uint32_t slot = hash_index_first(&t->index, hash_u64(id)), row;

	while ((row = hash_index_row(&t->index, slot)) != HASH_INDEX_NONE) {
		if (t->items.items[row].id == id)
			return &t->items.items[row];
		slot = hash_index_next(&t->index, slot);
	}
	return NULL;
}

static void table_deinit(struct pprof_table *t)
{
	array_deinit(&t->items);
	hash_index_deinit(&t->index);
}

/* A string as text, in one of a few buffers; NULL: none, or empty. */
static const char *text_of(struct pprof_file *pp, unsigned int place, uint64_t index)
{
	const struct pprof_entry *e;

	if (index == 0 || index >= pp->strings.n)
		return NULL;
	e = &pp->strings.items[index];
	free(pp->texts[place]);
	pp->texts[place] = strndup((const char *)e->bytes, e->n);
	return pp->texts[place] && *pp->texts[place] ? pp->texts[place] : NULL;
}

static int string_add(struct pprof_file *pp, const struct wire_field *f)
{
	struct pprof_entry *e = array_push(&pp->strings);

	if (!e)
		return -ENOMEM;
	*e = (struct pprof_entry){.bytes = f->bytes, .n = f->n};
	return 0;
}

static void type_read(const struct wire_field *f, struct pprof_type *ret)
{
	ret->name_index = first_number(f->bytes, f->n, 1);
	ret->unit_index = first_number(f->bytes, f->n, 2);
}

static void comments_add(struct pprof_file *pp, const struct wire_field *f)
{
	struct cursor c = cursor_make(f->bytes, f->n);

	if (f->type == WIRE_VARINT && pp->n_comments < PPROF_MAX_COMMENTS)
		pp->comments[pp->n_comments++] = f->value;
	while (f->type == WIRE_BYTES && cursor_left(&c) > 0 && pp->n_comments < PPROF_MAX_COMMENTS)
		pp->comments[pp->n_comments++] = wire_read_varint(&c);
}

static int field_read(struct pprof_file *pp, const struct wire_field *f)
{
	bool nested = f->type == WIRE_BYTES;

	switch (f->number) {
	case F_SAMPLE_TYPE:
		if (nested && pp->n_types < PPROF_MAX_TYPES)
			type_read(f, &pp->types[pp->n_types++]);
		return 0;
	case F_MAPPING:
		return nested ? table_add(&pp->mappings, f) : 0;
	case F_LOCATION:
		return nested ? table_add(&pp->locations, f) : 0;
	case F_FUNCTION:
		return nested ? table_add(&pp->functions, f) : 0;
	case F_STRING:
		return nested ? string_add(pp, f) : 0;
	case F_DROP_FRAMES:
		pp->drop_index = f->value;
		return 0;
	case F_KEEP_FRAMES:
		pp->keep_index = f->value;
		return 0;
	case F_TIME:
		pp->time = f->value;
		return 0;
	case F_DURATION:
		pp->duration = f->value;
		return 0;
	case F_PERIOD_TYPE:
		if (nested)
			type_read(f, &pp->period_type);
		return 0;
	case F_PERIOD:
		pp->period = f->value;
		return 0;
	case F_COMMENT:
		comments_add(pp, f);
		return 0;
	case F_DEFAULT_TYPE:
		pp->default_index = f->value;
		return 0;
	default:
		return 0;
	}
}

/* ---- Frames ---- */

struct line_numbers {
	uint64_t function, line, column;
};

static void function_read(struct pprof_file *pp, uint64_t id, struct import_line *ret, char **texts)
{
	const struct pprof_entry *e = table_find(&pp->functions, id);
	const char *text;

	if (!e)
		return;
	for (int i = 0; i < 3; i++) /* of one before that had no name */
		free(texts[i]);
	text = text_of(pp, 0, first_number(e->bytes, e->n, 2));
	ret->name = texts[0] = text ? strdup(text) : NULL;
	text = text_of(pp, 0, first_number(e->bytes, e->n, 3));
	ret->system_name = texts[1] = text ? strdup(text) : NULL;
	text = text_of(pp, 0, first_number(e->bytes, e->n, 4));
	ret->file = texts[2] = text ? strdup(text) : NULL;
	ret->start_line = (uint32_t)first_number(e->bytes, e->n, 5);
	if (!ret->name)
		ret->name = ret->system_name;
}

static void mapping_read(struct pprof_file *pp, uint64_t id, struct import_frame *ret)
{
	const struct pprof_entry *e = id ? table_find(&pp->mappings, id) : NULL;

	if (!e)
		return;
	ret->memory_start = first_number(e->bytes, e->n, 2);
	ret->memory_limit = first_number(e->bytes, e->n, 3);
	ret->file_offset = first_number(e->bytes, e->n, 4);
	ret->module = text_of(pp, 1, first_number(e->bytes, e->n, 5));
	ret->build_id = text_of(pp, 2, first_number(e->bytes, e->n, 6));
	import_set_kind(ret);
}

/* The outermost function that is dropped takes those inlined into it with it. */
static enum pprof_pruned prune_lines(const struct pprof_file *pp, struct import_frame *f)
{
	for (uint32_t i = f->n; i-- > 0;) {
		if (!pprof_prune_drops(&pp->prune, f->lines[i].name))
			continue;
		if (i + 1 == f->n)
			return PPROF_PRUNED;
		f->lines += i + 1;
		f->n -= i + 1;
		return PPROF_PRUNED_BENEATH;
	}
	return PPROF_NOT_PRUNED;
}

static uint32_t location_frame(struct pprof_file *pp, struct pprof_entry *location)
{
	struct import_line lines[IMPORT_MAX_CHAIN + 1] = {0};
	char *texts[3 * (IMPORT_MAX_CHAIN + 1)] = {NULL};
	struct import_frame frame = {.kind = PROFILE_MODULE_FILE, .lines = lines};
	struct cursor c = cursor_make(location->bytes, location->n);
	struct wire_field f;

	while (wire_read_field(&c, &f)) {
		if (f.number == 2 && f.type == WIRE_VARINT)
			mapping_read(pp, f.value, &frame);
		else if (f.number == 3 && f.type == WIRE_VARINT)
			frame.address = f.value;
		if (f.number != 4 || f.type != WIRE_BYTES)
			continue;
		/* Of too many lines the last is the outermost function. */
		if (frame.n > IMPORT_MAX_CHAIN)
			frame.n--;
		lines[frame.n].line = (uint32_t)first_number(f.bytes, f.n, 2);
		lines[frame.n].column = (uint32_t)first_number(f.bytes, f.n, 3);
		function_read(pp, first_number(f.bytes, f.n, 1), &lines[frame.n],
			      texts + 3 * frame.n);
		if (lines[frame.n].name)
			frame.n++;
	}
	if (frame.n == 1 && import_is_marker(lines[0].name, &frame.address))
		frame.kind = PROFILE_MODULE_MARKER;
	location->pruned = pp->prune.on ? prune_lines(pp, &frame) : PPROF_NOT_PRUNED;
	location->frame = import_add_frame(pp->im, &frame);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		free(texts[i]);
	return location->frame;
}

static int push_location(struct pprof_file *pp, uint64_t id)
{
	struct pprof_entry *e = table_find(&pp->locations, id);
	uint8_t *pruned;

	if (!e)
		return import_damaged(
			pp->im, "a sample names location %" PRIu64 ", which is not there", id);
	if (e->frame == PROFILE_NONE && location_frame(pp, e) == PROFILE_NONE)
		return -ENOMEM;
	pruned = pp->prune.on ? array_push(&pp->pruned) : NULL;
	if (pruned)
		*pruned = e->pruned;
	return pp->prune.on && !pruned ? -ENOMEM : import_push(pp->im, e->frame);
}

/*
 * Going from the root to the leaf, drops the first function that matches drop_frames after one that
 * does not, with its callees.
 */
static void prune_stack(struct pprof_file *pp)
{
	bool found_other = false;

	for (uint32_t i = pp->pruned.n; i-- > 0;) {
		if (pp->pruned.items[i] == PPROF_NOT_PRUNED) {
			found_other = true;
		} else if (found_other) {
			import_drop_leaves(pp->im, pp->pruned.items[i] == PPROF_PRUNED ? i + 1 : i);
			return;
		}
	}
}

/* ---- Samples ---- */

struct sample_labels {
	strid comm, thread, container, container_name, unit;
	uint64_t pid, tid;
	FILE *others; /* NULL: no other labels */
	char *others_text;
	size_t n_others;
	FILE *said; /* of the process */
	char *said_text;
	size_t n_said;
};

/* The field for a label that perfwalk writes, too; NULL: a label of others. */
static strid *known_text(struct sample_labels *l, const char *key)
{
	const struct {
		const char *key;
		strid *field;
	} known[] = {
		{"comm", &l->comm},	      {"thread", &l->thread},
		{"container", &l->container}, {"container_name", &l->container_name},
		{"unit", &l->unit},
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strcmp(key, known[i].key) == 0)
			return known[i].field;
	return NULL;
}

static void take_label(struct pprof_file *pp, const struct wire_field *f, struct sample_labels *l)
{
	const char *unit;
	struct label label = {
		.key = text_of(pp, 3, first_number(f->bytes, f->n, 1)),
		.text = text_of(pp, 4, first_number(f->bytes, f->n, 2)),
		.number = (int64_t)first_number(f->bytes, f->n, 3),
	};

	unit = text_of(pp, 5, first_number(f->bytes, f->n, 4));
	label.unit = unit ? unit : "";
	if (!label.key)
		return;
	if (label.text && known_text(l, label.key))
		*known_text(l, label.key) = import_text(pp->im, label.text);
	else if (!label.text && strcmp(label.key, "pid") == 0)
		l->pid = (uint64_t)label.number;
	else if (!label.text && strcmp(label.key, "tid") == 0)
		l->tid = (uint64_t)label.number;
	else if (label.text && label_names_service(label.key))
		import_keep_label(&l->said, &label, &l->said_text, &l->n_said);
	else
		import_keep_label(&l->others, &label, &l->others_text, &l->n_others);
}

/* Ends a text of labels, if there is one: true, and *ret is it. */
static bool close_text(struct pprof_file *pp, FILE **out, char **text, strid *ret)
{
	bool ok;

	if (!*out)
		return true;
	ok = fclose(*out) == 0;
	*out = NULL;
	*ret = ok ? strtab_put(&pp->im->p->strings, *text) : STRID_EMPTY;
	return *ret != STRID_EMPTY;
}

/* Ends the labels of a sample; returns the row of its thread. */
static uint32_t thread_row(struct pprof_file *pp, struct sample_labels *l)
{
	struct profile *p = pp->im->p;
	strid said = STRID_EMPTY;
	bool ok = close_text(pp, &l->said, &l->said_text, &said);
	struct profile_process process = {
		.pid = (uint32_t)l->pid,
		.attributes = said,
		.comm = l->comm,
		.container_id = l->container,
		.container_name = l->container_name,
		.systemd_unit = l->unit,
	};
	struct profile_thread t = {.process = profile_add_process(p, &process),
				   .tid = (uint32_t)l->tid,
				   .name = l->thread != STRID_EMPTY ? l->thread : l->comm};

	ok &= t.process != PROFILE_NONE && close_text(pp, &l->others, &l->others_text, &t.labels);
	return ok ? profile_add_labelled_thread(p, &t) : PROFILE_NONE;
}

static void labels_deinit(struct sample_labels *l)
{
	if (l->others)
		(void)fclose(l->others);
	if (l->said)
		(void)fclose(l->said);
	free(l->others_text);
	free(l->said_text);
}

/* Calls fn for each number of a repeated field, packed or not. */
static int each_number(struct pprof_file *pp, const struct wire_field *f,
		       int (*fn)(struct pprof_file *pp, uint64_t value))
{
	struct cursor c = cursor_make(f->bytes, f->n);
	int r = 0;

	if (f->type == WIRE_VARINT)
		return fn(pp, f->value);
	while (f->type == WIRE_BYTES && cursor_left(&c) > 0 && r == 0) {
		uint64_t value = wire_read_varint(&c);

		r = cursor_ok(&c) ? fn(pp, value)
				  : import_damaged(pp->im, "a list of numbers is damaged");
	}
	return r;
}

static int sample_read(struct pprof_file *pp, void *ctx, const struct wire_field *sample)
{
	struct cursor c = cursor_make(sample->bytes, sample->n);
	struct sample_labels labels = {.others = NULL};
	int64_t values[PPROF_MAX_TYPES];
	struct wire_field f;
	int r = 0;

	import_begin_stack(pp->im);
	array_clear(&pp->pruned);
	while (r == 0 && wire_read_field(&c, &f)) {
		if (f.number == 1)
			r = each_number(pp, &f, push_location);
		else if (f.number == 3 && f.type == WIRE_BYTES)
			take_label(pp, &f, &labels);
	}
	if (r == 0 && !cursor_ok(&c))
		r = import_damaged(pp->im, "a sample is damaged");
	prune_stack(pp);
	pprof_read_values(pp, sample, values);
	if (r == 0 && values[pp->chosen])
		r = import_add_sample(pp->im, thread_row(pp, &labels), values[pp->chosen],
				      pp->samples < pp->n_types ? values[pp->samples] : 0, pp->time,
				      0);
	labels_deinit(&labels);
	return r;
}

/* ---- The file ---- */

static char *copy_of(struct pprof_file *pp, uint64_t index)
{
	const char *text = text_of(pp, 0, index);

	return text ? strdup(text) : NULL;
}

static void name_type(struct pprof_file *pp, struct pprof_type *t)
{
	t->name = copy_of(pp, t->name_index);
	t->unit = copy_of(pp, t->unit_index);
}

static void free_type(struct pprof_type *t)
{
	free(t->name);
	free(t->unit);
}

static int prune_begin(struct pprof_file *pp)
{
	_cleanup_free_ char *drop = copy_of(pp, pp->drop_index);
	_cleanup_free_ char *keep = copy_of(pp, pp->keep_index);
	const char *bad = "";
	int r = pprof_prune_init(&pp->prune, drop, keep, &bad);

	return r == -EINVAL ? import_damaged(pp->im,
					     "the expression of its drop_frames or keep_frames "
					     "cannot be applied here: %.300s",
					     bad)
			    : r;
}

/* Our files call time "cpu"; a comment for each kind has the name of the event. */
static uint32_t find_event_kind(struct pprof_file *pp)
{
	char name[IMPORT_EVENT_MAX];
	uint32_t kind = 0, rate_hz;

	for (uint32_t i = 0; i < pp->n_comments && pp->im->event; i++) {
		const char *text = text_of(pp, 0, pp->comments[i]);

		if (!text || !import_comment_event(text, name, &rate_hz))
			continue;
		if (strcmp(name, pp->im->event) == 0)
			return kind;
		kind++;
	}
	return UINT32_MAX;
}

/* 1: the file has values to read. */
static int head_take(struct pprof_file *pp)
{
	const char *text;
	int r;

	for (uint32_t i = 0; i < pp->n_types; i++)
		name_type(pp, &pp->types[i]);
	name_type(pp, &pp->period_type);
	pp->default_type = copy_of(pp, pp->default_index);
	pp->event_kind = find_event_kind(pp);
	r = prune_begin(pp);
	if (r == 0)
		r = pprof_choose_values(pp);
	if (r <= 0)
		return r;
	for (uint32_t i = 0; i < pp->n_comments; i++) {
		text = text_of(pp, 0, pp->comments[i]);
		if (text)
			import_comment(pp->im, text);
	}
	return import_add_time(pp->im, pp->time, pp->duration) < 0 ? -ENOMEM : 1;
}

static int read_tables(struct pprof_file *pp)
{
	struct cursor c = cursor_make(pp->bytes, pp->n);
	struct wire_field f;
	int r = 0;

	while (r == 0 && wire_read_field(&c, &f))
		r = field_read(pp, &f);
	return r == 0 && !cursor_ok(&c) ? pprof_damaged_at(pp, &c) : r;
}

int import_read_pprof(struct import *im, const uint8_t *bytes, size_t n)
{
	struct pprof_file pp = {.im = im, .bytes = bytes, .n = n};
	int r;

	pp.strings.max = pp.mappings.items.max = pp.locations.items.max = pp.functions.items.max =
		pp.pruned.max = UINT32_MAX / 2;
	r = read_tables(&pp);
	if (r == 0 && pp.n_types == 0)
		r = import_damaged(im, "it is not a pprof file: it has no sample type");
	if (r == 0)
		r = head_take(&pp);
	if (r > 0)
		r = pprof_each_sample(&pp, sample_read, NULL);
	table_deinit(&pp.mappings);
	table_deinit(&pp.locations);
	table_deinit(&pp.functions);
	array_deinit(&pp.strings);
	array_deinit(&pp.pruned);
	pprof_prune_deinit(&pp.prune);
	for (uint32_t i = 0; i < pp.n_types; i++)
		free_type(&pp.types[i]);
	free_type(&pp.period_type);
	free(pp.default_type);
	for (size_t i = 0; i < sizeof(pp.texts) / sizeof(pp.texts[0]); i++)
		free(pp.texts[i]);
	return r;
}
