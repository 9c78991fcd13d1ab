/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One destination: a queue bounded by bytes, at most one request under way, and what to do next.
 *
 * The queue is sent from its oldest end. After an attempt that failed in a retryable way the newest
 * payload is tried instead: if the server is back, what is live leaves first; and if it was only
 * the oldest payload that the server chokes on, that one cannot hold up those behind it. After a
 * success it is the oldest's turn again.
 *
 * Every payload leaves by exactly one of four doors, each with its counter: sent, dropped because
 * the queue was full, refused by the server, expired. payloads is always their sum plus what is
 * queued.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/otlp-response.h"
#include "src/export/internal.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define ENTRY_OVERHEAD_BYTES 256 /* keeps a queue of tiny payloads bounded, too */
#define MESSAGE_BYTES	     257 /* of the server's text in a log line, with its 0 */

/* Retries while everything is being shut down: few, and soon. */
#define HURRY_DELAY_NS (250 * NSEC_PER_MSEC)

int destination_init(struct destination *d, struct exporter *e,
		     const struct export_destination *config, const char *version, char *error,
		     size_t n_error)
{
	*d = (struct destination){
		.exporter = e,
		.gzip = config->gzip,
		.timeout_ns = config->timeout_ns ? config->timeout_ns : 10 * NSEC_PER_SEC,
		.max_queue_bytes = config->max_queue_bytes ? config->max_queue_bytes : 64u << 20,
		.max_elapsed_ns = config->max_elapsed_ns,
	};
	TAILQ_INIT(&d->queue);
	d->name = strdup(config->name);
	if (!d->name)
		return -ENOMEM;
	return request_init(d, config, version, error, n_error);
}

static void entry_remove(struct destination *d, struct entry *x)
{
	TAILQ_REMOVE(&d->queue, x, link);
	if (d->flying == x)
		d->flying = NULL;
	d->stats.queue_payloads--;
	d->stats.queue_bytes -= x->bytes;
	exporter_release(d->exporter, x->payload);
	free(x);
}

static void entry_drop(struct destination *d, struct entry *x, uint64_t *counter)
{
	(*counter)++;
	d->stats.samples_dropped += x->payload->n_samples;
	entry_remove(d, x);
}

void destination_deinit(struct destination *d)
{
	struct entry *x;

	if (!d->exporter)
		return;
	if (d->flying)
		request_cancel(d);
	if (d->stats.queue_payloads > 0)
		report_abandoned(d);
	while ((x = TAILQ_FIRST(&d->queue)))
		entry_remove(d, x);
	request_deinit(d);
	free(d->name);
}

/* Makes room for bytes more. False when what is under way alone leaves too little. */
static bool make_room(struct destination *d, uint64_t bytes)
{
	struct entry *x, *next;

	for (x = TAILQ_FIRST(&d->queue); x && d->stats.queue_bytes + bytes > d->max_queue_bytes;
	     x = next) {
		next = TAILQ_NEXT(x, link);
		if (x != d->flying) {
			entry_drop(d, x, &d->stats.payloads_dropped_queue_full);
			report_queue_full(d);
		}
	}
	return d->stats.queue_bytes + bytes <= d->max_queue_bytes;
}

void destination_put(struct destination *d, struct payload *p)
{
	struct entry *x;
	size_t n;

	(void)payload_body(p, d->gzip, &n);
	n += ENTRY_OVERHEAD_BYTES;
	d->stats.payloads++;
	d->stats.samples += p->n_samples;
	x = n <= d->max_queue_bytes && make_room(d, n) ? calloc(1, sizeof(*x)) : NULL;
	if (!x) {
		d->stats.payloads_dropped_queue_full++;
		d->stats.samples_dropped += p->n_samples;
		report_queue_full(d);
		return;
	}
	x->payload = p;
	p->refs++;
	x->queued_ns = clock_monotonic_ns();
	x->bytes = n;
	TAILQ_INSERT_TAIL(&d->queue, x, link);
	d->stats.queue_payloads++;
	d->stats.queue_bytes += n;
}

static void drop_expired(struct destination *d, uint64_t now)
{
	uint64_t before = d->stats.payloads_dropped_expired;
	struct entry *x, *next;

	if (d->max_elapsed_ns == 0)
		return;
	for (x = TAILQ_FIRST(&d->queue); x && now - x->queued_ns >= d->max_elapsed_ns; x = next) {
		next = TAILQ_NEXT(x, link);
		if (x != d->flying)
			entry_drop(d, x, &d->stats.payloads_dropped_expired);
	}
	if (d->stats.payloads_dropped_expired > before)
		report_expired(d, d->stats.payloads_dropped_expired - before);
}

void destination_abandon(struct destination *d)
{
	uint64_t n = d->stats.queue_payloads;

	if (d->flying) {
		request_cancel(d);
		d->stats.failures++;
		d->flying = NULL;
	}
	while (!TAILQ_EMPTY(&d->queue))
		entry_drop(d, TAILQ_FIRST(&d->queue), &d->stats.payloads_dropped_expired);
	if (n > 0)
		report_expired(d, n);
}

void destination_kick(struct destination *d, uint64_t now)
{
	struct entry *x;

	if (!d->flying)
		drop_expired(d, now);
	if (d->flying || TAILQ_EMPTY(&d->queue) || now < d->next_attempt_ns)
		return;
	x = d->probe_newest ? TAILQ_LAST(&d->queue, entry_queue) : TAILQ_FIRST(&d->queue);
	if (request_start(d, x->payload) < 0) {
		d->next_attempt_ns = now + NSEC_PER_SEC;
		return;
	}
	d->flying = x;
}

uint64_t destination_deadline(const struct destination *d)
{
	uint64_t expires;

	if (d->flying || TAILQ_EMPTY(&d->queue))
		return UINT64_MAX;
	if (d->max_elapsed_ns == 0)
		return d->next_attempt_ns;
	expires = TAILQ_FIRST(&d->queue)->queued_ns + d->max_elapsed_ns;
	return expires < d->next_attempt_ns ? expires : d->next_attempt_ns;
}

/* --- outcomes ------------------------------------------------------------------------------ */

static void reached(struct destination *d, uint64_t now)
{
	if (d->down)
		report_back(d, now);
	d->down = false;
	d->failures = 0;
	d->probe_newest = false;
	d->next_attempt_ns = 0;
}

static void on_sent(struct destination *d, uint64_t now)
{
	char message[MESSAGE_BYTES] = "";
	int64_t n_rejected = 0;
	size_t n;

	(void)payload_body(d->flying->payload, d->gzip, &n);
	d->stats.payloads_sent++;
	d->stats.samples_sent += d->flying->payload->n_samples;
	d->stats.bytes_sent += n;
	entry_remove(d, d->flying);
	reached(d, now);
	/* The status says that the payload was taken; a body that cannot be read changes nothing.
	 */
	if (otlp_response_parse(d->response.body, d->response.n_body, &n_rejected, message,
				sizeof(message)) == 0) {
		if (n_rejected > 0)
			d->stats.profiles_rejected += (uint64_t)n_rejected;
		report_sent(d, n_rejected, message);
	}
}

static void on_refused(struct destination *d, const struct outcome *o, uint64_t now)
{
	d->stats.failures++;
	entry_drop(d, d->flying, &d->stats.payloads_dropped_refused);
	reached(d, now);
	report_refused(d, o);
}

static void on_retry(struct destination *d, const struct outcome *o, uint64_t now)
{
	uint64_t delay;

	d->stats.failures++;
	d->stats.retries++;
	d->flying = NULL;
	d->probe_newest = true;
	if (d->failures < UINT32_MAX)
		d->failures++;
	if (!d->down) {
		d->down = true;
		d->down_since_ns = now;
		report_unreachable(d, o);
	}
	if (d->exporter->hurry_ns)
		delay = HURRY_DELAY_NS;
	else if (!retry_parse_after(&d->exporter->curl, d->response.retry_after,
				    (int64_t)time(NULL), &delay))
		delay = retry_delay_ns(d->failures);
	d->next_attempt_ns = now + delay;
	log_debug("export:%s: attempt %u failed (curl %d, status %ld); next in %.1f s", d->name,
		  d->failures, (int)o->code, o->status, (double)delay / (double)NSEC_PER_SEC);
}

void destination_finish(struct destination *d, CURLcode code, uint64_t now)
{
	struct outcome o = request_end(d, code);

	switch (o.verdict) {
	case VERDICT_SENT:
		on_sent(d, now);
		break;
	case VERDICT_DROP:
		on_refused(d, &o, now);
		break;
	case VERDICT_RETRY:
		on_retry(d, &o, now);
		break;
	}
	response_reset(&d->response);
	destination_kick(d, now);
}
