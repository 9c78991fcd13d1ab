/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A rule that says which samples are wanted, and its text form, in which it goes from the broker
 * to the profiler. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of any text that filter_rule_print() makes, with its 0. */
#define FILTER_RULE_MAX_BYTES 4200

enum filter_kind {
	FILTER_COMM,	  /* glob for the name of a process or thread */
	FILTER_USER,	  /* uid */
	FILTER_UNIT,	  /* glob for a directory of the control group's path */
	FILTER_CONTAINER, /* prefix of an id or name */
	FILTER_CGROUP,	  /* path as the kernel names it */
	FILTER_N_KINDS
};

struct filter_rule {
	enum filter_kind kind;
	bool exclude;
	uint32_t uid; /* FILTER_USER */
	char *text;   /* of all others */
};

/* Writes the text of a rule. Cut if it does not fit into FILTER_RULE_MAX_BYTES. */
void filter_rule_print(enum filter_kind kind, bool exclude, const char *value,
		       char ret[FILTER_RULE_MAX_BYTES]);
/* 0, and ret->text is the caller's to free; -EBADMSG: not the text of a rule; -ENOMEM. */
int filter_rule_parse(const char *text, struct filter_rule *ret);

/* Path of a control group as the kernel names it, from one below /sys/fs/cgroup or such a path. */
void filter_cgroup_path(const char *text, char *ret, size_t size);
/* Is a control group another one, or below it? Both as the kernel names them. */
bool filter_cgroup_lies_in(const char *path, const char *group);
