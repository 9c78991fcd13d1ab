/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Private to the perf.data reader: its tables. */
#include "src/perf-data/perf-data.h"
#include "src/sample/decode.h"
#include "util/array.h"
#include "util/cursor.h"
#include "util/hash.h"

#define PERF_DATA_PIPE_HEADER 16 /* magic and its own size */

/* perf's own records, not the kernel's (tools/lib/perf/include/perf/event.h). */
enum perf_data_record {
	PERF_DATA_HEADER_ATTR = 64,
	PERF_DATA_TRACING_DATA = 66,
	PERF_DATA_BUILD_ID = 67,
	PERF_DATA_FINISHED_ROUND = 68,
	PERF_DATA_AUXTRACE = 71,
	PERF_DATA_EVENT_UPDATE = 78,
	PERF_DATA_FEATURE = 80,
	PERF_DATA_COMPRESSED = 81,
	PERF_DATA_COMPRESSED2 = 83,
};
#define PERF_DATA_FIRST_OWN_RECORD 64

struct perf_data_attr {
	struct perf_event_attr attr; /* the part that the file has; the rest is zero */
	struct record_layout layout;
	char name[64];
};

struct perf_data_id {
	uint64_t id;
	uint32_t attr;
};

/* A counter of an event that is read at the samples of its group's leader. */
struct perf_data_counter {
	uint64_t id, value;
	uint32_t tid; /* 0: of all tasks */
};

struct perf_data_file_id {
	const char *path; /* into the file, terminated */
	struct perf_data_build_id id;
};

/* A record that waits to be sorted. */
struct perf_data_pending {
	uint64_t time_ns;
	const uint8_t *bytes;
	uint32_t attr, reserved;
};

struct perf_data {
	const uint8_t *bytes;
	uint64_t n_bytes;
	/* The records, in the bytes of the file or inflated from them. */
	const uint8_t *records;
	uint64_t data_start, data_end; /* of records */
	uint8_t *inflated;
	uint64_t n_inflated, cap_inflated;
	bool pipe;
	ARRAY(struct perf_data_attr) attrs;
	ARRAY(struct perf_data_id) ids; /* sorted by id once all are known */
	bool by_id;			/* records have the id of their event */
	size_t id_offset;		/* of the id in a sample, from its start */
	size_t id_from_end;		/* of the id in other records, from their end; 0: none */
	uint32_t chosen;
	bool by_read; /* the chosen event takes no samples: read.c */
	ARRAY(struct perf_data_counter) counters;
	struct hash_index counter_index;
	const char *wanted_event; /* while the header is read; the caller's */
	ARRAY(struct perf_data_file_id) files;
	struct hash_index file_index;
	struct perf_data_event event;
	struct perf_data_host host;
	struct perf_data_stats stats;
	/* Putting in order */
	ARRAY(struct perf_data_pending) pending;
	uint32_t n_ready, next_ready; /* of pending: sorted, may be returned */
	uint64_t at;		      /* the next record in the file */
	uint64_t max_time_ns, round_time_ns, told_time_ns;
	uint64_t lost_records, lost_samples;
	uint64_t copy[65536 / sizeof(uint64_t)]; /* of a record that is not aligned */
};

/* feature.c: all of them skip impossible values; only lack of memory is an error. */
/* Reads one feature section by its number (HEADER_* of tools/perf/util/header.h). */
int perf_data_feature(struct perf_data *d, uint32_t feature, struct cursor c);
/* Reads one PERF_RECORD_HEADER_BUILD_ID with its header. */
int perf_data_add_build_id(struct perf_data *d, struct cursor c);
/* Makes a name for an event that the file does not name. */
void perf_data_name_attr(const struct perf_event_attr *attr, char *name, size_t size);

/* step.c */
/* Bytes from the record at that place to the next; 0: its size is impossible. */
uint64_t perf_data_step(const struct perf_data *d, uint64_t at);

/* inflate.c */
/*
 * Inflates all from the compressed record at d->at on, and sets d->records to the result. 0;
 * -ENOMEM; or with error -EBADMSG, -EFBIG, -EOPNOTSUPP (built without libzstd).
 */
int perf_data_inflate(struct perf_data *d, char *error, size_t n_error);

/* read.c */
/* How much the chosen event's counters grew since the last sample; 0: not a sample of its group. */
uint64_t perf_data_read_period(struct perf_data *d, const struct record *r);

/* attr.c */
/* Adds an attribute in n bytes with its ids (n_ids * 8 bytes). 0, -ENOMEM, -EBADMSG, -E2BIG. */
int perf_data_add_attr(struct perf_data *d, const uint8_t *attr, size_t n, const uint8_t *ids,
		       uint64_t n_ids);
/* Chooses the event, after the last attribute. 0, -EBADMSG or -EOPNOTSUPP with error. */
int perf_data_choose(struct perf_data *d, char *error, size_t n_error);
/* The event with that id; UINT32_MAX: none. */
uint32_t perf_data_find_id(const struct perf_data *d, uint64_t id);
/* The event with the layout of a record; UINT32_MAX: unknown. */
uint32_t perf_data_attr_of(const struct perf_data *d, const uint8_t *record, size_t n,
			   uint32_t type);
