/* SPDX-License-Identifier: Apache-2.0 */
/* Lists as the OTEL_* variables write them (k=v,k2=v2 with %XX), and HTTP headers made of them. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "src/config/table.h"
#include "util/text.h"

#define HEADERS_MAX	       64
#define HEADERS_FILE_MAX_BYTES (64u * 1024)

static bool is_token(const char *s)
{
	if (!*s)
		return false;
	for (; *s; s++) {
		bool alnum = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
			     (*s >= '0' && *s <= '9');

		if (!alnum && !strchr("!#$%&'*+-.^_`|~", *s))
			return false;
	}
	return true;
}

/* One header line "Name: value" from its parts. 0; -ENOMEM; -EINVAL and error. */
static int make_header(const char *name, const char *value, char **ret, char *error)
{
	/* What decides where the message ends and what it is stays with the exporter. */
	static const char *const ours[] = {
		"connection",	     "content-encoding", "content-length",
		"content-type",	     "expect",		 "te",
		"transfer-encoding", "upgrade",		 "otlp-profiles-development-version",
	};
	char *line = NULL;
	int r;

	if (!is_token(name))
		return config_expected(error, "a header name of letters, digits and -");
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++) {
		if (strcasecmp(name, ours[i]) == 0)
			return config_expected(error,
					       "headers that perfwalk does not set itself (not "
					       "Content-Type and the like)");
	}
	for (const char *p = value; *p; p++) {
		if (((unsigned char)*p < 0x20 && *p != '\t') || *p == 0x7f)
			return config_expected(error, "header values without control characters");
	}
	if (asprintf(&line, "%s: %s", name, value) < 0)
		return -ENOMEM;
	r = config_text_check(line, error);
	if (r < 0)
		free(line);
	else
		*ret = line;
	return r;
}

/* Appends to the headers of x; takes line over, also on failure. 0, -ENOMEM, -E2BIG. */
static int append_line(struct config_export *x, char *line)
{
	_cleanup_free_ char *owned = line;
	char **grown;

	if (x->n_headers >= HEADERS_MAX)
		return -E2BIG;
	grown = reallocarray(x->headers, x->n_headers + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	x->headers = grown;
	grown[x->n_headers++] = TAKE_PTR(owned);
	return 0;
}

int config_list_parse(char *text, char *error,
		      int (*add)(void *ctx, const char *key, const char *value, char *error),
		      void *ctx)
{
	for (char *item, *rest = text; (item = strsep(&rest, ","));) {
		char *equals, *key, *value;
		int r;

		item = text_strip(item);
		if (!*item)
			continue; /* a comma too many, at the end for instance, harms nobody */
		equals = strchr(item, '=');
		if (!equals)
			return config_expected(error,
					       "name=value pairs separated by commas (a comma in a "
					       "value is written %2C)");
		*equals = '\0';
		key = text_strip(item);
		value = text_strip(equals + 1);
		if (!*key || !text_decode_percent(value))
			return config_expected(error,
					       "name=value pairs with two hexadecimal digits "
					       "after each % of a value (a % itself is %25)");
		r = add(ctx, key, value, error);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_header(void *ctx, const char *key, const char *value, char *error)
{
	struct config_export *list = ctx;
	char *line = NULL;
	int r;

	r = make_header(key, value, &line, error);
	if (r < 0)
		return r;
	r = append_line(list, line);
	return r == -E2BIG ? config_expected(error, "no more than 64 headers") : r;
}

int config_headers_set(struct config_export *x, const char *text, char *error)
{
	_cleanup_free_ char *copy = strdup(text);
	struct config_export list = {0}; /* of which the headers only */
	int r;

	if (!copy)
		return -ENOMEM;
	r = config_list_parse(copy, error, add_header, &list);
	if (r < 0) {
		config_headers_free(&list);
		return r;
	}
	config_headers_free(x);
	x->headers = list.headers;
	x->n_headers = list.n_headers;
	return 0;
}

void config_headers_free(struct config_export *x)
{
	for (size_t i = 0; i < x->n_headers; i++)
		free(x->headers[i]);
	free(x->headers);
	x->headers = NULL;
	x->n_headers = 0;
}

/* One line of a headers file: "Name: value", empty, or a comment. */
static int read_header_line(struct config_export *x, char *line, char *error)
{
	char *colon, *value, *made = NULL;
	size_t n = strlen(line);
	int r;

	if (n > 0 && line[n - 1] == '\r')
		line[n - 1] = '\0';
	line = text_strip(line);
	if (!*line || *line == '#' || *line == ';')
		return 0;
	colon = strchr(line, ':');
	if (!colon)
		return config_expected(error, "Name: value");
	*colon = '\0';
	value = text_strip(colon + 1);
	r = make_header(line, value, &made, error);
	if (r == 0)
		r = append_line(x, made);
	return r == -E2BIG ? config_expected(error, "no more than 64 headers") : r;
}

static void warn_of_readers(const char *path, FILE *errors)
{
	struct stat st;

	if (stat(path, &st) == 0 && (st.st_mode & S_IROTH))
		fprintf(errors,
			"%s: warning: everybody can read this file with credentials (mode %04o): "
			"chmod 0600 it\n",
			path, (unsigned int)(st.st_mode & 07777));
}

int config_export_read_headers(struct config_export *x, FILE *errors)
{
	_cleanup_free_ char *text = NULL;
	char error[CONFIG_ERROR_MAX] = "out of memory";
	unsigned int line = 0;
	size_t n;
	int r;

	if (!x->headers_file)
		return 0;
	r = config_file_read(x->headers_file, HEADERS_FILE_MAX_BYTES, false, &text, &n, error);
	if (r < 0) {
		fprintf(errors, "%s: %s\n", x->headers_file, error);
		return r;
	}
	warn_of_readers(x->headers_file, errors);
	for (char *item, *rest = text; (item = strsep(&rest, "\n"));) {
		line++;
		r = read_header_line(x, item, error);
		if (r == -EINVAL)
			fprintf(errors, "%s:%u: %s\n", x->headers_file, line, error);
		if (r < 0)
			break;
	}
	explicit_bzero(text, n);
	return r;
}
