/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Jitdump files for unit tests, written record by record into memory. */
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolize/symbolize.h"
#include "tests/unit/test.h"

#define ALL UINT64_MAX /* of the time: the whole file */

struct dump {
	int fd;
	uint8_t bytes[1 << 16];
	size_t n, record; /* record: where the one under way began */
};

static inline void put(struct dump *d, const void *bytes, size_t n)
{
	CHECK_INT(d->n + n, <=, sizeof(d->bytes));
	memcpy(d->bytes + d->n, bytes, n);
	d->n += n;
}

static inline void put32(struct dump *d, uint32_t v)
{
	put(d, &v, sizeof(v));
}

static inline void put64(struct dump *d, uint64_t v)
{
	put(d, &v, sizeof(v));
}

static inline void put_text(struct dump *d, const char *text)
{
	put(d, text, strlen(text) + 1);
}

static inline void put_header(struct dump *d, uint64_t flags)
{
	put32(d, 0x4A695444);
	put32(d, 1);
	put32(d, 40);
#if defined(__aarch64__)
	put32(d, EM_AARCH64);
#else
	put32(d, EM_X86_64);
#endif
	put32(d, 0);
	put32(d, 4711);
	put64(d, 1);
	put64(d, flags);
}

static inline void begin(struct dump *d, uint32_t id, uint64_t time)
{
	d->record = d->n;
	put32(d, id);
	put32(d, 0);
	put64(d, time);
}

static inline void finish(struct dump *d)
{
	uint32_t size = (uint32_t)(d->n - d->record);

	memcpy(d->bytes + d->record + 4, &size, sizeof(size));
}

static inline void put_load(struct dump *d, uint64_t time, uint64_t start, uint64_t size,
			    const char *name)
{
	begin(d, 0, time);
	put32(d, 4711);
	put32(d, 4711);
	put64(d, start);
	put64(d, start);
	put64(d, size);
	put64(d, 1);
	put_text(d, name);
	put(d, "\xcc\xcc\xcc\xcc", 4); /* its code */
	finish(d);
}

static inline void put_move(struct dump *d, uint64_t time, uint64_t to, uint64_t from,
			    uint64_t size)
{
	begin(d, 1, time);
	put32(d, 4711);
	put32(d, 4711);
	put64(d, to);
	put64(d, from);
	put64(d, to);
	put64(d, size);
	put64(d, 1);
	finish(d);
}

static inline void put_line(struct dump *d, uint64_t address, uint32_t line, uint32_t column,
			    const char *file)
{
	put64(d, address);
	put32(d, line);
	put32(d, column);
	put_text(d, file);
}

static inline void begin_lines(struct dump *d, uint64_t time, uint64_t start, uint64_t n)
{
	begin(d, 2, time);
	put64(d, start);
	put64(d, n);
}

static inline struct dump *dump_new(uint64_t flags)
{
	struct dump *d = calloc(1, sizeof(*d));

	CHECK(d != NULL);
	d->fd = memfd_create("jit-4711.dump", MFD_CLOEXEC);
	CHECK_INT(d->fd, >=, 0);
	put_header(d, flags);
	return d;
}

static inline struct dump *dump_free(struct dump *d)
{
	(void)close_fd(d->fd);
	free(d);
	return NULL;
}

static inline int update(struct jitdump *j, struct dump *d, size_t n, uint64_t until)
{
	CHECK_INT(ftruncate(d->fd, 0), ==, 0);
	CHECK_INT(pwrite(d->fd, d->bytes, n, 0), ==, n);
	return jitdump_update(j, d->fd, until);
}
