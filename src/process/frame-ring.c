/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/process/frame-ring.h"
#include "util/memory-file.h"

#ifndef F_ADD_SEALS
#define F_ADD_SEALS   1033
#define F_GET_SEALS   1034
#define F_SEAL_SEAL   1
#define F_SEAL_SHRINK 2
#define F_SEAL_GROW   4
#endif

/* Positions grow without end; each is written by one side. On cache lines of their own. */
struct shared {
	uint64_t head __attribute__((aligned(64))); /* the writer's */
	uint64_t tail __attribute__((aligned(64))); /* the reader's */
	uint8_t data[FRAME_RING_BYTES] __attribute__((aligned(64)));
};

struct frame_ring {
	struct shared *shared;
	uint64_t at;	 /* this side's position: what the other says of it counts for nothing */
	uint32_t peeked; /* bytes that frame_ring_drop() gives back */
	bool broken;
};

static int map(struct frame_ring **ret, int fd)
{
	struct frame_ring *r = calloc(1, sizeof(*r));
	void *p;

	if (!r)
		return -ENOMEM;
	p = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		free(r);
		return -errno;
	}
	r->shared = p;
	*ret = r;
	return 0;
}

int frame_ring_new(struct frame_ring **ret)
{
	_cleanup_close_ int fd = memory_file_new("perfwalk-frames");
	int r;

	if (fd < 0)
		return fd;
	if (ftruncate(fd, sizeof(struct shared)) < 0)
		return -errno;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -ENOTSUP;
	r = map(ret, fd);
	return r < 0 ? r : TAKE_FD(fd);
}

int frame_ring_map(struct frame_ring **ret, int fd)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS), r;

	/* If it could be cut off, reading it could end this process. */
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) < 0 ||
	    st.st_size != sizeof(struct shared))
		return -EBADMSG;
	r = map(ret, fd);
	if (r == 0)
		(*ret)->at = __atomic_load_n(&(*ret)->shared->tail, __ATOMIC_RELAXED);
	return r;
}

struct frame_ring *frame_ring_free(struct frame_ring *r)
{
	if (r)
		(void)munmap(r->shared, sizeof(*r->shared));
	free(r);
	return NULL;
}

static void copy_in(struct shared *s, uint64_t at, const void *from, size_t n)
{
	size_t offset = at % FRAME_RING_BYTES, first = FRAME_RING_BYTES - offset;

	if (first > n)
		first = n;
	memcpy(s->data + offset, from, first);
	memcpy(s->data, (const uint8_t *)from + first, n - first);
}

static void copy_out(const struct shared *s, uint64_t at, void *to, size_t n)
{
	size_t offset = at % FRAME_RING_BYTES, first = FRAME_RING_BYTES - offset;

	if (first > n)
		first = n;
	memcpy(to, s->data + offset, first);
	memcpy((uint8_t *)to + first, s->data, n - first);
}

bool frame_ring_put(struct frame_ring *r, const void *bytes, size_t n)
{
	uint64_t used = r->at - __atomic_load_n(&r->shared->tail, __ATOMIC_ACQUIRE), size = n;

	if (n == 0 || n > FRAME_RING_MAX_RECORD || used > FRAME_RING_BYTES ||
	    FRAME_RING_BYTES - used < sizeof(size) + n)
		return false;
	copy_in(r->shared, r->at, &size, sizeof(size));
	copy_in(r->shared, r->at + sizeof(size), bytes, n);
	r->at += sizeof(size) + n;
	__atomic_store_n(&r->shared->head, r->at, __ATOMIC_RELEASE);
	return true;
}

int frame_ring_peek(struct frame_ring *r, void *buf)
{
	uint64_t left = __atomic_load_n(&r->shared->head, __ATOMIC_ACQUIRE) - r->at, size;

	r->peeked = 0;
	if (r->broken || left == 0)
		return r->broken ? -EBADMSG : 0;
	if (left <= FRAME_RING_BYTES && left > sizeof(size)) {
		copy_out(r->shared, r->at, &size, sizeof(size));
		if (size > 0 && size <= FRAME_RING_MAX_RECORD && size <= left - sizeof(size)) {
			copy_out(r->shared, r->at + sizeof(size), buf, size);
			r->peeked = (uint32_t)(sizeof(size) + size);
			return (int)size;
		}
	}
	r->broken = true;
	return -EBADMSG;
}

void frame_ring_drop(struct frame_ring *r)
{
	r->at += r->peeked;
	r->peeked = 0;
	__atomic_store_n(&r->shared->tail, r->at, __ATOMIC_RELEASE);
}
