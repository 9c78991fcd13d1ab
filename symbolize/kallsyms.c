/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's functions from the text of /proc/kallsyms.
 *
 * A copy of it in a regular file, as perf keeps one, is parsed only where a lookup needs it: the
 * lines of the kernel proper are cut into parts that begin where the address changes, and the first
 * lookup in a part makes a table of it. /proc/kallsyms cannot be mapped; it is read as a whole. If
 * few names are wanted (limits.keep_text), its text is kept and parsed in the same way.
 */
#include "symbolize/symbolize.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "symbolize/kallsyms-table.h"
#include "util/array.h"
#include "util/bisect.h"
#include "util/mapped-file.h"

#define PART_BYTES 8192
#define MIN_PARTED (UINT64_C(256) << 10) /* smaller texts are parsed as a whole */
#define FIRST_TEXT (UINT64_C(8) << 20)	 /* most kernels need no more */

struct part {
	uint64_t start;
	size_t offset; /* in the text; the part ends where the next begins */
	struct kallsyms_table *table;
	bool loaded;
};

struct kallsyms {
	const char *text;	  /* NULL: all is in the last table */
	struct mapped_file *file; /* has the text; or: */
	char *kept;		  /* the text itself */
	size_t n_text, n_kernel;
	uint64_t max_bytes;
	ARRAY(struct part) parts;    /* of the kernel proper, sorted */
	struct kallsyms_table *rest; /* modules and programs, or everything; may be NULL */
};

struct kallsyms *kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return NULL;
	for (uint32_t i = 0; i < k->parts.n; i++)
		kallsyms_table_free(k->parts.items[i].table);
	array_deinit(&k->parts);
	kallsyms_table_free(k->rest);
	mapped_file_free(k->file);
	free(k->kept);
	free(k);
	return NULL;
}

/* The first line after p with another address than the line before it. */
static const char *part_end(const char *start, const char *p, const char *end)
{
	uint64_t before, address;
	const char *line;

	p = memchr(p, '\n', (size_t)(end - p));
	if (!p || p + 1 == end)
		return end;
	line = memrchr(start, '\n', (size_t)(p - start));
	start = line ? line + 1 : start;
	if (!kallsyms_parse_hex(&start, end, &before))
		return end;
	for (;;) {
		const char *at = ++p;

		if (!kallsyms_parse_hex(&at, end, &address) || address != before)
			return p;
		p = memchr(p, '\n', (size_t)(end - p));
		if (!p || p + 1 == end)
			return end;
	}
}

/* Cuts the kernel's own lines; false: they are not in order. */
static bool parts_cut(struct kallsyms *k)
{
	const char *p = k->text, *bracket = memchr(p, '[', k->n_text), *end = p + k->n_text;

	while (bracket && bracket > k->text && bracket[-1] != '\n')
		bracket--;
	end = bracket ? bracket : end;
	k->n_kernel = (size_t)(end - p);
	k->parts.max = UINT32_MAX / 2;
	while (p < end) {
		const char *at = p;
		struct part *part = array_push(&k->parts);

		if (!part || !kallsyms_parse_hex(&at, end, &part->start) ||
		    (k->parts.n > 1 && part->start <= part[-1].start))
			return false;
		part->offset = (size_t)(p - k->text);
		p = end - p > PART_BYTES ? part_end(p, p + PART_BYTES, end) : end;
	}
	return k->parts.n > 1;
}

/* Parses what is not of the kernel proper. false: as above. */
static bool parts_parse(struct kallsyms *k)
{
	if (!parts_cut(k))
		return false;
	if (k->n_kernel < k->n_text)
		k->rest = kallsyms_table_new(k->text + k->n_kernel, k->n_text - k->n_kernel, 0,
					     k->max_bytes);
	return true;
}

/* NULL: not a regular file, or not one that can be read in parts. */
static struct kallsyms *parted_new(int fd, uint64_t max_bytes)
{
	_cleanup_(kallsyms_freep) struct kallsyms *k = calloc(1, sizeof(*k));
	uint64_t n_short = mapped_file_n_short();
	struct stat st;

	if (!k || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size < MIN_PARTED ||
	    (uint64_t)st.st_size > max_bytes)
		return NULL;
	if (mapped_file_new(&k->file, fd, 0, (size_t)st.st_size) < 0)
		return NULL;
	k->text = mapped_file_bytes(k->file);
	k->n_text = (size_t)st.st_size;
	k->max_bytes = max_bytes;
	if (!parts_parse(k))
		return NULL;
	return mapped_file_n_short() == n_short ? TAKE_PTR(k) : NULL;
}

/* All that is left of a file. NULL: more than max_bytes, or no memory. */
static char *read_text(int fd, uint64_t max_bytes, size_t *ret_n)
{
	size_t size = FIRST_TEXT, n = 0;
	_cleanup_free_ char *text = malloc(size);
	ssize_t got = 1;

	while (text && got > 0) {
		char *larger = n == size ? realloc(text, size *= 2) : text;

		if (!larger || n > max_bytes)
			return NULL;
		text = larger;
		got = read(fd, text + n, size - n);
		if (got < 0 && errno != EINTR)
			return NULL;
		n += got > 0 ? (size_t)got : 0;
		got = got < 0 ? 1 : got;
	}
	*ret_n = n;
	return TAKE_PTR(text);
}

/* Takes the table of a whole text. NULL: no memory, or no table. */
static struct kallsyms *whole_new(struct kallsyms_table *table)
{
	struct kallsyms *k = table ? calloc(1, sizeof(*k)) : NULL;

	if (k)
		k->rest = table;
	else
		kallsyms_table_free(table);
	return k;
}

/* NULL: the text is too long, or fd cannot be read twice; then fd is where it was. What is short,
 * not in order, or hidden, is parsed as a whole. */
static struct kallsyms *kept_new(int fd, uint64_t max_bytes)
{
	_cleanup_(kallsyms_freep) struct kallsyms *k = calloc(1, sizeof(*k));
	off_t begin = lseek(fd, 0, SEEK_CUR);
	struct kallsyms *found = NULL;

	if (!k || begin < 0)
		return NULL;
	k->text = k->kept = read_text(fd, max_bytes, &k->n_text);
	k->max_bytes = max_bytes;
	if (k->text && k->n_text >= MIN_PARTED && parts_parse(k))
		return TAKE_PTR(k);
	if (k->text)
		found = whole_new(kallsyms_table_new(k->text, k->n_text, 0, max_bytes));
	if (!found)
		(void)lseek(fd, begin, SEEK_SET);
	return found;
}

static const struct kallsyms_table *part_table(const struct kallsyms *k, uint32_t i)
{
	struct part *part = &k->parts.items[i];
	bool last = i + 1 == k->parts.n;
	size_t end = last ? k->n_kernel : part[1].offset;
	uint64_t n_short = mapped_file_n_short();

	if (!part->loaded)
		part->table = kallsyms_table_new(k->text + part->offset, end - part->offset,
						 last ? 0 : part[1].start, k->max_bytes);
	part->loaded = true;
	if (mapped_file_n_short() != n_short)
		part->table = kallsyms_table_free(part->table);
	return part->table;
}

int kallsyms_new_fd(struct kallsyms **ret, int fd, const struct symbol_limits *limits)
{
	uint64_t max_bytes = limits->max_table_bytes;
	struct kallsyms *k = parted_new(fd, max_bytes);
	bool any;

	if (!k && limits->keep_text)
		k = kept_new(fd, max_bytes);
	if (!k) {
		struct kallsyms_table *table = NULL;
		int r = kallsyms_table_read(&table, fd, max_bytes);

		k = whole_new(table);
		if (!k)
			return r < 0 ? r : -ENOMEM;
	}
	any = k->parts.n || kallsyms_table_has_addresses(k->rest);
	*ret = any ? k : kallsyms_free(k);
	return any ? 0 : 1;
}

int kallsyms_lookup(const struct kallsyms *k, uint64_t address, struct symbol *ret)
{
	uint32_t n = bisect(k->parts.n, i, k->parts.items[i].start <= address);
	const struct kallsyms_table *table = n ? part_table(k, n - 1) : NULL;

	if (table && kallsyms_table_lookup(table, address, ret) == 0)
		return 0;
	return k->rest ? kallsyms_table_lookup(k->rest, address, ret) : 1;
}

uint64_t kallsyms_text_start(const struct kallsyms *k)
{
	for (uint32_t i = 0; i < k->parts.n; i++) {
		const struct kallsyms_table *table = part_table(k, i);
		uint64_t start = table ? kallsyms_table_text_start(table) : 0;

		if (start)
			return start;
	}
	return k->rest ? kallsyms_table_text_start(k->rest) : 0;
}

bool kallsyms_equal(const struct kallsyms *a, const struct kallsyms *b)
{
	if (a->kept && b->kept)
		return a->n_text == b->n_text && memcmp(a->kept, b->kept, a->n_text) == 0;
	return !a->text && !b->text && kallsyms_table_equal(a->rest, b->rest);
}

size_t kallsyms_bytes(const struct kallsyms *k)
{
	size_t n = k->rest ? kallsyms_table_bytes(k->rest) : 0;

	for (uint32_t i = 0; i < k->parts.n; i++)
		n += sizeof(*k->parts.items) +
		     (k->parts.items[i].table ? kallsyms_table_bytes(k->parts.items[i].table) : 0);
	return n + sizeof(*k) + (k->kept ? k->n_text : 0);
}

uint64_t kallsyms_refused(const struct kallsyms *k)
{
	return k->rest ? kallsyms_table_refused(k->rest) : 0;
}
