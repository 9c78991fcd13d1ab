/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/perf_event.h>

#include "src/process/message.h"
#include "src/profiler/attribute-internal.h"
#include "src/profiler/block-proofs.h"
#include "src/profiler/blocked-call.h"
#include "src/profiler/known-stacks.h"
#include "src/profiler/lock-places.h"
#include "src/profiler/module-rows.h"
#include "src/profiler/off-cpu.h"
#include "src/profiler/outside.h"
#include "src/profiler/second-source.h"
#include "src/profiler/switches.h"
#include "src/profiler/walk.h"
#include "src/profiler/wall-time.h"
#include "src/sample/ledger.h"
#include "util/clock.h"

#define MAX_THREADS	262144
#define MAX_KEYS	65536
#define MAX_STACK_BYTES (UINT64_C(32) << 20)

/* Late reads: as many between two drains, and as long, at most. */
#define MAX_LATE    32
#define LATE_NS	    (20 * NSEC_PER_MSEC)
#define LATE_BYTES  (32u << 10)
#define LONG_ENOUGH (10 * NSEC_PER_MSEC) /* shorter blocks are over before they are read */

#define MIN_FUTEX 4096
#define MAX_SPOTS 256
#define MAX_ENDED 8192
#define MAX_BORN  8192

_Static_assert(SWITCH_REGS == SAMPLE_SPOT_REGS, "a block keeps them");

struct off_cpu {
	struct attribution *a;
	struct switches *switches;
	struct block_proofs *proofs;
	const struct setup_event *events;
	/* Indexes of the events: each switch; those with a stack; wake-ups (UINT32_MAX: none). */
	uint32_t all, blocks, wakeups;
	struct lock_places *locks; /* NULL: nobody asks for locks */
	struct wall_time *wall;	   /* NULL: nor for wall time */
	uint64_t begin_ns;	   /* of the window */
	uint32_t own_pid, broker_pid;
	const struct ledger *ledger;   /* NULL: nobody stops the events */
	uint64_t next_gap, gap_end_ns; /* of its gaps; up to where they were told */
	struct switch_stack *scratch;
	/* Stacks that were read late; it is to be found out whether that was in time. */
	struct late {
		struct switch_out block;
		uint64_t read_ns;
		int fd;
	} late[MAX_LATE];
	uint32_t n_late;
	uint8_t *late_bytes;
	/* Plain switches: the last place that was sampled on a CPU, by its number. */
	struct switch_out spots[MAX_SPOTS];
	/* Plain switches of whole CPUs: threads that told of their end, by their number. */
	uint32_t ended[MAX_ENDED];
	/* Threads that have not run yet, and those that have just executed a program, by their
	 * number: of those from then on, for some switches before are missing. */
	struct born {
		uint32_t tid, pid;
		uint64_t time_ns;
		bool running;
	} born[MAX_BORN];
	uint64_t born_from_ns;
};

/* ---- Samples of the window ---- */

static void tell_sample(struct off_cpu *o, const struct switch_wait *w, uint32_t thread,
			uint32_t stack)
{
	struct profile *p = &o->a->profile;
	const struct profile_sample s = {
		.time_unix_ns = w->time_ns > o->begin_ns ? w->time_ns : o->begin_ns,
		.value = w->ns <= INT64_MAX ? (int64_t)w->ns : INT64_MAX,
		.thread = thread,
		.stack = stack,
		.cpu = w->cpu,
		.n = w->n <= UINT32_MAX ? (uint32_t)w->n : 0,
	};

	if (thread == PROFILE_NONE || stack == PROFILE_NONE)
		p->types[o->blocks].counters[PROFILE_SAMPLES_DROPPED]++;
	else
		(void)profile_add_sample_of(p, o->blocks, &s);
}

static bool is_futex(uint32_t reason)
{
	return reason == PROFILE_MARKER_WAIT_LOCK || reason == PROFILE_MARKER_WAIT_CONDITION;
}

static void on_wait(void *ctx, const struct switch_wait *w)
{
	struct off_cpu *o = ctx;
	struct attribution *a = o->a;
	const struct record r = {.pid = w->pid, .tid = w->tid, .time_ns = w->time_ns};

	uint32_t object = PROFILE_NONE;

	a->counters = a->profile.types[o->blocks].counters;
	a->process = host_process_get(a->host, w->pid, w->tid, w->time_ns);
	a->time_ns = w->time_ns;
	if (o->locks && a->process &&
	    (w->stack ? is_futex(w->stack->reason)
		      : lock_places_knows(o->locks, a->process, w->object, w->ip)))
		object = lock_places_frame(o->locks, a->process, w->object);
	tell_sample(o, w, attribution_thread_row(a, &r, a->process),
		    attribution_waiting_stack(a, w->stack, object));
}

static void on_other(void *ctx, const struct switch_other *other)
{
	struct off_cpu *o = ctx;
	const struct thread_time t = {.pid = other->pid,
				      .tid = other->tid,
				      .cpu = other->cpu,
				      .running_ns = other->running_ns,
				      .waiting_ns = other->waiting_ns,
				      .time_ns = other->time_ns > o->begin_ns ? other->time_ns
									      : o->begin_ns};

	wall_time_add(o->wall, &t);
}

void off_cpu_put_types(struct off_cpu *o)
{
	if (o->wall)
		wall_time_put_type(o->wall);
}

/* The first n frames of the attribution. */
static void tell_wakeup(struct off_cpu *o, const struct record *r, uint32_t n)
{
	struct attribution *a = o->a;
	struct profile *p = &a->profile;
	struct profile_sample s = {.time_unix_ns = r->time_ns, .value = 1, .cpu = r->cpu, .n = 1};
	bool fits = true;

	for (uint32_t i = 0; i < n; i++)
		fits &= a->frames[i] != PROFILE_NONE;
	s.thread = attribution_thread_row(a, r, a->process);
	s.stack = fits ? profile_add_stack(p, a->frames, n, (uint32_t)r->sample.n_kernel)
		       : PROFILE_NONE;
	if (s.thread == PROFILE_NONE || s.stack == PROFILE_NONE)
		a->counters[PROFILE_SAMPLES_DROPPED]++;
	else
		(void)profile_add_sample_of(p, o->wakeups, &s);
}

/* ---- Whose time is taken ---- */

/* Ours is not: we run because others do. */
static bool is_ours(const struct off_cpu *o, const struct host_process *p)
{
	return p->pid == o->own_pid || p->pid == o->broker_pid ||
	       (p->parent_pid == o->broker_pid && strcmp(p->comm, "perfwalk") == 0);
}

static bool wants(void *ctx, const struct switch_out *out)
{
	struct off_cpu *o = ctx;
	struct attribution *a = o->a;
	const struct record r = {.pid = out->pid, .tid = out->tid, .time_ns = out->time_ns};

	a->process = host_process_get(a->host, out->pid, out->tid, out->time_ns);
	a->time_ns = out->time_ns;
	return a->process && !a->process->is_kernel && !is_ours(o, a->process) &&
	       attribution_wants(a, &r, a->process);
}

/* ---- Life ---- */

int off_cpu_new(struct off_cpu **ret, struct attribution *a)
{
	const struct switches_limits limits = {MAX_THREADS, MAX_KEYS, MAX_STACK_BYTES};
	struct switches_callbacks callbacks = {.tell = on_wait, .wants = wants};
	uint32_t all = UINT32_MAX, blocks = UINT32_MAX, wakeups = UINT32_MAX;
	struct off_cpu *o;

	*ret = NULL;
	for (uint32_t i = 0; i < a->setup->n_events; i++) {
		if (a->setup->events[i].options.use == SAMPLE_USE_SWITCHES)
			all = i;
		if (a->setup->events[i].options.use == SAMPLE_USE_BLOCKS)
			blocks = i;
		if (a->setup->events[i].options.use == SAMPLE_USE_WAKEUPS)
			wakeups = i;
	}
	if (all == UINT32_MAX || blocks == UINT32_MAX)
		return 0;
	o = calloc(1, sizeof(*o));
	if (!o)
		return -ENOMEM;
	o->a = a;
	o->events = a->setup->events;
	o->all = all;
	o->blocks = blocks;
	o->wakeups = wakeups;
	callbacks.longest_apart = wakeups != UINT32_MAX;
	o->own_pid = (uint32_t)getpid();
	o->broker_pid = (uint32_t)getppid();
	o->scratch =
		malloc(sizeof(*o->scratch) + (SAMPLE_MAX_KERNEL_FRAMES + ATTRIBUTION_MAX_KEPT(a)) *
						     sizeof(*o->scratch->addresses));
	o->late_bytes = malloc(LATE_BYTES);
	if (a->setup->events[blocks].options.wall)
		callbacks.tell_other = on_other;
	if (!o->scratch || !o->late_bytes ||
	    (callbacks.tell_other && wall_time_new(&o->wall, a) < 0) ||
	    (wakeups != UINT32_MAX && lock_places_new(&o->locks, a) < 0) ||
	    switches_new(&o->switches, &limits, &callbacks, o) < 0 ||
	    block_proofs_new(&o->proofs, o->switches) < 0) {
		off_cpu_free(o);
		return -ENOMEM;
	}
	*ret = o;
	return 0;
}

struct off_cpu *off_cpu_free(struct off_cpu *o)
{
	if (o) {
		block_proofs_free(o->proofs);
		switches_free(o->switches);
		lock_places_free(o->locks);
		wall_time_free(o->wall);
		for (uint32_t i = 0; i < o->n_late; i++)
			(void)close(o->late[i].fd);
		free(o->late_bytes);
		free(o->scratch);
		free(o);
	}
	return NULL;
}

/* ---- Records ---- */

/* A guess, for it may be another call's argument: the kernel's names decide. */
static enum profile_marker guess_reason(const struct off_cpu *o, const struct record *r)
{
	uint64_t operation;

	if (r->sample.n_kernel == 0 ||
	    !sample_second_argument(&o->events[r->index].options, r, &operation))
		return PROFILE_MARKER_WAIT;
	return futex_call_reason(operation);
}

/* What a walk left in the attribution, as addresses that outlive the window. */
static void keep_stack(struct off_cpu *o, const struct record *r, enum profile_marker marker,
		       enum profile_marker reason)
{
	const struct attribution *a = o->a;
	struct switch_stack *s = o->scratch;
	uint32_t n_kernel = (uint32_t)r->sample.n_kernel;

	*s = (struct switch_stack){
		.n_kernel = n_kernel, .n_user = a->n_kept, .reason = reason, .marker = marker};
	for (uint32_t i = 0; i < n_kernel; i++)
		s->addresses[i] = r->sample.kernel[i] - (i > 0);
	for (uint32_t i = 0; i < a->n_kept; i++)
		s->addresses[n_kernel + i] = a->kept[i];
}

/* What may be a futex. */
static uint64_t object_of(uint64_t argument)
{
	return argument >= MIN_FUTEX && argument % 4 == 0 && argument >> 56 == 0 ? argument : 0;
}

static struct switch_out out_of(const struct off_cpu *o, const struct record *r,
				const struct sample_switch *sw)
{
	struct switch_out out = {
		.time_ns = r->time_ns,
		.sp = sw->sp,
		.ip = sw->ip,
		.id = o->a->setup->of_tasks || o->events[o->blocks].options.switch_fields.plain
			      ? r->tid
			      : sw->prev_id,
		.pid = r->pid,
		.tid = r->tid,
		.cpu = r->cpu,
		.how = switch_how(sw->prev_state),
		.object = o->locks ? object_of(sw->argument) : 0,
	};

	memcpy(out.regs, sw->spot.regs, sizeof(out.regs));
	return out;
}

/* How its markers are counted: one that lacks native frames is for that. */
static void count_marker(struct attribution *a, enum profile_marker marker)
{
	a->counters[PROFILE_STACKS_RUNTIME_LATE] += marker == PROFILE_MARKER_RUNTIME_LATE;
	a->counters[PROFILE_STACKS_UNPROVEN] += marker == PROFILE_MARKER_RUNTIME_UNPROVEN;
}

/* The stack that the walk has left, and, if an interpreter has frames for it, once more with these:
 * that counts if the thread turns out to have been blocked while they were read. */
static void tell_stack(struct off_cpu *o, const struct record *r, const struct switch_out *out,
		       uint32_t n)
{
	enum profile_marker marker, reason = guess_reason(o, r);
	struct attribution *a = o->a;
	struct runtime_frames frames;
	bool has_frames = attribution_ask_to_keep(a, r, n, &frames, &marker);

	keep_stack(o, r, marker, reason);
	switches_stack(o->switches, out, o->scratch);
	if (has_frames) {
		attribution_join_kept(a, &frames);
		marker = frames.cut				 ? PROFILE_MARKER_TOO_DEEP
			 : marker == PROFILE_MARKER_RUNTIME_LATE ? PROFILE_N_MARKERS
								 : marker;
		keep_stack(o, r, marker, reason);
		if (block_proofs_add(o->proofs, out, frames.read_ns, o->scratch))
			return;
		marker = PROFILE_MARKER_RUNTIME_LATE;
	}
	count_marker(a, marker);
}

static void judge_proofs(struct off_cpu *o, uint64_t time_ns)
{
	o->a->profile.types[o->blocks].counters[PROFILE_STACKS_RUNTIME_LATE] +=
		block_proofs_judge(o->proofs, time_ns);
}

/* What the block whose stack was just kept waits for. */
static void see_lock(struct off_cpu *o, const struct switch_out *block)
{
	uint32_t reason = o->scratch->reason;

	if (o->locks && block->object && o->a->process && is_futex(reason))
		lock_places_see(o->locks, o->a->process, block->object,
				reason == PROFILE_MARKER_WAIT_LOCK ? block->ip : 0);
}

static void on_block(struct off_cpu *o, const struct record *r, const struct sample_switch *sw)
{
	const struct switch_out out = out_of(o, r, sw);
	struct attribution *a = o->a;
	uint32_t n;

	a->counters[PROFILE_SAMPLES]++;
	if (o->events[o->blocks].options.switch_fields.plain && sw->has_program)
		o->spots[r->cpu % MAX_SPOTS] = out;
	if (!sw->has_program || !switches_offer_stack(o->switches, &out))
		return;
	a->process = host_process_get(a->host, r->pid, r->tid, r->time_ns);
	a->time_ns = r->time_ns;
	n = attribution_walk_to_keep(a, r);
	tell_stack(o, r, &out, n);
	see_lock(o, &out);
}

/* A thread ends another one's wait for a lock; by its stack it is the one that held it. */
static void on_wakeup(struct off_cpu *o, const struct record *r)
{
	struct attribution *a = o->a;
	const struct switch_stack *stack;
	struct host_process *waker;
	uint32_t id, pid, n;
	uint64_t object;

	a->counters[PROFILE_SAMPLES]++;
	if (!sample_read_wakeup(&o->events[r->index].options, r, &id)) {
		a->counters[PROFILE_RECORDS_BAD]++;
		return;
	}
	stack = switches_waits(o->switches, id, &object, &pid);
	waker = host_process_get(a->host, r->pid, r->tid, r->time_ns);
	if (!stack || !object || !is_futex(stack->reason) || !waker || waker->pid != pid)
		return;
	a->process = waker;
	a->time_ns = r->time_ns;
	n = attribution_walk(a, r);
	a->frames[n++] = lock_places_frame(o->locks, waker, object);
	a->frames[n++] = attribution_marker(a, PROFILE_MARKER_WOKEN);
	tell_wakeup(o, r, n);
}

/* The first that is known of a thread is its start: what it does until its first switch counts. */
static void note_birth(struct off_cpu *o, const struct record *r, bool running)
{
	o->born[r->tid % MAX_BORN] = (struct born){r->tid, r->pid, r->time_ns, running};
}

static void begin_if_born(struct off_cpu *o, uint32_t id, uint32_t cpu, bool running)
{
	struct born *b = &o->born[id % MAX_BORN];

	if (b->tid != id || id == 0)
		return;
	if (b->running == running && b->time_ns >= o->born_from_ns)
		switches_begin(o->switches,
			       &(struct switch_out){.time_ns = b->time_ns,
						    .id = id,
						    .pid = b->pid,
						    .tid = b->tid,
						    .cpu = cpu},
			       running);
	b->tid = 0;
}

static void on_switch(struct off_cpu *o, const struct record *r, const struct sample_switch *sw)
{
	const struct switch_out out = out_of(o, r, sw);

	o->a->counters[PROFILE_SAMPLES]++;
	begin_if_born(o, out.id, r->cpu, true);
	if (sw->has_program || out.how == SWITCH_DEAD)
		switches_out(o->switches, &out);
	if (o->a->setup->of_tasks)
		return;
	begin_if_born(o, sw->next_id, r->cpu, false);
	switches_in(o->switches, sw->next_id, r->cpu, r->time_ns);
}

/* The last switches of a thread come behind its end: it does not wait for anything. */
static bool has_ended(const struct off_cpu *o, const struct record *r)
{
	return o->ended[r->tid % MAX_ENDED] == r->tid;
}

static void note_end(struct off_cpu *o, uint32_t tid, bool ended)
{
	uint32_t *place = &o->ended[tid % MAX_ENDED];

	if (ended)
		*place = tid;
	else if (*place == tid)
		*place = 0;
}

/* A plain switch: a sample before it may have said where. */
static void on_switch_out(struct off_cpu *o, const struct record *r)
{
	struct switch_out *spot = &o->spots[r->cpu % MAX_SPOTS], out = *spot;

	if (has_ended(o, r))
		return;
	if (out.pid != r->pid || out.tid != r->tid)
		out = (struct switch_out){
			.id = r->tid, .pid = r->pid, .tid = r->tid, .cpu = r->cpu};
	out.time_ns = r->time_ns;
	out.how = r->preempted ? SWITCH_PREEMPTED : SWITCH_BLOCKED;
	*spot = (struct switch_out){.pid = 0};
	begin_if_born(o, r->tid, r->cpu, true);
	switches_out(o->switches, &out);
}

/* Those before time_ns, as far as it. */
static void take_gaps(struct off_cpu *o, uint64_t time_ns)
{
	struct ledger_gap g;
	int r;

	while (o->ledger && (r = ledger_gap(o->ledger, o->next_gap, &g)) != -EAGAIN) {
		uint64_t begin = g.begin_ns > o->gap_end_ns ? g.begin_ns : o->gap_end_ns;
		uint64_t end = g.end_ns && g.end_ns < time_ns ? g.end_ns : time_ns;

		if (r < 0) {
			switches_lost(o->switches, SWITCHES_ANY_CPU, 0);
			o->next_gap = ledger_n_gaps(o->ledger);
			continue;
		}
		if (g.begin_ns >= time_ns)
			return;
		if (end > begin)
			switches_gap(o->switches, begin, end);
		o->gap_end_ns = o->born_from_ns = end;
		if (!g.end_ns || g.end_ns > time_ns)
			return;
		o->next_gap++;
	}
}

static void on_sample(struct off_cpu *o, const struct record *r)
{
	struct sample_switch sw;

	take_gaps(o, r->time_ns);
	if (r->index == o->wakeups)
		on_wakeup(o, r);
	else if (!sample_read_switch(&o->events[r->index].options, r, &sw))
		o->a->counters[PROFILE_RECORDS_BAD]++;
	else if (r->index == o->blocks)
		on_block(o, r, &sw);
	else
		on_switch(o, r, &sw);
}

void off_cpu_record(struct off_cpu *o, const struct record *r)
{
	if (!o->begin_ns)
		o->begin_ns = r->time_ns;
	judge_proofs(o, r->time_ns);
	switch (r->type) {
	case RECORD_SAMPLE:
		if (r->index == o->all || r->index == o->blocks || r->index == o->wakeups)
			on_sample(o, r);
		break;
	case RECORD_SWITCH_IN:
		begin_if_born(o, r->tid, r->cpu, false);
		switches_in(o->switches, r->tid, r->cpu, r->time_ns);
		break;
	case RECORD_SWITCH_OUT:
		on_switch_out(o, r);
		break;
	case RECORD_LOST:
		if (!r->from_sideband && r->index == o->all) {
			switches_lost(o->switches, r->cpu, r->time_ns);
			o->born_from_ns = r->time_ns;
		}
		break;
	case RECORD_FORK:
		note_end(o, r->tid, false);
		note_birth(o, r, false);
		break;
	case RECORD_EXIT:
		note_end(o, r->tid, true);
		switches_end(o->switches, r->tid, r->time_ns);
		break;
	case RECORD_COMM:
		/* Another program: neither its stacks nor its name are those of before. */
		if (!r->comm.exec)
			break;
		switches_end(o->switches, r->tid, r->time_ns);
		note_birth(o, r, true);
		break;
	default:
		break;
	}
}

/* ---- Late reads ---- */

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

	if (pread(l->fd, &t, sizeof(t), 0) != sizeof(t) || t.n_bytes > LATE_BYTES ||
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
	r.sample.max_stack = LATE_BYTES;
	a->counters = a->profile.types[o->blocks].counters;
	a->process = host_process_get(a->host, r.pid, r.tid, r.time_ns);
	a->time_ns = r.time_ns;
	n = attribution_walk_to_keep(a, &r);
	if (a->n_walked == 0)
		return;
	keep_stack(o, &r, late_marker(a, n), reason);
	o->scratch->alone = frozen;
	switches_stack(o->switches, &l->block, o->scratch);
	see_lock(o, &l->block);
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
	while (o->n_late < MAX_LATE && clock_monotonic_ns() - begin < LATE_NS) {
		struct late *l = &o->late[o->n_late];

		if (switches_unseen(o->switches, time_ns, LONG_ENOUGH, &l->block, 1) == 0)
			return;
		l->fd = outside_open_blocked(&o->a->outside, l->block.pid, l->block.tid,
					     l->block.sp, l->block.ip, LATE_BYTES);
		l->read_ns = clock_monotonic_ns();
		o->n_late += l->fd >= 0;
	}
}

void off_cpu_stands(struct off_cpu *o, const struct message *m)
{
	bool plain = o->events[o->blocks].options.switch_fields.plain;
	const struct switch_out out = {
		.time_ns = m->stands.time_ns,
		.sp = plain ? 0 : m->stands.sp,
		.ip = plain ? 0 : m->stands.ip,
		.id = m->stands.tid,
		.pid = m->stands.pid,
		.tid = m->stands.tid,
		.how = SWITCH_BLOCKED,
	};

	if (!o->a->other_clock)
		switches_stands(o->switches, &out);
}

void off_cpu_watch_gaps(struct off_cpu *o, const struct ledger *l)
{
	o->ledger = l;
	o->next_gap = ledger_n_gaps(l);
}

void off_cpu_lost(struct off_cpu *o)
{
	o->born_from_ns = UINT64_MAX; /* nobody knows when that was; see off_cpu_close() */
	switches_lost(o->switches, SWITCHES_ANY_CPU, 0);
}

static int by_time(const void *a, const void *b)
{
	const struct profile_sample *x = a, *y = b;

	return (x->time_unix_ns > y->time_unix_ns) - (x->time_unix_ns < y->time_unix_ns);
}

static void put_totals(struct off_cpu *o)
{
	const struct switch_totals *t = switches_totals(o->switches);
	uint64_t *c = o->a->profile.types[o->blocks].counters;

	c[PROFILE_SWITCHES] += t->n_switches;
	c[PROFILE_SWITCHES_BROKEN] += t->n_broken;
	c[PROFILE_RUNNING_US] += t->running_ns / NSEC_PER_USEC;
	c[PROFILE_WAITING_US] += t->waiting_ns / NSEC_PER_USEC;
	c[PROFILE_BLOCKED_US] += t->blocked_ns / NSEC_PER_USEC;
	c[PROFILE_STOPPED_US] += t->stopped_ns / NSEC_PER_USEC;
	c[PROFILE_UNKNOWN_US] += t->unknown_ns / NSEC_PER_USEC;
	c[PROFILE_NOT_SEEN_US] += t->not_seen_ns / NSEC_PER_USEC;
	switches_clear_totals(o->switches);
}

void off_cpu_close(struct off_cpu *o, uint64_t time_ns, bool pause)
{
	struct profile_type *t = &o->a->profile.types[o->blocks];

	take_gaps(o, time_ns);
	judge_proofs(o, time_ns);
	(pause ? switches_pause : switches_close)(o->switches, time_ns);
	if (pause || o->born_from_ns == UINT64_MAX)
		o->born_from_ns = time_ns;
	put_totals(o);
	if (o->wall)
		wall_time_fill(o->wall, o->blocks);
	if (t->samples.n > 1)
		qsort(t->samples.items, t->samples.n, sizeof(*t->samples.items), by_time);
	o->begin_ns = time_ns;
}
