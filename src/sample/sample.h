/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * perf events: finds out what this kernel can do, opens events on every CPU or for one task, maps
 * their rings, decodes records and merges them by time.
 *
 * Opening needs privileges: the broker does it. The profiler maps the open events again and reads
 * them. Works with perf_event_open(2) since Linux 3.10; each newer field says since when.
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
	/* PERF_COUNT_SW_DUMMY, 3.12; else a cpu-clock that only counts carries the side band */
	bool dummy;
	bool mmap2;	     /* 3.16 (and EL6/7); else PERF_RECORD_MMAP */
	bool comm_exec;	     /* 3.16 */
	bool clockid;	     /* CLOCK_MONOTONIC record times, 4.1; else the kernel's own clock */
	bool cgroup;	     /* PERF_SAMPLE_CGROUP and PERF_RECORD_CGROUP, 5.7 */
	bool read_lost;	     /* PERF_FORMAT_LOST, 6.0 (and 5.10 stable) */
	bool build_id;	     /* MMAP2 with build ids, 5.12 -- only probed */
	bool kernel;	     /* the kernel may be sampled (paranoid <= 1 or privileged) */
	bool hardware;	     /* cycles counted and really fired */
	bool page_size;	     /* PERF_SAMPLE_DATA_PAGE_SIZE, 5.11; only probed for such an event */
	bool user_stack;     /* REGS_USER and STACK_USER, 3.7 x86_64 */
	bool frame_pointers; /* user stacks are the kernel's callchains: SAMPLE_STACKS_FP, or AUTO
				without user_stack */
	int paranoid;	     /* kernel.perf_event_paranoid; INT_MIN: no such file */
	/* Which user registers of a sample taken inside the kernel are the task's own: found by
	 * sampling known ones, for the event in use. Bits as in sample_regs_user. */
	uint64_t kernel_regs_valid;
};

struct sample_uprobe;

/* The event to count, as in perf_event_attr. Without a name: time, by cycles if the hardware counts
 * them and they fire, else by cpu-clock. */
struct sample_event {
	char name[96]; /* as perf prints it */
	uint32_t type; /* PERF_TYPE_* */
	uint64_t config;
	bool bytes; /* each event counts as many bytes as its page has */
	/* A probe of user code; its places have types and numbers of their own. Borrowed; NULL:
	 * not a probe. */
	const struct sample_uprobe *uprobe;
};
/* Parses "page-faults", "r01c2", "sched:sched_switch"; also "uprobe:..." and "usdt:...", which
 * still need their places (uprobe.h). 0; -EINVAL: no such event; -ENOENT: no such tracepoint, or
 * tracefs is unreadable; error says which and what to do. */
int sample_event_parse(const char *text, struct sample_event *ret, char *error, size_t n_error);
/* The names of the kernel's generic events, one by one; NULL after the last. */
const char *sample_event_known(unsigned int i);
/* Opens the event for this process without counting, and closes it: 0 or the kernel's -errno. */
int sample_event_try(const struct sample_event *e);
/*
 * Lets the kernel check a filter, such as "prev_state == 2", with an event of this process. 0;
 * -EINVAL: error says what is wrong and which fields there are. Another -errno: this process may
 * not open the event, so the filter is unchecked.
 */
int sample_filter_try(const struct sample_event *e, const char *filter, char *error,
		      size_t n_error);
/* The number of perf events that it takes: a probe of user code takes one for each place. */
uint32_t sample_event_sites(const struct sample_event *e);
#define SAMPLE_MAX_FILTER 512 /* with its 0; the kernel itself allows a page */
/* Its period is nanoseconds of a running CPU. */
bool sample_event_is_time(const struct sample_event *e);
/* The default period; 0: it is sampled at a rate. daemon: sampling runs for months and must be
 * cheap. */
uint64_t sample_event_period(const struct sample_event *e, bool daemon);
/* Bytes of the user stack to copy by default, if it is sampled by count: what is counted comes in
 * bursts, and more of smaller copies fit the rings. */
uint32_t sample_event_stack_bytes(const struct sample_event *e);
/* The event needs a counter of the processor. */
bool sample_event_is_hardware(const struct sample_event *e);
/* The event happens only inside the kernel. */
bool sample_event_is_kernel(const struct sample_event *e);
/* Both are the same event, whatever they are called. */
bool sample_event_equal(const struct sample_event *a, const struct sample_event *b);

/* The purpose of an event. */
enum sample_use {
	SAMPLE_USE_EVENT, /* itself */
	/* Off-CPU time, from sched:sched_switch: SWITCHES is each switch, with its payload and a
	 * few registers; BLOCKS is some of the switches at which a thread blocks, with its
	 * stack. */
	SAMPLE_USE_SWITCHES,
	SAMPLE_USE_BLOCKS,
	/* Besides, from sched:sched_waking: the stack of a thread that ends another one's block. */
	SAMPLE_USE_WAKEUPS,
	/* Markers of the allocation library: a block that was picked, with its stack; and behind it
	 * in the list of events the end of such a block, with registers. */
	SAMPLE_USE_PICKED,
	SAMPLE_USE_ENDED,
};
/* The events of off-CPU time. */
static inline bool sample_use_is_switches(enum sample_use use)
{
	return use == SAMPLE_USE_SWITCHES || use == SAMPLE_USE_BLOCKS || use == SAMPLE_USE_WAKEUPS;
}

/* The fields of sched:sched_switch: the thread that stops running, why, and the next one. */
struct sample_switch_fields {
	struct tracepoint_field prev_pid, prev_state, next_pid;
	struct tracepoint_field woken; /* of sched:sched_waking */
	/* There is no tracepoint: SWITCHES are the records of switches, which every user may have
	 * of own tasks, and BLOCKS is the software event context-switches. */
	bool plain;
};
/* Finds the event of both uses and its fields. 0; -ENOENT: this kernel has none, or tracefs is not
 * mounted or not readable for this user; error says what to do. */
int sample_find_switches(struct sample_event *ret, struct sample_switch_fields *ret_fields,
			 char *error, size_t n_error);

/*
 * The same without tracefs, from Linux 4.17 on (-ENOENT before): records of switches say that a
 * thread stops, and whether it could go on. Only a sample says where it stops; these samples are
 * taken in the kernel, so without the right to sample the kernel there are none.
 */
int sample_find_plain_switches(struct sample_event *ret, struct sample_switch_fields *ret_fields,
			       char *error, size_t n_error);

/*
 * Passes switches of threads that start to wait for something (S, D). "Not R" would also pass
 * preempted threads (R+), idle kernel threads (I) and dead ones. It excludes readers: a reader's
 * own block would be a sample that wakes the reader.
 */
#define SAMPLE_BLOCKS_FILTER "prev_state & 3 && prev_pid != 0 && prev_comm != \"pw-reader\""

/* Finds the event of wake-ups. The filter leaves out those by interrupts, whose stack is that of
 * any thread. */
int sample_find_wakeups(struct sample_event *ret, struct sample_switch_fields *ret_fields,
			char *error, size_t n_error);
#define SAMPLE_WAKEUPS_FILTER "!(common_flags & 24)"

/* How user stacks are walked. AUTO: DWARF if the kernel gives registers and stack, else FP. */
enum sample_stacks {
	SAMPLE_STACKS_AUTO,
	SAMPLE_STACKS_DWARF, /* registers and a copy of the stack, walked by us */
	SAMPLE_STACKS_FP,    /* the kernel follows frame pointers; no stack copies */
};

/* The most events that are sampled together, each with rings of its own. */
#define SAMPLE_MAX_EVENTS 6

struct sample_options {
	struct sample_event event;
	enum sample_use use;
	struct sample_switch_fields switch_fields; /* of both uses of switches */
	uint32_t index; /* among those sampled together; only 0 has the side band */
	uint32_t site;	/* of a probe of user code: its place; only 0 has the side band */
	/* Filter of a tracepoint: the kernel drops other events. NULL: none. Borrowed. */
	const char *filter;
	uint64_t period;  /* a sample every so many events; 0: rate_hz */
	uint32_t rate_hz; /* clamped to half of perf_event_max_sample_rate as it is now */
	enum sample_stacks stacks;
	bool only_user, only_kernel; /* only samples taken there */
	bool this_thread;	     /* with a pid: do not follow forks */
	/* only tasks in cgroup_fd, a cgroup2 or perf_event directory */
	bool by_cgroup;
	int cgroup_fd;
	uint32_t stack_bytes; /* rounded down to a multiple of 8, at most 65528; 0: no stack */
	uint64_t regs_mask;   /* sample_regs_user; 0: none */
	bool wall;	      /* of SAMPLE_USE_BLOCKS: all time of threads is wanted */
	/* SAMPLE_USE_PICKED: report only blocks in use that were allocated later than this after
	 * the first record. */
	uint64_t grown_after_ns;
	bool kernel_stacks;	 /* false: sample time in the kernel without kernel frames */
	uint64_t ring_bytes;	 /* sample ring of one CPU; halved down to 64 KiB while the kernel
				    refuses */
	uint64_t sideband_bytes; /* 0: 256 KiB */
	bool enable_on_exec;	 /* with a pid: start counting when it calls exec */
	/*
	 * With a pid: the side band is of the task and what it forks, and the samples are of all
	 * that runs on the CPU, for the reader of the ring to pick from. An event of a task begins
	 * with a whole period, also in each thread and process that inherits it, so none that lives
	 * for less than a period would ever be sampled. Exec does not enable such an event.
	 */
	bool whole_cpus;
	bool wake_each; /* wake pollers at each sample, not at half a ring */
};

/* The registers of this processor that a stack walk starts with, as perf's bits. */
extern const uint64_t sample_user_regs;
/* Of these, the registers that identify a place in a program, so that a stack walk can start with
 * them, and the first argument of a system call, where it is sampled. */
extern const uint64_t sample_place_regs;
/* Of these, the ones to sample at each switch. arguments: the first argument is wanted. */
uint64_t sample_switch_regs(bool arguments);
/* "x86_64", "aarch64": as uname says. */
extern const char sample_arch_name[];

/* One CPU's sample event and its side band. The owner of the struct owns the descriptors.
 * ring_map() maps the rings, merger_add_cpu() maps them for the merge. */
struct sample_cpu {
	int cpu;
	uint32_t index;		    /* of the event: sample_options.index */
	int sample_fd, sideband_fd; /* sideband_fd -EBADF: another event's */
	/* The event that samples into the ring of sample_fd, which is then disabled itself: see
	 * sample_replace_event(). -EBADF: sample_fd does. */
	int event_fd;
	uint64_t sample_ring_bytes,
		sideband_ring_bytes; /* data area, a power of two; 0: not mapped yet */
	/* For an event with a budget: samples allowed since it was opened. */
	uint64_t granted;
	const struct sample_uprobe *uprobe; /* of its event; NULL: it is no probe. Borrowed */
	bool whole_cpu;			    /* sample_options.whole_cpus */
};

/* Capabilities that matter, by number: headers older than 5.8 do not name CAP_PERFMON. */
enum {
	SAMPLE_CAP_DAC_READ_SEARCH = 2,
	SAMPLE_CAP_IPC_LOCK = 14,
	SAMPLE_CAP_SYS_PTRACE = 19,
	SAMPLE_CAP_SYS_ADMIN = 21,
	SAMPLE_CAP_SYS_NICE = 23,
	SAMPLE_CAP_SYSLOG = 34,
	SAMPLE_CAP_PERFMON = 38,
};

/* The settings that decide whether this process may open events. */
struct sample_circumstances {
	long paranoid;	       /* kernel.perf_event_paranoid; LONG_MIN: no such file */
	uint64_t capabilities; /* effective: bit SAMPLE_CAP_* */
	bool has_perfmon;      /* this kernel knows CAP_PERFMON */
	int seccomp;	       /* 0 off, 1 strict, 2 filter; -1 not known */
	bool emulated;	       /* by qemu-user, which has neither perf events nor filters */
	int seccomp_refusal;   /* the errno with which a filter refuses every call; 0: none */
	/* The kernel refuses every call for want of CAP_SYS_ADMIN, as those of Debian and Ubuntu do
	 * if paranoid is 3 or more; CAP_PERFMON changes nothing. */
	bool paranoid_refusal;
	/* Who manages this container, where that is like a machine of its own: "LXC",
	 * "systemd-nspawn"; NULL elsewhere. Options of podman and docker are unknown there. */
	const char *manager;
};
void sample_read_circumstances(struct sample_circumstances *ret);
/* The unit gets the drop-in that the kernel of now needs. */
#define SAMPLE_UNIT_ANEW "systemctl daemon-reload && systemctl restart perfwalk"
/* With paranoid_refusal: the highest kernel.perf_event_paranoid with which this process may sample
 * pid, which is its user's; -1: the host. */
int sample_paranoid_remedy(const struct sample_circumstances *c, pid_t pid);
/* What to do if the kernel refuses this process a real-time priority; a literal. */
const char *sample_priority_remedy(void);
/*
 * Is /proc mounted? Nothing works without it: processes, mapped files and our own program are
 * there.
 */
bool sample_has_proc(void);
#define SAMPLE_NO_PROC                                                                             \
	"/proc is not mounted, and perfwalk finds processes and their files there: "               \
	"mount -t proc proc /proc"
/* Is this the host's pid namespace? In another one the samples of processes outside have no pid. */
bool sample_sees_all_processes(void);
/* What to do where it is not; a literal. */
const char *sample_processes_remedy(const struct sample_circumstances *c);

static inline bool sample_has_capability(const struct sample_circumstances *c, int capability)
{
	return c->capabilities >> capability & 1;
}

/*
 * Keeps a probe set in every process, as long as this one lives; for events of single tasks. When
 * the kernel switches between threads of one origin, it swaps their events, but not the processes
 * in which it has set the probe, and removes the probe from a process if another thread ends. 0 or
 * -errno.
 */
int sample_keep_probe(struct sample_uprobe *u, int cpu);

/* Tries all features with disabled events. 0, or -errno of the plainest event with a message for
 * the user in error: cause, current value, remedy. */
int sample_probe(const struct sample_options *options, pid_t pid, struct sample_features *ret,
		 char *error, size_t n_error);
/*
 * Opens both events on one CPU, disabled. pid -1: the whole CPU; else the task and what it forks.
 * attach: NULL, or the events opened earlier on that CPU, which have the ring that this one shares
 * (more tasks of one capture; with whole_cpus these have no sample event). 0; -ENODEV: the CPU is
 * offline; other -errno with error filled.
 */
int sample_open_cpu(const struct sample_options *options, const struct sample_features *features,
		    int cpu, pid_t pid, const struct sample_cpu *attach, struct sample_cpu *ret,
		    char *error, size_t n_error);
void sample_close_cpu(struct sample_cpu *c);
/*
 * Replaces the sample event of a CPU with one that has other options. It writes into the same ring,
 * so no sample is lost. Only for a whole CPU (or cgroup). enable: it counts at once. 0, or -errno
 * and nothing has changed.
 */
int sample_replace_event(const struct sample_options *options,
			 const struct sample_features *features, struct sample_cpu *c, bool enable);
int sample_enable_cpu(const struct sample_cpu *c, bool enable);
/* The side band alone, before sample_enable_cpu(). 0 or -errno. */
int sample_enable_sideband(const struct sample_cpu *c);
/* Enables a sample event that exec does not (whole_cpus), without the side band. 0 or -errno. */
int sample_enable_whole_cpu(const struct sample_cpu *c);
/*
 * Lets a sample event take n samples from now on; then the kernel stops it until the next call.
 * Samples left from the last call are not added. The event is enabled; do not call
 * sample_enable_cpu(), which would lift the limit. Only for a whole CPU (or cgroup) with a period.
 * 1: the samples of the last call were used up; 0; -errno.
 */
int sample_grant_cpu(struct sample_cpu *c, uint64_t period, uint32_t n);
/*
 * How long the events of this CPU have been counting. The time grows while they are enabled, but
 * stops for good once their CPU has gone offline, even if it comes back. Nothing else shows that
 * (no error, no hang-up, and PERF_EVENT_IOC_ENABLE does not revive them). 0 or -errno.
 */
int sample_enabled_ns(const struct sample_cpu *c, uint64_t *ret_ns);
/* The event that samples is a timer of the kernel: its nanoseconds between samples; 0: it is no
 * timer. */
uint64_t sample_timer_ns(const struct sample_options *options,
			 const struct sample_features *features);
/* The timer may be set to that part of its period, and no less. */
#define SAMPLE_TIMER_PART 8
/* May it now? Not if the kernel could throttle the event then (sample_rate_now() has why). */
bool sample_may_set_timer(uint64_t timer_ns);
/* fd: of a timer of a whole CPU. The next sample is in so many nanoseconds, and others at that
 * distance. 0 or -errno. */
int sample_set_timer(int fd, uint64_t period_ns);
/* The descriptor that samples. */
int sample_fd_in_use(const struct sample_cpu *c);
/* The rate that an event opened now really gets. */
uint32_t sample_rate_now(const struct sample_options *options);
/* The online CPUs, ascending (gaps are normal), from /sys/devices/system/cpu/online, or from
 * /proc/stat if /sys is not mounted. Returns their number or -errno. */
int sample_online_cpus(int *cpus, size_t max);
/* The name of the counted event, such as "cpu-clock". */
const char *sample_event_name(const struct sample_options *options,
			      const struct sample_features *features);

/* ---- Rings ---- */
struct ring {
	int fd;
	struct perf_event_mmap_page *page;
	uint8_t *data;
	uint64_t data_bytes; /* power of two */
	uint64_t tail;	     /* where the caller reads next */
};
/* Maps fd with a data area of *bytes; on EPERM or ENOMEM halves *bytes, down to 64 KiB. 0 or
 * -errno. If the ring is already mapped elsewhere, *bytes must be the size used there. */
int ring_map(struct ring *r, int fd, uint64_t *bytes, bool may_shrink);
void ring_unmap(struct ring *r);
/* Text for the user about an error (-errno) of ring_map(): cause, current values, remedy. */
void ring_explain(int error, char *buf, size_t size);

/* ---- Records ---- */

/* sample_place_regs of a thread, in their order; where a processor has fewer, 0 behind them. */
#define SAMPLE_SPOT_REGS 5
struct sample_spot {
	uint64_t regs[SAMPLE_SPOT_REGS];
};

/*
 * A context switch from sched:sched_switch, and the place in its program where the thread stopped.
 * For plain switches, prev_state is that of a thread that blocks, and next_id is 0: another record
 * follows for the next thread.
 */
struct sample_switch {
	int64_t prev_state;
	uint32_t prev_id, next_id; /* threads, in the host's pid namespace; 0: the idle task */
	bool has_program;	   /* it is not a kernel thread */
	uint64_t sp, ip;
	uint64_t argument; /* the system call's first, if it is in one; 0: unknown */
	struct sample_spot spot;
};

#define SAMPLE_MAX_KERNEL_FRAMES 128

enum record_type {
	RECORD_SAMPLE,
	RECORD_SWITCH, /* of an event with SAMPLE_USE_SWITCHES: such a sample, read */
	RECORD_MMAP,   /* MMAP and MMAP2, executable only */
	RECORD_COMM,
	RECORD_FORK,
	RECORD_EXIT,
	RECORD_CGROUP,
	RECORD_LOST,	  /* lost records; from_sideband says of which ring; may be 0, see
		      * merger_read_lost()
		      */
	RECORD_THROTTLE,  /* the kernel paused this event; throttle_end: it resumed it */
	RECORD_SWITCH_IN, /* of a task that is sampled alone, or plain: it runs again */
	/* The same: it stops; preempted: it could go on. Only of plain switches. */
	RECORD_SWITCH_OUT,
	RECORD_BAD, /* contradicts itself; skipped */
};

/* Pointers are borrowed from the ring (or the merger's buffer) until the next call. */
struct record {
	enum record_type type;
	uint32_t index;	   /* of the event that wrote it: sample_options.index */
	uint64_t time_ns;  /* perf clock of the event */
	uint32_t pid, tid; /* in our pid namespace; (uint32_t)-1: the task is gone */
	uint32_t cpu;
	bool from_sideband;
	bool preempted; /* RECORD_SWITCH_OUT */
	union {
		struct {
			uint64_t ip, period, cgroup_id;
			uint64_t page_bytes; /* size of the page at the data address; 0: unknown */
			uint64_t n_kernel;
			const uint64_t *kernel; /* addresses, leaf first, without context markers */
			uint64_t n_user_chain;	/* user addresses of the callchain */
			const uint64_t *user_chain;
			uint64_t user_abi; /* PERF_SAMPLE_REGS_ABI_* ; NONE: no user side */
			const uint64_t *user_regs;
			/* The counts of all events of a group: n_read entries of read_words words,
			 * first a value, then the event's id; NULL: none. */
			const uint64_t *read;
			uint64_t n_read, read_words;
			const uint8_t *raw; /* of a tracepoint; NULL: none */
			uint64_t n_raw;
			const uint8_t *stack;
			uint64_t n_stack;   /* bytes copied */
			uint64_t max_stack; /* the most that would have been copied */
			bool in_kernel;	    /* cpumode */
			/* The user_regs that are really the task's (bits as in regs_mask). Some are
			 * missing only inside the kernel, where old kernels, and samples by NMI, do
			 * not have every register. */
			uint64_t user_regs_valid;
		} sample;
		struct sample_switch sw; /* RECORD_SWITCH */
		struct {
			uint64_t start, length, file_offset;
			uint32_t major, minor;
			uint64_t inode, generation; /* generation 0: the record is a plain MMAP */
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

/* Writes them in the order of sample_user_regs, with zeros for the others; regs has room for 64.
 * Returns which are valid. */
uint64_t sample_spot_to_regs(const struct sample_spot *spot, uint64_t *regs);
/* Writes only the stack pointer and the program counter in the same way. */
uint64_t sample_place_to_regs(uint64_t sp, uint64_t ip, uint64_t *regs);

/* Reads a switch from a sample with SAMPLE_USE_BLOCKS. false: its payload is too short. */
bool sample_read_switch(const struct sample_options *o, const struct record *r,
			struct sample_switch *ret);

/* The thread that is woken, as in struct sample_switch. false: its payload is too short. */
bool sample_read_wakeup(const struct sample_options *o, const struct record *r, uint32_t *ret_id);

/* The second argument of the system call that the sampled thread is in; any value if it is in none.
 * Needs registers. false: not known on this processor. */
bool sample_second_argument(const struct sample_options *o, const struct record *r, uint64_t *ret);
/* The arguments of a function of C or Go (since 1.17) at its first instruction. false: the record
 * does not have their registers, or this processor's are not known. */
#define SAMPLE_N_ARGUMENTS 4
bool sample_arguments(const struct sample_options *o, const struct record *r, bool go,
		      uint64_t ret[SAMPLE_N_ARGUMENTS]);
bool sample_has_arguments(void);
/* The number that the record's probe fetched. false: there is none, or its layout is unknown. */
bool sample_fetched(const struct record *r, uint64_t *ret);

/* Lost records by kind of ring; lost samples by the event's index. */
struct sample_losses {
	uint64_t samples[SAMPLE_MAX_EVENTS], sideband;
};

/*
 * Reads the rings of many CPUs in the order of record times. The sample heads are taken before the
 * side-band heads, and a record later than (latest seen - guard) waits for the next drain, unless
 * no ring has moved since or flush is set. So a mapping always comes before the sample that needs
 * it.
 */
struct merger;
int merger_new(struct merger **ret, const struct sample_options *options,
	       const struct sample_features *features);
/* Adds an event, with the next index. Call before its CPUs are added. 0 or -E2BIG. */
int merger_add_event(struct merger *m, const struct sample_options *options,
		     const struct sample_features *features);
struct merger *merger_free(struct merger *m);
DEFINE_CLEANUP(struct merger *, merger_free)
/* Counts each record in the ledger (borrowed), which outlives this process. Call before a CPU is
 * added. */
void merger_keep_ledger(struct merger *m, struct ledger *ledger);
/* The ledger's counts of an event before we read anything, from earlier readers. Call once all CPUs
 * have been added. */
struct sample_tally merger_start(const struct merger *m, uint32_t index);
/* Maps the rings of a CPU and an event (fds stay open and the caller's). 0 or -errno. */
int merger_add_cpu(struct merger *m, const struct sample_cpu *c);
/* From now on another event writes into the sample ring of a CPU and an event
 * (sample_replace_event()); event_fd stays open and the caller's. Reads the lost count of the old
 * one for the last time. */
void merger_replace_event(struct merger *m, int cpu, uint32_t index, int event_fd);
/* Removes all rings of the CPU. Records left in them are dropped: drain first. */
void merger_remove_cpu(struct merger *m, int cpu);
/*
 * Begins a drain: takes all heads. settled_ns: no record up to that time (perf clock) is on its way
 * any more; 0: that is not known; UINT64_MAX: none is at all.
 */
void merger_begin(struct merger *m, uint64_t settled_ns);
/* true and the next record; false: this drain is done, and the ring space of all its records
 * released. */
bool merger_next(struct merger *m, struct record *ret);
/*
 * No more records will come up to that time; UINT64_MAX: all records at merger_begin() have been
 * returned.
 */
uint64_t merger_limit(const struct merger *m);
/* Counts the last sample as filtered. */
void merger_filter(struct merger *m);
/* Does not count the last sample: it is of a task that nobody asked for (whole_cpus). */
void merger_pass_over(struct merger *m);
/*
 * Lost records according to read(2) of the events (PERF_FORMAT_LOST) that no RECORD_LOST has
 * reported yet; 0 if the kernel does not count them. The total loss is the sum of these results and
 * of the RECORD_LOST counts, with each lost record counted once: a RECORD_LOST for a loss that was
 * already returned here says 0.
 */
struct sample_losses merger_read_lost(struct merger *m);
/* How many events of that index the kernel has counted on all CPUs, also those that no sample was
 * due for yet. Of an event that was replaced, or of more than one on a CPU, only a part. */
uint64_t merger_read_count(const struct merger *m, uint32_t index);
