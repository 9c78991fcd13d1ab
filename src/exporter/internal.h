/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The exporter's parts, for src/exporter/ only: exporter.c runs the loop, destination.c decides
 * what to send, backlog.c keeps on disk what waits for long. */
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

#define RESPONSE_MAX_BYTES (4u << 20) /* after decompression; the limit of the OTLP specification */
/* How much of an answer is kept; the rest is counted and dropped, because each destination may send
 * that much. */
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
	uint64_t bytes;	    /* its part of the queue's limit; 0: not in memory */
	bool never_on_disk; /* it is too large for the spool */
};

/* The answer to the request under way. */
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
	bool proxied; /* by its configuration; the environment may name a proxy, too */
	enum encoding encoding;
	enum otlp_dialect dialect;
	uint64_t timeout_ns, max_queue_bytes, max_elapsed_ns, max_request_bytes;
	CURL *easy;
	struct curl_slist *connect_to; /* NULL: where the URL says */
	uint8_t *made; /* the body of the request under way, if it differs from the queued one */
	struct curl_slist *headers[N_ENCODINGS]; /* for each kind of body */
	char curl_error[CURL_ERROR_SIZE];

	TAILQ_HEAD(entry_queue, entry) queue; /* not on disk; oldest first, as in backlog */
	struct entry_queue backlog;	      /* on disk */
	struct entry *flying;		      /* the entry being sent, of either */
	struct response response;
	uint64_t next_attempt_ns; /* the earliest time of the next attempt; 0: at once */
	unsigned int failures;	  /* in a row */
	unsigned int n_unsplit;	  /* single stacks refused as too large since its last acceptance */
	bool probe_newest;	  /* after a failure: choose() takes the newest next */
	uint64_t backlog_next_ns; /* the earliest time for the next one from disk */
	bool spooling;		  /* it has failed for so long that payloads go to disk at once */
	uint64_t back_ns;	  /* when that ended: older payloads go to disk, too */
	bool backlog_told;	  /* the log says that payloads are on disk */
	uint64_t n_from_backlog;  /* sent from disk since then */

	bool down;
	uint64_t down_since_ns, up_since_ns; /* up 0: it never answered */
	struct log_ratelimit refused, split, partial, foreign, full, expired, spool_full;
	struct export_stats stats;
};

struct exporter {
	struct curl_api curl;
	CURLM *multi;
	int epoll_fd, timer_fd;
	uint64_t curl_deadline_ns; /* when curl must be called; UINT64_MAX: never */
	uint64_t hurry_ns;	   /* the end of the time of exporter_hurry(); 0: no hurry */
	uint64_t hurry_spool_ns;   /* when the remaining payloads go to disk */
	struct spool *spool;	   /* NULL: none */
	struct log_ratelimit orphans;
	struct destination *destinations;
	size_t n_destinations;
	struct payload *settled; /* done() must still be called for these */
	export_done_fn done;
	void *ctx;
};

/* The result of an attempt. */
enum verdict {
	VERDICT_SENT,
	VERDICT_RETRY,	   /* 429, 502, 503, 504, or no answer at all */
	VERDICT_TOO_LARGE, /* it may accept a smaller one: 413, or its equivalent in gRPC */
	VERDICT_DROP,	   /* any other answer */
};

struct outcome {
	enum verdict verdict;
	CURLcode code;	   /* CURLE_OK: there was an answer */
	long status;	   /* HTTP; 0: no answer */
	long os_errno;	   /* of a failed connection */
	long proxy_status; /* a proxy's answer to CONNECT; 0: none */
	bool unseen;	   /* no byte of the request was sent */
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
/* Is all its work done? In a hurry: except what is safe on disk. */
bool destination_idle(const struct destination *d);
/* When to call destination_kick() next; UINT64_MAX: not before something changes. */
uint64_t destination_deadline(const struct destination *d);

/* --- entry.c */
/* The body that x is sent as, borrowed. */
const uint8_t *entry_body(const struct destination *d, const struct entry *x, size_t *ret_n,
			  enum encoding *ret_encoding);
/* Takes x out of its queue and frees it; its file stays. */
void entry_remove(struct destination *d, struct entry *x);
/* The attempt with x, which is on disk, is over: frees its part in memory. */
void entry_land(struct destination *d, struct entry *x);

/* --- backlog.c */
/* Takes over a file that an earlier exporter left. 0 or -ENOMEM. */
int backlog_adopt(struct destination *d, struct spool_file *f);
/* Is p on disk, because an earlier exporter wrote it and could not report it? */
bool backlog_has(const struct destination *d, const struct payload *p);
/* Moves x from memory to disk. false: it cannot. */
bool backlog_put(struct destination *d, struct entry *x);
/* Puts x right after another entry on disk; the next exporter goes by their numbers. */
void backlog_move(struct destination *d, struct entry *x, struct entry *after);
/* Moves the entries to disk that have waited long enough. */
void backlog_put_due(struct destination *d, uint64_t now);
/* When to call backlog_put_due() next; UINT64_MAX: not before something changes. */
uint64_t backlog_due_ns(const struct destination *d);
/* Reads x for an attempt. 0; -EBADMSG: x was dropped and freed; another -errno. */
int backlog_load(struct destination *d, struct entry *x);
/* x was sent or refused: removes it, from disk too. */
void backlog_settle(struct destination *d, struct entry *x, uint64_t now);
/* The callback of the spool; ctx is the exporter. */
void backlog_lost(void *ctx, const struct spool_file *f, enum spool_loss why);

/* --- body.c */
/* The body of a request. */
struct body {
	const uint8_t *bytes; /* borrowed from x, or d->made */
	size_t n;
	size_t n_raw; /* before compression; 0: unknown */
	enum encoding encoding;
};
/* Makes the body for x, whose bytes are in memory. 0; -EBADMSG: they are no payload; another
 * -errno. */
int body_make(struct destination *d, const struct entry *x, struct body *ret);

/* --- split.c */
/* Makes the halves of x, each with a reference. 0; -errno: it cannot be split. */
int split_make(const struct destination *d, const struct entry *x, uint64_t now,
	       struct payload *ret[2]);

/* --- request.c */
int request_init(struct destination *d, const struct export_destination *config,
		 const char *version, char *error, size_t n_error);
void request_deinit(struct destination *d);
int request_start(struct destination *d, const struct body *body);
void request_cancel(struct destination *d);
/* Cleans up the request that ended with curl's code; the response stays. */
struct outcome request_end(struct destination *d, CURLcode code);
void response_reset(struct response *r);

/* --- route.c */
/* Sets the proxy and the server's name on d->easy. May replace *url, which is the caller's. 0;
 * -EINVAL with error; -ENOMEM. */
int route_init(struct destination *d, const struct export_destination *config, char **url,
	       char *error, size_t n_error);

/* --- retry.c */
enum verdict retry_verdict(CURLcode code, long status, bool too_large);
/* Nanoseconds to the next attempt after the given number of failures in a row (from 1). */
uint64_t retry_delay_ns(unsigned int failures);
/* A random number, 0 .. bound - 1. */
uint64_t retry_random_below(uint64_t bound);
/* The delay that a server asked for, bounded, plus up to a tenth at random, because the server may
 * have named the same moment to all clients. */
uint64_t retry_spread(uint64_t ns);
/* The value of a Retry-After header as a delay, bounded. false: it is none. */
bool retry_parse_after(const struct curl_api *curl, const char *text, int64_t now_unix,
		       uint64_t *ret_ns);

/* --- report.c: each function logs an event, and counts nothing */
void report_unreachable(const struct destination *d, const struct outcome *o);
void report_back(const struct destination *d, uint64_t now);
void report_refused(struct destination *d, const struct outcome *o);
/* A single stack, which cannot be split, is larger than max_request_size. */
void report_beyond(struct destination *d);
void report_split(struct destination *d, const struct outcome *o);
void report_sent(struct destination *d, int64_t n_rejected, const char *message);
/* The answer was no OTLP response, such as a web page: this may be no OTLP server. */
void report_foreign(struct destination *d);
void report_queue_full(struct destination *d);
void report_expired(struct destination *d, uint64_t n_payloads);
/* At the end: the sum of all that it lost, since lines about some may have been left out. */
void report_lost(const struct destination *d);
void report_spooling(const struct destination *d);
void report_drained(const struct destination *d);
void report_spool_full(struct destination *d);
