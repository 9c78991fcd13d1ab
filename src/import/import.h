/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads recorded files into a profile, with the names in the file: folded stacks, pprof, OTLP
 * profiles. It reads hostile bytes, in a process that may die, and opens no file.
 *
 * It invents nothing that a format lacks: folded stacks have no times, modules and lines, pprof has
 * no times and CPUs of single samples.
 */
#include <stddef.h>
#include <stdint.h>

#include "src/profile/profile.h"

enum import_kind {
	IMPORT_UNKNOWN,
	IMPORT_FOLDED, /* FlameGraph's: "frame;frame;frame COUNT" lines, process first, leaf last */
	IMPORT_PPROF,  /* profile.proto, gzipped or not */
	/* ProfilesData or ExportProfilesServiceRequest of v1development, gzipped or not; also
	 * several, each after its length in four bytes, big endian */
	IMPORT_OTLP,
	IMPORT_PERF_DATA, /* the profiler reads these */
};

#define IMPORT_HEAD_BYTES 16

/*
 * The kind of a file, by its first n bytes if they are distinctive, else by the suffix of its path
 * (the one before .gz).
 */
enum import_kind import_detect(const void *head, size_t n, const char *path);

/* What values measure. Samples (counted) stand for a period each, which may be unknown (0). */
struct import_measure {
	strid what, unit; /* strings of the profile: "cpu" in "nanoseconds"; what "": nothing yet */
	uint64_t period;
	uint64_t scale; /* values of the file times this are in the unit: 1000 for microseconds */
	bool counted;
};

/*
 * Facts about the host and the capture from the files, and the measure: one for all files of a
 * profile. Starts as zeros.
 */
struct import_facts {
	char *host_name, *kernel_release, *title;
	uint32_t n_cpus;
	struct import_measure measure;
	bool has_unknown; /* some files do not say what they count: folded stacks */
	/* When samples were taken: disjoint spans, in the order of time. */
	struct import_span {
		uint64_t start_unix_ns, end_unix_ns;
	} * spans;
	uint32_t n_spans;
	/* The different periods of the samples, as many as fit; 0: values. */
	uint64_t periods[8];
	uint32_t n_periods;
	/* The preferred kind of values for the first file: borrowed, or NULL. */
	const char *like_what, *like_unit;
	bool like_only; /* a file without it is left out (IMPORT_LEFT_OUT) without an error */
};
void import_facts_deinit(struct import_facts *f);

#define IMPORT_ERROR_MAX 512

enum import_outcome {
	IMPORT_CHOSE = 1, /* chose one of several kinds of values */
	IMPORT_LEFT_OUT,  /* left samples out, or cut parts of them */
};

/*
 * Adds the samples and counters of the file to p, which may have others already, and fills in
 * unknown facts. Only values of one kind are added up (values.c). event names it: NAME, NAME:UNIT
 * or NAME/UNIT; NULL: the kind in p, else the file's default, else the last (pprof) or the first
 * (OTLP). The whole file is mapped or inflated, within max_bytes. 0; an enum import_outcome, and
 * error (IMPORT_ERROR_MAX bytes) says what was left out; -EBADMSG: damaged, and error says what and
 * where; -EFBIG; -ENOMEM; -errno, all with error. After an error p has what was read before it.
 */
int import_fd(struct profile *p, struct import_facts *facts, int fd, enum import_kind kind,
	      const char *event, uint64_t max_bytes, char *error);
