/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finished payloads on their way to the exporter: kept until it has settled them, handed over again
 * to a new one. Bounded in number and bytes: the oldest goes first, and its samples are counted.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAYLOADS_MAX_BYTES (UINT64_C(96) << 20)

struct loop;
struct payloads;
struct status_custody;

/* max: of payloads, at most PAYLOADS_MAX; each is a descriptor. custody (borrowed) is kept up to
 * date. */
int payloads_new(struct payloads **ret, struct loop *loop, uint32_t max,
		 struct status_custody *custody);
struct payloads *payloads_free(struct payloads *p);
/* A new exporter, of that start: fd becomes ours; everything unsettled is sent again. */
void payloads_connect(struct payloads *p, int fd, uint64_t start);
/* A second receiver, which gets all payloads from now on and settles nothing; fd becomes ours. A
 * payload that does not fit its socket is not sent; it notices the gap in the ids. */
void payloads_mirror(struct payloads *p, int fd);
/*
 * Copies the bytes into a sealed memfd and sends it, and what the local store alone keeps of it, if
 * n_kept is not 0, in another one. order grows from payload to payload, and is
 * the same when another symbolizer makes it again: so the exporter knows what it has. 0 or -errno.
 */
struct payload_bytes {
	const void *bytes, *kept;
	size_t n, n_kept;
};
int payloads_push(struct payloads *p, const struct payload_bytes *b, uint64_t n_samples,
		  uint64_t order);
/* Nobody else has what is in payloads of a lower order any more. */
void payloads_settle_windows(struct payloads *p, uint64_t order);
/* Everything there is was at least sent to an exporter that is there (not necessarily settled). */
bool payloads_all_sent(const struct payloads *p);
bool payloads_all_settled(const struct payloads *p);
/* Samples of payloads that were given up since the last call. */
uint64_t payloads_take_dropped(struct payloads *p);
