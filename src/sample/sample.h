/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * perf events: what this kernel can do (found by trying), opening them on every CPU or for one
 * task, their rings, and records decoded and merged by time.
 *
 * Opening needs privileges and is the broker's; mapping an open event again and reading it is the
 * profiler's. Rests on perf_event_open(2) of Linux 3.10 and later; each newer field says since
 * when.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <linux/perf_event.h>

#include "src/sample/ledger.h"
#include "src/sample/tracepoint.h"
#include "util/cleanup.h"

/* ---- Features: what the kernel accepted, newest first (design: never read a version) ---- */
struct sample_features {
	bool cloexec; /* PERF_FLAG_FD_CLOEXEC, 3.14 */
	bool dummy; /* PERF_COUNT_SW_DUMMY, 3.12; else a cpu-clock that only counts carries the side
		       band */
	bool mmap2; /* 3.16 (and EL6/7); else PERF_RECORD_MMAP */
	bool comm_exec;	     /* 3.16 */
	bool clockid;	     /* CLOCK_MONOTONIC record times, 4.1; else the kernel's own clock */
	bool cgroup;	     /* PERF_SAMPLE_CGROUP and PERF_RECORD_CGROUP, 5.7 */
	bool read_lost;	     /* PERF_FORMAT_LOST, 6.0 (and 5.10 stable) */
	bool build_id;	     /* MMAP2 with build ids, 5.12 -- only probed */
	bool kernel;	     /* kernel side may be sampled (paranoid <= 1 or privileged) */
	bool hardware;	     /* cycles counted and really fired */
	bool page_size;	     /* PERF_SAMPLE_DATA_PAGE_SIZE, 5.11; only probed for such an event */
	bool user_stack;     /* REGS_USER and STACK_USER, 3.7 x86_64 */
	bool frame_pointers; /* user stacks are the kernel's callchains: SAMPLE_STACKS_FP, or AUTO
				without user_stack */
	int paranoid;	     /* kernel.perf_event_paranoid, INT_MIN: not there */
	/* Which user registers of a sample taken inside the kernel are the task's own: found by
	 * sampling known ones, for the event in use. Bits as in sample_regs_user. */
	uint64_t kernel_regs_valid;
};

struct sample_uprobe;

/* What is counted, as perf_event_attr has it. Without a name: time, by cycles where the hardware
 * counts them and they fire, else by cpu-clock. */
struct sample_event {
	char name[96]; /* as perf prints it */
	uint32_t type; /* PERF_TYPE_* */
	uint64_t config;
	bool bytes; /* each counts as many as the page has that it is of */
	/* A probe of user code, whose places have types and numbers of their own. Borrowed; NULL:
	 * it is none. */
	const struct sample_uprobe *uprobe;
};
/* "page-faults", "r01c2", "sched:sched_switch"; "uprobe:..." and "usdt:...", which are still to be
 * placed (uprobe.h). 0; -EINVAL: no event is called so; -ENOENT: a
 * tracepoint that is not there or cannot be looked up; error says which and what to do. */
int sample_event_parse(const char *text, struct sample_event *ret, char *error, size_t n_error);
/* The kernel's generic events that have names, one after the other; NULL behind the last. */
const char *sample_event_known(unsigned int i);
/* Opens it for this process, counting nothing, and closes it: 0 or -errno, as the kernel says. */
int sample_event_try(const struct sample_event *e);
/*
 * Lets the kernel read a filter, such as "prev_state == 2", for an event of this process. 0;
 * -EINVAL: error says what is wrong with it and which fields there are. Another -errno: this
 * process may not open the event, so nothing is known of the filter.
 */
int sample_filter_try(const struct sample_event *e, const char *filter, char *error,
		      size_t n_error);
/* How many events of perf it takes: a probe of user code one for each place. */
uint32_t sample_event_sites(const struct sample_event *e);
#define SAMPLE_MAX_FILTER 512 /* with its end; the kernel itself takes a page */
/* Its period is nanoseconds of a running CPU. */
bool sample_event_is_time(const struct sample_event *e);
/* How many of it lie between two samples if nobody says; 0: it is sampled at a rate. daemon: where
 * it must stay cheap for ever. */
uint64_t sample_event_period(const struct sample_event *e, bool daemon);
/* It needs a counter of the processor. */
bool sample_event_is_hardware(const struct sample_event *e);
/* It happens inside the kernel only. */
bool sample_event_is_kernel(const struct sample_event *e);
/* Both are the same event, whatever they are called. */
bool sample_event_equal(const struct sample_event *a, const struct sample_event *b);

/* What an event is sampled for. */
enum sample_use {
	SAMPLE_USE_EVENT, /* itself */
	/* How long threads are blocked, by sched:sched_switch: each switch, with its payload and a
	 * few registers; and some of those at which a thread blocks, with its stack. */
	SAMPLE_USE_SWITCHES,
	SAMPLE_USE_BLOCKS,
};

/* Where sched:sched_switch says who stops running and why, and who goes on. */
struct sample_switch_fields {
	struct tracepoint_field prev_pid, prev_state, next_pid;
};
/* The event of both uses, and its fields. 0; -ENOENT: this kernel has none, or tracefs is not
 * mounted, or not for this user: error says what to do. */
int sample_find_switches(struct sample_event *ret, struct sample_switch_fields *ret_fields,
			 char *error, size_t n_error);

/* How user stacks are found. AUTO: DWARF where the kernel gives registers and stack, else FP. */
enum sample_stacks {
	SAMPLE_STACKS_AUTO,
	SAMPLE_STACKS_DWARF, /* registers and a copy of the stack, walked by us */
	SAMPLE_STACKS_FP,    /* the kernel follows frame pointers; no copies */
};

/* Events that are sampled together, each in rings of its own. */
#define SAMPLE_MAX_EVENTS 6

struct sample_options {
	struct sample_event event;
	enum sample_use use;
	struct sample_switch_fields switch_fields; /* of both uses of switches */
	uint32_t index; /* among those sampled together; 0 alone brings the side band */
	uint32_t site;	/* of a probe of user code: at which of its places; 0 alone brings it */
	/* Of a tracepoint: the kernel drops what does not match. NULL: none. Borrowed. */
	const char *filter;
	uint64_t period;  /* a sample every so many events; 0: rate_hz */
	uint32_t rate_hz; /* clamped to half of perf_event_max_sample_rate as it is now */
	enum sample_stacks stacks;
	bool only_user, only_kernel; /* samples taken there only */
	bool this_thread;	     /* with a pid: not what it forks */
	bool by_cgroup;		     /* what runs in cgroup_fd, a cgroup2 or perf_event directory */
	int cgroup_fd;
	uint32_t stack_bytes;	 /* rounded down to a multiple of 8, at most 65528; 0: no stack */
	uint64_t regs_mask;	 /* sample_regs_user; 0: none */
	bool kernel_stacks;	 /* false: time in the kernel is sampled, its frames are not */
	uint64_t ring_bytes;	 /* sample ring of one CPU; halved down to 64 KiB while the kernel
				    refuses */
	uint64_t sideband_bytes; /* 0: 256 KiB */
	bool enable_on_exec;	 /* with a pid: start counting at its exec */
};

/* The registers of this processor that a walk of the stack starts with: perf's bits. */
extern const uint64_t sample_user_regs;
/* Of these, those by which a place in a program is known again. */
extern const uint64_t sample_place_regs;
/* "x86_64", "aarch64": as uname says. */
extern const char sample_arch_name[];

/* One CPU's sample event and its side band. Descriptors are owned by whoever holds the struct; the
 * rings are mapped by ring_map(), for the merge by merger_add_cpu(). */
struct sample_cpu {
	int cpu;
	uint32_t index;		    /* of the event: sample_options.index */
	int sample_fd, sideband_fd; /* sideband_fd -EBADF: another event's */
	/* The event that samples into the ring of sample_fd, which itself stands still then: see
	 * sample_replace_event(). -EBADF: sample_fd does. */
	int event_fd;
	uint64_t sample_ring_bytes,
		sideband_ring_bytes; /* data area, a power of two; 0: not mapped yet */
	/* Of an event with a budget: samples allowed since it was opened. */
	uint64_t granted;
};

/* Capabilities that matter, by number: headers older than 5.8 do not name CAP_PERFMON. */
enum {
	SAMPLE_CAP_DAC_READ_SEARCH = 2,
	SAMPLE_CAP_IPC_LOCK = 14,
	SAMPLE_CAP_SYS_PTRACE = 19,
	SAMPLE_CAP_SYS_ADMIN = 21,
	SAMPLE_CAP_SYSLOG = 34,
	SAMPLE_CAP_PERFMON = 38,
};

/* What decides whether this process may open events. */
struct sample_circumstances {
	long paranoid;	       /* kernel.perf_event_paranoid; LONG_MIN: no such file */
	uint64_t capabilities; /* effective: bit SAMPLE_CAP_* */
	bool has_perfmon;      /* this kernel knows CAP_PERFMON */
	int seccomp;	       /* 0 off, 1 strict, 2 filter; -1 not known */
	int seccomp_refusal;   /* the errno that a filter answers to whatever is asked; 0: none */
};
void sample_read_circumstances(struct sample_circumstances *ret);
/* Nothing works without it: processes, mapped files and our own program are found there. */
bool sample_has_proc(void);
#define SAMPLE_NO_PROC                                                                             \
	"/proc is not mounted, where processes and their files are found: mount -t proc proc "     \
	"/proc"

static inline bool sample_has_capability(const struct sample_circumstances *c, int capability)
{
	return c->capabilities >> capability & 1;
}

/* Tries everything on disabled events. 0, or -errno of the plainest event with a message for the
 * user in error: cause, value read, remedy. */
int sample_probe(const struct sample_options *options, pid_t pid, struct sample_features *ret,
		 char *error, size_t n_error);
/*
 * Opens both events on one CPU, disabled. pid -1: the whole CPU; else the task and what it forks.
 * attach: NULL, or what was opened of the same CPU and has the ring that this one shares (more
 * tasks of one capture). 0, -ENODEV: the CPU is offline; other -errno with error filled.
 */
int sample_open_cpu(const struct sample_options *options, const struct sample_features *features,
		    int cpu, pid_t pid, const struct sample_cpu *attach, struct sample_cpu *ret,
		    char *error, size_t n_error);
void sample_close_cpu(struct sample_cpu *c);
/*
 * Another sample event with other options in the place of the CPU's; it writes into the ring that
 * is there, so nothing that was sampled gets lost. Of a whole CPU (or cgroup) only. enable: it
 * counts at once. 0 or -errno, and all is as before.
 */
int sample_replace_event(const struct sample_options *options,
			 const struct sample_features *features, struct sample_cpu *c, bool enable);
int sample_enable_cpu(const struct sample_cpu *c, bool enable);
/*
 * Lets a sample event take n samples from now on, and no more until the next call: then the kernel
 * stops it. What is left of the last call is not added. It counts from now on, as after
 * sample_enable_cpu(), which must not be called besides: it would lift the limit. Of a whole CPU
 * (or cgroup) and with a period only. 1: all of the last call had been used up; 0; -errno.
 */
int sample_grant_cpu(struct sample_cpu *c, uint64_t period, uint32_t n);
/*
 * For how long the events of this CPU have been counting. It grows with time while they are
 * enabled; it stands still for good once their CPU has gone offline, also when that came back,
 * which nothing else tells (no error, no hang-up, and PERF_EVENT_IOC_ENABLE does not revive them).
 * 0 or -errno.
 */
int sample_enabled_ns(const struct sample_cpu *c, uint64_t *ret_ns);
/* The rate an event opened now really gets. */
uint32_t sample_rate_now(const struct sample_options *options);
/* CPUs online now, ascending, from /sys/devices/system/cpu/online, or from /proc/stat where /sys is
 * not mounted (holes are normal). Count or -errno. */
int sample_online_cpus(int *cpus, size_t max);
/* "cpu-clock", or whatever is counted. */
const char *sample_event_name(const struct sample_options *options,
			      const struct sample_features *features);

/* ---- Rings ---- */
struct ring {
	int fd;
	struct perf_event_mmap_page *page;
	uint8_t *data;
	uint64_t data_bytes; /* power of two */
	uint64_t tail;	     /* how far the caller has read */
};
/* Maps fd with a data area of *bytes; on EPERM or ENOMEM halves down to 64 KiB and says so in
 * *bytes. 0 or -errno. The mapping of a ring that is mapped elsewhere already must use its size. */
int ring_map(struct ring *r, int fd, uint64_t *bytes, bool may_shrink);
void ring_unmap(struct ring *r);
/* Text for the user about an error (-errno) of ring_map(): cause, values read, remedy. */
void ring_explain(int error, char *buf, size_t size);

/* ---- Records ---- */
#define SAMPLE_MAX_KERNEL_FRAMES 128

enum record_type {
	RECORD_SAMPLE,
	RECORD_MMAP, /* MMAP and MMAP2, executable only */
	RECORD_COMM,
	RECORD_FORK,
	RECORD_EXIT,
	RECORD_CGROUP,
	RECORD_LOST, /* records lost, of which ring: from_sideband; may be 0, see merger_read_lost()
		      */
	RECORD_THROTTLE, /* the kernel paused this event; throttle_end: goes on */
	RECORD_SWITCH_IN, /* of a task that is watched alone: it goes on */
	RECORD_BAD,	  /* contradicts itself; skipped */
};

/* Borrowed from the ring (or the merger's wrap buffer) until the next call. */
struct record {
	enum record_type type;
	uint32_t index;	   /* of the event that wrote it: sample_options.index */
	uint64_t time_ns;  /* perf clock of the event */
	uint32_t pid, tid; /* in our pid namespace; (uint32_t)-1 of a task already gone */
	uint32_t cpu;
	bool from_sideband;
	union {
		struct {
			uint64_t ip, period, cgroup_id;
			uint64_t page_bytes; /* of the page at the data address; 0: not said */
			uint64_t n_kernel;
			const uint64_t *kernel; /* addresses, leaf first, context markers removed */
			uint64_t n_user_chain;	/* of a callchain of the user side */
			const uint64_t *user_chain;
			uint64_t user_abi; /* PERF_SAMPLE_REGS_ABI_* ; NONE: no user side */
			const uint64_t *user_regs;
			/* What all events of a group had counted: n_read of them, read_words
			 * each, a value first and the event's id second; NULL: not said. */
			const uint64_t *read;
			uint64_t n_read, read_words;
			const uint8_t *raw; /* of a tracepoint; NULL: none */
			uint64_t n_raw;
			const uint8_t *stack;
			uint64_t n_stack;   /* really copied */
			uint64_t max_stack; /* what would have been copied of a longer one */
			bool in_kernel;	    /* cpumode */
			/* Of user_regs: those that are the task's own (bits as in regs_mask).
			 * Less than all only inside the kernel, where old kernels, and
			 * samples by NMI, do not have every register at hand. */
			uint64_t user_regs_valid;
		} sample;
		struct {
			uint64_t start, length, file_offset;
			uint32_t major, minor;
			uint64_t inode,
				generation; /* generation 0 when the record is a plain MMAP */
			const char *path;
			bool has_inode;
			const uint8_t *build_id; /* NULL: the record has none */
			uint32_t n_build_id;
		} mmap;
		struct {
			const char *comm;
			bool exec;
		} comm;
		struct {
			uint32_t parent_pid, parent_tid;
		} task; /* fork, exit */
		struct {
			uint64_t id;
			const char *path;
		} cgroup;
		uint64_t lost;
		bool throttle_end;
	};
};

/* What sched:sched_switch says of a switch, and where in its program the thread was that stops. */
struct sample_switch {
	int64_t prev_state;
	uint32_t prev_id, next_id; /* threads, as the host numbers them; 0: the idle task */
	bool has_program;	   /* it is no thread of the kernel's */
	uint64_t sp, ip;
};
/* r: a sample of either use. false: its payload is too short. */
bool sample_read_switch(const struct sample_options *o, const struct record *r,
			struct sample_switch *ret);

/* Of the system call that the thread of a sample with registers is in; if it is in none, anything.
 * false: it cannot be told here. */
bool sample_second_argument(const struct sample_options *o, const struct record *r, uint64_t *ret);

/* Records lost, by kind of ring; those of samples by the event's index. */
struct sample_losses {
	uint64_t samples[SAMPLE_MAX_EVENTS], sideband;
};

/*
 * Reads the rings of many CPUs in the order of record times. Ordering rule: sample heads are
 * snapshotted before side-band heads, and a record younger than (youngest seen - guard) waits for
 * the next drain unless no ring moved since, or flush is set; so a mapping is always seen before
 * the sample that needs it.
 */
struct merger;
int merger_new(struct merger **ret, const struct sample_options *options,
	       const struct sample_features *features);
/* One more event, with the next index: before its CPUs are added. 0 or -E2BIG. */
int merger_add_event(struct merger *m, const struct sample_options *options,
		     const struct sample_features *features);
struct merger *merger_free(struct merger *m);
DEFINE_CLEANUP(struct merger *, merger_free)
/* What becomes of each record is written into the ledger (borrowed), where it outlives us: before a
 * CPU is added. */
void merger_keep_ledger(struct merger *m, struct ledger *ledger);
/* What the ledger held of an event before we read anything: what others have read, to be asked for
 * when all CPUs are there. */
struct sample_tally merger_start(const struct merger *m, uint32_t index);
/* Maps the rings of a CPU and an event (fds stay open and the caller's). 0 or -errno. */
int merger_add_cpu(struct merger *m, const struct sample_cpu *c);
/* Another event writes into the sample ring of a CPU and an event from now on
 * (sample_replace_event()); event_fd stays open and the caller's. The one before is read for the
 * last time here. */
void merger_replace_event(struct merger *m, int cpu, uint32_t index, int event_fd);
/* All rings of the CPU. What is left in them is lost to the caller: drain first. */
void merger_remove_cpu(struct merger *m, int cpu);
/* Snapshot of all heads: begins a drain. */
void merger_begin(struct merger *m, bool flush);
/* true and the next record; false: this drain is done. Releases the ring space of the record
 * returned before. */
bool merger_next(struct merger *m, struct record *ret);
/* Up to that time nothing more will come; UINT64_MAX: all there was at merger_begin() has. */
uint64_t merger_limit(const struct merger *m);
/* The sample returned last is not wanted. */
void merger_filter(struct merger *m);
/* Fullest sample ring at the last merger_begin(), in percent. */
unsigned int merger_fill_percent(const struct merger *m);
/*
 * Records that read(2) of the events (PERF_FORMAT_LOST) knows to be lost and that no RECORD_LOST
 * has told yet; 0 where the kernel cannot. The sum of what this returned and of the records' own
 * counts is the loss, each lost record counted once: a record that comes late for a loss already
 * returned here says 0.
 */
struct sample_losses merger_read_lost(struct merger *m);
