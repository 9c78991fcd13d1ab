/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks. The first name of a line is the process, as stackcollapse-perf.pl and we write it.
 * The usual suffixes say what a frame is: _[k] the kernel's, _[j] made at run time, _[i] inlined
 * into the frame before it.
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

/* Names [first, last) are one frame: a function and what is inlined into it, in that order. */
static int push_names(struct import *im, const struct folded_name *names, uint32_t first,
		      uint32_t last)
{
	struct import_line lines[IMPORT_MAX_CHAIN];
	struct import_frame f = {.kind = PROFILE_MODULE_FILE, .lines = lines};
	uint64_t marker;

	for (uint32_t i = last; i-- > first && f.n < IMPORT_MAX_CHAIN;)
		lines[f.n++] = (struct import_line){.name = names[i].text};
	if (names[first].suffix == 'k')
		f.kind = PROFILE_MODULE_KERNEL;
	else if (names[first].suffix == 'j')
		f.kind = PROFILE_MODULE_JIT;
	if (f.n == 1 && import_is_marker(names[first].text, &marker)) {
		f.kind = PROFILE_MODULE_MARKER;
		f.address = marker;
	}
	return import_push(im, import_add_frame(im, &f));
}

static int add_line(struct import *im, char *line, uint64_t value)
{
	struct folded_name *names = calloc(IMPORT_MAX_FRAMES, sizeof(*names));
	char *save = NULL, *comm = strtok_r(line, ";", &save), *text;
	struct profile_process process = {0};
	char clean[256];
	uint32_t n = 0, row, last;
	int r = names ? 0 : -ENOMEM;

	while (names && n < IMPORT_MAX_FRAMES && (text = strtok_r(NULL, ";", &save)))
		names[n++] = name_split(text);
	import_begin_stack(im);
	last = n;
	for (uint32_t i = n; i-- > 0 && r == 0;) {
		if (names[i].suffix == 'i' && i > 0)
			continue;
		r = push_names(im, names, i, last);
		last = i;
	}
	free(names);
	(void)text_clean(clean, sizeof(clean), comm ? comm : "", SIZE_MAX);
	process.comm = strtab_put(&im->p->strings, clean);
	row = r == 0 ? profile_add_process(im->p, &process) : PROFILE_NONE;
	if (row == PROFILE_NONE)
		return -ENOMEM;
	return import_add_sample(im, profile_add_thread(im->p, row, 0, process.comm),
				 (int64_t)value, 0, 0, 0);
}

int import_read_folded(struct import *im, const uint8_t *bytes, size_t n)
{
	_cleanup_free_ char *line = malloc(MAX_LINE);
	uint64_t number = 0;
	int r;

	if (!line)
		return -ENOMEM;
	r = import_begin_unknown(im);
	if (r < 0)
		return r;
	for (size_t at = 0, next; at < n; at = next) {
		const uint8_t *end = memchr(bytes + at, '\n', n - at);
		size_t length = end ? (size_t)(end - bytes) - at : n - at;
		char *space;
		uint64_t value;

		next = at + length + 1;
		number++;
		while (length && (bytes[at + length - 1] == '\r' || bytes[at + length - 1] == ' '))
			length--;
		if (length == 0 || bytes[at] == '#')
			continue;
		if (length >= MAX_LINE)
			return import_damaged(im, "line %llu is longer than 1 MiB",
					      (unsigned long long)number);
		memcpy(line, bytes + at, length);
		line[length] = '\0';
		space = strrchr(line, ' ');
		if (strlen(line) != length || !space || space == line ||
		    text_parse_u64(space + 1, 0, UINT64_MAX / 2, &value) < 0)
			return import_damaged(im,
					      "line %llu is no folded stack: expected "
					      "\"process;function;function COUNT\"",
					      (unsigned long long)number);
		*space = '\0';
		r = value ? add_line(im, line, value) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}
