/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines are "ADDRESS TYPE NAME[\t[MODULE]]": those of the kernel proper, sorted, then modules and
 * BPF programs in any order. There are no sizes: a function reaches to the next symbol of any type.
 * But it must not name everything up to the next module if nothing follows closely:
 *	- data symbols and markers of an end (_etext) end a function and name nothing;
 *	- the last function of a module or of the kernel gets at most MAX_LAST bytes, any other at
 *	  most MAX_FUNCTION.
 * If one address has several names, global ones win over local ones, then the one with fewer
 * leading underscores, then the first: srso_alias_untrain_ret over _stext.
 *
 * One entry is 8 bytes and its name; all names are in one blob. The padding before each function is
 * a symbol of its own, "__pfx_" and the function's name: both share their bytes.
 */
#include "symbolize/kallsyms-table.h"

#include <string.h>
#include <unistd.h>

#include "symbolize/sort.h"
#include "util/array.h"
#include "util/bisect.h"

#define READ_BYTES   65536
#define MAX_LINE     1024 /* the kernel's names have at most 511 bytes */
#define MAX_MODULES  4096
#define MAX_MODULE   64
#define MAX_FUNCTION (UINT64_C(1) << 20)
#define MAX_LAST     (UINT64_C(64) << 10)
#define FIRST_BLOB   8192

struct kernel_module {
	char name[MAX_MODULE];
};

/* Entries of one module, up to the next run. */
struct module_run {
	uint32_t first, module;
};

struct kallsyms_table {
	uint64_t base;	 /* of the first entry */
	uint32_t *near;	 /* starts of the entries after that, sorted */
	uint64_t *far;	 /* the same, absolute, if they do not fit there; else NULL */
	uint32_t *names; /* offset in the blob; 0: a boundary, no function */
	uint32_t n;
	ARRAY(struct module_run) runs;		  /* the first one begins at entry 0 */
	ARRAY(struct kernel_module) module_names; /* 0: the kernel proper */
	char *blob;
	size_t n_blob;
	bool any_address;
	uint64_t n_refused;
};

/* While reading, name and module are in the value and extra of a sort pair. */
struct kallsyms_reader {
	struct kallsyms_table *t;
	ARRAY(struct sort_pair) pairs;
	size_t cap_blob, max_bytes;
	size_t last; /* where the last name of the blob begins; 0: there is none */
};

#define EXTRA_MODULE   0xffffu
#define EXTRA_EXTERNAL 0x10000u

struct kallsyms_table *kallsyms_table_free(struct kallsyms_table *t)
{
	if (!t)
		return NULL;
	free(t->near);
	free(t->far);
	free(t->names);
	array_deinit(&t->runs);
	array_deinit(&t->module_names);
	free(t->blob);
	free(t);
	return NULL;
}

static bool is_end_marker(const char *name, size_t n)
{
	static const char *const markers[] = {"_etext", "_einittext", "_end"};
	static const char suffix[] = "_text_end";

	if (name[0] != '_')
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(markers); i++)
		if (n == strlen(markers[i]) && memcmp(name, markers[i], n) == 0)
			return true;
	return n >= sizeof(suffix) &&
	       memcmp(name + n - (sizeof(suffix) - 1), suffix, sizeof(suffix) - 1) == 0;
}

/* Lines of one module follow each other, so the last module is nearly always the right one. */
static int module_intern(struct kallsyms_reader *rd, const char *name, size_t n, uint32_t *ret)
{
	struct kallsyms_table *t = rd->t;
	struct kernel_module *m;

	if (n >= MAX_MODULE)
		n = MAX_MODULE - 1;
	for (uint32_t i = t->module_names.n; i-- > 0;) {
		m = &t->module_names.items[i];
		if (memcmp(m->name, name, n) == 0 && m->name[n] == 0) {
			*ret = i;
			return 0;
		}
	}
	m = array_push(&t->module_names);
	if (!m)
		return -ENOMEM;
	memcpy(m->name, name, n);
	*ret = t->module_names.n - 1;
	return 0;
}

static int blob_put(struct kallsyms_reader *rd, const char *name, size_t n, uint32_t *ret)
{
	struct kallsyms_table *t = rd->t;

	if (rd->last && t->n_blob - 1 - rd->last >= n &&
	    memcmp(t->blob + t->n_blob - 1 - n, name, n) == 0) {
		*ret = (uint32_t)(t->n_blob - 1 - n);
		return 0;
	}
	if (n + 1 > rd->cap_blob - t->n_blob) {
		size_t want = rd->cap_blob ? rd->cap_blob * 2 : FIRST_BLOB;
		char *p = realloc(t->blob, want);

		if (!p)
			return -ENOMEM;
		t->blob = p;
		rd->cap_blob = want;
	}
	if (t->n_blob == 0) /* offset 0 is no name */
		t->blob[t->n_blob++] = 0;
	memcpy(t->blob + t->n_blob, name, n);
	t->blob[t->n_blob + n] = 0;
	rd->last = t->n_blob;
	*ret = (uint32_t)t->n_blob;
	t->n_blob += n + 1;
	return 0;
}

/* The digit + 1; 0: not a digit. The branch predictor would miss a comparison at every other digit.
 */
static const uint8_t hex_digit[256] = {
	['0'] = 1,  ['1'] = 2,	['2'] = 3,  ['3'] = 4,	['4'] = 5,  ['5'] = 6,
	['6'] = 7,  ['7'] = 8,	['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12,
	['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16, ['A'] = 11, ['B'] = 12,
	['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

bool kallsyms_parse_hex(const char **p, const char *end, uint64_t *ret)
{
	const char *start = *p, *at = start;
	uint64_t v = 0;
	unsigned int d;

	for (; at < end && (d = hex_digit[(unsigned char)*at]); at++) {
		if (v >> 60)
			return false;
		v = v << 4 | (d - 1);
	}
	*p = at;
	*ret = v;
	return at > start;
}

/* The parts of a line; false: damaged, or not needed. */
struct line {
	uint64_t address;
	const char *name, *module;
	size_t n_name, n_module;
	char type;
};

static bool line_parse(const char *p, const char *end, struct line *ret)
{
	struct line l = {0};
	const char *q;

	if (!kallsyms_parse_hex(&p, end, &l.address) || end - p < 4 || p[0] != ' ' || p[2] != ' ')
		return false;
	l.type = p[1];
	l.name = p + 3;
	q = memchr(l.name, '\t', (size_t)(end - l.name));
	l.n_name = (size_t)((q ? q : end) - l.name);
	if (q && end - q > 3 && q[1] == '[' && end[-1] == ']') {
		l.module = q + 2;
		l.n_module = (size_t)(end - q) - 3;
	}
	*ret = l;
	/* 'a' is not an address, but the offset of a per-CPU variable. */
	return l.address && l.n_name && l.name[0] && (l.type | 0x20) != 'a' && l.type != 'U';
}

static bool type_is_function(char type)
{
	return (type | 0x20) == 't' || (type | 0x20) == 'w';
}

/* 0 or -ENOMEM. */
static int reader_line(struct kallsyms_reader *rd, const char *p, const char *end)
{
	struct sort_pair pair = {0}, *slot;
	uint32_t module = 0;
	struct line l;

	if (!line_parse(p, end, &l))
		return 0;
	rd->t->any_address = true;
	if (rd->t->n_blob + array_bytes(&rd->pairs) >= rd->max_bytes) {
		rd->t->n_refused++;
		return 0;
	}
	if (l.module && module_intern(rd, l.module, l.n_module, &module) < 0)
		rd->t->n_refused++;
	if (type_is_function(l.type) && l.name[0] != '$' && !is_end_marker(l.name, l.n_name) &&
	    blob_put(rd, l.name, l.n_name, &pair.value) < 0)
		return -ENOMEM;
	pair.key = l.address;
	pair.extra = module | (l.type == 't' ? 0 : EXTRA_EXTERNAL);
	slot = array_push(&rd->pairs);
	if (!slot)
		return -ENOMEM;
	*slot = pair;
	return 0;
}

/*
 * Reads all lines in the buffer and moves the rest to its start. A line that is too long loses its
 * end.
 */
static int reader_lines(struct kallsyms_reader *rd, char *buffer, size_t *n, bool *skip)
{
	char *p = buffer, *end = buffer + *n, *newline;

	while ((newline = memchr(p, '\n', (size_t)(end - p)))) {
		int r = *skip ? 0 : reader_line(rd, p, newline);

		if (r < 0)
			return r;
		*skip = false;
		p = newline + 1;
	}
	if (end - p > MAX_LINE) {
		*skip = true;
		p = end;
	}
	*n = (size_t)(end - p);
	memmove(buffer, p, *n);
	return 0;
}

static int reader_read(struct kallsyms_reader *rd, int fd)
{
	_cleanup_free_ char *buffer = malloc(READ_BYTES);
	uint64_t total = 0;
	bool skip = false;
	size_t n = 0;
	int r;

	if (!buffer)
		return -ENOMEM;
	/* Text is about three times what we keep: a longer one is not kallsyms. */
	while (total / 4 <= rd->max_bytes) {
		ssize_t got = read(fd, buffer + n, READ_BYTES - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return skip ? 0 : reader_line(rd, buffer, buffer + n);
		total += (uint64_t)got;
		n += (size_t)got;
		r = reader_lines(rd, buffer, &n, &skip);
		if (r < 0)
			return r;
	}
	rd->t->n_refused++;
	return 0;
}

static size_t leading_underscores(const char *name)
{
	return strspn(name, "_");
}

/* True: a is the better of two symbols at one address. */
static bool entry_better(const struct kallsyms_table *t, const struct sort_pair *a,
			 const struct sort_pair *b)
{
	uint32_t external = (a->extra ^ b->extra) & EXTRA_EXTERNAL;

	if (!a->value || !b->value)
		return a->value && !b->value;
	if (external)
		return a->extra & EXTRA_EXTERNAL;
	return leading_underscores(t->blob + a->value) < leading_underscores(t->blob + b->value);
}

/* Keeps one entry for each address, and boundaries only where they end a function. */
static uint32_t pairs_reduce(const struct kallsyms_table *t, struct sort_pair *pairs, uint32_t n)
{
	uint32_t kept = 0;

	for (uint32_t i = 0, next; i < n; i = next) {
		struct sort_pair best = pairs[i];

		for (next = i + 1; next < n && pairs[next].key == pairs[i].key; next++)
			if (entry_better(t, &pairs[next], &best))
				best = pairs[next];
		if (best.value || (kept && pairs[kept - 1].value))
			pairs[kept++] = best;
	}
	return kept;
}

/* The entries of sorted pairs. 0 or -ENOMEM. */
static int take_pairs(struct kallsyms_table *t, const struct sort_pair *pairs, uint32_t n)
{
	t->base = n ? pairs[0].key : 0;
	t->names = malloc((n + 1) * sizeof(*t->names));
	if (n && pairs[n - 1].key - t->base > UINT32_MAX)
		t->far = malloc(n * sizeof(*t->far));
	else
		t->near = malloc((n + 1) * sizeof(*t->near));
	if (!t->names || (!t->far && !t->near))
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t module = pairs[i].extra & EXTRA_MODULE;

		if (t->far)
			t->far[i] = pairs[i].key;
		else
			t->near[i] = (uint32_t)(pairs[i].key - t->base);
		t->names[i] = pairs[i].value;
		if (t->runs.n == 0 || t->runs.items[t->runs.n - 1].module != module) {
			struct module_run *run = array_push(&t->runs);

			if (!run)
				return -ENOMEM;
			*run = (struct module_run){i, module};
		}
	}
	t->n = n;
	return 0;
}

static int reader_finish(struct kallsyms_reader *rd)
{
	struct kallsyms_table *t = rd->t;
	struct sort_pair *pairs = rd->pairs.items;
	uint32_t n = rd->pairs.n;
	void *p;
	int r;

	r = sort_pairs(pairs, n);
	if (r < 0)
		return r;
	t->runs.max = UINT32_MAX / 2;
	r = take_pairs(t, pairs, pairs_reduce(t, pairs, n));
	if (r < 0)
		return r;
	p = t->n_blob ? realloc(t->blob, t->n_blob) : NULL;
	t->blob = p ? p : t->blob;
	return 0;
}

/* 0 or -ENOMEM. */
static int reader_new(struct kallsyms_reader *ret, uint64_t max_bytes)
{
	*ret = (struct kallsyms_reader){
		.t = calloc(1, sizeof(*ret->t)),
		.pairs = ARRAY_INIT(UINT32_MAX / 2),
		/* Offsets in the blob have 32 bits. */
		.max_bytes = max_bytes < UINT32_MAX / 2 ? max_bytes : UINT32_MAX / 2,
	};
	if (!ret->t)
		return -ENOMEM;
	ret->t->module_names.max = MAX_MODULES;
	return array_push(&ret->t->module_names) ? 0 : -ENOMEM;
}

/* Ends the reading, which had the outcome r. The table, or NULL. */
static struct kallsyms_table *reader_end(struct kallsyms_reader *rd, int r)
{
	if (r == 0)
		r = reader_finish(rd);
	array_deinit(&rd->pairs);
	return r == 0 ? rd->t : kallsyms_table_free(rd->t);
}

int kallsyms_table_read(struct kallsyms_table **ret, int fd, uint64_t max_bytes)
{
	struct kallsyms_reader rd;
	int r = reader_new(&rd, max_bytes);

	if (r == 0)
		r = reader_read(&rd, fd);
	*ret = reader_end(&rd, r);
	return r == 0 && !*ret ? -ENOMEM : r;
}

struct kallsyms_table *kallsyms_table_new(const char *p, size_t n, uint64_t end, uint64_t max_bytes)
{
	const char *stop = p + n, *newline;
	struct kallsyms_reader rd;
	int r = reader_new(&rd, max_bytes);

	for (; p < stop && r == 0; p = newline + 1) {
		newline = memchr(p, '\n', (size_t)(stop - p));
		newline = newline ? newline : stop;
		r = newline - p > MAX_LINE ? 0 : reader_line(&rd, p, newline);
	}
	if (r == 0 && end) {
		struct sort_pair *boundary = array_push(&rd.pairs);

		r = boundary ? 0 : -ENOMEM;
		if (boundary)
			boundary->key = end;
	}
	return reader_end(&rd, r);
}

static uint64_t start_of(const struct kallsyms_table *t, uint32_t i)
{
	return t->far ? t->far[i] : t->base + t->near[i];
}

static uint32_t module_of(const struct kallsyms_table *t, uint32_t i)
{
	return t->runs.items[bisect(t->runs.n, j, t->runs.items[j].first <= i) - 1].module;
}

int kallsyms_table_lookup(const struct kallsyms_table *t, uint64_t address, struct symbol *ret)
{
	uint32_t n, i, module;
	uint64_t size = MAX_LAST, start;

	n = bisect(t->n, j, start_of(t, j) <= address);
	if (n == 0 || t->names[n - 1] == 0)
		return 1;
	i = n - 1;
	start = start_of(t, i);
	module = module_of(t, i);
	if (n < t->n) {
		uint64_t gap = start_of(t, n) - start;

		if (module_of(t, n) == module)
			size = MAX_FUNCTION;
		size = gap < size ? gap : size;
	}
	if (address - start >= size)
		return 1;
	*ret = (struct symbol){
		.name = t->blob + t->names[i],
		.module_name = module ? t->module_names.items[module].name : NULL,
		.start = start,
		.size = size,
	};
	return 0;
}

uint64_t kallsyms_table_text_start(const struct kallsyms_table *t)
{
	for (uint32_t i = 0; i < t->n; i++) {
		if (t->names[i] && !module_of(t, i))
			return start_of(t, i);
	}
	return 0;
}

bool kallsyms_table_has_addresses(const struct kallsyms_table *t)
{
	return t->any_address;
}

bool kallsyms_table_equal(const struct kallsyms_table *a, const struct kallsyms_table *b)
{
	return a->n && a->n == b->n && a->n_blob && !a->far == !b->far && a->base == b->base &&
	       (a->far ? memcmp(a->far, b->far, a->n * sizeof(*a->far))
		       : memcmp(a->near, b->near, a->n * sizeof(*a->near))) == 0 &&
	       memcmp(a->names, b->names, a->n * sizeof(*a->names)) == 0 &&
	       a->n_blob == b->n_blob && memcmp(a->blob, b->blob, a->n_blob) == 0 &&
	       a->runs.n == b->runs.n &&
	       memcmp(a->runs.items, b->runs.items, a->runs.n * sizeof(*a->runs.items)) == 0 &&
	       a->module_names.n == b->module_names.n &&
	       memcmp(a->module_names.items, b->module_names.items,
		      a->module_names.n * sizeof(*a->module_names.items)) == 0;
}

size_t kallsyms_table_bytes(const struct kallsyms_table *t)
{
	return sizeof(*t) + t->n_blob + array_bytes(&t->module_names) + array_bytes(&t->runs) +
	       t->n * (sizeof(*t->names) + (t->far ? sizeof(*t->far) : sizeof(*t->near)));
}

uint64_t kallsyms_table_refused(const struct kallsyms_table *t)
{
	return t->n_refused;
}
