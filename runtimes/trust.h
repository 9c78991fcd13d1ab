/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * When may a walk use what it remembers of an object without reading the object again? Programs
 * free objects and use their memory for others. An object that was the same in TRUST_AFTER walks is
 * trusted for the next TRUST_FOR walks, then read again. If it has changed by then, the samples in
 * between may have a wrong name; so no object of that process is trusted for TRUST_NOBODY walks,
 * which keeps wrong samples below one in 4000. An object that changes before it is trusted does no
 * harm and has no such effect.
 */
#include <stdbool.h>
#include <stdint.h>

enum {
	TRUST_AFTER = 32,	/* walks in which it was proven */
	TRUST_FOR = 15,		/* walks without */
	TRUST_NOBODY = 1 << 16, /* walks, once one that was believed has changed */
};

/* For each object; starts as zeros. */
struct trust {
	uint32_t walk; /* the last one in which it was proven or trusted */
	uint16_t n_proven, n_believed;
};

/* For each process: the number of its current walk, from 1 on. */
struct trust_walks {
	uint32_t walk;
	uint32_t doubtful; /* number of further walks in which nothing is trusted */
};

static inline void trust_begin_walk(struct trust_walks *w)
{
	w->walk = w->walk == UINT32_MAX ? 1 : w->walk + 1;
	w->doubtful -= w->doubtful > 0;
}

/* May this walk use the object without reading it? */
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

/* Notes that the object was read and is the same. */
static inline void trust_prove(struct trust *t, const struct trust_walks *w)
{
	t->walk = w->walk;
	t->n_proven += t->n_proven < TRUST_AFTER;
	t->n_believed = t->n_proven < TRUST_AFTER ? 0 : TRUST_FOR;
}

/* Notes that the object was read and is another one. */
static inline void trust_end(struct trust *t, struct trust_walks *w)
{
	if (t->n_proven == TRUST_AFTER)
		w->doubtful = TRUST_NOBODY;
	*t = (struct trust){.walk = 0};
}
