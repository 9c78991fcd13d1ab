/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "src/profiler/outside.h"
#include "src/profiler/process-maps.h"

/* The kernel gives a page of text at a time. The list of a program that wants to cost us much is
 * left to the opener, which may take its time. */
enum { CHUNK_BYTES = 4096, MAX_BYTES = 256 * 1024 };

static const char name[] = "OTEL_CTX"; /* also where the opener does not take it: it has to look */
enum { N_NAME = sizeof(name) - 1 };

void process_maps_keep(struct process_maps *m, struct outside *o, uint32_t pid)
{
	if (m->open || m->too_long || o->maps == OUTSIDE_MAPS_COPIED)
		return;
	m->fd = outside_open_maps(o, pid);
	m->open = m->fd >= 0;
	/* A copy says nothing of later. */
	if (o->maps == OUTSIDE_MAPS_COPIED)
		process_maps_close(m);
}

/* 1: found, 0: not up to the end; -errno. *ret: bytes of the list that were read. */
static int find(int fd, uint32_t *ret)
{
	char text[N_NAME + CHUNK_BYTES];
	size_t kept = 0; /* of the last piece: the name may be cut */
	ssize_t n;

	for (*ret = 0; *ret < MAX_BYTES; *ret += (uint32_t)n) {
		n = pread(fd, text + kept, CHUNK_BYTES, (off_t)*ret);
		if (n < 0)
			return -errno;
		if (n == 0)
			return *ret ? 0 : -ESRCH;
		if (memmem(text, kept + (size_t)n, name, N_NAME))
			return 1;
		kept += (size_t)n;
		if (kept >= N_NAME) {
			memmove(text, text + kept - (N_NAME - 1), N_NAME - 1);
			kept = N_NAME - 1;
		}
	}
	return -E2BIG;
}

int process_maps_find_context(struct process_maps *m)
{
	int r = m->open ? find(m->fd, &m->n_bytes) : -EBADF;

	m->too_long |= r == -E2BIG;
	if (r < 0)
		process_maps_close(m);
	return r;
}

void process_maps_close(struct process_maps *m)
{
	if (m->open)
		(void)close(m->fd);
	m->open = false;
}
