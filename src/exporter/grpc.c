/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A unary gRPC call as HTTP/2 carries it (grpc/grpc, doc/PROTOCOL-HTTP2.md): the request is one
 * message after a prefix of five bytes, the outcome is in the trailers, or in the headers of an
 * answer that has no body. libcurl does HTTP/2 and passes trailers on as headers.
 */
#include "src/exporter/grpc.h"

#include <ctype.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/otlp-response.h"
#include "util/text.h"

/* google.golang.org/grpc/codes, which the specification numbers. */
enum code {
	OK = 0,
	CANCELLED = 1,
	UNKNOWN = 2,
	INVALID_ARGUMENT = 3,
	DEADLINE_EXCEEDED = 4,
	RESOURCE_EXHAUSTED = 8,
	ABORTED = 10,
	OUT_OF_RANGE = 11,
	UNIMPLEMENTED = 12,
	INTERNAL = 13,
	UNAVAILABLE = 14,
	DATA_LOSS = 15,
	UNAUTHENTICATED = 16,
};

static const char *const code_names[] = {
	"OK",
	"CANCELLED",
	"UNKNOWN",
	"INVALID_ARGUMENT",
	"DEADLINE_EXCEEDED",
	"NOT_FOUND",
	"ALREADY_EXISTS",
	"PERMISSION_DENIED",
	"RESOURCE_EXHAUSTED",
	"FAILED_PRECONDITION",
	"ABORTED",
	"OUT_OF_RANGE",
	"UNIMPLEMENTED",
	"INTERNAL",
	"UNAVAILABLE",
	"DATA_LOSS",
	"UNAUTHENTICATED",
};

const char *grpc_code_name(int code)
{
	return code >= 0 && code < (int)ARRAY_SIZE(code_names) ? code_names[code] : "UNKNOWN";
}

void grpc_prefix(uint8_t prefix[GRPC_PREFIX_BYTES], bool compressed, size_t n)
{
	uint32_t length = htobe32((uint32_t)n);

	prefix[0] = compressed;
	memcpy(prefix + 1, &length, sizeof(length));
}

/* The value of a header line of that name, without blanks around it; NULL: another header. */
static const char *value_of(const char *line, size_t n, const char *name, size_t *ret_n)
{
	size_t at = strlen(name);

	if (n <= at || strncasecmp(line, name, at) != 0 || line[at] != ':')
		return NULL;
	for (at++; at < n && (line[at] == ' ' || line[at] == '\t'); at++)
		;
	while (n > at && strchr(" \t\r\n", line[n - 1]))
		n--;
	*ret_n = n - at;
	return line + at;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* Percent-encoding; what is none stays as it is. */
static void take_message(struct grpc_status *s, const char *value, size_t n)
{
	char raw[sizeof(s->message)];
	size_t at = 0;

	for (size_t i = 0; i < n && at < sizeof(raw) - 1; i++) {
		int high = value[i] == '%' && i + 2 < n ? hex_digit(value[i + 1]) : -1;
		int low = high >= 0 ? hex_digit(value[i + 2]) : -1;

		raw[at++] = low >= 0 ? (char)(high << 4 | low) : value[i];
		i += low >= 0 ? 2 : 0;
	}
	(void)text_clean(s->message, sizeof(s->message), raw, at);
}

/* Base64, with or without padding. */
static size_t base64(const char *text, size_t n, uint8_t *ret, size_t size)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t bits = 0, n_bits = 0;
	size_t at = 0;

	for (size_t i = 0; i < n && text[i] != '='; i++) {
		const char *digit = text[i] ? strchr(digits, text[i]) : NULL;

		if (!digit || at == size)
			return 0;
		bits = bits << 6 | (uint32_t)(digit - digits);
		n_bits += 6;
		if (n_bits >= 8) {
			n_bits -= 8;
			ret[at++] = (uint8_t)(bits >> n_bits);
		}
	}
	return at;
}

static void take_details(struct grpc_status *s, const char *value, size_t n)
{
	uint8_t bytes[4096];
	size_t n_bytes = base64(value, n, bytes, sizeof(bytes));

	s->has_delay = otlp_status_retry_delay(bytes, n_bytes, &s->delay_ns) == 0;
}

/* One digit or two; the line may end with them. */
static bool read_code(const char *value, size_t n, int *ret)
{
	int code = 0;

	if (n == 0 || n > 2)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!isdigit((unsigned char)value[i]))
			return false;
		code = code * 10 + value[i] - '0';
	}
	*ret = code;
	return true;
}

void grpc_take_header(struct grpc_status *s, const char *line, size_t n)
{
	const char *value;
	size_t length;

	value = value_of(line, n, "grpc-status", &length);
	if (value && read_code(value, length, &s->code)) {
		s->known = true;
	} else if ((value = value_of(line, n, "grpc-message", &length))) {
		take_message(s, value, length);
	} else if ((value = value_of(line, n, "grpc-status-details-bin", &length))) {
		take_details(s, value, length);
	}
}

/* The specification's table for answers without a status: a proxy's, or of no gRPC server at all.
 */
static int code_of_http(long status)
{
	switch (status) {
	case 400:
		return INTERNAL;
	case 401:
		return UNAUTHENTICATED;
	case 403:
		return 7;
	case 404:
		return UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504:
		return UNAVAILABLE;
	default:
		return UNKNOWN;
	}
}

/* Servers say so by different codes, and in words of their libraries: Go, C++, Java, Rust. */
static bool is_too_large(const struct grpc_status *s)
{
	static const char *const words[] = {"larger than max", "exceeds max", "too large"};

	if ((s->code != RESOURCE_EXHAUSTED && s->code != OUT_OF_RANGE) || s->has_delay)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcasestr(s->message, words[i]))
			return true;
	}
	return false;
}

enum grpc_verdict grpc_decide(struct grpc_status *s, bool complete, long http_status)
{
	if (!s->known) {
		/* An answer that ended before its trailers acknowledges nothing. */
		if (!complete || http_status == 200) {
			s->code = UNAVAILABLE;
			(void)snprintf(s->message, sizeof(s->message),
				       "the answer ended without a status");
			return GRPC_RETRY;
		}
		s->code = code_of_http(http_status);
		if (http_status == 413)
			return GRPC_TOO_LARGE;
	}
	if (is_too_large(s))
		return GRPC_TOO_LARGE;
	switch (s->code) {
	case OK:
		return GRPC_SENT;
	case CANCELLED:
	case DEADLINE_EXCEEDED:
	case ABORTED:
	case OUT_OF_RANGE:
	case UNAVAILABLE:
	case DATA_LOSS:
		return GRPC_RETRY;
	case RESOURCE_EXHAUSTED: /* only a server that says when means "later" */
		return s->has_delay ? GRPC_RETRY : GRPC_DROP;
	default:
		return GRPC_DROP;
	}
}

bool grpc_message(const uint8_t *body, size_t n, const uint8_t **ret, size_t *ret_n)
{
	uint32_t length;

	if (n < GRPC_PREFIX_BYTES || body[0] != 0)
		return false;
	memcpy(&length, body + 1, sizeof(length));
	length = be32toh(length);
	if (length > n - GRPC_PREFIX_BYTES)
		return false;
	*ret = body + GRPC_PREFIX_BYTES;
	*ret_n = length;
	return true;
}
