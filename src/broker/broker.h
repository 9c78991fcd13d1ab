/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The broker at work, for the daemon and for captures: it opens the events, starts and sets up the
 * children, follows CPU hotplug, and stops one child after the other so that nothing under way is
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

/* What is sampled, and how often. Zero but for the rate is the daemon's way. */
struct broker_event {
	struct sample_event event;
	/* Off-CPU time takes two: blocks, and behind all others switches. */
	enum sample_use use;
	struct sample_switch_fields switch_fields;
	uint64_t period; /* events between samples; 0: rate_hz */
	/* Samples a second of each CPU, with a period; of blocks, a quarter of one. 0: any. */
	uint32_t budget;
	uint32_t rate_hz;
	/* 0: the config's. */
	uint32_t stack_bytes;
	uint64_t ring_bytes;
	bool wall;			/* of blocks: all time of threads is wanted */
	uint64_t grown_after_ns;	/* of picked blocks: see struct sample_options */
	bool only_user, only_kernel;	/* also where the options do not say so of all */
	char filter[SAMPLE_MAX_FILTER]; /* of a tracepoint; "": none */
};

struct broker_options {
	const struct config *config;	   /* borrowed; of broker_reload() from then on */
	bool capture;			   /* record; else the daemon with an exporter */
	const struct setup_screen *screen; /* top: what the screen is told; else NULL. Borrowed */
	uint64_t interval_ns;		   /* of the windows */
	struct broker_event events[SAMPLE_MAX_EVENTS];
	uint32_t n_events;
	/* How and where; zero is the daemon's way. The [filter] of the config holds besides. */
	enum sample_stacks stacks;
	bool only_user, only_kernel;
	const pid_t *pids; /* n; none: the whole host */
	size_t n_pids;
	bool threads; /* pids are threads */
	bool enable_on_exec;
	uint64_t stop_deadline_ns; /* after broker_stop(): then what is left is killed; 0: none */
	/* Capture only */
	const char *title;
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
	/* With capture: a perf.data file instead of the live host, opened for reading; NULL: none.
	 * The capture ends with the file. */
	const char *input_path, *input_event; /* event: NULL: the first */
	int input_fd;
	/* What is made of it, if not a capture's outputs (report); NULL. */
	const struct setup_symbolizer *view;
	const char *view_symbol, *view_comm, *view_container, *view_service;
	/* Called when the events count (with enable_on_exec: when they may), of a capture perhaps
	 * only after broker_enable(); NULL. */
	void (*begun)(void *ctx);
	/* Called once, when all children are gone: 0, or -errno of what went wrong. */
	void (*done)(void *ctx, int result);
	void *ctx;
};

/* For the set-up of a symbolizer. */
enum symbol_demangling broker_demangling(enum config_demangle style);

/* Errors are logged, with cause and remedy. 0, -EPERM/-EACCES: not permitted; -ENOENT/-ENOSYS...:
 * not supported here; -ESRCH: no such process; other -errno. */
int broker_new(struct broker **ret, struct loop *loop, const struct broker_options *options);
struct broker *broker_free(struct broker *b);
DEFINE_CLEANUP(struct broker *, broker_free)

/* Lets the events count (with enable_on_exec: the kernel does): of a capture once it knows the
 * interpreters that run already. */
int broker_enable(struct broker *b);
/* Finishes what is under way, then done(). */
void broker_stop(struct broker *b);
/* Stops at once: the second Ctrl-C. */
void broker_kill(struct broker *b);
/* After SIGCHLD. */
void broker_reap(struct broker *b);
/* Takes a new, valid config: destinations at once, sampling by a new set of n events, which are
 * copied. 0; -EBUSY: it is still at the one before. */
int broker_reload(struct broker *b, const struct config *config, const struct broker_event *events,
		  uint32_t n);

/* Lets the events stand still, or go on; the outputs say for how long. 0 or -errno. */
int broker_pause(struct broker *b, bool pause);
bool broker_is_paused(const struct broker *b);
/* Ends the window now. 0, or -errno when there is no profiler to do it. */
int broker_flush(struct broker *b);
/* The window that broker_flush() ended has been handed over, down to the exporter. */
bool broker_flushed(const struct broker *b);
/* Lines "name value": what status of perfwalk ctl shows of the tree. */
void broker_print_status(const struct broker *b, FILE *out);
/* A line for each file that is set aside; and reads them all again: returns how many. */
void broker_print_set_aside(const struct broker *b, FILE *out);
uint32_t broker_clear_set_aside(struct broker *b);

/* One line for the service manager. */
void broker_describe(const struct broker *b, char *buf, size_t size);

/* Progress, from the children's status pages: samples taken, and those lost in the rings or dropped
 * behind them. */
void broker_progress(const struct broker *b, uint64_t *ret_samples, uint64_t *ret_lost);
/* When the profiler last read all rings (CLOCK_MONOTONIC); 0: a new one has not yet. */
uint64_t broker_drained_ns(const struct broker *b);
/* After done(): which outputs are whole, bit i for the i-th; none of a damaged input. */
uint32_t broker_written_outputs(const struct broker *b);
/* Why the i-th is not: -errno; 0: it was not begun. */
int broker_output_error(const struct broker *b, uint32_t i);
const struct sample_features *broker_features(const struct broker *b);
/* Whom the children run as; -1 each: as the broker does. The group is -1, too, where the config's
 * user does not exist and another stands in. */
void broker_user(const struct broker *b, uid_t *ret_uid, gid_t *ret_gid);
uint32_t broker_n_cpus(const struct broker *b);
/* What all processes of the tree cost: CPU time since their starts, resident memory. */
void broker_load(const struct broker *b, uint64_t *ret_cpu_ns, uint64_t *ret_rss_bytes);
/* Tells the screen of top, if it runs and listens. */
void broker_tell_screen(struct broker *b, const struct message *m);
/* Every target of a capture by pid is gone. */
bool broker_targets_gone(const struct broker *b);
