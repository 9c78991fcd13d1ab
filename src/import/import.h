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

/* What values measure. Samples (counted) stand for a period each, or for nothing known (0). */
struct import_measure {
	strid what, unit; /* of the profile: "cpu" in "nanoseconds"; what "": nothing yet */
	uint64_t period;
	uint64_t scale; /* one of the file is so many of the unit: 1000 of microseconds */
	bool counted;
};

/*
 * Facts about the host and the capture, as far as files tell, and what is added up: one for all
 * files that are read into one profile. Begins as zeros.
 */
struct import_facts {
	char *host_name, *kernel_release, *title;
	uint32_t n_cpus;
	struct import_measure measure;
	bool has_unknown; /* counts of files that do not say what they count: folded stacks */
	/* When samples were taken: apart from each other, in the order of time. */
	struct import_span {
		uint64_t start_unix_ns, end_unix_ns;
	} * spans;
	uint32_t n_spans;
	/* The different periods of what has been added up, as many as fit; 0: values. */
	uint64_t periods[8];
	uint32_t n_periods;
	/* The kind that is preferred when nothing has been read yet: borrowed, or NULL. */
	const char *like_what, *like_unit;
	bool like_only; /* a file without it is left out (IMPORT_LEFT_OUT), and no error */
};
void import_facts_deinit(struct import_facts *f);

#define IMPORT_ERROR_MAX 512

enum import_outcome {
	IMPORT_CHOSE = 1, /* one of the kinds of values that each sample has */
	IMPORT_LEFT_OUT,  /* samples are left out, or what is cut of them */
};

/*
 * Adds the samples and counters of the file to p, which may hold others already; facts that are not
 * known yet are taken. Only values of one kind are added up (values.c): event names it, NAME,
 * NAME:UNIT or NAME/UNIT; NULL: the kind that p holds, else the file's own choice, else the last
 * (pprof) or the first (OTLP). The file's content is mapped or inflated whole, within max_bytes.
 * 0; an enum import_outcome, with error (IMPORT_ERROR_MAX bytes) saying what was not taken;
 * -EBADMSG: it is damaged, with error saying what and where; -EFBIG; -ENOMEM; -errno, all with
 * error. After an error p holds what was read before it.
 */
int import_fd(struct profile *p, struct import_facts *facts, int fd, enum import_kind kind,
	      const char *event, uint64_t max_bytes, char *error);
