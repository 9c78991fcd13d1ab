/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request goes to the servers in their order until one has the file. A server that says no (404)
 * is not asked again; one that fails is skipped for a while, with one line in the log, however many
 * files were requested. If all say no, the cache remembers that. If some were skipped, the request
 * waits until the first of them may be asked again. After MAX_ATTEMPTS failed attempts it is given
 * up as if they had said no.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "src/fetcher/debuginfod.h"
#include "src/http/curl.h"
#include "util/address.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"
#include "util/text.h"

#define MAX_REQUESTS	   512
#define MAX_TRANSFERS	   2
#define MAX_ATTEMPTS	   4
#define MAX_REDIRECTS	   3
#define DOWN_MIN_NS	   (30 * NSEC_PER_SEC)
#define DOWN_MAX_NS	   (600 * NSEC_PER_SEC)
#define MISSING_NS	   (600 * NSEC_PER_SEC) /* as in elfutils' client */
#define CONNECT_TIMEOUT_MS 5000L

struct server {
	char *url;				       /* without a slash at its end */
	uint64_t down_until_ns, failed_ns, backoff_ns; /* backoff 0: it works */
};

struct download {
	TAILQ_ENTRY(download) link;
	struct debuginfod *client;
	struct debug_id id;
	uint32_t server;   /* the next or current server; n_servers: all have been asked */
	uint32_t attempts; /* failed attempts */
	uint64_t not_before_ns;
	bool looked_up; /* in the cache */
	bool skipped;	/* a server that may have it was skipped */
	bool reported;
	/* During the download: */
	CURL *easy; /* NULL: no download */
	int fd, write_error;
	uint64_t started_ns;
	bool too_large;
	enum address_reach reach; /* of the server, or its proxy */
	bool leads_astray;	  /* a redirect was refused */
	uint64_t n_bytes;
	char error[CURL_ERROR_SIZE];
};

struct debuginfod {
	struct curl_api curl;
	struct loop *loop;
	struct debuginfod_options options;
	struct debug_cache cache;
	struct debuginfod_stats stats;
	CURLM *multi;
	int curl_timer, retry_timer;
	bool disk_failed; /* and was logged */
	struct server *servers;
	uint32_t n_servers, n_requests, n_transfers;
	char agent[64];
	TAILQ_HEAD(, download) requests;
};

static void kick(struct debuginfod *d);

/* ---- libcurl in the loop ---- */

static void turn(struct debuginfod *d, curl_socket_t fd, int what);

static void on_ready(void *ctx, int fd, uint32_t events)
{
	turn(ctx, fd,
	     (events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
		     (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
		     (events & EPOLLERR ? CURL_CSELECT_ERR : 0));
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *socket_user)
{
	struct debuginfod *d = user;
	uint32_t events =
		(what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
	int r = 0;

	loop_remove_fd(d->loop, fd);
	if (what != CURL_POLL_REMOVE)
		r = loop_add_fd(d->loop, fd, events, on_ready, d);
	if (r < 0)
		log_error("debuginfod: a socket cannot be watched: %s; its download may stall",
			  strerror(-r));
	return 0;
}

static int on_curl_timer(CURLM *multi, long timeout_ms, void *user)
{
	struct debuginfod *d = user;

	loop_set_timer(d->loop, d->curl_timer,
		       timeout_ms < 0 ? UINT64_MAX : (uint64_t)timeout_ms * NSEC_PER_MSEC);
	return 0;
}

static void on_curl_timeout(void *ctx)
{
	turn(ctx, CURL_SOCKET_TIMEOUT, 0);
}

static void on_retry_timer(void *ctx)
{
	kick(ctx);
}

/* ---- Outcomes ---- */

static void tell(struct download *r, bool found)
{
	struct debuginfod *d = r->client;

	/* A file that was not available may still come. */
	if (!r->reported || found)
		d->options.done(d->options.ctx, &r->id, found);
	r->reported = true;
}

static void drop(struct debuginfod *d, struct download *r)
{
	TAILQ_REMOVE(&d->requests, r, link);
	d->n_requests--;
	free(r);
}

static void end_transfer(struct download *r)
{
	struct debuginfod *d = r->client;

	(void)d->curl.multi_remove_handle(d->multi, r->easy);
	d->curl.easy_cleanup(r->easy);
	r->easy = NULL;
	r->fd = close_fd(r->fd);
	d->n_transfers--;
}

static void server_failed(struct debuginfod *d, struct server *s, const char *why)
{
	char delay[32];
	bool known = s->backoff_ns;

	d->stats.failures++;
	s->backoff_ns = known ? s->backoff_ns * 2 : DOWN_MIN_NS;
	if (s->backoff_ns > DOWN_MAX_NS)
		s->backoff_ns = DOWN_MAX_NS;
	s->failed_ns = clock_monotonic_ns();
	s->down_until_ns = s->failed_ns + s->backoff_ns;
	log_write(known ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING,
		  "debuginfod: %s: %s; next request in %s", s->url, why,
		  text_format_duration(delay, sizeof(delay), s->backoff_ns));
}

static void server_answered(struct server *s, const struct download *r)
{
	if (!s->backoff_ns || r->started_ns < s->failed_ns)
		return;
	log_info("debuginfod: %s answers again", s->url);
	s->backoff_ns = s->down_until_ns = 0;
}

static void disk_failed(struct debuginfod *d, int error)
{
	if (!d->disk_failed)
		log_warning("debuginfod: %s cannot be written: %s; debug files are not kept",
			    d->options.cache_path, strerror(-error));
	d->disk_failed = true;
}

static const char *why_not_followed(const struct download *r, CURLcode code)
{
	struct debuginfod *d = r->client;
	long error = 0;

	if (r->leads_astray)
		return "it leads to this host or to a link-local address";
	(void)d->curl.easy_getinfo(r->easy, CURLINFO_OS_ERRNO, &error);
	if (code == CURLE_COULDNT_CONNECT && error == EACCES)
		return "it leads to a port other than 80, 443 and those of the configured servers";
	return r->error[0] ? r->error : d->curl.easy_strerror(code);
}

static void attempt_failed(struct download *r, CURLcode code, long status)
{
	struct debuginfod *d = r->client;
	char text[CURL_ERROR_SIZE + 64];

	r->skipped = true;
	r->attempts++;
	if (r->write_error) {
		disk_failed(d, r->write_error);
		return;
	}
	if (status / 100 == 3)
		(void)snprintf(text, sizeof(text), "its redirect (%ld) is not followed: %s", status,
			       why_not_followed(r, code));
	else
		(void)snprintf(text, sizeof(text), "it answered with status %ld", status);
	server_failed(d, &d->servers[r->server],
		      status && status != 200 ? text
		      : r->error[0]	      ? r->error
					      : d->curl.easy_strerror(code));
}

/* Keeps a downloaded file. False: it is not the requested file. */
static bool keep(struct debuginfod *d, struct download *r)
{
	int error;

	d->stats.bytes += r->n_bytes;
	if (r->n_bytes == 0 || !d->options.belongs(r->fd, &r->id)) {
		debug_cache_abandon(&d->cache, &r->id);
		log_debug("debuginfod: %s: this is not the requested file",
			  d->servers[r->server].url);
		return false;
	}
	error = debug_cache_commit(&d->cache, &r->id, r->fd);
	if (error < 0) {
		r->write_error = error;
		attempt_failed(r, CURLE_OK, 200);
		return false;
	}
	d->disk_failed = false;
	d->stats.fetched++;
	return true;
}

static void finish(struct download *r, CURLcode code)
{
	struct debuginfod *d = r->client;
	struct server *s = &d->servers[r->server];
	bool kept = false;
	long status = 0;

	(void)d->curl.easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
	if (code == CURLE_OK && status == 200) {
		server_answered(s, r);
		kept = keep(d, r);
	} else {
		debug_cache_abandon(&d->cache, &r->id);
		if (status == 404 || status == 410 || code == CURLE_FILESIZE_EXCEEDED ||
		    r->too_large)
			server_answered(s, r);
		else
			attempt_failed(r, code, status);
	}
	end_transfer(r);
	/* If it cannot be written, the other servers need not be asked. */
	r->server = r->write_error ? d->n_servers : r->server + 1;
	if (kept) {
		tell(r, true);
		drop(d, r);
	}
}

static void turn(struct debuginfod *d, curl_socket_t fd, int what)
{
	int running, left;
	CURLMsg *m;

	(void)d->curl.multi_socket_action(d->multi, fd, what, &running);
	while ((m = d->curl.multi_info_read(d->multi, &left))) {
		char *private = NULL;
		CURLcode code = m->data.result;

		if (m->msg != CURLMSG_DONE)
			continue;
		(void)d->curl.easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &private);
		finish((struct download *)(void *)private, code);
	}
	kick(d);
}

/* ---- Downloads ---- */

static size_t on_body(char *data, size_t size, size_t n, void *user)
{
	struct download *r = user;
	size_t done = 0;

	n *= size;
	if (n > r->client->options.max_file_bytes - r->n_bytes) {
		r->too_large = true;
		return 0;
	}
	while (done < n) {
		ssize_t w = write(r->fd, data + done, n - done);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0) {
			r->write_error = w < 0 ? -errno : -EIO;
			return 0;
		}
		done += (size_t)w;
	}
	r->n_bytes += n;
	return n;
}

#define SET(option, value)                                                                         \
	do {                                                                                       \
		if (e == CURLE_OK)                                                                 \
			e = set(r->easy, (option), (value));                                       \
	} while (0)

/* A redirect must not lead nearer to this host than the requested server or its proxy is. */
static curl_socket_t on_open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct download *r = ctx;
	enum address_reach reach = address_reach(&address->addr);
	long n_redirects = 0;

	(void)r->client->curl.easy_getinfo(r->easy, CURLINFO_REDIRECT_COUNT, &n_redirects);
	if (n_redirects == 0) {
		r->reach = reach;
	} else if (reach != ADDRESS_NETWORK && reach != r->reach) {
		r->leads_astray = true;
		return CURL_SOCKET_BAD;
	}
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static CURLcode set_options(struct download *r, const char *url)
{
	struct debuginfod *d = r->client;
	__typeof__(d->curl.easy_setopt) set = d->curl.easy_setopt;
	CURLcode e = curl_api_set_protocols(&d->curl, r->easy, url);

	if (e == CURLE_OK)
		e = curl_api_set_authorities(&d->curl, r->easy);
	SET(CURLOPT_URL, url);
	SET(CURLOPT_USERAGENT, d->agent);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_FAILONERROR, 1L);
	/* as other clients do; one server may redirect to others */
	SET(CURLOPT_FOLLOWLOCATION, 1L);
	SET(CURLOPT_MAXREDIRS, (long)MAX_REDIRECTS);
	SET(CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
	SET(CURLOPT_OPENSOCKETDATA, r);
	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
	SET(CURLOPT_TIMEOUT_MS, (long)(d->options.timeout_ns / NSEC_PER_MSEC));
	SET(CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)d->options.max_file_bytes);
	SET(CURLOPT_ERRORBUFFER, r->error);
	SET(CURLOPT_WRITEFUNCTION, on_body);
	SET(CURLOPT_WRITEDATA, r);
	SET(CURLOPT_PRIVATE, r);
	return e;
}

static void start(struct debuginfod *d, struct download *r)
{
	char hex[DEBUG_ID_HEX_MAX], url[2048];

	(void)snprintf(url, sizeof(url), "%s/buildid/%s/debuginfo", d->servers[r->server].url,
		       debug_id_hex(&r->id, hex));
	r->error[0] = '\0';
	r->started_ns = clock_monotonic_ns();
	r->n_bytes = 0;
	r->write_error = 0;
	r->too_large = r->leads_astray = false;
	r->reach = ADDRESS_NETWORK;
	r->fd = debug_cache_begin(&d->cache, &r->id);
	r->easy = r->fd < 0 ? NULL : d->curl.easy_init();
	if (r->easy && set_options(r, url) == CURLE_OK &&
	    d->curl.multi_add_handle(d->multi, r->easy) == CURLM_OK) {
		d->n_transfers++;
		return;
	}
	if (r->easy)
		d->curl.easy_cleanup(r->easy);
	r->easy = NULL;
	r->write_error = r->fd < 0 ? r->fd : -ENOMEM;
	if (r->fd >= 0)
		debug_cache_abandon(&d->cache, &r->id);
	r->fd = close_fd(r->fd);
	attempt_failed(r, CURLE_OK, 0);
	r->server = d->n_servers;
}

/* ---- Requests ---- */

/* Skips servers that are not to be asked now. False: no servers left. */
static bool find_server(const struct debuginfod *d, struct download *r, uint64_t now)
{
	while (r->server < d->n_servers && d->servers[r->server].down_until_ns > now) {
		r->skipped = true;
		r->server++;
	}
	return r->server < d->n_servers;
}

/* All servers have had their turn. */
static void end_round(struct debuginfod *d, struct download *r, uint64_t now)
{
	uint64_t first = UINT64_MAX;

	tell(r, false);
	if (!r->skipped || r->attempts >= MAX_ATTEMPTS) {
		d->stats.missing++;
		(void)debug_cache_put_missing(&d->cache, &r->id);
		drop(d, r);
		return;
	}
	for (uint32_t i = 0; i < d->n_servers; i++) {
		if (d->servers[i].down_until_ns > now && d->servers[i].down_until_ns < first)
			first = d->servers[i].down_until_ns;
	}
	r->not_before_ns = first == UINT64_MAX ? now + DOWN_MIN_NS : first;
	r->server = 0;
	r->skipped = false;
}

/* True: the cache has the answer. */
static bool look_up(struct debuginfod *d, struct download *r)
{
	enum debug_cache_answer answer = debug_cache_find(&d->cache, &r->id);

	r->looked_up = true;
	if (answer == DEBUG_CACHE_UNKNOWN)
		return false;
	tell(r, answer == DEBUG_CACHE_FOUND);
	drop(d, r);
	return true;
}

/* Starts downloads that are due, within the limit. */
static void kick(struct debuginfod *d)
{
	uint64_t now = clock_monotonic_ns(), first = UINT64_MAX;
	struct download *next;

	for (struct download *r = TAILQ_FIRST(&d->requests); r; r = next) {
		next = TAILQ_NEXT(r, link);
		if (r->easy)
			continue;
		if (r->not_before_ns <= now) {
			if (!r->looked_up && look_up(d, r))
				continue;
			if (!find_server(d, r, now)) {
				end_round(d, r, now);
				first = first < now + NSEC_PER_SEC ? first : now + NSEC_PER_SEC;
			} else if (d->n_transfers < MAX_TRANSFERS) {
				start(d, r);
				/* If that failed, it is handled in the next turn of the loop. */
				first = r->easy ? first : now;
			}
		} else if (r->not_before_ns < first) {
			first = r->not_before_ns;
		}
	}
	loop_set_timer(d->loop, d->retry_timer,
		       first == UINT64_MAX ? UINT64_MAX
		       : first > now	   ? first - now
					   : 0);
}

void debuginfod_request(struct debuginfod *d, const struct debug_id *id)
{
	struct download *r;

	TAILQ_FOREACH(r, &d->requests, link)
	{
		if (debug_id_equal(&r->id, id)) {
			/* A repeated request means that the answer was lost. */
			r->reported = false;
			return;
		}
	}
	r = d->n_requests < MAX_REQUESTS ? calloc(1, sizeof(*r)) : NULL;
	if (!r) {
		d->stats.refused++;
		return;
	}
	r->client = d;
	r->id = *id;
	r->fd = -EBADF;
	TAILQ_INSERT_TAIL(&d->requests, r, link);
	d->n_requests++;
	loop_set_timer(d->loop, d->retry_timer, 0);
}

const struct debuginfod_stats *debuginfod_stats(struct debuginfod *d)
{
	d->stats.evicted = d->cache.n_evicted;
	return &d->stats;
}

/* ---- Life ---- */

static int set_servers(struct debuginfod *d, const struct debuginfod_options *o)
{
	d->servers = calloc(o->n_urls, sizeof(*d->servers));
	if (!d->servers)
		return -ENOMEM;
	for (size_t i = 0; i < o->n_urls; i++) {
		char *url = strdup(o->urls[i]);

		if (!url)
			return -ENOMEM;
		for (size_t n = strlen(url); n > 0 && url[n - 1] == '/';)
			url[--n] = '\0';
		d->servers[d->n_servers++].url = url;
	}
	return 0;
}

static int set_up(struct debuginfod *d)
{
	d->curl_timer = loop_add_timer(d->loop, UINT64_MAX, 0, on_curl_timeout, d);
	d->retry_timer = loop_add_timer(d->loop, UINT64_MAX, 0, on_retry_timer, d);
	if (d->curl_timer < 0 || d->retry_timer < 0)
		return -ENOSPC;
	d->multi = d->curl.multi_init();
	if (!d->multi ||
	    d->curl.multi_setopt(d->multi, CURLMOPT_SOCKETFUNCTION, on_socket) != CURLM_OK ||
	    d->curl.multi_setopt(d->multi, CURLMOPT_SOCKETDATA, d) != CURLM_OK ||
	    d->curl.multi_setopt(d->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer) != CURLM_OK ||
	    d->curl.multi_setopt(d->multi, CURLMOPT_TIMERDATA, d) != CURLM_OK)
		return -ENOMEM;
	return 0;
}

int debuginfod_new(struct debuginfod **ret, struct loop *loop,
		   const struct debuginfod_options *options, const char *version, char *error,
		   size_t n_error)
{
	_cleanup_(debuginfod_freep) struct debuginfod *d = calloc(1, sizeof(*d));
	int r;

	(void)snprintf(error, n_error, "out of memory");
	if (!d)
		return -ENOMEM;
	TAILQ_INIT(&d->requests);
	d->loop = loop;
	d->options = *options;
	d->options.urls = NULL;
	if (d->options.max_file_bytes > d->options.max_cache_bytes)
		d->options.max_file_bytes = d->options.max_cache_bytes;
	d->cache = (struct debug_cache){.dir_fd = options->cache_fd,
					.max_bytes = options->max_cache_bytes,
					.missing_ns = MISSING_NS};
	(void)snprintf(d->agent, sizeof(d->agent), "perfwalk/%s", version);
	(void)signal(SIGPIPE, SIG_IGN); /* TLS libraries write to sockets that may be closed */
	r = curl_api_load(&d->curl, error, n_error);
	if (r == 0)
		r = set_servers(d, options);
	if (r == 0)
		r = set_up(d);
	if (r < 0)
		return r;
	debug_cache_trim(&d->cache);
	*ret = TAKE_PTR(d);
	return 0;
}

struct debuginfod *debuginfod_free(struct debuginfod *d)
{
	struct download *r;

	if (!d)
		return NULL;
	while ((r = TAILQ_FIRST(&d->requests))) {
		if (r->easy) {
			debug_cache_abandon(&d->cache, &r->id);
			end_transfer(r);
		}
		drop(d, r);
	}
	if (d->multi)
		(void)d->curl.multi_cleanup(d->multi);
	for (uint32_t i = 0; i < d->n_servers; i++)
		free(d->servers[i].url);
	free(d->servers);
	free(d);
	return NULL;
}
