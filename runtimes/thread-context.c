/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "runtimes/thread-context.h"

enum { VALID = 24, SIZE = 26, MOST_BYTES = 256, PAGE = 4096 };

/* Most records are whole with one read. It ends with the page, which may be the last of its memory,
 * unless the head goes on in the next one. */
static uint32_t bytes_at_once(uint64_t address)
{
	uint64_t left = PAGE - address % PAGE;

	return left >= THREAD_CONTEXT_HEAD_BYTES && left < MOST_BYTES ? (uint32_t)left : MOST_BYTES;
}

uint32_t thread_context_bytes(const uint8_t head[THREAD_CONTEXT_HEAD_BYTES])
{
	uint16_t size;
	uint32_t n;

	if (head[VALID] != 1)
		return 0;
	memcpy(&size, head + SIZE, sizeof(size));
	n = THREAD_CONTEXT_HEAD_BYTES + (uint32_t)size;
	return n < THREAD_CONTEXT_MAX_BYTES ? n : THREAD_CONTEXT_MAX_BYTES;
}

int thread_context_read(struct memory *m, uint64_t address, uint8_t ret[THREAD_CONTEXT_MAX_BYTES])
{
	uint32_t n, n_first = bytes_at_once(address);

	if (!address || !memory_read(m, address, ret, n_first))
		return -EFAULT;
	n = thread_context_bytes(ret);
	if (n > n_first && !memory_read(m, address + n_first, ret + n_first, n - n_first))
		return -EFAULT;
	return (int)n;
}

static bool is_zero(const uint8_t *bytes, size_t n)
{
	while (n && bytes[n - 1] == 0)
		n--;
	return n == 0;
}

bool thread_context_ids(const uint8_t *bytes, uint32_t n, const uint8_t **ret_trace,
			const uint8_t **ret_span)
{
	const uint8_t *span = bytes + THREAD_CONTEXT_TRACE_BYTES;

	if (n < THREAD_CONTEXT_HEAD_BYTES || is_zero(bytes, THREAD_CONTEXT_TRACE_BYTES) ||
	    is_zero(span, THREAD_CONTEXT_SPAN_BYTES))
		return false;
	*ret_trace = bytes;
	*ret_span = span;
	return true;
}

static bool take(const uint8_t *bytes, uint32_t n, uint32_t *at,
		 struct thread_context_attribute *ret)
{
	if (*at < THREAD_CONTEXT_HEAD_BYTES)
		*at = THREAD_CONTEXT_HEAD_BYTES;
	if (*at > n || n - *at < 2 || n - *at - 2 < bytes[*at + 1])
		return false;
	*ret = (struct thread_context_attribute){bytes + *at + 2, bytes[*at], bytes[*at + 1]};
	*at += 2 + (uint32_t)ret->n;
	return true;
}

bool thread_context_is_cut(const uint8_t *bytes, uint32_t n)
{
	struct thread_context_attribute a;
	uint32_t at = THREAD_CONTEXT_HEAD_BYTES;
	uint16_t size;

	if (n < THREAD_CONTEXT_HEAD_BYTES)
		return true;
	memcpy(&size, bytes + SIZE, sizeof(size));
	while (take(bytes, n, &at, &a))
		;
	return at != n || n - THREAD_CONTEXT_HEAD_BYTES < size;
}

static bool comes_again(const uint8_t *bytes, uint32_t n, uint32_t at, uint8_t key)
{
	struct thread_context_attribute a;

	while (take(bytes, n, &at, &a)) {
		if (a.key == key)
			return true;
	}
	return false;
}

bool thread_context_next(const uint8_t *bytes, uint32_t n, uint32_t *at,
			 struct thread_context_attribute *ret)
{
	while (take(bytes, n, at, ret)) {
		if (!comes_again(bytes, n, *at, ret->key))
			return true;
	}
	return false;
}
