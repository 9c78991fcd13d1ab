/* SPDX-License-Identifier: Apache-2.0 */
#include "src/opener/stuck.h"

#include <sys/wait.h>

#include "util/cleanup.h"
#include "util/clock.h"

static bool is_known(const struct stuck_table *t, const struct stuck_subject *s)
{
	for (uint32_t i = 0; i < STUCK_KNOWN && (s->major || s->minor); i++) {
		if (t->known[i].major == s->major && t->known[i].minor == s->minor)
			return true;
	}
	return false;
}

/*
 * The device is to blame only if it is none of a disk and no file of it was ever opened: a path can
 * lead elsewhere than to the device that was mapped, and then everybody's would be refused.
 */
static bool is_same(const struct stuck_table *t, const struct stuck_subject *bad,
		    const struct stuck_subject *s)
{
	return (bad->pid && bad->pid == s->pid) || (!bad->major && bad->minor && !s->major &&
						    bad->minor == s->minor && !is_known(t, bad));
}

/* Is that user to blame for a helper that is stuck? */
static bool has_stuck(const struct stuck_table *t, const struct stuck_subject *s)
{
	for (uint32_t i = 0; i < STUCK_MAX; i++) {
		if (t->helpers[i].pid && t->helpers[i].subject.uid == s->uid)
			return true;
	}
	return false;
}

static bool is_bad(const struct stuck_table *t, const struct stuck_subject *s, uint64_t now_ns)
{
	for (uint32_t i = 0; i < STUCK_MAX; i++) {
		if (t->helpers[i].pid && is_same(t, &t->helpers[i].subject, s))
			return true;
	}
	for (uint32_t i = 0; i < STUCK_REFUSED; i++) {
		if (t->refused[i].until_ns > now_ns && is_same(t, &t->refused[i].subject, s))
			return true;
	}
	return false;
}

bool stuck_allows(struct stuck_table *t, const struct stuck_subject *s, uint64_t now_ns)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < STUCK_MAX; i++)
		n += t->helpers[i].pid != 0;
	if (n < STUCK_MAX && !is_bad(t, s, now_ns) &&
	    (n < STUCK_FEW || is_known(t, s) || !has_stuck(t, s)))
		return true;
	t->n_refused++;
	return false;
}

/* Was the subject refused not long ago? */
static bool was_late(const struct stuck_table *t, const struct stuck_subject *s, uint64_t now_ns)
{
	for (uint32_t i = 0; i < STUCK_REFUSED; i++) {
		if (t->refused[i].until_ns &&
		    now_ns < t->refused[i].until_ns + STUCK_REFUSED_SECONDS * NSEC_PER_SEC &&
		    is_same(t, &t->refused[i].subject, s))
			return true;
	}
	return false;
}

void stuck_add(struct stuck_table *t, pid_t helper, const struct stuck_subject *s, uint64_t now_ns)
{
	uint64_t seconds = was_late(t, s, now_ns) ? STUCK_REFUSED_SECONDS : STUCK_FIRST_SECONDS;
	uint32_t at = t->next_refused++ % STUCK_REFUSED;

	t->refused[at].subject = *s;
	t->refused[at].until_ns = now_ns + seconds * NSEC_PER_SEC;
	for (uint32_t i = 0; i < STUCK_MAX; i++) {
		if (!t->helpers[i].pid) {
			t->helpers[i].pid = helper;
			t->helpers[i].subject = *s;
			return;
		}
	}
}

void stuck_learn(struct stuck_table *t, const struct stuck_subject *s)
{
	uint32_t at;

	if ((!s->major && !s->minor) || is_known(t, s))
		return;
	at = t->next_known++ % STUCK_KNOWN;
	t->known[at].major = s->major;
	t->known[at].minor = s->minor;
}

uint32_t stuck_reap(struct stuck_table *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < STUCK_MAX; i++) {
		if (t->helpers[i].pid && waitpid(t->helpers[i].pid, NULL, WNOHANG) != 0)
			t->helpers[i].pid = 0;
		n += t->helpers[i].pid != 0;
	}
	return n;
}
