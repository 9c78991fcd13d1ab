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

void compare_sample(struct comparison *c, const struct proc_sample *sample)
{
	static struct unwind_frame ours[PROC_MAX_FRAMES];
	static uint64_t addresses[PROC_MAX_FRAMES], theirs[PROC_MAX_FRAMES];
	static struct oracle_registers registers[PROC_MAX_FRAMES];
	const struct judge judge = {&sample->regs, sample->stack, sample->n_stack, proc_find,
				    proc_read,	   &c->maps,	  PROC_MAX_FRAMES};
	enum unwind_outcome outcome;
	enum verdict verdict;
	size_t n_ours, n_theirs, same = 0;

	outcome = unwind_walk(c->u, &sample->regs, sample->stack, sample->n_stack, proc_find,
			      &c->maps, ours, PROC_MAX_FRAMES, &n_ours);
	(void)oracle_keep_registers(c->oracle, registers);
	n_theirs = oracle_walk(c->oracle, &sample->regs, sample->stack, sample->n_stack, theirs,
			       PROC_MAX_FRAMES);
	for (size_t i = 0; i < n_ours; i++)
		addresses[i] = ours[i].address;
	while (same < n_ours && same < n_theirs && addresses[same] == theirs[same])
		same++;
	for (size_t i = 0; i <= same && i < n_ours; i++) {
		if (addresses[i] >= c->strange_start && addresses[i] < c->strange_end)
			n_theirs = same;
	}
	register_tally_add(&c->t.registers, ours, registers, same);
	verdict = judge_walks(&judge, addresses, n_ours, outcome, theirs, n_theirs);
	c->t.samples++;
	c->t.frames += n_ours;
	c->t.outcomes[outcome]++;
	c->t.complete += outcome == UNWIND_COMPLETE;
	c->t.verdicts[verdict]++;
	if (verdict == VERDICT_UNDECIDED ||
	    (verdict == VERDICT_IDENTICAL && outcome != UNWIND_COMPLETE))
		show(c, verdict_names[verdict], ours, n_ours, theirs, n_theirs, outcome);
}

void comparison_print(const struct comparison *c, unsigned int steps)
{
	fprintf(stderr,
		"  %u instructions, %" PRIu64 " walked, %" PRIu64 " frames, complete %" PRIu64
		", rows %" PRIu64 "\n",
		steps, c->t.samples, c->t.frames, c->t.complete,
		unwinder_stats(c->u)->rows_compiled);
	for (int i = 0; i < VERDICT_N; i++) {
		if (c->t.verdicts[i])
			fprintf(stderr, "  %8" PRIu64 " %s\n", c->t.verdicts[i], verdict_names[i]);
	}
	register_tally_print(&c->t.registers);
}
