/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Shared by the files of off-cpu.h: off-cpu.c takes records and closes the window, off-cpu-stacks.c
 * keeps stacks of blocks, off-cpu-late.c reads more of them and
 * asks about standing threads, off-cpu-spans.c finds their spans, and
 * off-cpu-samples.c makes samples.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/profile/profile.h"
#include "src/profiler/block-proofs.h"
#include "src/profiler/off-cpu.h"
#include "src/profiler/standing.h"
#include "src/profiler/switches.h"
#include "src/sample/sample.h"

#define OFF_CPU_MAX_SPOTS   256
#define OFF_CPU_MAX_ENDED   8192
#define OFF_CPU_MAX_BORN    8192
#define OFF_CPU_MAX_ASKED   256
#define OFF_CPU_MAX_NUMBERS 8192

/* Of programs that tell their spans. */
enum off_cpu_span_of {
	OFF_CPU_SPAN_LINKED,
	OFF_CPU_SPAN_OUTSIDE,
	OFF_CPU_SPAN_UNPROVEN,
	OFF_CPU_N_SPANS_OF
};

struct off_cpu {
	struct attribution *a;
	struct switches *switches;
	struct block_proofs *proofs;
	const struct setup_event *events;
	/* Indexes of the events: each switch; those with a stack; wake-ups (UINT32_MAX: none). */
	uint32_t all, blocks, wakeups;
	bool by_tid; /* threads are told apart by numbers of our pid namespace, not of the host's */
	/* Not by_tid, and the two differ: all but its switches come under a thread's number in our
	 * namespace, which another thread may have in the host's. */
	bool other_numbers;
	struct lock_places *locks; /* NULL: nobody asks for locks */
	struct wall_time *wall;	   /* NULL: nor for wall time */
	uint64_t begin_ns;	   /* of the window */
	bool follows;		   /* no pause since the last record */
	uint32_t broker_pid;
	const struct ledger *ledger;   /* NULL: nobody stops the events */
	uint64_t next_gap, gap_end_ns; /* of its gaps; up to where they were told */
	struct switch_stack *scratch;
	uint8_t *late_bytes; /* scratch */
	struct standing standing;
	uint64_t standing_ns; /* when it was asked about some of them */
	uint32_t n_dropped;   /* of them */
	/* Plain switches: the last place that was sampled on a CPU, by its number. */
	struct switch_out spots[OFF_CPU_MAX_SPOTS];
	/* Threads whose end was told, by their number: their last switch is still to come. */
	uint32_t ended[OFF_CPU_MAX_ENDED], n_ended;
	/* Threads that have not run yet, and those that have just executed a program, by their
	 * number: of those from then on, for some switches before are missing. */
	struct born {
		uint32_t id, pid, tid; /* id 0: free */
		uint64_t time_ns;
		bool running;
	} born[OFF_CPU_MAX_BORN];
	uint32_t n_born; /* mostly none, so that a switch does not look: that misses the caches */
	uint64_t born_from_ns;
	/* Both numbers of threads that were switched: by that of the host, which wake-ups name, or
	 * with other_numbers by tid. */
	struct number {
		uint32_t of_host, tid;
	} numbers[OFF_CPU_MAX_NUMBERS];
	/* Blocks whose spans were asked for: a ring. */
	struct switch_out asked[OFF_CPU_MAX_ASKED];
	uint32_t next_asked;
	uint64_t span_ns[OFF_CPU_N_SPANS_OF]; /* of blocks that were told in this window */
};

static inline bool off_cpu_is_futex(uint32_t reason)
{
	return reason == PROFILE_MARKER_WAIT_LOCK || reason == PROFILE_MARKER_WAIT_CONDITION;
}

/* ---- off-cpu-samples.c ---- */

/* For the table of waits (struct switches_callbacks); ctx: the struct off_cpu. */
void off_cpu_tell_wait(void *ctx, const struct switch_wait *w);
void off_cpu_tell_other(void *ctx, const struct switch_other *other);
/* Adds a wake-up, whose stack is the first n frames of the attribution. */
void off_cpu_tell_wakeup(struct off_cpu *o, const struct record *r, uint32_t n);
/* Adds the totals of the table of waits to the window's counters, and clears them. */
void off_cpu_put_totals(struct off_cpu *o);

/* ---- off-cpu-spans.c ---- */

/* Notes the span of a block that was sampled, in the attribution's process. */
void off_cpu_see_span(struct off_cpu *o, const struct record *r, const struct switch_out *out);
/* The labels with the span of a wait in the attribution's process, whose time is counted by what is
 * known of its span; "": none. */
strid off_cpu_take_span(struct off_cpu *o, const struct switch_wait *w);
/* Asks for the spans of threads that have been blocked for min_ns. */
void off_cpu_ask_spans(struct off_cpu *o, uint64_t time_ns, uint64_t min_ns);
/* For the table of waits; ctx: the struct off_cpu. */
bool off_cpu_takes_span(void *ctx, const struct switch_out *block);

/* ---- off-cpu-stacks.c ---- */

/* Copies the stack of the last attribution_walk_to_keep() to o->scratch, as addresses that outlive
 * the window. */
void off_cpu_keep_stack(struct off_cpu *o, const struct record *r, enum profile_marker marker,
			enum profile_marker reason);
/* Gives a block the stack of the last walk, which had n frames with its markers, and, if an
 * interpreter has frames for it, another one with these. */
void off_cpu_tell_stack(struct off_cpu *o, const struct record *r, const struct switch_out *out,
			uint32_t n);
/* Judges the stacks that were read behind their switches, after all switches before time_ns. */
void off_cpu_judge_proofs(struct off_cpu *o, uint64_t time_ns);
/* The same, at each record: there is seldom one. */
static inline void off_cpu_judge(struct off_cpu *o, uint64_t time_ns)
{
	if (block_proofs_are_due(o->proofs, time_ns))
		off_cpu_judge_proofs(o, time_ns);
}
/* Notes the lock that a block waits for; its stack is in o->scratch. */
void off_cpu_see_lock(struct off_cpu *o, const struct switch_out *block);
