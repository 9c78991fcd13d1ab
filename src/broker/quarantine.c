/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "src/broker/quarantine.h"
#include "src/broker/strikes-file.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

static void load(struct quarantine *q)
{
	int r = q->path ? strikes_load(&q->strikes, q->path, clock_monotonic_ns()) : 0;

	if (r < 0)
		log_warning("%s: cannot be used: %s; files that were set aside before are read "
			    "again",
			    q->path, r == -EBADMSG ? "it is damaged" : strerror(-r));
}

static void save(const struct quarantine *q)
{
	int r = q->path ? strikes_save(&q->strikes, q->path, clock_monotonic_ns()) : 0;

	if (r < 0)
		log_warning("%s: cannot be written: %s; after a restart, files that are set aside "
			    "now are read again",
			    q->path, strerror(-r));
}

void quarantine_open(struct quarantine *q, const char *path, uint64_t period_ns,
		     void (*tell)(void *ctx, const struct strike *k, bool lifted), void *ctx)
{
	q->path = path;
	q->tell = tell;
	q->ctx = ctx;
	q->strikes.period_ns = period_ns ? period_ns : STRIKES_PERIOD_NS;
	load(q);
}

enum strike_outcome quarantine_add(struct quarantine *q, const struct quarantine_death *death)
{
	const struct status_file *file = &death->file;
	bool sure = (death->took_too_long && !death->waited) || death->fault;
	enum strike_outcome outcome;
	const struct strike *k;
	char time[32];

	outcome = strikes_add(&q->strikes, death->who, file, sure, death->took_too_long,
			      clock_monotonic_ns());
	if (outcome != STRIKE_BEFORE)
		save(q);
	if (outcome != STRIKE_ASIDE)
		return outcome;
	k = strikes_find(&q->strikes, death->who, &file->identity);
	log_warning("%s set aside for %s: the %s %s while reading it; its frames have addresses "
		    "instead of %s",
		    file->path[0] ? file->path : "a file",
		    text_format_duration(time, sizeof(time), k->until_ns - k->struck_ns),
		    death->name, death->took_too_long ? "took too long" : "died", death->finds);
	q->tell(q->ctx, k, false);
	return outcome;
}

uint32_t quarantine_take_back(struct quarantine *q, uint64_t now)
{
	const struct strike *k;
	uint32_t n = 0;

	for (; (k = strikes_take_back(&q->strikes, now)); n++) {
		log_info("%s: no longer set aside; the %s reads it again",
			 k->file.path[0] ? k->file.path : "a file", peer_name(k->who));
		q->tell(q->ctx, k, true);
	}
	if (n)
		save(q);
	return n;
}

uint32_t quarantine_forget(struct quarantine *q)
{
	uint32_t n = quarantine_take_back(q, UINT64_MAX);

	q->strikes.n = q->strikes.next = 0;
	save(q);
	return n;
}
