/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside of perfwalk record: its options, its events and its messages. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/broker/broker.h"
#include "src/cmd/options.h"
#include "src/cmd/outputs.h"
#include "src/config/config.h"

#define RECORD_MAX_HZ	 10000
#define RECORD_MAX_COUNT (UINT64_C(1) << 62)

struct record_options {
	const struct command *command; /* for messages of -e */
	struct config *config;	       /* borrowed; the filters go into it */
	pid_t pids[OPTIONS_MAX_IDS];
	size_t n_pids;
	bool processes, threads; /* which ids they are */
	struct broker_event events[SAMPLE_MAX_EVENTS];
	/* A name for each event, from EVENT/name=TEXT/; "": its own. Set by record_events_check().
	 * */
	char labels[SAMPLE_MAX_EVENTS][sizeof(((struct sample_event *)0)->name)];
	uint32_t n_events;
	enum sample_stacks stacks;
	bool only_user, only_kernel;
	struct outputs outputs;
	uint64_t duration_ns; /* 0: not given */
	/* For events without their own; 0: not given. */
	uint64_t rate_hz, period, stack_bytes;
	enum config_demangle demangle;
	bool off_cpu;			 /* off-CPU time; its events are the last ones */
	bool locks;			 /* with wake-ups */
	bool locks_if_possible;		 /* else a warning says that they are left out */
	bool wall;			 /* with all time of threads, as one type */
	uint64_t grown_after_ns;	 /* of allocations; 0: not given */
	bool allocations, memory_growth; /* their events were added */
	bool events_given;		 /* by -e */
	const char *asked; /* the event of the first option for a type; NULL: of -e, or none */
	bool all, user_only, no_lines, no_inline, no_interpreters, no_native_frames, idle, strict,
		quiet, verbose;
};

/*
 * Parses the command line. o: all zero except config. 0: *ret_first is the index of the command,
 * argc if there is none; 1: --help was printed; -EINVAL: an error was printed.
 */
int record_options_parse(struct record_options *o, int argc, char **argv, int *ret_first);
/* Warns if no process that runs now matches the filters, and says where to look. */
void record_say_if_nothing_matches(const struct record_options *o);
/* Says which processes the given ones forked before, since they are left out. */
void record_say_who_was_forked(const struct record_options *o);
/* Warns of each output that holds only one of several events. */
void record_say_what_is_left_out(const struct record_options *o);
/* Warns of each event whose sum will be the kernel's guess. */
void record_say_what_is_guessed(const struct record_options *o);
/* Warns if blocks have no tracepoint, so that stacks will be missing. */
void record_say_if_plain(const struct broker_event *blocks);
/* Writes "cpu-clock at 99 Hz", "page-faults (each one)"; returns as snprintf(3). */
size_t record_describe_event(const struct broker_event *e, char *buf, size_t size);
/* Warns if much of the time that the command was in user code, as the kernel counts it, has no
 * sample. */
void record_say_what_is_missing(const struct record_options *o, const struct broker *b,
				uint64_t user_ns);
/* Logs what is recorded, how often, and on how many CPUs. */
void record_say_started(const struct record_options *o, bool command, unsigned int n_cpus);

/* The next functions return 0, or -EINVAL after an error was printed. */
/* Adds the events of a value of -e, also for perfwalk top. */
int record_events_parse(struct record_options *o, const char *value);
/* Sets the filter of the last event (--filter). */
int record_events_filter(struct record_options *o, const char *value);
/* An option for a type was given. CPU time stands before what options add, but what was asked for
 * first is shown first. */
void record_ask_for(struct record_options *o, const char *event);
/* Adds the event of memory growth, unless it is there. */
int record_add_memory_growth(struct record_options *o);
/* Adds the events of allocations, unless they are there. */
int record_add_allocations(struct record_options *o);
/* Call it after all options: sets the rates, periods and sizes of the events. */
int record_events_check(struct record_options *o);
/* Call it after that: adds the events of off-CPU time, of tasks or of whole CPUs. Also -ENOENT. */
int record_add_off_cpu(struct record_options *o, bool of_tasks);
/* Parses 1K to 65528. 0 or -EINVAL; prints nothing. */
int record_parse_stack_bytes(const char *value, uint64_t *ret);
