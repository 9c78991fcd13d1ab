/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How far what is remembered of an object in a process is believed without a look at it. Objects
 * are freed, and their memory is used for others. One that was the same in so many walks is
 * believed for some; then it is looked at again. If it has changed by then, the samples in between
 * may have a wrong name, and nothing of that process is believed for so long that they are less
 * than one in 4000. Those that change sooner were never believed, and say nothing about others.
 */
#include <stdbool.h>
#include <stdint.h>

enum {
	TRUST_AFTER = 32,	/* walks in which it was proven */
	TRUST_FOR = 15,		/* walks without */
	TRUST_NOBODY = 1 << 16, /* walks, once one that was believed has changed */
};

/* Of an object; all zeros: nothing is known. */
struct trust {
	uint32_t walk; /* in which it was proven or believed last */
	uint16_t n_proven, n_believed;
};

/* The process's walks; from 1 on. */
struct trust_walks {
	uint32_t walk;
	uint32_t doubtful; /* so many more in which nothing is believed */
};

static inline void trust_begin_walk(struct trust_walks *w)
{
	w->walk = w->walk == UINT32_MAX ? 1 : w->walk + 1;
	w->doubtful -= w->doubtful > 0;
}

/* Whether it may be used in this walk without a look. */
static inline bool trust_has(struct trust *t, const struct trust_walks *w)
{
	if (t->walk == w->walk)
		return true;
	if (w->doubtful || t->n_believed == 0)
		return false;
	t->n_believed--;
	t->walk = w->walk;
	return true;
}

/* It was looked at, and is the same one. */
static inline void trust_prove(struct trust *t, const struct trust_walks *w)
{
	t->walk = w->walk;
	t->n_proven += t->n_proven < TRUST_AFTER;
	t->n_believed = t->n_proven < TRUST_AFTER ? 0 : TRUST_FOR;
}

/* It was looked at, and is another one. */
static inline void trust_end(struct trust *t, struct trust_walks *w)
{
	if (t->n_proven == TRUST_AFTER)
		w->doubtful = TRUST_NOBODY;
	*t = (struct trust){.walk = 0};
}
