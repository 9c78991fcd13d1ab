/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h> /* the one of configure, not our neighbour */

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/config/check.h"
#include "src/config/table.h"
#include "util/clock.h"
#include "util/text.h"

static const char *const level_names[] = {"error", "warning", "info", "debug"};
static const char *const protocol_names[] = {"http/protobuf", "grpc", "http/json"};
#ifdef HAVE_ZSTD
static const char *const compression_names[] = {"none", "gzip", "zstd"};
#define COMPRESSIONS "gzip, zstd or none"
#else
static const char *const compression_names[] = {"none", "gzip"};
#define COMPRESSIONS "gzip or none"
#endif
static const char *const preset_names[] = {"collector", "pyroscope", "parca"};
static const char *const demangle_names[] = {"full", "simple", "none"};
static const char *const seccomp_names[] = {"errno", "kill", "no"};

/* How values of one kind are kept in their field. */
struct value_form {
	/* As config_value_set(), but text is not empty where there is a default. */
	int (*set)(const struct config_key *row, void *base, const char *text, char *error);
	void (*print)(const struct config_key *row, const void *base, FILE *out);
	void (*free)(const struct config_key *row, void *base);		  /* NULL: owns nothing */
	void (*range)(const struct config_key *row, char *buf, size_t n); /* NULL: says nothing */
};

struct value_type {
	const struct value_form *form;
	const char *expected; /* of numbers and choices */
	/* Of numbers; parse returns 0 or -EINVAL, limits are not its business. */
	int (*parse)(const char *text, uint64_t *ret);
	void (*format)(uint64_t v, char *buf, size_t n);
	/* Of choices: the value is the place of its name. */
	const char *const *names;
	unsigned int n_names;
	/* Of texts, as in check.h. */
	int (*check)(const char *text, char *error);
};

static const struct value_type *type_of(const struct config_key *row);

static void *field_of(const struct config_key *row, void *base)
{
	return (char *)base + row->offset;
}

static const void *value_of(const struct config_key *row, const void *base)
{
	return (const char *)base + row->offset;
}

/* ---- Numbers ---- */

#define SHARE_PERCENT 10000 /* millionths */

struct value_unit {
	uint64_t factor;
	const char *name;
};

/* Units for output: the largest that divides the value, so that what is printed reads back exactly.
 */
static const struct value_unit byte_units[] = {
	{1 << 30, "G"}, {1 << 20, "M"}, {1 << 10, "K"}, {1, ""}};
static const struct value_unit time_units[] = {
	{3600 * NSEC_PER_SEC, "h"}, {60 * NSEC_PER_SEC, "m"}, {NSEC_PER_SEC, "s"},
	{NSEC_PER_MSEC, "ms"},	    {NSEC_PER_USEC, "us"},    {1, "ns"},
};

/* units end with one of factor 1. */
static void format_units(const struct value_unit *units, uint64_t v, char *buf, size_t n)
{
	while (v % units->factor != 0)
		units++;
	(void)snprintf(buf, n, "%" PRIu64 "%s", v / units->factor, v ? units->name : "");
}

static void format_count(uint64_t v, char *buf, size_t n)
{
	(void)snprintf(buf, n, "%" PRIu64, v);
}

static void format_bytes(uint64_t v, char *buf, size_t n)
{
	format_units(byte_units, v, buf, n);
}

static void format_duration(uint64_t v, char *buf, size_t n)
{
	format_units(time_units, v, buf, n);
}

/* Of millionths, without the zeros behind. */
static void format_share(uint64_t v, char *buf, size_t size)
{
	int n = snprintf(buf, size, "%" PRIu64 ".%04" PRIu64, v / SHARE_PERCENT, v % SHARE_PERCENT);

	while (n > 0 && buf[n - 1] == '0')
		n--;
	n -= n > 0 && buf[n - 1] == '.';
	(void)snprintf(buf + n, size - (size_t)n, "%%");
}

static int parse_count(const char *text, uint64_t *ret)
{
	return text_parse_u64(text, 0, UINT64_MAX, ret);
}

/* "2%", "0.05%": four digits behind the point at most. */
static int parse_share(const char *text, uint64_t *ret)
{
	size_t whole = strspn(text, "0123456789"), part = 0;
	uint64_t v = 0;

	if (whole == 0 || whole > 3)
		return -EINVAL;
	for (size_t i = 0; i < whole; i++)
		v = 10 * v + (uint64_t)(text[i] - '0');
	text += whole;
	if (*text == '.') {
		text++;
		part = strspn(text, "0123456789");
		if (part == 0 || part > 4)
			return -EINVAL;
	}
	for (size_t i = 0; i < 4; i++)
		v = 10 * v + (i < part ? (uint64_t)(text[i] - '0') : 0);
	*ret = v;
	return strcmp(text + part, "%") == 0 ? 0 : -EINVAL;
}

static void number_range(const struct config_key *row, char *buf, size_t n)
{
	const struct value_type *t = type_of(row);
	char min[32], max[32], more[64] = "";

	t->format(row->min, min, sizeof(min));
	t->format(row->max, max, sizeof(max));
	if (row->power_of_two)
		(void)snprintf(more, sizeof(more), ", a power of two");
	else if (row->multiple)
		(void)snprintf(more, sizeof(more), ", a multiple of %" PRIu64, row->multiple);
	(void)snprintf(buf, n, "%s .. %s%s", min, max, more);
}

static void auto_range(const struct config_key *row, char *buf, size_t n)
{
	char range[96];

	number_range(row, range, sizeof(range));
	(void)snprintf(buf, n, "auto, or %s", range);
}

/* error = "expected a size like 512K, 32M, 1G; 1K .. 65528, a multiple of 8". */
static int number_expected(const struct config_key *row, char *error)
{
	char range[128];

	(void)snprintf(error, CONFIG_ERROR_MAX, "expected %s; %s", type_of(row)->expected,
		       config_value_range(row, range, sizeof(range)));
	return -EINVAL;
}

static int parse_number(const struct config_key *row, const char *text, uint64_t *ret, char *error)
{
	uint64_t v = 0;

	if (type_of(row)->parse(text, &v) < 0 || v < row->min || v > row->max ||
	    (row->multiple && v % row->multiple != 0) || (row->power_of_two && (v & (v - 1)) != 0))
		return number_expected(row, error);
	*ret = v;
	return 0;
}

static int set_u64(const struct config_key *row, void *base, const char *text, char *error)
{
	return parse_number(row, text, field_of(row, base), error);
}

static void print_number(const struct config_key *row, uint64_t v, FILE *out)
{
	char buf[32];

	type_of(row)->format(v, buf, sizeof(buf));
	fputs(buf, out);
}

static void print_u64(const struct config_key *row, const void *base, FILE *out)
{
	print_number(row, *(const uint64_t *)value_of(row, base), out);
}

static int set_u32(const struct config_key *row, void *base, const char *text, char *error)
{
	uint64_t v;
	int r = parse_number(row, text, &v, error);

	if (r == 0)
		*(uint32_t *)field_of(row, base) = (uint32_t)v;
	return r;
}

static void print_u32(const struct config_key *row, const void *base, FILE *out)
{
	print_number(row, *(const uint32_t *)value_of(row, base), out);
}

static int set_auto(const struct config_key *row, void *base, const char *text, char *error)
{
	if (strcmp(text, "auto") != 0)
		return set_u32(row, base, text, error);
	*(uint32_t *)field_of(row, base) = 0;
	return 0;
}

static void print_auto(const struct config_key *row, const void *base, FILE *out)
{
	if (*(const uint32_t *)value_of(row, base))
		print_u32(row, base, out);
	else
		fputs("auto", out);
}

static const struct value_form u32_form = {set_u32, print_u32, NULL, number_range};
static const struct value_form u64_form = {set_u64, print_u64, NULL, number_range};
static const struct value_form auto_form = {set_auto, print_auto, NULL, auto_range};

/* ---- One of a few words ---- */

static void choice_range(const struct config_key *row, char *buf, size_t n)
{
	(void)snprintf(buf, n, "%s", type_of(row)->expected);
}

static int set_bool(const struct config_key *row, void *base, const char *text, char *error)
{
	return text_parse_bool(text, field_of(row, base)) < 0
		       ? config_expected(error, type_of(row)->expected)
		       : 0;
}

static void print_bool(const struct config_key *row, const void *base, FILE *out)
{
	fputs(*(const bool *)value_of(row, base) ? "yes" : "no", out);
}

static int choose(const char *const *names, unsigned int n, const char *text, void *field)
{
	for (unsigned int i = 0; i < n; i++) {
		if (strcmp(names[i], text) == 0) {
			memcpy(field, &i, sizeof(i));
			return 0;
		}
	}
	return -EINVAL;
}

static int set_choice(const struct config_key *row, void *base, const char *text, char *error)
{
	const struct value_type *t = type_of(row);

	return choose(t->names, t->n_names, text, field_of(row, base)) < 0
		       ? config_expected(error, t->expected)
		       : 0;
}

static void print_choice(const struct config_key *row, const void *base, FILE *out)
{
	fputs(type_of(row)->names[*(const unsigned int *)value_of(row, base)], out);
}

static const struct value_form bool_form = {set_bool, print_bool, NULL, choice_range};
static const struct value_form choice_form = {set_choice, print_choice, NULL, choice_range};

const char *config_demangle_name(unsigned int i)
{
	return i < ARRAY_SIZE(demangle_names) ? demangle_names[i] : NULL;
}

bool config_demangle_parse(const char *text, enum config_demangle *ret)
{
	return choose(demangle_names, ARRAY_SIZE(demangle_names), text, ret) == 0;
}

/* ---- Texts, kept as they are written ---- */

static int set_text(const struct config_key *row, void *base, const char *text, char *error)
{
	char **field = field_of(row, base), *copy = NULL;

	if (*text) {
		int r = type_of(row)->check(text, error);

		if (r < 0)
			return r;
		copy = strdup(text);
		if (!copy)
			return -ENOMEM;
	}
	free(*field);
	*field = copy;
	return 0;
}

static void print_text(const struct config_key *row, const void *base, FILE *out)
{
	const char *text = *(const char *const *)value_of(row, base);

	fputs(text ? text : "", out);
}

static void free_text(const struct config_key *row, void *base)
{
	char **field = field_of(row, base);

	free(*field);
	*field = NULL;
}

static int set_users(const struct config_key *row, void *base, const char *text, char *error)
{
	return config_users_set(field_of(row, base), text, error);
}

static int set_headers(const struct config_key *row, void *base, const char *text, char *error)
{
	return config_headers_set(base, text, error);
}

static void print_headers(const struct config_key *row, const void *base, FILE *out)
{
	const struct config_export *x = base;

	for (size_t i = 0; i < x->n_headers; i++)
		fprintf(out, "%s%.*s=***", i ? "," : "", (int)strcspn(x->headers[i], ":"),
			x->headers[i]);
}

static void free_headers(const struct config_key *row, void *base)
{
	config_headers_free(base);
}

static const struct value_form text_form = {set_text, print_text, free_text, NULL};
static const struct value_form users_form = {set_users, print_text, free_text, NULL};
static const struct value_form headers_form = {set_headers, print_headers, free_headers, NULL};

/* ---- All types ---- */

#define SIZE "a size like 65528, 512K, 32M, 1G"

#define NUMBER(f, what, reader, writer)                                                            \
	{                                                                                          \
		.form = &(f), .expected = (what), .parse = (reader), .format = (writer)            \
	}
#define CHOICE(list, what)                                                                         \
	{                                                                                          \
		.form = &choice_form, .expected = (what), .names = (list),                         \
		.n_names = ARRAY_SIZE(list)                                                        \
	}
#define TEXT(function)                                                                             \
	{                                                                                          \
		.form = &text_form, .check = (function)                                            \
	}

static const struct value_type types[] = {
	[CONFIG_BOOL] = {.form = &bool_form, .expected = "yes or no"},
	[CONFIG_COUNT] = NUMBER(u32_form, "a whole number", parse_count, format_count),
	[CONFIG_AUTO_BYTES] = NUMBER(auto_form, SIZE, text_parse_bytes, format_bytes),
	[CONFIG_BYTES] = NUMBER(u64_form, SIZE, text_parse_bytes, format_bytes),
	[CONFIG_DURATION] = NUMBER(u64_form, "a duration like 500ms, 10s, 5m, 1h",
				   text_parse_duration_ns, format_duration),
	[CONFIG_SHARE] =
		NUMBER(u32_form, "a percentage like 0.5% or 2%", parse_share, format_share),

	[CONFIG_COMPRESSION] = CHOICE(compression_names, COMPRESSIONS),
	[CONFIG_PROTOCOL] = CHOICE(protocol_names, "http/protobuf, http/json or grpc"),
	[CONFIG_PRESET] = CHOICE(preset_names, "collector, pyroscope or parca"),
	[CONFIG_LOG_LEVEL] = CHOICE(level_names, "error, warning, info or debug"),
	[CONFIG_DEMANGLE] = CHOICE(demangle_names, "full, simple or none"),
	[CONFIG_SECCOMP] = CHOICE(seccomp_names, "errno, kill or no"),

	[CONFIG_WORD] = TEXT(config_word_check),
	[CONFIG_TEXT] = TEXT(config_text_check),
	[CONFIG_PATH] = TEXT(config_path_check),
	[CONFIG_URL] = TEXT(config_url_check),
	[CONFIG_URL_EXACT] = TEXT(config_exact_url_check),
	[CONFIG_URLS] = TEXT(config_urls_check),
	[CONFIG_HOST] = TEXT(config_host_check),
	[CONFIG_PROXY] = TEXT(config_proxy_check),
	[CONFIG_LISTEN] = TEXT(config_listen_check),
	[CONFIG_GLOBS] = TEXT(config_globs_check),
	[CONFIG_CONTAINERS] = TEXT(config_containers_check),
	[CONFIG_CGROUPS] = TEXT(config_cgroups_check),
	[CONFIG_CPUS] = TEXT(config_cpus_check),

	[CONFIG_USERS] = {.form = &users_form},
	[CONFIG_HEADERS] = {.form = &headers_form},
};

static const struct value_type *type_of(const struct config_key *row)
{
	return &types[row->type];
}

int config_value_set(const struct config_key *row, void *base, const char *text, char *error)
{
	if (!*text && row->value)
		text = row->value;
	return type_of(row)->form->set(row, base, text, error);
}

void config_value_free(const struct config_key *row, void *base)
{
	const struct value_form *form = type_of(row)->form;

	if (form->free)
		form->free(row, base);
}

void config_value_print(const struct config_key *row, const void *base, FILE *out)
{
	type_of(row)->form->print(row, base, out);
}

const char *config_value_range(const struct config_key *row, char *buf, size_t size)
{
	const struct value_form *form = type_of(row)->form;

	*buf = '\0';
	if (form->range)
		form->range(row, buf, size);
	return buf;
}
