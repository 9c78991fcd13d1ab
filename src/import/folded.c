/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks. The first name of a line is the process, as in the output of stackcollapse-perf.pl
 * and ours. The usual suffixes say what a frame is: _[k] kernel, _[j] JIT code, _[i] inlined into
 * the frame before it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/import/builder.h"
#include "util/cleanup.h"
#include "util/text.h"

#define MAX_LINE (1u << 20)

struct folded_name {
	char *text;
	char suffix; /* 'k', 'j', 'i' or 0 */
};

/* "name_[k]" is cut to "name". */
static struct folded_name name_split(char *text)
{
	struct folded_name f = {text, 0};
	size_t n = strlen(text);

	if (n > 4 && text[n - 1] == ']' && text[n - 3] == '[' && text[n - 4] == '_' &&
	    strchr("kji", text[n - 2])) {
		f.suffix = text[n - 2];
		text[n - 4] = '\0';
	}
	return f;
}

/* A function and those inlined into it; innermost first. */
struct folded_frame {
	struct import_line lines[IMPORT_MAX_CHAIN + 1];
	uint32_t n; /* if more than fit, the last one is the outermost */
};

static int push_frame(struct import *im, struct folded_frame *names, char suffix)
{
	struct import_frame f = {.kind = PROFILE_MODULE_FILE, .lines = names->lines, .n = names->n};
	uint64_t marker;

	if (suffix == 'k')
		f.kind = PROFILE_MODULE_KERNEL;
	else if (suffix == 'j')
		f.kind = PROFILE_MODULE_JIT;
	if (f.n == 1 && import_is_marker(names->lines[0].name, &marker)) {
		f.kind = PROFILE_MODULE_MARKER;
		f.address = marker;
	}
	/* An empty name is a frame, too. */
	if (f.n == 1 && !*names->lines[0].name)
		f.n = 0;
	names->n = 0;
	return import_push(im, import_add_frame(im, &f));
}

/* Pushes the names in n bytes, leaf first; splits them in place. */
static int push_names(struct import *im, char *names, size_t n)
{
	struct folded_frame frame;
	int r = 0;

	frame.n = 0;
	for (bool first = false; !first && r == 0;) {
		char *at = names + n;
		struct folded_name name;

		while (at > names && at[-1] != ';')
			at--;
		first = at == names;
		name = name_split(at);
		if (frame.n > IMPORT_MAX_CHAIN)
			frame.n--;
		frame.lines[frame.n++] = (struct import_line){.name = name.text};
		if (name.suffix != 'i' || first)
			r = push_frame(im, &frame, name.suffix);
		n = first ? 0 : (size_t)(at - names) - 1;
		names[n] = '\0';
	}
	return r;
}

static int add_line(struct import *im, char *line, int64_t value)
{
	char *names = strchr(line, ';');
	struct profile_process process = {0};
	uint32_t row;
	int r = 0;

	if (names)
		*names++ = '\0';
	import_begin_stack(im);
	if (names)
		r = push_names(im, names, strlen(names));
	process.comm = import_text(im, line);
	row = r == 0 ? profile_add_process(im->p, &process) : PROFILE_NONE;
	if (row == PROFILE_NONE)
		return -ENOMEM;
	return import_add_sample(im, profile_add_thread(im->p, row, 0, process.comm), value, 0, 0,
				 0);
}

struct folded_line {
	const uint8_t *bytes;
	size_t n, next;
	uint64_t number;
};

/* Length of the line without the number at its end and the blanks before it; 0: no number. */
static size_t without_number(const struct folded_line *l, size_t n)
{
	size_t at = n;

	while (at && l->bytes[at - 1] >= '0' && l->bytes[at - 1] <= '9')
		at--;
	if (at == n || !at || l->bytes[at - 1] != ' ')
		return 0;
	while (at && l->bytes[at - 1] == ' ')
		at--;
	return at;
}

/* "# text"; but a process may be called "#1". */
static bool is_comment(const struct folded_line *l)
{
	return *l->bytes == '#' && (l->n == 1 || l->bytes[1] == ' ' || !without_number(l, l->n));
}

/* The next line that is neither empty nor a comment, without trailing blanks. */
static bool next_line(const uint8_t *bytes, size_t n, struct folded_line *l)
{
	while (l->next < n) {
		const uint8_t *start = bytes + l->next, *end = memchr(start, '\n', n - l->next);

		l->bytes = start;
		l->n = end ? (size_t)(end - start) : n - l->next;
		l->next += l->n + 1;
		l->number++;
		while (l->n && (start[l->n - 1] == '\r' || start[l->n - 1] == ' '))
			l->n--;
		if (l->n && !is_comment(l))
			return true;
	}
	return false;
}

/* Has every line two counts, before and after, as difffolded.pl and perfwalk diff write them? */
static bool is_difference(const uint8_t *bytes, size_t n)
{
	struct folded_line l = {.next = 0};
	bool some = false;

	while (next_line(bytes, n, &l)) {
		size_t once = without_number(&l, l.n), twice = once ? without_number(&l, once) : 0;

		if (!twice || !memchr(l.bytes, ';', twice))
			return false;
		some = true;
	}
	return some;
}

static int read_line(struct import *im, const struct folded_line *l, char *text)
{
	unsigned long long number = l->number;
	uint64_t value;
	char *space;

	if (l->n >= MAX_LINE)
		return import_damaged(im, "line %llu is longer than 1 MiB", number);
	memcpy(text, l->bytes, l->n);
	text[l->n] = '\0';
	space = strrchr(text, ' ');
	if (strlen(text) != l->n || !space || space == text ||
	    text_parse_u64(space + 1, 0, INT64_MAX, &value) < 0)
		return import_damaged(im,
				      "line %llu is not a folded stack: expected "
				      "\"process;function;function COUNT\". " IMPORT_FORMATS,
				      number);
	*space = '\0';
	return value ? add_line(im, text, (int64_t)value) : 0;
}

int import_read_folded(struct import *im, const uint8_t *bytes, size_t n)
{
	_cleanup_free_ char *text = malloc(MAX_LINE);
	struct folded_line l = {.next = 0};
	int r;

	if (!text)
		return -ENOMEM;
	if (is_difference(bytes, n))
		return import_damaged(im,
				      "each line has two counts: it is a difference of two files; "
				      "give those to perfwalk diff");
	r = import_begin_unknown(im);
	while (r == 0 && next_line(bytes, n, &l))
		r = read_line(im, &l, text);
	return r;
}
