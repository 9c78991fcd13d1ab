/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Files on which a child died or took too long, and how long they are set aside for that child: not
 * for ever, since a file may be innocent or mended, but each time twice as long as before.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/message.h"
#include "src/process/status-page.h"
#include "util/clock.h"

#define STRIKES_MAX	      256
#define STRIKES_PERIOD_NS     (3600 * NSEC_PER_SEC)
#define STRIKES_MAX_DOUBLINGS 6 /* 64 hours */

struct strike {
	struct status_file file;
	enum peer who;
	bool took_too_long; /* at the last strike; else the child died by itself */
	uint32_t n;	    /* deaths since the file was last set aside */
	uint32_t n_aside;   /* how often it was set aside */
	uint64_t struck_ns; /* the last strike (CLOCK_MONOTONIC) */
	uint64_t until_ns;  /* the end of its quarantine; 0: it is not set aside */
};

struct strikes {
	struct strike items[STRIKES_MAX]; /* a ring: a new one takes the place of the oldest */
	uint32_t n, next;
	uint64_t period_ns; /* how long the first quarantine lasts */
};

enum strike_outcome {
	STRIKE_COUNTED, /* the file may not be the cause */
	STRIKE_ASIDE,	/* the file is set aside from now on */
	STRIKE_BEFORE,	/* it was set aside before, so it is not the cause */
};
/* A child died while it read that file. sure: of a fault, or killed after too much work; else the
 * file may not be the cause, and only the second time counts. now: CLOCK_MONOTONIC. */
enum strike_outcome strikes_add(struct strikes *s, enum peer who, const struct status_file *file,
				bool sure, bool took_too_long, uint64_t now);
/* The file's quarantine for that child, borrowed until the next change; NULL: it is not set
 * aside. */
const struct strike *strikes_find(const struct strikes *s, enum peer who,
				  const struct file_identity *file);
/* The next file that is set aside; *at is 0 for the first. Borrowed. NULL: there are no more. */
const struct strike *strikes_next(const struct strikes *s, uint32_t *at);
/* Ends the next quarantine whose time is up by now (UINT64_MAX: any). Borrowed. NULL: there is
 * none. */
const struct strike *strikes_take_back(struct strikes *s, uint64_t now);
