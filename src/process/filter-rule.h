/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A rule that says which samples are wanted, and the text in which the broker sends it to the
 * profiler. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest text of filter_rule_print(), with its 0. */
#define FILTER_RULE_MAX_BYTES 4200

enum filter_kind {
	FILTER_COMM,	  /* glob for the name of a process or thread */
	FILTER_USER,	  /* uid */
	FILTER_UNIT,	  /* glob for a directory of the control group's path */
	FILTER_CONTAINER, /* prefix of an id or name */
	FILTER_CGROUP,	  /* path in the kernel */
	FILTER_SERVICE,	  /* glob for the name of a service */
	FILTER_N_KINDS
};

struct filter_rule {
	enum filter_kind kind;
	bool exclude;
	uint32_t uid; /* FILTER_USER */
	char *text;   /* all other kinds; owned */
};

/* Writes the text of a rule, cut to FILTER_RULE_MAX_BYTES. */
void filter_rule_print(enum filter_kind kind, bool exclude, const char *value,
		       char ret[FILTER_RULE_MAX_BYTES]);
/* 0, and ret->text is the caller's to free; -EBADMSG: not the text of a rule; -ENOMEM. */
int filter_rule_parse(const char *text, struct filter_rule *ret);

/* Writes the path of a control group in the kernel, cut to size. text: that path, or one below
 * /sys/fs/cgroup. */
void filter_cgroup_path(const char *text, char *ret, size_t size);
/* Is path equal to group, or below it? Both are paths in the kernel. */
bool filter_cgroup_lies_in(const char *path, const char *group);
