/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of a just-in-time compiler, from the text it appends to /tmp/perf-PID.map.
 *
 * Compilers reuse memory, so a later line wins over earlier ones where they overlap. Lines wait in
 * a list until the next lookup; then old rows and new lines go through one sweep over all their
 * bounds, with the lines that cover the current position in a heap by their order. Out come rows
 * that do not overlap; what is left of a partly covered line keeps its name. Overwritten names
 * are dropped with their rows, so a process that recompiles for months stays as small as its
 * code. Beyond the limits new lines are counted and refused.
 *
 * The last line is read even before its newline is there, and once more when the file has grown.
 * Anybody may write such a file: a line says nothing that is not bounded (MAX_RANGE keeps one line
 * from claiming the address space; zero sizes and wrapping ranges are skipped).
 */
#include "symbolize/symbolize.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "symbolize/sort.h"
#include "util/array.h"

#define READ_BYTES  65536
#define MAX_LINE    8192 /* the rest of a name is dropped */
#define MAX_ENTRIES (1u << 20)
#define MAX_RANGE   (UINT64_C(1) << 30)
#define MAX_PENDING 65536 /* lines that wait for a sweep */

/* A line, or what is left of it: [start, start + size) of a symbol that began skip bytes before. */
struct entry {
	uint64_t start;
	uint32_t size, skip, whole; /* whole: the symbol's own size */
	uint32_t name;		    /* offset in the blob */
};

struct perf_map {
	uint64_t max_bytes;
	ARRAY(struct entry) rows;    /* sorted, without overlaps */
	ARRAY(struct entry) pending; /* in the order of the file */
	char *blob;
	size_t n_blob, cap_blob;
	uint64_t offset; /* of the first line that was not complete */
	uint64_t size_seen;
	dev_t dev;
	ino_t ino;
	bool skip; /* inside a line that is too long */
	bool more; /* the last update stopped before the end */
	uint64_t n_refused;
};

int perf_map_new(struct perf_map **ret, const struct symbol_limits *limits)
{
	struct perf_map *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->max_bytes =
		limits->max_table_bytes < UINT32_MAX / 2 ? limits->max_table_bytes : UINT32_MAX / 2;
	m->rows.max = 2 * MAX_ENTRIES;
	m->pending.max = MAX_PENDING;
	*ret = m;
	return 0;
}

struct perf_map *perf_map_free(struct perf_map *m)
{
	if (!m)
		return NULL;
	array_deinit(&m->rows);
	array_deinit(&m->pending);
	free(m->blob);
	free(m);
	return NULL;
}

/* ---- The sweep ---- */

struct sweep {
	struct entry *all; /* old rows, then new lines: a higher index wins */
	uint32_t *heap;	   /* indices of all that cover the position, the highest on top */
	uint32_t n_heap;
	struct entry *out;
	uint32_t n_out, max_out;
};

static void heap_push(struct sweep *w, uint32_t v)
{
	uint32_t i = w->n_heap++;

	for (; i > 0 && w->heap[(i - 1) / 2] < v; i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = v;
}

static void heap_pop(struct sweep *w)
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

static uint64_t entry_end(const struct entry *e)
{
	return e->start + e->size;
}

/* [from, to) is e's. Joined to the row before when that is the same piece. */
static void sweep_emit(struct sweep *w, const struct entry *e, uint64_t from, uint64_t to)
{
	struct entry *last = w->n_out ? &w->out[w->n_out - 1] : NULL;
	uint64_t begin = e->start - e->skip;

	if (last && entry_end(last) == from && last->name == e->name &&
	    last->start - last->skip == begin && last->whole == e->whole) {
		last->size += (uint32_t)(to - from);
		return;
	}
	if (w->n_out == w->max_out)
		return;
	w->out[w->n_out++] = (struct entry){from, (uint32_t)(to - from), (uint32_t)(from - begin),
					    e->whole, e->name};
}

/* Everything from position up to bound, where the next line begins. */
static void sweep_advance(struct sweep *w, uint64_t position, uint64_t bound)
{
	while (position < bound && w->n_heap > 0) {
		const struct entry *e = &w->all[w->heap[0]];
		uint64_t end = entry_end(e) < bound ? entry_end(e) : bound;

		if (end > position) {
			sweep_emit(w, e, position, end);
			position = end;
		}
		if (entry_end(e) <= position)
			heap_pop(w);
	}
}

static int sweep_run(struct sweep *w, uint32_t n)
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

/* Copies the names still in use to a new blob. Pieces of one line share one. */
static int names_compact(struct perf_map *m, struct entry *rows, uint32_t n)
{
	_cleanup_free_ uint32_t *moved = calloc(m->n_blob / 2 + 1, sizeof(*moved));
	size_t n_blob = 0;
	char *blob = malloc(m->n_blob ? m->n_blob : 1);

	if (!moved || !blob) {
		free(blob);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++) {
		/* A name has two bytes or more with its 0: half its offset is its own. */
		uint32_t *to = &moved[rows[i].name / 2];
		size_t len = strlen(m->blob + rows[i].name) + 1;

		if (!*to) {
			memcpy(blob + n_blob, m->blob + rows[i].name, len);
			n_blob += len;
			*to = (uint32_t)(n_blob - len) + 1;
		}
		rows[i].name = *to - 1;
	}
	free(m->blob);
	m->blob = blob;
	m->cap_blob = m->n_blob;
	m->n_blob = n_blob;
	return 0;
}

/* Brings the pending lines into the rows. 0 or -ENOMEM (then they still wait). */
static int perf_map_settle(struct perf_map *m)
{
	uint32_t n = m->rows.n + m->pending.n;
	struct sweep w = {0};
	int r;

	if (m->pending.n == 0)
		return 0;
	w.all = malloc(n * sizeof(*w.all));
	if (!w.all)
		return -ENOMEM;
	if (m->rows.n)
		memcpy(w.all, m->rows.items, m->rows.n * sizeof(*w.all));
	memcpy(w.all + m->rows.n, m->pending.items, m->pending.n * sizeof(*w.all));
	r = sweep_run(&w, n);
	if (r == 0)
		r = names_compact(m, w.out, w.n_out);
	free(w.all);
	free(w.heap);
	if (r < 0) {
		free(w.out);
		return r;
	}
	free(m->rows.items);
	m->rows.items = realloc(w.out, (w.n_out ? w.n_out : 1) * sizeof(*w.out));
	if (!m->rows.items)
		m->rows.items = w.out;
	m->rows.n = m->rows.cap = w.n_out;
	array_clear(&m->pending);
	return 0;
}

/* ---- Reading ---- */

static bool map_full(const struct perf_map *m)
{
	size_t rows = (size_t)m->rows.n + m->pending.n;

	return rows >= MAX_ENTRIES || rows * sizeof(struct entry) + m->n_blob >= m->max_bytes;
}

static bool blob_put(struct perf_map *m, const char *name, size_t n, uint32_t *ret)
{
	if (n + 1 > m->cap_blob - m->n_blob) {
		size_t want = m->cap_blob < READ_BYTES ? READ_BYTES : m->cap_blob * 2;
		char *p = realloc(m->blob, want);

		if (!p)
			return false;
		m->blob = p;
		m->cap_blob = want;
	}
	memcpy(m->blob + m->n_blob, name, n);
	m->blob[m->n_blob + n] = 0;
	*ret = (uint32_t)m->n_blob;
	m->n_blob += n + 1;
	return true;
}

/* Hex with or without 0x, and the blanks behind it. */
static bool parse_hex(const char **p, const char *end, uint64_t *ret)
{
	uint64_t v = 0;
	bool any = false;

	if (end - *p > 2 && (*p)[0] == '0' && ((*p)[1] | 0x20) == 'x')
		*p += 2;
	for (; *p < end; (*p)++, any = true) {
		unsigned int c = (unsigned char)**p, d;

		if (c - '0' < 10)
			d = c - '0';
		else if ((c | 0x20) - 'a' < 6)
			d = (c | 0x20) - 'a' + 10;
		else
			break;
		if (v >> 60)
			return false;
		v = v << 4 | d;
	}
	if (!any || *p == end || **p != ' ')
		return false;
	while (*p < end && **p == ' ')
		(*p)++;
	*ret = v;
	return true;
}

/* One line without its newline. 0 or -ENOMEM. */
static int map_line(struct perf_map *m, const char *p, const char *end)
{
	uint64_t start, size, past;
	struct entry *e;
	uint32_t name;
	const char *nul;
	int r;

	if (!parse_hex(&p, end, &start) || !parse_hex(&p, end, &size) || p == end)
		return 0;
	nul = memchr(p, 0, (size_t)(end - p));
	end = nul ? nul : end;
	if (end > p && end[-1] == '\r')
		end--;
	if (p == end || size == 0 || size > MAX_RANGE || __builtin_add_overflow(start, size, &past))
		return 0;
	if (map_full(m) || m->pending.n == m->pending.max) {
		r = perf_map_settle(m);
		if (r < 0)
			return r;
		m->pending.max = m->rows.n > MAX_PENDING ? m->rows.n : MAX_PENDING;
	}
	if (map_full(m)) {
		m->n_refused++;
		return 0;
	}
	if (!blob_put(m, p, (size_t)(end - p), &name))
		return -ENOMEM;
	e = array_push(&m->pending);
	if (!e)
		return -ENOMEM;
	*e = (struct entry){start, (uint32_t)size, 0, (uint32_t)size, name};
	return 0;
}

/*
 * Lines of buffer[0..n), which lies at m->offset; *ret_used: how much of it is done with. A line
 * that fills the buffer is taken as far as it got, the rest is skipped.
 */
static int map_lines(struct perf_map *m, const char *buffer, size_t n, size_t *ret_used)
{
	const char *p = buffer, *end = buffer + n, *newline;
	int r;

	while ((newline = memchr(p, '\n', (size_t)(end - p)))) {
		r = m->skip ? 0 : map_line(m, p, newline);
		if (r < 0)
			return r;
		m->skip = false;
		p = newline + 1;
		*ret_used = (size_t)(p - buffer);
	}
	if (!m->skip && end - p < MAX_LINE)
		return 0;
	r = m->skip ? 0 : map_line(m, p, p + MAX_LINE);
	m->skip = true;
	*ret_used = n;
	return r;
}

static void map_reset(struct perf_map *m)
{
	array_clear(&m->rows);
	array_clear(&m->pending);
	m->n_blob = 0;
	m->offset = m->size_seen = 0;
	m->skip = false;
}

static int map_read(struct perf_map *m, int fd)
{
	_cleanup_free_ char *buffer = malloc(READ_BYTES);
	uint64_t limit = m->offset + m->max_bytes; /* the rest at the next update */

	if (!buffer)
		return -ENOMEM;
	m->more = true;
	while (m->offset < limit) {
		ssize_t n = pread(fd, buffer, READ_BYTES, (off_t)m->offset);
		size_t used = 0;
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		r = map_lines(m, buffer, (size_t)n, &used);
		m->offset += used;
		if (r < 0)
			return r;
		if (used == 0) {
			/* The end, perhaps with a line that is not complete yet. */
			m->more = false;
			return m->skip ? 0 : map_line(m, buffer, buffer + n);
		}
	}
	return 0;
}

int perf_map_update(struct perf_map *m, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_dev != m->dev || st.st_ino != m->ino || (uint64_t)st.st_size < m->size_seen)
		map_reset(m);
	m->dev = st.st_dev;
	m->ino = st.st_ino;
	if ((uint64_t)st.st_size == m->size_seen && !m->more)
		return 0;
	m->size_seen = (uint64_t)st.st_size;
	return map_read(m, fd);
}

int perf_map_lookup(struct perf_map *m, uint64_t address, struct symbol *ret)
{
	uint32_t low = 0, high;
	const struct entry *e;

	if (perf_map_settle(m) < 0)
		return 1;
	high = m->rows.n;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (m->rows.items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	e = low ? &m->rows.items[low - 1] : NULL;
	if (!e || address - e->start >= e->size)
		return 1;
	*ret = (struct symbol){
		.name = m->blob + e->name, .start = e->start - e->skip, .size = e->whole};
	return 0;
}

size_t perf_map_bytes(const struct perf_map *m)
{
	return sizeof(*m) + array_bytes(&m->rows) + array_bytes(&m->pending) + m->cap_blob;
}

uint64_t perf_map_refused(const struct perf_map *m)
{
	return m->n_refused;
}
