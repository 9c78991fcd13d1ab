/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The profiler: drains the rings, walks the stacks, adds them up, closes windows. It does nothing
 * slow: its requests to the broker have a deadline, sending a window never blocks, and the
 * symbolizer finds the names.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/ask.h"
#include "src/process/filter.h"
#include "src/process/role.h"
#include "src/profiler/attribute.h"
#include "src/profiler/block-grants.h"
#include "src/profiler/handover.h"
#include "src/profiler/newcomers.h"
#include "src/profiler/replay.h"
#include "src/profiler/setup.h"
#include "src/sample/sample.h"
#include "src/sample/stack-size.h"

struct kept_blocks;

struct profiler {
	struct role role;
	struct setup_profiler setup;
	struct ask ask;
	struct filter filter;
	struct merger *merger;
	struct ledger *ledger; /* of its rings */
	struct kept_blocks *blocks;
	struct block_grants *block_grants, *wakeup_grants; /* of events of tasks */
	int ledger_fd, blocks_fd;
	struct attribution *attribution;
	struct handover *handover;
	struct readers *readers;     /* NULL: no interpreters are read */
	struct newcomers *newcomers; /* the same: who else must be known at once? */
	struct sample_cpu *
		*cpus; /* by event and CPU number; NULL: not sampled. Descriptors are ours */
	struct stack_size stack_size;
	char *allowed_attributes, *denied_attributes; /* globs of their keys */
	uint64_t window_start_unix_ns;
	struct sample_place place; /* where the last window ended */
	uint64_t clock_offset_ns;  /* wall time - perf clock */
	uint64_t drained_ns;	   /* all records up to that time (perf clock) were read */
	uint64_t n_sideband;	   /* records of the side bands among them */
	uint64_t read_late_ns;	   /* what is read beside the rings, CLOCK_MONOTONIC */
	uint64_t drained_cpu_ns;   /* CPU time of this process at its last drain */
	bool places_known;	   /* what the broker was told last */
	bool finished;		   /* the last window is closed, and no record is read */
	int drain_timer, stop_timer, flush_timer;
	uint64_t flush_id;	  /* the flush under way; 0: none */
	uint64_t paused_since_ns; /* 0: not paused */
	/* clock_offset_ns is set: for this window, or (a file, or a clock of our choice) for good.
	 * */
	bool offset_known;
	/* A perf.data file instead of the rings */
	char *input_path, *input_event;
	int input_fd, kallsyms_fd, kernel_notes_fd;
	struct replay *replay; /* NULL: the host is live */
	int replay_timer;
};

/*
 * Takes the records from the rings, in the order of time. flush: also those so young that older
 * records may still follow. It does nothing before there are rings, or after the last window.
 */
void profiler_drain(struct profiler *p, bool flush);

/* Is it an event of blocks of tasks, of which some serve as examples of places whose time is known?
 */
bool profiler_picks_blocks(const struct profiler *p, uint32_t index);

/* Hands over the window, and begins the next. */
void profiler_close_window(struct profiler *p);

/* Sampling stops or resumes; the windows say how long it was paused. */
void profiler_pause(struct profiler *p, bool paused);
