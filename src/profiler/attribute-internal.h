/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside of the attribution: its state, and what attribute.c asks of the files beside it. */
#include <stdio.h>

#include "src/host/host.h"
#include "src/profiler/allocations.h"
#include "src/profiler/attribute.h"
#include "src/profiler/code-unwinding.h"
#include "src/profiler/known-frames.h"
#include "src/profiler/off-cpu.h"
#include "src/profiler/outside.h"
#include "src/profiler/pending.h"
#include "src/profiler/process-said.h"
#include "src/profiler/readers.h"
#include "src/profiler/replay.h"
#include "src/profiler/residents.h"
#include "src/profiler/runtimes.h"
#include "src/profiler/switches.h"
#include "src/sample/sample.h"
#include "symbolize/alloc-place.h"
#include "unwind/unwind.h"
#include "util/array.h"
#include "util/log.h"
#include "util/time-share.h"

#define MAX_SET_ASIDE 256

/* What hangs on a host_file. */
struct file_state {
	struct unwind_module *module;  /* NULL: not readable */
	struct file_identity identity; /* ino 0: not known */
	const char *path;	       /* the host_file's */
	uint64_t window;	       /* row is of this window */
	uint32_t row, sent_generation;
	uint32_t pid; /* of the process it was opened through */
	bool tried, was_sent;
	bool allocator_tried;		/* to find the next */
	struct alloc_places *allocator; /* NULL: it has none of its own */
	bool go_known;			/* go_version is */
	uint32_t go_version;		/* of a program whose goroutines may have labels */
	uint64_t again_window; /* last one in which it was opened for a symbolizer without it */
};

/* What hangs on a host_process. */
struct process_state {
	uint64_t window;
	uint32_t row, jit_row;
	strid comm, path; /* of row: another one when these changed */
	const struct host_cgroup *cgroup;
	struct process_said said;
	uint32_t said_version; /* of row */
	/* For the filter. */
	bool has_uid;
	uint32_t uid;
	uint64_t uid_time_ns; /* of the record at which it was asked for; 0: never */
	uint64_t resident_ns; /* not before then it is looked at again for its memory */
	/* Of the file behind jitdump_fd of the process. NULL: none was opened. */
	char *jitdump_path;
	struct file_identity jitdump;
	uint32_t n_execs;		 /* of the process, when these were looked for: */
	struct process_runtime *runtime; /* NULL: it has none, or is not known to have one */
	uint32_t n_runtime_mappings;	 /* so many it had when that was looked for */
	/* The same of the allocation library, and when. */
	uint32_t n_library_mappings;
	uint64_t library_window;
	struct interpreter *interpreter; /* the same of one that the readers read */
	uint32_t n_interpreter_mappings;
	struct sample_span *span; /* of contexts of its threads; NULL: it has none */
	/* Of the program after so many execs, with so many mappings. */
	uint32_t go_version, n_go_execs, n_go_mappings;
};

struct attribution {
	struct role *role;
	struct outside outside;
	const struct filter *filter;
	struct replay *replay; /* NULL: the host is live */
	const struct setup_profiler *setup;
	struct host *host;
	struct sayings sayings;
	strid labels; /* of the sample being taken: its span */
	struct unwinder *unwinder;
	struct unwind_module *vdso;
	struct code_unwinding *code;
	struct runtimes *runtimes; /* NULL: of a file, there is no memory to be read */
	struct readers *readers;   /* borrowed; NULL: no interpreter is read */
	struct frame_source readers_source;
	struct profile profile;
	uint64_t window, next_jit_uid, regs_mask;
	uint64_t page_bytes; /* of a plain page */
	bool frame_pointers; /* user stacks are the kernel's callchains */
	bool foreign_vdso;   /* the processes had another than this one */
	bool other_clock;    /* the times of records are not CLOCK_MONOTONIC's of this host */
	/* By event: a sample stands for as many events as its record says. */
	bool weighted[SAMPLE_MAX_EVENTS];
	uint64_t *counters; /* of the type of the record that is being taken */
	/* Of switches, which are no type of the profile. */
	uint64_t switch_counters[PROFILE_N_COUNTERS];
	struct off_cpu *off_cpu;	 /* NULL: it is not asked for */
	struct allocations *allocations; /* NULL: the same */
	struct residents *residents;	 /* NULL: the same */
	uint32_t kernel_row, none_row, marker_row,
		vdso_row; /* PROFILE_NONE: not in this window yet */
	uint32_t max_frames;
	struct stack_size *stack_size;	/* borrowed; NULL: it is not adapted */
	uint32_t symbolizer_generation; /* of the one there is */
	uint64_t refused_told;		/* by the tables of the host */
	struct log_ratelimit refused;
	struct unwind_frame *walked;
	uint32_t *frames;
	/* Of walked, which are in frames behind the kernel's; and their stack pointers apart. */
	uint32_t n_walked;
	uint64_t *sps;
	/* Of attribution_walk_to_keep(): addresses, and numbers of runtimes' frames, each for a
	 * row of frames. */
	uint64_t *kept;
	uint32_t n_kept;
	bool keeping;
	struct known_frames *known_frames;
	const struct frame_source *source; /* borrowed; NULL: there are native frames alone */
	struct joiner joiner;
	struct pending *pending;
	/* Of the sample being walked, for the find callback. */
	struct host_process *process;
	uint64_t time_ns, trimmed_ns;
	/* What the symbolizer needs for this window. */
	ARRAY(struct handover_item) items;
	/* For what is looked for in programs and their memory, beside the walk. */
	struct time_share look_share;
	/* Files that are not for the symbolizer any more: a ring, the oldest goes first. */
	struct file_identity set_aside[MAX_SET_ASIDE];
	uint32_t n_set_aside;
};

/*
 * Of spans.c: the labels of the span that a sample of p was in, as its thread said then; "": it
 * said nothing.
 */
strid attribution_span(struct attribution *a, const struct record *r, struct host_process *p);
/*
 * Of goroutines.c: for go_layout_find(), of a process whose goroutines may have labels; 0: of
 * others. Lets the readers read them: false: not now. And the labels that they have read.
 */
uint32_t attribution_go_version(struct attribution *a, struct host_process *p,
				struct process_state *s);
bool attribution_read_goroutines(struct attribution *a, const struct host_process *p,
				 struct process_state *s);
void attribution_put_goroutine(const struct attribution *a, FILE *out, const uint8_t *bytes,
			       uint32_t n);
void attribution_free_span(struct attribution *a, struct process_state *s);

/* Of attribute-state.c: what the attribution keeps of a process, made at first sight; NULL without
 * memory. Borrowed: it lives as long as p. */
struct process_state *attribution_process_state(struct host_process *p);
/* For host_limits: frees what hangs on a file, and on a process. */
void attribution_free_file(void *ctx, struct host_file *file);
void attribution_free_process(void *ctx, struct host_process *process);

/* Of attribute-types.c: the types of a window that begins. */
void attribution_put_types(struct attribution *a);
/* The counters of the type of an event; borrowed. */
uint64_t *attribution_counters_of(struct attribution *a, uint32_t event);
/* What a sample adds to its type. One of an event of bytes stands for so many pages of its page's
 * size. */
int64_t attribution_sample_value(const struct attribution *a, const struct record *r);

/* Of attribute-who.c: whether the filter lets a sample of p pass. */
bool attribution_wants(struct attribution *a, const struct record *r, struct host_process *p);
/* The row of its thread; PROFILE_NONE where it does not fit. p NULL: it is not known. */
uint32_t attribution_thread_row(struct attribution *a, const struct record *r,
				struct host_process *p);
/* The row of a process, as of its last sample. */
uint32_t attribution_process_row(struct attribution *a, struct host_process *p);

/*
 * Around a look at what a program is, which its owner may have made expensive: the rings wait for
 * it. false: looks have had their share of the time, so this one has to wait.
 */
bool attribution_begin_look(struct attribution *a);
void attribution_end_look(struct attribution *a);
