/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the symbolizer counts: for the profile, by type, and for the status page. What came with a
 * window is counted there when the window is settled; otherwise the next symbolizer counts it.
 */
#include <stdint.h>

#include "src/process/status-page.h"
#include "src/profile/profile.h"
#include "src/symbolizer/arrivals.h"

/* In the form of the status. */
struct counted {
	uint64_t counters[PROFILE_N_COUNTERS];
	uint64_t lost[STATUS_MAX_EVENTS], throttled[STATUS_MAX_EVENTS]; /* of these, by event */
	uint64_t windows_named, payloads, payload_bytes;
};

/* What the profile has counted; of windows and payloads it does not know. */
void counted_read(struct counted *c, const struct profile *p);
/* Adds what came to the profile since before was read. */
void counted_add_since(struct counted *c, const struct profile *p, const struct counted *before);
void counted_publish(const struct counted *c, struct status_counts *to);

/* To the profile: what is missing, for each of STATUS_MAX_EVENTS; the log is told. */
void counted_missing(struct profile *p, const struct arrivals_gap *gaps);
/* A window that cannot be read. */
void counted_unreadable(struct profile *p, const struct message *window);
