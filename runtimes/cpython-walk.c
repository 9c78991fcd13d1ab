/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain of frames. Up to 3.10 a frame is an object, and each has a native call of the
 * evaluation function. Since 3.11 frames are structs in a data stack (those of generators are in
 * their objects), and one native call evaluates many. The outermost of these has a flag (3.11), or
 * the next one after it is a frame without code on the native stack.
 */
#include "runtimes/cpython-internal.h"

enum {
	MAX_CHUNKS = 16,
	MAX_CHUNK_BYTES = 1 << 20,
	OWNED_BY_C_STACK = 3, /* in 3.12 */
	FIRST_STRUCTS = 11,
};
/* References have their kind in the lowest bits since 3.14. */
#define TAG_BITS UINT64_C(3)

struct chain {
	struct cpython *p;
	struct chained_frame *frames;
	size_t max, n, first; /* frames[first] is the first of this state */
	/* The data stack: memo->window holds the n_window bytes at address `window`. */
	uint64_t chunk, window, n_window;
	uint32_t n_chunks;
	struct chain_loop loop;
};

/* The fields of a frame that we read. */
struct python_frame {
	uint64_t at, previous, code, place;
	uint32_t copy;
	uint8_t owner;
	bool is_entry;
};

/* ---- Reading them ---- */

static bool is_in_window(const struct chain *c, uint64_t at)
{
	return at >= c->window && at - c->window < c->n_window &&
	       c->n_window - (at - c->window) >= c->p->n_frame;
}

/* Older frames of the same chunk are below this one: one read gets them all. */
static bool load_window(struct chain *c, uint64_t at)
{
	uint64_t end = at + c->p->n_frame, start = c->chunk;

	if (at <= c->chunk || at - c->chunk > MAX_CHUNK_BYTES)
		return false;
	if (end - start > CPYTHON_WINDOW)
		start = end - CPYTHON_WINDOW;
	c->n_window = 0;
	if (!memory_read(&c->p->base.memory, start, c->p->memo->window, end - start))
		return false;
	c->window = start;
	c->n_window = end - start;
	return true;
}

static bool read_bytes(struct chain *c, uint64_t at, uint8_t *ret)
{
	if (!is_in_window(c, at) && c->chunk && !load_window(c, at) && c->n_chunks < MAX_CHUNKS) {
		/* In the chunk before, or in none. */
		uint64_t previous = c->n_window && c->window == c->chunk
					    ? memory_u64_of(c->p->memo->window, 0)
					    : memory_u64(&c->p->base.memory, c->chunk);

		if (at > previous && at - previous <= MAX_CHUNK_BYTES) {
			c->chunk = previous;
			c->n_chunks++;
			(void)load_window(c, at);
		}
	}
	if (is_in_window(c, at)) {
		memcpy(ret, c->p->memo->window + (at - c->window), c->p->n_frame);
		return true;
	}
	return memory_read(&c->p->base.memory, at, ret, c->p->n_frame);
}

static bool read_frame(struct chain *c, uint64_t at, struct python_frame *ret)
{
	const struct cpython *p = c->p;
	uint8_t bytes[PYTHON_FRAME_BYTES];

	if (at % 8 != 0 || !read_bytes(c, at, bytes))
		return false;
	*ret = (struct python_frame){.at = at};
	ret->previous = memory_u64_of(bytes, py(p, PY_FRAME_PREVIOUS));
	ret->code = memory_u64_of(bytes, py(p, PY_FRAME_CODE));
	if (p->tables.minor < FIRST_STRUCTS) {
		ret->place = memory_u32_of(bytes, py(p, PY_FRAME_PLACE));
		ret->is_entry = true;
		return memory_u64_of(bytes, py(p, PY_OBJECT_TYPE)) == p->frame_type;
	}
	ret->place = memory_u64_of(bytes, py(p, PY_FRAME_PLACE));
	ret->owner = bytes[py(p, PY_FRAME_OWNER)];
	ret->copy = py_known(p, PY_FRAME_COPY) ? memory_u32_of(bytes, py(p, PY_FRAME_COPY)) : 0;
	ret->is_entry =
		py_known(p, PY_FRAME_IS_ENTRY) && (bytes[py(p, PY_FRAME_IS_ENTRY)] & 1) != 0;
	ret->code &= ~TAG_BITS;
	return true;
}

/* ---- Following them ---- */

static void set_entry(struct chain *c)
{
	if (c->n > c->first)
		c->frames[c->n - 1].entry = true;
}

/* A frame that only says where a native call begins. */
static bool is_shim(const struct cpython *p, const struct python_frame *f)
{
	if (p->tables.minor < 12)
		return false;
	return p->tables.minor == 12 ? f->owner == OWNED_BY_C_STACK
				     : f->code == 0 || f->code == p->none;
}

static bool put(struct chain *c, const struct python_frame *f)
{
	struct chained_frame frame = {.address = f->at};

	if (!cpython_code_frame(c->p, f->code, f->place, f->copy, &frame))
		return false;
	c->frames[c->n++] = frame;
	if (f->is_entry)
		set_entry(c);
	return true;
}

static enum chain_result follow(struct chain *c, uint64_t at)
{
	struct python_frame f;

	/* Shims count as well. */
	for (int i = 0; at && i < 2 * CHAIN_MAX_FRAMES; i++) {
		if (c->n == c->max)
			return CHAIN_CUT;
		if (chain_is_loop(&c->loop, at))
			return CHAIN_UNPROVEN;
		if (!read_frame(c, at, &f))
			return CHAIN_UNPROVEN;
		if (is_shim(c->p, &f))
			set_entry(c);
		else if (!put(c, &f))
			return CHAIN_UNPROVEN;
		at = f.previous;
	}
	if (at)
		return CHAIN_CUT;
	/* A chain ends where a native call begins: the frame of a generator that is about to run,
	 * or has just done so, has no caller for a moment. */
	return c->n == c->first || c->frames[c->n - 1].entry ? CHAIN_WHOLE : CHAIN_UNPROVEN;
}

/* Its innermost frame: in its state, or in what its innermost native call keeps; 0: none. */
static bool first_frame(struct cpython *p, const struct python_state *s, uint64_t *ret)
{
	uint8_t bytes[16];

	if (!py_known(p, PY_THREAD_CFRAME)) {
		*ret = memory_u64_of(s->bytes, py(p, PY_THREAD_FRAME));
		return true;
	}
	if (!memory_read(&p->base.memory, memory_u64_of(s->bytes, py(p, PY_THREAD_CFRAME)), bytes,
			 sizeof(bytes)))
		return false;
	*ret = memory_u64_of(bytes, py(p, PY_CFRAME_FRAME));
	return true;
}

enum chain_result cpython_walk_state(struct cpython *p, const struct python_state *s,
				     struct chained_frame *frames, size_t max, size_t *n)
{
	struct chain c = {
		.p = p, .frames = frames, .max = max, .n = *n, .first = *n, .loop = {.power = 16}};
	enum chain_result r;
	uint64_t at;

	if (py_known(p, PY_THREAD_CHUNK))
		c.chunk = memory_u64_of(s->bytes, py(p, PY_THREAD_CHUNK));
	if (!first_frame(p, s, &at))
		return CHAIN_UNPROVEN;
	r = follow(&c, at);
	*n = c.n;
	return r;
}
