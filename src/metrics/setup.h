/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the broker tells the metrics process at its start, and what it has to know of it. */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/message.h"
#include "src/process/setup.h"

#define PULLS_MAX 2 /* at a time; others are told to come again */

/* Texts: the socket, what is known of the host, the destinations' names. */
struct setup_metrics {
	struct setup_common common;
	uint64_t profile_bytes; /* of each profile that is asked for, in memory */
	uint32_t n_cpus;
};

_Static_assert(sizeof(struct setup_metrics) <= PROTOCOL_BLOB_MAX, "fits a message");
