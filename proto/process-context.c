/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "proto/process-context.h"
#include "proto/wire-read.h"

/* Numbers of the fields of AnyValue. */
enum {
	ANY_STRING = 1,
	ANY_BOOL = 2,
	ANY_INT = 3,
	ANY_DOUBLE = 4,
	ANY_ARRAY = 5,
};

/* false: a value of another kind, or none. The last one counts, as for any protobuf reader. */
static bool read_value(const struct wire_field *value, struct process_context_attribute *a)
{
	struct cursor c = cursor_make(value->bytes, value->n);
	struct wire_field f;
	bool known = false;

	while (wire_read_field(&c, &f)) {
		known = true;
		a->number = (int64_t)f.value;
		a->bytes = f.bytes;
		a->n = f.n;
		if (f.number == ANY_STRING && f.type == WIRE_BYTES)
			a->kind = PROCESS_CONTEXT_TEXT;
		else if (f.number == ANY_BOOL && f.type == WIRE_VARINT)
			a->kind = PROCESS_CONTEXT_BOOL;
		else if (f.number == ANY_INT && f.type == WIRE_VARINT)
			a->kind = PROCESS_CONTEXT_NUMBER;
		else if (f.number == ANY_DOUBLE && f.type == WIRE_FIXED64)
			a->kind = PROCESS_CONTEXT_DOUBLE;
		else if (f.number == ANY_ARRAY && f.type == WIRE_BYTES)
			a->kind = PROCESS_CONTEXT_LIST;
		else
			known = false;
	}
	if (a->kind == PROCESS_CONTEXT_BOOL)
		a->number = a->number != 0;
	return known && cursor_ok(&c);
}

/* A KeyValue: 1 if it can be told. */
static int read_attribute(const struct wire_field *pair, struct process_context_attribute *ret)
{
	struct cursor c = cursor_make(pair->bytes, pair->n);
	struct process_context_attribute a = {.is_resource = ret->is_resource};
	struct wire_field f;
	bool has_value = false;

	while (wire_read_field(&c, &f)) {
		if (f.type != WIRE_BYTES)
			continue;
		if (f.number == 1) {
			a.key = f.bytes;
			a.n_key = f.n;
		} else if (f.number == 2) {
			has_value = read_value(&f, &a);
		}
	}
	if (!cursor_ok(&c))
		return -EBADMSG;
	*ret = a;
	return has_value && a.n_key > 0;
}

/* The attributes of a message that has them in that field. */
static int read_attributes(const uint8_t *bytes, size_t n, uint32_t number, int is_resource,
			   int (*fn)(void *ctx, const struct process_context_attribute *a),
			   void *ctx)
{
	struct cursor c = cursor_make(bytes, n);
	struct wire_field f;
	int r = 0;

	while (r == 0 && wire_read_field(&c, &f)) {
		struct process_context_attribute a = {.is_resource = is_resource};

		if (f.number != number || f.type != WIRE_BYTES)
			continue;
		r = read_attribute(&f, &a);
		if (r > 0)
			r = fn(ctx, &a);
	}
	return r < 0 ? r : cursor_ok(&c) ? 0 : -EBADMSG;
}

int process_context_read(const uint8_t *bytes, size_t n,
			 int (*fn)(void *ctx, const struct process_context_attribute *a), void *ctx)
{
	struct cursor c = cursor_make(bytes, n);
	struct wire_field f;
	int r = 0;

	while (r == 0 && wire_read_field(&c, &f)) {
		if (f.number == 1 && f.type == WIRE_BYTES)
			r = read_attributes(f.bytes, f.n, 1, 1, fn, ctx);
	}
	if (r < 0 || !cursor_ok(&c))
		return r < 0 ? r : -EBADMSG;
	return read_attributes(bytes, n, 2, 0, fn, ctx);
}

static bool is_text(const uint8_t *bytes, size_t n, const char *text)
{
	return n == strlen(text) && memcmp(bytes, text, n) == 0;
}

enum process_context_schema process_context_schema_of(const struct process_context_attribute *a)
{
	static const struct {
		const char *name;
		enum process_context_schema schema;
	} known[] = {
		{"tlsdesc_v1_dev", PROCESS_CONTEXT_THREADS},
		{"tls_v1", PROCESS_CONTEXT_THREADS},
		{"tlsdesc_v1", PROCESS_CONTEXT_THREADS},
		{"nodejs_v1_dev", PROCESS_CONTEXT_NODE},
		{"nodejs_v1", PROCESS_CONTEXT_NODE},
	};

	if (a->is_resource || a->kind != PROCESS_CONTEXT_TEXT ||
	    !is_text(a->key, a->n_key, "threadlocal.schema_version"))
		return PROCESS_CONTEXT_NO_SCHEMA;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (is_text(a->bytes, a->n, known[i].name))
			return known[i].schema;
	}
	return PROCESS_CONTEXT_UNKNOWN_SCHEMA;
}

int process_context_each_text(const uint8_t *bytes, size_t n,
			      int (*fn)(void *ctx, const uint8_t *text, size_t n), void *ctx)
{
	struct cursor c = cursor_make(bytes, n);
	struct wire_field f;
	int r = 0;

	while (r == 0 && wire_read_field(&c, &f)) {
		struct process_context_attribute item = {0};
		bool is_text;

		if (f.number != 1 || f.type != WIRE_BYTES)
			continue;
		is_text = read_value(&f, &item) && item.kind == PROCESS_CONTEXT_TEXT;
		r = fn(ctx, is_text ? item.bytes : NULL, is_text ? item.n : 0);
	}
	return r < 0 ? r : cursor_ok(&c) ? 0 : -EBADMSG;
}
