/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The parts of the OTLP rendering: the resource of a process (otlp-resource.c), the order of the
 * samples (otlp-order.c), frames and stacks as dictionary entries (otlp-frames.c), the samples of a
 * Profile (otlp-samples.h), and the payloads (otlp.c).
 */
#include "proto/otlp-dictionary.h"
#include "proto/wire-write.h"
#include "src/profile/profile.h"
#include "src/render/render.h"

/* The version of the semantic conventions that define the attribute keys. */
#define OTLP_SCHEMA_URL "https://opentelemetry.io/schemas/1.37.0"

/* ---- resource ---- */

/*
 * Writes the Resource of a process as field 1 of the message in b. runs_user_code: some of its
 * stacks have user frames. 0 or -ENOMEM.
 */
int otlp_write_resource(struct wire_buffer *b, const struct profile *p,
			const struct render_info *info, uint32_t process, bool runs_user_code);

/*
 * For each process of p the first one with the same resource: a process that renamed itself is two
 * rows of the profile but one resource. With by_name it is two, and processes also differ by the
 * names of container and unit. Allocated; NULL: no memory.
 */
uint32_t *otlp_group_resources(const struct profile *p, bool by_name);

/* ---- order ---- */

struct otlp_type {
	struct profile view; /* the profile as one of this type alone */
	uint32_t first;	     /* number of its first sample, counted through all types */
	bool aggregated;     /* some sample's value is not 1 */
};

/* Samples by process, type and time. */
struct otlp_order {
	const struct profile *p;
	struct otlp_type types[PROFILE_MAX_TYPES];
	uint32_t n_types, n_samples;
	uint32_t *numbers;	 /* of samples, by position */
	uint32_t *first_process; /* of those with the same resource, by process */
};

/* by_name: as otlp_group_resources() has it. 0 or -ENOMEM; otlp_order_deinit() either way. */
int otlp_order_init(struct otlp_order *o, const struct profile *p, bool by_name);
void otlp_order_deinit(struct otlp_order *o);
/* The type and the sample at a position below n_samples. */
uint32_t otlp_order_type(const struct otlp_order *o, uint32_t position);
uint32_t otlp_order_process(const struct otlp_order *o, uint32_t position);
const struct profile_sample *otlp_order_sample(const struct otlp_order *o, uint32_t position);

/* ---- frames ---- */

/* The entry of the current payload's dictionary for a row of the profile. */
struct otlp_memo {
	uint32_t payload; /* valid only in this payload */
	int32_t index;
};

struct otlp_frames {
	const struct profile *p;
	struct otlp_dictionary dictionary;
	bool all_modules; /* modules without a build id are Mappings too: see put_module() */
	uint32_t payload;
	struct otlp_memo *modules, *functions, *frames, *stacks; /* by row */
	bool *module_has_names; /* some frame with the module's build id is named */
	const char *type;	/* of the frame that was put last, with its attribute */
	struct otlp_memo type_memo;
	ARRAY(int32_t) scratch; /* the locations of a stack */
};

/* 0 or -ENOMEM; otlp_frames_deinit() either way. */
int otlp_frames_init(struct otlp_frames *f, const struct profile *p);
void otlp_frames_deinit(struct otlp_frames *f);
/* Begins a payload with a dictionary of zero entries. */
void otlp_frames_begin(struct otlp_frames *f);

/*
 * Index of a stack. max_frames: a deeper stack keeps the frames next to the leaf, and gets a
 * marker. Errors stay with the dictionary.
 */
int32_t otlp_put_profile_stack(struct otlp_frames *f, uint32_t stack, uint32_t max_frames);

/* The remembered index of a row in this payload; false: not put yet. */
static inline bool otlp_memo_get(const struct otlp_frames *f, const struct otlp_memo *m,
				 int32_t *ret)
{
	*ret = m->index;
	return m->payload == f->payload;
}

static inline int32_t otlp_memo_set(const struct otlp_frames *f, struct otlp_memo *m, int32_t index)
{
	*m = (struct otlp_memo){f->payload, index};
	return index;
}
