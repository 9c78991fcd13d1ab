/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * perf.data, as `perf record` writes it: header, event attributes, feature sections and records, as
 * a file or in the form of a pipe (`perf record -o -`). Follows tools/perf/Documentation/
 * perf.data-file-format.txt of Linux 6.1 to 7.0; the records are those of perf_event_open(2).
 *
 * The file is untrusted. Only compressed records are copied: results point into the caller's bytes,
 * which must stay while the struct lives. Tables are bounded.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/sample/sample.h"
#include "util/cleanup.h"

#define PERF_DATA_MAX_BUILD_ID 20

struct perf_data;

struct perf_data_build_id {
	uint8_t n; /* 0: not in the file */
	uint8_t bytes[PERF_DATA_MAX_BUILD_ID];
};

/* The event to read samples of: the wanted one, else the first with stacks, else the first that
 * samples. */
struct perf_data_event {
	char name[64];	  /* as in perf: "cpu-clock", "cycles:P" */
	uint32_t rate_hz; /* 0: by period, not by rate */
	/* The period of a sample of value 1, as in struct profile; one of the two is 0. weighted:
	 * the value of a sample is its period. */
	uint64_t period_ns, period_events;
	bool weighted;
	uint64_t regs_mask; /* sample_regs_user; 0: no user registers */
	bool stacks;	    /* copies of the user stack */
	bool callchains;
	uint32_t n_others; /* other events in the file that sample, which are not read */
};

/* The host of the recording, from the file; "": unknown. */
struct perf_data_host {
	char name[128], release[128], arch[32];
	/* The start of the kernel's text; 0: unknown, also before the first record is read. The
	 * same kernel has another one after each boot. */
	uint64_t kernel_text;
	struct perf_data_build_id kernel_build_id, vdso_build_id;
	uint32_t n_cpus;
	uint64_t last_time_ns;	  /* of the last sample, on the records' clock; 0: unknown */
	uint64_t clock_offset_ns; /* wall time - record time, from `perf record -k`; 0: unknown */
};

struct perf_data_stats {
	uint64_t records, samples; /* samples: of the chosen event */
	uint64_t other_samples;	   /* samples of other events, not read */
	uint64_t lost;		   /* records or samples that the kernel had no room for */
	uint64_t late;		   /* records returned out of order */
	uint64_t cut_bytes;	   /* missing at the end of the file, according to its header */
	uint64_t bad_at; /* offset of an impossible record, where reading stopped; 0: none */
};

/*
 * Reads the header. event: the name of the event to read, with or without the part after its colon;
 * NULL: see above. 0; -ENOMEM; -EBADMSG (not perf.data, or damaged) or -EOPNOTSUPP (a kind of
 * perf.data that is not supported), both with a text for the user in error: cause and remedy,
 * without the file's name.
 */
int perf_data_new(struct perf_data **ret, const void *bytes, size_t n, const char *event,
		  char *error, size_t n_error);
struct perf_data *perf_data_free(struct perf_data *d);
DEFINE_CLEANUP(struct perf_data *, perf_data_free)

const struct perf_data_event *perf_data_event(const struct perf_data *d);
const struct perf_data_host *perf_data_host(const struct perf_data *d);
/* The recorded build id of a mapped path, or NULL. */
const struct perf_data_build_id *perf_data_build_id(const struct perf_data *d, const char *path);

/*
 * The next record in the order of time; borrowed until the next call. 1; 0: no more records;
 * -ENOMEM; -EBADMSG, -EFBIG, -EOPNOTSUPP with error as above (compressed records). Returns the
 * side-band records of all events and the samples of the chosen event. A sample without callchain
 * and stack has its ip as the only frame, user or kernel. RECORD_LOST is never returned: see the
 * counters.
 */
int perf_data_next(struct perf_data *d, struct record *ret, char *error, size_t n_error);
const struct perf_data_stats *perf_data_stats(const struct perf_data *d);
