/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where helpers got stuck, and what is refused because of that. A server that does not answer keeps
 * each helper that touches its files, so nobody asks there again for a while. A busy host makes an
 * innocent late, too: if the helper could be ended, the first time counts for less. Others go on:
 * even somebody who makes one filesystem after the other must not keep everybody's files from being
 * opened.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Helpers that have not ended. From few on only the files of others and of devices that are known
 * to answer are opened; with so many, none. */
#define STUCK_FEW 4
#define STUCK_MAX 8

#define STUCK_REFUSED	      64
#define STUCK_KNOWN	      256
#define STUCK_FIRST_SECONDS   2
#define STUCK_REFUSED_SECONDS 60 /* if it is late again within as long */

/* The process and device of a request. */
struct stuck_subject {
	uint32_t pid, major, minor; /* 0: none; 0, 0: not known */
	uint32_t uid;		    /* of the process; UINT32_MAX: not known */
};

struct stuck_table {
	struct {
		pid_t pid; /* 0: free */
		struct stuck_subject subject;
	} helpers[STUCK_MAX];
	/* Both overwrite the oldest. */
	struct {
		struct stuck_subject subject;
		uint64_t until_ns; /* 0: free */
	} refused[STUCK_REFUSED];
	struct {
		uint32_t major, minor; /* devices from which a file could be opened */
	} known[STUCK_KNOWN];
	uint32_t next_refused, next_known;
	uint64_t n_refused; /* requests */
};

/* May the subject be asked for? false: it is counted. */
bool stuck_allows(struct stuck_table *t, const struct stuck_subject *s, uint64_t now_ns);
/* The answer for s is late; helper, which was killed, is the table's from now on. */
void stuck_add(struct stuck_table *t, pid_t helper, const struct stuck_subject *s, uint64_t now_ns);
/* A file of s could be opened. */
void stuck_learn(struct stuck_table *t, const struct stuck_subject *s);
/* Forgets helpers that have ended. Returns how many have not. */
uint32_t stuck_reap(struct stuck_table *t);
