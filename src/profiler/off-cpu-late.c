/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the stacks of threads that have been blocked for long and whose stack is unknown. */
#include <string.h>
#include <unistd.h>
#include <linux/perf_event.h>

#include "src/process/message.h"
#include "src/profiler/attribute-internal.h"
#include "src/profiler/blocked-call.h"
#include "src/profiler/module-rows.h"
#include "src/profiler/off-cpu-internal.h"
#include "src/profiler/outside.h"
#include "src/profiler/walk.h"
#include "util/clock.h"

#define LATE_NS	    (20 * NSEC_PER_MSEC) /* of reads between two drains, at most */
#define LONG_ENOUGH (10 * NSEC_PER_MSEC) /* shorter blocks are over before they are read */

static enum profile_marker late_marker(const struct attribution *a, uint32_t n)
{
	const struct process_state *s = a->process ? a->process->user : NULL;
	enum profile_marker marker = attribution_last_marker(a, n);

	/* Nobody reads what its interpreter keeps. */
	return marker == PROFILE_N_MARKERS && s && s->interpreter ? PROFILE_MARKER_RUNTIME_LATE
								  : marker;
}

/* Its switch was recorded, with registers. */
static bool has_spot(const struct switch_out *block)
{
	uint64_t any = 0;

	for (int i = 0; i < SWITCH_REGS; i++)
		any |= block->regs[i];
	return any != 0;
}

/*
 * A thread that blocks seldom and for long is sampled last of all, but it stands still: its
 * stack can be read meanwhile. The registers are those of its switch, as far as they were
 * recorded. Only the switches up to the end of the read show that it did not go on before.
 */
static void add_late(struct off_cpu *o, const struct late *l)
{
	struct attribution *a = o->a;
	struct blocked_thread t;
	uint64_t regs[64] = {0};
	struct record r = {.type = RECORD_SAMPLE,
			   .index = o->blocks,
			   .time_ns = l->read_ns,
			   .pid = l->block.pid,
			   .tid = l->block.tid,
			   .cpu = l->block.cpu};
	enum profile_marker reason;
	struct sample_spot spot;
	bool frozen;
	uint32_t n;

	if (pread(l->fd, &t, sizeof(t), 0) != sizeof(t) || t.n_bytes > OFF_CPU_LATE_BYTES ||
	    pread(l->fd, o->late_bytes, t.n_bytes, sizeof(t)) != (ssize_t)t.n_bytes)
		return;
	t.wchan[sizeof(t.wchan) - 1] = '\0';
	reason = blocked_call_reason(t.call, t.args, t.wchan);
	/* A place that is known is looked at for what comes between a thread and its call. */
	frozen = reason == PROFILE_MARKER_WAIT_FREEZER;
	if (switches_knows(o->switches, &l->block) &&
	    !(frozen && switches_lasted(o->switches, &l->block, UINT64_MAX)))
		return;
	memcpy(spot.regs, l->block.regs, sizeof(spot.regs));
	r.sample.user_abi = PERF_SAMPLE_REGS_ABI_64;
	r.sample.user_regs_valid = has_spot(&l->block) ? sample_spot_to_regs(&spot, regs)
						       : sample_place_to_regs(t.sp, t.ip, regs);
	r.sample.user_regs = regs;
	r.sample.stack = o->late_bytes;
	r.sample.n_stack = t.n_bytes;
	r.sample.max_stack = OFF_CPU_LATE_BYTES;
	a->counters = a->profile.types[o->blocks].counters;
	a->process = host_process_get(a->host, r.pid, r.tid, r.time_ns);
	a->time_ns = r.time_ns;
	n = attribution_walk_to_keep(a, &r);
	if (a->n_walked == 0)
		return;
	off_cpu_keep_stack(o, &r, late_marker(a, n), reason);
	o->scratch->alone = frozen;
	switches_stack(o->switches, &l->block, o->scratch);
	off_cpu_see_lock(o, &l->block);
}

static void judge_late(struct off_cpu *o, uint64_t time_ns)
{
	uint32_t n_kept = 0;

	for (uint32_t i = 0; i < o->n_late; i++) {
		struct late *l = &o->late[i];

		if (l->read_ns > time_ns) {
			o->late[n_kept++] = *l;
			continue;
		}
		if (switches_lasted(o->switches, &l->block, l->read_ns))
			add_late(o, l);
		(void)close(l->fd);
	}
	o->n_late = n_kept;
}

void off_cpu_read_late(struct off_cpu *o, uint64_t time_ns)
{
	uint64_t begin = clock_monotonic_ns();

	if (o->a->other_clock || o->a->frame_pointers)
		return;
	judge_late(o, time_ns);
	while (o->n_late < OFF_CPU_MAX_LATE && clock_monotonic_ns() - begin < LATE_NS) {
		struct late *l = &o->late[o->n_late];

		if (switches_unseen(o->switches, time_ns, LONG_ENOUGH, &l->block, 1) == 0)
			return;
		l->fd = outside_open_blocked(&o->a->outside, l->block.pid, l->block.tid,
					     l->block.sp, l->block.ip, OFF_CPU_LATE_BYTES);
		l->read_ns = clock_monotonic_ns();
		o->n_late += l->fd >= 0;
	}
}
