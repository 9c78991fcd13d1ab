/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unwind-compare.h"

#include <inttypes.h>
#include <stdio.h>

#include "unwind/internal.h"

static void show(struct comparison *c, const char *kind, const struct unwind_frame *ours,
		 size_t n_ours, const uint64_t *theirs, size_t n_theirs,
		 enum unwind_outcome outcome)
{
	if (c->shown++ >= 12)
		return;
	fprintf(stderr, "  %s: ours %zu (%s), libdw %zu\n", kind, n_ours,
		unwind_outcome_name(outcome), n_theirs);
	for (size_t i = 0; i < n_ours || i < n_theirs; i++) {
		uint64_t bias = i < n_ours ? ours[i].bias : 0;

		fprintf(stderr, "    %#" PRIx64 " %#" PRIx64 " (%#" PRIx64 " in the file)\n",
			i < n_ours ? ours[i].address : 0, i < n_theirs ? theirs[i] : 0,
			i < n_ours ? ours[i].address - bias : 0);
		if (i < n_ours && i < n_theirs && ours[i].address != theirs[i])
			break;
	}
}

/* The linker's code without CFI, and the way to the entry found from there. */
static bool in_stub(struct comparison *c, uint64_t pc)
{
	struct unwind_mapping m;
	uint64_t rel;

	if (!proc_find(&c->maps, pc, &m) || !m.module)
		return false;
	rel = pc - m.bias - m.module->base;
	for (uint32_t i = 0; i < m.module->n_stubs; i++) {
		if (rel >= m.module->stubs[i].start && rel < m.module->stubs[i].end)
			return true;
	}
	return false;
}

void compare_sample(struct comparison *c, const struct proc_sample *sample)
{
	static struct unwind_frame ours[PROC_MAX_FRAMES];
	static uint64_t theirs[PROC_MAX_FRAMES];
	enum unwind_outcome outcome;
	size_t n_ours, n_theirs, same = 0;

	outcome = unwind_walk(c->u, &sample->regs, sample->stack, sample->n_stack, proc_find,
			      &c->maps, ours, PROC_MAX_FRAMES, &n_ours);
	n_theirs = oracle_walk(c->oracle, &sample->regs, sample->stack, sample->n_stack, theirs,
			       PROC_MAX_FRAMES);
	while (same < n_ours && same < n_theirs && ours[same].address == theirs[same])
		same++;
	for (size_t i = 0; i <= same && i < n_ours; i++) {
		if (ours[i].address >= c->strange_start && ours[i].address < c->strange_end)
			n_theirs = same;
	}
	c->t.samples++;
	c->t.frames += n_ours;
	c->t.outcomes[outcome]++;
	c->t.complete += outcome == UNWIND_COMPLETE;
	if (same == n_ours && same == n_theirs) {
		c->t.identical++;
		if (outcome != UNWIND_COMPLETE)
			show(c, "same but not complete", ours, n_ours, theirs, n_theirs, outcome);
	} else if (same == n_theirs) {
		c->t.ours_longer++;
		if (outcome != UNWIND_COMPLETE) {
			c->t.longer_not_complete++;
			show(c, "libdw shorter", ours, n_ours, theirs, n_theirs, outcome);
		}
	} else if (same == n_ours) {
		c->t.ours_shorter++;
		show(c, "ours shorter", ours, n_ours, theirs, n_theirs, outcome);
	} else if (same >= 1 && outcome == UNWIND_COMPLETE && in_stub(c, ours[0].address)) {
		c->t.ours_longer++;
	} else {
		c->t.contradict++;
		show(c, "contradiction", ours, n_ours, theirs, n_theirs, outcome);
	}
}

void comparison_print(const struct comparison *c, unsigned int steps)
{
	fprintf(stderr,
		"  %u instructions, %" PRIu64 " walked, %" PRIu64 " frames: identical %" PRIu64
		", libdw shorter %" PRIu64 ", ours shorter %" PRIu64 ", contradict %" PRIu64
		", complete %" PRIu64 ", rows %" PRIu64 "\n",
		steps, c->t.samples, c->t.frames, c->t.identical, c->t.ours_longer,
		c->t.ours_shorter, c->t.contradict, c->t.complete,
		unwinder_stats(c->u)->rows_compiled);
}
