/* SPDX-License-Identifier: Apache-2.0 */
/*
 * V8 wants its built-in functions near compiled code, and maps its file there once more. Where it
 * cannot, it copies them: V8 insists that the file has the same device in /proc/PID/maps and in
 * stat(2), and that of an overlay, as containers have it, may not. A copy lies in no file.
 *
 * All of V8's code has the address of its isolate in a register, and the isolate has the address
 * and the size of its built-in functions, followed by those of their data, which stay in the file.
 * Four such words, of which the first two cover pc, are not there by accident. Where they are
 * differs from version to version.
 */
#include "runtimes/v8-internal.h"

enum {
	ISOLATE_BYTES = 128 << 10,
	CHUNK = 4096,
	N_WORDS = 4,
	MIN_CODE = 64 << 10,
	MAX_CODE = 32 << 20,
	USES_BETWEEN_LOOKS = 256,
};

static bool is_copy(const struct v8 *v, const uint64_t words[N_WORDS], uint64_t pc)
{
	uint64_t start = words[0], n = words[1] & UINT32_MAX, data = words[2];
	uint64_t n_data = words[3] & UINT32_MAX;

	return start % CHUNK == 0 && n >= MIN_CODE && n <= MAX_CODE && pc >= start &&
	       pc - start < n && data >= v->image.start && data < v->image.end && n_data > 0 &&
	       n_data <= v->image.end - data;
}

static bool search(struct v8 *v, struct v8_copy *c, uint64_t pc)
{
	uint64_t words[CHUNK / sizeof(uint64_t) + N_WORDS - 1];

	for (uint64_t at = 0; at < ISOLATE_BYTES; at += CHUNK) {
		if (!memory_read(&v->memory, c->isolate + at, words, sizeof(words)))
			return false;
		for (uint32_t i = 0; i < CHUNK / sizeof(uint64_t); i++) {
			if (!is_copy(v, words + i, pc))
				continue;
			c->start = words[i];
			c->end = words[i] + (words[i + 1] & UINT32_MAX);
			return true;
		}
	}
	return false;
}

static struct v8_copy *copy_of(struct v8 *v, uint64_t isolate)
{
	struct v8_copy *c;

	for (int i = 0; i < V8_MAX_COPIES; i++) {
		if (v->copies[i].isolate == isolate)
			return &v->copies[i];
	}
	c = &v->copies[v->next_copy++ % V8_MAX_COPIES];
	*c = (struct v8_copy){.isolate = isolate};
	return c;
}

static bool covers(const struct v8_copy *c, uint64_t pc)
{
	return pc >= c->start && pc < c->end;
}

/* Of an isolate that is gone; what is there now is other code. */
static void forget(struct v8 *v, uint64_t pc)
{
	for (int i = 0; i < V8_MAX_COPIES; i++) {
		if (covers(&v->copies[i], pc))
			v->copies[i].start = v->copies[i].end = 0;
	}
}

bool v8_copies_find(struct v8 *v, const struct runtime_regs *regs)
{
	uint64_t isolate = arch_v8_isolate(regs);
	struct v8_copy *c = isolate % sizeof(uint64_t) == 0 ? copy_of(v, isolate) : NULL;
	bool known = c && covers(c, regs->pc);

	if (c && c->n_uses++ % USES_BETWEEN_LOOKS == 0)
		known = search(v, c, regs->pc);
	if (!known)
		forget(v, regs->pc);
	return known;
}
