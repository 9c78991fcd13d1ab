/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structs are those of runtime/runtime2.go; the labels those of runtime/pprof/label.go: up to
 * 1.23 a map (runtime/map.go), then a sorted list.
 */
#include <stdio.h>

#include "runtimes/go.h"

enum {
	G_THREAD = 48, /* g.m */
	LEFT_OUT = 8,  /* in labels as bytes */
	MAX_STRUCT = 384,
	MAX_LABELS = 16, /* more are left out */
	MAX_LISTED = 1 << 16,
	MAX_BUCKETS = 4,
	BUCKET_LABELS = 8,
	N_STRING = 16, /* address and length */
};
_Static_assert(GO_TEXTS_BYTES < 4096, "one read takes two pages at most");

static const struct {
	uint32_t version; /* the first with that layout */
	struct go_layout layout;
} layouts[] = {
	{26, {64, 184, 352, 152, true}},  {25, {64, 184, 344, 152, true}},
	{24, {72, 192, 352, 160, true}},  {23, {72, 192, 352, 160, false}},
	{21, {72, 192, 344, 152, false}}, {17, {72, 192, 360, 152, false}},
};

enum { NEWEST = 26 };

bool go_layout_find(uint32_t version, struct go_layout *ret)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		if (version < layouts[i].version || version > NEWEST)
			continue;
		*ret = layouts[i].layout;
		return true;
	}
	return false;
}

uint32_t go_version_of(const char *version)
{
	struct go_layout layout;
	unsigned int minor;

	return sscanf(version, "go1.%u", &minor) == 1 && go_layout_find(minor, &layout) ? minor : 0;
}

/* ---- Threads ---- */

static bool is_struct(uint64_t address)
{
	return address >= 4096 && address % 8 == 0;
}

uint64_t go_thread_of(struct memory *m, const struct go_layout *l, uint64_t goroutine,
		      uint32_t number)
{
	uint64_t thread = is_struct(goroutine) ? memory_u64(m, goroutine + G_THREAD) : 0;

	return is_struct(thread) && memory_u64(m, thread + l->number) == number ? thread : 0;
}

/* The thread's current goroutine; 0: none. */
static bool read_thread(struct memory *m, const struct go_layout *l, uint64_t thread,
			uint32_t number, uint64_t *ret)
{
	uint8_t part[MAX_STRUCT];
	uint64_t own;
	size_t n = (size_t)l->current - l->number;

	if (!memory_read(m, thread + l->number, part, n + sizeof(*ret)))
		return false;
	memcpy(&own, part, sizeof(own));
	memcpy(ret, part + n, sizeof(*ret));
	return own == number;
}

bool go_goroutine_at(struct memory *m, const struct go_layout *l, uint64_t goroutine,
		     uint64_t thread, struct go_goroutine *ret)
{
	uint8_t part[MAX_STRUCT];
	uint64_t its;

	if (!is_struct(goroutine) ||
	    !memory_read(m, goroutine + G_THREAD, part, (size_t)l->labels - G_THREAD + sizeof(its)))
		return false;
	ret->address = goroutine;
	memcpy(&its, part, sizeof(its));
	memcpy(&ret->number, part + l->goroutine - G_THREAD, sizeof(ret->number));
	memcpy(&ret->labels, part + l->labels - G_THREAD, sizeof(ret->labels));
	if (!is_struct(ret->labels))
		ret->labels = 0;
	return its == thread && ret->number != 0;
}

enum go_answer go_goroutine_of(struct memory *m, const struct go_layout *l, uint64_t thread,
			       uint32_t number, struct go_goroutine *ret)
{
	uint64_t goroutine;

	if (!read_thread(m, l, thread, number, &goroutine))
		return GO_OTHER_THREAD;
	return go_goroutine_at(m, l, goroutine, thread, ret) ? GO_FOUND : GO_NONE;
}

/* ---- Labels ---- */

struct reading {
	struct memory *memory;
	uint8_t *bytes;
	uint32_t n, n_labels;
	uint64_t n_kept;
	/* Values that were read together. */
	uint64_t texts_at;
	uint32_t n_texts; /* bytes */
	uint8_t texts[GO_TEXTS_BYTES];
};

/* Is the value within GO_TEXTS_BYTES of [*start, *end)? Then it becomes a part of that. */
static bool add_to_texts(const uint64_t value[2], uint64_t *start, uint64_t *end)
{
	uint64_t first = value[0] < *start ? value[0] : *start, last;

	if (!value[1] || value[1] > GO_TEXTS_BYTES || value[0] > INT64_MAX)
		return false;
	last = value[0] + value[1] > *end ? value[0] + value[1] : *end;
	if (last - first > GO_TEXTS_BYTES)
		return false;
	*start = first;
	*end = last;
	return true;
}

static bool has_text(const struct reading *r, const uint64_t value[2])
{
	return value[0] >= r->texts_at && value[1] <= r->n_texts &&
	       value[0] - r->texts_at <= r->n_texts - value[1];
}

/* Go's allocator puts texts of the same size beside each other, such as the ids of a span and of
 * its root: one read takes the first of these values with those that follow, if they are close. */
static void read_texts(struct reading *r, uint64_t pairs[][4], uint64_t n)
{
	uint64_t start = pairs[0][2], end = start;
	int n_texts = add_to_texts(&pairs[0][2], &start, &end);

	if (!n_texts || has_text(r, &pairs[0][2]))
		return;
	for (uint64_t i = 1; i < n; i++)
		n_texts += add_to_texts(&pairs[i][2], &start, &end);
	r->n_texts = 0;
	if (n_texts > 1 && memory_read(r->memory, start, r->texts, end - start)) {
		r->texts_at = start;
		r->n_texts = (uint32_t)(end - start);
	}
}

static bool read_value(struct reading *r, const uint64_t value[2], uint8_t *ret)
{
	if (!value[1])
		return true;
	if (!has_text(r, value))
		return memory_read(r->memory, value[0], ret, value[1]);
	memcpy(ret, r->texts + (value[0] - r->texts_at), value[1]);
	return true;
}

/* A pair of strings. */
static void add(struct reading *r, const uint64_t key[2], const uint64_t value[2])
{
	uint8_t *at = r->bytes + r->n;

	if (r->n_labels++ >= MAX_LABELS || !key[1] || key[1] > UINT8_MAX || value[1] > UINT8_MAX ||
	    r->n + 2 + key[1] + value[1] > GO_LABELS_MAX_BYTES)
		return;
	if (!memory_read(r->memory, key[0], at + 2, key[1]) ||
	    !read_value(r, value, at + 2 + key[1]))
		return;
	at[0] = (uint8_t)key[1];
	at[1] = (uint8_t)value[1];
	r->n += 2 + (uint32_t)(key[1] + value[1]);
	r->n_kept++;
}

/* How many there are, in *ret. */
static bool read_list(struct reading *r, uint64_t labels, uint64_t *ret)
{
	uint64_t list[3], pairs[MAX_LABELS][4]; /* address, length, capacity */
	uint64_t n;

	if (!memory_read(r->memory, labels, list, sizeof(list)) || list[1] > list[2] ||
	    list[1] > MAX_LISTED)
		return false;
	*ret = list[1];
	n = list[1] < MAX_LABELS ? list[1] : MAX_LABELS;
	if (n && !memory_read(r->memory, list[0], pairs, n * sizeof(pairs[0])))
		return false;
	for (uint64_t i = 0; i < n; i++) {
		read_texts(r, pairs + i, n - i);
		add(r, &pairs[i][0], &pairs[i][2]);
	}
	return true;
}

static void read_bucket(struct reading *r, uint64_t address)
{
	struct {
		uint8_t tops[BUCKET_LABELS]; /* less than 5: empty, or moved */
		uint64_t keys[BUCKET_LABELS][2], values[BUCKET_LABELS][2];
	} bucket;

	if (!memory_read(r->memory, address, &bucket, sizeof(bucket)))
		return;
	for (int i = 0; i < BUCKET_LABELS; i++) {
		if (bucket.tops[i] >= 5)
			add(r, bucket.keys[i], bucket.values[i]);
	}
}

static bool read_map(struct reading *r, uint64_t labels, uint64_t *ret)
{
	uint64_t address = memory_u64(r->memory, labels), words[3];
	uint32_t n_buckets;

	/* count; flags, log2 of the buckets, overflow, seed; the buckets */
	if (!is_struct(address) || !memory_read(r->memory, address, words, sizeof(words)) ||
	    words[0] > MAX_LISTED)
		return false;
	*ret = words[0];
	n_buckets = *ret ? 1U << ((words[1] >> 8) & 31) : 0;
	for (uint32_t i = 0; i < n_buckets && i < MAX_BUCKETS; i++)
		read_bucket(r, words[2] + (uint64_t)i * (BUCKET_LABELS * (1 + 2 * N_STRING) + 8));
	return true;
}

uint32_t go_labels_read(struct memory *m, const struct go_layout *l,
			const struct go_goroutine *goroutine, uint8_t ret[GO_LABELS_MAX_BYTES])
{
	struct reading r = {.memory = m, .bytes = ret, .n = GO_LABELS_HEAD_BYTES};
	uint64_t n = 0;

	if (!goroutine->labels || !(l->listed ? read_list : read_map)(&r, goroutine->labels, &n))
		return 0;
	n = n > r.n_kept ? n - r.n_kept : 0;
	memcpy(ret, &goroutine->number, sizeof(goroutine->number));
	ret[LEFT_OUT] = n < UINT8_MAX ? (uint8_t)n : UINT8_MAX;
	return r.n;
}

/* ---- What was read ---- */

uint64_t go_labels_goroutine(const uint8_t *bytes)
{
	uint64_t number;

	memcpy(&number, bytes, sizeof(number));
	return number;
}

uint32_t go_labels_left_out(const uint8_t *bytes)
{
	return bytes[LEFT_OUT];
}

bool go_label_next(const uint8_t *bytes, uint32_t n, uint32_t *at, struct go_label *ret)
{
	if (*at < GO_LABELS_HEAD_BYTES)
		*at = GO_LABELS_HEAD_BYTES;
	if (*at > n || n - *at < 2 || n - *at - 2 < (uint32_t)bytes[*at] + bytes[*at + 1])
		return false;
	ret->n_key = bytes[*at];
	ret->n_value = bytes[*at + 1];
	ret->key = bytes + *at + 2;
	ret->value = ret->key + ret->n_key;
	*at += 2 + (uint32_t)ret->n_key + ret->n_value;
	return true;
}
