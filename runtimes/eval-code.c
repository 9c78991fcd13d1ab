/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compilers put parts of the evaluation function elsewhere (".cold"), in some builds most of it.
 * Such a part has no symbol where these were stripped, but call frame information of its own, and
 * is jumped into: several jumps into the middle of a function are not made from any other.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "runtimes/arch.h"
#include "runtimes/eval-code.h"
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
static void count(const struct image *image, struct eval_part *parts, uint32_t *n, uint64_t to)
{
	struct eval_part found = {.n_jumps = 0};
	uint32_t i;

	for (i = 0; i < *n && !is_in(&parts[i], to); i++)
		;
	if (i == *n) {
		if (*n == MAX_PARTS || !image_code_range(image, to, &found.start, &found.end))
			return;
		parts[(*n)++] = found;
	}
	/* A call of a function that is the last thing to do is a jump as well. */
	parts[i].n_jumps += to != parts[i].start;
}

static void find_parts(struct eval_code *e, const struct image *image, const uint8_t *code,
		       size_t n_code)
{
	struct eval_part parts[MAX_PARTS];
	uint64_t start = e->ranges[0][0];
	uint32_t n = 0, n_targets = 0;
	int64_t to;

	for (size_t at = 0; at < n_code && n_targets < MAX_TARGETS; at++) {
		if (!arch_jump(code, n_code, at, &to) || (to >= 0 && (uint64_t)to < n_code) ||
		    start + (uint64_t)to < image->start || start + (uint64_t)to >= image->end)
			continue;
		n_targets++;
		count(image, parts, &n, start + (uint64_t)to);
	}
	for (uint32_t i = 0; i < n && e->n < EVAL_MAX_RANGES; i++) {
		if (parts[i].n_jumps < MIN_JUMPS)
			continue;
		e->ranges[e->n][0] = parts[i].start;
		e->ranges[e->n++][1] = parts[i].end;
	}
}

void eval_code_find(struct eval_code *ret, const struct image *image, uint64_t start, uint64_t end)
{
	_cleanup_free_ uint8_t *code = NULL;
	uint64_t n = end - start;

	*ret = (struct eval_code){.ranges = {{start, end}}, .n = start != 0};
	code = start && n <= MAX_CODE ? malloc(n + 1) : NULL;
	if (code && memory_read(image->memory, start, code, n))
		find_parts(ret, image, code, n);
}

void eval_code_explain(const struct eval_code *e, const struct image *image, FILE *out)
{
	for (uint32_t i = 0; i < e->n; i++)
		(void)fprintf(out,
			      "evaluation of frames at its image + %#" PRIx64 "-%#" PRIx64 "\n",
			      e->ranges[i][0] - image->base, e->ranges[i][1] - image->base);
}
