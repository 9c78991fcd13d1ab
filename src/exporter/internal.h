/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The exporter's parts, for src/exporter/ only: exporter.c turns, destination.c decides, backlog.c
 * keeps on disk what waits for long. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "src/exporter/export.h"
#include "src/exporter/grpc.h"
#include "src/exporter/payload.h"
#include "src/exporter/spool.h"
#include "src/http/curl.h"
#include "util/log.h"

#define RESPONSE_MAX_BYTES (4u << 20) /* after decompression; the limit OTLP has clients keep */
/* What is looked at; the rest is counted and let go, for each destination may be told that much. */
#define RESPONSE_KEPT_BYTES (256u << 10)
#define RESPONSE_HEADER_MAX_BYTES                                                                  \
	(64u << 10) /* all header lines, 1xx replies and trailers included */

/* A payload that waits for one destination: in memory, on disk, or both while it is being sent. */
struct entry {
	TAILQ_ENTRY(entry) link;
	struct destination *destination;
	struct payload *payload; /* NULL: not in memory */
	struct spool_file *file; /* NULL: not on disk */
	uint8_t *body;		 /* of file, read for the attempt under way */
	uint64_t seq;		 /* the order in which payloads came */
	uint64_t n_samples;
	uint64_t queued_ns;
	uint64_t bytes;	    /* what it counts for in the queue's limit; 0: not in memory */
	bool never_on_disk; /* the spool has no room for one of its size */
};

/* What came back for the request that is under way. */
struct response {
	uint8_t *body; /* its first RESPONSE_KEPT_BYTES */
	size_t n_body, size_body;
	size_t n_received; /* of the whole body */
	size_t n_header;
	bool too_large;
	char retry_after[64]; /* the header's value; "" when there was none */
	char type[64];	      /* Content-Type; "" when there was none */
	struct grpc_status grpc;
};

struct destination {
	struct exporter *exporter;
	char *name;
	char *origin; /* scheme://host:port, for the log: paths and queries may hold secrets */
	bool grpc, json;
	bool proxied; /* by its configuration; the environment may say so, too */
	enum encoding encoding;
	enum otlp_dialect dialect;
	uint64_t timeout_ns, max_queue_bytes, max_elapsed_ns, max_request_bytes;
	CURL *easy;
	struct curl_slist *connect_to; /* NULL: where the URL says */
	uint8_t *made; /* the body of the request under way where it is not the one in the queue */
	struct curl_slist *headers[N_ENCODINGS]; /* for each kind of body */
	char curl_error[CURL_ERROR_SIZE];

	TAILQ_HEAD(entry_queue, entry) queue; /* not on disk; oldest first, as in the other */
	struct entry_queue backlog;	      /* on disk */
	struct entry *flying;		      /* of either */
	struct response response;
	uint64_t next_attempt_ns; /* not before; 0: at once */
	unsigned int failures;	  /* in a row */
	unsigned int n_unsplit; /* single samples that it found too large since it took anything */
	bool probe_newest;	/* the last attempt failed: which payload comes next, in choose() */
	uint64_t backlog_next_ns; /* not before: the next one from disk */
	bool spooling;		  /* it fails for so long that what comes goes to disk at once */
	uint64_t back_ns;	  /* when that was last over: what is older goes to disk, too */
	bool backlog_told;	  /* the log knows that there is something on disk */
	uint64_t n_from_backlog;  /* sent since then */

	bool down;
	uint64_t down_since_ns, up_since_ns; /* up 0: never was */
	struct log_ratelimit refused, split, partial, foreign, full, expired, spool_full;
	struct export_stats stats;
};

struct exporter {
	struct curl_api curl;
	CURLM *multi;
	int epoll_fd, timer_fd;
	uint64_t curl_deadline_ns; /* when curl wants to be called; UINT64_MAX: not */
	uint64_t hurry_ns;	   /* the end of what exporter_hurry() allows; 0: no hurry */
	uint64_t hurry_spool_ns;   /* from then on what is left goes to disk */
	struct spool *spool;	   /* NULL: none */
	struct log_ratelimit orphans;
	struct destination *destinations;
	size_t n_destinations;
	struct payload *settled; /* done() is still to be called */
	export_done_fn done;
	void *ctx;
};

/* What an attempt came to. */
enum verdict {
	VERDICT_SENT,
	VERDICT_RETRY,	   /* 429, 502, 503, 504, or no answer at all */
	VERDICT_TOO_LARGE, /* it may take a smaller one: 413, and what gRPC servers say instead */
	VERDICT_DROP,	   /* any other answer */
};

struct outcome {
	enum verdict verdict;
	CURLcode code;	   /* CURLE_OK when there was an answer */
	long status;	   /* HTTP; 0 without an answer */
	long os_errno;	   /* of a failed connection */
	long proxy_status; /* of a proxy that was asked for a tunnel; 0: none, or no answer */
	bool unseen;	   /* no byte of the request has left */
};

/* --- destination.c */
int destination_init(struct destination *d, struct exporter *e,
		     const struct export_destination *config, const char *version, char *error,
		     size_t n_error);
void destination_deinit(struct destination *d);
/* Queues a reference to p, or counts it as dropped. */
void destination_put(struct destination *d, struct payload *p);
/* Counts a payload that cannot even be read, for that error, as dropped. */
void destination_cannot_take(struct destination *d, uint64_t n_samples, int error);
/* Sends what is due. */
void destination_kick(struct destination *d, uint64_t now);
/* The request under way has ended. */
void destination_finish(struct destination *d, CURLcode code, uint64_t now);
/* Drops all that is queued in memory, and ends what is under way. */
void destination_abandon(struct destination *d);
/* Nothing is left to be done; in a hurry: but what is safe on disk. */
bool destination_idle(const struct destination *d);
/* When destination_kick() has something to do; UINT64_MAX: not before something changes. */
uint64_t destination_deadline(const struct destination *d);

/* --- entry.c */
/* What x is sent as, borrowed. */
const uint8_t *entry_body(const struct destination *d, const struct entry *x, size_t *ret_n,
			  enum encoding *ret_encoding);
/* Takes x out and frees it; a file of it stays where it is. */
void entry_remove(struct destination *d, struct entry *x);
/* The attempt with x, which is on disk, is over: what is in memory of it is not needed. */
void entry_land(struct destination *d, struct entry *x);

/* --- backlog.c */
/* Takes over a file that an earlier exporter left. 0 or -ENOMEM. */
int backlog_adopt(struct destination *d, struct spool_file *f);
/* p is on disk already: the exporter before us had no time to say so. */
bool backlog_has(const struct destination *d, const struct payload *p);
/* Moves x from memory to disk; false when it cannot. */
bool backlog_put(struct destination *d, struct entry *x);
/* Both on disk: x is next after the other, whatever its number says to the next exporter. */
void backlog_move(struct destination *d, struct entry *x, struct entry *after);
/* Moves what is due. */
void backlog_put_due(struct destination *d, uint64_t now);
/* When backlog_put_due() has something to do; UINT64_MAX: not before something changes. */
uint64_t backlog_due_ns(const struct destination *d);
/* Reads x for an attempt. 0; -EBADMSG: x is no more; another -errno. */
int backlog_load(struct destination *d, struct entry *x);
/* x was sent or refused: removes it, from disk too. */
void backlog_settle(struct destination *d, struct entry *x, uint64_t now);
/* The callback of the spool; ctx is the exporter. */
void backlog_lost(void *ctx, const struct spool_file *f, enum spool_loss why);

/* --- body.c */
/* What is sent. */
struct body {
	const uint8_t *bytes; /* borrowed from x, or d->made */
	size_t n;
	size_t n_raw; /* before compression; 0: not known */
	enum encoding encoding;
};
/* Of x, whose bytes are in memory. 0; -EBADMSG: they are no payload; another -errno. */
int body_make(struct destination *d, const struct entry *x, struct body *ret);

/* --- split.c */
/* The halves of x, each with a reference. 0; -errno: it cannot be cut. */
int split_make(const struct destination *d, const struct entry *x, uint64_t now,
	       struct payload *ret[2]);

/* --- request.c */
int request_init(struct destination *d, const struct export_destination *config,
		 const char *version, char *error, size_t n_error);
void request_deinit(struct destination *d);
int request_start(struct destination *d, const struct body *body);
void request_cancel(struct destination *d);
/* Takes the request, which curl says has ended with code, down; the response stays. */
struct outcome request_end(struct destination *d, CURLcode code);
void response_reset(struct response *r);

/* --- route.c */
/* On d->easy: the proxy, and the server's name. *url, which is the caller's, may be exchanged. 0;
 * -EINVAL with error; -ENOMEM. */
int route_init(struct destination *d, const struct export_destination *config, char **url,
	       char *error, size_t n_error);

/* --- retry.c */
enum verdict retry_verdict(CURLcode code, long status, bool too_large);
/* Nanoseconds to the next attempt after the given number of failures in a row (from 1). */
uint64_t retry_delay_ns(unsigned int failures);
/* 0 .. bound - 1, by chance. */
uint64_t retry_random_below(uint64_t bound);
/* A delay that a server has asked for, bounded, and up to a tenth more at random: the server
 * named the same moment to everyone. */
uint64_t retry_spread(uint64_t ns);
/* The value of a Retry-After header as a delay, bounded. False when it is none. */
bool retry_parse_after(const struct curl_api *curl, const char *text, int64_t now_unix,
		       uint64_t *ret_ns);

/* --- report.c: each tells the log what has happened, and counts nothing */
void report_unreachable(const struct destination *d, const struct outcome *o);
void report_back(const struct destination *d, uint64_t now);
void report_refused(struct destination *d, const struct outcome *o);
/* A part that cannot be cut is larger than max_request_size. */
void report_beyond(struct destination *d);
void report_split(struct destination *d, const struct outcome *o);
void report_sent(struct destination *d, int64_t n_rejected, const char *message);
/* A page, say: what took the payload may be no OTLP server. */
void report_foreign(struct destination *d);
void report_queue_full(struct destination *d);
void report_expired(struct destination *d, uint64_t n_payloads);
void report_abandoned(const struct destination *d, uint64_t n_payloads);
void report_spooling(const struct destination *d);
void report_drained(const struct destination *d);
void report_spool_full(struct destination *d);
