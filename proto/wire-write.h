/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writes protobuf messages piece by piece into a growing buffer: single fields by hand, whole
 * messages with their generated encoder. Concatenated fields are a message, so a large message is
 * built from many small ones.
 *
 * The error is sticky: after a failed allocation nothing is written any more, wire_buffer_ok() is
 * false, and the writer checks once at its end.
 */
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire_buffer {
	uint8_t *bytes;
	size_t n, cap;
	bool failed;
};

void wire_buffer_deinit(struct wire_buffer *b);

/* Empties the buffer, keeps its memory and clears a failure. */
static inline void wire_buffer_clear(struct wire_buffer *b)
{
	b->n = 0;
	b->failed = false;
}

static inline bool wire_buffer_ok(const struct wire_buffer *b)
{
	return !b->failed;
}

/*
 * Makes room for n more bytes. The caller writes some and adds their number to b->n; NULL: failed.
 */
uint8_t *wire_reserve(struct wire_buffer *b, size_t n);

static inline size_t wire_varint_size(uint64_t v)
{
	return (size_t)(70 - __builtin_clzll(v | 1)) / 7;
}

/* Bytes of a tag and the length prefix of a field of n bytes. Field numbers up to 15 only. */
static inline size_t wire_prefix_size(size_t n)
{
	return 1 + wire_varint_size(n);
}

/* All field numbers here are 1 to 15: one byte of tag. */
void wire_put_prefix(struct wire_buffer *b, uint32_t field, size_t n);
void wire_put_bytes(struct wire_buffer *b, uint32_t field, const void *bytes, size_t n);
/* Writes the message as a field of the current one; the number of bytes of its own fields. */
size_t wire_put_message(struct wire_buffer *b, uint32_t field, const ProtobufCMessage *m);
/* Writes only its fields, without a prefix: they become fields of the current message. */
void wire_put_fields(struct wire_buffer *b, const ProtobufCMessage *m);
