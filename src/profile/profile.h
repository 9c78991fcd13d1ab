/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The profile: interned processes, threads, modules, frames and stacks, and samples that refer to
 * them. The profiler adds samples up in one. A window (window.h) carries it to the symbolizer,
 * which names the frames. Every output is a rendering of a profile.
 *
 * Rows are never removed one by one; row numbers are stable until profile_clear(). Memory is
 * bounded by max_bytes: what does not fit is refused and counted, and never added in part.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/array.h"
#include "util/hash.h"
#include "util/runtime-rows.h"
#include "util/strtab.h"

#define PROFILE_NONE UINT32_MAX /* no row */

/* Kinds of frames, by module. */
enum profile_module_kind {
	PROFILE_MODULE_FILE,   /* a mapped file; addresses are ELF virtual addresses */
	PROFILE_MODULE_VDSO,   /* the kernel's vdso image; addresses as in a file */
	PROFILE_MODULE_KERNEL, /* the kernel with its modules; addresses are absolute */
	PROFILE_MODULE_JIT, /* executable anonymous memory of one process; addresses are absolute */
	PROFILE_MODULE_NONE,   /* in no mapping; addresses are absolute */
	PROFILE_MODULE_MARKER, /* not code: address is an enum profile_marker */
	/* Not code, but what threads wait for; addresses as in a file, or absolute. */
	PROFILE_MODULE_DATA,
	/* A runtime's own frames, such as an interpreter's: they come with names, and their address
	 * is 0. */
	PROFILE_MODULE_RUNTIME,
	PROFILE_N_MODULE_KINDS
};

/* Runtimes that have frames of their own. */
enum profile_runtime {
	PROFILE_RUNTIME_BEAM,
	PROFILE_RUNTIME_CPYTHON,
	PROFILE_RUNTIME_DOTNET,
	PROFILE_RUNTIME_HERMES,
	PROFILE_RUNTIME_JVM,
	PROFILE_RUNTIME_LUAJIT,
	PROFILE_RUNTIME_PERL,
	PROFILE_RUNTIME_PHP,
	PROFILE_RUNTIME_RUBY,
	PROFILE_RUNTIME_V8JS,
	PROFILE_N_RUNTIMES
};
/* "cpython" ...: OpenTelemetry's values of profile.frame.type; "": out of range. */
const char *profile_runtime_name(uint32_t runtime);
/* PROFILE_N_RUNTIMES: no such runtime. */
enum profile_runtime profile_runtime_by_name(const char *name);
/* Whose frames those of a runtime are whose memory is read. */
enum profile_runtime profile_runtime_of(enum runtime_kind kind);

/* Marker frames: the outermost frame of a stack that does not reach the thread's entry, or that
 * lacks a runtime's frames. */
enum profile_marker {
	PROFILE_MARKER_TRUNCATED, /* stack copy too short */
	PROFILE_MARKER_NO_MAPPING,
	PROFILE_MARKER_NO_FILE,
	PROFILE_MARKER_NO_CFI,
	PROFILE_MARKER_BAD_CFI,
	PROFILE_MARKER_NO_PROGRESS,
	PROFILE_MARKER_TOO_DEEP,
	PROFILE_MARKER_NO_USER_REGS,	  /* the kernel gave no user registers or no stack */
	PROFILE_MARKER_32_BIT,		  /* a 32-bit program's stack is not walked */
	PROFILE_MARKER_RUNTIME_LATE,	  /* native frames only: the runtime's came too late */
	PROFILE_MARKER_RUNTIME_UNPROVEN,  /* the runtime's memory does not explain the stack */
	PROFILE_MARKER_RUNTIME_ELSEWHERE, /* a virtual thread's callers are in the heap */
	PROFILE_MARKER_RUNTIME_UNREAD,	  /* native frames only: nobody reads the runtime's */
	/* What a thread waits for. The first one: unknown, or not yet known. */
	PROFILE_MARKER_WAIT,
	PROFILE_MARKER_WAIT_LOCK,
	PROFILE_MARKER_WAIT_CONDITION,
	PROFILE_MARKER_WAIT_SLEEP,
	PROFILE_MARKER_WAIT_POLL,
	PROFILE_MARKER_WAIT_NETWORK,
	PROFILE_MARKER_WAIT_PIPE,
	PROFILE_MARKER_WAIT_DISK,
	PROFILE_MARKER_WAIT_PAGE_FAULT,
	PROFILE_MARKER_WAIT_CHILD,
	PROFILE_MARKER_WAIT_SIGNAL,
	PROFILE_MARKER_WAIT_FILE_LOCK,
	PROFILE_MARKER_WAIT_KERNEL_LOCK,
	PROFILE_MARKER_WAIT_FREEZER, /* its control group is frozen */
	/* In wall time: the thread runs; or it could run, but waits for a CPU. */
	PROFILE_MARKER_ON_CPU,
	PROFILE_MARKER_RUNNABLE,
	PROFILE_MARKER_WOKEN, /* outermost, after a lock: the stack ends a wait for this lock */
	PROFILE_MARKER_IDLE,  /* the thread waits for work */
	/* The whole stack: the thread was blocked at a place that was never sampled. */
	PROFILE_MARKER_NOT_SEEN,
	PROFILE_N_MARKERS
};
/* "[truncated stack]" ...; "": out of range. */
const char *profile_marker_text(uint64_t marker);

#define PROFILE_MAX_BUILD_ID 64

/* Module uids with the same meaning in every process; the profiler's files have higher ones. */
enum profile_uid {
	PROFILE_UID_NONE = 1,
	PROFILE_UID_KERNEL,
	PROFILE_UID_MARKER,
	PROFILE_UID_VDSO,
	/* Of another host or boot (perf.data): their addresses mean nothing here. */
	PROFILE_UID_FOREIGN_KERNEL,
	PROFILE_UID_FOREIGN_VDSO,
	PROFILE_UID_FIRST_RUNTIME, /* + enum profile_runtime */
	PROFILE_UID_FIRST_FILE = 32,
};

/* A bit of the uids of PROFILE_MODULE_DATA; the rest is the uid of the file's code, or another
 * number. */
#define PROFILE_UID_DATA (UINT64_C(1) << 60)

struct profile_module {
	/* From the profiler, unique in its lifetime; it identifies the file's descriptor. */
	uint64_t uid;
	/* The range of the code, as ELF virtual addresses, and its offset in the file; 0, 0:
	 * unknown. */
	uint64_t memory_start, memory_limit, file_offset;
	uint32_t kind;	  /* enum profile_module_kind */
	uint32_t runtime; /* PROFILE_MODULE_RUNTIME: enum profile_runtime; else 0 */
	uint32_t process; /* PROFILE_MODULE_JIT: the process; else PROFILE_NONE */
	strid path;	  /* in the process's mount namespace; "": no file */
	strid go_build_id, htlhash, language; /* set by naming; "": unknown */
	uint32_t n_build_id;
	uint8_t build_id[PROFILE_MAX_BUILD_ID];
};

/*
 * A process at the time of a sample. An exec, a new name or a move to another cgroup makes another
 * row, so that each sample has the facts of its own time.
 */
struct profile_process {
	uint64_t start_time_unix_ns; /* 0: unknown */
	uint32_t pid;
	strid comm;		 /* name of the main thread */
	strid executable_path;	 /* /proc/PID/exe, in its mount namespace; "" for kernel threads */
	strid container_id;	 /* "" : not in a container */
	strid container_runtime; /* "docker", "containerd", "cri-o", "podman" or "" */
	strid container_name;	 /* "web", "NAMESPACE/POD/NAME" in Kubernetes; "": unknown */
	strid pod_uid;		 /* Kubernetes, from the cgroup path; "" none */
	strid systemd_unit;	 /* "nginx.service", "user@1000.service" or "" */
	strid cgroup;		 /* path in the kernel */
	/* The resource attributes that it publishes, in the form of labels.h. */
	strid attributes;
	/* 1: it has executed a program, so it is no kernel thread, though the path is unknown. */
	uint32_t is_program;
};

struct profile_thread {
	uint32_t process;
	uint32_t tid;
	strid name;
	strid labels; /* other labels of its samples (labels.h): those of a pprof, or a span */
};

/* A place in code. Its lines (innermost inlined function first, the physical function last) are the
 * rows [first_line, first_line + n_lines) of lines. n_lines 0: not named yet, or, if first_line is
 * PROFILE_NONE, without a name. */
struct profile_frame {
	uint64_t address; /* return addresses less one */
	uint32_t module;
	uint32_t first_line, n_lines;
};

struct profile_function {
	strid name;	   /* for people: demangled */
	strid system_name; /* linkage name */
	strid file;
	uint32_t start_line;
	strid module_name; /* kernel module of the function, else "" */
	strid language;	   /* "c", "c++", "go", "rust" ...; "": unknown */
};

struct profile_line {
	uint32_t function;
	uint32_t line, column; /* 0: unknown */
};

struct profile_stack {
	uint32_t first, n; /* rows of stack_frames, leaf first */
	uint32_t n_kernel; /* the first n_kernel frames are the kernel's */
};

struct profile_sample {
	uint64_t time_unix_ns;
	int64_t value; /* in units of the sample type; 1: a plain sample; below 0: a difference */
	uint32_t thread, stack, cpu;
	uint32_t n; /* of a weighted profile: the number of samples in it; 0: unknown */
};

/* How much a process has in memory from that time until its next row. */
struct profile_resident {
	uint64_t time_unix_ns;
	uint64_t bytes; /* 0: it has ended; PROFILE_RESIDENT_UNKNOWN */
	uint32_t process;
};
#define PROFILE_RESIDENT_UNKNOWN UINT64_MAX

/* The kernel killed n processes for want of memory between the last look and this time. */
struct profile_kills {
	uint64_t time_unix_ns, n;
};

/* One of these processes. certain: the kernel's log names it; else it ended at that time and may be
 * the one. */
struct profile_victim {
	uint64_t time_unix_ns;
	uint32_t process, certain;
};

/* Counters of one window; they add up when windows are merged. Names: profile_counter_name(). */
enum profile_counter {
	PROFILE_SAMPLES,	   /* read from the rings, including those counted below */
	PROFILE_SAMPLES_LOST,	   /* a ring was full (PERF_RECORD_LOST and the like) */
	PROFILE_SAMPLES_THROTTLED, /* times the kernel throttled an event */
	PROFILE_SAMPLES_DROPPED,   /* did not fit the window's memory */
	PROFILE_SAMPLES_DIED,	   /* lost with a process that died */
	PROFILE_SAMPLES_FILTERED,  /* excluded by filters */
	PROFILE_RECORDS_BAD,	   /* ring records that contradict themselves */
	PROFILE_SIDEBAND_LOST,	   /* mapping, fork, comm or exit records lost */
	PROFILE_USER_STACKS,	   /* samples with user registers: the base of the next ones */
	/* User stacks that do not reach their entry, by cause. */
	PROFILE_STACKS_TRUNCATED,  /* the copy was full: its size is too small */
	PROFILE_STACKS_LEFT,	   /* they continue on another stack */
	PROFILE_STACKS_UNREADABLE, /* the copy has room, but the kernel could not read further */
	PROFILE_STACKS_NO_MAPPING,
	PROFILE_STACKS_NO_FILE,
	PROFILE_STACKS_NO_CFI,
	PROFILE_STACKS_BAD_CFI,
	PROFILE_STACKS_NO_PROGRESS,
	PROFILE_STACKS_TOO_DEEP,
	PROFILE_STACKS_UNPROVEN, /* a runtime's memory does not explain its frames */
	PROFILE_STACKS_32_BIT,	 /* of a 32-bit program */
	PROFILE_STACKS_NO_REGS,
	/* Continued beyond the copy, as far as frame pointers were proven right. */
	PROFILE_STACKS_CONTINUED,
	PROFILE_STACKS_RUNTIME_LATE,   /* without their runtime's frames, which came too late, */
	PROFILE_STACKS_RUNTIME_UNREAD, /* or which nobody reads */
	/* User stacks that reach their entry within the copy, by the bytes from the stack pointer
	 * to their outermost frame. */
	PROFILE_STACKS_WITHIN_8K,
	PROFILE_STACKS_WITHIN_16K, /* but not within 8K, and so on */
	PROFILE_STACKS_WITHIN_32K,
	PROFILE_STACKS_WITHIN_64K,
	/* All with user registers, by the number of their user frames. */
	PROFILE_STACKS_TO_8_FRAMES,
	PROFILE_STACKS_TO_16_FRAMES,
	PROFILE_STACKS_TO_32_FRAMES,
	PROFILE_STACKS_TO_64_FRAMES,
	PROFILE_STACKS_TO_128_FRAMES,
	PROFILE_STACKS_MORE_FRAMES,
	PROFILE_FRAMES_UNNAMED, /* distinct frames left without a name */
	/* Of these, the ones for which there was no time: a later window names them. */
	PROFILE_FRAMES_PUT_OFF,
	PROFILE_PAUSED_MS, /* how long sampling was paused on demand */
	/* Off-CPU time: switches, and the states in which threads spent their time. */
	PROFILE_SWITCHES,
	PROFILE_SWITCHES_LOST,	 /* the kernel had no room in a ring */
	PROFILE_SWITCHES_BROKEN, /* the previous switch is missing */
	PROFILE_RUNNING_US,
	PROFILE_WAITING_US, /* for a CPU */
	PROFILE_BLOCKED_US,
	PROFILE_STOPPED_US,	  /* by a signal or a debugger */
	PROFILE_UNKNOWN_US,	  /* switches are missing */
	PROFILE_NOT_SEEN_US,	  /* blocked, but the stack is unknown */
	PROFILE_IDLE_US,	  /* blocked, waiting for work: left out of the samples */
	PROFILE_SWITCHES_REFUSED, /* no room for a thread, a place or a stack of theirs */
	PROFILE_BLOCKS_UNCOPIED,  /* no room in a ring for their stacks; their time is known */
	PROFILE_BEFORE_US,	  /* until a thread was switched, or found, for the first time */
	/* Samples of programs that tell the spans of their threads: each is one of these. */
	PROFILE_SPANS_LINKED,  /* with the id of its span */
	PROFILE_SPANS_OUTSIDE, /* in no span */
	/* Without an id, because nothing proves it; by cause. */
	PROFILE_SPANS_UNREAD,	  /* no reader read them */
	PROFILE_SPANS_LATE,	  /* not read at the moment of the sample */
	PROFILE_SPANS_MOVED,	  /* the thread may have run on meanwhile */
	PROFILE_SPANS_HALF,	  /* half-written */
	PROFILE_SPANS_UNREADABLE, /* not found, or not readable */
	/* Of blocked_us the time of such programs: each is one of these. */
	PROFILE_SPANS_BLOCKED_LINKED_US,
	PROFILE_SPANS_BLOCKED_OUTSIDE_US,
	PROFILE_SPANS_BLOCKED_UNPROVEN_US,
	PROFILE_N_COUNTERS
};
/* "samples", "samples_lost" ...: stable names, used in summaries and exports. */
const char *profile_counter_name(enum profile_counter c);

/*
 * The type of samples: an event, and the period of a sample of value 1: nanoseconds of CPU time
 * (period_ns), or events (period_events). The other is 0; both are 0 if a file does not say.
 * weighted: each sample has a value of its own in events, because the kernel chose the periods or a
 * file has them, and period_events is 1.
 */
struct profile_type {
	uint64_t period_ns, period_events;
	strid event; /* "cpu-clock", "cycles", "page-faults" ... */
	strid unit;  /* of the events: "bytes", "nanoseconds"; "": a count */
	bool weighted;
	uint32_t rate_hz;     /* 0: by period, not by rate */
	uint32_t stack_bytes; /* the most copied of each user stack; 0: none, or unknown */
	/* The variance of the sum of the values, if these are estimates, in squares of their unit;
	 * 0: unknown. It adds up as counters do. */
	double variance;
	uint64_t counters[PROFILE_N_COUNTERS]; /* those that belong to this type */
	ARRAY(struct profile_sample) samples;
};

#define PROFILE_MAX_TYPES 8

/* The event of off-CPU time, with OpenTelemetry's name: its samples are nanoseconds that threads
 * were blocked. */
#define PROFILE_OFF_CPU "off_cpu"
/* That of sampled wake-ups: the stacks of threads that end another one's wait for a lock. */
#define PROFILE_WAKEUPS "lock_wakeups"
/* That of wall time: its samples are nanoseconds of threads, whatever they did. */
#define PROFILE_WALL "wall"
/* That of memory growth: its samples are bytes that were touched for the first time. */
#define PROFILE_GROWTH "memory_growth"

/*
 * The tables, and the samples of each type; there is at least one type. A reader of a single type
 * reads the first; profile_view() puts another in its place.
 */
struct profile {
	struct strtab strings;
	ARRAY(struct profile_module) modules;
	ARRAY(struct profile_process) processes;
	ARRAY(struct profile_thread) threads;
	ARRAY(struct profile_frame) frames;
	ARRAY(struct profile_function) functions;
	ARRAY(struct profile_line) lines;
	ARRAY(struct profile_stack) stacks;
	ARRAY(uint32_t) stack_frames;
	ARRAY(struct profile_resident) residents; /* in no order; empty: not measured */
	ARRAY(struct profile_kills) kills;	  /* of the whole host */
	ARRAY(struct profile_victim) victims;	  /* of these kills */
	struct hash_index module_index, process_index, thread_index, frame_index, function_index,
		stack_index;

	uint64_t counters[PROFILE_N_COUNTERS]; /* those of no type; see profile_counter() */
	/* The window: the times of all samples are in [start, end). */
	uint64_t start_unix_ns, end_unix_ns;
	uint64_t gaps_ns; /* the part without sampling: between files that were added up */
	struct profile_type types[PROFILE_MAX_TYPES];
	uint32_t n_types;
	/* Of a recorded file; empty, 0: unknown, or this host. */
	strid host_name, kernel_release;
	uint32_t n_cpus;
	uint64_t max_bytes;
};

/* Makes an empty profile with one type. max_bytes bounds its memory. */
void profile_init(struct profile *p, uint64_t max_bytes);
/* Frees the tables. */
void profile_deinit(struct profile *p);
/* Empties all tables and counters. Keeps the memory and the numbers of the first type, but not its
 * texts. */
void profile_clear(struct profile *p);
/* The bytes in use, not those allocated: an emptied profile keeps its memory but is not full. */
uint64_t profile_bytes(const struct profile *p);
/* True from 7/8 of max_bytes on: time to close the window early. */
bool profile_nearly_full(const struct profile *p);
/* True: there is room for all of another profile of that max_bytes. */
bool profile_has_room(const struct profile *p, uint64_t max_bytes);

/*
 * Interning. Each returns the row of an equal entry or of a new one, PROFILE_NONE: the profile is
 * full or memory is short. Equality: module by uid; process by (pid, start time, comm, path,
 * cgroup, container, unit); thread by (process, tid, name, labels); frame by (module, address);
 * function by (name, system_name, file, start_line, module_name, language); stack by its frames. An
 * existing row does not change, except that empty fields of a module are filled, and the container
 * name and the attributes of a process. Rows of a process that has changed its attributes differ.
 * A frame of the module PROFILE_NONE, which did not fit, does not fit either.
 */
uint32_t profile_add_module(struct profile *p, const struct profile_module *m);
/* The module of a runtime's frames; its path is "[cpython]" ... */
uint32_t profile_add_runtime(struct profile *p, enum profile_runtime runtime);
uint32_t profile_add_process(struct profile *p, const struct profile_process *proc);
uint32_t profile_add_thread(struct profile *p, uint32_t process, uint32_t tid, strid name);
uint32_t profile_add_labelled_thread(struct profile *p, const struct profile_thread *t);
uint32_t profile_add_frame(struct profile *p, uint32_t module, uint64_t address);
/*
 * Adds a frame that comes with its names, from a recorded file or a runtime. Frames are equal if
 * module, address and lines are, so names distinguish frames without an address (0), and frames
 * whose address means something else in another file. Copies n lines.
 */
uint32_t profile_add_named_frame(struct profile *p, uint32_t module, uint64_t address,
				 const struct profile_line *lines, uint32_t n);
uint32_t profile_add_function(struct profile *p, const struct profile_function *f);
uint32_t profile_add_stack(struct profile *p, const uint32_t *frames, uint32_t n,
			   uint32_t n_kernel);
/* false: full; counted in PROFILE_SAMPLES_DROPPED. */
bool profile_add_sample_of(struct profile *p, uint32_t type, const struct profile_sample *s);
bool profile_add_sample(struct profile *p, const struct profile_sample *s); /* of the first type */
/* false: full. */
bool profile_add_resident(struct profile *p, const struct profile_resident *r);
bool profile_add_kills(struct profile *p, const struct profile_kills *k);
bool profile_add_victim(struct profile *p, const struct profile_victim *v);
/* Copies the facts; the type keeps its samples, counters and variance. */
void profile_set_type(struct profile *p, uint32_t type, const struct profile_type *facts);
/* Adds a type without samples, with all counters 0. Its number; PROFILE_NONE: too many. */
uint32_t profile_add_type(struct profile *p, const struct profile_type *facts);
/* The number of samples of all types. */
uint32_t profile_n_samples(const struct profile *p);
/*
 * Drops the samples, types, residents, kills and victims; set the types again before the next
 * samples. Counters are kept, as those of no type.
 */
void profile_clear_samples(struct profile *p);
/* The sum of a counter over all types, and over what belongs to no type. */
uint64_t profile_counter(const struct profile *p, enum profile_counter c);
/*
 * Of a type for people and files, and of a view. PROFILE_SAMPLES of values that say how many
 * samples each is has these numbers in the place of what was read: the rings may have had something
 * else, such as each switch, or the ends of blocks.
 */
uint64_t profile_type_counter(const struct profile_type *t, enum profile_counter c);
uint64_t profile_view_counter(const struct profile *p, enum profile_counter c);
void profile_clear_counters(struct profile *p);
/* Sets *ret to the profile with that type alone. It borrows everything; do not change or
 * deinitialise it.
 * Its counters are those of the type; the first type's view also has those of no type, so that the
 * views of all types add up. */
void profile_view(const struct profile *p, uint32_t type, struct profile *ret);
/* The type of an event; PROFILE_NONE: there is none. */
uint32_t profile_find_type(const struct profile *p, const char *event);
/* The one to show first: that of the event, if there is one; event NULL: the first. */
uint32_t profile_asked_type(const struct profile *p, const char *event);
/* The name of a type in files with several types: its profile_period_type(), or its event if an
 * earlier type has that name: cpu-clock and task-clock are both "cpu". */
const char *profile_type_name(const struct profile *p, uint32_t type);

/* Turns each sample's value from periods into the period's unit, so that samples of other periods
 * can be added. false: full. */
bool profile_weigh(struct profile *p);

/*
 * Hides the addresses of the kernel and of anonymous memory, for readers who may not learn them:
 * they become relative to their mapping, or 0. Addresses in files stay. Add nothing to the profile
 * afterwards.
 */
void profile_hide_addresses(struct profile *p);

/* Names a frame once: copies n lines. false: full or already named. */
bool profile_name_frame(struct profile *p, uint32_t frame, const struct profile_line *lines,
			uint32_t n);

/*
 * Removes the names of a module's frames; the rows of lines and functions stay until
 * profile_clear().
 */
void profile_forget_names(struct profile *p, uint32_t module);
/* Records that the frame has no name, so that it is not looked up again. */
void profile_set_nameless(struct profile *p, uint32_t frame);
/* Does the frame still need a name? */
bool profile_wants_name(const struct profile *p, uint32_t frame);
/* Lets frames without a name be looked up again. */
void profile_retry_nameless(struct profile *p);

/* Adds values; the sum stops at the ends of their range. */
static inline int64_t profile_sum(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? (a < 0 ? INT64_MIN : INT64_MAX) : sum;
}

static inline int64_t profile_product(int64_t value, uint64_t times)
{
	int64_t product;

	return __builtin_mul_overflow(value, times, &product) ? (value < 0 ? INT64_MIN : INT64_MAX)
							      : product;
}

/* The absolute value, for shares and sorting. */
static inline int64_t profile_size(int64_t value)
{
	return value >= 0 ? value : value == INT64_MIN ? INT64_MAX : -value;
}

/* Frames of a stack, leaf first; borrowed. NULL: none. */
static inline const uint32_t *profile_stack_frames(const struct profile *p, uint32_t stack,
						   uint32_t *ret_n)
{
	*ret_n = p->stacks.items[stack].n;
	return *ret_n ? p->stack_frames.items + p->stacks.items[stack].first : NULL;
}

/* How long sampling was on, in nanoseconds: the window without its gaps. */
uint64_t profile_covered_ns(const struct profile *p);

/* Is a value below 0, as in the difference of two profiles? */
bool profile_is_difference(const struct profile *p);

/* The period of a sample of value 1, with its type and unit: "cpu" in "nanoseconds", or the event
 * in its unit, such as "count". Unknown (folded stacks): 1, "" and "". The texts are borrowed until
 * the profile changes. */
uint64_t profile_period(const struct profile *p);
bool profile_has_period(const struct profile *p);
const char *profile_period_type(const struct profile *p);
const char *profile_period_unit(const struct profile *p);

static inline const char *profile_text(const struct profile *p, strid id)
{
	return strtab_get(&p->strings, id);
}

/* Is the type PROFILE_OFF_CPU, PROFILE_WALL, PROFILE_GROWTH or PROFILE_WAKEUPS? */
bool profile_is_off_cpu(const struct profile *p, uint32_t type);
bool profile_is_wall(const struct profile *p, uint32_t type);
bool profile_is_growth(const struct profile *p, uint32_t type);
bool profile_is_wakeups(const struct profile *p, uint32_t type);
/* Are its samples numbers of blocks of memory, such as those of alloc_objects? */
bool profile_is_objects(const struct profile *p, uint32_t type);
/* Is the frame not code, but a marker, or data that a thread waits for? */
bool profile_is_marked(const struct profile *p, uint32_t frame);
/* What is there at a moment, such as inuse_space: it has no length in time. */
bool profile_is_in_use(const struct profile *p, uint32_t type);
/* Does the frame say what a thread waits for (PROFILE_MARKER_WAIT and those after it)? */
bool profile_is_wait(const struct profile *p, uint32_t frame);

/* The number of user stacks that did not reach their entry. */
uint64_t profile_stacks_incomplete(const struct profile *p);
