/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sorted table of symbols.
 *
 * Addresses become offsets in "code space", the executable segments one after another: they fit 32
 * bits, and nothing reaches over the end of a segment. A row is 12 bytes in two arrays: the starts
 * alone, which the search reads, and {size, name}. A bucket index over equal pieces of code space
 * narrows the search to about eight neighbours, so that a lookup costs two or three cache misses
 * instead of seventeen.
 *
 * Rows do not overlap. Where symbols nest (assembler that marks inner loops), the innermost wins
 * and the outer one goes on in a *continuation* row after it. So a lookup reads one row.
 *
 * If one address has several names, the one that people use wins:
 *	1. one with a size over one without (labels);
 *	2. a function over an untyped symbol;
 *	3. global or weak over local (__GI_x, compiler copies);
 *	4. fewer leading underscores (write over __write and _IO_puts under puts: this goes before
 *	   5 because libc's plain names are the weak ones), not counting the _Z, _R or _D of mangled
 *	   names;
 *	5. global over weak;
 *	6. the shorter one, then the first in byte order, so that the result never changes.
 * 4 to 6 compare names. Aliases wait in a list until a lookup of their address, because reading all
 * their names would bring most of the string table into memory.
 *
 * A name stays in the file: the string table of a big file is ten times the size of the rows, and
 * each first access to a page of it is a page fault. symbol_table_name() copies it, at most 64 KiB,
 * within the bounds of its table, because the owner of the mapped file can overwrite the 0 at the
 * end of a name.
 *
 * A symbol without a size inside one with a size is a label, and is dropped. Elsewhere it reaches
 * to the next symbol or the end of its section.
 */
#include "symbolize/symbol-table.h"

#include <string.h>

#define MAX_SEGMENTS  64 /* executable ones; more than 3 are rare */
#define MAX_NESTING   64
#define ROW_CONTINUED 0x80000000u
#define MAX_CODE      0x7fffffffu /* 2 GiB: the code models allow no more */
#define NAME_ALIASES  0x80000000u /* the rest: first alias */
#define NAME_BITS     29
#define CHUNK_BITS    14
#define CHUNK_BYTES   (1u << CHUNK_BITS)
#define MAX_CHUNKS    (1u << (NAME_BITS - CHUNK_BITS))
#define MAX_NAME      8192u  /* bytes compared of one name */
#define MAX_TEXT      65536u /* copied of one */
#define MIN_TEXT      256u
#define MAX_ALIASES   64u /* compared at one address */
#define ROWS_A_BUCKET 8
#define RANK_BITS     4

void symbol_table_init(struct symbol_table *t, uint32_t max_symbols)
{
	*t = (struct symbol_table){0};
	t->segments.max = MAX_SEGMENTS;
	t->candidates.max = max_symbols;
	t->aliases.max = max_symbols;
	t->chunks.max = MAX_CHUNKS;
}

void symbol_table_deinit(struct symbol_table *t)
{
	for (uint32_t i = 0; i < t->chunks.n; i++)
		free(t->chunks.items[i]);
	array_deinit(&t->chunks);
	free(t->text);
	array_deinit(&t->aliases);
	array_deinit(&t->candidates);
	array_deinit(&t->segments);
	free(t->codes);
	free(t->rows);
	free(t->buckets);
	symbol_table_init(t, 0);
}

void symbol_table_add_segment(struct symbol_table *t, uint64_t vaddr, uint64_t n_bytes)
{
	struct symbol_segment *s;
	uint64_t code = 0, end;

	if (t->segments.n) {
		s = &t->segments.items[t->segments.n - 1];
		code = (uint64_t)s->code + s->n_bytes;
	}
	if (n_bytes == 0 || __builtin_add_overflow(vaddr, n_bytes, &end) ||
	    n_bytes > MAX_CODE - code) {
		t->n_refused++;
		return;
	}
	s = array_push(&t->segments);
	if (!s) {
		t->n_refused++;
		return;
	}
	*s = (struct symbol_segment){vaddr, (uint32_t)n_bytes, (uint32_t)code};
}

void symbol_table_set_names(struct symbol_table *t, enum symbol_names which, const void *bytes,
			    size_t n)
{
	const char *last;

	if (n > SYMBOL_NAMES_MAX_BYTES)
		n = SYMBOL_NAMES_MAX_BYTES;
	last = n ? memrchr(bytes, 0, n) : NULL;
	t->names[which].bytes = bytes;
	t->names[which].n = last ? (size_t)(last - (const char *)bytes) + 1 : 0;
}

static const struct symbol_segment *segment_of(const struct symbol_table *t, uint64_t vaddr)
{
	for (uint32_t i = 0; i < t->segments.n; i++) {
		const struct symbol_segment *s = &t->segments.items[i];

		if (vaddr - s->vaddr < s->n_bytes)
			return s;
	}
	return NULL;
}

int symbol_table_add(struct symbol_table *t, uint64_t vaddr, uint64_t size, uint64_t limit,
		     enum symbol_names which, uint64_t name, uint32_t rank)
{
	const struct symbol_segment *s = segment_of(t, vaddr);
	struct sort_pair *c;
	uint64_t room, code;

	/* Offset 0 of a string table is the empty string. */
	if (!s || name == 0 || name >= t->names[which].n)
		return 0;
	room = s->n_bytes - (vaddr - s->vaddr);
	if (size == 0 && limit > vaddr && limit - vaddr < room)
		room = limit - vaddr;
	if (t->candidates.n == t->candidates.max) {
		t->n_refused++;
		return 0;
	}
	c = array_push(&t->candidates);
	if (!c)
		return -ENOMEM;
	code = s->code + (vaddr - s->vaddr);
	c->key = code << RANK_BITS | rank | (size ? SYMBOL_SIZED : 0);
	c->value = (uint32_t)(size && size < room ? size : room);
	c->extra = (uint32_t)which << NAME_BITS | (uint32_t)name;
	return 0;
}

/* ---- Building ---- */

struct sweep {
	struct symbol_table *t;
	uint32_t n_max;
	struct {
		uint32_t row, end;
		bool sized;
	} open[MAX_NESTING]; /* symbols that cover the current position, the innermost last */
	uint32_t n_open;
};

static void row_push(struct sweep *w, uint32_t code, uint32_t size, uint32_t name)
{
	struct symbol_table *t = w->t;

	/* Each symbol opens and closes once: there are at most two rows for it. */
	if (t->n_rows == w->n_max)
		return;
	t->codes[t->n_rows] = code;
	t->rows[t->n_rows++] = (struct symbol_row){size, name};
}

/*
 * Closes all symbols that end at or before code; a symbol that goes on after them gets a
 * continuation row.
 */
static void sweep_close(struct sweep *w, uint32_t code)
{
	while (w->n_open > 0 && w->open[w->n_open - 1].end <= code) {
		uint32_t end = w->open[--w->n_open].end;

		while (w->n_open > 0 && w->open[w->n_open - 1].end <= end)
			w->n_open--;
		if (w->n_open > 0 && end < code)
			row_push(w, end, ROW_CONTINUED | w->open[w->n_open - 1].row, 0);
	}
}

static uint32_t candidate_code(const struct sort_pair *c)
{
	return (uint32_t)(c->key >> RANK_BITS);
}

static void sweep_open(struct sweep *w, const struct sort_pair *c, uint32_t name)
{
	struct symbol_table *t = w->t;
	uint32_t code = candidate_code(c);
	bool sized = c->key & SYMBOL_SIZED;

	sweep_close(w, code);
	if (w->n_open > 0 && !w->open[0].sized) {
		/* A symbol without a size is alone here, and ends where the next begins. */
		t->rows[w->open[0].row].size = code - t->codes[w->open[0].row];
		w->n_open = 0;
	}
	if (w->n_open > 0 && !sized)
		return;
	if (w->n_open == MAX_NESTING) {
		t->n_refused++;
		return;
	}
	w->open[w->n_open].row = t->n_rows;
	w->open[w->n_open].end = code + c->value;
	w->open[w->n_open++].sized = sized;
	row_push(w, code, c->value, name);
}

/*
 * The best of n candidates at one address, sorted by rank. Ties that only names can break become
 * aliases; the longest of them gives the size.
 */
static const struct sort_pair *group_choose(struct symbol_table *t, const struct sort_pair *group,
					    size_t n, uint32_t *ret_name)
{
	const struct sort_pair *best = &group[n - 1];
	uint32_t first = t->aliases.n;

	*ret_name = best->extra;
	for (size_t i = n; n > 1 && i-- > 0;) {
		struct symbol_alias *a;

		if ((group[i].key | SYMBOL_GLOBAL) != (group[n - 1].key | SYMBOL_GLOBAL))
			break;
		a = array_push(&t->aliases);
		if (!a) {
			t->n_refused++;
			break;
		}
		a->name = group[i].extra;
		a->global = group[i].key & SYMBOL_GLOBAL;
		if (group[i].value > best->value)
			best = &group[i];
	}
	if (t->aliases.n - first > 1) {
		t->aliases.items[t->aliases.n - 1].last = true;
		*ret_name = NAME_ALIASES | first;
	} else {
		t->aliases.n = first;
	}
	return best;
}

static int buckets_build(struct symbol_table *t)
{
	const struct symbol_segment *s = &t->segments.items[t->segments.n - 1];
	uint32_t span = s->code + s->n_bytes, row = 0;

	while ((uint64_t)(span >> t->shift) * ROWS_A_BUCKET > t->n_rows)
		t->shift++;
	t->n_buckets = (span >> t->shift) + 2;
	t->buckets = malloc(t->n_buckets * sizeof(*t->buckets));
	if (!t->buckets)
		return -ENOMEM;
	for (uint32_t b = 0; b < t->n_buckets; b++) {
		while (row < t->n_rows && t->codes[row] >> t->shift < b)
			row++;
		t->buckets[b] = row;
	}
	return 0;
}

static void rows_trim(struct symbol_table *t)
{
	void *p;

	p = realloc(t->codes, t->n_rows * sizeof(*t->codes));
	t->codes = p ? p : t->codes;
	p = realloc(t->rows, t->n_rows * sizeof(*t->rows));
	t->rows = p ? p : t->rows;
	p = t->aliases.n ? realloc(t->aliases.items, t->aliases.n * sizeof(*t->aliases.items))
			 : NULL;
	if (p) {
		t->aliases.items = p;
		t->aliases.cap = t->aliases.n;
	}
	array_deinit(&t->candidates);
}

int symbol_table_finish(struct symbol_table *t)
{
	const struct sort_pair *c = t->candidates.items;
	uint32_t n = t->candidates.n;
	struct sweep w = {.t = t, .n_max = 2 * n};
	int r;

	if (n == 0)
		return 0;
	t->codes = malloc(2 * (size_t)n * sizeof(*t->codes));
	t->rows = malloc(2 * (size_t)n * sizeof(*t->rows));
	if (!t->codes || !t->rows)
		return -ENOMEM;
	r = sort_pairs(t->candidates.items, n);
	if (r < 0)
		return r;
	for (uint32_t i = 0, next; i < n; i = next) {
		const struct sort_pair *best;
		uint32_t name;

		for (next = i + 1; next < n && candidate_code(&c[next]) == candidate_code(&c[i]);)
			next++;
		best = group_choose(t, &c[i], next - i, &name);
		sweep_open(&w, best, name);
	}
	sweep_close(&w, UINT32_MAX);
	rows_trim(t);
	return buckets_build(t);
}

/* ---- Names ---- */

static enum symbol_names name_place(uint32_t name)
{
	return name >> NAME_BITS & 3;
}

static uint32_t name_offset(uint32_t name)
{
	return name & ((1u << NAME_BITS) - 1);
}

/* The start of a name, in bytes that may change, and the bytes up to the end of its table. */
static const char *name_bytes(const struct symbol_table *t, uint32_t name, size_t max, size_t *ret)
{
	enum symbol_names which = name_place(name);
	size_t left = t->names[which].n - name_offset(name);

	*ret = left < max ? left : max;
	return t->names[which].bytes + name_offset(name);
}

uint32_t symbol_table_keep_name(struct symbol_table *t, const char *text)
{
	size_t n = strlen(text) + 1;
	char **chunk;

	if (n > CHUNK_BYTES) {
		t->n_refused++;
		return 0;
	}
	if (t->chunks.n == 0 || t->n_chunk_used + n > CHUNK_BYTES) {
		chunk = array_push(&t->chunks);
		if (chunk)
			*chunk = malloc(CHUNK_BYTES);
		if (!chunk || !*chunk) {
			t->chunks.n -= chunk != NULL;
			t->n_refused++;
			return 0;
		}
		t->n_chunk_used = 0;
	}
	memcpy(t->chunks.items[t->chunks.n - 1] + t->n_chunk_used, text, n);
	t->n_chunk_used += (uint32_t)n;
	return (t->chunks.n - 1) * CHUNK_BYTES + t->n_chunk_used - (uint32_t)n + 1;
}

const char *symbol_table_kept_name(const struct symbol_table *t, uint32_t name)
{
	return t->chunks.items[(name - 1) / CHUNK_BYTES] + (name - 1) % CHUNK_BYTES;
}

static size_t leading_underscores(const char *name, size_t n_name)
{
	size_t n = 0;

	if (n_name > 1 && name[0] == '_' && (name[1] == 'Z' || name[1] == 'R' || name[1] == 'D'))
		return 0;
	while (n < n_name && n < 8 && name[n] == '_')
		n++;
	return n;
}

/* True: a is the better name. */
static bool alias_better(const struct symbol_table *t, const struct symbol_alias *a,
			 const struct symbol_alias *b)
{
	size_t n_x, n_y;
	const char *x = name_bytes(t, a->name, MAX_NAME, &n_x);
	const char *y = name_bytes(t, b->name, MAX_NAME, &n_y);
	size_t m = leading_underscores(x, n_x), n = leading_underscores(y, n_y);

	if (m != n)
		return m < n;
	if (a->global != b->global)
		return a->global;
	m = strnlen(x, n_x);
	n = strnlen(y, n_y);
	return m != n ? m < n : memcmp(x, y, n) < 0;
}

/* The name of a row, chosen among aliases, once for each row. The work is bounded: a string table
 * may be one string, and all symbols aliases of its parts. */
static uint32_t row_name(const struct symbol_table *t, struct symbol_row *row)
{
	const struct symbol_alias *a, *best;

	if (!(row->name & NAME_ALIASES))
		return row->name;
	best = a = &t->aliases.items[row->name & ~NAME_ALIASES];
	for (uint32_t i = 1; i < MAX_ALIASES && !a->last; i++) {
		a++;
		if (alias_better(t, a, best))
			best = a;
	}
	return row->name = best->name;
}

/* Room for a text of n bytes; NULL: no memory. */
static char *text_room(struct symbol_table *t, size_t n)
{
	size_t cap = t->n_text ? t->n_text : MIN_TEXT;
	char *p;

	while (cap < n)
		cap *= 2;
	if (cap == t->n_text)
		return t->text;
	p = realloc(t->text, cap);
	if (!p)
		return NULL;
	t->n_text = cap;
	return t->text = p;
}

const char *symbol_table_name(struct symbol_table *t, uint32_t row)
{
	uint32_t name = row_name(t, &t->rows[row]);
	const char *bytes, *at = NULL;
	char *text;
	size_t n;

	bytes = name_bytes(t, name, MAX_TEXT - 1, &n);
	n = strnlen(bytes, n);
	if (t->versions && name_place(name) != SYMBOL_NAMES_DYNAMIC)
		at = memchr(bytes, '@', n < MAX_NAME ? n : MAX_NAME);
	if (at && at != bytes)
		n = (size_t)(at - bytes);
	text = text_room(t, n + 1);
	if (!text) {
		t->n_refused++;
		return NULL;
	}
	memcpy(text, bytes, n);
	text[n] = '\0';
	return text;
}

/* ---- Searching ---- */

/* The last row that starts at or before code; UINT32_MAX: none. */
static uint32_t row_find(const struct symbol_table *t, uint32_t code)
{
	uint32_t low = t->buckets[code >> t->shift], high = t->buckets[(code >> t->shift) + 1];

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (t->codes[middle] <= code)
			low = middle + 1;
		else
			high = middle;
	}
	return low - 1;
}

bool symbol_table_lookup(const struct symbol_table *t, uint64_t vaddr, uint32_t *ret_row,
			 uint64_t *ret_start, uint64_t *ret_size)
{
	const struct symbol_segment *s = segment_of(t, vaddr);
	uint32_t code, row;

	if (!s || t->n_rows == 0)
		return false;
	code = s->code + (uint32_t)(vaddr - s->vaddr);
	row = row_find(t, code);
	if (row == UINT32_MAX)
		return false;
	if (t->rows[row].size & ROW_CONTINUED)
		row = t->rows[row].size & ~ROW_CONTINUED;
	if (code - t->codes[row] >= t->rows[row].size || t->codes[row] < s->code)
		return false;
	*ret_row = row;
	*ret_start = s->vaddr + (t->codes[row] - s->code);
	*ret_size = t->rows[row].size;
	return true;
}

size_t symbol_table_bytes(const struct symbol_table *t)
{
	return t->n_rows * (sizeof(*t->codes) + sizeof(*t->rows)) +
	       t->n_buckets * sizeof(*t->buckets) + array_bytes(&t->aliases) +
	       array_bytes(&t->segments) + array_bytes(&t->candidates) +
	       (size_t)t->chunks.n * CHUNK_BYTES + t->n_text;
}
