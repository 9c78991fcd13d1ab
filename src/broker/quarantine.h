/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The files that killed a child. If a child dies while it reads a file, the file gets a strike. A
 * death by a fault or by our own time limit counts at once; a SIGKILL from elsewhere (the OOM
 * killer, an operator) counts only the second time at the same file (strikes.h). A file set aside
 * is named in the log, reported to the children that hand files on, and remembered over a restart
 * of the daemon.
 */
#include "src/broker/strikes.h"

struct quarantine {
	struct strikes strikes;
	const char *path; /* where they are kept; NULL: nowhere. Borrowed. */
	/* A file is set aside, or not any more (lifted). */
	void (*tell)(void *ctx, const struct strike *k, bool lifted);
	void *ctx;
};

struct quarantine_death {
	enum peer who;
	const char *name;	 /* of the child, for the log */
	const char *finds;	 /* what the file's frames lack without it, for the log */
	struct status_file file; /* its path ends with a 0 */
	bool fault;		 /* it died by itself */
	bool took_too_long;	 /* it was killed by us */
};

/* path, tell, ctx: as above. period_ns: how long a file is set aside the first time; 0: an hour.
 * A file that cannot be read is logged, and nothing is set aside then. */
void quarantine_open(struct quarantine *q, const char *path, uint64_t period_ns,
		     void (*tell)(void *ctx, const struct strike *k, bool lifted), void *ctx);
/* A child died while it read a file. */
enum strike_outcome quarantine_add(struct quarantine *q, const struct quarantine_death *death);
/* Lifts the quarantine of files whose time is up by now (CLOCK_MONOTONIC). Returns how many. */
uint32_t quarantine_take_back(struct quarantine *q, uint64_t now);
/* All of them are, as if nothing had happened. Returns how many. */
uint32_t quarantine_forget(struct quarantine *q);
