/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The state of all processes at one moment: counts since the start of the daemon, including those
 * of children that have died, and current values. The broker fills it in and prints it for perfwalk
 * ctl; the metrics process prints it as Prometheus text.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/message.h"
#include "src/process/status-page.h"

struct ask;

#define STATISTICS_MAX_PROCESSES 50 /* the broker, its children, and the opener */
#define STATISTICS_BROKER	 PEER_N
#define STATISTICS_OPENER	 (PEER_N + 1)

/* Reductions of quality to stay within the CPU limit, in the order of the steps. */
#define REDUCED_MAX_HALVINGS 6
enum reduction {
	REDUCED_LINES,
	REDUCED_INLINES,
	REDUCED_NAMES,	/* names of rare functions */
	REDUCED_STACKS, /* small stack copies */
	REDUCED_HALF,	/* half of the samples are left; the next two halve them again */
	REDUCED_QUARTER,
	REDUCED_EIGHTH,
	REDUCED_N,
	/* Switches are followed half of the time; each further bit halves that. These are set at
	 * any step. */
	REDUCED_SWITCHES = REDUCED_N,
	REDUCED_SWITCHES_LAST = REDUCED_SWITCHES + REDUCED_MAX_HALVINGS - 1
};
#define REDUCED_BIT(r) (UINT32_C(1) << (r))
#define REDUCED_RATE_BITS                                                                          \
	(REDUCED_BIT(REDUCED_HALF) | REDUCED_BIT(REDUCED_QUARTER) | REDUCED_BIT(REDUCED_EIGHTH))
#define REDUCED_SWITCHES_BITS (((UINT32_C(1) << REDUCED_MAX_HALVINGS) - 1) << REDUCED_SWITCHES)
#define REDUCED_TEXT_MAX      64
/* "lines,names,rate/4" of a set of bits, "" of none. Returns buf. */
const char *statistics_reduced(uint32_t reduced, char *buf, size_t size);

struct statistics {
	struct status_counts counts;
	struct status_destination destinations[STATUS_MAX_DESTINATIONS];
	uint64_t store_files, store_bytes;
	uint64_t n_files_refused; /* not opened, because a filesystem does not answer */
	uint64_t start_unix_ns; /* of the broker */
	/* how long ago the profiler last read all rings; UINT64_MAX: not yet */
	uint64_t drained_before_ns;
	uint64_t drain_gap_ns, drain_cpu_ns; /* as in the profiler's status page */
	struct statistics_process {
		char name[16]; /* "broker", "profiler"; "reader/3" for a kind with several */
		uint64_t cpu_ns, rss_bytes;
		uint32_t pid; /* 0: not running */
		uint32_t starts;
		uint8_t kind;		       /* enum peer, or one of the two above */
		uint8_t wanted;		       /* 1: it should run */
		uint8_t ready;		       /* 1: it has started */
		struct status_sandbox sandbox; /* valid once it is ready; not for the broker */
	} processes[STATISTICS_MAX_PROCESSES]; /* n_processes: by kind and index, the broker last */
	uint32_t n_processes;
	uint32_t n_destinations, n_cpus, rate_hz, n_files_set_aside;
	/* Processes that the readers read now; and since the start those that they may not read,
	 * those that kept a reader waiting, and those for which there was no room. */
	uint32_t n_interpreters, n_not_allowed, n_kept_waiting, n_too_many;
	uint32_t stack_bytes; /* copied with each sample; 0: none is */
	/* CPU time in millionths of all CPUs: in the last window, and the configured limit. */
	uint32_t cpu_used_ppm, cpu_limit_ppm;
	uint32_t reduced;      /* by enum reduction */
	bool paused, flushing; /* flushing: a flushed window is still on its way */
	uint32_t n_events;
	char events[STATUS_MAX_EVENTS][64]; /* names of the events in status_counts.events */
};

_Static_assert(sizeof(struct statistics) <= PROTOCOL_STATISTICS_MAX, "fits a message");

/* Was a process of that kind (enum peer) ever started? */
bool statistics_has(const struct statistics *s, uint32_t kind);
/* For a child that may ask: gets the statistics from the broker. 0 or -errno. */
int statistics_ask(struct ask *ask, struct statistics *ret);
