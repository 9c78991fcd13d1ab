/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* State of reading a pprof file: pprof.c reads its tables, pprof-samples.c finds its samples,
 * pprof-values.c chooses among their values. */
#include "proto/wire-read.h"
#include "src/import/builder.h"
#include "src/import/pprof-prune.h"
#include "util/hash.h"

#define PPROF_MAX_TYPES	   64
#define PPROF_MAX_COMMENTS 256

/* The part of a location that drop_frames drops with its callees. */
enum pprof_pruned {
	PPROF_NOT_PRUNED,
	PPROF_PRUNED,	      /* all of it */
	PPROF_PRUNED_BENEATH, /* functions inlined into it, already removed */
};

struct pprof_entry {
	uint64_t id;
	const uint8_t *bytes;
	size_t n;
	uint32_t frame; /* row of a location; PROFILE_NONE: not made yet */
	uint8_t pruned; /* of a location: enum pprof_pruned */
};

struct pprof_table {
	ARRAY(struct pprof_entry) items;
	struct hash_index index;
};

struct pprof_type {
	uint64_t name_index, unit_index;
	char *name, *unit; /* NULL: "" */
};

struct pprof_file {
	struct import *im;
	const uint8_t *bytes;
	size_t n;
	ARRAY(struct pprof_entry) strings;
	struct pprof_table mappings, locations, functions;
	struct pprof_type types[PPROF_MAX_TYPES], period_type;
	uint32_t n_types;
	/* Of a sample's values: the chosen one, and the number of samples; n_types: none. */
	uint32_t chosen, samples;
	uint64_t comments[PPROF_MAX_COMMENTS];
	uint32_t n_comments;
	uint32_t event_kind; /* the kind with the wanted event; UINT32_MAX: none */
	uint64_t time, duration, period, default_index;
	char *default_type; /* NULL: none */
	uint64_t drop_index, keep_index;
	struct pprof_prune prune;
	ARRAY(uint8_t)
	pruned;		/* of the current sample, by location: enum pprof_pruned */
	char *texts[6]; /* strings are not terminated in the file */
};

/* Reports that the file is damaged or truncated at c. -EBADMSG. */
int pprof_damaged_at(struct pprof_file *pp, const struct cursor *c);
/*
 * Calls fn for each sample until it returns another value than 0. Returns that value, or -EBADMSG.
 */
int pprof_each_sample(struct pprof_file *pp,
		      int (*fn)(struct pprof_file *pp, void *ctx, const struct wire_field *sample),
		      void *ctx);
/* Reads the values of a sample, one for each type; missing ones are 0. */
void pprof_read_values(const struct pprof_file *pp, const struct wire_field *sample,
		       int64_t values[PPROF_MAX_TYPES]);
/* Chooses among the values: 1; 0: the file has none of the wanted kind; or -errno. */
int pprof_choose_values(struct pprof_file *pp);
