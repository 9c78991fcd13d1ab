/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside of the broker: its state, and how the children are set up (setup.c). */
#include <sys/stat.h>

#include "src/broker/broker.h"
#include "src/broker/custody.h"
#include "src/broker/events.h"
#include "src/broker/governor.h"
#include "src/broker/peers.h"
#include "src/broker/strikes.h"
#include "src/broker/supervisor.h"
#include "src/opener/listener.h"
#include "src/process/privileges.h"
#include "src/process/statistics.h"
#include "src/process/status-page.h"
#include "src/reader/setup.h"
#include "util/clock.h"

#define BROKER_MAX_CGROUPS   64
#define BROKER_CAPTURE_BYTES (UINT64_C(1) << 30)  /* memory for the profile of a capture */
#define BROKER_PULL_BYTES    (UINT64_C(16) << 20) /* memory for a profile pulled over HTTP */

struct statistics;

enum broker_state {
	BROKER_STARTING,  /* the events do not count yet */
	BROKER_RUNNING,	  /* the events count, unless the broker is paused */
	BROKER_REOPENING, /* a reload replaces the processes that read the events */
	BROKER_STOPPING,  /* one child after the other finishes */
	BROKER_DONE,	  /* done() was called */
};

struct broker {
	enum broker_state state;
	struct loop *loop;
	const struct peer_row *rows; /* n_rows: the kinds of children */
	size_t n_rows;
	struct broker_options options;
	struct events events[SAMPLE_MAX_EVENTS]; /* as in options */
	struct supervisor *supervisor;
	char *strikes_path;		       /* see quarantine.h; NULL: none */
	struct privileges privileges, network; /* network: of the children that have it */
	gid_t group;			       /* its members may use the sockets; -1: no group */
	bool has_user;			    /* the config's user exists, and the children use it */
	bool *cpus;			    /* EVENTS_MAX_CPUS: is it wanted? NULL: all are */
	int cgroup_fds[BROKER_MAX_CGROUPS]; /* n_cgroups to which the kernel limits events */
	size_t n_cgroups;
	/* The exporter's directories. */
	struct broker_state_dir {
		char *path; /* the last one tried, with or without success */
		int fd;
	} spool, store;
	struct broker_state_dir debug_cache; /* the fetcher's */
	struct status_counts counts_of_the_dead;
	/* In a capture: the counts of the last symbolizer. The next one gets the same windows, and
	 * counts them again. */
	struct status_counts last_symbolizer;
	struct ledger *ledger; /* of the rings; NULL: a file is read */
	int ledger_fd;
	int blocks_fd;		   /* of blocks in use, which profilers keep there */
	struct custody custody;	   /* of payloads */
	struct sample_place place; /* the start of the first window that is not settled */
	uint64_t start_unix_ns, flushed_at_ns;
	struct listener metrics; /* the metrics process serves it */
	char *metrics_listen;	 /* as in the config; NULL: none */
	bool forget_exports;	 /* the exporter's counts are of destinations of the old config */
	int deadline_timer;
	uint64_t looked_ns; /* the last look after the events (CLOCK_MONOTONIC) */
	int result;
	uint32_t written_outputs;
	int32_t output_errors[BROKER_MAX_OUTPUTS];
	bool paused;	   /* by broker_pause() */
	uint64_t flush_id; /* the last MESSAGE_FLUSH */
	bool input_damaged;
	struct broker_event next_events[SAMPLE_MAX_EVENTS]; /* of the reload; n_next_events */
	uint32_t n_next_events;
	bool adapt_stack_size; /* the profiler may choose the size of stack copies */
	uint64_t resized_ns;   /* when it last did */
	/* Files with the contents of the allocation library, or with a runtime's own allocator,
	 * each with two probes. */
	struct library_copy {
		struct stat st;
		bool overlay; /* another container's file may be the same one in a lower layer */
		uint32_t pid; /* the last process known to map it */
		struct sample_uprobe *picked, *ended; /* ended NULL: ends are not sampled */
	} copies[EVENTS_MAX_COPIES];
	uint32_t n_copies;
	struct log_ratelimit copies_full;
	struct cpu_budget {
		struct governor governor;
		uint32_t reduced;	/* by enum reduction: what the daemon gave up */
		uint32_t used_ppm;	/* share of all CPUs in the last window */
		uint64_t at_ns, cpu_ns; /* when this window began, and the CPU time until then */
	} budget;
	struct switch_turns {
		struct halving halving;
		bool off;	     /* the events of switches stand still for a part of a turn */
		uint64_t changed_ns; /* when they last stopped or went on; 0: never */
		uint64_t counted_ns; /* from the last look to changed_ns, how long they counted */
		struct record_rate rate;
		int timer, grant_timer;
		uint64_t granted_ns;
		bool known; /* nearly all places of blocks: fewer grants do */
	} turns;
	struct broker_readers {
		struct broker_client {	       /* a process with an interpreter, or with contexts */
			uint32_t pid, own_pid; /* own: in its own pid namespace */
			uint64_t images[CLIENT_MAX_IMAGES];
			uint32_t major, minor;
			struct client_threads threads;
			int memory, maps;
		} clients[READERS_MAX_CLIENTS];
		uint32_t n_clients;
		bool running;
		uint64_t idle_since_ns;
		/* Processes that kept a reader waiting, or the profiler (broker_process_of()). */
		struct strikes aside;
		uint32_t n_set_aside, n_not_allowed, n_too_many;
		struct log_ratelimit refused, not_in_front, no_room, counted, uneven;
	} readers;
	struct broker_foresight {
		uint64_t until_ns; /* the latest time to begin sampling; 0: it has begun */
		void (*begin)(struct broker *b);
		bool looked, running;
		int timer;
	} foresight;
	struct broker_standing { /* threads that are looked at as their off-CPU time begins */
		pid_t *tasks;	 /* NULL: all are told */
		struct message_stands *found;
		size_t n, next, n_found, n_told;
		int timer;
	} standing;
};

/* Chooses the users of the children (users.c). 0 or -errno (logged). */
int broker_choose_users(struct broker *b);
/* Checks that the daemon has a destination or a store for its profiles. 0 or -errno (logged). */
int broker_check_destination(struct broker *b);
/* Sets *ret to the targets that the config and the options name; they live until
 * broker_forget_targets(). 0 or -errno (logged). */
int broker_find_targets(struct broker *b, struct events_targets *ret);
/* Tells the profiler which processes are sampled, if any were named. all: also their descendants
 * that live now, of which no side band has told it. */
void broker_tell_targets(struct broker *b, bool all);
void broker_forget_targets(struct broker *b);

/* Opens the events of the options, disabled (sampling.c). 0 or -errno (logged). */
int broker_open_events(struct broker *b);
void broker_close_events(struct broker *b);
static inline bool broker_is_sampling(const struct broker *b)
{
	return b->state == BROKER_RUNNING && !b->paused && !b->foresight.until_ns;
}
/* Lets the events count, or stops them. 0 or -errno. */
int broker_enable_events(struct broker *b, bool enable);
/* The profiler asks for stack copies of that size. */
void broker_resize_stacks(struct broker *b, uint32_t bytes);
/* How often the next two functions are called. */
#define BROKER_LOOK_NS NSEC_PER_SEC
/* Follows CPUs that came or went since the last look, and grants the budgets of events. */
void broker_look_after_events(struct broker *b);
/*
 * In a daemon: measures its CPU time, and changes its quality to keep [limits] cpu (budget.c).
 * true: the rate of the events has changed.
 */
bool broker_look_at_budget(struct broker *b);
/* Makes the timers of turns.c. 0 or -errno. */
int broker_add_turns(struct broker *b);
/* With off-CPU time of the host: follows as many switches as their share of CPU time allows
 * (turns.c). */
void broker_look_at_switches(struct broker *b);
/* Starts the turns anew: before events are enabled, and after they were stopped. */
void broker_begin_turns(struct broker *b);
/* MESSAGE_ENOUGH: the event stands still on that CPU until the next grant. */
void broker_rest_event(struct broker *b, const struct message *m);
/* MESSAGE_PLACES_KNOWN. */
void broker_know_places(struct broker *b, bool known);
/* By how much the budget divides the rate of all events. */
static inline uint32_t broker_rate_divisor(const struct broker *b)
{
	return 1u << __builtin_popcount(b->budget.reduced & REDUCED_RATE_BITS);
}
/* Limits the size of stack copies to what the budget allows now. */
void broker_limit_stacks(struct broker *b);
/* Sends a running symbolizer what the config and the budget say now. */
void broker_tell_symbolizer_config(struct broker *b);
/*
 * A process has mapped a file with the name of the allocation library: samples it, too, if it has
 * the contents of ours (copies.c). 0, also if it was there before; -ENOENT: allocations are not
 * sampled, or only those of single processes; -ESTALE: it is another version; -E2BIG: there are
 * EVENTS_MAX_COPIES; another -errno.
 */
int broker_add_copy(struct broker *b, const struct message *ask);
/* Samples a runtime with an allocator of its own in the same way, at the places that the profiler
 * found in its file. -ESTALE: no functions begin there. */
int broker_add_allocator(struct broker *b, const struct message *ask);
/* Removes the copies whose processes have ended. */
void broker_look_after_copies(struct broker *b);
/* Removes all copies. */
void broker_forget_copies(struct broker *b);
/* Adds the copies to events that were opened again. */
void broker_attach_copies(struct broker *b);
/* CPU time of all processes of the tree since its start, including those that have ended. */
uint64_t broker_cpu_ns(const struct broker *b);

/* The counts of all children, including those that have died. */
void broker_counts(const struct broker *b, struct status_counts *ret);
/* Those, and the present state of the tree. */
void statistics_collect(const struct broker *b, struct statistics *ret);

/* For all children, and for the process that opens their files. */
enum sandbox_mode broker_seccomp(const struct broker *b);

/* peer_row.set_up of each kind. */
int broker_set_up_profiler(void *ctx, struct peer_id who, int control, int status_fd);
int broker_set_up_symbolizer(void *ctx, struct peer_id who, int control, int status_fd);
int broker_set_up_exporter(void *ctx, struct peer_id who, int control, int status_fd);
int broker_set_up_screen(void *ctx, struct peer_id who, int control, int status_fd);
int broker_set_up_metrics(void *ctx, struct peer_id who, int control, int status_fd);
int broker_set_up_fetcher(void *ctx, struct peer_id who, int control, int status_fd);
int broker_set_up_reader(void *ctx, struct peer_id who, int control, int status_fd);
/* The part of the set-up that all kinds share. */
struct setup_common broker_common_setup(const struct broker *b, enum peer kind);
/*
 * How many files the profiler may hold open: what the config says, or, where the host allows few
 * descriptors, half of what its rings leave. The rest is for windows that wait.
 */
uint32_t broker_files_of_profiler(const struct broker *b);
/* Sets the limits of a kind, by the table of limits.h. */
void broker_limit(const struct broker *b, enum peer kind, struct privileges *ret);
/* Opens a directory, once for each configured path; one that failed is tried again at a reload. A
 * failure is logged, as what the directory is and what happens instead. path "": not wanted.
 * Returns the descriptor, which d owns; negative: there is none. */
int broker_open_state_dir(struct broker *b, struct broker_state_dir *d, const char *path,
			  bool shared, const char *what, const char *instead);
/* At a reload: lets a directory that could not be opened be tried again. */
void broker_forget_failed_dir(struct broker_state_dir *d);
/* Sends the profiler the events of a CPU. 0 or -errno. */
int broker_send_cpu(const struct broker *b, const struct cpu_events *c, bool came_online);
/* Sends it, and the CPU's reader, the new event that samples into the ring of a CPU. 0 or -errno.
 */
int broker_send_event(const struct broker *b, const struct cpu_events *c);

/* Nanoseconds between samples of CPU time, of timers that readers may set: there is one for each
 * CPU, and samples have our clock. 0: readers may not (timers.c). */
uint64_t broker_timer_ns(const struct events *e);
/* Tells its reader that a new event samples into the ring of a CPU. */
void broker_tell_reader(const struct broker *b, const struct cpu_events *c);
/* A CPU's reader is gone: samples come at their period again, whatever it had set. */
void broker_set_timer(const struct broker *b, uint32_t cpu);

/* The profiler has seen an interpreter in a process, or sees it no longer (readers.c). */
void broker_add_client(struct broker *b, const struct message *from);
void broker_remove_client(struct broker *b, uint32_t pid);
/* supervisor_callbacks.may_read. */
bool broker_may_read(void *ctx, uint32_t pid);
/*
 * Lets the profiler look for interpreters before a capture's first sample; begin() is called when
 * it has (foresee.c). false: there is no reason to wait, and begin() is not called.
 */
bool broker_foresee(struct broker *b, void (*begin)(struct broker *b));
/* The profiler has looked. */
void broker_has_looked(struct broker *b);
/* Tells the profiler which threads of the given processes, or of the captured host, are blocked
 * now, for off-CPU time, as fast as it reads that (stands.c). */
void broker_tell_standing(struct broker *b);
void broker_forget_standing(struct broker *b);
/* The capture ends: the same, and tells the profiler how many it has not heard of. */
void broker_end_standing(struct broker *b);
/* Makes the timer for it. 0 or -errno. */
int broker_add_standing(struct broker *b);
/* Begins to sample (sampling.c). 0 or -errno. */
int broker_begin(struct broker *b);

/* Answers a reader that asks for what own-tids.h has of a thread. */
void broker_tell_thread(struct broker *b, struct peer_id who, uint32_t tid, bool with_stat);
/* Forgets all clients, because the profiler that knew them is gone. */
void broker_forget_clients(struct broker *b);
/* Starts or stops readers. Call it when there is a client, and every second. */
void broker_look_after_readers(struct broker *b);
/* Are there interpreters to be read? The config may say no, or the first event may have a period
 * other than one of time that bounds how often it wakes readers. */
bool broker_reads_interpreters(const struct broker *b);
/* Do an event's samples wake the readers? Those of CPU time do, and those of threads that block. */
bool broker_wakes_readers(const struct broker *b, uint32_t index);
/* A child died while it read that process's memory: nobody reads it for a while. pid 0: it read
 * none. */
void broker_set_aside_process(struct broker *b, struct peer_id who, uint32_t pid);
/* The process of a strike in readers.aside; 0: it has ended. */
uint32_t broker_process_of(const struct strike *k);
/* Lets those be read again whose time is up by now (CLOCK_MONOTONIC; UINT64_MAX: all). Returns how
 * many of them are there still. */
uint32_t broker_read_processes_again(struct broker *b, uint64_t now);

/* Opens the fetcher's cache, if the config wants one (fetch.c). Returns its descriptor, which b
 * owns; negative: there is none. */
int broker_open_debug_cache(struct broker *b);
void broker_reload_fetcher(struct broker *b);
/* supervisor_callbacks.debug_file. -EINPROGRESS: the file is being fetched. */
int broker_debug_file(void *ctx, const struct message *ask);
/* Passes the fetcher's message on to the symbolizer. NULL: the fetcher died, and its answers will
 * not come. */
void broker_tell_fetched(struct broker *b, const struct message *from);
