/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/process/filter.h"
#include "src/process/message.h"
#include "src/profiler/attribute-internal.h"
#include "src/profiler/block-proofs.h"
#include "src/profiler/lock-places.h"
#include "src/profiler/module-rows.h"
#include "src/profiler/off-cpu-internal.h"
#include "src/profiler/walk.h"
#include "src/profiler/wall-time.h"
#include "src/sample/ledger.h"

#define MAX_THREADS	262144
#define MAX_KEYS	65536
#define MAX_STACK_BYTES (UINT64_C(32) << 20)
#define MAX_LOCKS	65536
#define MAX_SPANS	4096 /* of blocks that last, each 650 bytes */

#define MIN_FUTEX 4096

/* ---- Whose time is taken ---- */

/*
 * Ours is not: we run because others do. In captures of the host, the broker has no children but
 * our processes: a command that it starts is a task that is captured.
 */
static bool is_ours(const struct off_cpu *o, const struct host_process *p)
{
	return !o->a->setup->of_tasks &&
	       (p->pid == o->broker_pid || p->parent_pid == o->broker_pid);
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
	const struct switches_limits limits = {.threads = MAX_THREADS,
					       .keys = MAX_KEYS,
					       .notes = MAX_SPANS,
					       .stack_bytes = MAX_STACK_BYTES};
	struct switches_callbacks callbacks = {.tell = off_cpu_tell_wait,
					       .wants = wants,
					       .takes_note = off_cpu_takes_span,
					       .wants_stays = filter_is_empty(a->filter)};
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
	o->by_tid = a->setup->of_tasks || o->events[blocks].options.switch_fields.plain;
	o->other_numbers = a->setup->other_numbers && !o->by_tid;
	callbacks.longest_apart = wakeups != UINT32_MAX;
	o->broker_pid = (uint32_t)getppid();
	standing_init(&o->standing);
	o->scratch =
		malloc(sizeof(*o->scratch) + (SAMPLE_MAX_KERNEL_FRAMES + ATTRIBUTION_MAX_KEPT(a)) *
						     sizeof(*o->scratch->addresses));
	o->late_bytes = malloc(BLOCKED_MAX_BYTES);
	if (a->setup->events[blocks].options.wall)
		callbacks.tell_other = off_cpu_tell_other;
	if (!o->scratch || !o->late_bytes ||
	    (callbacks.tell_other && wall_time_new(&o->wall, a) < 0) ||
	    (wakeups != UINT32_MAX && lock_places_new(&o->locks, a, MAX_LOCKS) < 0) ||
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
		standing_deinit(&o->standing);
		block_proofs_free(o->proofs);
		switches_free(o->switches);
		lock_places_free(o->locks);
		wall_time_free(o->wall);
		free(o->late_bytes);
		free(o->scratch);
		free(o);
	}
	return NULL;
}

/* ---- Records ---- */

/* What may be a futex. */
static uint64_t object_of(uint64_t argument)
{
	return argument >= MIN_FUTEX && argument % 4 == 0 && argument >> 56 == 0 ? argument : 0;
}

/* As an initializer of all fields: a struct of this size that is cleared first, as compilers do,
 * costs more than the rest. */
static inline struct switch_out switch_of(const struct off_cpu *o, const struct record *r,
					  const struct sample_switch *sw)
{
	return (struct switch_out){
		.time_ns = r->time_ns,
		.sp = sw->sp,
		.ip = sw->ip,
		.id = o->by_tid ? r->tid : sw->prev_id,
		.pid = r->pid,
		.tid = r->tid,
		.cpu = r->cpu,
		.how = switch_how(sw->prev_state),
		.object = o->locks ? object_of(sw->argument) : 0,
		.spot = sw->spot,
	};
}

static void on_block(struct off_cpu *o, const struct record *r, const struct sample_switch *sw)
{
	const struct switch_out out = switch_of(o, r, sw);
	struct attribution *a = o->a;
	bool wants_stack;
	uint32_t n;

	a->counters[PROFILE_SAMPLES]++;
	if (o->events[o->blocks].options.switch_fields.plain && sw->has_program)
		o->spots[r->cpu % OFF_CPU_MAX_SPOTS] = out;
	if (!sw->has_program)
		return;
	wants_stack = switches_offer_stack(o->switches, &out);
	a->process = host_process_get(a->host, r->pid, r->tid, r->time_ns);
	a->time_ns = r->time_ns;
	off_cpu_see_span(o, r, &out);
	if (!wants_stack)
		return;
	n = attribution_walk_to_keep(a, r);
	off_cpu_tell_stack(o, r, &out, n);
	off_cpu_see_lock(o, &out);
}

/* Wake-ups name a thread by its number in the host's pid namespace, as its switches do, and all
 * other records by that in ours. */
static void note_number(struct off_cpu *o, const struct record *r, const struct sample_switch *sw)
{
	const struct number n = {sw->prev_id, r->tid};

	if (o->other_numbers && r->tid != 0)
		o->numbers[n.tid % OFF_CPU_MAX_NUMBERS] = n;
	else if (o->by_tid && o->locks)
		o->numbers[n.of_host % OFF_CPU_MAX_NUMBERS] = n;
}

static uint32_t id_of_number(const struct off_cpu *o, uint32_t number)
{
	const struct number *n = &o->numbers[number % OFF_CPU_MAX_NUMBERS];

	return o->by_tid && n->of_host == number ? n->tid : number;
}

/* 0: not known. */
static uint32_t id_of_tid(const struct off_cpu *o, uint32_t tid)
{
	const struct number *n = &o->numbers[tid % OFF_CPU_MAX_NUMBERS];

	if (!o->other_numbers)
		return tid;
	return n->tid == tid ? n->of_host : 0;
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
	stack = switches_waits(o->switches, id_of_number(o, id), &object, &pid);
	waker = host_process_get(a->host, r->pid, r->tid, r->time_ns);
	if (!stack || !object || !off_cpu_is_futex(stack->reason) || !waker || waker->pid != pid)
		return;
	a->process = waker;
	a->time_ns = r->time_ns;
	n = attribution_walk(a, r);
	a->frames[n++] = lock_places_frame(o->locks, waker, object);
	a->frames[n++] = attribution_marker(a, PROFILE_MARKER_WOKEN);
	off_cpu_tell_wakeup(o, r, n);
}

/* The first that is known of a thread is its start: what it does until its first switch counts. */
static void note_birth(struct off_cpu *o, const struct record *r, uint32_t id, bool running)
{
	struct born *b = &o->born[id % OFF_CPU_MAX_BORN];

	o->n_born += id != 0;
	o->n_born -= b->id != 0;
	*b = (struct born){id, r->pid, r->tid, r->time_ns, running};
}

static void forget_birth(struct off_cpu *o, struct born *b)
{
	o->n_born -= b->id != 0;
	b->id = 0;
}

__attribute__((noinline)) static void begin(struct off_cpu *o, uint32_t id, uint32_t cpu,
					    bool running)
{
	struct born *b = &o->born[id % OFF_CPU_MAX_BORN];

	if (b->running == running && b->time_ns >= o->born_from_ns)
		switches_begin(o->switches,
			       &(struct switch_out){.time_ns = b->time_ns,
						    .id = id,
						    .pid = b->pid,
						    .tid = b->tid,
						    .cpu = cpu},
			       running);
	forget_birth(o, b);
}

static inline void begin_if_born(struct off_cpu *o, uint32_t id, uint32_t cpu, bool running)
{
	if (o->n_born > 0 && o->born[id % OFF_CPU_MAX_BORN].id == id && id != 0)
		begin(o, id, cpu, running);
}

/* The last switches of a thread come behind its end: it does not wait for anything, and is not
 * another one that has been there all the time. */
static bool has_ended(const struct off_cpu *o, uint32_t id)
{
	return o->n_ended > 0 && o->ended[id % OFF_CPU_MAX_ENDED] == id;
}

static void note_end(struct off_cpu *o, uint32_t id, bool ended)
{
	uint32_t *place = &o->ended[id % OFF_CPU_MAX_ENDED], before = *place;

	if (ended)
		*place = id;
	else if (*place == id)
		*place = 0;
	o->n_ended += (*place != 0) - (before != 0);
}

static bool has_gap(const struct off_cpu *o)
{
	return o->ledger && ledger_has_gap(o->ledger, o->next_gap);
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

static void on_switch(struct off_cpu *o, const struct record *r)
{
	const struct sample_switch *sw = &r->sw;
	const struct switch_out out = switch_of(o, r, sw);

	if (has_gap(o))
		take_gaps(o, r->time_ns);
	o->a->counters[PROFILE_SAMPLES]++;
	note_number(o, r, sw);
	begin_if_born(o, out.id, r->cpu, true);
	if (has_ended(o, out.id))
		note_end(o, out.id, out.how != SWITCH_DEAD);
	else if (sw->has_program || out.how == SWITCH_DEAD)
		switches_out(o->switches, &out);
	if (o->a->setup->of_tasks)
		return;
	begin_if_born(o, sw->next_id, r->cpu, false);
	switches_in(o->switches, sw->next_id, r->cpu, r->time_ns);
}

/* A plain switch: a sample before it may have said where. */
static void on_switch_out(struct off_cpu *o, const struct record *r)
{
	struct switch_out *spot = &o->spots[r->cpu % OFF_CPU_MAX_SPOTS], out = *spot;

	if (r->tid == 0 || has_ended(o, r->tid))
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

static void on_sample(struct off_cpu *o, const struct record *r)
{
	struct sample_switch sw;

	if (has_gap(o))
		take_gaps(o, r->time_ns);
	if (r->index == o->wakeups)
		on_wakeup(o, r);
	else if (!sample_read_switch(&o->events[r->index].options, r, &sw))
		o->a->counters[PROFILE_RECORDS_BAD]++;
	else
		on_block(o, r, &sw);
}

static void begin_to_follow(struct off_cpu *o, uint64_t time_ns)
{
	o->follows = true;
	if (!o->begin_ns)
		o->begin_ns = time_ns;
	switches_follow(o->switches, time_ns);
}

/* It has another program now: neither its stacks nor its name are those of before. */
static void on_exec(struct off_cpu *o, const struct record *r, uint32_t id)
{
	switches_end(o->switches, id, r->time_ns);
	/* A thread that executes it takes the number of the first one, which has ended. */
	note_end(o, id, false);
	note_birth(o, r, id, true);
}

/* A thread begins, ends, or has another name. One that was not switched yet is not known here. */
static void on_life(struct off_cpu *o, const struct record *r)
{
	uint32_t id = id_of_tid(o, r->tid);

	if (r->type == RECORD_FORK) {
		note_end(o, id, false);
		note_birth(o, r, o->other_numbers ? 0 : r->tid, false);
	} else if (r->type == RECORD_EXIT) {
		struct born *b = &o->born[id % OFF_CPU_MAX_BORN];

		standing_end(&o->standing, r->tid);
		/* Its first switch was lost, or while nobody looked. */
		if (b->id == id && !b->running)
			forget_birth(o, b);
		if (o->events[o->blocks].options.switch_fields.plain ||
		    switches_knows(o->switches, id))
			note_end(o, id, true);
		switches_end(o->switches, id, r->time_ns);
		if (o->other_numbers) /* the next one with that number is another thread */
			o->numbers[r->tid % OFF_CPU_MAX_NUMBERS].tid = 0;
	} else if (r->type == RECORD_COMM && r->comm.exec) {
		on_exec(o, r, id);
	} else if (r->type == RECORD_COMM && !filter_is_empty(o->a->filter)) {
		/* Unless all names are wanted: a thread may change its own at will. */
		switches_tell(o->switches, id, r->time_ns);
	}
}

/* Apart, so that a switch does not pay for its locals. */
__attribute__((noinline)) static void on_other_record(struct off_cpu *o, const struct record *r)
{
	switch (r->type) {
	case RECORD_SAMPLE:
		if (r->index == o->blocks || r->index == o->wakeups)
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
	default:
		on_life(o, r);
		break;
	}
}

void off_cpu_record(struct off_cpu *o, const struct record *r)
{
	if (!o->follows)
		begin_to_follow(o, r->time_ns);
	off_cpu_judge(o, r->time_ns);
	if (r->type == RECORD_SWITCH)
		on_switch(o, r);
	else
		on_other_record(o, r);
}

void off_cpu_renamed(struct off_cpu *o, const struct record *r)
{
	const struct switch_out out = {.time_ns = r->time_ns,
				       .id = id_of_tid(o, r->tid),
				       .pid = r->pid,
				       .tid = r->tid,
				       .cpu = r->cpu};

	if (out.id)
		switches_judge(o->switches, &out);
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

uint32_t off_cpu_enough_stacks(struct off_cpu *o)
{
	return switches_enough_stacks(o->switches);
}

bool off_cpu_places_known(struct off_cpu *o, uint64_t time_ns)
{
	const struct setup_profiler *setup = o->a->setup;

	if (setup->capture || setup->live || o->wakeups != UINT32_MAX || o->a->n_spans > 0 ||
	    o->events[o->blocks].options.switch_fields.plain)
		return false;
	return switches_places_known(o->switches, time_ns);
}

void off_cpu_lost_lives(struct off_cpu *o)
{
	memset(o->ended, 0, sizeof(o->ended));
	o->n_ended = 0;
	o->n_dropped += standing_clear(&o->standing);
}

static int by_time(const void *a, const void *b)
{
	const struct profile_sample *x = a, *y = b;

	return (x->time_unix_ns > y->time_unix_ns) - (x->time_unix_ns < y->time_unix_ns);
}

void off_cpu_close(struct off_cpu *o, uint64_t time_ns, bool pause)
{
	struct profile_type *t = &o->a->profile.types[o->blocks];

	take_gaps(o, time_ns);
	off_cpu_judge(o, time_ns);
	(pause ? switches_pause : switches_close)(o->switches, time_ns);
	if (pause || o->born_from_ns == UINT64_MAX)
		o->born_from_ns = time_ns;
	o->follows &= !pause;
	off_cpu_put_totals(o);
	if (o->wall)
		wall_time_fill(o->wall, o->blocks);
	if (t->samples.n > 1)
		qsort(t->samples.items, t->samples.n, sizeof(*t->samples.items), by_time);
	o->begin_ns = time_ns;
}
