/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The samples of a Profile while it is built, as slots: one for each Sample to be. They refer to
 * the dictionary of the current payload (otlp-internal.h).
 */
#include "src/render/otlp-internal.h"
#include "util/array.h"
#include "util/hash.h"

#define OTLP_CPU_MEMO 1024

struct sample_slot {
	uint32_t profile; /* number of the Profile: slots of earlier ones do not match */
	int32_t stack, tid, name, cpu;
	strid labels;
	uint32_t first_stamp, last_stamp, n; /* rows of stamps */
	int64_t value;
};

struct stamp {
	uint64_t time_unix_ns;
	uint32_t next;
};

struct otlp_samples {
	const struct profile *p;
	struct otlp_frames *frames; /* the dictionary's; borrowed */
	uint32_t max_samples;	    /* slots of a Profile */
	bool aggregated;	    /* values instead of timestamps */
	uint32_t profile;	    /* number of the current Profile */
	ARRAY(struct sample_slot) slots;
	size_t n_labelled; /* of the slots */
	ARRAY(struct stamp) stamps;
	ARRAY(uint64_t) scratch;
	struct hash_index slot_index;
	struct otlp_memo *tids, *names, *labels; /* by thread */
	struct otlp_memo cpus[OTLP_CPU_MEMO];
};

/* *o must be zeroed; p and frames are borrowed. 0 or -ENOMEM; otlp_samples_deinit() either way. */
int otlp_samples_init(struct otlp_samples *o, const struct profile *p, struct otlp_frames *frames,
		      uint32_t max_samples);
void otlp_samples_deinit(struct otlp_samples *o);

/* Call it at the first Profile of a payload, after otlp_frames_begin(). */
void otlp_samples_begin_payload(struct otlp_samples *o);
/* Begins a Profile, without samples. aggregated: some sample's value is not 1. */
void otlp_samples_begin(struct otlp_samples *o, bool aggregated);
/*
 * Adds a sample of the profile, with what it refers to, to the dictionary as well. max_frames: see
 * otlp_put_profile_stack(). 0; 1: the Profile has max_samples, and the sample is not in it; or
 * -ENOMEM.
 */
int otlp_samples_add(struct otlp_samples *o, const struct profile_sample *sample,
		     uint32_t max_frames);
/* An upper bound of the bytes that otlp_samples_write() would append now. */
size_t otlp_samples_bound(const struct otlp_samples *o);
/* Appends the Samples to a Profile's fields, in an order that does not depend on that in which they
 * were added. 0 or -ENOMEM. */
int otlp_samples_write(struct otlp_samples *o, struct wire_buffer *to);
