/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of a just-in-time compiler, from the text it appends to /tmp/perf-PID.map.
 *
 * The last line is read even before its newline is there, and again when the file has grown. Others
 * rewrite the whole file in place (OpenJDK's Compiler.perfmap): it has only grown if the bytes
 * before the new part are still the ones that were read there. Anybody may write such a file, so
 * every number is bounded (no line claims the address space; zero sizes and wrapping ranges are
 * skipped).
 */
#include "symbolize/symbolize.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "symbolize/code-table.h"

#define READ_BYTES 65536
#define MAX_LINE   8192 /* the rest of a name is dropped */
#define TAIL_BYTES 64	/* with an address that no other line has */

struct perf_map {
	struct code_table table;
	uint64_t offset;       /* of the first line that was not complete */
	char tail[TAIL_BYTES]; /* the bytes read before that, right-aligned */
	uint64_t size_seen;
	struct timespec mtime;
	dev_t dev;
	ino_t ino;
	bool skip; /* inside a line that is too long */
	bool more; /* the last update stopped before the end */
};

int perf_map_new(struct perf_map **ret, const struct symbol_limits *limits)
{
	struct perf_map *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	code_table_init(&m->table, limits->max_table_bytes);
	*ret = m;
	return 0;
}

struct perf_map *perf_map_free(struct perf_map *m)
{
	if (!m)
		return NULL;
	code_table_deinit(&m->table);
	free(m);
	return NULL;
}

/* ---- Reading ---- */

/* Hex with or without 0x, and the blanks after it. */
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
	uint64_t start, size;
	const char *nul;

	if (!parse_hex(&p, end, &start) || !parse_hex(&p, end, &size) || p == end)
		return 0;
	nul = memchr(p, 0, (size_t)(end - p));
	end = nul ? nul : end;
	if (end > p && end[-1] == '\r')
		end--;
	return code_table_add(&m->table, start, size, p, (size_t)(end - p), NULL, 0);
}

/*
 * Reads the lines of buffer[0..n), which is at m->offset in the file; *ret_used: bytes consumed. A
 * line that fills the buffer loses its rest.
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
	code_table_clear(&m->table);
	m->offset = m->size_seen = 0;
	m->skip = false;
}

/* Advances m->offset by n consumed bytes of the buffer. */
static void map_advance(struct perf_map *m, const char *buffer, size_t n)
{
	size_t n_tail = n < TAIL_BYTES ? n : TAIL_BYTES;

	memmove(m->tail, m->tail + n_tail, TAIL_BYTES - n_tail);
	memcpy(m->tail + TAIL_BYTES - n_tail, buffer + n - n_tail, n_tail);
	m->offset += n;
}

/* Is this the file that was read before, perhaps with more appended? */
static bool map_goes_on(const struct perf_map *m, int fd, const struct stat *st)
{
	size_t n = m->offset < TAIL_BYTES ? (size_t)m->offset : TAIL_BYTES;
	char tail[TAIL_BYTES];

	if (st->st_dev != m->dev || st->st_ino != m->ino || (uint64_t)st->st_size < m->size_seen)
		return false;
	if ((uint64_t)st->st_size == m->size_seen)
		return st->st_mtim.tv_sec == m->mtime.tv_sec &&
		       st->st_mtim.tv_nsec == m->mtime.tv_nsec;
	return n > 0 && pread(fd, tail, n, (off_t)(m->offset - n)) == (ssize_t)n &&
	       memcmp(tail, m->tail + TAIL_BYTES - n, n) == 0;
}

static int map_read(struct perf_map *m, int fd)
{
	_cleanup_free_ char *buffer = malloc(READ_BYTES);
	uint64_t limit = m->offset + m->table.max_bytes; /* the rest at the next update */

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
		map_advance(m, buffer, used);
		if (r < 0)
			return r;
		if (used == 0) {
			/* The end, perhaps of an incomplete line. */
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
	if (!map_goes_on(m, fd, &st))
		map_reset(m);
	m->dev = st.st_dev;
	m->ino = st.st_ino;
	m->mtime = st.st_mtim;
	if ((uint64_t)st.st_size == m->size_seen && !m->more)
		return 0;
	m->size_seen = (uint64_t)st.st_size;
	return map_read(m, fd);
}

int perf_map_lookup(struct perf_map *m, uint64_t address, struct symbol *ret)
{
	const struct code_entry *e = code_table_lookup(&m->table, address);

	if (!e)
		return 1;
	*ret = (struct symbol){.name = code_table_name(&m->table, e),
			       .start = e->start - e->skip,
			       .size = e->whole};
	return 0;
}

size_t perf_map_bytes(const struct perf_map *m)
{
	return sizeof(*m) + code_table_bytes(&m->table);
}

uint64_t perf_map_refused(const struct perf_map *m)
{
	return m->table.n_refused;
}
