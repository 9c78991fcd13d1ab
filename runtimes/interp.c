/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "runtimes/cpython.h"
#include "runtimes/interp.h"
#include "runtimes/php.h"
#include "runtimes/ruby.h"

/* What each of them has; `own` is its struct. */
struct interp_type {
	const char *name;
	int (*rank)(const char *path);
	int (*open)(void **ret, const struct memory *memory, uint64_t image, const char **ret_why);
	void (*close)(void *own);
	const char *(*release)(const void *own);
	bool (*is_tried)(const void *own);
	void (*begin)(void *own, uint32_t reads, uint64_t bytes);
	enum chain_result (*walk)(void *own, const struct chained_thread *thread,
				  struct chained_frame *frames, size_t max, size_t *ret_n);
	const char *(*text)(const void *own, strid id);
	bool (*eval_range)(const void *own, size_t i, uint64_t *ret_start, uint64_t *ret_end);
	void (*explain)(const void *own, FILE *out);
};

/* The functions of an interpreter, whose names begin with x. */
#define TYPE_FUNCTIONS(x)                                                                          \
	static int open_##x(void **ret, const struct memory *memory, uint64_t image,               \
			    const char **ret_why)                                                  \
	{                                                                                          \
		struct x *p;                                                                       \
		int r = x##_new(&p, memory, image, ret_why);                                       \
                                                                                                   \
		if (r == 0)                                                                        \
			*ret = p;                                                                  \
		return r;                                                                          \
	}                                                                                          \
	static void close_##x(void *own)                                                           \
	{                                                                                          \
		x##_free(own);                                                                     \
	}                                                                                          \
	static const char *release_##x(const void *own)                                            \
	{                                                                                          \
		return x##_release(own);                                                           \
	}                                                                                          \
	static bool is_tried_##x(const void *own)                                                  \
	{                                                                                          \
		return x##_is_tried(own);                                                          \
	}                                                                                          \
	static void begin_##x(void *own, uint32_t reads, uint64_t bytes)                           \
	{                                                                                          \
		x##_begin(own, reads, bytes);                                                      \
	}                                                                                          \
	static enum chain_result walk_##x(void *own, const struct chained_thread *thread,          \
					  struct chained_frame *frames, size_t max, size_t *ret_n) \
	{                                                                                          \
		return x##_walk(own, thread, frames, max, ret_n);                                  \
	}                                                                                          \
	static const char *text_##x(const void *own, strid id)                                     \
	{                                                                                          \
		return x##_text(own, id);                                                          \
	}                                                                                          \
	static bool eval_range_##x(const void *own, size_t i, uint64_t *ret_start,                 \
				   uint64_t *ret_end)                                              \
	{                                                                                          \
		return x##_eval_range(own, i, ret_start, ret_end);                                 \
	}                                                                                          \
	static void explain_##x(const void *own, FILE *out)                                        \
	{                                                                                          \
		x##_explain(own, out);                                                             \
	}

#define TYPE(title, x)                                                                             \
	{                                                                                          \
		title, x##_rank, open_##x, close_##x, release_##x, is_tried_##x, begin_##x,        \
			walk_##x, text_##x, eval_range_##x, explain_##x                            \
	}

TYPE_FUNCTIONS(cpython)
TYPE_FUNCTIONS(php)
TYPE_FUNCTIONS(ruby)

static const struct interp_type types[INTERP_N_KINDS] = {
	[INTERP_CPYTHON] = TYPE("CPython", cpython),
	[INTERP_PHP] = TYPE("PHP", php),
	[INTERP_RUBY] = TYPE("Ruby", ruby),
};

struct interp {
	const struct interp_type *type;
	void *own;
};

int interp_rank(const char *path)
{
	int rank = 0;

	for (int i = 0; i < INTERP_N_KINDS; i++) {
		int its = types[i].rank(path);

		rank = its > rank ? its : rank;
	}
	return rank;
}

int interp_new(struct interp **ret, const struct memory *memory, uint64_t image,
	       const char **ret_why)
{
	_cleanup_(interp_freep) struct interp *p = calloc(1, sizeof(*p));
	int r = p ? -ENOENT : -ENOMEM;

	for (int i = 0; i < INTERP_N_KINDS && r == -ENOENT; i++) {
		p->type = &types[i];
		r = types[i].open(&p->own, memory, image, ret_why);
	}
	if (r == 0)
		*ret = TAKE_PTR(p);
	return r;
}

struct interp *interp_free(struct interp *p)
{
	if (p && p->own)
		p->type->close(p->own);
	free(p);
	return NULL;
}

enum interp_kind interp_kind(const struct interp *p)
{
	return (enum interp_kind)(p->type - types);
}

const char *interp_name(const struct interp *p)
{
	return p->type->name;
}

const char *interp_release(const struct interp *p)
{
	return p->type->release(p->own);
}

bool interp_is_tried(const struct interp *p)
{
	return p->type->is_tried(p->own);
}

void interp_begin(struct interp *p, uint32_t reads, uint64_t bytes)
{
	p->type->begin(p->own, reads, bytes);
}

enum chain_result interp_walk(struct interp *p, const struct chained_thread *thread,
			      struct chained_frame *frames, size_t max, size_t *ret_n)
{
	return p->type->walk(p->own, thread, frames, max, ret_n);
}

const char *interp_text(const struct interp *p, strid id)
{
	return p->type->text(p->own, id);
}

bool interp_eval_range(const struct interp *p, size_t i, uint64_t *ret_start, uint64_t *ret_end)
{
	return p->type->eval_range(p->own, i, ret_start, ret_end);
}

void interp_explain(const struct interp *p, FILE *out)
{
	p->type->explain(p->own, out);
}
