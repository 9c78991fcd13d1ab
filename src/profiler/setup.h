/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the broker tells the profiler at its start, and what it has to know of it. */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/message.h"
#include "src/process/setup.h"
#include "src/sample/sample.h"

#define HANDOVER_MAX_WINDOWS 1024

struct setup_profiler {
	struct setup_common common;
	struct setup_event {
		struct sample_options options;
		struct sample_features features;
	} events[SAMPLE_MAX_EVENTS];
	uint32_t n_events;    /* 0: of a file */
	bool of_tasks;	      /* events are of tasks, not of whole CPUs */
	uint64_t interval_ns; /* of the windows */
	uint64_t window_memory_bytes, unwind_rows_bytes;
	uint32_t max_processes, max_open_files, max_frames;
	bool capture;	       /* windows are kept until the end */
	bool keeps;	       /* the local store keeps them */
	bool paused;	       /* no event counts now */
	bool adapt_stack_size; /* the broker takes MESSAGE_STACK_SIZE */
	bool interpreters;     /* and MESSAGE_INTERPRETER */
};

_Static_assert(sizeof(struct setup_profiler) <= PROTOCOL_BLOB_MAX, "fits a message");
