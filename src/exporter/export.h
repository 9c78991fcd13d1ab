/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Sends OTLP payloads to their destinations: OTLP/HTTP with protobuf or JSON bodies, and OTLP/gRPC,
 * compressed, over libcurl, with retries by the OTLP specification's table. One exporter has all
 * destinations; each has its own queue, state and counters, so a slow one delays no other. An event
 * loop drives it through one epoll descriptor; only flushes of the spool block.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/otlp-rewrite.h"
#include "src/exporter/encoding.h"
#include "src/process/status-page.h"
#include "util/cleanup.h"

struct exporter;

enum export_protocol {
	EXPORT_HTTP_PROTOBUF,
	EXPORT_HTTP_JSON,
	EXPORT_GRPC, /* over HTTP/2 */
};

/* One [export:NAME]. exporter_new() borrows all strings, and only for the call. */
struct export_destination {
	const char *name;
	const char *endpoint; /* http(s)://host[:port][/base]; v1development/profiles is appended */
	const char *profiles_endpoint; /* used as it is when set; NULL */
	const char *const *headers;    /* n "Name: value" lines */
	size_t n_headers;
	enum export_protocol protocol;
	enum encoding encoding; /* supported */
	enum otlp_dialect dialect;
	uint64_t timeout_ns;	 /* one request; default 10 s */
	const char *certificate; /* CA file, NULL: the system's */
	const char *client_certificate, *client_key;
	bool insecure_skip_verify;
	/* The name to request and to expect in the certificate; NULL: the endpoint's host. */
	const char *server_name_override;
	const char *proxy; /* URL; "none": not even the environment's; NULL: the environment's */
	/* In memory; beyond it the oldest payload leaves the queue; default 64 MiB. */
	uint64_t max_queue_bytes;
	/* Before compression; a larger request is split in halves; 0: 64 MiB. */
	uint64_t max_request_bytes;
	/* How long a payload may wait in memory; 0: no limit. */
	uint64_t max_elapsed_ns;
};

/* Where payloads go that cannot be sent; see exporter_set_spool(). */
struct export_spool {
	int dir_fd;	     /* a directory that is ours alone; the exporter owns it */
	const char *path;    /* its name in the log; borrowed for the call */
	uint64_t max_bytes;  /* beyond it the oldest payloads are dropped */
	uint64_t max_age_ns; /* 0: no limit */
};

struct export_stats {
	/* Submitted, or found in the spool at the start: sent + dropped + queued. A payload that
	 * was split counts as two. */
	uint64_t payloads, samples;
	uint64_t payloads_found; /* in the spool at the start */
	uint64_t payloads_sent, samples_sent;
	uint64_t payloads_dropped_queue_full, payloads_dropped_refused, payloads_dropped_expired;
	uint64_t payloads_dropped_spool_full, payloads_dropped_corrupt;
	uint64_t payloads_dropped_too_large; /* for the server, and cannot be split */
	uint64_t samples_dropped;
	uint64_t payloads_split;
	uint64_t profiles_rejected; /* partial success */
	uint64_t retries, failures; /* failed attempts that are repeated; all failed attempts */
	uint64_t bytes_sent;	    /* accepted bodies, as sent */
	/* Requests that ended, with or without an answer, by their duration. */
	uint64_t latency[STATUS_LATENCY_BUCKETS], latency_sum_ns;
	uint64_t payloads_spooled;	      /* written to disk so far */
	uint64_t queue_payloads;	      /* now, in memory and on disk */
	uint64_t queue_bytes;		      /* now, in memory */
	uint64_t spool_payloads, spool_bytes; /* now, on disk */
};

/*
 * Every destination has settled a payload (sent it, saved it in the spool, or dropped and counted
 * it). id and n_samples as given. Only exporter_dispatch() calls it; it may call exporter_submit().
 */
typedef void (*export_done_fn)(void *ctx, uint64_t id, uint64_t n_samples);

/*
 * Loads libcurl and sets the destinations up; connects to none yet. From now on SIGPIPE is ignored.
 * 0; -EINVAL: a destination is wrong, -ENOENT: there is no libcurl; both with a message in error
 * (n_error bytes); another -errno.
 */
int exporter_new(struct exporter **ret, const struct export_destination *destinations, size_t n,
		 const char *version, export_done_fn done, void *ctx, char *error, size_t n_error);
struct exporter *exporter_free(struct exporter *e);
DEFINE_CLEANUP(struct exporter *, exporter_free)

/*
 * Call it before the first payload. Payloads that cannot be sent then go to disk instead of being
 * dropped, and those that an earlier exporter left there are sent. 0 or -errno: there is no spool,
 * and the rest works.
 */
int exporter_set_spool(struct exporter *e, const struct export_spool *spool);

/*
 * Queues one payload (a complete ExportProfilesServiceRequest) for all destinations: reads it from
 * the start of fd, and compresses it once for each encoding in use. Takes fd, also on failure. 0;
 * -EFBIG: more than 64 MiB; -ENODATA: it is empty; another -errno. On failure nothing is queued or
 * reported to done, and each destination counts it as dropped: too large, queue full (no memory),
 * or damaged. made_ns: when it was made (CLOCK_MONOTONIC). A payload made before a destination
 * answered again comes after those on disk for that destination.
 */
int exporter_submit(struct exporter *e, uint64_t id, int fd, uint64_t n_samples, uint64_t made_ns);

/* Readable when exporter_dispatch() has something to do. Owned by the exporter. */
int exporter_fd(const struct exporter *e);
/*
 * Does the work that is due; never blocks. Returns the milliseconds until it must be called again
 * even if the descriptor stays quiet: today always -1 (never), because timers are behind the
 * descriptor.
 */
int exporter_dispatch(struct exporter *e);
/*
 * Shortens the delays between retries, so that the queue empties or fails soon (shutdown). With a
 * spool, payloads that cannot be sent at once go there, and those in it are sent for 1.5 seconds
 * more to destinations that accept them. A payload that is still in memory after 3.5 seconds is
 * dropped and counted as expired.
 */
void exporter_hurry(struct exporter *e);
/* Is all work done? After exporter_hurry(): except what is safe in the spool. */
bool exporter_idle(const struct exporter *e);
/* Borrowed. */
const struct export_stats *exporter_stats(const struct exporter *e, size_t destination);
/* Did the last attempt bring no answer, or a temporary refusal? *ret_since_ns: since when this has
 * been true or false (CLOCK_MONOTONIC); 0: there was no attempt yet. */
bool exporter_is_down(const struct exporter *e, size_t destination, uint64_t *ret_since_ns);
