/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body is read and not mapped: its sender parses untrusted files, and a descriptor that shrinks
 * under a mapping would kill its reader. It is compressed while it is read, so it is never held in
 * two forms unless destinations differ, and payloads in a queue are small.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/exporter/payload.h"
#include "util/cleanup.h"

#define CHUNK_BYTES (64u << 10)

DEFINE_CLEANUP(struct payload *, payload_free)

static int read_fully(int fd, uint8_t *to, size_t n, off_t at)
{
	while (n > 0) {
		ssize_t got = pread(fd, to, n, at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return -EIO;
		to += got;
		at += got;
		n -= (size_t)got;
	}
	return 0;
}

static void take(struct payload *p, enum encoding encoding, struct encoder *e)
{
	p->bodies[encoding].bytes = encoder_take(e, &p->bodies[encoding].n);
}

static int read_encoded(struct payload *p, enum encoding encoding, int fd, size_t n)
{
	_cleanup_(encoder_freep) struct encoder *e = NULL;
	_cleanup_free_ uint8_t *chunk = malloc(CHUNK_BYTES);
	int r = chunk ? encoder_new(&e, encoding, n) : -ENOMEM;

	for (size_t at = 0; r == 0 && at < n; at += CHUNK_BYTES) {
		size_t n_chunk = n - at < CHUNK_BYTES ? n - at : CHUNK_BYTES;

		r = read_fully(fd, chunk, n_chunk, (off_t)at);
		if (r == 0)
			r = encoder_put(e, chunk, n_chunk, at + n_chunk == n);
	}
	if (r == 0)
		take(p, encoding, e);
	return r;
}

static int make(struct payload **ret, uint64_t n)
{
	if (n == 0)
		return -ENODATA;
	if (n > PAYLOAD_MAX_BYTES)
		return -EFBIG;
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->refs = 1;
	(*ret)->n_bytes = n;
	return 0;
}

int payload_new(struct payload **ret, int fd, unsigned int encodings)
{
	_cleanup_(payload_freep) struct payload *p = NULL;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	r = make(&p, st.st_size > 0 ? (uint64_t)st.st_size : 0);
	for (enum encoding i = 0; i < N_ENCODINGS && r == 0; i++) {
		if (encodings & 1u << i)
			r = read_encoded(p, i, fd, (size_t)st.st_size);
	}
	if (r < 0)
		return r;
	*ret = TAKE_PTR(p);
	return 0;
}

int payload_pack(struct payload **ret, const uint8_t *bytes, size_t n, enum encoding encoding)
{
	_cleanup_(encoder_freep) struct encoder *e = NULL;
	_cleanup_(payload_freep) struct payload *p = NULL;
	int r = make(&p, n);

	if (r == 0)
		r = encoder_new(&e, encoding, n);
	if (r == 0)
		r = encoder_put(e, bytes, n, true);
	if (r < 0)
		return r;
	take(p, encoding, e);
	*ret = TAKE_PTR(p);
	return 0;
}

void payload_free(struct payload *p)
{
	if (!p)
		return;
	for (int i = 0; i < N_ENCODINGS; i++)
		free(p->bodies[i].bytes);
	free(p);
}

void payload_release(struct payload *p)
{
	while (p && --p->refs == 0) {
		struct payload *whole = p->whole;

		payload_free(p);
		p = whole;
	}
}

void payload_settle(struct payload *p, struct payload **settled)
{
	for (; --p->unsettled == 0 && p->whole;)
		p = p->whole;
	if (p->unsettled > 0 || p->told)
		return;
	p->refs++;
	p->next = *settled;
	*settled = p;
}
