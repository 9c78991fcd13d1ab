/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The profiler's set-up, which the broker sends at its start, and the limits that the broker must
 * know. */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/message.h"
#include "src/process/setup.h"
#include "src/sample/sample.h"

/* Of windows on their way to the symbolizer (handover.h). */
#define HANDOVER_MAX_WINDOWS 1024
#define HANDOVER_MAX_BYTES   (UINT64_C(128) << 20)
/* Processes whose size, and then whose list of mappings, stay open (process-said.h). */
#define PROFILER_MAX_SIZES 256

struct setup_profiler {
	struct setup_common common;
	struct setup_event {
		struct sample_options options;
		struct sample_features features;
	} events[SAMPLE_MAX_EVENTS];
	uint32_t n_events;    /* 0: a file is replayed */
	bool of_tasks;	      /* tasks are captured; see also sample_options.whole_cpus */
	bool other_numbers;   /* switches name threads by numbers of another pid namespace */
	uint64_t interval_ns; /* of the windows */
	uint64_t window_memory_bytes, unwind_rows_bytes;
	uint32_t max_processes, max_open_files, max_frames;
	uint32_t n_cpus;       /* that are sampled, at the start */
	bool capture;	       /* keep windows until the end */
	bool live;	       /* a user looks at each window */
	bool keeps;	       /* the local store keeps the profiles */
	bool paused;	       /* the events are paused */
	bool adapt_stack_size; /* the profiler may send MESSAGE_STACK_SIZE */
	bool interpreters;     /* and MESSAGE_INTERPRETER */
};

_Static_assert(sizeof(struct setup_profiler) <= PROTOCOL_BLOB_MAX, "fits a message");
