/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads a protobuf message field by field through a cursor. Nothing here recurses: to read a nested
 * message, a caller makes a cursor of its bytes.
 *
 *	struct cursor c = cursor_make(bytes, n);
 *	struct wire_field f;
 *	while (wire_read_field(&c, &f))
 *		...
 *	if (!cursor_ok(&c))
 *		return -EBADMSG;
 */
#include "util/cursor.h"

enum wire_type {
	WIRE_VARINT = 0,
	WIRE_FIXED64 = 1,
	WIRE_BYTES = 2,
	WIRE_FIXED32 = 5,
};

struct wire_field {
	uint32_t number;
	uint32_t type;	      /* enum wire_type */
	uint64_t value;	      /* of all types but WIRE_BYTES */
	const uint8_t *bytes; /* WIRE_BYTES: n bytes in place */
	size_t n;
};

/* A varint of at most 64 bits; longer ones and unterminated ones are errors. */
static inline uint64_t wire_read_varint(struct cursor *c)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		uint8_t byte = cursor_u8(c);

		if (shift == 63 && byte > 1)
			break;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return v;
	}
	c->failed = true;
	return 0;
}

/* false at the end and on an error; cursor_ok() says which. A group is an error: proto3 has none.
 */
static inline bool wire_read_field(struct cursor *c, struct wire_field *ret)
{
	uint64_t tag;

	*ret = (struct wire_field){0};
	if (cursor_left(c) == 0)
		return false;
	tag = wire_read_varint(c);
	if (tag >> 3 == 0 || tag >> 3 > (UINT64_C(1) << 29) - 1)
		c->failed = true;
	ret->number = (uint32_t)(tag >> 3);
	ret->type = (uint32_t)(tag & 7);
	switch (ret->type) {
	case WIRE_VARINT:
		ret->value = wire_read_varint(c);
		break;
	case WIRE_FIXED64:
		ret->value = cursor_u64(c);
		break;
	case WIRE_FIXED32:
		ret->value = cursor_u32(c);
		break;
	case WIRE_BYTES: {
		uint64_t n = wire_read_varint(c);

		if (n > cursor_left(c))
			c->failed = true;
		ret->n = c->failed ? 0 : (size_t)n;
		ret->bytes = cursor_take(c, ret->n);
		break;
	}
	default:
		c->failed = true;
	}
	return cursor_ok(c);
}
