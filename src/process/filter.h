/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which samples are wanted: the lists of [filter], and of the options of a capture, as rules. The
 * profiler applies them to each sample before it walks the stack, and perfwalk record to the
 * running processes. CPUs are not part of this: unwanted CPUs have no events.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/process/filter-rule.h"
#include "util/array.h"

struct filter {
	ARRAY(struct filter_rule) rules;
	bool includes[FILTER_N_KINDS]; /* there is an include rule of that kind */
	bool asks_user, asks_cgroup, asks_container, asks_service; /* a rule needs this fact */
};

/* The owner of a sample. */
struct filter_subject {
	const char *comm, *thread; /* names; never NULL */
	const char *cgroup;	   /* path; NULL: not known */
	const char *container_id;  /* NULL: unknown; "": not in a container */
	const char *container;	   /* name; NULL: not known */
	const char *service;	   /* name; NULL: not known */
	bool has_uid;
	uint32_t uid;
};

/* Adds the rule of that text (filter-rule.h). 0; -EBADMSG: not a rule; -ENOMEM. */
int filter_add(struct filter *f, const char *text);
/* Frees the rules. */
void filter_deinit(struct filter *f);

static inline bool filter_is_empty(const struct filter *f)
{
	return f->rules.n == 0;
}

/* Does a sample of that owner pass the filter? An unknown fact matches no rule. */
bool filter_passes(const struct filter *f, const struct filter_subject *s);
