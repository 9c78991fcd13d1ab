/* SPDX-License-Identifier: Apache-2.0 */
#include "src/screen/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/cursor.h"
#include "util/text.h"
#include "util/memory-file.h"

#define WIRE_MAGIC UINT64_C(0x36706f746b6c6177) /* "walktop6" */
#define WIRE_MAX   (UINT64_C(64) << 20)
#define TEXT_MAX   2048 /* bytes of a text, with its 0 */

struct wire_header {
	uint64_t magic;
	struct top_counts counts;
	uint64_t period_ns, period_events, n_refused, start_ns, end_ns;
	uint64_t unit, in_use;
	double variance;
	uint64_t n_rows, n_nodes; /* nodes follow the rows */
};

/* The fixed part of a row, before its four texts. */
struct wire_row {
	uint64_t self, total, pid, code;
};

static void put_text(FILE *f, const struct top_table *t, strid id)
{
	const char *text = strtab_get(&t->strings, id);

	(void)fwrite(text, 1, strlen(text) + 1, f);
}

static int write_all(FILE *f, const struct top_table *t)
{
	const struct wire_header h = {
		.magic = WIRE_MAGIC,
		.counts = t->counts,
		.period_ns = t->period_ns,
		.period_events = t->period_events,
		.n_refused = t->n_refused,
		.start_ns = t->start_ns,
		.end_ns = t->end_ns,
		.unit = t->unit,
		.in_use = t->in_use,
		.variance = t->variance,
		.n_rows = t->rows.n,
		.n_nodes = t->nodes.n,
	};

	(void)fwrite(&h, sizeof(h), 1, f);
	for (uint32_t i = 0; i < t->rows.n; i++) {
		const struct top_row *r = &t->rows.items[i];
		const struct wire_row w = {r->self, r->total, r->pid, r->code};

		(void)fwrite(&w, sizeof(w), 1, f);
		put_text(f, t, r->function);
		put_text(f, t, r->module);
		put_text(f, t, r->comm);
		put_text(f, t, r->owner);
	}
	if (t->nodes.n > 0)
		(void)fwrite(t->nodes.items, sizeof(*t->nodes.items), t->nodes.n, f);
	return fflush(f) != 0 || ferror(f) ? -EIO : 0;
}

int top_table_write(const struct top_table *t)
{
	_cleanup_close_ int fd = memory_file_new("perfwalk-top");
	int again = fd < 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, 0), r;
	FILE *f = again < 0 ? NULL : fdopen(again, "w");

	if (!f) {
		r = fd < 0 ? fd : -errno;
		(void)close_fd(again);
		return r;
	}
	r = write_all(f, t);
	(void)fclose(f);
	if (r == 0)
		r = memory_file_seal(fd);
	return r < 0 ? r : TAKE_FD(fd);
}

/* Copies all of it, so that the sender can no longer change it. */
static int read_bytes(int fd, uint8_t **ret, size_t *ret_n)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	struct stat st;
	size_t n = 0;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < 0 || (uint64_t)st.st_size > WIRE_MAX)
		return -EFBIG;
	bytes = malloc((size_t)st.st_size + 1);
	if (!bytes)
		return -ENOMEM;
	while (n < (size_t)st.st_size) {
		ssize_t got = pread(fd, bytes + n, (size_t)st.st_size - n, (off_t)n);

		if (got < 0 && errno != EINTR)
			return -errno;
		if (got == 0)
			break;
		n += got > 0 ? (size_t)got : 0;
	}
	*ret = TAKE_PTR(bytes);
	*ret_n = n;
	return 0;
}

static const char *clean_text(struct cursor *c, char *buf)
{
	const char *text = cursor_string(c);

	(void)text_clean(buf, TEXT_MAX, text ? text : "", SIZE_MAX);
	return buf;
}

static int read_row(struct top_table *t, struct cursor *c)
{
	char function[TEXT_MAX], module[TEXT_MAX], comm[TEXT_MAX], owner[TEXT_MAX];
	struct top_key key;
	struct wire_row w;

	cursor_read(c, &w, sizeof(w));
	key = (struct top_key){
		.function = clean_text(c, function),
		.module = clean_text(c, module),
		.comm = clean_text(c, comm),
		.owner = clean_text(c, owner),
		.pid = (uint32_t)w.pid,
		.code = w.code < TOP_CODE_N ? (enum top_code)w.code : TOP_CODE_OTHER,
	};
	if (!cursor_ok(c) || w.pid > UINT32_MAX || w.self > w.total || w.total > t->counts.whole)
		return -EBADMSG;
	(void)top_table_add(t, &key, w.self, w.total); /* counts what does not fit */
	return 0;
}

/* Cleaning may make the texts of two rows equal, which then share a row with another number. */
static int read_node(struct top_table *t, uint64_t n_rows, uint32_t number, struct cursor *c)
{
	struct top_node node;
	uint32_t i;

	cursor_read(c, &node, sizeof(node));
	if (!cursor_ok(c) || node.row >= n_rows || node.self > node.total ||
	    node.total > t->counts.whole || (node.parent != TOP_NO_NODE && node.parent >= number))
		return -EBADMSG;
	if (t->rows.n != n_rows || t->nodes.n != number) {
		t->n_refused++;
		return 0;
	}
	i = top_table_node(t, node.parent, node.row);
	if (i == TOP_NO_NODE)
		return 0;
	t->nodes.items[i].self += node.self;
	t->nodes.items[i].total += node.total;
	return 0;
}

int top_table_read(struct top_table *t, int fd)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	struct wire_header h;
	struct cursor c;
	size_t n = 0;
	int r = read_bytes(fd, &bytes, &n);

	if (r < 0)
		return r;
	c = cursor_make(bytes, n);
	cursor_read(&c, &h, sizeof(h));
	if (!cursor_ok(&c) || h.magic != WIRE_MAGIC || h.n_rows > TOP_MAX_ROWS ||
	    h.n_nodes > TOP_MAX_NODES || h.start_ns > h.end_ns || h.counts.n_samples > UINT32_MAX ||
	    h.counts.whole > TOP_MAX_WHOLE || h.counts.idle_ns > TOP_MAX_WHOLE ||
	    h.unit >= TOP_UNIT_N || h.in_use > 1 || !isfinite(h.variance) || h.variance < 0 ||
	    h.counts.n_lost > UINT64_C(1) << 48 || h.counts.n_user_stacks > UINT32_MAX ||
	    h.counts.n_incomplete > h.counts.n_user_stacks || h.period_ns > UINT64_C(1) << 48 ||
	    h.period_events > UINT64_C(1) << 62)
		return -EBADMSG;
	t->counts = h.counts;
	t->unit = (enum top_unit)h.unit;
	t->in_use = h.in_use;
	t->variance = h.variance;
	t->period_ns = h.period_ns;
	t->period_events = h.period_events;
	t->n_refused = h.n_refused;
	t->start_ns = h.start_ns;
	t->end_ns = h.end_ns;
	for (uint64_t i = 0; i < h.n_rows && r == 0; i++)
		r = read_row(t, &c);
	for (uint64_t i = 0; i < h.n_nodes && r == 0; i++)
		r = read_node(t, h.n_rows, (uint32_t)i, &c);
	return r < 0 ? r : cursor_left(&c) == 0 ? 0 : -EBADMSG;
}
