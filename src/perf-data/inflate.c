/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf record -z. The kernel's records go through one zstd stream, which is cut into COMPRESSED
 * records at any byte; perf's own records are between them, uncompressed. All of it is inflated at
 * once, within a limit, into the form of an uncompressed file.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#include "src/perf-data/internal.h"

#ifdef HAVE_ZSTD

#define MAX_INFLATED_BYTES (UINT64_C(768) << 20)
#define FIRST_BYTES	   (UINT64_C(1) << 20)

DEFINE_CLEANUP(ZSTD_DStream *, ZSTD_freeDStream)

/* Makes room for n more bytes. */
static int reserve(struct perf_data *d, uint64_t n)
{
	uint64_t cap = d->cap_inflated ? d->cap_inflated : FIRST_BYTES;
	uint8_t *bytes;

	while (cap < d->n_inflated + n)
		cap *= 2;
	if (cap > MAX_INFLATED_BYTES)
		cap = MAX_INFLATED_BYTES;
	if (cap < d->n_inflated + n)
		return -EFBIG;
	if (cap == d->cap_inflated)
		return 0;
	bytes = realloc(d->inflated, cap);
	if (!bytes)
		return -ENOMEM;
	d->inflated = bytes;
	d->cap_inflated = cap;
	return 0;
}

static int inflate_part(struct perf_data *d, ZSTD_DStream *stream, const uint8_t *bytes, size_t n)
{
	ZSTD_inBuffer in = {bytes, n, 0};
	ZSTD_outBuffer out;

	do {
		size_t left;
		int r = reserve(d, ZSTD_DStreamOutSize());

		if (r < 0)
			return r;
		out = (ZSTD_outBuffer){d->inflated + d->n_inflated, d->cap_inflated - d->n_inflated,
				       0};
		left = ZSTD_decompressStream(stream, &out, &in);
		if (ZSTD_isError(left))
			return -EBADMSG;
		d->n_inflated += out.pos;
		/* If the buffer is full, this input may give more. */
	} while (in.pos < in.size || out.pos == out.size);
	return 0;
}

/* Does the inflated data end with a complete record? *whole: the end of the last complete one. */
static bool is_whole(const struct perf_data *d, uint64_t *whole)
{
	struct perf_event_header h;

	while (d->n_inflated - *whole >= sizeof(h)) {
		memcpy(&h, d->inflated + *whole, sizeof(h));
		if (h.size < sizeof(h) || h.size > d->n_inflated - *whole)
			return false;
		*whole += h.size;
	}
	return *whole == d->n_inflated;
}

static int inflate_record(struct perf_data *d, ZSTD_DStream *stream, const uint8_t *record,
			  const struct perf_event_header *h, uint64_t *whole)
{
	size_t skip = sizeof(*h);
	uint64_t n;
	int r;

	if (h->type == PERF_DATA_COMPRESSED)
		return inflate_part(d, stream, record + skip, h->size - skip);
	if (h->type == PERF_DATA_COMPRESSED2) {
		/* This form gives the size of the data; the rest is padding. */
		skip += sizeof(n);
		if (h->size < skip)
			return -EBADMSG;
		memcpy(&n, record + sizeof(*h), sizeof(n));
		if (n > h->size - skip)
			return -EBADMSG;
		return inflate_part(d, stream, record + skip, (size_t)n);
	}
	/* It cannot go into the middle of another record; we do not need any of perf's own. */
	if (h->type == PERF_DATA_AUXTRACE || h->type == PERF_DATA_TRACING_DATA ||
	    !is_whole(d, whole))
		return 0;
	r = reserve(d, h->size);
	if (r == 0) {
		memcpy(d->inflated + d->n_inflated, record, h->size);
		d->n_inflated += h->size;
	}
	return r;
}

int perf_data_inflate(struct perf_data *d, char *error, size_t n_error)
{
	_cleanup_(ZSTD_freeDStreamp) ZSTD_DStream *stream = ZSTD_createDStream();
	uint64_t step, whole = 0;
	int r = stream ? 0 : -ENOMEM;

	for (; r == 0 && (step = perf_data_step(d, d->at)) != 0; d->at += step) {
		struct perf_event_header h;

		memcpy(&h, d->records + d->at, sizeof(h));
		r = inflate_record(d, stream, d->records + d->at, &h, &whole);
	}
	if (r == -EBADMSG)
		(void)snprintf(error, n_error,
			       "its compressed records (perf record -z) are damaged at byte %llu; "
			       "record it again, or without -z",
			       (unsigned long long)d->at);
	else if (r == -EFBIG)
		(void)snprintf(
			error, n_error,
			"its compressed records (perf record -z) are more than %llu MiB when "
			"inflated: record without -z",
			(unsigned long long)(MAX_INFLATED_BYTES >> 20));
	if (r < 0)
		return r;
	/* A file that is damaged there now ends there. */
	if (d->at < d->data_end && !d->stats.cut_bytes)
		d->stats.bad_at = d->at;
	d->records = d->inflated;
	d->at = 0;
	d->data_end = d->n_inflated;
	return 0;
}

#else /* HAVE_ZSTD */

int perf_data_inflate(struct perf_data *d, char *error, size_t n_error)
{
	(void)d;
	(void)snprintf(
		error, n_error,
		"its records are compressed (perf record -z), and perfwalk was built without "
		"libzstd: record without -z (--no-compression)");
	return -EOPNOTSUPP;
}

#endif
