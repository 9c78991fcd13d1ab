/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The exporter's parts, for src/export/ only: exporter.c turns, destination.c decides. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "src/export/curl.h"
#include "src/export/export.h"
#include "src/export/payload.h"
#include "util/log.h"

#define RESPONSE_MAX_BYTES (4u << 20) /* after decompression; the limit OTLP has clients keep */
#define RESPONSE_HEADER_MAX_BYTES                                                                  \
	(64u << 10) /* all header lines, 1xx replies and trailers included */

/* A payload in one destination's queue. */
struct entry {
	TAILQ_ENTRY(entry) link;
	struct payload *payload;
	uint64_t queued_ns;
	uint64_t bytes; /* what it counts for in the queue's limit */
};

/* What came back for the request that is under way. */
struct response {
	uint8_t *body;
	size_t n_body, size_body;
	size_t n_header;
	bool too_large;
	char retry_after[64]; /* the header's value; "" when there was none */
};

struct destination {
	struct exporter *exporter;
	char *name;
	char *origin; /* scheme://host:port, for the log: paths and queries may hold secrets */
	bool gzip;
	uint64_t timeout_ns, max_queue_bytes, max_elapsed_ns;
	CURL *easy;
	struct curl_slist *headers;
	char curl_error[CURL_ERROR_SIZE];

	TAILQ_HEAD(entry_queue, entry) queue; /* oldest first; also holds the one under way */
	struct entry *flying;
	struct response response;
	uint64_t next_attempt_ns; /* not before; 0: at once */
	unsigned int failures;	  /* in a row */
	bool probe_newest;	  /* the last attempt failed: which payload comes next, in
				     destination_kick() */

	bool down;
	uint64_t down_since_ns;
	struct log_ratelimit refused, partial, full, expired;
	struct export_stats stats;
};

struct exporter {
	struct curl_api curl;
	CURLM *multi;
	int epoll_fd, timer_fd;
	uint64_t curl_deadline_ns; /* when curl wants to be called; UINT64_MAX: not */
	uint64_t hurry_ns;	   /* the end of what exporter_hurry() allows; 0: no hurry */
	struct destination *destinations;
	size_t n_destinations;
	struct payload *settled; /* without references; done() is still to be called */
	export_done_fn done;
	void *ctx;
};

/* What an attempt came to. */
enum verdict {
	VERDICT_SENT,
	VERDICT_RETRY, /* 429, 502, 503, 504, or no answer at all */
	VERDICT_DROP,  /* any other answer */
};

struct outcome {
	enum verdict verdict;
	CURLcode code; /* CURLE_OK when there was an answer */
	long status;   /* HTTP; 0 without an answer */
	long os_errno; /* of a failed connection */
};

/* --- destination.c */
int destination_init(struct destination *d, struct exporter *e,
		     const struct export_destination *config, const char *version, char *error,
		     size_t n_error);
void destination_deinit(struct destination *d);
/* Queues a reference to p, or counts it as dropped. */
void destination_put(struct destination *d, struct payload *p);
/* Sends what is due. */
void destination_kick(struct destination *d, uint64_t now);
/* The request under way has ended. */
void destination_finish(struct destination *d, CURLcode code, uint64_t now);
/* Drops all that is queued, also what is under way. */
void destination_abandon(struct destination *d);
/* When destination_kick() has something to do; UINT64_MAX: not before something changes. */
uint64_t destination_deadline(const struct destination *d);

/* --- request.c */
int request_init(struct destination *d, const struct export_destination *config,
		 const char *version, char *error, size_t n_error);
void request_deinit(struct destination *d);
int request_start(struct destination *d, const struct payload *p);
void request_cancel(struct destination *d);
/* Takes the request, which curl says has ended with code, down; the response stays. */
struct outcome request_end(struct destination *d, CURLcode code);
void response_reset(struct response *r);

/* --- retry.c */
enum verdict retry_verdict(CURLcode code, long status, bool too_large);
/* Nanoseconds to the next attempt after the given number of failures in a row (from 1). */
uint64_t retry_delay_ns(unsigned int failures);
/* The value of a Retry-After header as a delay, bounded. False when it is none. */
bool retry_parse_after(const struct curl_api *curl, const char *text, int64_t now_unix,
		       uint64_t *ret_ns);

/* --- report.c: each tells the log what has happened, and counts nothing */
void report_unreachable(const struct destination *d, const struct outcome *o);
void report_back(const struct destination *d, uint64_t now);
void report_refused(struct destination *d, const struct outcome *o);
void report_sent(struct destination *d, int64_t n_rejected, const char *message);
void report_queue_full(struct destination *d);
void report_expired(struct destination *d, uint64_t n_payloads);
void report_abandoned(const struct destination *d);

/* --- exporter.c */
void exporter_release(struct exporter *e, struct payload *p);
