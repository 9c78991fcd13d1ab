/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compilers reuse memory, so a later function wins over earlier ones where they overlap. New ones
 * wait in a list. While it is short, a lookup searches it from its end. A long one is merged with
 * the old rows in one sweep over all their bounds; a heap, ordered by arrival, holds the functions
 * that cover the current position. The result is rows that do not overlap; the rest of a partly
 * covered function keeps its name. Names of overwritten functions are dropped with their rows, so
 * the table of a process that recompiles for months stays as small as its code. Functions beyond
 * the limits are refused and counted.
 */
#include "symbolize/code-table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/sort.h"
#include "util/bisect.h"
#include "util/cleanup.h"

#define FIRST_BYTES 65536
#define MAX_PENDING 65536 /* functions that wait for a sweep */
#define MAX_SEARCH  128	  /* searched without a sweep */

void code_table_init(struct code_table *t, uint64_t max_bytes)
{
	*t = (struct code_table){.max_bytes =
					 max_bytes < UINT32_MAX / 2 ? max_bytes : UINT32_MAX / 2};
	t->rows.max = 2 * CODE_MAX_ENTRIES;
	t->pending.max = MAX_PENDING;
}

void code_table_deinit(struct code_table *t)
{
	array_deinit(&t->rows);
	array_deinit(&t->pending);
	free(t->blob);
	t->blob = NULL;
}

void code_table_clear(struct code_table *t)
{
	array_clear(&t->rows);
	array_clear(&t->pending);
	t->n_blob = 0;
}

/* ---- The sweep ---- */

struct code_sweep {
	struct code_entry *all; /* old rows, then new ones: a higher index wins */
	uint32_t *heap;		/* indices of all that cover the position, the highest on top */
	uint32_t n_heap;
	struct code_entry *out;
	uint32_t n_out, max_out;
};

static void heap_push(struct code_sweep *w, uint32_t v)
{
	uint32_t i = w->n_heap++;

	for (; i > 0 && w->heap[(i - 1) / 2] < v; i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = v;
}

static void heap_pop(struct code_sweep *w)
{
	uint32_t v = w->heap[--w->n_heap], i = 0, child;

	for (; (child = 2 * i + 1) < w->n_heap; i = child) {
		if (child + 1 < w->n_heap && w->heap[child + 1] > w->heap[child])
			child++;
		if (w->heap[child] < v)
			break;
		w->heap[i] = w->heap[child];
	}
	w->heap[i] = v;
}

static uint64_t entry_end(const struct code_entry *e)
{
	return e->start + e->size;
}

/* Adds [from, to) as a row of e, or extends the row before if that is of the same function. */
static void sweep_emit(struct code_sweep *w, const struct code_entry *e, uint64_t from, uint64_t to)
{
	struct code_entry *last = w->n_out ? &w->out[w->n_out - 1] : NULL;
	uint64_t begin = e->start - e->skip;

	if (last && entry_end(last) == from && last->name == e->name &&
	    last->start - last->skip == begin && last->whole == e->whole) {
		last->size += (uint32_t)(to - from);
		return;
	}
	if (w->n_out == w->max_out)
		return;
	w->out[w->n_out++] = (struct code_entry){
		from,	  (uint32_t)(to - from), (uint32_t)(from - begin), e->whole, e->name,
		e->n_more};
}

/* Adds rows from the position up to bound, where the next function begins. */
static void sweep_advance(struct code_sweep *w, uint64_t position, uint64_t bound)
{
	while (position < bound && w->n_heap > 0) {
		const struct code_entry *e = &w->all[w->heap[0]];
		uint64_t end = entry_end(e) < bound ? entry_end(e) : bound;

		if (end > position) {
			sweep_emit(w, e, position, end);
			position = end;
		}
		if (entry_end(e) <= position)
			heap_pop(w);
	}
}

static int sweep_run(struct code_sweep *w, uint32_t n)
{
	_cleanup_free_ struct sort_pair *starts = malloc(n * sizeof(*starts));
	int r;

	w->heap = malloc(n * sizeof(*w->heap));
	w->max_out = 2 * n;
	w->out = malloc(w->max_out * sizeof(*w->out));
	if (!starts || !w->heap || !w->out)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		starts[i] = (struct sort_pair){w->all[i].start, i, 0};
	r = sort_pairs(starts, n);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < n; i++) {
		heap_push(w, starts[i].value);
		sweep_advance(w, starts[i].key, i + 1 < n ? starts[i + 1].key : UINT64_MAX);
	}
	return 0;
}

/* Copies the names in use to a new blob. Pieces of one function share a name. */
static int names_compact(struct code_table *t, struct code_entry *rows, uint32_t n)
{
	_cleanup_free_ uint32_t *moved = calloc(t->n_blob / 2 + 1, sizeof(*moved));
	size_t n_blob = 0;
	char *blob = malloc(t->n_blob ? t->n_blob : 1);

	if (!moved || !blob) {
		free(blob);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++) {
		/*
		 * A name has at least two bytes with its 0, so half of its offset is a unique
		 * index.
		 */
		uint32_t *to = &moved[rows[i].name / 2];
		size_t len = strlen(t->blob + rows[i].name) + 1 + rows[i].n_more;

		if (!*to) {
			memcpy(blob + n_blob, t->blob + rows[i].name, len);
			n_blob += len;
			*to = (uint32_t)(n_blob - len) + 1;
		}
		rows[i].name = *to - 1;
	}
	free(t->blob);
	t->blob = blob;
	t->cap_blob = t->n_blob;
	t->n_blob = n_blob;
	return 0;
}

/* Merges the pending functions into the rows. 0 or -ENOMEM (then they stay pending). */
static int code_table_settle(struct code_table *t)
{
	uint32_t n = t->rows.n + t->pending.n;
	struct code_sweep w = {0};
	int r;

	if (t->pending.n == 0)
		return 0;
	w.all = malloc(n * sizeof(*w.all));
	if (!w.all)
		return -ENOMEM;
	if (t->rows.n)
		memcpy(w.all, t->rows.items, t->rows.n * sizeof(*w.all));
	memcpy(w.all + t->rows.n, t->pending.items, t->pending.n * sizeof(*w.all));
	r = sweep_run(&w, n);
	if (r == 0)
		r = names_compact(t, w.out, w.n_out);
	free(w.all);
	free(w.heap);
	if (r < 0) {
		free(w.out);
		return r;
	}
	free(t->rows.items);
	t->rows.items = realloc(w.out, (w.n_out ? w.n_out : 1) * sizeof(*w.out));
	if (!t->rows.items)
		t->rows.items = w.out;
	t->rows.n = t->rows.cap = w.n_out;
	array_clear(&t->pending);
	return 0;
}

/* ---- Adding and finding ---- */

static bool table_full(const struct code_table *t)
{
	size_t rows = (size_t)t->rows.n + t->pending.n;

	return rows >= CODE_MAX_ENTRIES ||
	       rows * sizeof(struct code_entry) + t->n_blob >= t->max_bytes;
}

static bool blob_reserve(struct code_table *t, size_t n)
{
	size_t want = t->cap_blob < FIRST_BYTES ? FIRST_BYTES : t->cap_blob;
	char *p;

	while (want - t->n_blob < n)
		want *= 2;
	if (want == t->cap_blob)
		return true;
	p = realloc(t->blob, want);
	if (!p)
		return false;
	t->blob = p;
	t->cap_blob = want;
	return true;
}

/* Does the last function have the same name and bytes? They are stored once. */
static bool equals_last(const struct code_table *t, const char *name, size_t n_name,
			const void *more, size_t n_more)
{
	const struct code_entry *last = t->pending.n ? &t->pending.items[t->pending.n - 1] : NULL;
	const char *there = last ? t->blob + last->name : NULL;

	return last && last->n_more == n_more && strlen(there) == n_name &&
	       memcmp(there, name, n_name) == 0 &&
	       (n_more == 0 || memcmp(there + n_name + 1, more, n_more) == 0);
}

int code_table_add(struct code_table *t, uint64_t start, uint64_t size, const char *name,
		   size_t n_name, const void *more, size_t n_more)
{
	struct code_entry *e;
	uint64_t past;
	bool shared;
	int r;

	if (n_name == 0 || size == 0 || size > CODE_MAX_RANGE ||
	    __builtin_add_overflow(start, size, &past) || n_more > t->max_bytes)
		return 0;
	if (table_full(t) || t->pending.n == t->pending.max) {
		r = code_table_settle(t);
		if (r < 0)
			return r;
		t->pending.max = t->rows.n > MAX_PENDING ? t->rows.n : MAX_PENDING;
	}
	if (table_full(t)) {
		t->n_refused++;
		return 0;
	}
	shared = equals_last(t, name, n_name, more, n_more);
	if (!shared && !blob_reserve(t, n_name + 1 + n_more))
		return -ENOMEM;
	e = array_push(&t->pending);
	if (!e)
		return -ENOMEM;
	*e = (struct code_entry){.start = start,
				 .size = (uint32_t)size,
				 .whole = (uint32_t)size,
				 .name = (uint32_t)t->n_blob,
				 .n_more = (uint32_t)n_more};
	if (shared) {
		e->name = e[-1].name;
		return 0;
	}
	memcpy(t->blob + t->n_blob, name, n_name);
	t->blob[t->n_blob + n_name] = 0;
	if (n_more)
		memcpy(t->blob + t->n_blob + n_name + 1, more, n_more);
	t->n_blob += n_name + 1 + n_more;
	return 0;
}

static const struct code_entry *search_pending(const struct code_table *t, uint64_t address)
{
	for (uint32_t i = t->pending.n; i-- > 0;) {
		const struct code_entry *e = &t->pending.items[i];

		if (address - e->start < e->size)
			return e;
	}
	return NULL;
}

const struct code_entry *code_table_lookup(struct code_table *t, uint64_t address)
{
	const struct code_entry *e;
	uint32_t n;

	if (t->pending.n > MAX_SEARCH && code_table_settle(t) < 0)
		return NULL;
	e = search_pending(t, address);
	if (e)
		return e;
	n = bisect(t->rows.n, i, t->rows.items[i].start <= address);
	e = n ? &t->rows.items[n - 1] : NULL;
	return e && address - e->start < e->size ? e : NULL;
}

void code_table_piece(const struct code_table *t, const struct code_entry *e, uint64_t address,
		      uint64_t *ret_start, uint64_t *ret_end)
{
	const struct code_entry *newer = t->pending.items, *end = newer + t->pending.n;

	*ret_start = e->start;
	*ret_end = entry_end(e);
	if (t->pending.n == 0)
		return;
	if (e >= newer && e < end)
		newer = e + 1;
	for (; newer < end; newer++) {
		if (newer->start > address && newer->start < *ret_end)
			*ret_end = newer->start;
		else if (entry_end(newer) <= address && entry_end(newer) > *ret_start)
			*ret_start = entry_end(newer);
	}
}

size_t code_table_bytes(const struct code_table *t)
{
	return array_bytes(&t->rows) + array_bytes(&t->pending) + t->cap_blob;
}
