/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver of all requests: libcurl's multi interface says through two callbacks which sockets to
 * watch and when to call it again. The sockets go into an epoll descriptor of ours, and the
 * earliest deadline of curl and the destinations into a timer descriptor beside them. So the
 * caller's loop watches one descriptor and no time.
 *
 * done() is called from exporter_dispatch() only: never while a caller is inside
 * exporter_submit(), nor while a destination is walking its queue.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "src/exporter/internal.h"
#include "src/process/status-page.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define DESTINATIONS_MAX 64
#define EVENTS_PER_TURN	 32

/* How long exporter_hurry() lets what is queued try to leave; the daemon has 4.5 s for all. */
#define HURRY_NS       (3500 * NSEC_PER_MSEC)
#define HURRY_SPOOL_NS (1500 * NSEC_PER_MSEC)

/* --- curl's callbacks ---------------------------------------------------------------------- */

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *socket_user)
{
	struct exporter *e = user;
	struct epoll_event ev = {
		.events = (what & CURL_POLL_IN ? EPOLLIN : 0u) |
			  (what & CURL_POLL_OUT ? EPOLLOUT : 0u),
		.data.fd = fd,
	};

	if (what == CURL_POLL_REMOVE) {
		/* It may be closed by now, and is out of the set then. */
		(void)epoll_ctl(e->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
		return 0;
	}
	if (epoll_ctl(e->epoll_fd, EPOLL_CTL_MOD, fd, &ev) < 0 &&
	    (errno != ENOENT || epoll_ctl(e->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0))
		log_error("export: a socket cannot be watched: %s", strerror(errno));
	return 0;
}

static int on_timer(CURLM *multi, long timeout_ms, void *user)
{
	struct exporter *e = user;

	e->curl_deadline_ns = timeout_ms < 0
				      ? UINT64_MAX
				      : clock_monotonic_ns() + (uint64_t)timeout_ms * NSEC_PER_MSEC;
	return 0;
}

/* --- the timer ----------------------------------------------------------------------------- */

static void arm_at(struct exporter *e, uint64_t deadline)
{
	struct itimerspec when = {0};

	/* UINT64_MAX disarms; 0 in a timespec would, too, and is meant as "at once". */
	if (deadline != UINT64_MAX) {
		deadline = deadline ? deadline : 1;
		when.it_value.tv_sec = (time_t)(deadline / NSEC_PER_SEC);
		when.it_value.tv_nsec = (long)(deadline % NSEC_PER_SEC);
	}
	(void)timerfd_settime(e->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void arm(struct exporter *e)
{
	uint64_t deadline = e->settled ? 0 : e->curl_deadline_ns;

	if (e->hurry_ns && !exporter_idle(e)) {
		uint64_t next =
			clock_monotonic_ns() < e->hurry_spool_ns ? e->hurry_spool_ns : e->hurry_ns;

		if (next < deadline)
			deadline = next;
	}
	if (e->spool && spool_deadline(e->spool) < deadline)
		deadline = spool_deadline(e->spool);
	for (size_t i = 0; i < e->n_destinations; i++) {
		uint64_t d = destination_deadline(&e->destinations[i]);

		if (d < deadline)
			deadline = d;
	}
	arm_at(e, deadline);
}

/* --- turning ------------------------------------------------------------------------------- */

static void count_latency(struct destination *d)
{
	curl_off_t us = 0;
	int i = 0;

	if (d->exporter->curl.easy_getinfo(d->easy, CURLINFO_TOTAL_TIME_T, &us) != CURLE_OK)
		return;
	while (i < STATUS_LATENCY_BUCKETS - 1 &&
	       (uint64_t)us * NSEC_PER_USEC > status_latency_bounds_ns[i])
		i++;
	d->stats.latency[i]++;
	d->stats.latency_sum_ns += (uint64_t)us * NSEC_PER_USEC;
}

static void finish_requests(struct exporter *e)
{
	struct destination *d;
	CURLMsg *m;
	int left;

	while ((m = e->curl.multi_info_read(e->multi, &left))) {
		char *private = NULL;

		if (m->msg != CURLMSG_DONE)
			continue;
		(void)e->curl.easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &private);
		d = (struct destination *)(void *)private;
		count_latency(d);
		destination_finish(d, m->data.result, clock_monotonic_ns());
	}
}

static void handle_events(struct exporter *e)
{
	struct epoll_event events[EVENTS_PER_TURN];
	int n, running;

	n = epoll_wait(e->epoll_fd, events, EVENTS_PER_TURN, 0);
	for (int i = 0; i < n; i++) {
		int what = (events[i].events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
			   (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
			   (events[i].events & EPOLLERR ? CURL_CSELECT_ERR : 0);

		if (events[i].data.fd == e->timer_fd) {
			uint64_t ticks;

			(void)!read(e->timer_fd, &ticks, sizeof(ticks));
			continue;
		}
		(void)e->curl.multi_socket_action(e->multi, events[i].data.fd, what, &running);
	}
	if (clock_monotonic_ns() >= e->curl_deadline_ns) {
		e->curl_deadline_ns = UINT64_MAX;
		(void)e->curl.multi_socket_action(e->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	}
}

static void call_done(struct exporter *e)
{
	/* One list's worth a turn: done() may submit, and what that settles comes with the next. */
	struct payload *p = TAKE_PTR(e->settled), *next;

	for (; p; p = next) {
		next = p->next;
		if (e->done)
			e->done(e->ctx, p->id, p->n_samples);
		payload_release(p);
	}
}

int exporter_dispatch(struct exporter *e)
{
	uint64_t now;

	handle_events(e);
	finish_requests(e);
	now = clock_monotonic_ns();
	if (e->spool && now >= spool_deadline(e->spool))
		spool_trim(e->spool, now);
	for (size_t i = 0; i < e->n_destinations; i++) {
		if (e->hurry_ns && now >= e->hurry_ns)
			destination_abandon(&e->destinations[i]);
		destination_kick(&e->destinations[i], now);
	}
	call_done(e);
	arm(e);
	return -1;
}

int exporter_submit(struct exporter *e, uint64_t id, int fd, uint64_t n_samples, uint64_t made_ns)
{
	_cleanup_close_ int owned = fd;
	unsigned int encodings = 0;
	struct payload *p;
	int r;

	for (size_t i = 0; i < e->n_destinations; i++)
		encodings |= 1u << e->destinations[i].encoding;
	r = payload_new(&p, owned, encodings);
	for (size_t i = 0; r < 0 && i < e->n_destinations; i++)
		destination_cannot_take(&e->destinations[i], n_samples, r);
	if (r < 0)
		return r;
	p->id = id;
	p->n_samples = n_samples;
	p->made_ns = made_ns;
	p->time_unix_ns = clock_realtime_ns();
	p->unsettled = 1; /* until all have had it */
	for (size_t i = 0; i < e->n_destinations; i++)
		destination_put(&e->destinations[i], p);
	payload_settle(p, &e->settled);
	payload_release(p);
	arm(e);
	return 0;
}

void exporter_hurry(struct exporter *e)
{
	if (e->hurry_ns)
		return;
	e->hurry_ns = clock_monotonic_ns() + HURRY_NS;
	e->hurry_spool_ns = clock_monotonic_ns() + HURRY_SPOOL_NS;
	if (e->spool)
		spool_retry_now(e->spool);
	for (size_t i = 0; i < e->n_destinations; i++)
		e->destinations[i].next_attempt_ns = 0;
	arm(e);
}

bool exporter_idle(const struct exporter *e)
{
	for (size_t i = 0; i < e->n_destinations; i++) {
		if (!destination_idle(&e->destinations[i]))
			return false;
	}
	return e->settled == NULL;
}

int exporter_fd(const struct exporter *e)
{
	return e->epoll_fd;
}

const struct export_stats *exporter_stats(const struct exporter *e, size_t destination)
{
	return &e->destinations[destination].stats;
}

bool exporter_is_down(const struct exporter *e, size_t destination, uint64_t *ret_since_ns)
{
	const struct destination *d = &e->destinations[destination];

	*ret_since_ns = d->down ? d->down_since_ns : d->up_since_ns;
	return d->down;
}

/* --- life ---------------------------------------------------------------------------------- */

static int open_descriptors(struct exporter *e)
{
	struct epoll_event ev = {.events = EPOLLIN};

	e->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	e->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (e->epoll_fd < 0 || e->timer_fd < 0)
		return -errno;
	ev.data.fd = e->timer_fd;
	return epoll_ctl(e->epoll_fd, EPOLL_CTL_ADD, e->timer_fd, &ev) < 0 ? -errno : 0;
}

static int open_multi(struct exporter *e)
{
	e->multi = e->curl.multi_init();
	if (!e->multi ||
	    e->curl.multi_setopt(e->multi, CURLMOPT_SOCKETFUNCTION, on_socket) != CURLM_OK ||
	    e->curl.multi_setopt(e->multi, CURLMOPT_SOCKETDATA, e) != CURLM_OK ||
	    e->curl.multi_setopt(e->multi, CURLMOPT_TIMERFUNCTION, on_timer) != CURLM_OK ||
	    e->curl.multi_setopt(e->multi, CURLMOPT_TIMERDATA, e) != CURLM_OK ||
	    /* Or a destination's request would go down the connection of another one's gRPC. */
	    e->curl.multi_setopt(e->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING) != CURLM_OK)
		return -ENOMEM;
	return 0;
}

static int exporter_init(struct exporter *e, const struct export_destination *destinations,
			 size_t n, const char *version, char *error, size_t n_error)
{
	int r;

	if (n == 0 || n > DESTINATIONS_MAX) {
		(void)snprintf(error, n_error, "expected 1 to %d destinations", DESTINATIONS_MAX);
		return -EINVAL;
	}
	r = curl_api_load(&e->curl, error, n_error);
	if (r < 0)
		return r;
	e->destinations = calloc(n, sizeof(*e->destinations));
	if (!e->destinations)
		return -ENOMEM;
	r = open_descriptors(e);
	if (r == 0)
		r = open_multi(e);
	for (size_t i = 0; i < n && r == 0; i++) {
		e->n_destinations++;
		r = destination_init(&e->destinations[i], e, &destinations[i], version, error,
				     n_error);
	}
	return r;
}

int exporter_new(struct exporter **ret, const struct export_destination *destinations, size_t n,
		 const char *version, export_done_fn done, void *ctx, char *error, size_t n_error)
{
	_cleanup_(exporter_freep) struct exporter *e = calloc(1, sizeof(*e));
	int r;

	(void)snprintf(error, n_error, "out of memory");
	if (!e)
		return -ENOMEM;
	*e = (struct exporter){
		.epoll_fd = -EBADF,
		.timer_fd = -EBADF,
		.curl_deadline_ns = UINT64_MAX,
		.done = done,
		.ctx = ctx,
	};
	/* TLS libraries write to sockets that the server may have closed. */
	(void)signal(SIGPIPE, SIG_IGN);
	r = exporter_init(e, destinations, n, version, error, n_error);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(e);
	return 0;
}

static struct destination *destination_of(struct exporter *e, const char *name)
{
	for (size_t i = 0; i < e->n_destinations; i++) {
		if (strcmp(e->destinations[i].name, name) == 0)
			return &e->destinations[i];
	}
	return NULL;
}

int exporter_set_spool(struct exporter *e, const struct export_spool *spool)
{
	const struct spool_limits limits = {
		.max_bytes = spool->max_bytes,
		.max_age_ns = spool->max_age_ns,
	};
	int r = spool_open(&e->spool, spool->dir_fd, spool->path, &limits, backlog_lost, e);

	if (r < 0)
		return r;
	for (struct spool_file *f = spool_next(e->spool, NULL); f; f = spool_next(e->spool, f)) {
		/* Of a destination that is no more: it may come back before they are too old. */
		struct destination *d = destination_of(e, spool_destination(e->spool, f));

		r = d ? backlog_adopt(d, f) : 0;
		if (r < 0)
			return r;
	}
	spool_trim(e->spool, clock_monotonic_ns());
	arm(e);
	return 0;
}

struct exporter *exporter_free(struct exporter *e)
{
	struct payload *next;

	if (!e)
		return NULL;
	for (size_t i = 0; i < e->n_destinations; i++)
		destination_deinit(&e->destinations[i]);
	free(e->destinations);
	if (e->multi)
		(void)e->curl.multi_cleanup(e->multi);
	for (struct payload *p = e->settled; p; p = next) {
		next = p->next;
		payload_release(p);
	}
	spool_free(e->spool);
	e->timer_fd = close_fd(e->timer_fd);
	e->epoll_fd = close_fd(e->epoll_fd);
	free(e);
	return NULL;
}
