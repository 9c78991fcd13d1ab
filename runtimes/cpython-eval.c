/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compilers put parts of the evaluation function elsewhere (".cold"), in some builds most of it.
 * Such a part has no symbol where these were stripped, but call frame information of its own, and
 * is jumped into: several jumps into the middle of a function are not made from any other.
 */
#include <stdlib.h>

#include "runtimes/arch.h"
#include "runtimes/cpython-internal.h"
#include "util/cleanup.h"

enum {
	MAX_CODE = 1 << 20,
	MAX_TARGETS = 4096,
	MAX_PARTS = 16,
	MIN_JUMPS = 3, /* what looks like a jump may be in the middle of an instruction */
};

struct eval_part {
	uint64_t start, end;
	uint32_t n_jumps;
};

static bool is_in(const struct eval_part *part, uint64_t pc)
{
	return pc >= part->start && pc < part->end;
}

/* Counts a jump to an address outside of the function. */
static void count(struct cpython *p, struct eval_part *parts, uint32_t *n, uint64_t to)
{
	struct eval_part found = {.n_jumps = 0};
	uint32_t i;

	for (i = 0; i < *n && !is_in(&parts[i], to); i++)
		;
	if (i == *n) {
		if (*n == MAX_PARTS || !image_code_range(&p->image, to, &found.start, &found.end))
			return;
		parts[(*n)++] = found;
	}
	/* A call of a function that is the last thing to do is a jump as well. */
	parts[i].n_jumps += to != parts[i].start;
}

static void find_parts(struct cpython *p, const uint8_t *code, size_t n_code)
{
	struct eval_part parts[MAX_PARTS];
	uint64_t start = p->eval[0][0];
	uint32_t n = 0, n_targets = 0;
	int64_t to;

	for (size_t at = 0; at < n_code && n_targets < MAX_TARGETS; at++) {
		if (!arch_jump(code, n_code, at, &to) || (to >= 0 && (uint64_t)to < n_code) ||
		    start + (uint64_t)to < p->image.start || start + (uint64_t)to >= p->image.end)
			continue;
		n_targets++;
		count(p, parts, &n, start + (uint64_t)to);
	}
	for (uint32_t i = 0; i < n && p->n_eval < CPYTHON_MAX_RANGES; i++) {
		if (parts[i].n_jumps < MIN_JUMPS)
			continue;
		p->eval[p->n_eval][0] = parts[i].start;
		p->eval[p->n_eval++][1] = parts[i].end;
	}
}

void cpython_find_eval(struct cpython *p)
{
	_cleanup_free_ uint8_t *code = NULL;
	uint64_t n;

	if (!image_symbol_range(&p->image, "_PyEval_EvalFrameDefault", &p->eval[0][0],
				&p->eval[0][1]))
		return;
	p->n_eval = 1;
	n = p->eval[0][1] - p->eval[0][0];
	code = n <= MAX_CODE ? malloc(n + 1) : NULL;
	if (code && memory_read(&p->memory, p->eval[0][0], code, n))
		find_parts(p, code, n);
}
