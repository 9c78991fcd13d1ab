/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finished payloads on their way to the exporter: each is kept until the exporter has settled it,
 * and sent again to a new exporter. Bounded in number and bytes: the oldest is dropped first, and
 * its samples are counted.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct payloads;
struct status_custody;

/* max: the most payloads, each with a descriptor; at most PAYLOADS_MAX. Keeps custody (borrowed) up
 * to date. 0 or -errno. */
int payloads_new(struct payloads **ret, struct loop *loop, uint32_t max,
		 struct status_custody *custody);
struct payloads *payloads_free(struct payloads *p);
/* A new exporter, of that start: takes fd, and sends everything unsettled again. */
void payloads_connect(struct payloads *p, int fd, uint64_t start);
/* A second receiver, which gets all payloads from now on and settles none: takes fd. A payload that
 * does not fit into its socket is not sent; the receiver sees the gap in the ids. */
void payloads_mirror(struct payloads *p, int fd);
/*
 * Copies the bytes into a sealed memfd and sends it; if n_kept is not 0, also a second one with the
 * part that only the local store keeps. order grows from payload to payload, and is the same if
 * another symbolizer makes the payload again, so the exporter recognises it. 0 or -errno.
 */
struct payload_bytes {
	const void *bytes, *kept;
	size_t n, n_kept;
};
int payloads_push(struct payloads *p, const struct payload_bytes *b, uint64_t n_samples,
		  uint64_t order);
/* The windows of payloads of a lower order are settled: no other process has their samples. */
void payloads_settle_windows(struct payloads *p, uint64_t order);
/* Is there an exporter, and were all payloads sent to it? */
bool payloads_all_sent(const struct payloads *p);
bool payloads_all_settled(const struct payloads *p);
/* The number of samples in payloads that were dropped since the last call. */
uint64_t payloads_take_dropped(struct payloads *p);
