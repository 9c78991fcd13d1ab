/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "proto/wire-write.h"

#define TYPE_BYTES 2u

void wire_buffer_deinit(struct wire_buffer *b)
{
	free(b->bytes);
	*b = (struct wire_buffer){0};
}

uint8_t *wire_reserve(struct wire_buffer *b, size_t n)
{
	size_t cap = b->cap ? b->cap : 1024;
	uint8_t *bytes;

	if (b->failed)
		return NULL;
	if (b->bytes && n <= b->cap - b->n)
		return b->bytes + b->n;
	for (; cap - b->n < n; cap *= 2) {
		if (cap > SIZE_MAX / 2) {
			b->failed = true;
			return NULL;
		}
	}
	bytes = realloc(b->bytes, cap);
	if (!bytes) {
		b->failed = true;
		return NULL;
	}
	b->bytes = bytes;
	b->cap = cap;
	return b->bytes + b->n;
}

void wire_put_prefix(struct wire_buffer *b, uint32_t field, size_t n)
{
	uint8_t *p = wire_reserve(b, 11);
	uint64_t v = n;

	if (!p)
		return;
	*p++ = (uint8_t)(field << 3 | TYPE_BYTES);
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)(v | 0x80);
	*p++ = (uint8_t)v;
	b->n = (size_t)(p - b->bytes);
}

void wire_put_bytes(struct wire_buffer *b, uint32_t field, const void *bytes, size_t n)
{
	uint8_t *p;

	wire_put_prefix(b, field, n);
	p = wire_reserve(b, n);
	if (!p || n == 0)
		return;
	memcpy(p, bytes, n);
	b->n += n;
}

static void put_sized(struct wire_buffer *b, const ProtobufCMessage *m, size_t n)
{
	uint8_t *p = wire_reserve(b, n);

	if (p)
		b->n += protobuf_c_message_pack(m, p);
}

size_t wire_put_message(struct wire_buffer *b, uint32_t field, const ProtobufCMessage *m)
{
	size_t n = protobuf_c_message_get_packed_size(m);

	wire_put_prefix(b, field, n);
	put_sized(b, m, n);
	return n;
}

void wire_put_fields(struct wire_buffer *b, const ProtobufCMessage *m)
{
	put_sized(b, m, protobuf_c_message_get_packed_size(m));
}
