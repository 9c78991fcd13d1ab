/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * perf.data, as `perf record` writes it: header, event attributes, feature sections and records,
 * in a file or in a pipe's form (`perf record -o -`). Rests on tools/perf/Documentation/
 * perf.data-file-format.txt of Linux 6.1 to 7.0; the records are those of perf_event_open(2).
 *
 * Everything in the file is hostile. Nothing but compressed records is copied: what is returned
 * leads into the caller's bytes, which must stay while the struct lives. Tables are bounded.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/sample/sample.h"
#include "util/cleanup.h"

#define PERF_DATA_MAX_BUILD_ID 20

struct perf_data;

struct perf_data_build_id {
	uint8_t n; /* 0: the file does not know it */
	uint8_t bytes[PERF_DATA_MAX_BUILD_ID];
};

/* The event whose samples are read: the one asked for, else the first that has stacks, else the
 * first that samples. */
struct perf_data_event {
	char name[64];	  /* as perf printed it, "cpu-clock", "cycles:P" */
	uint32_t rate_hz; /* 0: by period, not by rate */
	/* What a sample of value 1 stands for, as in struct profile; one of the two is 0. weighted:
	 * the value of a sample is its period. */
	uint64_t period_ns, period_events;
	bool weighted;
	uint64_t regs_mask; /* sample_regs_user; 0: no user registers */
	bool stacks;	    /* copies of the user stack */
	bool callchains;
	uint32_t n_others; /* further events in the file that sample, which are not read */
};

/* What the file says about the host it was recorded on; "" not known. */
struct perf_data_host {
	char name[128], release[128], arch[32];
	/* Where the kernel's text began; 0: not known, nor before the first record is read. Tells a
	 * kernel from the same one booted again, elsewhere. */
	uint64_t kernel_text;
	struct perf_data_build_id kernel_build_id, vdso_build_id;
	uint32_t n_cpus;
	uint64_t last_time_ns;	  /* of the last sample, on the records' clock; 0: not known */
	uint64_t clock_offset_ns; /* wall time - record time, of `perf record -k`; 0: not known */
};

struct perf_data_stats {
	uint64_t records, samples; /* samples: of the event that is read */
	uint64_t other_samples;	   /* of other events: not read */
	uint64_t lost;		   /* records or samples that the kernel had no room for */
	uint64_t late;		   /* records told out of turn */
	uint64_t cut_bytes;	   /* that the header promises and the file does not have */
	uint64_t bad_at; /* offset of a record that cannot be true: what follows was not read; 0 */
};

/*
 * Reads the header. event: name of the event whose samples are wanted, with or without what stands
 * behind its colon; NULL: see above. 0, -ENOMEM, -EBADMSG (not perf.data, or damaged) or
 * -EOPNOTSUPP (perf.data of a kind that is not read), the latter two with a text for the user in
 * error: cause and remedy, without the file's name.
 */
int perf_data_new(struct perf_data **ret, const void *bytes, size_t n, const char *event,
		  char *error, size_t n_error);
struct perf_data *perf_data_free(struct perf_data *d);
DEFINE_CLEANUP(struct perf_data *, perf_data_free)

const struct perf_data_event *perf_data_event(const struct perf_data *d);
const struct perf_data_host *perf_data_host(const struct perf_data *d);
/* The build id that was recorded for a mapped path, or NULL. */
const struct perf_data_build_id *perf_data_build_id(const struct perf_data *d, const char *path);

/*
 * The next record, in the order of time; borrowed until the next call. 1; 0: there is no more;
 * -ENOMEM; -EBADMSG, -EFBIG, -EOPNOTSUPP with error as above (compressed records).
 * Side-band records of all events, samples of the one event; a sample of one without callchains
 * and stacks has its ip as the only frame of the side it was taken on. RECORD_LOST never comes:
 * see the counters.
 */
int perf_data_next(struct perf_data *d, struct record *ret, char *error, size_t n_error);
const struct perf_data_stats *perf_data_stats(const struct perf_data *d);
