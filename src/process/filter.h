/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which samples are wanted: the lists of [filter], and of the options of a capture, as rules that
 * the profiler asks of each sample before its stack is walked, and perfwalk record of the processes
 * that run. CPUs are not part of this: those unwanted have no events.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/process/filter-rule.h"
#include "util/array.h"

struct filter {
	ARRAY(struct filter_rule) rules;
	bool includes[FILTER_N_KINDS]; /* there is a rule of that kind that includes */
	bool asks_user, asks_cgroup, asks_container; /* a rule needs to know it */
};

/* Whom a sample is of. */
struct filter_subject {
	const char *comm, *thread; /* names; never NULL */
	const char *cgroup;	   /* path; NULL: not known */
	const char *container_id;  /* NULL: not known; "": it is in none */
	const char *container;	   /* name; NULL: not known */
	bool has_uid;
	uint32_t uid;
};

/* 0; -EBADMSG: no rule; -ENOMEM. */
int filter_add(struct filter *f, const char *text);
void filter_deinit(struct filter *f);

static inline bool filter_is_empty(const struct filter *f)
{
	return f->rules.n == 0;
}

/* What is not known is in no list: neither included nor excluded. */
bool filter_passes(const struct filter *f, const struct filter_subject *s);
