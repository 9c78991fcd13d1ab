/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Publishes a process context as OTEP 4719 says, for tests: with a header that may be wrong. */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef PR_SET_VMA
#define PR_SET_VMA	     0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

struct published_header {
	char signature[8];
	uint32_t version, n_payload;
	uint64_t published_ns, payload;
};

#define PUBLISHED_BYTES 4096

/* Maps room for a header; in_file: of a memory file, else anonymous with a name. NULL: it cannot be
 * done here. */
static inline struct published_header *published_map(int in_file)
{
	int fd = in_file ? memfd_create("OTEL_CTX", MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1;
	void *map;

	if (in_file && (fd < 0 || ftruncate(fd, PUBLISHED_BYTES) < 0))
		return NULL;
	map = mmap(NULL, PUBLISHED_BYTES, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | (in_file ? 0 : MAP_ANONYMOUS), fd, 0);
	if (in_file)
		(void)close(fd);
	if (map == MAP_FAILED)
		return NULL;
	(void)madvise(map, PUBLISHED_BYTES, MADV_DONTFORK);
	if (prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, map, PUBLISHED_BYTES, "OTEL_CTX") < 0 &&
	    !in_file)
		return NULL;
	return map;
}

/* Both at first and as an update: the stamp is 0 meanwhile. */
static inline void published_set(struct published_header *h, const void *payload, uint32_t n,
				 uint64_t stamp_ns)
{
	__atomic_store_n(&h->published_ns, 0, __ATOMIC_SEQ_CST);
	memcpy(h->signature, "OTEL_CTX", sizeof(h->signature));
	h->version = 2;
	h->n_payload = n;
	h->payload = (uint64_t)(uintptr_t)payload;
	__atomic_store_n(&h->published_ns, stamp_ns, __ATOMIC_SEQ_CST);
}

/* A field of bytes, fewer than 2 MiB. Returns what is behind it. */
static inline uint8_t *published_put(uint8_t *to, unsigned int field, const void *bytes, size_t n)
{
	*to++ = (uint8_t)(field << 3 | 2);
	*to++ = (uint8_t)(n | 0x80);
	*to++ = (uint8_t)(n >> 7 | 0x80);
	*to++ = (uint8_t)(n >> 14);
	memmove(to, bytes, n);
	return to + n;
}

/* A KeyValue with an AnyValue of that field, as such a field of a message. both: room for it. */
static inline uint8_t *published_put_pair(uint8_t *to, unsigned int field, const char *key,
					  unsigned int kind, const void *bytes, size_t n,
					  uint8_t *both)
{
	uint8_t *at = published_put(both, 1, key, strlen(key));

	/* The value is a field in a field. */
	memmove(at + 8, bytes, n);
	(void)published_put(at + 4, kind, at + 8, n);
	(void)published_put(at, 2, at + 4, n + 4);
	return published_put(to, field, both, (size_t)(at - both) + n + 8);
}
