/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The files that killed a child. If a child dies while it reads a file, the file gets a strike. A
 * death by a fault or by our own limit of CPU time counts at once; a SIGKILL from elsewhere (the
 * OOM killer, an operator), or for waiting too long, as for a disk that stalls, counts only the
 * second time at the same file (strikes.h). The log names a file that is set aside, the children
 * that hand files on hear of it, and a restarted daemon still knows it.
 */
#include "src/broker/strikes.h"

struct quarantine {
	struct strikes strikes;
	const char *path; /* the file that keeps them; NULL: none. Borrowed. */
	/* A file is set aside from now on, or (lifted) no longer. */
	void (*tell)(void *ctx, const struct strike *k, bool lifted);
	void *ctx;
};

struct quarantine_death {
	enum peer who;
	const char *name;	 /* of the child, for the log */
	const char *finds;	 /* what the file's frames lack without the child, for the log */
	struct status_file file; /* its path ends with a 0 */
	bool fault;		 /* it died by itself */
	bool took_too_long;	 /* the broker killed it for that */
	bool waited;		 /* most of that time it did not work, but wait */
};

/* path, tell, ctx: as above. period_ns: how long a file is set aside the first time; 0: an hour. If
 * path cannot be read, that is logged, and no file is set aside at first. */
void quarantine_open(struct quarantine *q, const char *path, uint64_t period_ns,
		     void (*tell)(void *ctx, const struct strike *k, bool lifted), void *ctx);
/* A child died while it read a file: gives the file a strike. */
enum strike_outcome quarantine_add(struct quarantine *q, const struct quarantine_death *death);
/* Lifts the quarantine of files whose time is up by now (CLOCK_MONOTONIC). Returns how many. */
uint32_t quarantine_take_back(struct quarantine *q, uint64_t now);
/* Lifts it for all files, and forgets their strikes. Returns how many were set aside. */
uint32_t quarantine_forget(struct quarantine *q);
