/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The regular expressions are Go's and are translated to POSIX extended ones. These differ only in
 * the notation of groups, of some classes, and of lazy repetition, which makes no difference if the
 * whole name must match. An expression without a translation is refused.
 */
#include "src/import/pprof-prune.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"

#define MAX_EXPRESSION 65536

/* Translates a backslash escape outside of brackets; NULL: no translation. */
static const char *translate_escape(char c, char buf[3])
{
	if (c == 'd')
		return "[0-9]";
	if (c == 'D')
		return "[^0-9]";
	if (!c || (isalnum((unsigned char)c) && !strchr("wWsSbB", c)))
		return NULL;
	buf[0] = '\\';
	buf[1] = c;
	buf[2] = '\0';
	return buf;
}

/* Copies a bracket expression; NULL: backslashes in it are escapes in Go alone. */
static const char *copy_brackets(const char *at, FILE *out)
{
	size_t n = 1;

	n += at[n] == '^';
	n += at[n] == ']';
	while (at[n] && at[n] != ']') {
		if (at[n] == '\\' || (at[n] == '[' && strchr(":.=", at[n + 1])))
			return NULL;
		n++;
	}
	if (!at[n])
		return NULL;
	(void)fwrite(at, 1, n + 1, out);
	return at + n + 1;
}

static bool translate(const char *at, FILE *out)
{
	char before = '(', buf[3];

	while (at && *at) {
		const char *text = NULL;

		if (*at == '\\') {
			text = translate_escape(at[1], buf);
			at = text ? at + 2 : NULL;
		} else if (*at == '[') {
			at = copy_brackets(at, out);
			text = "";
		} else if (*at == '(' && at[1] == '?') {
			text = at[2] == ':' ? "(" : NULL;
			at = text ? at + 3 : NULL;
		} else if (*at == '{' || (strchr("*+?", *at) && strchr("(|", before))) {
			return false;
		} else if (*at == '?' && strchr("*+?", before)) {
			at++; /* lazy */
			before = 'x';
			continue;
		} else {
			buf[0] = *at++;
			buf[1] = '\0';
			text = buf;
		}
		if (!text)
			return false;
		before = *text && !text[1] ? *text : text[0] == '(' ? '(' : 'x';
		(void)fputs(text, out);
	}
	return at != NULL;
}

static int compile(regex_t *r, const char *expression)
{
	_cleanup_free_ char *text = NULL;
	size_t n;
	FILE *out;
	bool ok;

	if (strlen(expression) > MAX_EXPRESSION)
		return -EINVAL;
	out = open_memstream(&text, &n);
	if (!out)
		return -ENOMEM;
	(void)fputs("^(", out);
	ok = translate(expression, out);
	(void)fputs(")$", out);
	if (fclose(out) != 0)
		return -ENOMEM;
	return ok && regcomp(r, text, REG_EXTENDED | REG_NOSUB) == 0 ? 0 : -EINVAL;
}

int pprof_prune_init(struct pprof_prune *p, const char *drop, const char *keep,
		     const char **ret_bad)
{
	int r;

	*p = (struct pprof_prune){.on = false};
	if (!drop || !*drop)
		return 0;
	*ret_bad = drop;
	r = compile(&p->drop, drop);
	if (r < 0)
		return r;
	p->on = true;
	if (!keep || !*keep)
		return 0;
	*ret_bad = keep;
	r = compile(&p->keep, keep);
	p->has_keep = r == 0;
	return r;
}

void pprof_prune_deinit(struct pprof_prune *p)
{
	if (p->on)
		regfree(&p->drop);
	if (p->has_keep)
		regfree(&p->keep);
	*p = (struct pprof_prune){.on = false};
}

/* Removes the dot that some platforms put before names, and arguments. */
static void simplify(char *buf, size_t size, const char *name)
{
	static const char *const reserved[] = {"(anonymous namespace)", "operator()"};
	size_t n = 0;

	name += *name == '.';
	while (name[n] && n + 1 < size) {
		size_t more = 0;

		for (size_t i = 0; i < ARRAY_SIZE(reserved); i++)
			if (strncmp(name + n, reserved[i], strlen(reserved[i])) == 0)
				more = strlen(reserved[i]);
		if (!more && name[n] == '(')
			break;
		n += more ? more : 1;
	}
	(void)snprintf(buf, size, "%.*s", (int)n, name);
}

bool pprof_prune_drops(const struct pprof_prune *p, const char *name)
{
	char simple[4096];

	if (!p->on || !*name)
		return false;
	simplify(simple, sizeof(simple), name);
	return regexec(&p->drop, simple, 0, NULL, 0) == 0 &&
	       !(p->has_keep && regexec(&p->keep, simple, 0, NULL, 0) == 0);
}
