/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The set-up of the metrics process, and its limits for the broker. */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/message.h"
#include "src/process/setup.h"

#define PULLS_MAX 2 /* at a time; others have to retry */

/* Texts: the socket, facts about the host, the destinations' names. */
struct setup_metrics {
	struct setup_common common;
	uint64_t profile_bytes; /* memory for each requested profile */
	uint32_t n_cpus;
};

_Static_assert(sizeof(struct setup_metrics) <= PROTOCOL_BLOB_MAX, "fits a message");
