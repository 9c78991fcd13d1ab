/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside of the broker: its state, and how the children are set up (setup.c). */
#include <sys/stat.h>

#include "src/broker/broker.h"
#include "src/broker/custody.h"
#include "src/broker/events.h"
#include "src/broker/governor.h"
#include "src/broker/peers.h"
#include "src/broker/supervisor.h"
#include "src/opener/listener.h"
#include "src/process/privileges.h"
#include "src/process/statistics.h"
#include "src/process/status-page.h"
#include "src/reader/setup.h"
#include "util/clock.h"

#define BROKER_MAX_CGROUPS   64
#define BROKER_CAPTURE_BYTES (UINT64_C(1) << 30)  /* of a profile, of a capture */
#define BROKER_PULL_BYTES    (UINT64_C(16) << 20) /* of a profile asked for over HTTP */

/* Of its own, and of each copy of it that opens files. */
#define BROKER_DATA_BYTES (UINT64_C(32) << 20)

struct statistics;

/* Of a reader: 64 KiB of a client usually, never more than 2 MiB. */
#define READER_DATA_BYTES (UINT64_C(48) << 20)

enum broker_state {
	BROKER_STARTING,  /* the events do not count yet */
	BROKER_RUNNING,	  /* they do, unless it is paused */
	BROKER_REOPENING, /* for a new config: readers of the events are replaced */
	BROKER_STOPPING,  /* child after child leaves for good */
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
	char *strikes_path;		       /* NULL: there is none */
	struct privileges privileges, network; /* network: of those who have it */
	gid_t group;			       /* whose members may use the sockets; -1: nobody */
	bool has_user;			       /* the one of the config, not one in its place */
	bool *cpus;			       /* EVENTS_MAX_CPUS: which are wanted; NULL: all */
	int cgroup_fds[BROKER_MAX_CGROUPS];    /* what the kernel itself samples only; n_cgroups */
	size_t n_cgroups;
	/* Directories of the exporter's. */
	struct broker_state_dir {
		char *path; /* that was tried last, for fd or in vain */
		int fd;
	} spool, store;
	struct broker_state_dir debug_cache; /* the fetcher's */
	struct status_counts counts_of_the_dead;
	/* Of a capture: what the last symbolizer counted. All comes to the next one, which counts
	 * it again. */
	struct status_counts last_symbolizer;
	struct ledger *ledger; /* of the rings; NULL: a file is read */
	int ledger_fd;
	struct custody custody;	   /* of payloads */
	struct sample_place place; /* where the windows begin that no symbolizer has settled */
	uint64_t start_unix_ns, flushed_at_ns;
	struct listener metrics; /* of the metrics process's */
	char *metrics_listen;	 /* as in the config; NULL: none */
	bool forget_exports;	 /* the exporter that leaves counts for other destinations */
	int deadline_timer;
	uint64_t looked_ns; /* after the events, the last time */
	int result;
	uint32_t written_outputs;
	int32_t output_errors[BROKER_MAX_OUTPUTS];
	bool paused;	   /* on demand */
	uint64_t flush_id; /* asked for last */
	bool input_damaged;
	struct broker_event next_events[SAMPLE_MAX_EVENTS]; /* of the reload; n_next_events */
	uint32_t n_next_events;
	bool adapt_stack_size; /* the profiler may have the stack copies made larger or smaller */
	uint64_t resized_ns;   /* when it last did */
	/* Of the allocation library: files with its contents, each with the same two probes. */
	struct library_copy { /* or a runtime's own allocator */
		struct stat st;
		bool overlay; /* another container's file may be the same one in a lower layer */
		uint32_t pid; /* who had it mapped last, as far as is known */
		struct sample_uprobe *picked, *ended; /* ended NULL: that is not told */
	} copies[EVENTS_MAX_COPIES];
	uint32_t n_copies;
	struct log_ratelimit copies_full;
	struct cpu_budget {
		struct governor governor;
		uint32_t reduced;	/* by enum reduction: what the daemon does without */
		uint32_t used_ppm;	/* of all CPUs, in the last window */
		uint64_t at_ns, cpu_ns; /* when this one began, and what was used by then */
	} budget;
	struct switch_turns {
		struct halving halving;
		bool off;	     /* the switches stand still now, to go on again */
		uint64_t changed_ns; /* when that began, or they went on; 0: not at all yet */
		uint64_t counted_ns; /* for how long they counted since the last look, until then */
		uint64_t looked_ns;
		uint64_t n_records; /* of them, by the last look */
		int timer, grant_timer;
	} turns;
	struct broker_readers {
		struct broker_client {	       /* a process with an interpreter */
			uint32_t pid, own_pid; /* own: in its own pid namespace */
			uint64_t image;
			uint32_t major, minor;
			struct client_threads threads;
			int memory, maps;
		} clients[READERS_MAX_CLIENTS];
		uint32_t n_clients;
		bool running;
		uint64_t idle_since_ns;
		uint32_t set_aside[64]; /* processes that kept a reader waiting: a ring */
		uint32_t n_set_aside, n_not_allowed, n_too_many;
		struct log_ratelimit refused, not_in_front, no_room;
	} readers;
	struct broker_foresight {
		uint64_t until_ns; /* sampling begins then at the latest; 0: it has begun */
		void (*begin)(struct broker *b);
		bool looked, running;
		int timer;
	} foresight;
};

/* Chooses the users of the children (users.c). 0 or -errno, told. */
int broker_choose_users(struct broker *b);
/* The daemon has somewhere to put its profiles: 0 or -errno, told. */
int broker_check_destination(struct broker *b);
/* What the config and the options say is to be sampled, into *ret. 0 or -errno, told.
 */
int broker_find_targets(struct broker *b, struct events_targets *ret);
void broker_forget_targets(struct broker *b);

/* Opens what the options say, disabled (sampling.c). 0 or -errno, told. */
int broker_open_events(struct broker *b);
void broker_close_events(struct broker *b);
static inline bool broker_is_sampling(const struct broker *b)
{
	return b->state == BROKER_RUNNING && !b->paused && !b->foresight.until_ns;
}
/* Lets them count, or stand still. 0 or -errno. */
int broker_enable_events(struct broker *b, bool enable);
/* The profiler asks for stack copies of that size. */
void broker_resize_stacks(struct broker *b, uint32_t bytes);
/* These two are called so often. */
#define BROKER_LOOK_NS NSEC_PER_SEC
/* CPUs that went or came since the last look, and the budgets of events. */
void broker_look_after_events(struct broker *b);
/*
 * Of a daemon: measures its CPU time, and changes its quality to keep [limits] cpu (budget.c).
 * Whether the rate of the events is another one now.
 */
bool broker_look_at_budget(struct broker *b);
int broker_add_turns(struct broker *b);
/* Of a daemon with off-CPU time (turns.c): as many switches are followed as its CPU time allows. */
void broker_look_at_switches(struct broker *b);
/* Before events are let count, or after they were stopped: the turns begin anew. */
void broker_begin_turns(struct broker *b);
/* By how much the budget divides the rate of all events. */
static inline uint32_t broker_rate_divisor(const struct broker *b)
{
	return 1u << __builtin_popcount(b->budget.reduced & REDUCED_RATE_BITS);
}
/* The stack copies become as large as the budget allows: again, or no more. */
void broker_limit_stacks(struct broker *b);
/* A running symbolizer takes what the config and the budget say now. */
void broker_tell_symbolizer_config(struct broker *b);
/*
 * A process has that file mapped, called as the allocation library: it is sampled, too, if it has
 * the contents of ours (copies.c). 0, also if it is already; -ENOENT: allocations are not sampled,
 * or of single processes only; -ESTALE: it is another version; -E2BIG: too many; -errno.
 */
int broker_add_copy(struct broker *b, const struct message *ask);
/* The same of a runtime with an allocator of its own, at the places that the profiler found in its
 * file. -ESTALE: they are none. */
int broker_add_allocator(struct broker *b, const struct message *ask);
/* Those whose processes are gone; all; and those of events that were opened anew. */
void broker_look_after_copies(struct broker *b);
void broker_forget_copies(struct broker *b);
void broker_attach_copies(struct broker *b);
/* CPU time of all processes of the tree since its start, also of the dead. */
uint64_t broker_cpu_ns(const struct broker *b);

/* What all children have counted, also those that have died. */
void broker_counts(const struct broker *b, struct status_counts *ret);
/* Those, and how things stand. */
void statistics_collect(const struct broker *b, struct statistics *ret);

/* Of all children, and of who opens their files. */
enum sandbox_mode broker_seccomp(const struct broker *b);

/* peer_row.set_up of each kind. */
int broker_set_up_profiler(void *ctx, struct peer_id who, int control, int status_fd);
int broker_set_up_symbolizer(void *ctx, struct peer_id who, int control, int status_fd);
int broker_set_up_exporter(void *ctx, struct peer_id who, int control, int status_fd);
int broker_set_up_screen(void *ctx, struct peer_id who, int control, int status_fd);
int broker_set_up_metrics(void *ctx, struct peer_id who, int control, int status_fd);
int broker_set_up_fetcher(void *ctx, struct peer_id who, int control, int status_fd);
int broker_set_up_reader(void *ctx, struct peer_id who, int control, int status_fd);
struct setup_common broker_common_setup(const struct broker *b, enum peer kind);
/* peer_row.limit of each kind that needs other limits than all. */
/*
 * How many files the profiler may hold open: what the config says, or, where the host allows few
 * descriptors, half of what its rings leave. The rest is for windows that wait.
 */
uint32_t broker_files_of_profiler(const struct broker *b);
void broker_limit_profiler(const void *ctx, struct privileges *ret);
void broker_limit_symbolizer(const void *ctx, struct privileges *ret);
void broker_limit_exporter(const void *ctx, struct privileges *ret);
void broker_limit_fetcher(const void *ctx, struct privileges *ret);
void broker_limit_metrics(const void *ctx, struct privileges *ret);
void broker_limit_reader(const void *ctx, struct privileges *ret);
/* Sets the limits of a kind. */
void broker_limit(const struct broker *b, enum peer kind, struct privileges *ret);
/* Opened once for each path that is configured, and tried once a reload; told when it cannot be.
 * path "": not wanted. The descriptor, negative without one. */
int broker_open_state_dir(struct broker *b, struct broker_state_dir *d, const char *path,
			  bool shared, const char *what, const char *instead);
/* A reload: what could not be opened is tried again. */
void broker_forget_failed_dir(struct broker_state_dir *d);
/* Tells the profiler of a CPU; of the event that now samples into its ring, if it is another. */
int broker_send_cpu(const struct broker *b, const struct cpu_events *c, bool came_online);
int broker_send_event(const struct broker *b, const struct cpu_events *c);

/* The profiler has seen an interpreter in a process, or sees it no more (readers.c). */
void broker_add_client(struct broker *b, const struct message *from);
void broker_remove_client(struct broker *b, uint32_t pid);
/* Whether a process's memory has kept nobody waiting: struct supervisor_callbacks. */
bool broker_may_read(void *ctx, uint32_t pid);
/*
 * foresee.c. Before a capture's first sample the profiler looks for interpreters: begin() comes
 * later. false: there is nothing to wait for.
 */
bool broker_foresee(struct broker *b, void (*begin)(struct broker *b));
void broker_has_looked(struct broker *b);
/* sampling.c: sampling begins now. 0 or -errno. */
int broker_begin(struct broker *b);

/* A reader asks for a thread's own number. */
void broker_tell_own_tid(struct broker *b, struct peer_id who, uint32_t tid);
/* The profiler that knew them is gone. */
void broker_forget_clients(struct broker *b);
/* Starts readers, or lets them go. Called when there is a client, and every second. */
void broker_look_after_readers(struct broker *b);
/* Whether an event's samples wake the readers: those of CPU time, and of threads that block. */
bool broker_wakes_readers(const struct broker *b, uint32_t index);
/* A child did not come to an end with that process's memory; 0: with none's. */
void broker_set_aside_process(struct broker *b, struct peer_id who, uint32_t pid);

/* The fetcher's cache, where the config wants one (fetch.c): its descriptor, negative without
 * one. */
int broker_open_debug_cache(struct broker *b);
void broker_reload_fetcher(struct broker *b);
/* supervisor_callbacks.debug_file of the broker: -EINPROGRESS: it is being fetched. */
int broker_debug_file(void *ctx, const struct message *ask);
/* To the symbolizer what the fetcher says; NULL: that it died, and no answer comes any more. */
void broker_tell_fetched(struct broker *b, const struct message *from);
