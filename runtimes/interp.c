/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtimes/cpython.h"
#include "runtimes/interp.h"

struct interp {
	enum interp_kind kind;
	void *own; /* the interpreter's struct */
};

/* ---- CPython ---- */

/* A program may only load it from a library. */
static int cpython_rank(const char *path)
{
	if (!cpython_is_image(path))
		return 0;
	return strstr(path, "/libpython") ? 2 : 1;
}

static int open_cpython(void **ret, const struct memory *memory, uint64_t image,
			const char **ret_why)
{
	struct cpython *p;
	int r = cpython_new(&p, memory, image, ret_why);

	if (r == 0)
		*ret = p;
	return r;
}

static void close_cpython(void *own)
{
	cpython_free(own);
}

static const char *cpython_release_of(const void *own)
{
	return cpython_release(own);
}

static bool is_cpython_tried(const void *own)
{
	return cpython_is_tried(own);
}

static void begin_cpython(void *own, uint32_t reads, uint64_t bytes)
{
	cpython_begin(own, reads, bytes);
}

static enum chain_result walk_cpython(void *own, uint32_t tid, struct chained_frame *frames,
				      size_t max, size_t *ret_n)
{
	return cpython_walk(own, tid, 0, frames, max, ret_n);
}

static const char *cpython_text_of(const void *own, strid id)
{
	return cpython_text(own, id);
}

static bool cpython_range_of(const void *own, size_t i, uint64_t *ret_start, uint64_t *ret_end)
{
	return cpython_eval_range(own, i, ret_start, ret_end);
}

static void explain_cpython(const void *own, FILE *out)
{
	cpython_explain(own, out);
}

/* ---- All ---- */

