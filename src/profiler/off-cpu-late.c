/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the stacks of threads that have been blocked for long and whose stack is unknown; before
 * that, asks about those that were found blocked. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <linux/perf_event.h>

#include "src/process/message.h"
#include "src/profiler/attribute-internal.h"
#include "src/profiler/block-proofs.h"
#include "src/profiler/blocked-call.h"
#include "src/profiler/module-rows.h"
#include "src/profiler/off-cpu-internal.h"
#include "src/profiler/outside.h"
#include "src/profiler/second-source.h"
#include "src/profiler/walk.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"

#define MAX_LATE    32			 /* reads between two drains */
#define LATE_NS	    (20 * NSEC_PER_MSEC) /* of reads between two drains, at most */
#define LONG_ENOUGH (10 * NSEC_PER_MSEC) /* shorter blocks are over before they are read */

/* Of questions about standing threads: half of what the host model may ask is for others. */
#define STANDING_GAP_NS	   (200 * NSEC_PER_MSEC)
#define STANDING_NS	   (20 * NSEC_PER_MSEC)
#define STANDING_PROCESSES 60

/* Its switch was recorded, with registers. */
static bool has_spot(const struct switch_out *block)
{
	uint64_t any = 0;

	for (int i = 0; i < SAMPLE_SPOT_REGS; i++)
		any |= block->spot.regs[i];
	return any != 0;
}

/* ---- Frames of interpreters ---- */

struct still_thread {
	struct attribution *a;
	uint32_t own_tid;
};

static enum frame_source_answer ask_blocked(void *ctx, const struct frame_source_sample *sample,
					    struct runtime_frames *ret)
{
	const struct still_thread *t = ctx;
	const struct process_state *s = sample->process->user;

	return s && s->blocked ? blocked_chain_ask(s->blocked, t->own_tid, sample, ret)
			       : FRAME_SOURCE_NONE;
}

/* Adds them to a stack of n frames that the walk has left. Returns its marker. */
static enum profile_marker add_runtime_frames(struct attribution *a, const struct record *r,
					      uint32_t n, uint32_t own_tid)
{
	struct still_thread t = {a, own_tid};
	const struct frame_source source = {.ask = ask_blocked, .ctx = &t};
	enum profile_marker marker;
	struct runtime_frames frames;

	return attribution_ask_to_keep(a, &source, r, n, &frames, &marker)
		       ? attribution_join_kept(a, &frames, marker)
		       : marker;
}

/* ---- Blocks ---- */

static struct record record_of(const struct off_cpu *o, const struct switch_out *block,
			       uint64_t time_ns)
{
	return (struct record){.type = RECORD_SAMPLE,
			       .index = o->blocks,
			       .time_ns = time_ns,
			       .pid = block->pid,
			       .tid = block->tid,
			       .cpu = block->cpu};
}

/* Fetches the thread's stack into o->late_bytes. false: not now, or it does not stand there any
 * longer. */
static bool fetch(struct off_cpu *o, const struct switch_out *block, struct blocked_thread *ret)
{
	_cleanup_close_ int fd = outside_open_blocked(&o->a->outside, block->pid, block->tid,
						      block->sp, block->ip, BLOCKED_MAX_BYTES);

	if (fd == -EAGAIN)
		switches_offer_again(o->switches, block);
	if (fd < 0 || pread(fd, ret, sizeof(*ret), 0) != sizeof(*ret) ||
	    ret->n_bytes > BLOCKED_MAX_BYTES ||
	    pread(fd, o->late_bytes, ret->n_bytes, sizeof(*ret)) != (ssize_t)ret->n_bytes)
		return false;
	ret->wchan[sizeof(ret->wchan) - 1] = '\0';
	return true;
}

/*
 * A thread that blocks seldom and for long is sampled last of all, but it stands still: its
 * stack can be read meanwhile. The registers are those of its switch, as far as they were
 * recorded. Only the switches up to the end of the read show that it did not go on before.
 */
static void read_block(struct off_cpu *o, const struct switch_out *block, uint64_t time_ns)
{
	struct attribution *a = o->a;
	struct record r = record_of(o, block, time_ns);
	struct blocked_thread t;
	uint64_t regs[64] = {0};
	enum profile_marker reason, marker;
	bool frozen;
	uint32_t n;

	if (!fetch(o, block, &t))
		return;
	reason = blocked_call_reason(t.call, t.args, t.wchan);
	/* A place that is known is looked at for what comes between a thread and its call. */
	frozen = reason == PROFILE_MARKER_WAIT_FREEZER;
	if (!switches_wants(o->switches, block, frozen))
		return;
	r.sample.user_abi = PERF_SAMPLE_REGS_ABI_64;
	r.sample.user_regs_valid = has_spot(block) ? sample_spot_to_regs(&block->spot, regs)
						   : sample_place_to_regs(t.sp, t.ip, regs);
	r.sample.user_regs = regs;
	r.sample.stack = o->late_bytes;
	r.sample.n_stack = t.n_bytes;
	r.sample.max_stack = BLOCKED_MAX_BYTES;
	a->counters = a->profile.types[o->blocks].counters;
	a->process = host_process_get(a->host, r.pid, r.tid, r.time_ns);
	a->time_ns = r.time_ns;
	n = attribution_walk_to_keep(a, &r);
	if (a->n_walked == 0)
		return;
	marker = add_runtime_frames(a, &r, n, t.own_tid);
	if (marker == PROFILE_MARKER_RUNTIME_LATE)
		switches_offer_again(o->switches, block);
	off_cpu_keep_stack(o, &r, marker, reason);
	o->scratch->alone = frozen;
	(void)block_proofs_add_late(o->proofs, block, clock_monotonic_ns(), o->scratch);
	off_cpu_see_lock(o, block);
}

/* ---- Threads that were found standing ---- */

static void begin_to_stand(struct off_cpu *o, const struct message_stands *thread)
{
	bool plain = o->events[o->blocks].options.switch_fields.plain;
	const struct switch_out out = {
		.time_ns = thread->time_ns,
		.sp = plain ? 0 : thread->sp,
		.ip = plain ? 0 : thread->ip,
		.id = thread->tid,
		.pid = thread->pid,
		.tid = thread->tid,
		.how = thread->runs ? SWITCH_PREEMPTED : SWITCH_BLOCKED,
	};

	switches_stands(o->switches, &out);
}

static void ask_about_standing(struct off_cpu *o, uint64_t now_ns)
{
	const struct host_stats *h = host_stats(o->a->host);
	uint64_t last = h->infos + STANDING_PROCESSES, deferred = h->deferred;
	struct message_stands thread;

	if (now_ns - o->standing_ns < STANDING_GAP_NS)
		return;
	o->standing_ns = now_ns;
	while (h->infos < last && h->deferred == deferred &&
	       clock_monotonic_ns() - now_ns < STANDING_NS && standing_next(&o->standing, &thread))
		begin_to_stand(o, &thread);
}

void off_cpu_stands(struct off_cpu *o, const struct message_stands *threads, uint32_t n,
		    uint32_t n_left)
{
	if (o->a->other_clock || o->other_numbers)
		return;
	o->n_dropped += n_left;
	for (uint32_t i = 0; i < n; i++)
		standing_add(&o->standing, &threads[i]);
	ask_about_standing(o, clock_monotonic_ns());
}

void off_cpu_end(struct off_cpu *o)
{
	uint32_t n = o->n_dropped + standing_clear(&o->standing);

	if (n)
		log_warning("off-CPU time lacks up to %u threads that did not run: there are more "
			    "than so short a capture can look at",
			    n);
}

/* ---- Stacks ---- */

void off_cpu_read_late(struct off_cpu *o, uint64_t time_ns)
{
	uint64_t begin = clock_monotonic_ns();
	struct switch_out blocks[MAX_LATE];
	uint32_t n;

	ask_about_standing(o, begin);
	if (o->a->other_clock || o->a->frame_pointers)
		return;
	off_cpu_judge(o, time_ns);
	n = switches_unseen(o->switches, time_ns, LONG_ENOUGH, blocks, MAX_LATE);
	for (uint32_t i = 0; i < n; i++) {
		if (clock_monotonic_ns() - begin < LATE_NS)
			read_block(o, &blocks[i], time_ns);
		else
			switches_offer_again(o->switches, &blocks[i]);
	}
	off_cpu_ask_spans(o, time_ns, LONG_ENOUGH);
}
