/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The symbolizer's counts: for the profile, by type, and for the status page. The status page gets
 * the counts of a window when the window is settled; if it never is, the next symbolizer counts it.
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

/* Reads the counts of a profile, which has none of windows and payloads. */
void counted_read(struct counted *c, const struct profile *p);
/* Adds the growth of the profile's counts since before was read. */
void counted_add_since(struct counted *c, const struct profile *p, const struct counted *before);
/* Adds the counts to the status page. */
void counted_publish(const struct counted *c, struct status_counts *to);

/* Counts missing samples, one gap for each of STATUS_MAX_EVENTS, in the profile, and logs them.
 * switches: the event of them, which has no type; UINT32_MAX: none. */
void counted_missing(struct profile *p, const struct arrivals_gap *gaps, uint32_t switches);
/* Counts the samples of a window that cannot be read. */
void counted_unreadable(struct profile *p, const struct message *window);
