/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inih does the parsing, but how it parses was decided when it was built. Debian's build takes
 * lines of at most 200 bytes, cuts values at " ;", lets an indented line continue the value above
 * it, and says nothing of line numbers or of sections without keys. Other builds differ in each
 * point.
 *
 * So inih is fed by a reader that leaves it no choice to make. The reader counts real lines, drops
 * comments, joins continued lines, refuses what has not the form of a section or a pair, and hands
 * on
 *
 *	[section]
 *	key=chunk
 *	key=chunk
 *
 * without indentation, a long value as several short pairs of the same key. Blanks in a value
 * travel as control characters (which a config file may not contain), so that inih finds nothing to
 * strip and no inline comment. The handler puts the chunks together again: the reader has set
 * n_left to what is still to come when the handler runs.
 */
#include <errno.h>
#include <ini.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/config/reader.h"
#include "util/cleanup.h"

#define SENT_SPACE '\x1f'
#define SENT_TAB   '\x1e'

struct config_reader {
	const struct config_reader_ops *ops;
	void *ctx;
	const char *cur, *end;
	unsigned int next_line; /* number of the line at cur */
	unsigned int line;	/* where the text in buf begins */
	char *buf;		/* one logical line, terminated */
	char *value;		/* what the handler has put together */
	size_t n_value;
	/* The pair on its way to inih, in buf. */
	const char *key;
	const char *left;
	size_t n_left;
	bool sending;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static void reader_error(struct config_reader *r, const char *message)
{
	r->ops->error(r->ctx, r->line, message);
}

static size_t trim_end(const char *p, size_t n)
{
	while (n > 0 && is_blank(p[n - 1]))
		n--;
	return n;
}

/* The next physical line without its end and without blanks around it. False at the end. */
static bool next_physical(struct config_reader *r, const char **ret, size_t *ret_n)
{
	const char *p = r->cur, *e;

	if (p == r->end)
		return false;
	e = memchr(p, '\n', (size_t)(r->end - p));
	r->cur = e ? e + 1 : r->end;
	r->next_line++;
	if (!e)
		e = r->end;
	if (e > p && e[-1] == '\r')
		e--;
	while (p < e && is_blank(*p))
		p++;
	*ret = p;
	*ret_n = trim_end(p, (size_t)(e - p));
	return true;
}

static bool is_comment(const char *p, size_t n)
{
	return n > 0 && (*p == '#' || *p == ';');
}

/* Collects the next line that is not empty, with its continuations, in buf. False at the end. */
static bool next_logical(struct config_reader *r)
{
	bool more = false, too_long = false;
	size_t n = 0, n_line;
	const char *p;

	for (unsigned int line = r->next_line; next_physical(r, &p, &n_line); line = r->next_line) {
		if (is_comment(p, n_line) || (!more && n_line == 0))
			continue;
		if (!more)
			r->line = line;
		more = n_line > 0 && p[n_line - 1] == '\\';
		if (more)
			n_line = trim_end(p, n_line - 1);
		if (n + n_line + 2 > CONFIG_TEXT_MAX_BYTES)
			too_long = true;
		if (!too_long && n_line > 0) {
			if (n > 0)
				r->buf[n++] = ' ';
			memcpy(r->buf + n, p, n_line);
			n += n_line;
		}
		r->buf[n] = '\0';
		if (more)
			continue;
		if (too_long)
			reader_error(r, "the line is longer than 64 KiB");
		else if (n > 0)
			return true;
		too_long = false;
		n = 0;
	}
	if (more)
		reader_error(r, "the file ends after a \\ that announces another line");
	return false;
}

static bool is_name(const char *s, size_t n, const char *others)
{
	if (n == 0 || n > CONFIG_NAME_MAX)
		return false;
	for (size_t i = 0; i < n; i++) {
		bool alnum = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') ||
			     (s[i] >= '0' && s[i] <= '9');

		if (!alnum && !strchr(others, s[i]))
			return false;
	}
	return true;
}

/* Blanks become what inih does not take for blanks. False: a character that may not be there. */
static bool encode(char *s)
{
	for (; *s; s++) {
		if (*s == ' ')
			*s = SENT_SPACE;
		else if (*s == '\t')
			*s = SENT_TAB;
		else if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	}
	return true;
}

static void decode(char *s)
{
	for (; *s; s++) {
		if (*s == SENT_SPACE)
			*s = ' ';
		else if (*s == SENT_TAB)
			*s = '\t';
	}
}

static bool take_section(struct config_reader *r, char *str, int num)
{
	size_t n = strlen(r->buf);

	if (r->buf[n - 1] != ']' || !is_name(r->buf + 1, n - 2, ":._-")) {
		reader_error(r, "expected [section] or [section:name] with a name of at most 48 "
				"letters, digits and . _ - characters");
		return false;
	}
	(void)snprintf(str, (size_t)num, "%s\n", r->buf);
	r->buf[n - 1] = '\0';
	r->ops->section(r->ctx, r->line, r->buf + 1);
	return true;
}

static bool take_pair(struct config_reader *r)
{
	char *equals = strchr(r->buf, '='), *end, *value;

	if (!equals) {
		reader_error(r, "expected [section], key = value, or a comment");
		return false;
	}
	end = r->buf + trim_end(r->buf, (size_t)(equals - r->buf));
	for (value = equals + 1; is_blank(*value);)
		value++;
	if (!is_name(r->buf, (size_t)(end - r->buf), "._-/")) {
		reader_error(r, "expected key = value with a key of at most 48 letters, digits "
				"and . _ - / characters");
		return false;
	}
	*end = '\0';
	if (!encode(value)) {
		reader_error(r, "the value has a control character in it");
		return false;
	}
	r->key = r->buf;
	r->left = value;
	r->n_left = strlen(value);
	r->n_value = 0;
	r->sending = true;
	return true;
}

/* What inih takes for fgets(). num is its line size, 200 in Debian's build. */
static char *reader_gets(char *str, int num, void *stream)
{
	struct config_reader *r = stream;
	size_t n, room;

	while (!r->sending) {
		if (!next_logical(r))
			return NULL;
		if (num < 2 * CONFIG_NAME_MAX) {
			reader_error(r, "the ini library was built with too short a line");
			return NULL;
		}
		if (r->buf[0] == '[') {
			if (take_section(r, str, num))
				return str;
			continue;
		}
		if (take_pair(r))
			break;
	}

	/* "key=chunk\n", and one byte that some builds want spare. */
	room = (size_t)num - strlen(r->key) - 4;
	n = r->n_left < room ? r->n_left : room;
	(void)snprintf(str, (size_t)num, "%s=%.*s\n", r->key, (int)n, r->left);
	r->left += n;
	r->n_left -= n;
	r->sending = r->n_left > 0;
	return str;
}

static int reader_pair(void *user, const char *section, const char *key, const char *value)
{
	struct config_reader *r = user;
	size_t n;

	/* Builds that call on each new section give no key: the reader has told of it already. */
	if (!key || !value)
		return 1;
	n = strlen(value);
	if (r->n_value + n >= CONFIG_TEXT_MAX_BYTES)
		return 0;
	memcpy(r->value + r->n_value, value, n + 1);
	r->n_value += n;
	if (r->n_left > 0)
		return 1;
	decode(r->value);
	r->ops->pair(r->ctx, r->line, section, key, r->value);
	return 1;
}

int config_reader_run(const char *text, size_t n, const struct config_reader_ops *ops, void *ctx)
{
	_cleanup_free_ char *buf = malloc(CONFIG_TEXT_MAX_BYTES);
	_cleanup_free_ char *value = malloc(CONFIG_TEXT_MAX_BYTES);
	struct config_reader r = {
		.ops = ops,
		.ctx = ctx,
		.cur = text,
		.end = text + n,
		.next_line = 1,
		.line = 1,
		.buf = buf,
		.value = value,
	};
	const char *nul = memchr(text, '\0', n);

	if (!buf || !value)
		return -ENOMEM;
	if (nul) {
		for (const char *p = text; p < nul; p++)
			r.line += *p == '\n';
		reader_error(&r, "the file holds a 0 byte: not a text file");
		return 0;
	}
	if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		r.cur += 3;
	return ini_parse_stream(reader_gets, &r, reader_pair, &r) == -2 ? -ENOMEM : 0;
}
