/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtimes/stepper.h"
#include "src/profiler/process-memory.h"
#include "src/profiler/runtimes.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/time-share.h"

enum {
	MAX_PROCESSES = 256, /* each has a descriptor open */
	/* Of one walk. A deep stack of code never seen takes more: what is learned is kept, and a
	 * later sample of it gets further. */
	MAX_READS = 2000,
	MAX_BYTES = 8 << 20, /* V8 is read by pages */
	MAX_INLINED = 64,
	SHARE_PERCENT = 5, /* of each CPU, */
	MAX_PERCENT = 40,  /* of this process */
	DEAD_AFTER = 64,   /* frames in vain, */
};
#define DEAD_NS NSEC_PER_SEC /* and so much time: a collector moves much at once */

struct process_runtime {
	struct runtimes *all;
	struct process_memory memory;
	uint64_t image;
	struct stepper *stepper; /* NULL: not understood yet */
	uint32_t n_vain;
	uint64_t proven_ns; /* when a frame was, or it was opened */
	bool hopeless;	    /* none is known there, not understood, or not permitted */
};

struct runtimes {
	struct memory_source source;
	uint32_t n_processes;
	struct time_share share;
	bool walking, refused; /* this walk reads; its share is spent */
	uint64_t began_ns;     /* when it began to read */
	/* Of the walk. */
	bool called_own; /* as in struct runtime_regs, after the last step */
	struct {
		struct stepped_frame frame;
		uint32_t index;
		bool is_nothing; /* it stands for no function */
	} frames[FRAME_SOURCE_MAX_FRAMES];
	uint32_t n, next;
	struct stepper *stepper;
	struct runtime_frame answer[MAX_INLINED];
	enum profile_marker marker;
};

static uint32_t share_percent(uint32_t n_cpus)
{
	return n_cpus >= MAX_PERCENT / SHARE_PERCENT ? MAX_PERCENT
	       : n_cpus > 1			     ? n_cpus * SHARE_PERCENT
						     : SHARE_PERCENT;
}

int runtimes_new(struct runtimes **ret, const struct memory_source *source, uint32_t n_cpus)
{
	struct runtimes *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->source = *source;
	r->share.percent = share_percent(n_cpus);
	r->share.save_ns = NSEC_PER_SEC;
	r->marker = PROFILE_N_MARKERS;
	*ret = r;
	return 0;
}

struct runtimes *runtimes_free(struct runtimes *r)
{
	free(r);
	return NULL;
}

struct process_runtime *runtimes_add_process(struct runtimes *r, uint32_t pid, uint64_t image,
					     uint32_t major, uint32_t minor)
{
	struct process_runtime *p = NULL;

	if (r->n_processes < MAX_PROCESSES)
		p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	*p = (struct process_runtime){.all = r, .image = image};
	process_memory_init(&p->memory, &r->source, pid, image, major, minor);
	r->n_processes++;
	return p;
}

struct process_runtime *runtimes_free_process(struct runtimes *r, struct process_runtime *p)
{
	if (p) {
		if (r->stepper && r->stepper == p->stepper)
			r->n = 0;
		stepper_free(p->stepper);
		process_memory_deinit(&p->memory);
		free(p);
		r->n_processes--;
	}
	return NULL;
}

bool runtimes_see_thread(struct process_runtime *p)
{
	bool its_own = p->stepper && stepper_has_own_threads(p->stepper);

	if (its_own)
		process_memory_grows(&p->memory);
	return its_own;
}

/* ---- Processes ---- */

static void give_up(struct process_runtime *p, const char *why)
{
	process_memory_leave(&p->memory);
	if (p->hopeless)
		return;
	p->hopeless = true;
	log_debug("process %u: frames of its runtime are not read: %s", p->memory.pid, why);
}

static bool is_open(struct process_runtime *p)
{
	const struct memory memory = {.read = process_memory_read, .ctx = &p->memory};
	const char *why;
	int r;

	if (p->stepper)
		return true;
	if (!process_memory_try(&p->memory)) {
		if (p->memory.refused && !p->hopeless)
			give_up(p, "its memory may not be read");
		return false;
	}
	r = stepper_new(&p->stepper, &memory, p->image, &why);
	/* While a loader maps a library, other bytes stand in its place: a later attempt may find
	 * it. */
	if ((r == -ENOTSUP || r == -ENOENT) && process_memory_is_loaded(&p->memory))
		give_up(p, r == -ENOENT ? "there is none in it" : why);
	if (r != 0)
		return false;
	p->hopeless = false;
	p->proven_ns = p->all->began_ns;
	log_debug("process %u: %s %s%s", p->memory.pid, stepper_name(p->stepper),
		  stepper_release(p->stepper),
		  stepper_is_tried(p->stepper) ? "" : ", an untested version");
	return true;
}

/* The process is another program by now: it does without until it is looked at anew. */
static void count_vain(struct process_runtime *p)
{
	if (++p->n_vain < DEAD_AFTER || p->all->began_ns - p->proven_ns < DEAD_NS)
		return;
	p->n_vain = 0;
	if (p->all->stepper == p->stepper) {
		p->all->stepper = NULL;
		p->all->n = 0;
	}
	p->stepper = stepper_free(p->stepper);
	process_memory_leave(&p->memory);
}

static void set_proven(struct process_runtime *p)
{
	p->n_vain = 0;
	p->proven_ns = p->all->began_ns;
	process_memory_keep(&p->memory);
}

/* ---- The walk ---- */

void runtimes_begin(struct runtimes *r)
{
	r->n = r->next = 0;
	r->stepper = NULL;
	r->refused = false;
	r->marker = PROFILE_N_MARKERS;
}

void runtimes_end(struct runtimes *r)
{
	if (r->walking)
		time_share_end(&r->share, clock_monotonic_ns());
	r->walking = false;
}

/* False: this walk must do without. */
static bool may_walk(struct runtimes *r, struct process_runtime *p)
{
	if (r->walking)
		return true;
	r->began_ns = clock_monotonic_ns();
	if (r->refused || !time_share_begin(&r->share, r->began_ns)) {
		r->refused = true;
		return false;
	}
	r->walking = true;
	if (p->stepper)
		stepper_begin(p->stepper, MAX_READS, MAX_BYTES);
	return true;
}

static void keep(struct runtimes *r, size_t index, const struct stepped_frame *frames, size_t n)
{
	bool is_nothing = !stepper_has_functions(r->stepper);

	/* A walk that starts over. */
	while (r->n > 0 && r->frames[r->n - 1].index >= index)
		r->n--;
	for (size_t i = 0; i < n && r->n < FRAME_SOURCE_MAX_FRAMES; i++) {
		r->frames[r->n].frame = frames[i];
		r->frames[r->n].is_nothing = is_nothing;
		r->frames[r->n++].index = (uint32_t)index;
	}
}

static enum unwind_answer end(struct runtimes *r, enum profile_marker marker,
			      enum unwind_outcome outcome, enum unwind_outcome *ret_outcome)
{
	r->marker = marker;
	*ret_outcome = outcome;
	return UNWIND_ENDED;
}

/* The frame is not read. Where frame pointers lead on, the walk goes on without names. */
static enum unwind_answer do_without(struct runtimes *r, const struct process_runtime *p,
				     enum unwind_outcome *ret_outcome)
{
	enum unwind_answer answer = end(r, PROFILE_MARKER_RUNTIME_LATE, UNWIND_NO_CFI, ret_outcome);

	return p->stepper && !stepper_has_frame_pointers(p->stepper) ? answer : UNWIND_NOT_MINE;
}

/* May its runtime have the code, as far as that is known? */
static bool may_be_its(const struct process_runtime *p, const struct unwind_foreign *frame,
		       uint64_t pc)
{
	if (p->stepper)
		return stepper_may_have(p->stepper, pc);
	return !p->hopeless && !frame->file_end;
}

enum unwind_answer runtimes_step(struct runtimes *r, struct process_runtime *p,
				 const struct unwind_foreign *frame, struct unwind_regs *regs,
				 enum unwind_outcome *ret_outcome, uint64_t *ret_missing)
{
	const struct runtime_stack stack = {frame->stack, frame->start, frame->n_stack,
					    ret_missing};
	struct runtime_regs now = {
		.pc = regs->r[UNWIND_REG_PC],
		.sp = regs->r[UNWIND_REG_SP],
		.innermost = frame->innermost,
		.called_own = !frame->by_cfi && r->called_own,
		.file_start = frame->file_start,
		.file_end = frame->file_end,
	};
	struct stepped_frame frames[MAX_INLINED];
	enum runtime_step step;
	uint64_t unproven;
	size_t n;

	if (!may_walk(r, p) || !is_open(p))
		return may_be_its(p, frame, now.pc) ? do_without(r, p, ret_outcome)
						    : UNWIND_NOT_MINE;
	if (!stepper_may_have(p->stepper, now.pc))
		return UNWIND_NOT_MINE;
	for (unsigned int i = 0; i < UNWIND_N_REGS; i++)
		now.r[i] = regs->valid & UNWIND_REG_BIT(i) ? regs->r[i] : 0;
	now.fp = now.r[UNWIND_REG_FP];
	unproven = stepper_unproven(p->stepper);
	step = stepper_step(p->stepper, &stack, &now, frames, MAX_INLINED, &n);
	if (step == RUNTIME_NOT_MINE)
		return UNWIND_NOT_MINE;
	if (step == RUNTIME_SPENT && stepper_has_frame_pointers(p->stepper))
		return do_without(r, p, ret_outcome);
	r->stepper = p->stepper;
	if (!stepper_has_functions(p->stepper) && step == RUNTIME_STEP)
		frames[n++] = (struct stepped_frame){.line = 0};
	keep(r, frame->n, frames, n);
	if (stepper_unproven(p->stepper) != unproven)
		count_vain(p);
	else if (n > 0)
		set_proven(p);
	switch (step) {
	case RUNTIME_STEP:
		r->called_own = now.called_own;
		regs->r[UNWIND_REG_PC] = now.pc;
		regs->r[UNWIND_REG_SP] = now.sp;
		regs->r[UNWIND_REG_FP] = now.fp;
		regs->valid |= UNWIND_REG_BIT(UNWIND_REG_FP);
		return UNWIND_STEPPED;
	case RUNTIME_TRUNCATED:
		*ret_outcome = UNWIND_TRUNCATED;
		return UNWIND_ENDED;
	case RUNTIME_ELSEWHERE:
		return end(r, PROFILE_MARKER_RUNTIME_ELSEWHERE, UNWIND_NO_CFI, ret_outcome);
	case RUNTIME_SPENT:
		return do_without(r, p, ret_outcome);
	default:
		return end(r, PROFILE_MARKER_RUNTIME_UNPROVEN, UNWIND_NO_CFI, ret_outcome);
	}
}

static void go_to(struct runtimes *r, size_t index)
{
	while (r->next < r->n && r->frames[r->next].index < index)
		r->next++;
}

bool runtimes_is_nothing(struct runtimes *r, size_t index)
{
	go_to(r, index);
	return r->next < r->n && r->frames[r->next].index == index && r->frames[r->next].is_nothing;
}

const struct runtime_frame *runtimes_frames(struct runtimes *r, size_t index, size_t *ret_n)
{
	size_t n = 0;

	go_to(r, index);
	for (; r->stepper && r->next < r->n && r->frames[r->next].index == index &&
	       !r->frames[r->next].is_nothing && n < MAX_INLINED;
	     r->next++) {
		const struct stepped_frame *f = &r->frames[r->next].frame;

		r->answer[n++] = (struct runtime_frame){
			.runtime = profile_runtime_of(stepper_kind(r->stepper)),
			.function = stepper_text(r->stepper, f->function),
			.file = stepper_text(r->stepper, f->file),
			.line = f->line,
			.start_line = f->start_line,
		};
	}
	*ret_n = n;
	return r->answer;
}

enum profile_marker runtimes_marker(const struct runtimes *r)
{
	return r->marker;
}
