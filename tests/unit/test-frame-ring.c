/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a ring against a plain list of them, and rings that contradict themselves. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "src/process/frame-ring.h"
#include "tests/unit/test.h"
#include "util/memory-file.h"

enum { MANY = 200000 };

static uint8_t out[FRAME_RING_MAX_RECORD], in[FRAME_RING_MAX_RECORD];
static uint64_t seed = 3;

static uint32_t chance(uint32_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((seed >> 33) % below);
}

static void fill(uint8_t *buf, uint32_t number, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf[i] = (uint8_t)(number * 31 + i * 7);
}

static void open_both(struct frame_ring **writer, struct frame_ring **reader, int *fd)
{
	*fd = frame_ring_new(writer);
	if (*fd == -ENOTSUP)
		SKIP("this kernel has no seals");
	CHECK_INT(*fd, >=, 0);
	CHECK_INT(frame_ring_map(reader, *fd), ==, 0);
}

/* Whatever is refused is not there, and all else is, in its order. */
static void test_order(void)
{
	static size_t sizes[MANY];
	struct frame_ring *writer, *reader;
	uint32_t n_put = 0, n_got = 0, n_refused = 0;
	int fd;

	open_both(&writer, &reader, &fd);
	while (n_got < MANY) {
		size_t n = 1 + chance(chance(50) ? 300 : FRAME_RING_MAX_RECORD);

		if (n_put < MANY && chance(3)) {
			fill(in, n_put, n);
			if (frame_ring_put(writer, in, n))
				sizes[n_put++] = n;
			else
				n_refused++;
			continue;
		}
		if (n_got == n_put) {
			CHECK_INT(frame_ring_peek(reader, out), ==, 0);
			continue;
		}
		CHECK_INT(frame_ring_peek(reader, out), ==, sizes[n_got]);
		CHECK_INT(frame_ring_peek(reader, out), ==, sizes[n_got]);
		fill(in, n_got, sizes[n_got]);
		CHECK(memcmp(in, out, sizes[n_got]) == 0);
		frame_ring_drop(reader);
		n_got++;
	}
	CHECK_INT(n_refused, >, 0);
	frame_ring_free(writer);
	frame_ring_free(reader);
	(void)close(fd);
}

static void test_sizes(void)
{
	struct frame_ring *writer, *reader;
	int fd;

	open_both(&writer, &reader, &fd);
	CHECK(!frame_ring_put(writer, in, 0));
	CHECK(!frame_ring_put(writer, in, FRAME_RING_MAX_RECORD + 1));
	CHECK(frame_ring_put(writer, in, FRAME_RING_MAX_RECORD));
	frame_ring_free(writer);
	frame_ring_free(reader);
	(void)close(fd);
}

/* The other side may write anything there: each word of the first KiB, while records wait. */
static void test_hostile(void)
{
	static const uint64_t words[] = {0, 1, 7, UINT32_MAX, UINT64_MAX, FRAME_RING_BYTES + 9};

	for (size_t i = 0; i < 128 * (sizeof(words) / sizeof(words[0])); i++) {
		struct frame_ring *writer, *reader;
		uint64_t *shared;
		int fd, r;

		open_both(&writer, &reader, &fd);
		shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		CHECK(shared != MAP_FAILED);
		fill(in, 1, 100);
		for (int k = 0; k < 5; k++)
			CHECK(frame_ring_put(writer, in, 100));
		shared[i / 6] = words[i % 6];
		for (int k = 0; k < 10 && (r = frame_ring_peek(reader, out)) > 0; k++) {
			CHECK_INT(r, <=, FRAME_RING_MAX_RECORD);
			frame_ring_drop(reader);
		}
		CHECK(r == 0 || r == -EBADMSG);
		CHECK_INT(frame_ring_peek(reader, out), ==, r);
		(void)frame_ring_put(writer, in, 100);
		(void)munmap(shared, 4096);
		frame_ring_free(writer);
		frame_ring_free(reader);
		(void)close(fd);
	}
}

/* A file that could be made shorter would end the process that reads it. */
static void test_no_ring(void)
{
	struct frame_ring *reader;
	int fd = memory_file_new("test");

	CHECK_INT(fd, >=, 0);
	CHECK_INT(ftruncate(fd, 2 * FRAME_RING_BYTES), ==, 0);
	CHECK_INT(frame_ring_map(&reader, fd), ==, -EBADMSG);
	CHECK_INT(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), ==, 0);
	CHECK_INT(frame_ring_map(&reader, fd), ==, -EBADMSG);
	(void)close(fd);
}

int main(void)
{
	RUN(test_order);
	RUN(test_sizes);
	RUN(test_hostile);
	RUN(test_no_ring);
	return 0;
}
