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

/* Types that are an enum whose values are the places of its names. */
static const struct choices {
	const char *const *names;
	unsigned int n;
	const char *expected;
} choices[] = {
	[CONFIG_LOG_LEVEL] = {level_names, ARRAY_SIZE(level_names),
			      "error, warning, info or debug"},
	[CONFIG_PROTOCOL] = {protocol_names, ARRAY_SIZE(protocol_names),
			     "http/protobuf, http/json or grpc"},
	[CONFIG_COMPRESSION] = {compression_names, ARRAY_SIZE(compression_names), COMPRESSIONS},
	[CONFIG_PRESET] = {preset_names, ARRAY_SIZE(preset_names), "collector, pyroscope or parca"},
	[CONFIG_DEMANGLE] = {demangle_names, ARRAY_SIZE(demangle_names), "full, simple or none"},
	[CONFIG_SECCOMP] = {seccomp_names, ARRAY_SIZE(seccomp_names), "errno, kill or no"},
};

/* NULL: the type is none of them. */
static const struct choices *choices_of(enum config_type type)
{
	return type < ARRAY_SIZE(choices) && choices[type].n ? &choices[type] : NULL;
}

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

/* Of millionths, without the zeros behind. */
static void format_share(uint64_t v, char *buf, size_t size)
{
	int n = snprintf(buf, size, "%" PRIu64 ".%04" PRIu64, v / SHARE_PERCENT, v % SHARE_PERCENT);

	while (n > 0 && buf[n - 1] == '0')
		n--;
	n -= n > 0 && buf[n - 1] == '.';
	(void)snprintf(buf + n, size - (size_t)n, "%%");
}

static void format_number(const struct config_key *row, uint64_t v, char *buf, size_t size)
{
	const struct value_unit *u = row->type == CONFIG_DURATION ? time_units : byte_units;

	if (row->type == CONFIG_SHARE) {
		format_share(v, buf, size);
		return;
	}
	if (row->type == CONFIG_COUNT || v == 0) {
		(void)snprintf(buf, size, "%" PRIu64, v);
		return;
	}
	while (v % u->factor != 0)
		u++;
	(void)snprintf(buf, size, "%" PRIu64 "%s", v / u->factor, u->name);
}

const char *config_value_range(const struct config_key *row, char *buf, size_t size)
{
	const struct choices *c = choices_of(row->type);
	char min[32], max[32], more[64] = "";

	switch (row->type) {
	case CONFIG_BOOL:
		(void)snprintf(buf, size, "yes or no");
		break;
	case CONFIG_COUNT:
	case CONFIG_AUTO_BYTES:
	case CONFIG_BYTES:
	case CONFIG_DURATION:
	case CONFIG_SHARE:
		format_number(row, row->min, min, sizeof(min));
		format_number(row, row->max, max, sizeof(max));
		if (row->power_of_two)
			(void)snprintf(more, sizeof(more), ", a power of two");
		else if (row->multiple)
			(void)snprintf(more, sizeof(more), ", a multiple of %" PRIu64,
				       row->multiple);
		(void)snprintf(buf, size, "%s%s .. %s%s",
			       row->type == CONFIG_AUTO_BYTES ? "auto, or " : "", min, max, more);
		break;
	default:
		(void)snprintf(buf, size, "%s", c ? c->expected : "");
	}
	return buf;
}

/* error = "expected a size like 512K, 32M, 1G, 1K .. 65528, a multiple of 8". */
static int number_expected(const struct config_key *row, char *error)
{
	const char *kind = row->type == CONFIG_COUNT	  ? "a whole number"
			   : row->type == CONFIG_DURATION ? "a duration like 500ms, 10s, 5m, 1h"
			   : row->type == CONFIG_SHARE	  ? "a percentage like 0.5% or 2%"
							  : "a size like 65528, 512K, 32M, 1G";
	char range[96];

	(void)snprintf(error, CONFIG_ERROR_MAX, "expected %s; %s", kind,
		       config_value_range(row, range, sizeof(range)));
	return -EINVAL;
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

static int parse_number(const struct config_key *row, const char *text, uint64_t *ret, char *error)
{
	uint64_t v = 0;
	int r;

	if (row->type == CONFIG_COUNT)
		r = text_parse_u64(text, row->min, row->max, &v);
	else if (row->type == CONFIG_DURATION)
		r = text_parse_duration_ns(text, &v);
	else if (row->type == CONFIG_SHARE)
		r = parse_share(text, &v);
	else
		r = text_parse_bytes(text, &v);
	if (r < 0 || v < row->min || v > row->max || (row->multiple && v % row->multiple != 0) ||
	    (row->power_of_two && (v & (v - 1)) != 0))
		return number_expected(row, error);
	*ret = v;
	return 0;
}

static int check_text(const struct config_key *row, const char *text, char *error)
{
	switch (row->type) {
	case CONFIG_PATH:
		return config_path_check(text, error);
	case CONFIG_GLOBS:
		return config_globs_check(text, error);
	case CONFIG_CONTAINERS:
		return config_containers_check(text, error);
	case CONFIG_CGROUPS:
		return config_cgroups_check(text, error);
	case CONFIG_CPUS:
		return config_cpus_check(text, error);
	case CONFIG_LISTEN:
		return config_listen_check(text, error);
	case CONFIG_WORD:
		return config_word_check(text, error);
	case CONFIG_TEXT:
		return config_text_check(text, error);
	case CONFIG_URLS:
		return config_urls_check(text, error);
	case CONFIG_HOST:
		return config_host_check(text, error);
	case CONFIG_PROXY:
		return config_proxy_check(text, error);
	case CONFIG_URL_EXACT:
		return config_exact_url_check(text, error);
	default:
		return config_url_check(text, error);
	}
}

/* The value is kept as it is written. */
static bool is_text(enum config_type type)
{
	switch (type) {
	case CONFIG_LISTEN:
	case CONFIG_WORD:
	case CONFIG_TEXT:
	case CONFIG_PATH:
	case CONFIG_URL:
	case CONFIG_URL_EXACT:
	case CONFIG_URLS:
	case CONFIG_HOST:
	case CONFIG_PROXY:
	case CONFIG_GLOBS:
	case CONFIG_CONTAINERS:
	case CONFIG_CGROUPS:
	case CONFIG_CPUS:
		return true;
	default:
		return false;
	}
}

static int set_string(const struct config_key *row, char **field, const char *text, char *error)
{
	char *copy = NULL;

	if (*text) {
		int r = check_text(row, text, error);

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

static int choose(const struct choices *c, const char *text, void *field)
{
	for (unsigned int i = 0; i < c->n; i++) {
		if (strcmp(c->names[i], text) == 0) {
			memcpy(field, &i, sizeof(i));
			return 0;
		}
	}
	return -EINVAL;
}

const char *config_demangle_name(unsigned int i)
{
	return i < ARRAY_SIZE(demangle_names) ? demangle_names[i] : NULL;
}

bool config_demangle_parse(const char *text, enum config_demangle *ret)
{
	return choose(&choices[CONFIG_DEMANGLE], text, ret) == 0;
}

int config_value_set(const struct config_key *row, void *base, const char *text, char *error)
{
	void *field = (char *)base + row->offset;
	uint64_t v;
	int r;

	if (!*text && row->value)
		text = row->value;

	switch (row->type) {
	case CONFIG_BOOL:
		return text_parse_bool(text, field) < 0 ? config_expected(error, "yes or no") : 0;
	case CONFIG_AUTO_BYTES:
		if (strcmp(text, "auto") == 0) {
			*(uint32_t *)field = 0;
			return 0;
		}
		__attribute__((fallthrough));
	case CONFIG_COUNT:
	case CONFIG_SHARE:
		r = parse_number(row, text, &v, error);
		if (r == 0)
			*(uint32_t *)field = (uint32_t)v;
		return r;
	case CONFIG_BYTES:
	case CONFIG_DURATION:
		return parse_number(row, text, field, error);
	case CONFIG_COMPRESSION:
	case CONFIG_PROTOCOL:
	case CONFIG_PRESET:
	case CONFIG_LOG_LEVEL:
	case CONFIG_DEMANGLE:
	case CONFIG_SECCOMP:
		return choose(choices_of(row->type), text, field) < 0
			       ? config_expected(error, choices_of(row->type)->expected)
			       : 0;
	case CONFIG_HEADERS:
		return config_headers_set(base, text, error);
	case CONFIG_USERS:
		return config_users_set(field, text, error);
	default:
		return is_text(row->type) ? set_string(row, field, text, error) : -EINVAL;
	}
}

void config_value_free(const struct config_key *row, void *base)
{
	char **field = (char **)((char *)base + row->offset);

	if (row->type == CONFIG_HEADERS) {
		config_headers_free(base);
	} else if (row->type == CONFIG_USERS || is_text(row->type)) {
		free(*field);
		*field = NULL;
	}
}

void config_value_print(const struct config_key *row, const void *base, FILE *out)
{
	const char *field = (const char *)base + row->offset, *text;
	const struct config_export *x = base;
	uint64_t v;
	char buf[32];

	switch (row->type) {
	case CONFIG_BOOL:
		fputs(*(const bool *)field ? "yes" : "no", out);
		break;
	case CONFIG_COMPRESSION:
	case CONFIG_PROTOCOL:
	case CONFIG_PRESET:
	case CONFIG_LOG_LEVEL:
	case CONFIG_DEMANGLE:
	case CONFIG_SECCOMP:
		fputs(choices_of(row->type)->names[*(const unsigned int *)field], out);
		break;
	case CONFIG_COUNT:
	case CONFIG_SHARE:
	case CONFIG_AUTO_BYTES:
		format_number(row, *(const uint32_t *)field, buf, sizeof(buf));
		fputs(row->type == CONFIG_AUTO_BYTES && !*(const uint32_t *)field ? "auto" : buf,
		      out);
		break;
	case CONFIG_BYTES:
	case CONFIG_DURATION:
		memcpy(&v, field, sizeof(v));
		format_number(row, v, buf, sizeof(buf));
		fputs(buf, out);
		break;
	case CONFIG_HEADERS:
		for (size_t i = 0; i < x->n_headers; i++)
			fprintf(out, "%s%.*s=***", i ? "," : "", (int)strcspn(x->headers[i], ":"),
				x->headers[i]);
		break;
	default:
		text = *(const char *const *)field;
		fputs(text ? text : "", out);
	}
}
