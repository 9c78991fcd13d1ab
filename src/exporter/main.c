/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exporter: the process with the network and the credentials. It sees only finished payloads,
 * and tells the symbolizer when one is settled.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/exporter/export.h"
#include "src/exporter/setup.h"
#include "src/exporter/store.h"
#include "src/process/receipts.h"
#include "src/process/role.h"
#include "src/process/status-page.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/heap.h"
#include "util/log.h"
#include "util/loop.h"
#include "util/text.h"

#define MAX_HEADERS	   64
#define SPARE_BYTES	   (128 << 10)
#define PAYLOADS_A_TURN	   16	/* each may be compressed and written to disk: requests wait */
#define PAYLOADS_IN_SOCKET 4096 /* more than fit into its buffer */

struct exporter_role {
	struct role role;
	struct setup_exporter setup;
	struct exporter *exporter;
	struct export_destination destinations[SETUP_MAX_DESTINATIONS];
	const char **headers[SETUP_MAX_DESTINATIONS];
	uint32_t n;
	const char *spool_path, *store_path; /* NULL: none */
	int spool_fd, store_fd;
	struct store *store;	   /* NULL: none */
	struct receipts *receipts; /* to the symbolizer */
	int symbolizer_sock, timer;
	uint64_t symbolizer;	       /* its start */
	uint64_t next_order;	       /* payloads of a lower one have come */
	uint64_t n_pending;	       /* samples of payloads that are not settled */
	uint64_t last_id, last_orphan; /* that came; of the symbolizers that are gone */
	bool stopping;
};

/* The TLS library opens it by its name, for each connection. */
static int set_file(const struct exporter_role *e, const char **field, const char *path)
{
	role_use_file(&e->role, path);
	return text_set(field, path);
}

static int add_header(struct exporter_role *e, struct export_destination *d, const char *text)
{
	const char ***headers = &e->headers[d - e->destinations];

	if (!*headers)
		*headers = calloc(MAX_HEADERS, sizeof(**headers));
	if (!*headers)
		return -ENOMEM;
	if (d->n_headers == MAX_HEADERS)
		return -E2BIG;
	d->headers = *headers;
	return text_set(&(*headers)[d->n_headers++], text);
}

static int on_text(void *ctx, const struct message *m, int fd)
{
	struct exporter_role *e = ctx;
	const char *text = m->text.text;
	struct export_destination *d;

	if (m->text.kind == TEXT_STORE && e->store_fd < 0) {
		role_use_directory(&e->role, fd);
		e->store_fd = fd;
		return text_set(&e->store_path, text);
	}
	if (m->text.kind == TEXT_SPOOL && e->spool_fd < 0) {
		role_use_directory(&e->role, fd);
		e->spool_fd = fd;
		return text_set(&e->spool_path, text);
	}
	(void)close_fd(fd);
	if (m->text.kind == TEXT_EXPORT_NAME) {
		if (e->n == e->setup.n || e->n == SETUP_MAX_DESTINATIONS)
			return -E2BIG;
		d = &e->destinations[e->n];
		d->timeout_ns = e->setup.destinations[e->n].timeout_ns;
		d->max_queue_bytes = e->setup.destinations[e->n].max_queue_bytes;
		d->max_elapsed_ns = e->setup.destinations[e->n].max_elapsed_ns;
		d->protocol = e->setup.destinations[e->n].protocol;
		d->encoding = e->setup.destinations[e->n].encoding;
		d->dialect = e->setup.destinations[e->n].dialect;
		d->max_request_bytes = e->setup.destinations[e->n].max_request_bytes;
		d->insecure_skip_verify = e->setup.destinations[e->n].insecure_skip_verify;
		e->n++;
		return text_set(&d->name, text);
	}
	if (e->n == 0)
		return -EBADMSG;
	d = &e->destinations[e->n - 1];
	switch (m->text.kind) {
	case TEXT_EXPORT_ENDPOINT:
		role_use_server(&e->role, text);
		return text_set(&d->endpoint, text);
	case TEXT_EXPORT_PROFILES_ENDPOINT:
		role_use_server(&e->role, text);
		return text_set(&d->profiles_endpoint, text);
	case TEXT_EXPORT_HEADER:
		return add_header(e, d, text);
	case TEXT_EXPORT_CERTIFICATE:
		return set_file(e, &d->certificate, text);
	case TEXT_EXPORT_CLIENT_CERTIFICATE:
		return set_file(e, &d->client_certificate, text);
	case TEXT_EXPORT_CLIENT_KEY:
		return set_file(e, &d->client_key, text);
	case TEXT_EXPORT_SERVER_NAME:
		return text_set(&d->server_name_override, text);
	case TEXT_EXPORT_PROXY:
		role_use_proxy(&e->role, text);
		return text_set(&d->proxy, text);
	default:
		return -EBADMSG;
	}
}

static void say_done(const struct exporter_role *e, uint64_t id)
{
	receipts_say(e->receipts, MESSAGE_PAYLOAD_DONE, id);
}

static void on_done(void *ctx, uint64_t id, uint64_t n_samples)
{
	struct exporter_role *e = ctx;

	e->n_pending -= n_samples;
	if (id <= e->last_orphan)
		e->role.status->custody.orphans -= n_samples;
	else
		say_done(e, id);
}

static void publish_destination(const struct exporter_role *e, uint32_t i)
{
	const struct export_stats *s = exporter_stats(e->exporter, i);
	struct status_export *x = &e->role.status->counts.exports[i];
	uint64_t since_ns;
	bool down;

	*x = (struct status_export){
		.sent = s->payloads_sent,
		.samples_sent = s->samples_sent,
		.bytes_sent = s->bytes_sent,
		.dropped = {[STATUS_DROP_QUEUE_FULL] = s->payloads_dropped_queue_full,
			    [STATUS_DROP_REFUSED] = s->payloads_dropped_refused,
			    [STATUS_DROP_EXPIRED] = s->payloads_dropped_expired,
			    [STATUS_DROP_SPOOL_FULL] = s->payloads_dropped_spool_full,
			    [STATUS_DROP_CORRUPT] = s->payloads_dropped_corrupt,
			    [STATUS_DROP_TOO_LARGE] = s->payloads_dropped_too_large},
		.samples_dropped = s->samples_dropped,
		.profiles_rejected = s->profiles_rejected,
		.failures = s->failures,
		.retries = s->retries,
		.spooled = s->payloads_spooled,
		.split = s->payloads_split,
		.latency_sum_ns = s->latency_sum_ns,
	};
	memcpy(x->latency, s->latency, sizeof(x->latency));
	down = exporter_is_down(e->exporter, i, &since_ns);
	e->role.status->destinations[i] = (struct status_destination){
		.queue_payloads = s->queue_payloads,
		.queue_bytes = s->queue_bytes,
		.spool_payloads = s->spool_payloads,
		.spool_bytes = s->spool_bytes,
		.down = down,
		.since_ns = since_ns,
	};
}

static void publish(const struct exporter_role *e)
{
	struct store_stats s = {0};

	for (uint32_t i = 0; i < e->n && i < STATUS_MAX_DESTINATIONS; i++)
		publish_destination(e, i);
	if (e->store)
		s = store_stats(e->store);
	e->role.status->counts.store_samples_lost = s.n_samples_lost;
	e->role.status->store_files = s.n_files;
	e->role.status->store_bytes = s.n_bytes;
}

static void dispatch(struct exporter_role *e)
{
	int ms = e->exporter ? exporter_dispatch(e->exporter) : -1;

	loop_set_timer(e->role.loop, e->timer, ms < 0 ? UINT64_MAX : (uint64_t)ms * NSEC_PER_MSEC);
	publish(e);
	/* On STOP: what the symbolizer had sent is in (it left before us), and it is all settled.
	 */
	if (e->stopping && e->symbolizer_sock < 0 && (!e->exporter || exporter_idle(e->exporter)))
		loop_exit(e->role.loop, 0);
}

static void on_timer(void *ctx)
{
	dispatch(ctx);
}

static void on_exporter(void *ctx, int fd, uint32_t events)
{
	dispatch(ctx);
}

static void on_payload(void *ctx, const struct message *m, int fds[2])
{
	struct exporter_role *e = ctx;
	_cleanup_close_ int kept_fd = fds[1];
	int r;

	if (m->type != MESSAGE_PAYLOAD) {
		(void)close_fd(fds[0]);
		return;
	}
	/* The symbolizer before had sent it and died before it was settled. */
	if (m->item.order < e->next_order) {
		(void)close_fd(fds[0]);
		say_done(e, m->item.id);
		return;
	}
	e->next_order = m->item.order + 1;
	if (e->store) /* it says what it loses */
		(void)store_put(e->store, fds[0], kept_fd, m->item.n_samples);
	if (!e->exporter) {
		(void)close_fd(fds[0]);
		say_done(e, m->item.id);
		return;
	}
	r = exporter_submit(e->exporter, m->item.id, fds[0], m->item.n_samples, m->item.made_ns);
	if (r < 0) {
		log_error("a payload of %llu samples is lost: %s",
			  (unsigned long long)m->item.n_samples, strerror(-r));
		say_done(e, m->item.id);
		return;
	}
	e->n_pending += m->item.n_samples;
	e->last_id = m->item.id;
}

/* All that it had sent has been read: what is not settled is in no memory but ours. */
static void finish_symbolizer(struct exporter_role *e)
{
	struct status_custody *page = &e->role.status->custody;

	loop_remove_fd(e->role.loop, e->symbolizer_sock);
	receipts_connect(e->receipts, -EBADF);
	e->symbolizer_sock = close_fd(e->symbolizer_sock);
	e->last_orphan = e->last_id;
	page->orphans = e->n_pending;
	page->symbolizer = e->symbolizer;
}

static void on_symbolizer(void *ctx, int fd, uint32_t events)
{
	struct exporter_role *e = ctx;

	if (role_read_messages(fd, PAYLOADS_A_TURN, on_payload, e) < 0)
		finish_symbolizer(e);
	dispatch(e);
}

static void on_control(void *ctx, const struct message *m, int fds[2])
{
	struct exporter_role *e = ctx;

	if (m->type == MESSAGE_PEER) {
		if (e->symbolizer_sock >= 0) {
			/* What the old one had sent is still in its socket. */
			(void)role_read_messages(e->symbolizer_sock, PAYLOADS_IN_SOCKET, on_payload,
						 e);
			finish_symbolizer(e);
		}
		e->symbolizer = m->peer.start;
		e->symbolizer_sock = TAKE_FD(fds[0]);
		receipts_connect(e->receipts, e->symbolizer_sock);
		(void)loop_add_fd(e->role.loop, e->symbolizer_sock, EPOLLIN, on_symbolizer, e);
	} else if (m->type == MESSAGE_STOP) {
		e->stopping = true;
		if (e->exporter)
			exporter_hurry(e->exporter);
	}
	(void)close_fd(fds[0]);
	(void)close_fd(fds[1]);
	dispatch(e);
}

/* Without it everything else goes on. */
static void set_spool(struct exporter_role *e)
{
	struct export_spool spool = {
		.dir_fd = TAKE_FD(e->spool_fd),
		.path = e->spool_path,
		.max_bytes = e->setup.spool_max_bytes,
		.max_age_ns = e->setup.spool_max_age_ns,
	};
	int r;

	if (spool.dir_fd < 0)
		return;
	r = exporter_set_spool(e->exporter, &spool);
	if (r < 0)
		log_warning("spool: %s cannot be used: %s", spool.path, strerror(-r));
}

static void set_store(struct exporter_role *e)
{
	const struct store_limits limits = {e->setup.store_max_bytes, e->setup.store_max_age_ns};
	int r;

	if (e->store_fd < 0)
		return;
	r = store_open(&e->store, TAKE_FD(e->store_fd), e->store_path, &limits);
	if (r < 0)
		log_warning("store: %s cannot be used: %s", e->store_path, strerror(-r));
}

static int set_up_destinations(struct exporter_role *e)
{
	char error[512] = "";
	int r;

	r = exporter_new(&e->exporter, e->destinations, e->n, PACKAGE_VERSION, on_done, e, error,
			 sizeof(error));
	if (r < 0) {
		log_error("%s", error[0] ? error : strerror(-r));
		return r;
	}
	set_spool(e);
	return loop_add_fd(e->role.loop, exporter_fd(e->exporter), EPOLLIN, on_exporter, e);
}

static int set_up(struct exporter_role *e)
{
	int r = receipts_new(&e->receipts, e->role.loop);

	if (r < 0)
		return r;
	set_store(e);
	e->timer = loop_add_timer(e->role.loop, UINT64_MAX, 0, on_timer, e);
	/* A host that keeps its profiles needs no libcurl. */
	r = e->n > 0 ? set_up_destinations(e) : 0;
	return r < 0 ? r : role_listen(&e->role, on_control, e);
}

static void free_texts(struct exporter_role *e)
{
	free((void *)e->spool_path);
	free((void *)e->store_path);
	for (uint32_t i = 0; i < e->n; i++) {
		struct export_destination *d = &e->destinations[i];

		for (size_t j = 0; j < d->n_headers; j++)
			free((void *)d->headers[j]);
		free(e->headers[i]);
		free((void *)d->name);
		free((void *)d->endpoint);
		free((void *)d->profiles_endpoint);
		free((void *)d->certificate);
		free((void *)d->client_certificate);
		free((void *)d->client_key);
		free((void *)d->server_name_override);
		free((void *)d->proxy);
	}
}

int role_exporter_main(void)
{
	struct exporter_role e = {
		.symbolizer_sock = -EBADF, .spool_fd = -EBADF, .store_fd = -EBADF};
	int r;

	r = role_start(&e.role, PEER_EXPORTER, &e.setup, sizeof(e.setup), on_text, &e);
	/* Between two payloads it needs nothing. */
	heap_set_spare(SPARE_BYTES);
	if (r == 0)
		r = set_up(&e);
	free_texts(&e);
	if (r == 0)
		r = loop_run(e.role.loop);
	exporter_free(e.exporter);
	receipts_free(e.receipts);
	store_free(e.store);
	(void)close_fd(e.spool_fd);
	(void)close_fd(e.store_fd);
	(void)close_fd(e.symbolizer_sock);
	loop_free(e.role.loop);
	return r == 0 ? 0 : 1;
}
