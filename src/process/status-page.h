/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The status page of a child: a memfd that the child writes and the broker reads. Its values are
 * advisory, since a child may be compromised: the broker only prints counts and blames files.
 */
#include <stdint.h>

#include "src/process/privileges.h"
#include "util/file-identity.h"

#define STATUS_MAX_COUNTERS	64
#define STATUS_MAX_EVENTS	8
#define STATUS_MAX_DESTINATIONS 16
#define STATUS_LATENCY_BUCKETS	12

/* A position among all samples since the start, by event. */
struct sample_place {
	struct place_of_event {
		uint64_t samples;  /* written to a ring */
		uint64_t filtered; /* of these, excluded by filters */
		uint64_t lost;	   /* lost before a ring */
	} events[STATUS_MAX_EVENTS];
};

/* Upper bounds of the buckets of status_export.latency; the last bucket has none. */
extern const uint64_t status_latency_bounds_ns[STATUS_LATENCY_BUCKETS - 1];

enum status_drop {
	STATUS_DROP_QUEUE_FULL,
	STATUS_DROP_REFUSED,
	STATUS_DROP_EXPIRED,
	STATUS_DROP_SPOOL_FULL,
	STATUS_DROP_CORRUPT,
	STATUS_DROP_TOO_LARGE,
	STATUS_N_DROPS
};
const char *status_drop_name(enum status_drop why); /* "queue_full" ... */

/*
 * Counts since the start of a child. Each field belongs to one child, and all are uint64_t, so the
 * counts of all children, dead ones included, can be added up.
 */
struct status_counts {
	/* profiler: of a file only; the ledger counts the samples of rings */
	uint64_t samples, filtered;
	uint64_t windows; /* profiler: closed windows */
	/* symbolizer: settled windows that it named, and their payloads */
	uint64_t windows_named, payloads, payload_bytes;
	/* symbolizer: of settled windows, by enum profile_counter */
	uint64_t counters[STATUS_MAX_COUNTERS];
	struct status_event { /* symbolizer, by index; but the ledger counts samples */
		uint64_t samples, lost, throttled;
		uint64_t stood_still_ms; /* broker: time without budget, over all CPUs */
	} events[STATUS_MAX_EVENTS];
	struct status_debuginfod { /* fetcher; see debuginfod_stats */
		uint64_t fetched, bytes, missing, failures, refused, evicted;
	} debuginfod;
	struct status_reader {	      /* readers, all together */
		uint64_t reads;	      /* samples of interpreters */
		uint64_t late;	      /* of these, read too late or not at all */
		uint64_t unproven;    /* of these, the bytes formed no chain of frames */
		uint64_t refused;     /* read, but the profiler had no room */
		uint64_t passed_over; /* samples that came while it read another one */
	} reader;
	struct status_said {		   /* profiler: what programs say of themselves */
		uint64_t labels_refused;   /* samples that lack some of their labels */
		uint64_t texts_refused;	   /* attributes of processes, each once */
		uint64_t programs_refused; /* that readers have no room for */
	} said;
	uint64_t store_samples_lost; /* exporter: this and the rest */
	struct status_export {
		uint64_t sent, samples_sent, bytes_sent; /* payloads; as sent */
		uint64_t dropped[STATUS_N_DROPS];	 /* payloads */
		uint64_t samples_dropped, profiles_rejected;
		/* failed attempts; those to be repeated */
		uint64_t failures, retries;
		uint64_t spooled, split;		  /* payloads */
		uint64_t latency[STATUS_LATENCY_BUCKETS]; /* requests by status_latency_bounds_ns */
		uint64_t latency_sum_ns;
	} exports[STATUS_MAX_DESTINATIONS]; /* in the order of the set-up */
};
/* to += from. */
void status_counts_add(struct status_counts *to, const struct status_counts *from);

struct status_page {
	struct status_counts counts;
	/* Symbolizer: the start of the first window that it has not settled. places[turn & 1] is
	 * the valid one: it is never half written. */
	struct sample_place places[2];
	uint64_t turn;
	uint64_t lost; /* symbolizer: of MESSAGE_LOST, counted with settled windows */
	/* The samples in payloads that a process holds (src/broker/custody.h). */
	struct status_custody {
		/* Symbolizer: samples of settled windows that the exporter has not settled, and
		 * those of them that were not sent to the exporter of that start. */
		uint64_t unsettled, unsent, exporter;
		/* Exporter: samples in memory from symbolizers that are gone, and the start of the
		 * last of these that it has read to the end. */
		uint64_t orphans, symbolizer;
	} custody;
	uint64_t flushed; /* the last MESSAGE_FLUSH whose window the symbolizer has settled */
	struct status_destination {
		uint64_t queue_payloads, queue_bytes, spool_payloads, spool_bytes; /* now */
		uint64_t down;	   /* 1: the last attempt failed and will be repeated */
		uint64_t since_ns; /* CLOCK_MONOTONIC when down last changed; 0: no attempt yet */
	} destinations[STATUS_MAX_DESTINATIONS]; /* in the order of the set-up */
	uint64_t store_files, store_bytes;
	uint64_t drained_ns; /* when the profiler last read all rings (CLOCK_MONOTONIC) */
	/* The longest time between two such moments, and the most of its own CPU time. */
	uint64_t drain_gap_ns, drain_cpu_ns;
	uint64_t job;	  /* grows with each job (role.h); odd: during one */
	uint32_t reading; /* 1: it reads file now */
	uint32_t ready;	  /* 1: it has started */
	uint32_t process; /* it reads the memory of this process now; 0: of none */
	uint32_t reserved;
	struct status_sandbox {
		uint8_t seccomp;    /* enum sandbox_mode */
		uint8_t landlock;   /* its version; 0: not enforced */
		uint8_t no_network; /* 1: it is in an empty network namespace */
		uint8_t reserved;
		uint32_t uid;
	} sandbox; /* valid once it is ready, as are these */
	struct privileges_limits limits;
	struct status_file {
		struct file_identity identity;
		char path[104];
	} file;
};
/* For the broker: makes a page and maps it read-only. Returns its descriptor, or -errno. */
int status_page_new(struct status_page **ret);
/* For the child: maps the page of fd (borrowed) for writing. 0 or -errno. */
int status_page_map(int fd, struct status_page **ret);
