/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and types come from the generated descriptors, so a new field of the schema needs no change
 * here.
 *
 * The rules of the mapping: names in lowerCamelCase; 64-bit integers as strings; numbers for enums;
 * trace, span and profile ids in hexadecimal, other bytes in base64; unset fields are left out.
 *
 * Nothing is unpacked. The entries of a repeated field are one array in JSON but may be anywhere in
 * the message, so each field of a descriptor is one pass over the message's bytes; skipping an
 * entry is a jump. Memory does not grow with the message. The depth is that of the schema, at most
 * MAX_DEPTH.
 */
#include "proto/otlp-json.h"

#include <errno.h>
#include <inttypes.h>
#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>

#include "proto/otlp-profiles.pb-c.h"
#include "proto/wire-read.h"
#include "util/json.h"

#define MAX_DEPTH 32

static int put_message(FILE *out, const ProtobufCMessageDescriptor *d, const uint8_t *bytes,
		       size_t n, unsigned int depth);

static void put_name(FILE *out, const char *name)
{
	(void)fputc('"', out);
	for (; *name; name++) {
		bool up = *name == '_' && name[1] >= 'a' && name[1] <= 'z';

		(void)fputc(up ? *++name - 'a' + 'A' : *name, out);
	}
	(void)fputs("\":", out);
}

static bool is_hex_id(const char *name)
{
	return strcmp(name, "trace_id") == 0 || strcmp(name, "span_id") == 0 ||
	       strcmp(name, "profile_id") == 0;
}

static void put_hex(FILE *out, const uint8_t *bytes, size_t n)
{
	(void)fputc('"', out);
	for (size_t i = 0; i < n; i++)
		(void)fprintf(out, "%02x", bytes[i]);
	(void)fputc('"', out);
}

static void put_base64(FILE *out, const uint8_t *bytes, size_t n)
{
	(void)fputc('"', out);
	while (n > 0) {
		char text[BASE64_ENCODE_RAW_LENGTH(48)];
		size_t m = n < 48 ? n : 48;

		base64_encode_raw(text, m, bytes);
		(void)fwrite(text, 1, BASE64_ENCODE_RAW_LENGTH(m), out);
		bytes += m;
		n -= m;
	}
	(void)fputc('"', out);
}

static void put_double(FILE *out, uint64_t bits)
{
	double v;

	memcpy(&v, &bits, sizeof(v));
	if (v != v)
		(void)fputs("\"NaN\"", out);
	else if (v - v != 0)
		(void)fputs(v > 0 ? "\"Infinity\"" : "\"-Infinity\"", out);
	else
		(void)fprintf(out, "%.17g", v);
}

static int put_number(FILE *out, ProtobufCType type, uint64_t v)
{
	switch (type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SFIXED32:
	case PROTOBUF_C_TYPE_ENUM:
		(void)fprintf(out, "%" PRId32, (int32_t)v);
		return 0;
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		(void)fprintf(out, "%" PRIu32, (uint32_t)v);
		return 0;
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SFIXED64:
		(void)fprintf(out, "\"%" PRId64 "\"", (int64_t)v);
		return 0;
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		(void)fprintf(out, "\"%" PRIu64 "\"", v);
		return 0;
	case PROTOBUF_C_TYPE_BOOL:
		(void)fputs(v ? "true" : "false", out);
		return 0;
	case PROTOBUF_C_TYPE_DOUBLE:
		put_double(out, v);
		return 0;
	default: /* not in this schema */
		return -EBADMSG;
	}
}

static int put_value(FILE *out, const ProtobufCFieldDescriptor *fd, const struct wire_field *f,
		     unsigned int depth)
{
	bool is_bytes = fd->type == PROTOBUF_C_TYPE_STRING || fd->type == PROTOBUF_C_TYPE_BYTES ||
			fd->type == PROTOBUF_C_TYPE_MESSAGE;

	if (is_bytes != (f->type == WIRE_BYTES))
		return -EBADMSG;
	if (fd->type == PROTOBUF_C_TYPE_MESSAGE)
		return put_message(out, fd->descriptor, f->bytes, f->n, depth + 1);
	if (fd->type == PROTOBUF_C_TYPE_STRING)
		json_put_bytes(out, (const char *)f->bytes, f->n);
	else if (fd->type == PROTOBUF_C_TYPE_BYTES && is_hex_id(fd->name))
		put_hex(out, f->bytes, f->n);
	else if (fd->type == PROTOBUF_C_TYPE_BYTES)
		put_base64(out, f->bytes, f->n);
	else
		return put_number(out, fd->type, f->value);
	return 0;
}

/* Writes the elements of a packed field. */
static int put_packed(FILE *out, const ProtobufCFieldDescriptor *fd, const struct wire_field *f,
		      const char **comma)
{
	bool fixed = fd->type == PROTOBUF_C_TYPE_FIXED64 || fd->type == PROTOBUF_C_TYPE_SFIXED64 ||
		     fd->type == PROTOBUF_C_TYPE_DOUBLE;
	struct cursor c = cursor_make(f->bytes, f->n);

	while (cursor_left(&c) > 0) {
		uint64_t v = fixed ? cursor_u64(&c) : wire_read_varint(&c);

		(void)fputs(*comma, out);
		*comma = ",";
		if (!cursor_ok(&c) || put_number(out, fd->type, v) < 0)
			return -EBADMSG;
	}
	return 0;
}

static int put_repeated(FILE *out, const ProtobufCFieldDescriptor *fd, const struct wire_field *f,
			const char **comma, unsigned int depth)
{
	if (f->type == WIRE_BYTES && fd->type != PROTOBUF_C_TYPE_STRING &&
	    fd->type != PROTOBUF_C_TYPE_BYTES && fd->type != PROTOBUF_C_TYPE_MESSAGE)
		return put_packed(out, fd, f, comma);
	(void)fputs(*comma, out);
	*comma = ",";
	return put_value(out, fd, f, depth);
}

/* Writes one field: every occurrence if it is repeated, else the last one, which counts in
 * protobuf.
 */
static int put_field(FILE *out, const ProtobufCFieldDescriptor *fd, struct cursor c,
		     const char **comma, unsigned int depth)
{
	bool repeated = fd->label == PROTOBUF_C_LABEL_REPEATED, found = false;
	const char *inner = "";
	struct wire_field f, last = {0};

	while (wire_read_field(&c, &f)) {
		if (f.number != fd->id)
			continue;
		if (!found) {
			(void)fputs(*comma, out);
			put_name(out, fd->name);
			(void)fputs(repeated ? "[" : "", out);
			*comma = ",";
			found = true;
		}
		last = f;
		if (repeated && put_repeated(out, fd, &f, &inner, depth) < 0)
			return -EBADMSG;
	}
	if (!cursor_ok(&c))
		return -EBADMSG;
	if (!found)
		return 0;
	if (!repeated)
		return put_value(out, fd, &last, depth);
	(void)fputc(']', out);
	return 0;
}

static int put_message(FILE *out, const ProtobufCMessageDescriptor *d, const uint8_t *bytes,
		       size_t n, unsigned int depth)
{
	const char *comma = "";

	if (depth > MAX_DEPTH)
		return -EBADMSG;
	(void)fputc('{', out);
	for (unsigned int i = 0; i < d->n_fields && n > 0; i++) {
		if (put_field(out, &d->fields[i], cursor_make(bytes, n), &comma, depth) < 0)
			return -EBADMSG;
	}
	(void)fputc('}', out);
	return 0;
}

int otlp_json_write(FILE *out, const uint8_t *bytes, size_t n)
{
	return put_message(
		out, &opentelemetry__proto__profiles__v1development__profiles_data__descriptor,
		bytes, n, 0);
}
