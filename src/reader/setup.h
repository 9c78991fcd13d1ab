/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The set-up of a reader. There is one for each CPU (its index). */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/message.h"
#include "src/process/setup.h"
#include "src/sample/sample.h"

#define READERS_MAX	    256
#define READERS_MAX_CLIENTS 256
#define READER_MAX_EVENTS   2

struct setup_reader {
	struct setup_common common;
	/* The events whose samples wake it: CPU time, and threads that block. Each comes in a
	 * MESSAGE_CPU_ADD with its index here. */
	uint32_t n_events;
	struct reader_event {
		struct sample_options options;
		struct sample_features features;
	} events[READER_MAX_EVENTS];
	bool realtime; /* it has a real-time priority, so it preempts the sampled thread */
	bool own_time; /* the first event counts only while a control group runs */
	bool of_tasks; /* tasks are captured, and the threads that these begin */
};

_Static_assert(sizeof(struct setup_reader) <= PROTOCOL_BLOB_MAX, "fits a message");
