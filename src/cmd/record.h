/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside of perfwalk record: what it was asked for. */
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
	/* What each is called in place of its own name; "": that. Set by record_events_check(). */
	char labels[SAMPLE_MAX_EVENTS][sizeof(((struct sample_event *)0)->name)];
	uint32_t n_events;
	enum sample_stacks stacks;
	bool only_user, only_kernel;
	struct outputs outputs;
	uint64_t duration_ns; /* 0: not given */
	/* Of events that have none of their own; 0: not given. */
	uint64_t rate_hz, period, stack_bytes;
	enum config_demangle demangle;
	bool off_cpu;			 /* its events are the last ones */
	bool locks;			 /* of these, too */
	bool wall;			 /* and all that threads do, as one type */
	uint64_t grown_after_ns;	 /* of allocations; 0: not given */
	bool allocations, memory_growth; /* their events are there already */
	bool events_given;		 /* by -e */
	bool all, user_only, no_lines, no_inline, no_interpreters, no_native_frames, idle, strict,
		quiet, verbose;
};

/*
 * o: zero but for its config. 0 and *ret_first: index of the command, argc when
 * there is none; 1: --help was answered; -EINVAL: the user was told what is wrong.
 */
int record_options_parse(struct record_options *o, int argc, char **argv, int *ret_first);
/* Names of filters that nothing matches that runs now: a warning, and where to look. */
void record_say_if_nothing_matches(const struct record_options *o);
/* Outputs that hold one event of several: a warning each. */
void record_say_what_is_left_out(const struct record_options *o);
/* Blocks without a tracepoint: which stacks will not be there. */
void record_say_if_plain(const struct broker_event *blocks);
/* "cpu-clock at 99 Hz", "page-faults (each one)": as snprintf(). */
size_t record_describe_event(const struct broker_event *e, char *buf, size_t size);
/* What is recorded, how often, on how many CPUs. */
void record_say_started(const struct record_options *o, bool command, unsigned int n_cpus);

/* A value of -e, also of perfwalk top's: adds its events. 0; -EINVAL: told. */
int record_events_parse(struct record_options *o, const char *value);
/* A value of --filter: for the event given last. 0; -EINVAL: told. */
int record_events_filter(struct record_options *o, const char *value);
/* The event of memory growth, once. 0; -EINVAL: told. */
int record_add_memory_growth(struct record_options *o);
/* The events of allocations, once. 0; -EINVAL: told. */
int record_add_allocations(struct record_options *o);
/* After all options: how often each event is sampled, and what room it has. 0; -EINVAL: told. */
int record_events_check(struct record_options *o);
/* After that: off-CPU time besides, of tasks or of whole CPUs. 0; -EINVAL, -ENOENT: told. */
int record_add_off_cpu(struct record_options *o, bool of_tasks);
/* 1K to 65528. 0 or -EINVAL. */
int record_parse_stack_bytes(const char *value, uint64_t *ret);
