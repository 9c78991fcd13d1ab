/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "proto/otlp-response.h"
#include "proto/wire-read.h"
#include "util/json-read.h"
#include "util/text.h"

/* Both messages are a number and a text, one of them inside an envelope. */
struct response_outcome {
	int64_t number;
	const uint8_t *text;
	size_t n_text;
};

/* Reads field 1 (varint) and field 2 (string). As in every protobuf reader, the last one wins. */
static int read_outcome(const uint8_t *bytes, size_t n, struct response_outcome *o)
{
	struct cursor c = cursor_make(n ? bytes : (const uint8_t *)"", n);
	struct wire_field f;

	while (wire_read_field(&c, &f)) {
		if (f.number == 1 && f.type == WIRE_VARINT) {
			o->number = (int64_t)f.value;
		} else if (f.number == 2 && f.type == WIRE_BYTES) {
			o->text = f.bytes;
			o->n_text = f.n;
		}
	}
	return cursor_ok(&c) ? 0 : -EBADMSG;
}

static void give_text(const struct response_outcome *o, char *message, size_t size)
{
	if (o->text)
		(void)text_clean(message, size, (const char *)o->text, o->n_text);
	else if (size)
		message[0] = '\0';
}

int otlp_response_parse(const uint8_t *bytes, size_t n, int64_t *ret_rejected, char *message,
			size_t size)
{
	/* An empty body may be a null pointer, and adding even 0 to that is undefined. */
	struct cursor c = cursor_make(n ? bytes : (const uint8_t *)"", n);
	struct response_outcome o = {0};
	struct wire_field f;

	while (wire_read_field(&c, &f)) {
		if (f.number == 1 && f.type == WIRE_BYTES && read_outcome(f.bytes, f.n, &o) < 0)
			return -EBADMSG;
	}
	if (!cursor_ok(&c))
		return -EBADMSG;
	*ret_rejected = o.number;
	give_text(&o, message, size);
	return 0;
}

/* 64-bit integers are strings in protobuf's JSON, but readers must accept numbers, too. */
int otlp_response_parse_json(const uint8_t *bytes, size_t n, int64_t *ret_rejected, char *message,
			     size_t size)
{
	struct json_reader j = json_reader_make(bytes, n);
	struct response_outcome o = {0};
	char text[JSON_MAX_TEXT] = "";

	if (n == 0 || bytes[0] != '{')
		return -EBADMSG;
	while (json_reader_next(&j)) {
		if (j.depth != 2 || strcmp(j.keys[1], "partialSuccess") != 0)
			continue;
		if (strcmp(j.keys[2], "rejectedProfiles") == 0)
			o.number = strtoll(j.value, NULL, 10);
		else if (strcmp(j.keys[2], "errorMessage") == 0 && j.is_string)
			memcpy(text, j.value, sizeof(text));
	}
	*ret_rejected = o.number;
	(void)text_clean(message, size, text, sizeof(text));
	return 0;
}

int otlp_status_parse(const uint8_t *bytes, size_t n, int32_t *ret_code, char *message, size_t size)
{
	struct response_outcome o = {0};

	if (read_outcome(bytes, n, &o) < 0)
		return -EBADMSG;
	*ret_code = (int32_t)o.number;
	give_text(&o, message, size);
	return 0;
}

/* Duration { int64 seconds = 1; int32 nanos = 2; } */
static uint64_t duration_ns(const struct wire_field *duration)
{
	struct cursor c = cursor_make(duration->bytes, duration->n);
	uint64_t seconds = 0, nanos = 0;
	struct wire_field f;

	while (wire_read_field(&c, &f)) {
		if (f.number == 1 && f.type == WIRE_VARINT)
			seconds = f.value;
		else if (f.number == 2 && f.type == WIRE_VARINT)
			nanos = f.value;
	}
	/* Negative and absurd delays count as a day; the caller has a limit of its own. */
	if (seconds > 86400)
		seconds = 86400;
	return seconds * UINT64_C(1000000000) + (nanos < UINT64_C(1000000000) ? nanos : 0);
}

/* RetryInfo { Duration retry_delay = 1; } */
static bool retry_info(const uint8_t *bytes, size_t n, uint64_t *ret_ns)
{
	struct cursor c = cursor_make(bytes, n);
	struct wire_field f;

	while (wire_read_field(&c, &f)) {
		if (f.number == 1 && f.type == WIRE_BYTES) {
			*ret_ns = duration_ns(&f);
			return true;
		}
	}
	return false;
}

/* Any { string type_url = 1; bytes value = 2; } */
static bool detail_delay(const struct wire_field *any, uint64_t *ret_ns)
{
	static const char type[] = "google.rpc.RetryInfo";
	struct cursor c = cursor_make(any->bytes, any->n);
	struct wire_field f, value = {0};
	bool found = false;

	while (wire_read_field(&c, &f)) {
		if (f.number == 1 && f.type == WIRE_BYTES)
			found = f.n >= sizeof(type) - 1 &&
				memcmp(f.bytes + f.n - (sizeof(type) - 1), type,
				       sizeof(type) - 1) == 0;
		else if (f.number == 2 && f.type == WIRE_BYTES)
			value = f;
	}
	return found && value.bytes && retry_info(value.bytes, value.n, ret_ns);
}

int otlp_status_retry_delay(const uint8_t *bytes, size_t n, uint64_t *ret_ns)
{
	struct cursor c = cursor_make(n ? bytes : (const uint8_t *)"", n);
	struct wire_field f;

	while (wire_read_field(&c, &f))
		if (f.number == 3 && f.type == WIRE_BYTES && detail_delay(&f, ret_ns))
			return 0;
	return -ENOENT;
}
