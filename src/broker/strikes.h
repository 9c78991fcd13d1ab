/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Files at which a child died or took too long, and how long they are set aside for that child:
 * not for ever, since a file may be innocent or mended, but each time twice as long as before.
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
	bool took_too_long; /* the last time; else who read it died */
	uint32_t n;	    /* deaths since the last time it was set aside */
	uint32_t n_aside;   /* how often it was set aside */
	uint64_t struck_ns; /* the last time */
	uint64_t until_ns;  /* set aside until then; 0: it is not */
};

struct strikes {
	struct strike items[STRIKES_MAX]; /* a ring: the oldest goes first */
	uint32_t n, next;
	uint64_t period_ns; /* how long the first time is */
};

enum strike_outcome {
	STRIKE_COUNTED, /* it may have been anything */
	STRIKE_ASIDE,	/* it is set aside from now on */
	STRIKE_BEFORE,	/* it was already, so it is not the reason */
};
/* A child died while it read that file. sure: by a fault, or after too long; else by somebody's
 * SIGKILL, which counts only the second time. */
enum strike_outcome strikes_add(struct strikes *s, enum peer who, const struct status_file *file,
				bool sure, bool took_too_long, uint64_t now);
/* NULL: it is not set aside. */
const struct strike *strikes_find(const struct strikes *s, enum peer who,
				  const struct file_identity *file);
/* The next file that is set aside, from *at on, which moves on. NULL: there is none. */
const struct strike *strikes_next(const struct strikes *s, uint32_t *at);
/* Takes back the next file whose time is up by now (UINT64_MAX: all). NULL: there is none. */
const struct strike *strikes_take_back(struct strikes *s, uint64_t now);
