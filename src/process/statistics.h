/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the tree knows of itself at one moment: counts since the start of the daemon, also of
 * children that have died, and how things stand. The broker fills it in and prints it as lines for
 * perfwalk ctl, the metrics child as Prometheus text.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/message.h"
#include "src/process/status-page.h"

struct ask;

#define STATISTICS_MAX_PROCESSES 50 /* the broker, its children, and who opens their files */
#define STATISTICS_BROKER	 PEER_N
#define STATISTICS_OPENER	 (PEER_N + 1)

/* What the daemon gives up to stay within its CPU time, in the order of the steps. */
#define REDUCED_MAX_HALVINGS 6
enum reduction {
	REDUCED_LINES,
	REDUCED_INLINES,
	REDUCED_NAMES,	 /* of functions that are rarely seen */
	REDUCED_STACKS,	 /* their copies are small */
	REDUCED_HALF,	 /* of the samples; each halves again */
	REDUCED_QUARTER, /* are left */
	REDUCED_EIGHTH,
	REDUCED_N,
	/* Switches are followed half of the time; each halves again. Not in that order. */
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
	uint64_t start_unix_ns;	    /* of the broker */
	uint64_t drained_before_ns; /* since the profiler has read all rings; UINT64_MAX: not yet */
	struct statistics_process {
		char name[16]; /* "broker", "profiler"; of a kind with several "reader/3" */
		uint64_t cpu_ns, rss_bytes;
		uint32_t pid; /* 0: does not run */
		uint32_t starts;
		uint8_t kind;		       /* enum peer, or one of the two above */
		uint8_t wanted;		       /* 1: it is to run */
		uint8_t ready;		       /* 1: through its start */
		struct status_sandbox sandbox; /* once it is ready; not the broker's */
	} processes[STATISTICS_MAX_PROCESSES]; /* n_processes: by kind and index, the broker last */
	uint32_t n_processes;
	uint32_t n_destinations, n_cpus, rate_hz, n_files_set_aside;
	uint32_t stack_bytes; /* copied with each sample; 0: none is */
	/* CPU time of all CPUs, in millionths: in the last window, and what the config allows. */
	uint32_t cpu_used_ppm, cpu_limit_ppm;
	uint32_t reduced;      /* by enum reduction */
	bool paused, flushing; /* a window that was to end now is still on its way */
	uint32_t n_events;
	char events[STATUS_MAX_EVENTS][64]; /* their names, as status_counts.events counts them */
};

_Static_assert(sizeof(struct statistics) <= PROTOCOL_STATISTICS_MAX, "fits a message");

/* Whether a process of that kind (enum peer) was ever started. */
bool statistics_has(const struct statistics *s, uint32_t kind);
/* By a child that the broker answers this: 0 or -errno. */
int statistics_ask(struct ask *ask, struct statistics *ret);
