/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Bounded byte cursor: the only way to read untrusted bytes.
 *
 * The error is sticky: after the first failed read every further read gives 0 and cursor_ok() is
 * false, so a parser checks once at its end. Alignment does not matter, because all reads use
 * memcpy.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cursor {
	const uint8_t *start, *cur, *end;
	bool failed;
};

static inline struct cursor cursor_make(const void *data, size_t n)
{
	const uint8_t *p = data;

	return (struct cursor){p, p, n ? p + n : p, false};
}

static inline bool cursor_ok(const struct cursor *c)
{
	return !c->failed;
}

static inline size_t cursor_left(const struct cursor *c)
{
	return c->failed ? 0 : (size_t)(c->end - c->cur);
}

/* n bytes in place, or NULL (and the error set) if fewer are left. */
static inline const void *cursor_take(struct cursor *c, size_t n)
{
	const void *p = c->cur;

	if (c->failed || n > (size_t)(c->end - c->cur)) {
		c->failed = true;
		return NULL;
	}
	c->cur += n;
	return p;
}

static inline void cursor_read(struct cursor *c, void *ret, size_t n)
{
	const void *p = cursor_take(c, n);

	if (p)
		memcpy(ret, p, n);
	else
		memset(ret, 0, n);
}

#define CURSOR_DEFINE_READ(name, type)                                                             \
	static inline type cursor_##name(struct cursor *c)                                         \
	{                                                                                          \
		type v;                                                                            \
		cursor_read(c, &v, sizeof(v));                                                     \
		return v;                                                                          \
	}
CURSOR_DEFINE_READ(u8, uint8_t)
CURSOR_DEFINE_READ(u16, uint16_t)
CURSOR_DEFINE_READ(u32, uint32_t)
CURSOR_DEFINE_READ(u64, uint64_t)
#undef CURSOR_DEFINE_READ

/* The string up to its 0 byte, in place; the cursor moves past the 0. NULL: not terminated. */
static inline const char *cursor_string(struct cursor *c)
{
	const uint8_t *p = c->cur, *nul;

	nul = c->failed || p == c->end ? NULL : memchr(p, 0, (size_t)(c->end - p));
	if (!nul) {
		c->failed = true;
		return NULL;
	}
	c->cur = nul + 1;
	return (const char *)p;
}
