/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the readers of src/import/ share: rows of a profile for frames that come with names. */
#include "src/import/import.h"
#include "util/cursor.h"

/* What is beyond is left out and counted, and the marker of a truncated stack is in its place. */
#define IMPORT_MAX_CHAIN  256  /* inlined functions of one frame */
#define IMPORT_MAX_FRAMES 4096 /* of one stack, from the leaf */

/* Different measures, in the order of the file; what does not fit is not named. */
struct import_list {
	struct import_measure items[16];
	uint32_t n;
};

struct import {
	struct profile *p;
	struct import_facts *facts;
	ARRAY(uint32_t) stack; /* of the sample that is being read, leaf first */
	bool stack_is_cut;
	uint32_t cut_function; /* stands for those that are cut out of a chain; or PROFILE_NONE */
	uint64_t n_cut;	       /* samples whose stacks were cut */
	uint64_t n_samples;    /* that were added */
	uint64_t n_uncounted;  /* of them, those of a writer that has no counters */
	bool uncounted;	       /* the values that are being read are of such a one */
	const char *event;     /* the kind of values wanted; NULL: see import_fd() */
	struct import_list kinds;   /* of values that the file has */
	struct import_list others;  /* those of them that are left out */
	uint64_t n_event, n_others; /* profiles of the kind wanted, and others */
	uint32_t kind;		    /* of pprof's values: which it is, not counting "samples" */
	uint32_t n_event_comments;  /* that were read */
	strid shape[4]; /* of OTLP profiles wanted: type and unit of the values, of the period */
	/* The values that are being read. */
	bool took;	/* they are the first ones of the profile */
	bool counted;	/* they are numbers of samples */
	uint64_t scale; /* what each of them is worth in the profile */
	int outcome;	/* enum import_outcome, or 0 */
	char *error;	/* IMPORT_ERROR_MAX bytes: text of the outcome or the error */
};

struct import_line {
	const char *name, *system_name, *file; /* NULL: not known */
	uint32_t line, column, start_line;
};

struct import_frame {
	uint32_t kind;	      /* enum profile_module_kind */
	uint32_t runtime;     /* PROFILE_MODULE_RUNTIME: enum profile_runtime */
	const char *module;   /* path, or NULL */
	const char *build_id; /* hex; NULL: none */
	const char *language; /* NULL: not known */
	uint64_t address;     /* 0: not known */
	uint64_t memory_start, memory_limit, file_offset;
	const struct import_line *lines; /* innermost inlined function first */
	uint32_t n;			 /* more than IMPORT_MAX_CHAIN are cut */
};

/* All return PROFILE_NONE or a negative error when the profile is full: -ENOMEM. */
uint32_t import_add_frame(struct import *im, const struct import_frame *f);
/* Begins a stack; frames come leaf first. */
void import_begin_stack(struct import *im);
int import_push(struct import *im, uint32_t frame);
/* Takes the first n frames off the stack, from the leaf on. */
void import_drop_leaves(struct import *im, uint32_t n);
/* Adds what was pushed as a sample, of values that were begun; n: how many samples
 * the value adds up, of numbers of samples that number; 0: not known. */
int import_add_sample(struct import *im, uint32_t thread, int64_t value, int64_t n,
		      uint64_t time_unix_ns, uint32_t cpu);
/* ---- values.c ---- */

/* Clean text in the profile's strings; NULL: "". */
strid import_text(struct import *im, const char *text);
/* Of values of that type, and of numbers of samples that stand for a period of that type. */
struct import_measure import_measure_values(struct import *im, const char *type, const char *unit);
struct import_measure import_measure_samples(struct import *im, const char *period_type,
					     const char *period_unit, int64_t period);
bool import_measure_equal(const struct import_measure *a, const struct import_measure *b);
/* That which the profile holds, or should hold if it is in the file? */
bool import_measure_fits(const struct import *im, const struct import_measure *m);
/* Is a kind of that name and unit what is wanted: NAME, NAME:UNIT or NAME/UNIT? */
bool import_is_called(const char *wanted, const char *name, const char *unit);
/*
 * Begins values of that measure: 1; 0: the profile holds others, they are to be left out; -EBADMSG:
 * what it holds does not say what it is, and cannot be added to; or -ENOMEM.
 */
int import_begin_values(struct import *im, const struct import_measure *m);
/* Of numbers that nothing is known of. 0 or -EBADMSG. */
int import_begin_unknown(struct import *im);
/* The event as the file calls it, "cpu-clock", and the rate; NULL, 0: it does not say. */
void import_name_event(struct import *im, const char *name, uint32_t rate_hz);
/* Samples were taken from start on, for so long; 0: it is not known when. 0 or -ENOMEM. */
int import_add_time(struct import *im, uint64_t start_unix_ns, uint64_t duration_ns);
void import_note(struct import *im, enum import_outcome outcome, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void import_list_add(struct import_list *l, const struct import_measure *m);
/* "cpu:nanoseconds, alloc:bytes". Returns buf. */
const char *import_list_text(const struct import *im, const struct import_list *l, char *buf,
			     size_t size);

/* ---- builder.c ---- */

/* f->kind and f->runtime by the module's name as tools write it. */
void import_set_kind(struct import_frame *f);
/* True: the name of a marker of ours. */
bool import_is_marker(const char *name, uint64_t *ret_marker);
/* "host NAME, Linux RELEASE, N CPUs ..." and "counter: N" as our pprof files have them. */
void import_comment(struct import *im, const char *text);
#define IMPORT_EVENT_MAX 64
/* "cpu-clock at 99 Hz", "page-faults, one of 10": the event; rate 0: by period. false: none. */
bool import_comment_event(const char *text, char name[IMPORT_EVENT_MAX], uint32_t *ret_rate_hz);
void import_counter(struct import *im, const char *name, uint64_t n);

/* error = text; -EBADMSG. */
int import_damaged(struct import *im, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

int import_read_folded(struct import *im, const uint8_t *bytes, size_t n);
int import_read_pprof(struct import *im, const uint8_t *bytes, size_t n);
/* One message. */
int import_read_otlp(struct import *im, const uint8_t *bytes, size_t n);
