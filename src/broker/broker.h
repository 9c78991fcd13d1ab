/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The broker at work, for the daemon and for captures alike: opens the events, starts the tree and
 * sets it up, follows CPU hotplug, stops child after child so that nothing under way is lost.
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
struct tree;

#define TREE_MAX_OUTPUTS PROTOCOL_MAX_OUTPUTS

/* What is sampled, and how often. Zero but for the rate is the daemon's way. */
struct tree_event {
	struct sample_event event;
	uint64_t period; /* events between samples; 0: rate_hz */
	uint32_t rate_hz;
	/* 0: the config's. */
	uint32_t stack_bytes;
	uint64_t ring_bytes;
};

struct tree_options {
	const struct config *config;	   /* borrowed; of tree_reload() from then on */
	bool capture;			   /* record; else the daemon with an exporter */
	const struct setup_screen *screen; /* top: what the screen is told; else NULL. Borrowed */
	uint64_t interval_ns;		   /* of the windows */
	struct tree_event events[SAMPLE_MAX_EVENTS];
	uint32_t n_events;
	/* How and where; zero is the daemon's way. The [filter] of the config holds besides. */
	enum sample_stacks stacks;
	bool only_user, only_kernel;
	const pid_t *pids; /* n; none: the whole host */
	size_t n_pids;
	bool threads; /* pids are threads */
	bool enable_on_exec;
	uint64_t stop_deadline_ns; /* after tree_stop(): then what is left is killed; 0: none */
	/* Capture only */
	const char *title;
	struct tree_output {
		const char *path; /* for messages */
		int fd;
		const char *format; /* its name (format.h) */
		bool lines;	    /* it shows source lines */
	} outputs[TREE_MAX_OUTPUTS];
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
	const char *view_symbol, *view_comm, *view_container;
	/* Called once, when all children are gone: 0, or -errno of what went wrong. */
	void (*done)(void *ctx, int result);
	void *ctx;
};

/* For the set-up of a symbolizer. */
enum symbol_demangling broker_demangling(enum config_demangle style);

/* Errors are logged, with cause and remedy. 0, -EPERM/-EACCES: not permitted; -ENOENT/-ENOSYS...:
 * not supported here; -ESRCH: no such process; other -errno. */
int tree_new(struct tree **ret, struct loop *loop, const struct tree_options *options);
struct tree *tree_free(struct tree *t);
DEFINE_CLEANUP(struct tree *, tree_free)

/* Lets the events count (with enable_on_exec: the kernel does). */
int tree_enable(struct tree *t);
/* Finishes what is under way, then done(). */
void tree_stop(struct tree *t);
/* Stops at once: the second Ctrl-C. */
void tree_kill(struct tree *t);
/* After SIGCHLD. */
void tree_reap(struct tree *t);
/* Takes a new, valid config: destinations at once, sampling by a new set of events. */
int tree_reload(struct tree *t, const struct config *config);

/* Lets the events stand still, or go on; the outputs say for how long. 0 or -errno. */
int tree_pause(struct tree *t, bool pause);
bool tree_is_paused(const struct tree *t);
/* Ends the window now. 0, or -errno when there is no profiler to do it. */
int tree_flush(struct tree *t);
/* What tree_flush() was to end is handed over, down to the exporter. */
bool tree_flushed(const struct tree *t);
/* Lines "name value": what status of perfwalk ctl shows of the tree. */
void tree_print_status(const struct tree *t, FILE *out);
/* A line for each file that is set aside; and reads them all again: returns how many. */
void tree_print_set_aside(const struct tree *t, FILE *out);
uint32_t tree_clear_set_aside(struct tree *t);

/* One line for the service manager. */
void tree_describe(const struct tree *t, char *buf, size_t size);

/* Progress, from the children's status pages: samples taken, and those lost in the rings or dropped
 * behind them. */
void tree_progress(const struct tree *t, uint64_t *ret_samples, uint64_t *ret_lost);
/* When the profiler last read all rings (CLOCK_MONOTONIC); 0: a new one has not yet. */
uint64_t tree_drained_ns(const struct tree *t);
/* After done(): which outputs are whole, bit i for the i-th; none of a damaged input. */
uint32_t tree_written_outputs(const struct tree *t);
/* Why the i-th is not: -errno; 0: it was not begun. */
int tree_output_error(const struct tree *t, uint32_t i);
const struct sample_features *tree_features(const struct tree *t);
/* Whom the children run as; -1 each: as the broker does. The group is -1, too, where the config's
 * user does not exist and another stands in. */
void tree_user(const struct tree *t, uid_t *ret_uid, gid_t *ret_gid);
uint32_t tree_n_cpus(const struct tree *t);
/* What all processes of the tree cost: CPU time since their starts, resident memory. */
void tree_load(const struct tree *t, uint64_t *ret_cpu_ns, uint64_t *ret_rss_bytes);
/* Tells the screen of top, if it runs and listens. */
void tree_tell_screen(struct tree *t, const struct message *m);
/* Every target of a capture by pid is gone. */
bool tree_targets_gone(const struct tree *t);
