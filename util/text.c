/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/clock.h"
#include "util/cleanup.h"
#include "util/hash.h"
#include "util/text.h"

/* Length of the UTF-8 character at p (n bytes left), 0: not valid (RFC 3629 table). */
static size_t utf8_char(const unsigned char *p, size_t n)
{
	size_t len;

	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		len = 2;
	else if (p[0] >= 0xe0 && p[0] <= 0xef)
		len = 3;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		len = 4;
	else
		return 0;
	if (n < len)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	/* Overlong forms, surrogates, beyond U+10FFFF. */
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return len;
}

size_t text_clean(char *dst, size_t size, const char *src, size_t n)
{
	const unsigned char *p = (const unsigned char *)src;
	size_t out = 0;

	if (size == 0)
		return 0;
	n = strnlen(src, n);
	/* Nearly every text is plain ASCII: a fast copy of that part. */
	while (n > 0 && out + 1 < size && *p >= 0x20 && *p < 0x7f) {
		dst[out++] = (char)*p++;
		n--;
	}
	while (n > 0) {
		size_t len = utf8_char(p, n);
		/* C1 controls (U+0080..U+009F) control terminals, too. */
		bool bad = len == 0 || p[0] < 0x20 || p[0] == 0x7f || (p[0] == 0xc2 && p[1] < 0xa0);

		if (out + (bad ? 1 : len) >= size)
			break;
		if (bad) {
			dst[out++] = '?';
			len = len ? len : 1;
		} else {
			memcpy(dst + out, p, len);
			out += len;
		}
		p += len;
		n -= len;
	}
	dst[out] = '\0';
	return out;
}

size_t text_shorten(char *dst, size_t size, const char *src, const char *whole)
{
	size_t n;

	if (strlen(src) < size)
		return text_clean(dst, size, src, SIZE_MAX);
	whole = whole ? whole : src;
	n = text_clean(dst, size - TEXT_CUT_BYTES + 1, src, SIZE_MAX);
	return n + (size_t)snprintf(dst + n, size - n, "...[%016" PRIx64 "]",
				    hash_bytes(whole, strlen(whole), 0));
}

bool text_equal(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

int text_replace(char **field, const char *text)
{
	free(*field);
	*field = strdup(text);
	return *field ? 0 : -ENOMEM;
}

struct unit {
	const char *name;
	uint64_t factor;
};

static int parse_with_unit(const char *text, const struct unit *units, size_t n_units,
			   uint64_t *ret)
{
	unsigned long long whole;
	double value;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	whole = strtoull(text, &end, 10);
	if (errno == ERANGE)
		return -ERANGE;
	value = (double)whole;
	if (*end == '.')
		value = strtod(text, &end);
	while (*end == ' ')
		end++;
	for (size_t i = 0; i < n_units; i++) {
		if (strcasecmp(end, units[i].name) != 0)
			continue;
		if (value * (double)units[i].factor >= 1.8e19)
			return -ERANGE;
		*ret = value == (double)whole ? whole * units[i].factor
					      : (uint64_t)(value * (double)units[i].factor);
		return 0;
	}
	return -EINVAL;
}

int text_parse_duration_ns(const char *text, uint64_t *ret_ns)
{
	static const struct unit units[] = {
		{"", NSEC_PER_SEC},	    {"ns", 1},
		{"us", NSEC_PER_USEC},	    {"ms", NSEC_PER_MSEC},
		{"s", NSEC_PER_SEC},	    {"sec", NSEC_PER_SEC},
		{"m", 60 * NSEC_PER_SEC},   {"min", 60 * NSEC_PER_SEC},
		{"h", 3600 * NSEC_PER_SEC}, {"d", 86400 * NSEC_PER_SEC},
	};

	return parse_with_unit(text, units, ARRAY_SIZE(units), ret_ns);
}

int text_parse_bytes(const char *text, uint64_t *ret_bytes)
{
	static const struct unit units[] = {
		{"", 1},	  {"B", 1},	     {"K", 1u << 10},	{"KiB", 1u << 10},
		{"KB", 1u << 10}, {"M", 1u << 20},   {"MiB", 1u << 20}, {"MB", 1u << 20},
		{"G", 1u << 30},  {"GiB", 1u << 30}, {"GB", 1u << 30},
	};

	return parse_with_unit(text, units, ARRAY_SIZE(units), ret_bytes);
}

int text_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	unsigned long long v;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (*end)
		return -EINVAL;
	if (errno == ERANGE || v < min || v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

int text_parse_ranges(const char *text, bool *set, size_t n)
{
	do {
		unsigned long first, last;
		char *end;

		if (*text < '0' || *text > '9')
			return -EINVAL;
		errno = 0;
		first = last = strtoul(text, &end, 10);
		if (*end == '-') {
			if (end[1] < '0' || end[1] > '9')
				return -EINVAL;
			last = strtoul(end + 1, &end, 10);
		}
		if (last < first)
			return -EINVAL;
		if (errno || last >= n)
			return -ERANGE;
		for (; first <= last; first++)
			set[first] = true;
		text = end;
	} while (*text++ == ',');
	return text[-1] ? -EINVAL : 0;
}

int text_parse_bool(const char *text, bool *ret)
{
	static const char *const yes[] = {"yes", "true", "on", "1"}, *const no[] = {"no", "false",
										    "off", "0"};

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
			*ret = strcasecmp(text, yes[i]) == 0;
			return 0;
		}
	}
	return -EINVAL;
}

uint16_t text_url_port(const char *url)
{
	const char *host = strstr(url, "://"), *end, *colon;
	uint64_t port;
	char digits[8];

	host = host ? host + 3 : url;
	end = host + strcspn(host, "/?#");
	for (const char *at = host; at < end; at++) {
		if (*at == '@')
			host = at + 1;
	}
	/* Colons in brackets belong to the address. */
	colon = memrchr(host, ':', (size_t)(end - host));
	if (!colon || memchr(colon, ']', (size_t)(end - colon)) ||
	    (size_t)(end - colon) > sizeof(digits))
		return 0;
	(void)snprintf(digits, sizeof(digits), "%.*s", (int)(end - colon - 1), colon + 1);
	return text_parse_u64(digits, 1, UINT16_MAX, &port) == 0 ? (uint16_t)port : 0;
}

void text_format_hex(char *dst, const uint8_t *bytes, size_t n)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		*dst++ = digits[bytes[i] >> 4];
		*dst++ = digits[bytes[i] & 15];
	}
	*dst = '\0';
}

const char *text_format_bytes(char *buf, size_t size, uint64_t bytes)
{
	static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double v = (double)bytes;
	size_t i = 0;

	while (v >= 1024 && i + 1 < ARRAY_SIZE(names)) {
		v /= 1024;
		i++;
	}
	(void)snprintf(buf, size, i == 0 || v >= 100 ? "%.0f %s" : "%.1f %s", v, names[i]);
	return buf;
}

const char *text_format_duration(char *buf, size_t size, uint64_t ns)
{
	static const struct unit units[] = {
		{"d", 86400 * NSEC_PER_SEC},
		{"h", 3600 * NSEC_PER_SEC},
		{"m", 60 * NSEC_PER_SEC},
		{"s", NSEC_PER_SEC},
		{"ms", NSEC_PER_MSEC},
		{"us", NSEC_PER_USEC},
		{"ns", 1},
	};
	size_t i = 0;

	if (ns == 0) {
		(void)snprintf(buf, size, "0s");
		return buf;
	}
	while (ns < units[i].factor)
		i++;
	if (ns % units[i].factor == 0 || i >= 3)
		(void)snprintf(buf, size, ns % units[i].factor ? "%.1f%s" : "%.0f%s",
			       (double)ns / (double)units[i].factor, units[i].name);
	else
		(void)snprintf(buf, size, "%llu%s%llu%s",
			       (unsigned long long)(ns / units[i].factor), units[i].name,
			       (unsigned long long)(ns % units[i].factor / units[i + 1].factor),
			       units[i + 1].name);
	return buf;
}

/* Levenshtein distance, for words as long as config keys; longer ones count as far apart. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t row[65], na = strlen(a), nb = strlen(b);

	if (na > 64 || nb > 64)
		return 64;
	for (size_t j = 0; j <= nb; j++)
		row[j] = j;
	for (size_t i = 1; i <= na; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			size_t best = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[nb];
}

const char *text_nearest(const char *word, const char *const *candidates, size_t n)
{
	size_t best = strlen(word) / 3 + 1;
	const char *found = NULL;

	for (size_t i = 0; i < n; i++) {
		size_t d = edit_distance(word, candidates[i]);

		if (d <= best && (d < best || !found)) {
			best = d;
			found = candidates[i];
		}
	}
	return found;
}

char *text_strip(char *s)
{
	size_t n;

	s += strspn(s, " \t");
	for (n = strlen(s); n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t');)
		s[--n] = '\0';
	return s;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool text_decode_percent(char *s)
{
	char *out = s;

	for (; *s; s++) {
		int high, low;

		if (*s != '%') {
			*out++ = *s;
			continue;
		}
		high = hex_digit(s[1]);
		low = high < 0 ? -1 : hex_digit(s[2]);
		if (low < 0 || (high | low) == 0)
			return false;
		*out++ = (char)(high << 4 | low);
		s += 2;
	}
	*out = '\0';
	return true;
}
