/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One destination: a queue bounded by bytes, a backlog on disk after it (backlog.c), at most one
 * request under way, and the choice of the next.
 *
 * The oldest payload of the queue is sent first. While there is a backlog, payloads made since the
 * server was last reached go first, and then all that waited for it, in their order, on disk or, if
 * that was full, in memory. After an attempt that the server has seen and that failed in a
 * retryable way, the newest payload is tried instead: if the server fails only on the oldest, that
 * one cannot hold up the others. After a success it is the oldest's turn again.
 *
 * Every payload ends in exactly one of these ways, each with its counter: sent, dropped because the
 * queue or the spool was full, refused by the server, expired, damaged on disk. payloads is always
 * their sum plus the number in the queue.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/otlp-response.h"
#include "src/exporter/internal.h"
#include "util/cleanup.h"
#include "util/clock.h"

/* After so many single samples that a server finds too large, and nothing that it takes, it takes
 * nothing at all: what is too large for it is dropped without being cut. */
#define UNSPLIT_MAX 4

#define ENTRY_OVERHEAD_BYTES 256 /* keeps a queue of tiny payloads bounded, too */
#define MESSAGE_BYTES	     257 /* of the server's text in a log line, with its 0 */

/* Files that turn out to be damaged, in one turn. */
#define DAMAGED_PER_TURN 16

/* A destination that has failed for so long is not expected back within the next seconds. */
#define SPOOLING_AFTER_NS (3 * NSEC_PER_SEC)

/* Retries while everything is being shut down: few, and soon. */
#define HURRY_DELAY_NS (250 * NSEC_PER_MSEC)

int destination_init(struct destination *d, struct exporter *e,
		     const struct export_destination *config, const char *version, char *error,
		     size_t n_error)
{
	*d = (struct destination){
		.exporter = e,
		.grpc = config->protocol == EXPORT_GRPC,
		.json = config->protocol == EXPORT_HTTP_JSON,
		.encoding = config->encoding,
		.dialect = config->dialect,
		.timeout_ns = config->timeout_ns ? config->timeout_ns : 10 * NSEC_PER_SEC,
		.max_queue_bytes = config->max_queue_bytes ? config->max_queue_bytes : 64u << 20,
		.max_elapsed_ns = config->max_elapsed_ns,
		.max_request_bytes =
			config->max_request_bytes ? config->max_request_bytes : PAYLOAD_MAX_BYTES,
	};
	TAILQ_INIT(&d->queue);
	TAILQ_INIT(&d->backlog);
	d->name = strdup(config->name);
	if (!d->name)
		return -ENOMEM;
	return request_init(d, config, version, error, n_error);
}

/* --- entries ------------------------------------------------------------------------------- */

/* Of one in memory. */
static void drop(struct destination *d, struct entry *x, uint64_t *counter)
{
	(*counter)++;
	d->stats.samples_dropped += x->n_samples;
	entry_remove(d, x);
}

/* What a flight that ends without an answer leaves behind. */
static void end_flight(struct destination *d)
{
	struct entry *x = d->flying;

	d->flying = NULL;
	if (x->file)
		entry_land(d, x);
}

void destination_deinit(struct destination *d)
{
	struct entry *x, *next;

	if (!d->exporter)
		return;
	if (d->flying) {
		request_cancel(d);
		end_flight(d);
	}
	for (x = TAILQ_FIRST(&d->queue); x; x = next) {
		next = TAILQ_NEXT(x, link);
		if (!backlog_put(d, x))
			drop(d, x, &d->stats.payloads_dropped_expired);
	}
	report_lost(d);
	while ((x = TAILQ_FIRST(&d->backlog)))
		entry_remove(d, x);
	request_deinit(d);
	free(d->name);
}

/* In a hurry, what is on disk is sent as long as it goes well; the rest is for the next start. */
static bool may_send_backlog(const struct destination *d)
{
	const struct exporter *e = d->exporter;

	return !e->hurry_ns ||
	       (!d->down && !d->spooling && clock_monotonic_ns() < e->hurry_spool_ns);
}

bool destination_idle(const struct destination *d)
{
	if (may_send_backlog(d))
		return d->stats.queue_payloads == 0;
	return TAILQ_EMPTY(&d->queue) && !d->flying;
}

/* --- in and out ---------------------------------------------------------------------------- */

/* Makes room for bytes more. False when what is under way alone leaves too little. */
static bool make_room(struct destination *d, uint64_t bytes)
{
	struct entry *x, *next;

	for (x = TAILQ_FIRST(&d->queue); x && d->stats.queue_bytes + bytes > d->max_queue_bytes;
	     x = next) {
		next = TAILQ_NEXT(x, link);
		if (!backlog_put(d, x) && x != d->flying) {
			drop(d, x, &d->stats.payloads_dropped_queue_full);
			report_queue_full(d);
		}
	}
	return d->stats.queue_bytes + bytes <= d->max_queue_bytes;
}

static void drop_new(struct destination *d, const struct payload *p)
{
	d->stats.payloads_dropped_queue_full++;
	d->stats.samples_dropped += p->n_samples;
	report_queue_full(d);
}

/* A payload larger than the queue may be can still go to disk. */
static bool may_queue(struct destination *d, size_t n)
{
	return n <= d->max_queue_bytes ? make_room(d, n) : d->exporter->spool != NULL;
}

static uint64_t take_seq(struct destination *d)
{
	return d->exporter->spool ? spool_take_seq(d->exporter->spool) : 0;
}

/* NULL: it was dropped. */
static struct entry *put(struct destination *d, struct payload *p, uint64_t seq, uint64_t queued_ns,
			 bool first)
{
	struct entry *x;
	size_t n;

	(void)payload_body(p, d->encoding, &n);
	n += ENTRY_OVERHEAD_BYTES;
	d->stats.payloads++;
	d->stats.samples += p->n_samples;
	x = may_queue(d, n) ? calloc(1, sizeof(*x)) : NULL;
	if (!x) {
		drop_new(d, p);
		return NULL;
	}
	p->refs++;
	p->unsettled++;
	*x = (struct entry){
		.destination = d,
		.payload = p,
		.seq = seq,
		.n_samples = p->n_samples,
		.queued_ns = queued_ns,
		.bytes = n,
	};
	if (first)
		TAILQ_INSERT_HEAD(&d->queue, x, link);
	else
		TAILQ_INSERT_TAIL(&d->queue, x, link);
	d->stats.queue_payloads++;
	d->stats.queue_bytes += n;
	if (n > d->max_queue_bytes && !backlog_put(d, x)) {
		drop(d, x, &d->stats.payloads_dropped_queue_full);
		report_queue_full(d);
		return NULL;
	}
	return x;
}

void destination_put(struct destination *d, struct payload *p)
{
	if (!backlog_has(d, p))
		(void)put(d, p, take_seq(d), clock_monotonic_ns(), false);
}

void destination_cannot_take(struct destination *d, uint64_t n_samples, int error)
{
	d->stats.payloads++;
	d->stats.samples += n_samples;
	d->stats.samples_dropped += n_samples;
	if (error == -EFBIG)
		d->stats.payloads_dropped_too_large++;
	else if (error == -ENOMEM)
		d->stats.payloads_dropped_queue_full++;
	else
		d->stats.payloads_dropped_corrupt++;
}

/* Ours until it has been put, as in exporter_submit(). whole: its file on disk; NULL: none. */
static void put_part(struct destination *d, struct payload *p, uint64_t seq, uint64_t queued_ns,
		     struct entry *whole)
{
	struct entry *x;

	p->unsettled = 1;
	x = put(d, p, seq, queued_ns, true);
	if (x && whole && (x->file || backlog_put(d, x)))
		backlog_move(d, x, whole);
	payload_settle(p, &d->exporter->settled);
	payload_release(p);
}

/* Puts both parts, which are taken over, in the place of x, which is freed. */
static void replace(struct destination *d, struct entry *x, struct payload *const parts[2],
		    uint64_t now)
{
	uint64_t seqs[2];
	uint64_t queued_ns = x->file ? now : x->queued_ns;
	bool on_disk = x->file != NULL;

	d->stats.payloads--;
	d->stats.samples -= x->n_samples;
	for (size_t i = 0; i < 2; i++) {
		seqs[i] = take_seq(d);
		parts[i]->told = on_disk;
		if (on_disk)
			continue;
		parts[i]->whole = x->payload;
		parts[i]->made_ns = x->payload->made_ns;
		x->payload->refs++;
		x->payload->unsettled++;
	}
	/* In memory its room is theirs; on disk it stays until they are there. */
	if (!on_disk)
		entry_remove(d, x);
	/* Each before all others, so the second one first. */
	for (size_t i = 2; i-- > 0;)
		put_part(d, parts[i], seqs[i], queued_ns, on_disk ? x : NULL);
	if (on_disk)
		backlog_settle(d, x, now);
}

/* Puts the halves of x in its place. False: it cannot be cut, and stays. */
static bool split(struct destination *d, struct entry *x, uint64_t now)
{
	struct payload *parts[2];

	if (split_make(d, x, now, parts) < 0)
		return false;
	replace(d, x, parts, now);
	d->stats.payloads_split++;
	return true;
}

static void drop_expired(struct destination *d, uint64_t now)
{
	uint64_t before = d->stats.payloads_dropped_expired;
	struct entry *x, *next;

	if (d->max_elapsed_ns == 0)
		return;
	for (x = TAILQ_FIRST(&d->queue); x && now - x->queued_ns >= d->max_elapsed_ns; x = next) {
		next = TAILQ_NEXT(x, link);
		if (x != d->flying && !backlog_put(d, x))
			drop(d, x, &d->stats.payloads_dropped_expired);
	}
	if (d->stats.payloads_dropped_expired > before)
		report_expired(d, d->stats.payloads_dropped_expired - before);
}

void destination_abandon(struct destination *d)
{
	if (d->flying) {
		request_cancel(d);
		d->stats.failures++;
		end_flight(d);
	}
	while (!TAILQ_EMPTY(&d->queue))
		drop(d, TAILQ_FIRST(&d->queue), &d->stats.payloads_dropped_expired);
}

/* The oldest in memory that was made since the destination was last reached; NULL: none. */
static struct entry *oldest_live(const struct destination *d)
{
	struct entry *x, *live = NULL;

	if (d->spooling)
		return NULL;
	TAILQ_FOREACH_REVERSE(x, &d->queue, entry_queue, link)
	{
		if (x->payload->made_ns < d->back_ns)
			break;
		live = x;
	}
	return live;
}

/* The next to be sent, and from when on (0: at once); NULL: none. */
static struct entry *choose(const struct destination *d, uint64_t *ret_from_ns)
{
	struct entry *here = TAILQ_FIRST(&d->queue), *there = TAILQ_FIRST(&d->backlog), *live;

	*ret_from_ns = 0;
	if (here && d->probe_newest)
		return TAILQ_LAST(&d->queue, entry_queue);
	if (!there || !may_send_backlog(d))
		return here;
	live = oldest_live(d);
	if (live)
		return live;
	*ret_from_ns = d->backlog_next_ns;
	if (d->probe_newest)
		return TAILQ_LAST(&d->backlog, entry_queue);
	return here && here->seq < there->seq ? here : there;
}

/* > 0: it is larger than may be sent. */
static int start(struct destination *d, struct entry *x)
{
	struct body body;
	int r = body_make(d, x, &body);

	if (r < 0)
		return r;
	return body.n_raw > d->max_request_bytes ? 1 : request_start(d, &body);
}

static void drop_too_large(struct destination *d, struct entry *x, uint64_t now)
{
	d->stats.payloads_dropped_too_large++;
	d->stats.samples_dropped += x->n_samples;
	backlog_settle(d, x, now);
}

/* x has not even left; what comes of it is for the next turn, which is now. */
static void on_not_started(struct destination *d, struct entry *x, int r, uint64_t now)
{
	d->next_attempt_ns = now;
	if (r == -EBADMSG) {
		d->stats.payloads_dropped_corrupt++;
		d->stats.samples_dropped += x->n_samples;
		backlog_settle(d, x, now);
		log_error("export:%s: a payload is damaged, and dropped", d->name);
	} else if (r < 0) {
		if (x->file)
			entry_land(d, x);
		d->next_attempt_ns = now + NSEC_PER_SEC;
	} else if (!split(d, x, now)) {
		drop_too_large(d, x, now);
		report_beyond(d);
	}
}

void destination_kick(struct destination *d, uint64_t now)
{
	struct entry *x = NULL;
	uint64_t from_ns;
	int r = -EBADMSG;

	backlog_put_due(d, now);
	if (!d->flying)
		drop_expired(d, now);
	if (d->flying || now < d->next_attempt_ns)
		return;
	for (int i = 0; r == -EBADMSG && i < DAMAGED_PER_TURN; i++) {
		x = choose(d, &from_ns);
		if (!x || now < from_ns)
			return;
		r = x->file ? backlog_load(d, x) : 0;
	}
	if (r < 0) {
		d->next_attempt_ns = r == -EBADMSG ? now : now + NSEC_PER_SEC;
		return;
	}
	r = start(d, x);
	if (r == 0)
		d->flying = x;
	else
		on_not_started(d, x, r, now);
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t destination_deadline(const struct destination *d)
{
	const struct entry *x = TAILQ_FIRST(&d->queue);
	uint64_t deadline = backlog_due_ns(d), from_ns;

	if (d->flying)
		return deadline;
	if (x && d->max_elapsed_ns)
		deadline = sooner(deadline, x->queued_ns + d->max_elapsed_ns);
	if (choose(d, &from_ns))
		deadline = sooner(deadline, later(d->next_attempt_ns, from_ns));
	return deadline;
}

/* --- outcomes ------------------------------------------------------------------------------ */

static void reached(struct destination *d, uint64_t now)
{
	if (d->down)
		report_back(d, now);
	if (d->down || !d->up_since_ns)
		d->up_since_ns = now;
	d->down = false;
	d->failures = 0;
	d->probe_newest = false;
	if (d->spooling)
		d->back_ns = now;
	d->spooling = false;
	d->next_attempt_ns = 0;
}

static int parse_answer(const struct destination *d, int64_t *ret_rejected,
			char message[MESSAGE_BYTES])
{
	static const char json[] = "application/json";
	const uint8_t *answer = d->response.body;
	size_t n = d->response.n_body;

	if (!d->grpc && strncasecmp(d->response.type, json, strlen(json)) == 0)
		return otlp_response_parse_json(answer, n, ret_rejected, message, MESSAGE_BYTES);
	if (d->grpc && !grpc_message(answer, n, &answer, &n))
		return -EBADMSG;
	return otlp_response_parse(answer, n, ret_rejected, message, MESSAGE_BYTES);
}

static void on_sent(struct destination *d, uint64_t now)
{
	char message[MESSAGE_BYTES] = "";
	size_t n = 0;
	struct entry *x = d->flying;
	int64_t n_rejected = 0;

	if (x->file)
		n = x->file->n_body;
	else
		(void)payload_body(x->payload, d->encoding, &n);
	d->stats.payloads_sent++;
	d->stats.samples_sent += x->n_samples;
	d->stats.bytes_sent += n;
	d->n_unsplit = 0;
	reached(d, now);
	backlog_settle(d, x, now);
	/* A page: a web server that says yes to everything. */
	if (!d->grpc && d->response.n_body > 0 && strncasecmp(d->response.type, "text/", 5) == 0)
		report_foreign(d);
	/* The status says that the payload was taken; a body that cannot be read changes nothing.
	 */
	if (parse_answer(d, &n_rejected, message) < 0)
		return;
	if (n_rejected > 0)
		d->stats.profiles_rejected += (uint64_t)n_rejected;
	report_sent(d, n_rejected, message);
}

static void on_refused(struct destination *d, const struct outcome *o, uint64_t now)
{
	d->stats.failures++;
	d->stats.payloads_dropped_refused++;
	d->stats.samples_dropped += d->flying->n_samples;
	reached(d, now);
	backlog_settle(d, d->flying, now);
	report_refused(d, o);
}

static void on_too_large(struct destination *d, const struct outcome *o, uint64_t now)
{
	struct entry *x = d->flying;

	d->stats.failures++;
	reached(d, now);
	if (d->n_unsplit < UNSPLIT_MAX && split(d, x, now)) {
		report_split(d, o);
		return;
	}
	d->n_unsplit++;
	drop_too_large(d, x, now);
	report_refused(d, o);
}

static void on_retry(struct destination *d, const struct outcome *o, uint64_t now)
{
	uint64_t delay;

	d->stats.failures++;
	d->stats.retries++;
	end_flight(d);
	d->probe_newest = !o->unseen;
	if (d->failures < UINT32_MAX)
		d->failures++;
	if (!d->down) {
		d->down = true;
		d->down_since_ns = now;
		report_unreachable(d, o);
	}
	if (now - d->down_since_ns >= SPOOLING_AFTER_NS)
		d->spooling = true;
	if (d->exporter->hurry_ns)
		delay = HURRY_DELAY_NS;
	else if (d->response.grpc.has_delay)
		delay = retry_spread(d->response.grpc.delay_ns);
	else if (!retry_parse_after(&d->exporter->curl, d->response.retry_after,
				    (int64_t)time(NULL), &delay))
		delay = retry_delay_ns(d->failures);
	d->next_attempt_ns = now + delay;
	log_debug("export:%s: attempt %u failed (curl %d %s, status %ld); next in %.1f s", d->name,
		  d->failures, (int)o->code, d->curl_error, o->status,
		  (double)delay / (double)NSEC_PER_SEC);
}

void destination_finish(struct destination *d, CURLcode code, uint64_t now)
{
	struct outcome o = request_end(d, code);

	switch (o.verdict) {
	case VERDICT_SENT:
		on_sent(d, now);
		break;
	case VERDICT_TOO_LARGE:
		on_too_large(d, &o, now);
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
