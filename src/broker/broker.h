/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The broker at work, for the daemon and for captures: it opens the events, starts and sets up the
 * children, follows CPU hotplug, and stops one child after the other so that no data under way is
 * lost.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "src/config/config.h"
#include "src/process/message.h"
#include "src/sample/sample.h"
#include "src/symbolizer/setup.h"
#include "util/cleanup.h"

struct loop;
struct setup_screen;
struct broker;

#define BROKER_MAX_OUTPUTS PROTOCOL_MAX_OUTPUTS

/* An event, and how often it is sampled. All zero except rate_hz is what the daemon uses. */
struct broker_event {
	struct sample_event event;
	/* Off-CPU time takes two events: blocks, and, as the last of all, switches. */
	enum sample_use use;
	struct sample_switch_fields switch_fields;
	uint64_t period; /* events between samples; 0: rate_hz */
	/* The most samples a second on each CPU, with a period; for blocks a quarter of these. 0:
	 * no limit. */
	uint32_t budget;
	uint32_t rate_hz;
	/* Of each sample, and of each CPU's ring. 0: what the config says. */
	uint32_t stack_bytes;
	uint64_t ring_bytes;
	bool wall;			/* for blocks: also all other time of threads */
	uint64_t grown_after_ns;	/* for picked blocks: see struct sample_options */
	bool only_user, only_kernel;	/* for this event, whatever the options say */
	char filter[SAMPLE_MAX_FILTER]; /* for a tracepoint; "": none */
};

struct broker_options {
	const struct config *config;	   /* borrowed, until broker_reload() brings another */
	bool capture;			   /* record; else the daemon with an exporter */
	const struct setup_screen *screen; /* top: the screen's set-up; else NULL. Borrowed */
	uint64_t interval_ns;		   /* of the windows */
	struct broker_event events[SAMPLE_MAX_EVENTS];
	uint32_t n_events;
	/* What to sample, and where. Zero is what the daemon uses. The config's [filter] applies,
	 * too. */
	enum sample_stacks stacks;
	bool only_user, only_kernel;
	const pid_t *pids; /* n_pids, borrowed; none: the whole host */
	size_t n_pids;
	bool threads;	     /* pids are threads */
	bool enable_on_exec; /* the kernel enables the events when the task executes a program */
	uint64_t stop_deadline_ns; /* so long after broker_stop() the rest is killed; 0: never */
	/* Capture only */
	const char *title;
	const char *asked; /* the event that it is made for; NULL: the first */
	struct broker_output {
		const char *path; /* for messages */
		int fd;
		const char *format; /* its name (format.h) */
		bool lines;	    /* it shows source lines */
	} outputs[BROKER_MAX_OUTPUTS];
	uint32_t n_outputs;
	int summary_fd; /* -1: none */
	bool color;
	uint32_t terminal_width;
	/* With capture: a perf.data file to read instead of the live host; NULL: none. The capture
	 * ends with the file. */
	const char *input_path, *input_event; /* event NULL: the first */
	int input_fd;
	/* What to show of it (report) instead of a capture's outputs; NULL: the outputs. */
	const struct setup_symbolizer *view;
	const char *view_symbol, *view_comm, *view_container, *view_service;
	/* Called when the events begin to count (with enable_on_exec: when they may). In a capture
	 * that may be some time after broker_enable(). NULL: not called. */
	void (*begun)(void *ctx);
	/* Called once, after the last child has ended. result: 0, or -errno. */
	void (*done)(void *ctx, int result);
	void *ctx;
};

/* The config's style as the symbolizer's set-up has it. */
enum symbol_demangling broker_demangling(enum config_demangle style);

/* Opens the events, disabled, and starts the children. The options are copied; what they point to
 * is borrowed for the broker's life. Errors are logged, with cause and remedy. 0; -EPERM, -EACCES:
 * not permitted; -ENOENT, -ENOSYS and the like: not supported here; -ESRCH: no such process;
 * another -errno. */
int broker_new(struct broker **ret, struct loop *loop, const struct broker_options *options);
/* Kills the children that still run. Returns NULL. */
struct broker *broker_free(struct broker *b);
DEFINE_CLEANUP(struct broker *, broker_free)

/* Lets the events count (with enable_on_exec the kernel does). A capture first looks for the
 * interpreters that already run. 0 or -errno. */
int broker_enable(struct broker *b);
/* Stops sampling, lets the children finish their work, and calls done(). */
void broker_stop(struct broker *b);
/* Kills the children at once, as the second Ctrl-C does, and calls done(). */
void broker_kill(struct broker *b);
/* Call it after SIGCHLD. */
void broker_reap(struct broker *b);
/* Takes a new, valid config (borrowed) and a new set of n events (copied). Destinations change at
 * once; sampling changes when the readers of the old events are replaced. 0; -EBUSY: the previous
 * reload is not finished. */
int broker_reload(struct broker *b, const struct config *config, const struct broker_event *events,
		  uint32_t n);

/* Stops or resumes the events; the outputs say how long they stood still. 0 or -errno. */
int broker_pause(struct broker *b, bool pause);
bool broker_is_paused(const struct broker *b);
/* Ends the window now. 0, or -errno: there is no profiler to do it. */
int broker_flush(struct broker *b);
/* Has the window that broker_flush() ended been handed over, down to the exporter? */
bool broker_flushed(const struct broker *b);
/* Prints lines "name value", which perfwalk ctl status shows. */
void broker_print_status(const struct broker *b, FILE *out);
/* Prints a line for each file and each process that is set aside. */
void broker_print_set_aside(const struct broker *b, FILE *out);
/* Lets the children read all of these again. Prints how many they are. */
void broker_clear_set_aside(struct broker *b, FILE *out);

/* Writes one line for the service manager, cut to size. */
void broker_describe(const struct broker *b, char *buf, size_t size);

/* Progress, from the children's status pages: the samples taken, and those lost in the rings or
 * dropped after them. */
void broker_progress(const struct broker *b, uint64_t *ret_samples, uint64_t *ret_lost);
/* When the profiler last read all rings (CLOCK_MONOTONIC); 0: a new profiler has not yet. */
uint64_t broker_drained_ns(const struct broker *b);
/* After done(): the outputs that are complete, bit i for the i-th; 0 if the input was damaged. */
uint32_t broker_written_outputs(const struct broker *b);
/* Why the i-th output is not complete: -errno; 0: it was not begun. */
int broker_output_error(const struct broker *b, uint32_t i);
/* What the kernel grants to the first event. Borrowed. */
const struct sample_features *broker_features(const struct broker *b);
/* The samples are of whole CPUs, so threads and processes have some however short they live. */
bool broker_samples_whole_cpus(const struct broker *b);
/* The user and group of the children; -1 each: those of the broker. The group is also -1 if the
 * config's user does not exist and another user takes its place. */
void broker_user(const struct broker *b, uid_t *ret_uid, gid_t *ret_gid);
uint32_t broker_n_cpus(const struct broker *b);
/* Samples a second of the i-th event, as the kernel allows and beside its ticks; 0: by period. */
uint32_t broker_rate_hz(const struct broker *b, uint32_t i);
/* The cost of the tree: CPU time of all processes since its start, including those that have ended,
 * and resident memory. */
void broker_load(const struct broker *b, uint64_t *ret_cpu_ns, uint64_t *ret_rss_bytes);
/* Sends m to the screen of top, if it runs and reads its messages. */
void broker_tell_screen(struct broker *b, const struct message *m);
/* Have all processes or threads ended that the capture was asked for by pid? */
bool broker_targets_gone(const struct broker *b);
