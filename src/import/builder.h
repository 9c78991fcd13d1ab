/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the readers of src/import/ share: rows of a profile for frames that come with names. */
#include "src/import/import.h"
#include "util/cursor.h"

#define IMPORT_MAX_CHAIN  256  /* inlined functions of one frame */
#define IMPORT_MAX_FRAMES 4096 /* of one stack; what is beyond is cut at the root */

struct import {
	struct profile *p;
	struct import_facts *facts;
	ARRAY(uint32_t) stack;	    /* of the sample that is being read, leaf first */
	uint64_t n_samples;	    /* sum of values added */
	uint64_t n_stacks;	    /* with how many calls */
	const char *event;	    /* the kind of values wanted; NULL: see import_fd() */
	char *first_event;	    /* kind, or kinds, that the file has */
	uint64_t n_event, n_others; /* profiles of the kind wanted, and others */
	char *error;		    /* IMPORT_ERROR_MAX bytes */
};

struct import_line {
	const char *name, *system_name, *file; /* NULL: not known */
	uint32_t line, column, start_line;
};

struct import_frame {
	uint32_t kind;	      /* enum profile_module_kind */
	const char *module;   /* path, or NULL */
	const char *build_id; /* hex; NULL: none */
	const char *language; /* NULL: not known */
	uint64_t address;     /* 0: not known */
	uint64_t memory_start, memory_limit, file_offset;
	const struct import_line *lines; /* innermost inlined function first */
	uint32_t n;
};

/* All return PROFILE_NONE or a negative error when the profile is full: -ENOMEM. */
uint32_t import_add_frame(struct import *im, const struct import_frame *f);
/* Begins a stack; frames come leaf first. */
void import_begin_stack(struct import *im);
int import_push(struct import *im, uint32_t frame);
/* Adds what was pushed as a sample. */
int import_add_sample(struct import *im, uint32_t thread, int64_t value, uint64_t time_unix_ns,
		      uint32_t cpu);
/* Kind of a frame by the module's name as tools write it, and by the function's. */
uint32_t import_kind_of_module(const char *module);
/* True: the name of a marker of ours. */
bool import_is_marker(const char *name, uint64_t *ret_marker);
/* "host NAME, Linux RELEASE, N CPUs ..." and "counter: N" as our pprof files have them. */
void import_comment(struct import *im, const char *text);
void import_counter(struct import *im, const char *name, uint64_t n);

/* error = text; -EBADMSG. */
int import_damaged(struct import *im, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

int import_read_folded(struct import *im, const uint8_t *bytes, size_t n);
int import_read_pprof(struct import *im, const uint8_t *bytes, size_t n);
/* One message. */
int import_read_otlp(struct import *im, const uint8_t *bytes, size_t n);
