/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A perf.data file in the place of the rings: its records, and what stands in for the live host
 * that cannot be asked any more.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/host/host.h"
#include "src/perf-data/perf-data.h"
#include "src/process/ask.h"

struct replay;

struct replay_options {
	const char *path;		  /* for messages; borrowed */
	int fd;				  /* of the file; becomes the replay's also on failure */
	int kallsyms_fd, kernel_notes_fd; /* of this host's kernel, -1 none; the same */
	const char *event;		  /* see perf_data_new(); borrowed for the call */
	struct ask *ask;		  /* borrowed */
};

/* 0 or -errno; the user has been told why. */
int replay_new(struct replay **ret, const struct replay_options *options);
struct replay *replay_free(struct replay *r);
DEFINE_CLEANUP(struct replay *, replay_free)

/* The next record in time order: 1, 0 at the end, -errno (told). */
int replay_next(struct replay *r, struct record *ret);
/* At the end: tells the user what the file did not have. */
void replay_report(const struct replay *r);

const struct perf_data_event *replay_event(const struct replay *r);
const struct perf_data_host *replay_host(const struct replay *r);
const struct perf_data_stats *replay_stats(const struct replay *r);
/* Wall time - record time: as recorded, else from when the file was written. */
uint64_t replay_clock_offset_ns(const struct replay *r);

/* The host model's source and the identity of what an mmap record maps. */
struct host_source replay_source(struct replay *r);
void replay_file_key(struct replay *r, const struct record *record, struct host_file_key *ret);
/* The perf map of a process as it was when the file was written: an owned descriptor or -errno. */
int replay_open_perf_map(struct replay *r, uint32_t pid);

/* There is a kallsyms that knows the kernel's addresses: perf's copy, or this host's. */
bool replay_kernel_is_known(struct replay *r);
/* The copy, once the former is true: the replay's descriptor; -1: it is this host's. */
int replay_kallsyms_copy(const struct replay *r);
/* The vdso of this process, whose build id is given, is the one of the processes recorded. */
bool replay_vdso_is_ours(const struct replay *r, const uint8_t *build_id, size_t n);
