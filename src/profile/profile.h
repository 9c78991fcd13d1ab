/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The profile: interned processes, threads, modules, frames and stacks, and samples that refer to
 * them. The profiler adds samples up in one, a closed window carries one to the symbolizer
 * (window.h), which gives the frames their names, and every output is a rendering of one.
 *
 * Rows are never removed one by one; row numbers are stable until profile_clear(). Memory is
 * bounded by max_bytes: what does not fit is refused and counted, never half added.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/array.h"
#include "util/hash.h"
#include "util/strtab.h"

#define PROFILE_NONE UINT32_MAX /* no row */

/* What the frames of a module are. */
enum profile_module_kind {
	PROFILE_MODULE_FILE,   /* a mapped file; addresses are ELF virtual addresses */
	PROFILE_MODULE_VDSO,   /* the kernel's vdso image; addresses as in a file */
	PROFILE_MODULE_KERNEL, /* the kernel with its modules; addresses are absolute */
	PROFILE_MODULE_JIT, /* executable anonymous memory of one process; addresses are absolute */
	PROFILE_MODULE_NONE,   /* in no mapping; addresses are absolute */
	PROFILE_MODULE_MARKER, /* not code: address is an enum profile_marker */
	/* A runtime's own frames, such as an interpreter's: they come with their names, and have no
	 * addresses: 0. */
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
/* "cpython" ...: OpenTelemetry's values of profile.frame.type; "" when out of range. */
const char *profile_runtime_name(uint32_t runtime);
/* PROFILE_N_RUNTIMES: none is called so. */
enum profile_runtime profile_runtime_by_name(const char *name);

/* Marker frames: the outermost frame of a stack that does not reach the thread's entry, or in which
 * a runtime's frames are missing. */
enum profile_marker {
	PROFILE_MARKER_TRUNCATED, /* stack copy too short */
	PROFILE_MARKER_NO_MAPPING,
	PROFILE_MARKER_NO_FILE,
	PROFILE_MARKER_NO_CFI,
	PROFILE_MARKER_BAD_CFI,
	PROFILE_MARKER_NO_PROGRESS,
	PROFILE_MARKER_TOO_DEEP,
	PROFILE_MARKER_NO_USER_REGS, /* the kernel gave no user registers or no stack */
	PROFILE_MARKER_RUNTIME_LATE, /* only native frames: the runtime's came too late */
	/* Of a thread that waits: what for. The first one: not known, or not yet. */
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
	PROFILE_MARKER_NOT_SEEN, /* all there is: time of a thread in a place never sampled */
	PROFILE_N_MARKERS
};
/* "[truncated stack]" ...; "" when out of range. */
const char *profile_marker_text(uint64_t marker);

#define PROFILE_MAX_BUILD_ID 64

/* Module uids that mean the same in every process of the tree; the profiler's files come after. */
enum profile_uid {
	PROFILE_UID_NONE = 1,
	PROFILE_UID_KERNEL,
	PROFILE_UID_MARKER,
	PROFILE_UID_VDSO,
	/* Of another host or boot than this one (perf.data): nothing here knows their addresses. */
	PROFILE_UID_FOREIGN_KERNEL,
	PROFILE_UID_FOREIGN_VDSO,
	PROFILE_UID_FIRST_RUNTIME, /* + enum profile_runtime */
	PROFILE_UID_FIRST_FILE = 32,
};

struct profile_module {
	uint64_t uid; /* chosen by the profiler, unique in its lifetime: names the file's descriptor
		       */
	uint64_t memory_start, memory_limit,
		file_offset; /* ELF virtual range of the code; 0, 0 unknown */
	uint32_t kind;	     /* enum profile_module_kind */
	uint32_t runtime;    /* PROFILE_MODULE_RUNTIME: enum profile_runtime; else 0 */
	uint32_t process;    /* PROFILE_MODULE_JIT: whose memory; else PROFILE_NONE */
	strid path;	     /* as mapped in the process's mount namespace; "" without a file */
	strid go_build_id, htlhash, language; /* set when named; "" unknown */
	uint32_t n_build_id;
	uint8_t build_id[PROFILE_MAX_BUILD_ID];
};

/*
 * A process as samples saw it. An exec, a renaming or a move to another cgroup makes another row,
 * so that each sample says what it belonged to at its own time.
 */
struct profile_process {
	uint64_t start_time_unix_ns; /* 0: not known */
	uint32_t pid;
	strid comm;	       /* name of the main thread */
	strid executable_path; /* target of /proc/PID/exe, as in its mount namespace; "" for kernel
				  threads */
	strid container_id;    /* "" : not in a container */
	strid container_runtime; /* "docker", "containerd", "cri-o", "podman" or "" */
	strid container_name;	 /* "web", "NAMESPACE/POD/NAME" in Kubernetes; "": not known */
	strid pod_uid;		 /* Kubernetes, from the cgroup path; "" none */
	strid systemd_unit;	 /* "nginx.service", "user@1000.service" or "" */
	strid cgroup;		 /* path as the kernel names it */
};

struct profile_thread {
	uint32_t process;
	uint32_t tid;
	strid name;
	strid labels; /* what else its samples are labelled with in a pprof, as src/import writes
			 them */
};

/* A place in code. Lines (innermost inlined function first, the physical function last) are the
 * rows [first_line, first_line + n_lines) of lines; n_lines 0: not named, and with first_line
 * PROFILE_NONE it is known that there is no name. */
struct profile_frame {
	uint64_t address; /* return addresses are already decremented by one */
	uint32_t module;
	uint32_t first_line, n_lines;
};

struct profile_function {
	strid name;	   /* for people: demangled */
	strid system_name; /* as linked */
	strid file;
	uint32_t start_line;
	strid module_name; /* kernel module the function is in, "" otherwise */
	strid language;	   /* "c", "c++", "go", "rust" ...; "" not known */
};

struct profile_line {
	uint32_t function;
	uint32_t line, column; /* 0: not known */
};

struct profile_stack {
	uint32_t first, n; /* rows of stack_frames, leaf first */
	uint32_t n_kernel; /* the first n_kernel frames are the kernel's */
};

struct profile_sample {
	uint64_t time_unix_ns;
	int64_t value; /* of the profile's sample type: 1: a plain sample; below 0: a difference */
	uint32_t thread, stack, cpu;
	uint32_t n; /* of a weighted profile: samples it adds up; 0: not known */
};

/* Counters of one window; they add up when windows are merged. Names: profile_counter_name(). */
enum profile_counter {
	PROFILE_SAMPLES,	   /* taken from the rings, whatever became of them */
	PROFILE_SAMPLES_LOST,	   /* the kernel had no room in a ring (PERF_RECORD_LOST and kin) */
	PROFILE_SAMPLES_THROTTLED, /* times the kernel throttled an event */
	PROFILE_SAMPLES_DROPPED,   /* did not fit the window's memory */
	PROFILE_SAMPLES_DIED,	   /* were with a process that died */
	PROFILE_SAMPLES_FILTERED,  /* not asked for */
	PROFILE_RECORDS_BAD,	   /* ring records that contradict themselves */
	PROFILE_SIDEBAND_LOST,	   /* mapping, fork, comm or exit records lost */
	PROFILE_USER_STACKS,	   /* samples with user registers: the base of the next ones */
	/* Those that do not reach their entry, by cause. */
	PROFILE_STACKS_TRUNCATED,  /* the copy was full: its size is too small */
	PROFILE_STACKS_LEFT,	   /* they go on far away: on another stack */
	PROFILE_STACKS_UNREADABLE, /* the copy has room, the kernel could not read on */
	PROFILE_STACKS_NO_MAPPING,
	PROFILE_STACKS_NO_FILE,
	PROFILE_STACKS_NO_CFI,
	PROFILE_STACKS_BAD_CFI,
	PROFILE_STACKS_NO_PROGRESS,
	PROFILE_STACKS_TOO_DEEP,
	PROFILE_STACKS_NO_REGS,
	PROFILE_STACKS_CONTINUED, /* beyond the copy, as far as frame pointers were proven right */
	PROFILE_STACKS_RUNTIME_LATE, /* without their runtime's frames, which came too late */
	/* Those that do by the copy alone, by the bytes from the stack pointer to their outermost
	   frame. */
	PROFILE_STACKS_WITHIN_8K,
	PROFILE_STACKS_WITHIN_16K, /* and not within 8K, and so on */
	PROFILE_STACKS_WITHIN_32K,
	PROFILE_STACKS_WITHIN_64K,
	/* All with user registers, by their user frames. */
	PROFILE_STACKS_TO_8_FRAMES,
	PROFILE_STACKS_TO_16_FRAMES,
	PROFILE_STACKS_TO_32_FRAMES,
	PROFILE_STACKS_TO_64_FRAMES,
	PROFILE_STACKS_TO_128_FRAMES,
	PROFILE_STACKS_MORE_FRAMES,
	PROFILE_FRAMES_UNNAMED, /* distinct frames left without a name */
	/* Of these, those that there was no time for: a later window names them. */
	PROFILE_FRAMES_PUT_OFF,
	PROFILE_PAUSED_MS, /* for how long sampling was paused on demand */
	/* Of off-CPU time: switches, and what the threads that switched did with their time. */
	PROFILE_SWITCHES,
	PROFILE_SWITCHES_LOST,	 /* the kernel had no room in a ring */
	PROFILE_SWITCHES_BROKEN, /* the one before is missing */
	PROFILE_RUNNING_US,
	PROFILE_WAITING_US, /* for a CPU */
	PROFILE_BLOCKED_US,
	PROFILE_STOPPED_US,  /* by a signal or a debugger */
	PROFILE_UNKNOWN_US,  /* switches are missing */
	PROFILE_NOT_SEEN_US, /* of the blocked: no stack is known */
	PROFILE_N_COUNTERS
};
/* "samples", "samples_lost" ...: stable names, used in summaries and exports. */
const char *profile_counter_name(enum profile_counter c);

/*
 * What samples are of: an event, and what a sample of value 1 stands for: nanoseconds of CPU time
 * (period_ns), or events (period_events); the other is 0, and both are of a file that does not say.
 * weighted: each sample has a value of its own in events, as the kernel chose their distance or a
 * file has it, and period_events is 1.
 */
struct profile_type {
	uint64_t period_ns, period_events;
	strid event; /* "cpu-clock", "cycles", "page-faults" ... */
	strid unit;  /* of the events: "bytes", "nanoseconds"; "": they are counted */
	bool weighted;
	uint32_t rate_hz;     /* 0: by period, not by rate */
	uint32_t stack_bytes; /* copied of each user stack, at most; 0: none, or not known */
	uint64_t counters[PROFILE_N_COUNTERS]; /* what is known to be of this type */
	ARRAY(struct profile_sample) samples;
};

#define PROFILE_MAX_TYPES 8

/* The event of a type whose samples are nanoseconds that threads were blocked, as OpenTelemetry
 * calls it. */
#define PROFILE_OFF_CPU "off_cpu"

/*
 * The tables, and the samples of each type, of which there is one at least. Who reads one type
 * alone reads the first; profile_view() puts another in its place.
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
	struct hash_index module_index, process_index, thread_index, frame_index, function_index,
		stack_index;

	uint64_t counters[PROFILE_N_COUNTERS]; /* of no type; see profile_counter() */
	uint64_t start_unix_ns,
		end_unix_ns; /* the window: every sample's time lies in [start, end) */
	uint64_t gaps_ns;    /* of it, when nothing was sampled: between files that were added up */
	struct profile_type types[PROFILE_MAX_TYPES];
	uint32_t n_types;
	/* Of a recorded file; empty, 0: not known, or this host. */
	strid host_name, kernel_release;
	uint32_t n_cpus;
	uint64_t max_bytes;
};

void profile_init(struct profile *p, uint64_t max_bytes);
void profile_deinit(struct profile *p);
/* Empties all tables and counters, keeps the memory, and the numbers among the first type's facts:
 * its texts are gone. */
void profile_clear(struct profile *p);
/* True from 7/8 of max_bytes on: time to close the window early. */
bool profile_nearly_full(const struct profile *p);
/* True when all of another profile of that max_bytes fits in besides. */
bool profile_has_room(const struct profile *p, uint64_t max_bytes);

/*
 * Interning. Each returns the row of an equal entry or of a new one, PROFILE_NONE when the profile
 * is full or memory is short. Equality: module by uid; process by (pid, start time, comm, path,
 * cgroup, container, unit); thread by (process, tid, name, labels); frame by (module, address);
 * function by (name, system_name, file, start_line, module_name, language); stack by its frames. An
 * existing row is not changed, except that a module takes over what was empty before, and a process
 * the name of its container.
 */
uint32_t profile_add_module(struct profile *p, const struct profile_module *m);
/* The module of a runtime's frames; its path is "[cpython]" ... */
uint32_t profile_add_runtime(struct profile *p, enum profile_runtime runtime);
uint32_t profile_add_process(struct profile *p, const struct profile_process *proc);
uint32_t profile_add_thread(struct profile *p, uint32_t process, uint32_t tid, strid name);
uint32_t profile_add_labelled_thread(struct profile *p, const struct profile_thread *t);
uint32_t profile_add_frame(struct profile *p, uint32_t module, uint64_t address);
/*
 * A frame that comes with its names: of a recorded file, or of a runtime. Equal are those of the
 * same module, address and lines, so frames without an address (0) are told apart by what they are
 * called, and those whose address has another meaning in another file are, too. Copies n lines.
 */
uint32_t profile_add_named_frame(struct profile *p, uint32_t module, uint64_t address,
				 const struct profile_line *lines, uint32_t n);
uint32_t profile_add_function(struct profile *p, const struct profile_function *f);
uint32_t profile_add_stack(struct profile *p, const uint32_t *frames, uint32_t n,
			   uint32_t n_kernel);
/* false: full; counted in PROFILE_SAMPLES_DROPPED. */
bool profile_add_sample_of(struct profile *p, uint32_t type, const struct profile_sample *s);
bool profile_add_sample(struct profile *p, const struct profile_sample *s); /* of the first type */
/* Takes over the facts; the type keeps its samples and counters. */
void profile_set_type(struct profile *p, uint32_t type, const struct profile_type *facts);
/* One more, without samples and with zeros as counters: its number, PROFILE_NONE when there are too
 * many. */
uint32_t profile_add_type(struct profile *p, const struct profile_type *facts);
/* Samples of all types. */
uint32_t profile_n_samples(const struct profile *p);
/* What the next samples are of is to be said again; what was counted is kept, as of no type. */
void profile_clear_samples(struct profile *p);
/* Of all types, and what is of none. */
uint64_t profile_counter(const struct profile *p, enum profile_counter c);
void profile_clear_counters(struct profile *p);
/* *ret: the profile as one of that type alone. It borrows everything, and is not to be changed or
 * deinitialised. Its counters are the type's; what was counted of none is the first type's to tell,
 * so that the views of all types add up. */
void profile_view(const struct profile *p, uint32_t type, struct profile *ret);
/* What files of several types call a type: its profile_period_type(), or its event where a type
 * before it is called the same: cpu-clock and task-clock are both "cpu". */
const char *profile_type_name(const struct profile *p, uint32_t type);

/* Makes values of samples that stand for a period each, in the period's unit: what samples of other
 * periods can be added to. false: full. */
bool profile_weigh(struct profile *p);

/*
 * Addresses of the kernel, and of memory that is no file, go for readers who may not know where the
 * kernel or a stranger's memory lies: what is left of them is relative to their mapping, or 0.
 * Files have none but their own. The profile is not to be added to any more.
 */
void profile_hide_addresses(struct profile *p);

/* Names a frame once: copies n lines. false when full or already named. */
bool profile_name_frame(struct profile *p, uint32_t frame, const struct profile_line *lines,
			uint32_t n);

/* Frames of a module lose their names; the rows of lines and functions stay until it is cleared. */
void profile_forget_names(struct profile *p, uint32_t module);
/* The frame has no name: nobody need look for one again. */
void profile_set_nameless(struct profile *p, uint32_t frame);
/* Whether a name is still to be looked for. */
bool profile_wants_name(const struct profile *p, uint32_t frame);
/* Names are looked for again of frames without one. */
void profile_retry_nameless(struct profile *p);

/* Of values: at the ends of their range they stay there. */
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

/* The size of a value, for shares and orders. */
static inline int64_t profile_size(int64_t value)
{
	return value >= 0 ? value : value == INT64_MIN ? INT64_MAX : -value;
}

/* Frames of a stack, leaf first; borrowed. NULL: it has none. */
static inline const uint32_t *profile_stack_frames(const struct profile *p, uint32_t stack,
						   uint32_t *ret_n)
{
	*ret_n = p->stacks.items[stack].n;
	return *ret_n ? p->stack_frames.items + p->stacks.items[stack].first : NULL;
}

/* How long was sampled: the window without its gaps. */
uint64_t profile_covered_ns(const struct profile *p);

/* Some value is below 0: the profile is the difference of two. */
bool profile_is_difference(const struct profile *p);

/* What a sample of value 1 stands for: "cpu" in "nanoseconds", or the event in its unit, as
 * "count". Of a profile that does not know (folded stacks) 1 of "" in "". */
uint64_t profile_period(const struct profile *p);
bool profile_has_period(const struct profile *p);
const char *profile_period_type(const struct profile *p);
const char *profile_period_unit(const struct profile *p);

static inline const char *profile_text(const struct profile *p, strid id)
{
	return strtab_get(&p->strings, id);
}

/* Are the samples of that type nanoseconds off the CPU? */
bool profile_is_off_cpu(const struct profile *p, uint32_t type);
/* Is the frame what a stack waits for, PROFILE_MARKER_WAIT and those behind it? */
bool profile_is_wait(const struct profile *p, uint32_t frame);

/* User stacks that did not reach their entry, from the counters. */
uint64_t profile_stacks_incomplete(const struct profile *p);
