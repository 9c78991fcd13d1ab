/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which processes the kernel killed for want of memory: only its log says that. The log is read at
 * the start, to find its end, and whenever there are more kills.
 */
#include <stdbool.h>
#include <stdint.h>

#define VICTIMS_MAX	 64 /* at one look; the last ones if there are more */
#define VICTIM_LINE_SIZE 160

struct outside;

/* Starts as zeros. */
struct victims {
	bool tried;
	uint64_t n_owed;	     /* kills that were counted but are not in the log yet */
	char last[VICTIM_LINE_SIZE]; /* the beginning of the last line that was read */
};

struct victim {
	uint32_t pid;
	char comm[17];
};

/* A line of the log that says of a process that it was killed. false: it does not, or the line is
 * not the kernel's own. */
bool victims_parse_line(const char *line, struct victim *ret);
/* Remembers the end of the log. */
void victims_begin(struct victims *v, struct outside *o);
/*
 * Finds the processes killed since the last look; n_kills: how many the kernel counted. Returns the
 * number of them in ret; -errno: the log cannot be read.
 */
int victims_read(struct victims *v, struct outside *o, uint64_t n_kills,
		 struct victim ret[VICTIMS_MAX]);
