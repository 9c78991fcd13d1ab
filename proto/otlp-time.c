/* SPDX-License-Identifier: Apache-2.0 */
#include <endian.h>
#include <string.h>

#include "proto/otlp-time.h"

enum { TIME = 3, DURATION, MAX_VARINT_BYTES = 10 };

bool otlp_time_take(const struct wire_field *f, struct otlp_time *t)
{
	if (f->number == TIME && f->type == WIRE_FIXED64)
		t->begin_unix_ns = f->value;
	else if (f->number == DURATION && f->type == WIRE_VARINT)
		t->duration_ns = f->value;
	else
		return false;
	return true;
}

static size_t encode_varint(uint8_t out[MAX_VARINT_BYTES], uint64_t v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		out[n++] = (uint8_t)(v | 0x80);
	out[n++] = (uint8_t)v;
	return n;
}

void otlp_time_put(struct wire_buffer *out, const struct otlp_time *t, uint64_t earlier_ns)
{
	uint64_t earlier = earlier_ns < t->begin_unix_ns ? earlier_ns : t->begin_unix_ns;
	uint64_t begin = htole64(t->begin_unix_ns - earlier), duration;
	uint8_t bytes[2 + sizeof(begin) + MAX_VARINT_BYTES] = {TIME << 3 | WIRE_FIXED64};
	size_t n = 1 + sizeof(begin);
	uint8_t *at;

	if (__builtin_add_overflow(t->duration_ns, earlier, &duration))
		duration = t->duration_ns;
	memcpy(bytes + 1, &begin, sizeof(begin));
	bytes[n++] = DURATION << 3 | WIRE_VARINT;
	n += encode_varint(bytes + n, duration);
	at = wire_reserve(out, n);
	if (!at)
		return;
	memcpy(at, bytes, n);
	out->n += n;
}
