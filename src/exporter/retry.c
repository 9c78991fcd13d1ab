/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "src/exporter/internal.h"
#include "util/clock.h"

/*
 * Exponential back-off with full jitter: the n-th delay is drawn from 0 to 1 s * 2^(n-1), so that
 * hosts that lost the same server spread out at once. Once that range reaches 60 s, a delay is
 * drawn from its upper half: a minute after the server is back, all hosts are connected, and while
 * it is away, no host asks more than twice a minute.
 */
#define RETRY_FIRST_NS (1 * NSEC_PER_SEC)
#define RETRY_LAST_NS  (60 * NSEC_PER_SEC)
#define RETRY_LEAST_NS (50 * NSEC_PER_MSEC)

/* No server gets to silence a profiler for longer by one header. */
#define RETRY_AFTER_MAX_NS (600 * NSEC_PER_SEC)

enum verdict retry_verdict(CURLcode code, long status, bool too_large)
{
	/* Too large, or not to be decompressed: the server had the request, and would say it again.
	 */
	if (too_large || code == CURLE_BAD_CONTENT_ENCODING)
		return VERDICT_DROP;
	/* A refusal counts also when the connection broke behind it: servers that refuse a body
	 * often close without having read it. */
	if (code != CURLE_OK && status < 400)
		return VERDICT_RETRY;
	if (status >= 200 && status < 300)
		return VERDICT_SENT;
	switch (status) {
	case 413:
		return VERDICT_TOO_LARGE;
	case 429:
	case 502:
	case 503:
	case 504:
		return VERDICT_RETRY;
	default:
		return VERDICT_DROP;
	}
}

/* Without randomness (an old kernel early at boot) the time will do. */
uint64_t retry_random_below(uint64_t bound)
{
	uint64_t v;

	if (getrandom(&v, sizeof(v), GRND_NONBLOCK) != (ssize_t)sizeof(v))
		v = clock_monotonic_ns() * UINT64_C(0x9e3779b97f4a7c15);
	return v % bound;
}

uint64_t retry_delay_ns(unsigned int failures)
{
	uint64_t bound = RETRY_FIRST_NS;

	for (unsigned int i = 1; i < failures && bound < RETRY_LAST_NS; i++)
		bound *= 2;
	if (bound >= RETRY_LAST_NS)
		return RETRY_LAST_NS - retry_random_below(RETRY_LAST_NS / 2);
	return RETRY_LEAST_NS + retry_random_below(bound - RETRY_LEAST_NS);
}

uint64_t retry_spread(uint64_t ns)
{
	if (ns > RETRY_AFTER_MAX_NS)
		ns = RETRY_AFTER_MAX_NS;
	return ns + RETRY_LEAST_NS + retry_random_below(ns / 10 + 1);
}

bool retry_parse_after(const struct curl_api *curl, const char *text, int64_t now_unix,
		       uint64_t *ret_ns)
{
	uint64_t ns;
	time_t date;

	if (!*text)
		return false;
	if (strspn(text, "0123456789") == strlen(text)) {
		unsigned long long seconds = strtoull(text, NULL, 10);

		ns = seconds < RETRY_AFTER_MAX_NS / NSEC_PER_SEC ? seconds * NSEC_PER_SEC
								 : RETRY_AFTER_MAX_NS;
	} else {
		date = curl->getdate(text, NULL);
		if (date == -1)
			return false;
		if (date <= now_unix)
			ns = 0;
		else if ((uint64_t)(date - now_unix) < RETRY_AFTER_MAX_NS / NSEC_PER_SEC)
			ns = (uint64_t)(date - now_unix) * NSEC_PER_SEC;
		else
			ns = RETRY_AFTER_MAX_NS;
	}
	*ret_ns = retry_spread(ns);
	return true;
}
