/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of a just-in-time compiler from its jit-PID.dump (tools/perf/Documentation/
 * jitdump-specification.txt in the Linux source, version 2), read while it is written.
 *
 * Records come in the order of their time stamps. Reading stops at the first one that is younger
 * than asked for, so a caller who goes forward in time step by step sees the code as it was at
 * each step. Of a record only the head and the name are read; the code itself is skipped.
 *
 * Lines come in a record before their function's and are kept with its name. The addresses of
 * lines are those of the code; but V8 adds the size of an ELF header to them, which perf inject
 * would put before the code. Nothing in the file tells who wrote it. So: as long as no function had
 * a line in its first 64 bytes the addresses are taken to be of V8's kind.
 *
 * Unwinding records are skipped: the symbolizer does not walk.
 */
#include "symbolize/symbolize.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbolize/code-table.h"
#include "util/cursor.h"

#define MAGIC		UINT32_C(0x4A695444)
#define MAGIC_SWAPPED	UINT32_C(0x4454694A)
#define HEADER_BYTES	40
#define RECORD_BYTES	16
#define MAX_HEADER	65536
#define MAX_RECORD	(UINT32_C(1) << 30)
#define MAX_NAME	8192
#define MAX_LINES	65536 /* of one function */
#define MAX_LINES_BYTES (1u << 20)
#define READ_BYTES	(UINT64_C(256) << 10)
#define UPDATE_BYTES	(UINT64_C(64) << 20)
#define V8_SHIFT	64
#define FLAG_ARCH_CLOCK 1

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_NONE
#endif

enum record_id { CODE_LOAD, CODE_MOVE, CODE_DEBUG_INFO, CODE_CLOSE, CODE_UNWINDING_INFO };

/* From there on; behind the rows of a function are the names of its files. */
struct line_row {
	uint32_t at, line, column;
	uint32_t file; /* from the end of the rows */
};

struct lines {
	uint64_t code_address; /* of the function they are for */
	ARRAY(struct line_row) rows;
	ARRAY(char) files;
};

struct jitdump {
	struct code_table table;
	struct lines lines; /* of the function that comes next */
	uint64_t offset;    /* of the next record; 0: the header comes */
	dev_t dev;
	ino_t ino;
	const char *problem;
	bool arch_clock, plain_lines;
	uint64_t n_bad;
};

/* What of the file is in memory, during an update. */
struct window {
	int fd;
	uint64_t n_file, begin, n_read;
	uint8_t *bytes;
	size_t n, cap;
};

int jitdump_new(struct jitdump **ret, const struct symbol_limits *limits)
{
	struct jitdump *j = calloc(1, sizeof(*j));

	if (!j)
		return -ENOMEM;
	code_table_init(&j->table, limits->max_table_bytes);
	j->lines.rows.max = MAX_LINES;
	j->lines.files.max = MAX_LINES_BYTES;
	*ret = j;
	return 0;
}

struct jitdump *jitdump_free(struct jitdump *j)
{
	if (!j)
		return NULL;
	code_table_deinit(&j->table);
	array_deinit(&j->lines.rows);
	array_deinit(&j->lines.files);
	free(j);
	return NULL;
}

/* n bytes at offset, all of them within the file. NULL: no memory, or a read failed (errno). */
static const uint8_t *window_at(struct window *w, uint64_t offset, size_t n)
{
	ssize_t got;

	if (offset >= w->begin && offset - w->begin <= w->n && n <= w->n - (offset - w->begin))
		return w->bytes + (offset - w->begin);
	if (w->cap < n) {
		size_t want = n > READ_BYTES ? n : READ_BYTES;
		uint8_t *p = realloc(w->bytes, want);

		if (!p)
			return NULL;
		w->bytes = p;
		w->cap = want;
	}
	w->n = 0;
	do
		got = pread(w->fd, w->bytes, w->cap, (off_t)offset);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return NULL;
	w->begin = offset;
	w->n = (size_t)got;
	w->n_read += w->n;
	errno = EIO; /* shorter than it was a moment ago */
	return n <= w->n ? w->bytes : NULL;
}

/* ---- Records ---- */

/* A name, at most MAX_NAME bytes of it; *ret_n 0: there is none. */
static const char *take_name(struct cursor *c, size_t *ret_n)
{
	const char *name = (const char *)c->cur;

	*ret_n = strnlen(name, cursor_left(c));
	if (*ret_n == cursor_left(c))
		*ret_n = 0; /* without an end */
	else
		(void)cursor_take(c, *ret_n + 1);
	*ret_n = *ret_n < MAX_NAME ? *ret_n : MAX_NAME;
	return name;
}

/* 0 and where it is among the files; 1: no room; -ENOMEM. */
static int put_file(struct lines *l, const char *name, size_t n, uint32_t *ret)
{
	uint32_t begin = l->files.n;

	for (size_t i = 0; i <= n; i++) {
		char *p = array_push(&l->files);

		if (!p) {
			int r = l->files.n == l->files.max ? 1 : -ENOMEM;

			l->files.n = begin;
			return r;
		}
		*p = i < n ? name[i] : 0;
	}
	*ret = begin;
	return 0;
}

/* 0; 1: this line and those behind it cannot be used; -ENOMEM. */
static int read_line(struct lines *l, struct cursor *c)
{
	const struct line_row *last = l->rows.n ? &l->rows.items[l->rows.n - 1] : NULL;
	struct line_row line = {.file = last ? last->file : 0}, *row;
	uint64_t at = cursor_u64(c) - l->code_address;
	const char *name;
	size_t n;
	int r;

	line.line = cursor_u32(c);
	line.column = cursor_u32(c);
	name = take_name(c, &n);
	if (!cursor_ok(c) || n == 0 || at > CODE_MAX_RANGE || line.line == 0)
		return 1;
	line.at = (uint32_t)at;
	/* A lone 0xff stands for the file of the line before. */
	if (!last ||
	    (strcmp(name, "\xff") != 0 && strcmp(l->files.items + last->file, name) != 0)) {
		r = put_file(l, name, n, &line.file);
		if (r != 0)
			return r;
	}
	row = array_push(&l->rows);
	if (!row)
		return l->rows.n == l->rows.max ? 1 : -ENOMEM;
	*row = line;
	return 0;
}

static int compare_rows(const void *a, const void *b)
{
	const struct line_row *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static int read_lines(struct jitdump *j, struct cursor *c)
{
	struct lines *l = &j->lines;
	uint64_t n;
	int r = 0;

	array_clear(&l->rows);
	array_clear(&l->files);
	l->code_address = cursor_u64(c);
	n = cursor_u64(c);
	for (uint64_t i = 0; i < n && r == 0; i++)
		r = read_line(l, c);
	if (r < 0)
		return r;
	j->n_bad += r > 0;
	if (l->rows.n)
		qsort(l->rows.items, l->rows.n, sizeof(*l->rows.items), compare_rows);
	j->plain_lines |= l->rows.n > 0 && l->rows.items[0].at < V8_SHIFT;
	return 0;
}

/* With the lines read before it, as the number of rows, the rows, the files. */
static int add_function(struct jitdump *j, uint64_t start, uint64_t size, const char *name,
			size_t n_name)
{
	const struct lines *l = &j->lines;
	size_t n_rows = l->rows.n * sizeof(*l->rows.items);
	size_t n_more = sizeof(uint32_t) + n_rows + l->files.n;
	_cleanup_free_ uint8_t *more = malloc(n_more);

	if (!more)
		return -ENOMEM;
	memcpy(more, &l->rows.n, sizeof(uint32_t));
	if (n_rows) {
		memcpy(more + sizeof(uint32_t), l->rows.items, n_rows);
		memcpy(more + sizeof(uint32_t) + n_rows, l->files.items, l->files.n);
	}
	return code_table_add(&j->table, start, size, name, n_name, more, n_rows ? n_more : 0);
}

static void forget_lines(struct lines *l)
{
	array_clear(&l->rows);
	array_clear(&l->files);
}

static int read_load(struct jitdump *j, struct cursor *c)
{
	uint64_t vma, code_address, size;
	const char *name;
	size_t n;
	int r;

	(void)cursor_u64(c); /* pid, tid */
	vma = cursor_u64(c);
	code_address = cursor_u64(c);
	size = cursor_u64(c);
	(void)cursor_u64(c); /* index */
	name = take_name(c, &n);
	if (!cursor_ok(c) || n == 0) {
		j->n_bad++;
		return 0;
	}
	if (j->lines.code_address != code_address)
		forget_lines(&j->lines);
	r = add_function(j, vma, size, name, n);
	forget_lines(&j->lines);
	return r;
}

/* The function is copied: what is at its old place stays until something else is there. */
static int read_move(struct jitdump *j, struct cursor *c)
{
	_cleanup_free_ char *copy = NULL;
	const struct code_entry *e;
	uint64_t vma, old;
	size_t n_name;

	(void)cursor_u64(c); /* pid, tid */
	vma = cursor_u64(c);
	old = cursor_u64(c);
	e = cursor_ok(c) ? code_table_lookup(&j->table, old) : NULL;
	if (!e || e->start - e->skip != old) {
		j->n_bad++;
		return 0;
	}
	n_name = strlen(code_table_name(&j->table, e));
	copy = malloc(n_name + 1 + e->n_more);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, code_table_name(&j->table, e), n_name + 1 + e->n_more);
	return code_table_add(&j->table, vma, e->whole, copy, n_name, copy + n_name + 1, e->n_more);
}

static int read_record(struct jitdump *j, uint32_t id, const uint8_t *body, size_t n)
{
	struct cursor c = cursor_make(body, n);

	switch ((enum record_id)id) {
	case CODE_LOAD:
		return read_load(j, &c);
	case CODE_MOVE:
		return read_move(j, &c);
	case CODE_DEBUG_INFO:
		return read_lines(j, &c);
	case CODE_CLOSE:
	case CODE_UNWINDING_INFO:
		break;
	}
	return 0;
}

/* ---- The file ---- */

static void jitdump_reset(struct jitdump *j)
{
	code_table_clear(&j->table);
	forget_lines(&j->lines);
	j->offset = 0;
	j->problem = NULL;
	j->plain_lines = false;
}

/* 1: the header is not there yet. */
static int read_header(struct jitdump *j, struct window *w)
{
	const uint8_t *bytes;
	uint32_t magic, version, size, machine;
	struct cursor c;

	if (w->n_file < HEADER_BYTES)
		return 1;
	bytes = window_at(w, 0, HEADER_BYTES);
	if (!bytes)
		return -errno;
	c = cursor_make(bytes, HEADER_BYTES);
	magic = cursor_u32(&c);
	version = cursor_u32(&c);
	size = cursor_u32(&c);
	machine = cursor_u32(&c);
	(void)cursor_take(&c, 16); /* padding, pid, time */
	j->arch_clock = cursor_u64(&c) & FLAG_ARCH_CLOCK;
	if (magic == MAGIC_SWAPPED)
		j->problem = "is of a machine of another byte order";
	else if (magic != MAGIC)
		j->problem = "does not begin as a jitdump file does";
	else if (version == 0 || version > 2)
		j->problem = "has another version than 1 and 2";
	else if (machine != MACHINE)
		j->problem = "has code of another machine";
	else if (size < HEADER_BYTES || size > MAX_HEADER)
		j->problem = "has a header of impossible size";
	else
		j->offset = size;
	return j->problem ? -ENOEXEC : 0;
}

/* What of the record is of interest: all of it but code and unwinding information. */
static size_t useful_bytes(uint32_t id, uint32_t size)
{
	uint32_t most = id == CODE_DEBUG_INFO ? 4 * MAX_LINES_BYTES
			: id == CODE_LOAD     ? RECORD_BYTES + 40 + MAX_NAME + 1
					      : RECORD_BYTES + 48;

	return size < most ? size : most;
}

/* 0; 1: no further record that is whole and old enough; -errno. */
static int next_record(struct jitdump *j, struct window *w, uint64_t until_ns)
{
	uint32_t id, size;
	const uint8_t *bytes;
	struct cursor c;
	uint64_t time;
	int r;

	if (j->offset > w->n_file || w->n_file - j->offset < RECORD_BYTES)
		return 1;
	bytes = window_at(w, j->offset, RECORD_BYTES);
	if (!bytes)
		return -errno;
	c = cursor_make(bytes, RECORD_BYTES);
	id = cursor_u32(&c);
	size = cursor_u32(&c);
	time = cursor_u64(&c);
	if (size < RECORD_BYTES || size > MAX_RECORD) {
		j->problem = "has a record of impossible size";
		return -ENOEXEC;
	}
	if (size > w->n_file - j->offset || (time > until_ns && !j->arch_clock))
		return 1;
	bytes = window_at(w, j->offset, useful_bytes(id, size));
	if (!bytes)
		return -errno;
	r = read_record(j, id, bytes + RECORD_BYTES, useful_bytes(id, size) - RECORD_BYTES);
	if (r == 0)
		j->offset += size;
	return r;
}

int jitdump_update(struct jitdump *j, int fd, uint64_t until_ns)
{
	struct window w = {.fd = fd};
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	w.n_file = (uint64_t)st.st_size;
	if (st.st_dev != j->dev || st.st_ino != j->ino || w.n_file < j->offset)
		jitdump_reset(j);
	j->dev = st.st_dev;
	j->ino = st.st_ino;
	if (j->problem)
		return -ENOEXEC;
	errno = ENOMEM;
	r = j->offset ? 0 : read_header(j, &w);
	while (r == 0 && w.n_read < UPDATE_BYTES)
		r = next_record(j, &w, until_ns);
	free(w.bytes);
	return r < 0 ? r : 0;
}

const char *jitdump_problem(const struct jitdump *j)
{
	return j->problem;
}

/* The last row at or before the place in the function. */
static void find_line(const struct jitdump *j, const struct code_entry *e, uint64_t at,
		      struct symbol *ret)
{
	const char *more = code_table_name(&j->table, e) + strlen(ret->name) + 1, *files;
	uint32_t n, low = 0, high;
	struct line_row row;

	if (e->n_more == 0)
		return;
	memcpy(&n, more, sizeof(n));
	more += sizeof(n);
	files = more + n * sizeof(row);
	at += j->plain_lines ? 0 : V8_SHIFT;
	for (high = n; low < high;) {
		uint32_t middle = low + (high - low) / 2;

		memcpy(&row, more + middle * sizeof(row), sizeof(row));
		if (row.at <= at)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return;
	memcpy(&row, more + (low - 1) * sizeof(row), sizeof(row));
	ret->file = files + row.file;
	ret->line = row.line;
	ret->column = row.column;
}

int jitdump_lookup(struct jitdump *j, uint64_t address, struct symbol *ret)
{
	const struct code_entry *e = code_table_lookup(&j->table, address);

	if (!e)
		return 1;
	*ret = (struct symbol){.name = code_table_name(&j->table, e),
			       .start = e->start - e->skip,
			       .size = e->whole};
	find_line(j, e, address - ret->start, ret);
	return 0;
}

size_t jitdump_bytes(const struct jitdump *j)
{
	return sizeof(*j) + code_table_bytes(&j->table) + array_bytes(&j->lines.rows) +
	       array_bytes(&j->lines.files);
}

uint64_t jitdump_refused(const struct jitdump *j)
{
	return j->table.n_refused + j->n_bad;
}
