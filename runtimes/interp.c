/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "runtimes/interp-internal.h"

enum {
	OPEN_READS = 4000, /* real ones: 200; a reader does it in front of all else */
	OPEN_BYTES = 4 << 20,
};

#define DECLARE(kind, name, ...) extern const struct interp_type name##_type;
RUNTIMES_WITH_CHAIN(DECLARE)

#define ROW(kind, name, ...) [RUNTIME_KIND_##kind] = &name##_type,
static const struct interp_type *const types[RUNTIME_N_KINDS] = {RUNTIMES_WITH_CHAIN(ROW)};

static int open_as(struct interp **ret, const struct interp_type *type, const struct memory *memory,
		   uint64_t image, const char **ret_why)
{
	_cleanup_(interp_freep) struct interp *p = calloc(1, type->size);
	int r;

	*ret_why = "";
	if (!p)
		return -ENOMEM;
	p->type = type;
	p->memory = *memory;
	p->memory.reads_left = OPEN_READS;
	p->memory.bytes_left = OPEN_BYTES;
	if (!image_open(&p->image, &p->memory, image))
		return -ENOENT;
	r = type->open(p, ret_why);
	if (r == 0)
		*ret = TAKE_PTR(p);
	return r;
}

int interp_new(struct interp **ret, const struct memory *memory, uint64_t image,
	       const char **ret_why)
{
	int r = -ENOENT;

	for (int i = 0; i < RUNTIME_N_KINDS && r == -ENOENT; i++) {
		if (types[i])
			r = open_as(ret, types[i], memory, image, ret_why);
	}
	return r;
}

struct interp *interp_free(struct interp *p)
{
	if (p)
		p->type->close(p);
	free(p);
	return NULL;
}

enum runtime_kind interp_kind(const struct interp *p)
{
	return p->type->kind;
}

const struct chain_rules *interp_rules(enum runtime_kind kind)
{
	return kind < RUNTIME_N_KINDS && types[kind] ? &types[kind]->rules : NULL;
}

const char *interp_name(const struct interp *p)
{
	return p->type->name;
}

const char *interp_release(const struct interp *p)
{
	return p->release;
}

bool interp_is_tried(const struct interp *p)
{
	return p->type->is_tried(p);
}

void interp_begin(struct interp *p, uint32_t reads, uint64_t bytes)
{
	p->memory.reads_left = reads;
	p->memory.bytes_left = bytes;
	/* Frames of a walk refer to the texts: room is made between walks. */
	if (strtab_bytes(p->texts) > p->texts->max_bytes * 3 / 4 || p->texts->n_refused > 0) {
		p->type->forget(p);
		strtab_clear(p->texts);
		p->texts->n_refused = 0;
	}
}

static bool is_spent(const struct interp *p)
{
	return p->memory.reads_left == 0 || p->memory.bytes_left < p->type->read_bytes;
}

enum chain_result interp_walk(struct interp *p, const struct chained_thread *thread,
			      struct chained_frame *frames, size_t max, size_t *ret_n)
{
	uint32_t reads = p->memory.reads_left;
	uint64_t bytes = p->memory.bytes_left;
	enum chain_result r;

	*ret_n = 0;
	if (!thread->tid && !(thread->stack && p->type->knows_stacks))
		return CHAIN_SPENT;
	trust_begin_walk(&p->walks);
	r = p->type->walk(p, thread, frames, max < CHAIN_MAX_FRAMES ? max : CHAIN_MAX_FRAMES,
			  ret_n);
	if (r == CHAIN_WHOLE && *ret_n == 0)
		r = CHAIN_NO_THREAD;
	if (r != CHAIN_WHOLE && r != CHAIN_CUT && is_spent(p))
		r = CHAIN_SPENT;
	p->stats.walks++;
	p->stats.results[r]++;
	p->stats.reads += reads - p->memory.reads_left;
	p->stats.bytes += bytes - p->memory.bytes_left;
	return r;
}

const char *interp_text(const struct interp *p, strid id)
{
	return strtab_get(p->texts, id);
}

bool interp_eval_range(const struct interp *p, size_t i, uint64_t *ret_start, uint64_t *ret_end)
{
	return eval_code_range(&p->eval, i, ret_start, ret_end);
}

const struct chain_stats *interp_stats(const struct interp *p)
{
	return &p->stats;
}

void interp_explain(const struct interp *p, FILE *out)
{
	(void)fprintf(out, "%s %s%s\n", p->type->name, p->release,
		      interp_is_tried(p) ? "" : " (untested version)");
	(void)fprintf(out, "its image at %#" PRIx64 "\n", p->image.base);
	eval_code_explain(&p->eval, &p->image, out);
	p->type->explain(p, out);
}
