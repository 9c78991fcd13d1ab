/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Recorded files into a profile, names as they stand there: folded stacks, pprof, OTLP profiles.
 * Reads hostile bytes: runs in a process that may die. Opens no file.
 *
 * What each format cannot hold is not made up: folded stacks have no times, modules and lines,
 * pprof has no times and CPUs of single samples.
 */
#include <stddef.h>
#include <stdint.h>

#include "src/profile/profile.h"

enum import_kind {
	IMPORT_UNKNOWN,
	IMPORT_FOLDED, /* FlameGraph's: "frame;frame;frame COUNT" lines, process first, leaf last */
	IMPORT_PPROF,  /* profile.proto, gzipped or not */
	IMPORT_OTLP,   /* ProfilesData or ExportProfilesServiceRequest of v1development, gzipped or
			  not; also several, each behind its length in four bytes, big endian */
	IMPORT_PERF_DATA, /* the profiler reads these */
};

#define IMPORT_HEAD_BYTES 16

/* By the first bytes, where they tell, else by the suffix (of a .gz file the one before it). */
enum import_kind import_detect(const void *head, size_t n, const char *path);

/* Facts about the host and the capture, as far as files tell; allocated, free()d by the caller. */
struct import_facts {
	char *host_name, *kernel_release, *title;
	uint32_t n_cpus;
};
void import_facts_deinit(struct import_facts *f);

#define IMPORT_ERROR_MAX 256

/*
 * Adds the samples and counters of the file to p, which may hold others already; facts that are not
 * known yet are taken. event: which of several kinds of values a file has, by its name; NULL: its
 * own choice, else the last (pprof) or the first (OTLP). The file's content is mapped or inflated
 * whole, within max_bytes. 0; -EBADMSG: it is damaged, with error (IMPORT_ERROR_MAX bytes) saying
 * what and where; -EFBIG; -ENOMEM; -errno, all with error. After an error p holds what was read
 * before it.
 */
int import_fd(struct profile *p, struct import_facts *facts, int fd, enum import_kind kind,
	      const char *event, uint64_t max_bytes, char *error);
