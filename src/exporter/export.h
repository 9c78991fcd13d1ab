/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * OTLP payloads to their destinations: OTLP/HTTP with protobuf or JSON bodies and OTLP/gRPC over
 * libcurl, compressed, retry by the specification's table. One exporter holds all destinations;
 * each has its own queue, state and counters, so a slow one holds up no other. Driven by an event
 * loop through one epoll descriptor; nothing blocks but the flushes of the spool, when there is
 * one.
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

/* One [export:NAME]. All strings borrowed for exporter_new() only. */
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
	const char *server_name_override; /* NULL; of the certificate, and what the server is asked
					   * for, instead of the endpoint's host */
	const char *proxy; /* URL; "none": not even the environment's; NULL: the environment's */
	uint64_t max_queue_bytes; /* in memory; the oldest payload leaves it beyond; default 64 MiB
				   */
	uint64_t max_request_bytes; /* before compression; what is larger goes in halves; 0: 64 MiB
				     */
	uint64_t max_elapsed_ns;    /* in memory; a payload leaves it after this long; 0: never */
};

/* Where payloads go that cannot be sent; see exporter_set_spool(). */
struct export_spool {
	int dir_fd;	     /* a directory that is ours alone; taken over */
	const char *path;    /* what the log calls it; borrowed for the call */
	uint64_t max_bytes;  /* the oldest go beyond */
	uint64_t max_age_ns; /* 0: any */
};

struct export_stats {
	/* Submitted, or found in the spool at the start: sent + dropped + queued. One that was
	 * split counts as the two that it became. */
	uint64_t payloads, samples;
	uint64_t payloads_found; /* in the spool at the start */
	uint64_t payloads_sent, samples_sent;
	uint64_t payloads_dropped_queue_full, payloads_dropped_refused, payloads_dropped_expired;
	uint64_t payloads_dropped_spool_full, payloads_dropped_corrupt;
	uint64_t payloads_dropped_too_large; /* for the server, and not to be split */
	uint64_t samples_dropped;
	uint64_t payloads_split;
	uint64_t profiles_rejected; /* partial success */
	uint64_t retries,
		failures;    /* attempts that failed in a retryable way; all failed attempts */
	uint64_t bytes_sent; /* bodies that were taken, as sent */
	/* Requests that ended, by how long they took, also without an answer. */
	uint64_t latency[STATUS_LATENCY_BUCKETS], latency_sum_ns;
	uint64_t payloads_spooled;	      /* written to disk so far */
	uint64_t queue_payloads;	      /* now, in memory and on disk */
	uint64_t queue_bytes;		      /* now, in memory */
	uint64_t spool_payloads, spool_bytes; /* now, on disk */
};

/*
 * Called when a payload is settled everywhere (sent, or safe in the spool, or dropped and counted):
 * id and n_samples as given. From exporter_dispatch() only; may call exporter_submit().
 */
typedef void (*export_done_fn)(void *ctx, uint64_t id, uint64_t n_samples);

/*
 * Loads libcurl and sets the destinations up; connects to none yet. SIGPIPE is ignored from here
 * on. 0; -EINVAL with a message in error (size n_error) for a bad destination, -ENOENT with one
 * when there is no libcurl; another -errno.
 */
int exporter_new(struct exporter **ret, const struct export_destination *destinations, size_t n,
		 const char *version, export_done_fn done, void *ctx, char *error, size_t n_error);
struct exporter *exporter_free(struct exporter *e);
DEFINE_CLEANUP(struct exporter *, exporter_free)

/*
 * Before the first payload: what cannot be sent goes to disk from now on instead of being dropped,
 * and what an earlier exporter left there is sent. 0 or -errno; without a spool everything else
 * works as before.
 */
int exporter_set_spool(struct exporter *e, const struct export_spool *spool);

/*
 * Queues one payload (a complete ExportProfilesServiceRequest) for all destinations, read from the
 * start of fd here and now, and compressed once for each encoding that is wanted. The exporter owns
 * fd from here on, also on failure. 0; -EFBIG beyond 64 MiB; -ENODATA when empty; another -errno.
 * On failure nothing is queued or reported to done, and each destination counts it as dropped: too
 * large, or the queue full (without memory), or damaged. made_ns: when it was made, by the
 * monotonic clock. What was made before a destination was reached again goes behind what is on disk
 * for it, whenever it comes.
 */
int exporter_submit(struct exporter *e, uint64_t id, int fd, uint64_t n_samples, uint64_t made_ns);

/* Readable when exporter_dispatch() has something to do. Owned by the exporter. */
int exporter_fd(const struct exporter *e);
/*
 * Handles what is due; never blocks. Returns the milliseconds until it wants to be called again
 * even when the descriptor stays quiet; always -1 (never) today, timers are behind the descriptor.
 */
int exporter_dispatch(struct exporter *e);
/*
 * From now on retry delays are cut short so that the queue empties or fails soon (shutdown). With a
 * spool, what does not leave at once goes there, and what is there is sent for 1.5 seconds more
 * where it is taken; what is still in memory 3.5 seconds from now is dropped and counted as
 * expired.
 */
void exporter_hurry(struct exporter *e);
/* Nothing is left to do; after exporter_hurry(): nothing but what is safe in the spool. */
bool exporter_idle(const struct exporter *e);
const struct export_stats *exporter_stats(const struct exporter *e, size_t destination);
/* The last attempt brought no answer, or a refusal for now. *ret_since_ns: since when it is so, or
 * otherwise (CLOCK_MONOTONIC); 0: there was no attempt yet. */
bool exporter_is_down(const struct exporter *e, size_t destination, uint64_t *ret_since_ns);
