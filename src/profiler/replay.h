/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A perf.data file instead of the rings: its records, and what replaces the live host, which can no
 * longer be asked.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/host/host.h"
#include "src/perf-data/perf-data.h"
#include "src/process/ask.h"

struct replay;

struct replay_options {
	const char *path; /* for messages; borrowed */
	/* The file, and this host's kernel (-1: none). They become the replay's, also on failure.
	 * */
	int fd, kallsyms_fd, kernel_notes_fd;
	const char *event; /* see perf_data_new(); borrowed for the call */
	struct ask *ask;   /* borrowed */
};

/* 0 or -errno (logged). */
int replay_new(struct replay **ret, const struct replay_options *options);
struct replay *replay_free(struct replay *r);
DEFINE_CLEANUP(struct replay *, replay_free)

/* The next record in time order, borrowed until the next call: 1; 0: the end; -errno (logged). */
int replay_next(struct replay *r, struct record *ret);
/* At the end: logs what the file lacked. */
void replay_report(const struct replay *r);

/* Borrowed for the replay's life. */
const struct perf_data_event *replay_event(const struct replay *r);
const struct perf_data_host *replay_host(const struct replay *r);
const struct perf_data_stats *replay_stats(const struct replay *r);
/* Wall time - record time: as recorded, else by the time at which the file was written. */
uint64_t replay_clock_offset_ns(const struct replay *r);

/* The host model's source, which borrows r. */
struct host_source replay_source(struct replay *r);
/* The identity of the file that an mmap record maps. */
void replay_file_key(struct replay *r, const struct record *record, struct host_file_key *ret);
/* The perf map of a process as it was when the file was written: an owned descriptor or -errno. */
int replay_open_perf_map(struct replay *r, uint32_t pid);

/* Is there a kallsyms with the recorded kernel's addresses: perf's copy, or this host's? */
bool replay_kernel_is_known(struct replay *r);
/* If there is: perf's copy, borrowed; -1: it is this host's. */
int replay_kallsyms_copy(const struct replay *r);
/* Did the recorded processes have this process's vdso, whose build id is given? */
bool replay_vdso_is_ours(const struct replay *r, const uint8_t *build_id, size_t n);
