/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of a just-in-time compiler from its jit-PID.dump (tools/perf/Documentation/
 * jitdump-specification.txt in the Linux source, version 2), read while it is written.
 *
 * Records are in the order of their time stamps. Reading stops at the first one later than the
 * wanted time, so a caller that moves forward in time sees the code as it was at each step. Only
 * the header of a record is read and what the caller uses: names and lines, or unwinding
 * information. The code itself is skipped.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbolize/arch.h"
#include "symbolize/jitdump-internal.h"

#define MAGIC		UINT32_C(0x4A695444)
#define MAGIC_SWAPPED	UINT32_C(0x4454694A)
#define HEADER_BYTES	40
#define RECORD_BYTES	16
#define MAX_HEADER	65536
#define MAX_RECORD	(UINT32_C(1) << 30)
#define READ_BYTES	(UINT64_C(256) << 10)
#define FLAG_ARCH_CLOCK 1

enum record_id { CODE_LOAD, CODE_MOVE, CODE_DEBUG_INFO, CODE_CLOSE, CODE_UNWINDING_INFO };

/* Bytes that one update reads. A process that walks stacks must drain its rings, too. */
static const uint64_t update_bytes[] = {
	[JITDUMP_NAMES] = UINT64_C(64) << 20,
	[JITDUMP_UNWINDING] = UINT64_C(1) << 20,
};

/* The part of the file in memory during an update. */
struct file_window {
	int fd;
	uint64_t n_file, begin, n_read;
	uint8_t *bytes;
	size_t n, cap;
};

int jitdump_new(struct jitdump **ret, const struct symbol_limits *limits, enum jitdump_use use)
{
	struct jitdump *j = calloc(1, sizeof(*j));

	if (!j)
		return -ENOMEM;
	j->use = use;
	code_table_init(&j->table, limits->max_table_bytes);
	jitdump_lines_init(&j->lines);
	*ret = j;
	return 0;
}

struct jitdump *jitdump_free(struct jitdump *j)
{
	if (!j)
		return NULL;
	code_table_deinit(&j->table);
	jitdump_lines_deinit(&j->lines);
	jitdump_frames_forget(&j->frames);
	free(j);
	return NULL;
}

/* n bytes at offset, all of them within the file. NULL: no memory, or a read failed (errno). */
static const uint8_t *window_at(struct file_window *w, uint64_t offset, size_t n)
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
	errno = EIO; /* the file has shrunk */
	return n <= w->n ? w->bytes : NULL;
}

/* ---- Records ---- */

/* Adds a function with the lines read before it. */
static int add_function(struct jitdump *j, uint64_t start, uint64_t size, const char *name,
			size_t n_name)
{
	size_t n_more = 0;
	_cleanup_free_ void *more = jitdump_pack_lines(&j->lines, &n_more);

	if (!more)
		return -ENOMEM;
	return code_table_add(&j->table, start, size, name, n_name, more, n_more);
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
	if (j->use == JITDUMP_UNWINDING) {
		j->n_bad += !cursor_ok(c);
		return cursor_ok(c) ? jitdump_add_frames(j, vma, size) : 0;
	}
	name = jitdump_take_name(c, &n);
	if (!cursor_ok(c) || n == 0) {
		j->n_bad++;
		return 0;
	}
	if (j->lines.code_address != code_address)
		jitdump_lines_forget(&j->lines);
	r = add_function(j, vma, size, name, n);
	jitdump_lines_forget(&j->lines);
	return r;
}

/* Copies the function: the one at the old address stays until other code is there. */
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

	/* Before the first unwinding record no function needs to be known. */
	if (j->use == JITDUMP_UNWINDING && j->n_frames == 0 && id != CODE_UNWINDING_INFO)
		return 0;
	switch ((enum record_id)id) {
	case CODE_LOAD:
		return read_load(j, &c);
	case CODE_MOVE:
		return read_move(j, &c);
	case CODE_DEBUG_INFO:
		return j->use == JITDUMP_NAMES ? jitdump_read_lines(j, &c) : 0;
	case CODE_UNWINDING_INFO:
		return j->use == JITDUMP_UNWINDING ? jitdump_read_frames(j, &c) : 0;
	case CODE_CLOSE:
		break;
	}
	return 0;
}

/* ---- The file ---- */

static void jitdump_reset(struct jitdump *j)
{
	code_table_clear(&j->table);
	jitdump_lines_forget(&j->lines);
	jitdump_frames_forget(&j->frames);
	j->offset = j->next_time_ns = 0;
	j->problem = NULL;
	j->plain_lines = false;
}

/* 1: the header is not there yet. */
static int read_header(struct jitdump *j, struct file_window *w)
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
		j->problem = "was written in another byte order";
	else if (magic != MAGIC)
		j->problem = "does not begin with the header of a jitdump file";
	else if (version == 0 || version > 2)
		j->problem = "has a version other than 1 and 2";
	else if (machine != arch_here()->machine)
		j->problem = "has code for another architecture";
	else if (size < HEADER_BYTES || size > MAX_HEADER)
		j->problem = "has a header of impossible size";
	else
		j->offset = size;
	return j->problem ? -ENOEXEC : 0;
}

/*
 * Bytes of a record to read: all but the code, and nothing of a record that the caller does not
 * use.
 */
static size_t useful_bytes(const struct jitdump *j, uint32_t id, uint32_t size)
{
	bool names = j->use == JITDUMP_NAMES;
	uint32_t most = RECORD_BYTES + 48;

	if (id == CODE_LOAD && names)
		most = RECORD_BYTES + 40 + JITDUMP_MAX_NAME + 1;
	else if (id == CODE_DEBUG_INFO && names)
		most = 4 * JITDUMP_MAX_LINES_BYTES;
	else if (id == CODE_UNWINDING_INFO && !names)
		most += JITDUMP_MAX_FRAMES_BYTES;
	return size < most ? size : most;
}

/* 0; 1: no further record that is complete and early enough; -errno. */
static int next_record(struct jitdump *j, struct file_window *w, uint64_t until_ns)
{
	uint32_t id, size;
	const uint8_t *bytes;
	struct cursor c;
	uint64_t time;
	size_t n;
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
	if (size > w->n_file - j->offset)
		return 1;
	if (time > until_ns && !j->arch_clock) {
		j->next_time_ns = time;
		return 1;
	}
	n = useful_bytes(j, id, size);
	bytes = window_at(w, j->offset, n);
	if (!bytes)
		return -errno;
	r = read_record(j, id, bytes + RECORD_BYTES, n - RECORD_BYTES);
	if (r == 0)
		j->offset += size;
	return r;
}

int jitdump_update(struct jitdump *j, int fd, uint64_t until_ns)
{
	struct file_window w = {.fd = fd};
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
	/* The next record is known to be too recent. */
	if (until_ns < j->next_time_ns)
		return 0;
	j->next_time_ns = 0;
	errno = ENOMEM;
	r = j->offset ? 0 : read_header(j, &w);
	while (r == 0 && w.n_read < update_bytes[j->use])
		r = next_record(j, &w, until_ns);
	free(w.bytes);
	return r < 0 ? r : 0;
}

const char *jitdump_problem(const struct jitdump *j)
{
	return j->problem;
}

int jitdump_lookup(struct jitdump *j, uint64_t address, struct symbol *ret)
{
	const struct code_entry *e = code_table_lookup(&j->table, address);

	if (!e)
		return 1;
	*ret = (struct symbol){.name = code_table_name(&j->table, e),
			       .start = e->start - e->skip,
			       .size = e->whole};
	jitdump_find_line(j, e, address - ret->start, ret);
	return 0;
}

size_t jitdump_bytes(const struct jitdump *j)
{
	return sizeof(*j) + code_table_bytes(&j->table) + array_bytes(&j->lines.rows) +
	       array_bytes(&j->lines.files) + j->frames.n;
}

uint64_t jitdump_refused(const struct jitdump *j)
{
	return j->table.n_refused + j->n_bad;
}
