/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the readers of src/import/: rows of a profile for frames that come with names. */
#include <stdio.h>

#include "src/import/import.h"
#include "util/cursor.h"

/* Frames beyond these limits are left out and counted; a truncation marker replaces them. */
#define IMPORT_MAX_CHAIN  256  /* inlined functions of one frame */
#define IMPORT_MAX_FRAMES 4096 /* of one stack, from the leaf */

/* Different measures, in the order of the file; those that do not fit are not listed. */
struct import_list {
	struct import_measure items[16];
	uint32_t n;
};

struct import {
	struct profile *p;
	struct import_facts *facts;
	ARRAY(uint32_t) stack; /* of the current sample, leaf first */
	bool stack_is_cut;
	uint32_t cut_function;	    /* stands for functions cut from a chain; or PROFILE_NONE */
	uint64_t n_cut;		    /* samples whose stacks were cut */
	uint64_t n_samples;	    /* samples added */
	uint64_t n_uncounted;	    /* of these, samples of a writer without counters */
	bool uncounted;		    /* the current values come from such a writer */
	const char *event;	    /* the wanted kind of values; NULL: see import_fd() */
	struct import_list kinds;   /* kinds of values in the file */
	struct import_list others;  /* kinds that are left out */
	uint64_t n_event, n_others; /* profiles of the wanted kind, and others */
	uint32_t kind;		    /* pprof: the number of the kind, without "samples" */
	uint32_t n_event_comments;  /* comments read */
	strid shape[4]; /* OTLP: type and unit of the wanted values, and of the period */
	/* The current values. */
	bool took;	/* they are the first ones of the profile */
	bool counted;	/* they are numbers of samples */
	uint64_t scale; /* value of each in the profile */
	/* OTLP: the moment of the amounts in use that were read; 0: none were */
	uint64_t in_use_unix_ns;
	/* OTLP: where the memory of the window before ends, and its first row of residents */
	uint64_t memory_end_unix_ns;
	uint32_t first_resident;
	int outcome; /* enum import_outcome, or 0 */
	char *error; /* IMPORT_ERROR_MAX bytes: text of the outcome or the error */
};

struct import_line {
	const char *name, *system_name, *file; /* NULL: unknown */
	uint32_t line, column, start_line;
};

struct import_frame {
	uint32_t kind;	      /* enum profile_module_kind */
	uint32_t runtime;     /* PROFILE_MODULE_RUNTIME: enum profile_runtime */
	const char *module;   /* path, or NULL */
	const char *build_id; /* hex; NULL: none */
	const char *language; /* NULL: unknown */
	uint64_t address;     /* 0: unknown */
	uint64_t memory_start, memory_limit, file_offset;
	const struct import_line *lines; /* innermost inlined function first */
	uint32_t n;			 /* more than IMPORT_MAX_CHAIN are cut */
};

/* All return PROFILE_NONE or -ENOMEM if the profile is full. */
uint32_t import_add_frame(struct import *im, const struct import_frame *f);
/* Begins a stack; frames come leaf first. */
void import_begin_stack(struct import *im);
int import_push(struct import *im, uint32_t frame);
/* Removes the first n frames of the stack, from the leaf on. */
void import_drop_leaves(struct import *im, uint32_t n);
/* Adds the pushed stack as a sample of the current values. n: the number of samples in the value
 * (if the values are numbers of samples, the same number); 0: unknown. */
int import_add_sample(struct import *im, uint32_t thread, int64_t value, int64_t n,
		      uint64_t time_unix_ns, uint32_t cpu);

/* ---- values.c ---- */

/* Adds a text, cleaned, to the profile's strings; NULL: "". */
strid import_text(struct import *im, const char *text);
/* The measure of values of that type, and of numbers of samples with a period of that type. */
struct import_measure import_measure_values(struct import *im, const char *type, const char *unit);
struct import_measure import_measure_samples(struct import *im, const char *period_type,
					     const char *period_unit, int64_t period);
bool import_measure_equal(const struct import_measure *a, const struct import_measure *b);
/* Is it the measure of the profile, or the preferred one of an empty profile? */
bool import_measure_fits(const struct import *im, const struct import_measure *m);
/* Does wanted (NAME, NAME:UNIT or NAME/UNIT) mean the kind with that name and unit? */
bool import_is_called(const char *wanted, const char *name, const char *unit);
/*
 * Begins values of that measure: 1; 0: the profile has another measure, leave them out; -EBADMSG:
 * the measure of the profile is unknown, so nothing can be added; or -ENOMEM.
 */
int import_begin_values(struct import *im, const struct import_measure *m);
/* Begins counts with an unknown measure. 0 or -EBADMSG. */
int import_begin_unknown(struct import *im);
/* The event's name in the file, "cpu-clock", and the rate; NULL, 0: the file does not say. */
void import_name_event(struct import *im, const char *name, uint32_t rate_hz);
/* Adds a time in which samples were taken; start 0: unknown. 0 or -ENOMEM. */
int import_add_time(struct import *im, uint64_t start_unix_ns, uint64_t duration_ns);
void import_note(struct import *im, enum import_outcome outcome, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void import_list_add(struct import_list *l, const struct import_measure *m);
/* The list as text: "cpu:nanoseconds, alloc:bytes". Returns buf. */
const char *import_list_text(const struct import *im, const struct import_list *l, char *buf,
			     size_t size);

/* ---- builder.c ---- */

struct label;
/* Appends a label with untrusted texts, in the form of labels.h, to the text in *out. If *out is
 * NULL, opens it first as a stream in memory, *ret_text and *ret_n. */
void import_keep_label(FILE **out, const struct label *l, char **ret_text, size_t *ret_n);
/* The same with texts that are clean. */
void import_keep_clean_label(FILE **out, const struct label *l, char **ret_text, size_t *ret_n);

/* Sets f->kind and f->runtime from the module's name, as tools write it. */
void import_set_kind(struct import_frame *f);
/* Is this the name of one of our markers (enum profile_marker)? */
bool import_is_marker(const char *name, uint64_t *ret_marker);
/* Reads a comment of our pprof files: "host NAME, Linux RELEASE, N CPUs ..." or "counter: N". */
void import_comment(struct import *im, const char *text);
#define IMPORT_EVENT_MAX 64
/*
 * Reads the event of "cpu-clock at 99 Hz" or "page-faults, one of 10"; rate 0: by period. false:
 * none.
 */
bool import_comment_event(const char *text, char name[IMPORT_EVENT_MAX], uint32_t *ret_rate_hz);
void import_counter(struct import *im, const char *name, uint64_t n);

/* For the error text of a file that is none of these. */
#define IMPORT_FORMATS                                                                             \
	"Files of perf.data, pprof (.pb.gz), OTLP (.otlp) and folded stacks can be read, "         \
	"no pages, pictures and JSON"

/* Sets the error text; returns -EBADMSG. */
int import_damaged(struct import *im, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

int import_read_folded(struct import *im, const uint8_t *bytes, size_t n);
int import_read_pprof(struct import *im, const uint8_t *bytes, size_t n);
/* Reads one message. */
int import_read_otlp(struct import *im, const uint8_t *bytes, size_t n);
