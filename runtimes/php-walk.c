/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain of frames. They are in the pages of PHP's own stack, except those of generators. One
 * native call of execute_ex() evaluates many; the outermost of these has a flag. Functions written
 * in C have frames in the chain, too.
 *
 * A generator that has delegated to another one ("yield from") waits with its callers. The chain
 * then has a frame without a function, which leads to the generator that was called first; each
 * generator leads to the one that it waits for.
 */
#include "runtimes/php-internal.h"

enum {
	IS_OBJECT = 8, /* the type of a value */
	MAX_DELEGATES = 64,
};
#define CALLED_BY_C UINT32_C(0x20000)	/* ZEND_CALL_TOP */
#define CHUNK_BYTES (UINT64_C(2) << 20) /* of PHP's allocator: what is behind may be unmapped */
#define FRAME_ALIGN 8

struct php_chain {
	struct php *p;
	const struct chained_thread *thread;
	struct chained_frame *frames;
	size_t max, n;
	struct chain_loop loop;
	bool after_code; /* the frame before is of a file, and has no name yet */
};

struct php_frame {
	uint64_t at, place, return_value, function, this_value, previous;
	uint32_t info;
};

/* ---- Reading them ---- */

/* Older frames of a page are below this one: one read gets some of them, too. */
static bool load_window(struct php *p, uint64_t at)
{
	uint64_t end = at + PHP_FRAME_BYTES, start = at & ~(CHUNK_BYTES - 1);

	if (end - start > PHP_WINDOW)
		start = end - PHP_WINDOW;
	p->n_window = 0;
	if (!memory_read(&p->base.memory, start, p->memo->window, end - start))
		return false;
	p->window_at = start;
	p->n_window = end - start;
	return true;
}

static bool read_frame(struct php *p, uint64_t at, struct php_frame *ret)
{
	const int32_t *v = p->tables.value;
	uint8_t own[PHP_FRAME_BYTES], *bytes = own;

	if (at % FRAME_ALIGN != 0)
		return false;
	if ((at >= p->window_at && at - p->window_at < p->n_window &&
	     p->n_window - (at - p->window_at) >= PHP_FRAME_BYTES) ||
	    load_window(p, at))
		bytes = p->memo->window + (at - p->window_at);
	else if (!memory_read(&p->base.memory, at, own, sizeof(own)))
		return false;
	*ret = (struct php_frame){
		.at = at,
		.place = memory_u64_of(bytes, v[PHP_FRAME_PLACE]),
		.return_value = memory_u64_of(bytes, v[PHP_FRAME_RETURN_VALUE]),
		.function = memory_u64_of(bytes, v[PHP_FRAME_FUNCTION]),
		.this_value = memory_u64_of(bytes, v[PHP_FRAME_THIS]),
		.previous = memory_u64_of(bytes, v[PHP_FRAME_PREVIOUS]),
		.info = memory_u32_of(bytes, v[PHP_FRAME_INFO]),
	};
	return true;
}

/* ---- Their places ---- */

/* The innermost frame's own place is old: the thread has it in a register. */
static uint64_t innermost_place(const struct php_chain *c, const struct php_function *f,
				uint64_t saved)
{
	uint64_t found = 0;

	for (uint32_t i = 0; i < c->thread->n_registers; i++) {
		uint64_t r = c->thread->registers[i];

		if (r == found || !php_has_opcode(f, r))
			continue;
		if (found)
			return saved;
		found = r;
	}
	return found ? found : saved;
}

/* false: it is no place of that function. One that has just been called has none yet. */
static bool find_place(struct php_chain *c, const struct php_function *f, uint64_t saved,
		       struct php_line *ret)
{
	uint64_t place = c->n == 0 ? innermost_place(c, f, saved) : saved;

	*ret = (struct php_line){.line = 0};
	if (php_has_opcode(f, place))
		return php_find_line(c->p, f, place, ret);
	return c->n == 0 || php_is_of_process(c->p, place);
}

/* ---- Following them ---- */

static bool put(struct php_chain *c, const struct php_frame *frame, bool waits)
{
	const struct php_function *f = php_find_function(c->p, frame->function, frame->place);
	struct chained_frame *to = &c->frames[c->n];
	struct php_line line = {.line = 0};

	if (!f || (f->is_user && !find_place(c, f, frame->place, &line)))
		return false;
	/* The function that starts a fiber has no name; PHP's own backtraces leave it out. */
	if (!f->is_user && f->name == STRID_EMPTY)
		return true;
	if (c->after_code)
		to[-1].function = php_code_name(c->p, &line);
	*to = (struct chained_frame){
		.function = f->name,
		.file = f->file,
		.line = line.line,
		.start_line = f->start_line,
		.address = f->is_user && !waits ? frame->at : 0,
		.entry = f->is_user && !waits && (frame->info & CALLED_BY_C),
	};
	c->after_code = f->is_code;
	c->n++;
	return true;
}

/* The frame of a generator, which says whose it is; false: there is none. */
static bool read_generator(struct php *p, uint64_t generator, struct php_frame *ret)
{
	uint64_t at = memory_u64(&p->base.memory,
				 generator + (uint64_t)p->tables.value[PHP_GENERATOR_FRAME]);

	return at && read_frame(p, at, ret) && ret->return_value == generator;
}

/* Puts generators that wait, from the one that was called first; the last one runs. */
static bool put_delegates(struct php_chain *c, uint64_t generator)
{
	uint64_t waiting[MAX_DELEGATES];
	struct php_frame f;
	size_t n = 0;

	while (n < MAX_DELEGATES) {
		uint64_t parent =
			memory_u64(&c->p->base.memory,
				   generator + (uint64_t)c->p->tables.value[PHP_GENERATOR_PARENT]);

		if (!parent)
			break;
		waiting[n++] = generator;
		generator = parent;
	}
	while (n > 0 && c->n < c->max) {
		if (!read_generator(c->p, waiting[--n], &f) || !put(c, &f, true))
			return false;
	}
	return true;
}

enum chain_result php_follow(struct php *p, const struct chained_thread *thread,
			     struct chained_frame *frames, size_t max, size_t *n)
{
	struct php_chain c = {
		.p = p, .thread = thread, .frames = frames, .max = max, .loop = {.power = 16}};
	enum chain_result r = CHAIN_WHOLE;
	struct php_frame f = {0};
	uint64_t at;

	p->n_window = 0;
	if (!memory_read(&p->base.memory, p->globals + (uint64_t)p->tables.value[PHP_CURRENT_FRAME],
			 &at, sizeof(at)))
		return CHAIN_UNPROVEN;
	for (int i = 0; at && i < 2 * CHAIN_MAX_FRAMES && c.n < max && r == CHAIN_WHOLE; i++) {
		if (chain_is_loop(&c.loop, at) || !read_frame(p, at, &f) ||
		    (f.function && !put(&c, &f, false)) ||
		    (!f.function && (f.info & 0xff) == IS_OBJECT &&
		     !put_delegates(&c, f.this_value)))
			r = CHAIN_UNPROVEN;
		at = f.previous;
	}
	if (c.after_code && r == CHAIN_WHOLE)
		frames[c.n - 1].function = php_code_name(p, &(const struct php_line){.line = 0});
	*n = c.n;
	return r == CHAIN_WHOLE && at ? CHAIN_CUT : r;
}
