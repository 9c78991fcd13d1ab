/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two passes over the message for each half or dialect. The first marks the dictionary entries that
 * the samples of the half need, and what those need in turn. The second writes the message with the
 * numbers that the marked entries have once the others are gone.
 *
 * A table (rules) says which fields hold numbers of entries, and of which dictionary table. Entries
 * refer to each other in one direction only (stack, location, function, string), so following them
 * ends after a few steps whatever the bytes say. Resources and scopes are copied unchanged: we
 * write no such numbers there, since many servers do not resolve them.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "proto/otlp-merge.h"
#include "proto/otlp-rewrite.h"
#include "proto/otlp-time.h"
#include "proto/wire-read.h"
#include "util/cleanup.h"

/* Kinds of messages. The first are the dictionary's tables, by their field numbers. */
enum kind {
	MAPPING = 1,
	LOCATION,
	FUNCTION,
	LINK,
	STRING,
	ATTRIBUTE,
	STACK,
	N_TABLES,
	SAMPLE = N_TABLES,
	PROFILE,
	VALUE_TYPE,
	LINE,
	ANY_VALUE,
};

/*
 * A field that holds the number of a table's entry, or a list of them, or a message with such
 * fields.
 */
static const struct rewrite_rule {
	uint8_t kind, field, to;
} rules[] = {
	{SAMPLE, 1, STACK},	  {SAMPLE, 2, ATTRIBUTE},   {SAMPLE, 3, LINK},
	{PROFILE, 1, VALUE_TYPE}, {PROFILE, 5, VALUE_TYPE}, {PROFILE, 11, ATTRIBUTE},
	{VALUE_TYPE, 1, STRING},  {VALUE_TYPE, 2, STRING},  {STACK, 1, LOCATION},
	{LOCATION, 1, MAPPING},	  {LOCATION, 3, LINE},	    {LOCATION, 4, ATTRIBUTE},
	{LINE, 1, FUNCTION},	  {FUNCTION, 1, STRING},    {FUNCTION, 2, STRING},
	{FUNCTION, 3, STRING},	  {MAPPING, 4, STRING},	    {MAPPING, 5, ATTRIBUTE},
	{ATTRIBUTE, 1, STRING},	  {ATTRIBUTE, 3, STRING},   {ATTRIBUTE, 2, ANY_VALUE},
	{ANY_VALUE, 8, STRING},
};

/* Fields of a Profile. */
enum { SAMPLES = 2, PROFILE_ID = 7, PROFILE_ATTRIBUTES = 11 };
#define PROFILE_ID_BYTES 16
/* What it takes in a Profile. */
#define PYROSCOPE_MAX_SAMPLES 16000
/* Of ResourceProfiles. */
#define RESOURCE 1
/* Of a Link. */
#define TRACE_ID 1

/* The request, its ResourceProfiles, their ScopeProfiles: each holds the next in this field. */
static const uint32_t child_field[] = {1, 2, 2};
#define N_LEVELS ARRAY_SIZE(child_field)

struct rewrite_entry {
	const uint8_t *bytes;
	uint32_t n;
	uint32_t number; /* in the half; before that: is it marked? */
	bool omitted;	 /* an attribute that the dialect leaves out */
};

struct rewrite_table {
	struct rewrite_entry *entries;
	uint32_t n;
};

struct split {
	const uint8_t *dictionary;
	size_t n_dictionary;
	struct rewrite_table tables[N_TABLES];
	uint64_t from, to; /* the half: a range in the order of all samples */
	uint64_t at;	   /* number of the next sample */
	bool marking;
	enum otlp_dialect dialect;
	struct wire_buffer levels[N_LEVELS]; /* of the current messages: each is in the next */
	struct wire_buffer samples, message, dictionary_out;
	uint64_t earlier_ns; /* Profiles begin, and end no earlier */
};

static void split_deinit(struct split *s)
{
	for (int t = 0; t < N_TABLES; t++)
		free(s->tables[t].entries);
	for (size_t i = 0; i < N_LEVELS; i++)
		wire_buffer_deinit(&s->levels[i]);
	wire_buffer_deinit(&s->samples);
	wire_buffer_deinit(&s->message);
	wire_buffer_deinit(&s->dictionary_out);
}

static struct cursor cursor_of(const uint8_t *bytes, size_t n)
{
	return cursor_make(n ? bytes : (const uint8_t *)"", n);
}

/* --- writing ------------------------------------------------------------------------------- */

static void put_raw(struct wire_buffer *b, const uint8_t *bytes, size_t n)
{
	uint8_t *p = wire_reserve(b, n);

	if (!p || n == 0)
		return;
	memcpy(p, bytes, n);
	b->n += n;
}

static void put_varint(struct wire_buffer *b, uint64_t v)
{
	uint8_t bytes[10];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		bytes[n++] = (uint8_t)(v | 0x80);
	bytes[n++] = (uint8_t)v;
	put_raw(b, bytes, n);
}

/* --- numbers of entries -------------------------------------------------------------------- */

static int walk(struct split *s, enum kind kind, const uint8_t *bytes, size_t n,
		struct wire_buffer *out);

/* Marks an entry, or sets *ret to its number in the half. 0 or -errno. */
static int refer(struct split *s, enum kind table, uint64_t index, uint32_t *ret)
{
	struct rewrite_table *t = &s->tables[table];
	struct rewrite_entry *e;

	*ret = 0;
	if (index == 0)
		return 0;
	if (index >= t->n)
		return -EBADMSG;
	e = &t->entries[index];
	if (s->marking && !e->number) {
		e->number = 1;
		return table == STRING ? 0 : walk(s, table, e->bytes, e->n, NULL);
	}
	*ret = e->number;
	return 0;
}

static bool is_omitted(const struct split *s, enum kind table, uint64_t index)
{
	return index < s->tables[table].n && s->tables[table].entries[index].omitted;
}

static int refer_list(struct split *s, enum kind table, const struct wire_field *f,
		      struct wire_buffer *out)
{
	struct cursor c = cursor_of(f->bytes, f->n);
	size_t n = 0;
	uint32_t number;

	/* Twice, because the length comes before the bytes. */
	for (int pass = 0; pass < (out ? 2 : 1); pass++) {
		if (pass == 1)
			wire_put_prefix(out, f->number, n);
		for (c = cursor_of(f->bytes, f->n); cursor_left(&c) > 0;) {
			uint64_t index = wire_read_varint(&c);
			int r = cursor_ok(&c) ? 0 : -EBADMSG;

			if (r == 0 && is_omitted(s, table, index))
				continue;
			if (r == 0)
				r = refer(s, table, index, &number);
			if (r < 0)
				return r;
			n += wire_varint_size(number);
			if (pass == 1)
				put_varint(out, number);
		}
	}
	return 0;
}

static int follow(struct split *s, const struct rewrite_rule *rule, const struct wire_field *f,
		  struct wire_buffer *out)
{
	uint32_t number;
	int r;

	if (rule->to >= N_TABLES) {
		struct wire_buffer inner = {0};

		r = f->type == WIRE_BYTES ? walk(s, rule->to, f->bytes, f->n, out ? &inner : NULL)
					  : -EBADMSG;
		if (r == 0 && out)
			wire_put_bytes(out, f->number, inner.bytes, inner.n);
		if (inner.failed)
			r = -ENOMEM;
		wire_buffer_deinit(&inner);
		return r;
	}
	if (f->type == WIRE_BYTES)
		return refer_list(s, rule->to, f, out);
	r = f->type == WIRE_VARINT ? refer(s, rule->to, f->value, &number) : -EBADMSG;
	if (r < 0 || !out)
		return r;
	put_varint(out, f->number << 3 | WIRE_VARINT);
	put_varint(out, number);
	return 0;
}

static const struct rewrite_rule *rule_of(enum kind kind, uint32_t field)
{
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		if (rules[i].kind == kind && rules[i].field == field)
			return &rules[i];
	}
	return NULL;
}

/* Lists of values may hold numbers of strings deeper than we look; we write none. */
static bool is_known(enum kind kind, const struct wire_field *f)
{
	return kind != ANY_VALUE || (f->number != 5 && f->number != 6);
}

/* Marks what a field refers to (out NULL), or writes the field with its tag. */
static int walk_field(struct split *s, enum kind kind, const struct wire_field *f,
		      const uint8_t *begin, const uint8_t *end, struct wire_buffer *out)
{
	const struct rewrite_rule *rule = rule_of(kind, f->number);

	if (!is_known(kind, f))
		return -EBADMSG;
	if (kind == LINK && f->number == TRACE_ID && s->dialect == OTLP_PYROSCOPE)
		return 0;
	if (rule)
		return follow(s, rule, f, out);
	if (out)
		put_raw(out, begin, (size_t)(end - begin));
	return 0;
}

static int walk(struct split *s, enum kind kind, const uint8_t *bytes, size_t n,
		struct wire_buffer *out)
{
	struct cursor c = cursor_of(bytes, n);
	const uint8_t *begin = c.cur;
	struct wire_field f;

	for (; wire_read_field(&c, &f); begin = c.cur) {
		int r = walk_field(s, kind, &f, begin, c.cur, out);

		if (r < 0)
			return r;
	}
	return cursor_ok(&c) ? 0 : -EBADMSG;
}

/* --- the dictionary ------------------------------------------------------------------------ */

static int add_entries(struct split *s, bool count_only)
{
	struct cursor c = cursor_of(s->dictionary, s->n_dictionary);
	struct wire_field f;

	for (int t = 0; t < N_TABLES; t++)
		s->tables[t].n = 0;
	while (wire_read_field(&c, &f)) {
		struct rewrite_table *t = &s->tables[f.number < N_TABLES ? f.number : 0];

		if (f.number >= N_TABLES || f.type != WIRE_BYTES || f.n > UINT32_MAX ||
		    t->n == UINT32_MAX)
			return -EBADMSG;
		if (!count_only)
			t->entries[t->n] =
				(struct rewrite_entry){.bytes = f.bytes, .n = (uint32_t)f.n};
		t->n++;
	}
	return cursor_ok(&c) ? 0 : -EBADMSG;
}

static int read_dictionary(struct split *s)
{
	int r = add_entries(s, true);

	for (int t = 0; t < N_TABLES && r == 0; t++) {
		s->tables[t].entries = calloc(s->tables[t].n + 1, sizeof(struct rewrite_entry));
		if (!s->tables[t].entries)
			r = -ENOMEM;
	}
	return r < 0 ? r : add_entries(s, false);
}

static bool is_one_of(const uint8_t *bytes, size_t n, const char *const *keys, size_t n_keys)
{
	for (size_t i = 0; i < n_keys; i++) {
		if (n == strlen(keys[i]) && memcmp(bytes, keys[i], n) == 0)
			return true;
	}
	return false;
}

/* Marks the attributes of samples that differ between threads and traces of a program. */
static void omit_details(struct split *s)
{
	static const char *const keys[] = {"thread.id", "thread.name", "cpu.logical_number",
					   "trace_id"};
	const struct rewrite_table *strings = &s->tables[STRING];

	for (uint32_t i = 1; i < s->tables[ATTRIBUTE].n; i++) {
		struct rewrite_entry *e = &s->tables[ATTRIBUTE].entries[i];
		struct cursor c = cursor_of(e->bytes, e->n);
		struct wire_field f;

		while (wire_read_field(&c, &f)) {
			if (f.number == 1 && f.type == WIRE_VARINT && f.value < strings->n)
				e->omitted = is_one_of(strings->entries[f.value].bytes,
						       strings->entries[f.value].n, keys,
						       ARRAY_SIZE(keys));
		}
	}
}

static void clear_marks(struct split *s)
{
	for (int t = 0; t < N_TABLES; t++) {
		for (uint32_t i = 0; i < s->tables[t].n; i++)
			s->tables[t].entries[i].number = 0;
	}
}

/* How many copies of a table's entries are written. */
static uint32_t copies(const struct split *s, int table)
{
	return table == FUNCTION && s->dialect == OTLP_PARCA ? 2 : 1;
}

/*
 * Numbers the marked entries in the old order; the last of several copies counts. Entry 0, the zero
 * value, stays.
 */
static void number_entries(struct split *s)
{
	for (int t = 0; t < N_TABLES; t++) {
		uint32_t n_copies = copies(s, t), last = 0;

		for (uint32_t i = 1; i < s->tables[t].n; i++) {
			struct rewrite_entry *e = &s->tables[t].entries[i];

			if (e->number)
				e->number = last += n_copies;
		}
	}
}

static int write_dictionary(struct split *s)
{
	wire_buffer_clear(&s->dictionary_out);
	for (uint32_t t = 1; t < N_TABLES; t++) {
		for (uint32_t i = 0; i < s->tables[t].n; i++) {
			const struct rewrite_entry *e = &s->tables[t].entries[i];
			int r;

			if (i > 0 && !e->number)
				continue;
			wire_buffer_clear(&s->message);
			if (t == STRING)
				put_raw(&s->message, e->bytes, e->n);
			r = t == STRING ? 0 : walk(s, t, e->bytes, e->n, &s->message);
			if (r < 0)
				return r;
			if (!wire_buffer_ok(&s->message))
				return -ENOMEM;
			for (uint32_t copy = i == 0 ? 1 : copies(s, (int)t); copy > 0; copy--)
				wire_put_bytes(&s->dictionary_out, t, s->message.bytes,
					       s->message.n);
		}
	}
	return wire_buffer_ok(&s->dictionary_out) ? 0 : -ENOMEM;
}

/* --- samples and what is around them ------------------------------------------------------- */

/*
 * Handles the samples of a Profile that are in the half. > 0: there are some; *ret_whole: none of
 * its samples came before the half.
 */
static int put_samples(struct split *s, const struct wire_field *profile, bool *ret_whole)
{
	struct cursor c = cursor_of(profile->bytes, profile->n);
	struct wire_field f;
	int any = 0;

	*ret_whole = s->at >= s->from;
	wire_buffer_clear(&s->samples);
	while (wire_read_field(&c, &f)) {
		int r;

		if (f.number != SAMPLES)
			continue;
		if (f.type != WIRE_BYTES)
			return -EBADMSG;
		s->at++;
		if (s->at <= s->from || s->at > s->to)
			continue;
		any = 1;
		wire_buffer_clear(&s->message);
		r = walk(s, SAMPLE, f.bytes, f.n, s->marking ? NULL : &s->message);
		if (r < 0)
			return r;
		if (s->message.failed)
			return -ENOMEM;
		if (!s->marking)
			wire_put_bytes(&s->samples, SAMPLES, s->message.bytes, s->message.n);
	}
	return cursor_ok(&c) ? any : -EBADMSG;
}

/* Where a Profile is cut, the second part is another Profile: it has an id of its own, and does not
 * repeat what the first says about the whole. */
static void put_profile_id(struct wire_buffer *out)
{
	uint8_t id[PROFILE_ID_BYTES];

	if (getrandom(id, sizeof(id), GRND_NONBLOCK) == (ssize_t)sizeof(id))
		wire_put_bytes(out, PROFILE_ID, id, sizeof(id));
}

static int put_profile(struct split *s, const struct wire_field *profile, struct wire_buffer *out)
{
	struct cursor c = cursor_of(profile->bytes, profile->n);
	const uint8_t *begin = c.cur;
	struct otlp_time time = {0};
	struct wire_field f;
	bool whole;
	int r = put_samples(s, profile, &whole);

	if (r <= 0)
		return r;
	wire_buffer_clear(out);
	for (; wire_read_field(&c, &f); begin = c.cur) {
		if (f.number == SAMPLES ||
		    (!whole && (f.number == PROFILE_ID || f.number == PROFILE_ATTRIBUTES)))
			continue;
		if (s->earlier_ns && otlp_time_take(&f, &time))
			continue;
		r = walk_field(s, PROFILE, &f, begin, c.cur, s->marking ? NULL : out);
		if (r < 0)
			return r;
	}
	if (!whole && !s->marking)
		put_profile_id(out);
	if (s->earlier_ns && !s->marking)
		otlp_time_put(out, &time, s->earlier_ns);
	put_raw(out, s->samples.bytes, s->samples.n);
	return s->samples.failed ? -ENOMEM : 1;
}

/* Is this an attribute that differs between processes of a program? */
static bool is_of_process(const struct wire_field *attribute)
{
	static const char *const keys[] = {"process.pid", "process.creation.time"};
	struct cursor c = cursor_of(attribute->bytes, attribute->n);
	struct wire_field f;

	while (wire_read_field(&c, &f)) {
		if (f.number == 1 && f.type == WIRE_BYTES &&
		    is_one_of(f.bytes, f.n, keys, ARRAY_SIZE(keys)))
			return true;
	}
	return false;
}

/* Writes a Resource without these attributes. */
static int put_resource(struct split *s, const struct wire_field *resource, struct wire_buffer *out)
{
	struct cursor c = cursor_of(resource->bytes, resource->n);
	const uint8_t *begin = c.cur;
	struct wire_field f;

	wire_buffer_clear(&s->message);
	for (; wire_read_field(&c, &f); begin = c.cur) {
		if (f.number != 1 || f.type != WIRE_BYTES || !is_of_process(&f))
			put_raw(&s->message, begin, (size_t)(c.cur - begin));
	}
	if (!cursor_ok(&c))
		return -EBADMSG;
	wire_put_bytes(out, RESOURCE, s->message.bytes, s->message.n);
	return s->message.failed ? -ENOMEM : 0;
}

/* Copies a field, unless the dialect has it otherwise. */
static int put_other(struct split *s, size_t level, const struct wire_field *f,
		     const uint8_t *begin, const uint8_t *end, struct wire_buffer *out)
{
	if (level == 0 || s->marking)
		return 0;
	if (level == 1 && f->number == RESOURCE && f->type == WIRE_BYTES &&
	    s->dialect == OTLP_PYROSCOPE)
		return put_resource(s, f, out);
	put_raw(out, begin, (size_t)(end - begin));
	return 0;
}

/* > 0: a part of it is in the half. */
static int put_level(struct split *s, size_t level, const struct wire_field *in,
		     struct wire_buffer *out)
{
	struct cursor c = cursor_of(in->bytes, in->n);
	struct wire_buffer *inner = &s->levels[level];
	const uint8_t *begin = c.cur;
	struct wire_field f;
	int any = 0;

	wire_buffer_clear(out);
	for (; wire_read_field(&c, &f); begin = c.cur) {
		int r;

		if (f.number != child_field[level]) {
			r = put_other(s, level, &f, begin, c.cur, out);
			if (r < 0)
				return r;
			continue;
		}
		if (f.type != WIRE_BYTES)
			return -EBADMSG;
		r = level + 1 < N_LEVELS ? put_level(s, level + 1, &f, inner)
					 : put_profile(s, &f, inner);
		if (r < 0)
			return r;
		if (inner->failed)
			return -ENOMEM;
		if (r > 0 && !s->marking)
			wire_put_bytes(out, f.number, inner->bytes, inner->n);
		any |= r;
	}
	return cursor_ok(&c) ? any : -EBADMSG;
}

static int make_half(struct split *s, const struct wire_field *request, struct wire_buffer *out)
{
	int r;

	clear_marks(s);
	s->marking = true;
	s->at = 0;
	r = put_level(s, 0, request, out);
	if (r < 0)
		return r;
	number_entries(s);
	s->marking = false;
	s->at = 0;
	r = put_level(s, 0, request, out);
	if (r >= 0)
		r = write_dictionary(s);
	if (r < 0)
		return r;
	wire_put_bytes(out, 2, s->dictionary_out.bytes, s->dictionary_out.n);
	return wire_buffer_ok(out) ? 0 : -ENOMEM;
}

/* --- where to cut -------------------------------------------------------------------------- */

struct measure {
	uint64_t n, bytes, count;      /* samples, their bytes, the events they stand for */
	uint64_t until_bytes, until_n; /* stop after so many */
};

/* The number of events that a Sample stands for. */
static uint64_t count_of(const struct wire_field *sample)
{
	struct cursor c = cursor_of(sample->bytes, sample->n);
	uint64_t n_stamps = 0, value = 0;
	struct wire_field f;

	while (wire_read_field(&c, &f)) {
		struct cursor list = cursor_of(f.bytes, f.n);

		if (f.number == 5)
			n_stamps += f.type == WIRE_BYTES ? f.n / sizeof(uint64_t) : 1;
		else if (f.number == 4 && f.type == WIRE_VARINT)
			value += f.value;
		for (; f.number == 4 && cursor_left(&list) > 0;)
			value += wire_read_varint(&list);
	}
	return n_stamps ? n_stamps : value;
}

static int measure_level(struct measure *m, size_t level, const struct wire_field *in)
{
	uint32_t field = level < N_LEVELS ? child_field[level] : SAMPLES;
	struct cursor c = cursor_of(in->bytes, in->n);
	struct wire_field f;

	while (m->bytes < m->until_bytes && m->n < m->until_n && wire_read_field(&c, &f)) {
		if (f.number != field)
			continue;
		if (f.type != WIRE_BYTES)
			return -EBADMSG;
		if (level < N_LEVELS) {
			int r = measure_level(m, level + 1, &f);

			if (r < 0)
				return r;
			continue;
		}
		m->n++;
		m->bytes += f.n;
		m->count += count_of(&f);
	}
	return cursor_ok(&c) ? 0 : -EBADMSG;
}

static int find_dictionary(struct split *s, const uint8_t *bytes, size_t n)
{
	struct cursor c = cursor_of(bytes, n);
	struct wire_field f;

	while (wire_read_field(&c, &f)) {
		if (f.number != 2)
			continue;
		if (f.type != WIRE_BYTES || s->dictionary)
			return -EBADMSG;
		s->dictionary = f.bytes;
		s->n_dictionary = f.n;
	}
	return cursor_ok(&c) ? 0 : -EBADMSG;
}

int otlp_adapt(const uint8_t *bytes, size_t n, enum otlp_dialect dialect, struct wire_buffer *ret)
{
	_cleanup_(split_deinit) struct split s = {.dialect = dialect, .to = UINT64_MAX};
	_cleanup_(wire_buffer_deinit) struct wire_buffer apart = {0};
	struct wire_field request = {.bytes = bytes, .n = n};
	int r = find_dictionary(&s, bytes, n);

	if (r == 0)
		r = read_dictionary(&s);
	if (r < 0 || dialect != OTLP_PYROSCOPE)
		return r < 0 ? r : make_half(&s, &request, ret);
	omit_details(&s);
	r = make_half(&s, &request, &apart);
	return r < 0 ? r : otlp_merge(apart.bytes, apart.n, PYROSCOPE_MAX_SAMPLES, ret);
}

/* The second half's. */
static uint64_t earlier_of(uint32_t n_halvings)
{
	return n_halvings < OTLP_MAX_HALVINGS ? OTLP_REQUEST_NS >> (n_halvings + 1) : 0;
}

int otlp_split(const uint8_t *bytes, size_t n, uint32_t n_halvings, struct otlp_half ret[2])
{
	_cleanup_(split_deinit) struct split s = {0};
	struct wire_field request = {.bytes = bytes, .n = n};
	struct measure all = {.until_bytes = UINT64_MAX, .until_n = UINT64_MAX}, first;
	int r = find_dictionary(&s, bytes, n);

	if (r == 0)
		r = measure_level(&all, 0, &request);
	if (r < 0)
		return r;
	if (all.n < 2 || all.bytes < 2)
		return -ENODATA;
	first = (struct measure){.until_bytes = all.bytes / 2, .until_n = all.n - 1};
	(void)measure_level(&first, 0, &request);
	r = read_dictionary(&s);
	for (int i = 0; i < 2 && r == 0; i++) {
		s.from = i == 0 ? 0 : first.n;
		s.to = i == 0 ? first.n : all.n;
		s.earlier_ns = i == 0 ? 0 : earlier_of(n_halvings);
		ret[i].n_samples = i == 0 ? first.count : all.count - first.count;
		r = make_half(&s, &request, &ret[i].bytes);
	}
	return r;
}
