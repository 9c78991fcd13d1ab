/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtimes/cpython.h"

struct cpython {
	struct memory memory;
	struct strtab texts;
	struct cpython_stats stats;
};

bool cpython_is_image(const char *path)
{
	const char *name = strrchr(path, '/');

	return name &&
	       (strncmp(name, "/libpython3.", 12) == 0 || strncmp(name, "/python3.", 9) == 0);
}

int cpython_new(struct cpython **ret, const struct memory *memory, uint64_t image,
		const char **ret_why)
{
	(void)ret;
	(void)memory;
	(void)image;
	*ret_why = "";
	return -ENOENT;
}

struct cpython *cpython_free(struct cpython *p)
{
	free(p);
	return NULL;
}

const char *cpython_release(const struct cpython *p)
{
	(void)p;
	return "";
}

bool cpython_is_tried(const struct cpython *p)
{
	(void)p;
	return false;
}

const char *cpython_text(const struct cpython *p, strid id)
{
	return strtab_get(&p->texts, id);
}

void cpython_begin(struct cpython *p, uint32_t reads, uint64_t bytes)
{
	p->memory.reads_left = reads;
	p->memory.bytes_left = bytes;
}

enum cpython_walk_result cpython_walk(struct cpython *p, uint32_t tid, uint64_t thread_pointer,
				      struct cpython_frame *frames, size_t max, size_t *ret_n)
{
	(void)p;
	(void)tid;
	(void)thread_pointer;
	(void)frames;
	(void)max;
	*ret_n = 0;
	return CPYTHON_NO_THREAD;
}

bool cpython_eval_range(const struct cpython *p, size_t i, uint64_t *ret_start, uint64_t *ret_end)
{
	(void)p;
	(void)i;
	(void)ret_start;
	(void)ret_end;
	return false;
}

void cpython_explain(const struct cpython *p, FILE *out)
{
	(void)p;
	(void)fprintf(out, "CPython\n");
}

const struct cpython_stats *cpython_stats(const struct cpython *p)
{
	return &p->stats;
}
