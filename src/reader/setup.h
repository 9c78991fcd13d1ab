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
	/* Those whose samples wake it, each by a MESSAGE_CPU_ADD with its index here: CPU time, and
	 * threads that block. */
	uint32_t n_events;
	struct reader_event {
		struct sample_options options;
		struct sample_features features;
	} events[READER_MAX_EVENTS];
	bool realtime; /* it preempts what was sampled */
};

_Static_assert(sizeof(struct setup_reader) <= PROTOCOL_BLOB_MAX, "fits a message");
