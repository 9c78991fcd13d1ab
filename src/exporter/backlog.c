/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The payloads on disk for one destination.
 *
 * A payload goes to disk when it has waited for some seconds, at once if the destination has been
 * failing for as long, when the queue in memory is full, and at the end. The oldest go first, with
 * the one that is being sent: so payloads that a crash finds only in memory are younger than those
 * on disk, and the order is kept. Once a payload is on disk, it is settled for its sender. Payloads
 * go in batches, which share the flush of the directory: an exporter that does not live long must
 * settle all that came since the last one.
 *
 * They are sent at a limited rate after live ones, because all hosts that lost the same server get
 * it back at the same moment. A file is removed when the server has answered.
 *
 * If the process is killed after a payload is safe, but before it has said so, the payload comes
 * again: backlog_has() recognises it by its id and its sum.
 */
#include <errno.h>
#include <stdlib.h>

#include "src/exporter/internal.h"
#include "src/exporter/spool-file.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define SPOOL_AFTER_NS (3 * NSEC_PER_SEC)
/* Between two payloads from disk: 50 ms on average, so 20 a second, spread by chance. */
#define GAP_LEAST_NS (25 * NSEC_PER_MSEC)
#define GAP_MORE_NS  (50 * NSEC_PER_MSEC)

static void insert(struct destination *d, struct entry *x)
{
	struct entry *before = TAILQ_LAST(&d->backlog, entry_queue);

	while (before && before->seq > x->seq)
		before = TAILQ_PREV(before, entry_queue, link);
	if (before)
		TAILQ_INSERT_AFTER(&d->backlog, before, x, link);
	else
		TAILQ_INSERT_HEAD(&d->backlog, x, link);
	d->stats.spool_payloads++;
	d->stats.spool_bytes += x->file->bytes;
}

int backlog_adopt(struct destination *d, struct spool_file *f)
{
	struct entry *x = calloc(1, sizeof(*x));

	if (!x)
		return -ENOMEM;
	*x = (struct entry){
		.destination = d,
		.file = f,
		.seq = f->seq,
		.n_samples = f->n_samples,
	};
	f->owner = x;
	insert(d, x);
	d->stats.payloads++;
	d->stats.samples += x->n_samples;
	d->stats.payloads_found++;
	d->stats.queue_payloads++;
	d->backlog_told = true;
	/* The one before us did not get through either. */
	d->spooling = true;
	return 0;
}

bool backlog_has(const struct destination *d, const struct payload *p)
{
	const struct entry *x;

	TAILQ_FOREACH(x, &d->backlog, link)
	{
		const uint8_t *body;
		size_t n;

		if (x->file->id != p->id || x->file->n_samples != p->n_samples)
			continue;
		body = payload_body(p, x->file->encoding, &n);
		if (body && n == x->file->n_body && spool_file_crc(body, n) == x->file->crc)
			return true;
	}
	return false;
}

/* x stays in the queue. */
static bool write_down(struct destination *d, struct entry *x)
{
	struct spool *s = d->exporter->spool;
	struct spool_item item = {
		.destination = d->name,
		.id = x->payload->id,
		.n_samples = x->n_samples,
		.time_unix_ns = x->payload->time_unix_ns,
		.n_halvings = x->payload->n_halvings,
		.encoding = d->encoding,
	};
	int r;

	if (!s || x->never_on_disk || !spool_usable(s, clock_monotonic_ns()))
		return false;
	item.body = payload_body(x->payload, d->encoding, &item.n_body);
	r = spool_write(s, x->seq, &item, x, &x->file);
	x->never_on_disk = r == -EFBIG;
	return r == 0;
}

/* It is safe now. */
static void move_to_disk(struct destination *d, struct entry *x)
{
	TAILQ_REMOVE(&d->queue, x, link);
	insert(d, x);
	d->stats.payloads_spooled++;
	payload_settle(x->payload, &d->exporter->settled);
	if (x == d->flying)
		x->file->busy = true;
	else
		entry_land(d, x);
	/* Before its first answer a destination may be well: what comes may be old. */
	if (!d->backlog_told && (d->down || d->up_since_ns)) {
		report_spooling(d);
		d->backlog_told = true;
	}
}

/* n > 0 were written. */
static bool commit(struct destination *d, struct entry **written, uint32_t n)
{
	struct spool *s = d->exporter->spool;
	struct spool_file *newest = written[n - 1]->file;
	bool ok = spool_commit(s) == 0;

	for (uint32_t i = 0; i < n; i++) {
		if (ok)
			move_to_disk(d, written[i]);
		else
			written[i]->file = NULL;
	}
	if (ok)
		spool_keep_limits(s, newest);
	return ok;
}

bool backlog_put(struct destination *d, struct entry *x)
{
	return write_down(d, x) && commit(d, &x, 1);
}

void backlog_move(struct destination *d, struct entry *x, struct entry *after)
{
	TAILQ_REMOVE(&d->backlog, x, link);
	TAILQ_INSERT_AFTER(&d->backlog, after, x, link);
}

/*
 * When x has to be on disk. To an exporter that has reached nobody yet it may have come late, as
 * the one before died with it: if that one did not live for seconds, this one may not either.
 */
static uint64_t due_ns(const struct destination *d, const struct entry *x)
{
	const struct exporter *e = d->exporter;
	uint64_t made = x->payload->made_ns, retry = spool_retry_ns(e->spool);
	uint64_t since = !d->up_since_ns && made < x->queued_ns ? made : x->queued_ns;
	uint64_t due = since + SPOOL_AFTER_NS;

	if (d->spooling || made < d->back_ns || (e->hurry_ns && d->down))
		due = 0;
	else if (e->hurry_ns && e->hurry_spool_ns < due)
		due = e->hurry_spool_ns;
	return due > retry ? due : retry;
}

/* At most max payloads that are due. Returns how many are safe now. */
static uint32_t put_batch(struct destination *d, uint64_t now, uint32_t max)
{
	struct entry *x, *written[SPOOL_BATCH];
	uint32_t n = 0;

	TAILQ_FOREACH(x, &d->queue, link)
	{
		if (x->never_on_disk)
			continue;
		if (n == max || due_ns(d, x) > now)
			break;
		if (write_down(d, x))
			written[n++] = x;
		else if (!x->never_on_disk)
			break;
		/* What has to go for it can go only once it is safe. */
		if (!spool_fits(d->exporter->spool))
			break;
	}
	return n > 0 && commit(d, written, n) ? n : 0;
}

void backlog_put_due(struct destination *d, uint64_t now)
{
	uint32_t left = d->exporter->spool ? SPOOL_BATCH : 0, n;

	for (; left > 0 && (n = put_batch(d, now, left)) > 0; left -= n)
		;
}

uint64_t backlog_due_ns(const struct destination *d)
{
	const struct entry *x = TAILQ_FIRST(&d->queue);

	while (x && x->never_on_disk)
		x = TAILQ_NEXT(x, link);
	return d->exporter->spool && x ? due_ns(d, x) : UINT64_MAX;
}

int backlog_load(struct destination *d, struct entry *x)
{
	int r = x->payload ? 0 : spool_get(d->exporter->spool, x->file, &x->body);

	if (r == 0)
		x->file->busy = true;
	return r;
}

static void forget_when_empty(struct destination *d)
{
	if (!TAILQ_EMPTY(&d->backlog))
		return;
	d->backlog_told = false;
	d->n_from_backlog = 0;
}

void backlog_settle(struct destination *d, struct entry *x, uint64_t now)
{
	struct spool_file *f = x->file;

	entry_remove(d, x);
	if (!f)
		return;
	spool_remove(d->exporter->spool, f);
	d->backlog_next_ns = now + GAP_LEAST_NS + retry_random_below(GAP_MORE_NS);
	d->n_from_backlog++;
	if (TAILQ_EMPTY(&d->backlog))
		report_drained(d);
	forget_when_empty(d);
}

void backlog_lost(void *ctx, const struct spool_file *f, enum spool_loss why)
{
	struct exporter *e = ctx;
	struct entry *x = f->owner;
	struct destination *d = x ? x->destination : NULL;

	if (!x) {
		if (log_ratelimit(&e->orphans, 60))
			log_warning("spool: export:%s does not exist any more; its payloads are "
				    "dropped",
				    spool_destination(e->spool, f));
		return;
	}
	switch (why) {
	case SPOOL_LOSS_FULL:
		d->stats.payloads_dropped_spool_full++;
		report_spool_full(d);
		break;
	case SPOOL_LOSS_AGE:
		d->stats.payloads_dropped_expired++;
		report_expired(d, 1);
		break;
	case SPOOL_LOSS_CORRUPT:
		d->stats.payloads_dropped_corrupt++;
		break;
	}
	d->stats.samples_dropped += x->n_samples;
	entry_remove(d, x);
	forget_when_empty(d);
}
