/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside of the attribution: its state, and the functions of the files beside attribute.c. */
#include <stdio.h>

#include "src/host/host.h"
#include "src/profile/labels.h"
#include "src/profiler/allocations.h"
#include "src/profiler/attribute.h"
#include "src/profiler/blocked-chains.h"
#include "src/profiler/code-unwinding.h"
#include "src/profiler/every-nth.h"
#include "src/profiler/go-program.h"
#include "src/profiler/join.h"
#include "src/profiler/known-frames.h"
#include "src/profiler/off-cpu.h"
#include "src/profiler/outside.h"
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

/* What the attribution keeps of a host_file. */
struct file_state {
	struct unwind_module *module;  /* NULL: not readable */
	struct file_identity identity; /* ino 0: unknown */
	const char *path;	       /* the host_file's; borrowed */
	uint64_t window;	       /* the window that row belongs to */
	uint32_t row, sent_generation;
	uint32_t pid; /* the process that it was opened through */
	bool tried, was_sent;
	bool allocator_tried;		/* its allocator was looked for */
	struct alloc_places *allocator; /* NULL: it has none of its own */
	unsigned int marks; /* enum runtime_use, by its contents; 0 if its name says it */
	bool go_known;	    /* go is set */
	struct go_program go;
	uint64_t again_window; /* the last one in which it was opened for a new symbolizer */
};

/* What the attribution keeps of a host_process. */
struct process_state {
	uint64_t window; /* the window that row and jit_row belong to */
	uint32_t row, jit_row;
	strid comm, path; /* as in row; if they change, there is another row */
	uint32_t n_names; /* of the process when it had these */
	const struct host_cgroup *cgroup;
	struct process_said said;
	uint32_t said_version; /* as in row */
	/* For the filter. */
	bool has_uid;
	uint32_t uid;
	uint64_t uid_time_ns; /* the time of the record at which uid was read; 0: never */
	uint64_t resident_ns; /* the earliest time of the next look at its memory */
	/* Of the file behind jitdump_fd of the process. NULL: none was opened. */
	char *jitdump_path;
	struct file_identity jitdump;
	/* How many execs and mappings the process had, and n_marked was, when each of these was
	 * last looked for. */
	uint32_t n_execs;
	struct process_runtime *runtime; /* NULL: it has none, or none was found */
	uint32_t n_runtime_mappings, n_runtime_marked;
	uint32_t n_library_mappings;	 /* of the allocation library */
	uint64_t library_window;	 /* the window of that look */
	struct interpreter *interpreter; /* which the readers read; NULL: none */
	bool not_read;			 /* they have no room for it, which is counted */
	bool interpreter_left_out;	 /* it has one, but there are too many: */
	uint64_t left_out_ns;		 /* at the time of this sample */
	bool interpreter_hidden;	 /* it has one that exports nothing */
	bool interpreter_second;	 /* it has another one beside those that are read */
	struct blocked_chain *blocked;	 /* the same, in blocked threads; NULL: none */
	uint32_t n_interpreter_mappings, n_interpreter_marked;
	struct sample_span *span; /* of contexts of its threads; NULL: it has none */
	uint32_t go_version, n_go_execs, n_go_mappings;
	uint64_t go_cycle; /* where it counts the cycles of its garbage collector; 0: not known */
};

struct attribution {
	struct role *role;
	struct outside outside;
	const struct filter *filter;
	struct replay *replay; /* NULL: the host is live */
	const struct setup_profiler *setup;
	struct host *host;
	struct sayings sayings;
	strid labels;		       /* the span of the sample at hand */
	uint32_t n_spans;	       /* processes that tell their spans */
	uint64_t n_labels_refused;     /* samples that lack some of their labels */
	uint64_t labels_told;	       /* how many of them the log has */
	uint64_t n_not_read;	       /* processes, because the readers have no room */
	uint32_t n_marked;	       /* files with marks, so far */
	uint64_t newest_runtime_ns;    /* when one began, or was found, that is read */
	uint32_t forked[16], n_forked; /* children of interpreters in this drain */
	struct log_ratelimit not_read, refused_labels, go_versions;
	struct unwinder *unwinder;
	struct unwind_module *vdso;
	struct code_unwinding *code;
	struct runtimes *runtimes; /* NULL: a file is replayed, so there is no memory to read */
	struct readers *readers;   /* borrowed; NULL: no interpreter is read */
	struct frame_source readers_source;
	struct blocked_chains *blocked; /* NULL: nor in blocked threads */
	struct profile profile;
	uint64_t window, next_jit_uid, regs_mask;
	uint64_t page_bytes; /* of a plain page */
	bool frame_pointers; /* user stacks are the kernel's callchains */
	bool foreign_vdso;   /* the processes had another vdso than this one */
	bool other_clock;    /* record times are not this host's CLOCK_MONOTONIC */
	/* By event: a sample stands for as many events as its record says. */
	bool weighted[SAMPLE_MAX_EVENTS];
	struct every_nth picks[SAMPLE_MAX_EVENTS];
	uint64_t *counters; /* of the type of the record at hand */
	/* Of switches, which are no type of the profile. */
	uint64_t switch_counters[PROFILE_N_COUNTERS];
	struct off_cpu *off_cpu; /* these three are NULL if they are not wanted */
	struct allocations *allocations;
	struct residents *residents;
	/* PROFILE_NONE: not in this window yet. */
	uint32_t kernel_row, none_row, marker_row, vdso_row;
	uint32_t max_frames;
	struct stack_size *stack_size;	/* borrowed; NULL: the size does not adapt */
	uint32_t symbolizer_generation; /* of the symbolizer that runs */
	uint64_t refused_told;		/* how many refusals of the host's tables the log has */
	struct log_ratelimit refused;
	struct unwind_frame *walked;
	uint32_t *frames;
	/* Of walked, whose rows follow the kernel's in frames; and their stack pointers. */
	uint32_t n_walked;
	uint64_t *sps;
	/* By attribution_walk_to_keep(): addresses, and numbers of runtimes' frames, one for each
	 * row of frames. */
	uint64_t *kept;
	uint32_t n_kept;
	bool keeping;
	struct known_frames *known_frames;
	const struct frame_source *source; /* borrowed; NULL: only native frames */
	struct joiner joiner;
	/* Of the sample being walked, for the find callback. */
	struct host_process *process;
	uint64_t time_ns, trimmed_ns;
	/* What the symbolizer needs for this window. */
	ARRAY(struct handover_item) items;
	/* The share of time for looks at programs and their memory outside of the walk. */
	struct time_share look_share;
	/* Files that the symbolizer must not read: a ring, a new one replaces the oldest. */
	struct file_identity set_aside[MAX_SET_ASIDE];
	uint32_t n_set_aside;
};

/* ---- spans.c ---- */

/* The labels of the span that a sample of p was in, as its thread published it then; "": it
 * published none. */
strid attribution_span(struct attribution *a, const struct record *r, struct host_process *p);
/* The same in two steps: what the thread had published, in *ret_n bytes; 0: it was in no span.
 * false: that was not read in time. *ret_read_ns: until when it was read, of a thread that
 * blocks. */
bool attribution_read_span(struct attribution *a, const struct record *r, struct host_process *p,
			   uint8_t ret[THREAD_CONTEXT_MAX_BYTES], uint32_t *ret_n,
			   uint64_t *ret_read_ns);
/* What p's threads publish is read. */
bool attribution_tells_spans(const struct host_process *p);
/* p's threads publish their spans, whether these are read or not. */
bool attribution_says_spans(const struct host_process *p);
/* The labels of n bytes, n > 0. false: they are none of p's. */
bool attribution_span_labels(struct attribution *a, const struct host_process *p,
			     const uint8_t *bytes, uint32_t n, strid *ret, bool *ret_has_span);
void attribution_free_span(struct attribution *a, struct process_state *s);

/* ---- goroutines.c ---- */

/* The version for go_layout_find() of a process whose goroutines may have labels; 0: they have
 * none. */
uint32_t attribution_go_version(struct attribution *a, struct host_process *p,
				struct process_state *s);
/* Lets the readers read the process. The program's file, borrowed; NULL: they cannot now. */
const struct host_file_key *attribution_let_read_goroutines(struct attribution *a,
							    const struct host_process *p,
							    struct process_state *s);
/* Adds labels that the readers have read (n bytes, as in runtimes/go.h). */
void attribution_put_goroutine(const struct attribution *a, struct label_set *set,
			       const uint8_t *bytes, uint32_t n);

/* ---- attribute-state.c ---- */

/* What the attribution keeps of a process, made at first sight. Borrowed for the life of p. NULL:
 * no memory. */
struct process_state *attribution_process_state(struct host_process *p);
/* The process has no interpreter, or another one. */
void attribution_free_interpreter(struct attribution *a, struct process_state *s);
/* For host_limits: free what the attribution keeps of a file, and of a process. */
void attribution_free_file(void *ctx, struct host_file *file);
void attribution_free_process(void *ctx, struct host_process *process);

/* ---- attribute-types.c ---- */

/* Adds the types of events to a window that begins. */
void attribution_put_types(struct attribution *a);
/* The value that a sample adds to its type. A sample of an event of bytes stands for a number of
 * pages of its page's size. */
int64_t attribution_sample_value(const struct attribution *a, const struct record *r);
/* At the end of a window: how far the sums of bytes may be off. */
void attribution_put_errors(struct attribution *a);

/* ---- let-read.c ---- */

/* Lets the readers read a process, whose program's file is on that device; images: see readers.h.
 * s->interpreter NULL: there are too many, which is counted. */
void attribution_let_read(struct attribution *a, struct process_state *s,
			  const struct host_process *p, const uint64_t images[CLIENT_MAX_IMAGES],
			  const struct host_file_key *key);

/* ---- attribute-who.c ---- */

/* Does the filter let a sample of p pass? */
bool attribution_wants(struct attribution *a, const struct record *r, struct host_process *p);
/* The row of a sample's thread; p NULL: its process is unknown. PROFILE_NONE: it does not fit. */
uint32_t attribution_thread_row(struct attribution *a, const struct record *r,
				struct host_process *p);
/* The row of a process as it was at its last sample. */
uint32_t attribution_process_row(struct attribution *a, struct host_process *p);

/*
 * Call these around a look at a program, which its owner may have made expensive while the rings
 * wait. false: looks have used their share of the time, so this one must wait.
 */
bool attribution_begin_look(struct attribution *a);
void attribution_end_look(struct attribution *a);
