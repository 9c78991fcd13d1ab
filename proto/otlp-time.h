/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* When Profiles begin that a server could take for copies of each other. */
#include <stdbool.h>
#include <stdint.h>

#include "proto/wire-read.h"
#include "proto/wire-write.h"

/*
 * Pyroscope takes Profiles of a series that begin in the same millisecond for copies of one. So the
 * requests of a window begin this much earlier than the one before, and end together: the time of a
 * Profile still covers its samples. The halves of a request share that time. A request of 4 MiB has
 * too few samples for as many Profiles of 16000 samples in a series as it has milliseconds.
 */
#define OTLP_REQUEST_NS	    UINT64_C(32000000)
#define OTLP_MAX_HALVINGS   5 /* then a half has one millisecond */
#define OTLP_MILLISECOND_NS UINT64_C(1000000)

/* The time of a Profile that is written again. Starts as zeros, which a Profile need not write. */
struct otlp_time {
	uint64_t begin_unix_ns, duration_ns;
};

/* Takes a field of a Profile that is one of these. false: it is another one. */
bool otlp_time_take(const struct wire_field *f, struct otlp_time *t);
/* Writes both as fields; the time begins earlier_ns earlier, but not before the epoch. */
void otlp_time_put(struct wire_buffer *out, const struct otlp_time *t, uint64_t earlier_ns);
