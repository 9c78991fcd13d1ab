/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control frames are an array at the end of the thread's (or fiber's) stack of values, which grows
 * towards them: one read gets them all. The environment of a frame, on the stack of values or in
 * the heap, says its kind and, for a function written in C, its method.
 */
#include "runtimes/ruby-internal.h"

enum {
	MAX_STACK_WORDS = 1 << 24,
	ENVIRONMENT_WORDS = 3, /* method, parent, flags, which the address leads to */
	MAX_PARENTS = 16,
	METHOD_ENTRY = 6, /* kinds of internal objects */
	SPECIAL_VARIABLES = 2,
};
#define KIND_MASK      UINT64_C(0x7fff0001)
#define KIND_C	       UINT64_C(0x55550001)
#define CALLED_BY_C    UINT64_C(0x20)
#define WITHOUT_PARENT UINT64_C(2)

struct ruby_environment {
	uint64_t method, parent, flags;
};

struct ruby_frames {
	struct ruby *p;
	uint64_t stack, at, end; /* addresses: of the stack of values, of frames */
	struct chained_frame *frames;
	size_t n;
};

/* ---- Environments ---- */

/* Older ones are in front of this one: some of them are read with it. */
static bool load_values(struct ruby_frames *f, uint64_t end)
{
	struct ruby *p = f->p;
	uint64_t start = f->stack;

	if (end - start > RUBY_VALUES_BYTES)
		start = end - RUBY_VALUES_BYTES;
	p->n_values = 0;
	if (!memory_read(&p->base.memory, start, p->memo->values, end - start))
		return false;
	p->values_at = start;
	p->n_values = end - start;
	return true;
}

static bool read_environment(struct ruby_frames *f, uint64_t at, struct ruby_environment *ret)
{
	struct ruby *p = f->p;
	uint64_t start = at - (ENVIRONMENT_WORDS - 1) * 8, end = at + 8;

	if (at % 8 != 0 || at < 24)
		return false;
	if (start < f->stack || end > f->at)
		return memory_read(&p->base.memory, start, ret, sizeof(*ret));
	if ((start < p->values_at || end > p->values_at + p->n_values) && !load_values(f, end))
		return false;
	memcpy(ret, p->memo->values + (start - p->values_at), sizeof(*ret));
	return true;
}

/* ---- Methods that are written in C ---- */

/* The method entry that an environment, or one around it, has; 0: none. */
static uint64_t find_method(struct ruby_frames *f, struct ruby_environment e)
{
	for (int i = 0; i < MAX_PARENTS; i++) {
		uint64_t words[2];

		if (e.method && e.method % 8 == 0 &&
		    memory_read(&f->p->base.memory, e.method, words, sizeof(words))) {
			if (ruby_is_internal(words[0], METHOD_ENTRY))
				return e.method;
			if (ruby_is_internal(words[0], SPECIAL_VARIABLES))
				return words[1];
		}
		if ((e.flags & WITHOUT_PARENT) || !read_environment(f, e.parent & ~UINT64_C(3), &e))
			break;
	}
	return 0;
}

/* The number of the name of a method; 0: none. */
static uint64_t read_method(struct ruby *p, uint64_t method)
{
	uint64_t definition = 0;

	if (method && method % 8 == 0)
		definition =
			memory_u64(&p->base.memory, method + (uint64_t)rb(p, RB_METHOD_DEFINITION));
	return definition ? memory_u64(&p->base.memory,
				       definition + (uint64_t)rb(p, RB_DEFINITION_NAME))
			  : 0;
}

/* Entries live as long as their methods do; what else environments have, as long as these. */
static strid name_method(struct ruby_frames *f, const struct ruby_environment *e)
{
	struct ruby *p = f->p;
	uint64_t key = hash_combine(e->method, p->owner);
	struct ruby_method *m = &p->memo->methods[key % RUBY_N_METHODS];
	bool known = e->method && m->at == e->method && m->owner == p->owner;
	uint64_t method, name;

	if (known && trust_has(&m->trust, &p->base.walks))
		return ruby_find_name(p, m->name);
	method = find_method(f, *e);
	name = read_method(p, method);
	if (known && (m->name != name || method != e->method)) {
		trust_end(&m->trust, &p->base.walks);
		m->at = 0;
	}
	if (name && method == e->method) {
		if (m->at != method || m->owner != p->owner)
			*m = (struct ruby_method){.at = method, .name = name, .owner = p->owner};
		trust_prove(&m->trust, &p->base.walks);
	}
	return name ? ruby_find_name(p, name) : STRID_EMPTY;
}

/* ---- Frames ---- */

/* Adds a frame, unless Ruby made it for itself. false: it is no frame. */
static bool put(struct ruby_frames *f, uint64_t at, const uint8_t *bytes)
{
	struct ruby *p = f->p;
	uint64_t pc = rb_u64(p, bytes, RB_FRAME_PLACE), code = rb_u64(p, bytes, RB_FRAME_CODE);
	struct chained_frame *to = &f->frames[f->n];
	struct ruby_environment e;
	const struct ruby_code *c;

	if (!read_environment(f, rb_u64(p, bytes, RB_FRAME_ENVIRONMENT), &e))
		return false;
	*to = (struct chained_frame){.line = 0};
	if (!code && (e.flags & KIND_MASK) == KIND_C) {
		to->function = name_method(f, &e);
		f->n++;
	}
	if (!code || !pc)
		return true;
	c = ruby_find_code(p, code, pc);
	if (!c || !ruby_find_line(p, c, pc, &to->line))
		return false;
	to->function = c->label;
	to->file = c->path;
	to->start_line = c->start_line;
	to->address = at;
	to->entry = e.flags & CALLED_BY_C;
	f->n++;
	return true;
}

/* Finds the frames of an execution context; false: it is none. */
static bool find_frames(struct ruby_frames *f, uint64_t context)
{
	struct ruby *p = f->p;
	uint8_t bytes[24];
	uint64_t n, size = (uint64_t)rb(p, RB_FRAME_BYTES);

	if (context % 8 != 0 || !memory_read(&p->base.memory, context, bytes, sizeof(bytes)))
		return false;
	f->stack = rb_u64(p, bytes, RB_CONTEXT_STACK);
	n = rb_u64(p, bytes, RB_CONTEXT_SIZE);
	f->at = rb_u64(p, bytes, RB_CONTEXT_FRAME);
	if (n > MAX_STACK_WORDS || f->stack % 8 != 0 || f->stack > INT64_MAX)
		return false;
	/* The outermost one is there before anything is executed, and never is. */
	f->end = f->stack + n * 8 - size;
	return f->at > f->stack && f->at <= f->end && (f->end - f->at) % size == 0;
}

enum chain_result ruby_follow(struct ruby *p, uint64_t context, struct chained_frame *frames,
			      size_t max, size_t *n)
{
	struct ruby_frames f = {.p = p, .frames = frames};
	uint64_t size = (uint64_t)rb(p, RB_FRAME_BYTES), bytes;
	enum chain_result r = CHAIN_WHOLE;

	p->n_values = 0;
	if (!find_frames(&f, context))
		return CHAIN_NO_THREAD;
	bytes = f.end - f.at;
	if (bytes > RUBY_FRAMES_BYTES) {
		bytes = RUBY_FRAMES_BYTES / size * size;
		r = CHAIN_CUT;
	}
	if (!memory_read(&p->base.memory, f.at, p->memo->frames, bytes))
		return CHAIN_UNPROVEN;
	for (uint64_t at = 0; at < bytes; at += size) {
		if (f.n == max) {
			r = CHAIN_CUT;
			break;
		}
		if (!put(&f, f.at + at, p->memo->frames + at)) {
			r = CHAIN_UNPROVEN;
			break;
		}
	}
	*n = f.n;
	return r;
}
