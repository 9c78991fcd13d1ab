/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spans of blocks. A reader reads what a thread has published when its block is sampled, or
 * later, if the block lasts and was not sampled. A blocked thread does not change it, so it is
 * right if the thread did not run in between, which the switches show (switches.h). That it is in
 * no span is proven in the same way, by a note of 0 bytes. What is not proven so has no span, and
 * its time is counted.
 */
#include "src/profiler/attribute-internal.h"
#include "src/profiler/block-notes.h"
#include "src/profiler/off-cpu-internal.h"

#define MAX_SPANS 32 /* asked for between two drains */

_Static_assert((int)BLOCK_NOTES_MAX_BYTES >= (int)THREAD_CONTEXT_MAX_BYTES, "they are notes");

static enum off_cpu_span_of find_span(struct attribution *a, const struct switch_wait *w,
				      strid *ret_labels)
{
	bool has_span = false;

	if (!w->noted || (w->n_note && !attribution_span_labels(a, a->process, w->note, w->n_note,
								ret_labels, &has_span)))
		return OFF_CPU_SPAN_UNPROVEN;
	return has_span ? OFF_CPU_SPAN_LINKED : OFF_CPU_SPAN_OUTSIDE;
}

strid off_cpu_take_span(struct off_cpu *o, const struct switch_wait *w)
{
	strid labels = STRID_EMPTY;

	if (o->a->process && attribution_says_spans(o->a->process))
		o->span_ns[find_span(o->a, w, &labels)] += w->ns;
	return labels;
}

void off_cpu_see_span(struct off_cpu *o, const struct record *r, const struct switch_out *out)
{
	struct attribution *a = o->a;
	uint8_t bytes[THREAD_CONTEXT_MAX_BYTES];
	uint64_t read_ns;
	uint32_t n;

	if (a->readers && a->process &&
	    attribution_read_span(a, r, a->process, bytes, &n, &read_ns))
		switches_note(o->switches, out, read_ns, bytes, n);
}

bool off_cpu_takes_span(void *ctx, const struct switch_out *block)
{
	const struct off_cpu *o = ctx;
	const struct host_process *p = host_process_peek(o->a->host, block->pid);

	return p && attribution_tells_spans(p);
}

void off_cpu_ask_spans(struct off_cpu *o, uint64_t time_ns, uint64_t min_ns)
{
	struct switch_out blocks[MAX_SPANS];
	uint32_t n;

	if (!o->a->readers || o->a->n_spans == 0)
		return;
	n = switches_unnoted(o->switches, time_ns, min_ns, blocks, MAX_SPANS);
	for (uint32_t i = 0; i < n; i++) {
		const struct switch_out *b = &blocks[i];

		if (readers_ask_blocked(o->a->readers, b->pid, b->tid, b->cpu, b->time_ns))
			o->asked[o->next_asked++ % OFF_CPU_MAX_ASKED] = *b;
	}
}

void off_cpu_span(struct off_cpu *o, const struct blocked_context *c)
{
	for (uint32_t i = 0; i < OFF_CPU_MAX_ASKED; i++) {
		const struct switch_out *b = &o->asked[i];

		if (b->pid == c->pid && b->tid == c->tid && b->time_ns == c->time_ns) {
			switches_note_late(o->switches, b, c->read_ns, c->bytes, c->n);
			return;
		}
	}
}
