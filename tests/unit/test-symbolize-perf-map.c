/* SPDX-License-Identifier: Apache-2.0 */
/* Perf maps: growing, overlapping, replaced, and written by somebody who means harm. */
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "symbolize/symbolize.h"
#include "tests/unit/test.h"
#include "util/clock.h"

static const struct symbol_limits limits = SYMBOL_LIMITS_DEFAULT;

static int map_fd(const char *text)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	CHECK_INT(fd, >=, 0);
	CHECK_INT(write(fd, text, strlen(text)), ==, strlen(text));
	return fd;
}

static struct perf_map *new_map(void)
{
	struct perf_map *m = NULL;

	CHECK_INT(perf_map_new(&m, &limits), ==, 0);
	return m;
}

static void check_name(struct perf_map *m, uint64_t address, const char *want)
{
	struct symbol s = {0};

	if (perf_map_lookup(m, address, &s))
		s.name = "(none)";
	else
		CHECK(address - s.start < s.size);
	CHECK_STR(s.name, want);
}

static void test_lines(void)
{
	_cleanup_(perf_map_freep) struct perf_map *m = new_map();
	_cleanup_close_ int fd = map_fd("7f0000002000 100 LazyCompile:*later file.js:1\n"
					"0x7f0000001000 0x80 Ljava/lang/Object;::hash\r\n"
					"7f0000003000 10   blanks before\n");
	struct symbol s;

	check_name(m, 0x1000, "(none)");
	CHECK_INT(perf_map_update(m, fd), ==, 0);
	check_name(m, 0x7f0000002000, "LazyCompile:*later file.js:1");
	check_name(m, 0x7f00000020ff, "LazyCompile:*later file.js:1");
	check_name(m, 0x7f0000002100, "(none)");
	check_name(m, 0x7f000000107f, "Ljava/lang/Object;::hash");
	check_name(m, 0x7f0000000fff, "(none)");
	check_name(m, 0x7f0000003000, "blanks before");
	CHECK_INT(perf_map_lookup(m, 0x7f0000001001, &s), ==, 0);
	CHECK_INT(s.start, ==, 0x7f0000001000);
	CHECK_INT(s.size, ==, 0x80);
}

static void test_growing(void)
{
	_cleanup_(perf_map_freep) struct perf_map *m = new_map();
	_cleanup_close_ int fd = map_fd("1000 100 one\n2000 100 tw");

	CHECK_INT(perf_map_update(m, fd), ==, 0);
	check_name(m, 0x1000, "one");
	check_name(m, 0x2000, "tw"); /* what there is of it */
	CHECK_INT(write(fd, "o\n3000 10", 9), ==, 9);
	CHECK_INT(perf_map_update(m, fd), ==, 0);
	check_name(m, 0x1000, "one");
	check_name(m, 0x2000, "two");
	check_name(m, 0x3000, "(none)");
	CHECK_INT(write(fd, "0 three\n", 8), ==, 8);
	CHECK_INT(perf_map_update(m, fd), ==, 0);
	CHECK_INT(perf_map_update(m, fd), ==, 0);
	check_name(m, 0x30ff, "three");
	check_name(m, 0x2000, "two");
	/* Shorter: another file */
	CHECK_INT(ftruncate(fd, 0), ==, 0);
	CHECK_INT(lseek(fd, 0, SEEK_SET), ==, 0);
	CHECK_INT(write(fd, "5000 10 five\n", 13), ==, 13);
	CHECK_INT(perf_map_update(m, fd), ==, 0);
	check_name(m, 0x1000, "(none)");
	check_name(m, 0x5000, "five");
}

static void rewrite(int fd, const char *text)
{
	/* Time stamps of files move by ticks of up to 10 ms. */
	(void)usleep(20000);
	CHECK_INT(ftruncate(fd, 0), ==, 0);
	CHECK_INT(pwrite(fd, text, strlen(text), 0), ==, strlen(text));
}

/* As jcmd PID Compiler.perfmap does: the same file, and each time the whole of it. */
static void test_rewritten(void)
{
	_cleanup_(perf_map_freep) struct perf_map *m = new_map();
	_cleanup_close_ int fd = map_fd("1000 100 one\n2000 100 two\n");

	CHECK_INT(perf_map_update(m, fd), ==, 0);
	check_name(m, 0x1000, "one");
	/* Larger */
	rewrite(fd, "1000 100 uno\n1800 100 due\n2000 100 tre\n");
	CHECK_INT(perf_map_update(m, fd), ==, 0);
	check_name(m, 0x1000, "uno");
	check_name(m, 0x1800, "due");
	check_name(m, 0x2000, "tre");
	/* Of the same size */
	rewrite(fd, "1000 100 une\n1800 100 dos\n2400 100 tre\n");
	CHECK_INT(perf_map_update(m, fd), ==, 0);
	check_name(m, 0x1000, "une");
	check_name(m, 0x1800, "dos");
	check_name(m, 0x2000, "(none)");
	check_name(m, 0x2400, "tre");
	/* Larger, where nothing was complete before */
	rewrite(fd, "1000 100 o");
	CHECK_INT(perf_map_update(m, fd), ==, 0);
	check_name(m, 0x1000, "o");
	rewrite(fd, "1000 100 ein\n2000 100 zwei\n");
	CHECK_INT(perf_map_update(m, fd), ==, 0);
	check_name(m, 0x1000, "ein");
	check_name(m, 0x2000, "zwei");
}

static void test_other_file(void)
{
	_cleanup_(perf_map_freep) struct perf_map *m = new_map();
	_cleanup_close_ int a = map_fd("1000 100 one\n"), b = map_fd("2000 100 a longer file\n");
	_cleanup_close_ int null = -EBADF;

	CHECK_INT(perf_map_update(m, a), ==, 0);
	check_name(m, 0x1000, "one");
	CHECK_INT(perf_map_update(m, b), ==, 0);
	check_name(m, 0x1000, "(none)");
	check_name(m, 0x2000, "a longer file");
	CHECK_INT(perf_map_update(m, -1), ==, -EBADF);
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CHECK_INT(perf_map_update(m, null), ==, -EINVAL);
}

static void test_overlap(void)
{
	_cleanup_(perf_map_freep) struct perf_map *m = new_map();
	_cleanup_close_ int fd = map_fd("1000 1000 old\n"
					"1400 100 middle\n"
					"1f80 100 over_end\n"
					"0f80 100 over_start\n");
	struct symbol s;

	CHECK_INT(perf_map_update(m, fd), ==, 0);
	check_name(m, 0x0f80, "over_start");
	check_name(m, 0x107f, "over_start");
	check_name(m, 0x1080, "old");
	check_name(m, 0x13ff, "old");
	check_name(m, 0x1400, "middle");
	check_name(m, 0x14ff, "middle");
	check_name(m, 0x1500, "old");
	check_name(m, 0x1f7f, "old");
	check_name(m, 0x1f80, "over_end");
	check_name(m, 0x207f, "over_end");
	check_name(m, 0x2080, "(none)");
	CHECK_INT(perf_map_lookup(m, 0x1500, &s), ==, 0);
	CHECK_INT(s.start, ==, 0x1000);
	CHECK_INT(s.size, ==, 0x1000);
	/* After a lookup, over what is settled */
	CHECK_INT(write(fd, "1200 600 new\n", 13), ==, 13);
	CHECK_INT(perf_map_update(m, fd), ==, 0);
	check_name(m, 0x1400, "new");
	check_name(m, 0x11ff, "old");
	check_name(m, 0x1800, "old");
}

/* Against a table of one name a byte, over many rounds of reading and looking. */
static void test_overlap_random(void)
{
	enum { SPACE = 4096, LINES = 3000 };
	_cleanup_(perf_map_freep) struct perf_map *m = new_map();
	_cleanup_close_ int fd = map_fd("");
	static int owner[SPACE];
	char want[32];

	srand(11);
	for (int i = 1; i <= LINES; i++) {
		int start = rand() % SPACE, size = 1 + rand() % (i % 7 ? 40 : 900);

		dprintf(fd, "%x %x f%d\n", start, size, i);
		for (int k = start; k < start + size && k < SPACE; k++)
			owner[k] = i;
		if (rand() % 50 && i != LINES)
			continue;
		CHECK_INT(perf_map_update(m, fd), ==, 0);
		for (int k = 0; k < SPACE; k++) {
			(void)snprintf(want, sizeof(want), owner[k] ? "f%d" : "(none)", owner[k]);
			check_name(m, (uint64_t)k, want);
		}
	}
	CHECK_INT(perf_map_bytes(m), <, 1 << 20);
}

static void test_hostile(void)
{
	_cleanup_(perf_map_freep) struct perf_map *m = new_map();
	_cleanup_close_ int fd = map_fd(
		"\n\n  \nzzz\n1000\n1000 \n1000 10\n1000 10 \n1000 0 empty\n"
		"0 ffffffffffffffff all\n1 ffffffffffffffff wraps\nffffffffffffff00 1000 wraps\n"
		"1000 10000000000 terabyte\n11111111111111111111 10 too_long\n"
		"1000 10 good\n-5 10 minus\n1000 -10 minus\n2000 10 \x01\x02\xff\n1000 10\tbad\n");

	CHECK_INT(perf_map_update(m, fd), ==, 0);
	check_name(m, 0x1000, "good");
	check_name(m, 0x100f, "good");
	check_name(m, 0x1010, "(none)");
	check_name(m, 0x2000, "\x01\x02\xff");
	check_name(m, 0, "(none)");
	check_name(m, UINT64_MAX, "(none)");
	check_name(m, 0xffffffffffffff80, "(none)");
}

static void test_long_lines(void)
{
	_cleanup_(perf_map_freep) struct perf_map *m = new_map();
	_cleanup_close_ int fd = map_fd("1000 10 ");
	static char big[200000];
	struct symbol s;

	memset(big, 'x', sizeof(big));
	CHECK_INT(write(fd, big, sizeof(big)), ==, sizeof(big));
	CHECK_INT(perf_map_update(m, fd), ==, 0);
	CHECK_INT(write(fd, big, sizeof(big)), ==, sizeof(big));
	CHECK_INT(write(fd, "\n2000 10 two\n", 13), ==, 13);
	CHECK_INT(perf_map_update(m, fd), ==, 0);
	check_name(m, 0x2000, "two");
	CHECK_INT(perf_map_lookup(m, 0x1000, &s), ==, 0);
	CHECK_INT(strlen(s.name), <, 10000);
	/* A hole of a gigabyte: read in turns, remembered as nothing. */
	CHECK_INT(ftruncate(fd, (off_t)1 << 30), ==, 0);
	CHECK_INT(perf_map_update(m, fd), ==, 0);
	CHECK_INT(perf_map_update(m, fd), ==, 0);
	check_name(m, 0x2000, "two");
	CHECK_INT(perf_map_bytes(m), <, 4 << 20);
}

static void test_random_bytes(void)
{
	static const char alphabet[] = "0123456789abcdef   \n\nxX\r\t\0\xff";
	static char text[200000];

	srand(3);
	for (int round = 0; round < 20; round++) {
		_cleanup_(perf_map_freep) struct perf_map *m = new_map();
		_cleanup_close_ int fd = map_fd("");

		for (size_t i = 0; i < sizeof(text); i++)
			text[i] = alphabet[(size_t)rand() % sizeof(alphabet)];
		for (size_t at = 0; at < sizeof(text); at += 50000) {
			CHECK_INT(write(fd, text + at, 50000), ==, 50000);
			CHECK_INT(perf_map_update(m, fd), ==, 0);
			for (int i = 0; i < 500; i++) {
				struct symbol s;

				if (perf_map_lookup(m, (uint64_t)rand() >> (i % 31), &s) == 0)
					CHECK_INT(strlen(s.name), >, 0);
			}
		}
	}
}

static void test_bounded(void)
{
	struct symbol_limits small = {.max_table_bytes = 1 << 20};
	_cleanup_(perf_map_freep) struct perf_map *m = NULL;
	_cleanup_close_ int fd = map_fd("");
	FILE *f = fdopen(dup(fd), "w");

	CHECK(f != NULL);
	CHECK_INT(perf_map_new(&m, &small), ==, 0);
	/* More functions than fit: refused and counted. */
	for (unsigned int i = 0; i < 100000; i++)
		fprintf(f, "%x 10 function_%u\n", 0x1000 + i * 16, i);
	CHECK_INT(fflush(f), ==, 0);
	for (int i = 0; i < 5; i++)
		CHECK_INT(perf_map_update(m, fd), ==, 0);
	check_name(m, 0x1000, "function_0");
	CHECK_INT(perf_map_refused(m), >, 10000);
	CHECK_INT(perf_map_bytes(m), <, 4 << 20);
	CHECK_INT(ftruncate(fd, 0), ==, 0);
	CHECK_INT(perf_map_update(m, fd), ==, 0);
	/* One function compiled over and over takes no more room than once. */
	rewind(f);
	for (unsigned int i = 0; i < 100000; i++)
		fprintf(f, "%x 10 again_%u\n", 0x1000 + i % 16, i);
	CHECK_INT(fclose(f), ==, 0);
	for (int i = 0; i < 5; i++)
		CHECK_INT(perf_map_update(m, fd), ==, 0);
	check_name(m, 0x101e, "again_99999");
}

static void test_speed(void)
{
	_cleanup_(perf_map_freep) struct perf_map *m = new_map();
	_cleanup_close_ int fd = map_fd("");
	FILE *f = fdopen(dup(fd), "w");
	uint64_t t[3];
	struct symbol s;

	CHECK(f != NULL);
	srand(5);
	for (unsigned int i = 0; i < 100000; i++)
		fprintf(f, "7f%06x00 %x LazyCompile:*function_%u /srv/app/lib/file.js:%u:%u\n",
			(unsigned int)rand() % 0x400000, 64 + (unsigned int)rand() % 1000, i,
			i % 977, i % 80);
	CHECK_INT(fclose(f), ==, 0);
	t[0] = clock_monotonic_ns();
	CHECK_INT(perf_map_update(m, fd), ==, 0);
	t[1] = clock_monotonic_ns();
	(void)perf_map_lookup(m, 0, &s);
	t[2] = clock_monotonic_ns();
	fprintf(stderr, "  100000 lines: %.1f ms to read, %.1f ms to sort, %zu bytes\n",
		(double)(t[1] - t[0]) / 1e6, (double)(t[2] - t[1]) / 1e6, perf_map_bytes(m));
	CHECK_INT(perf_map_refused(m), ==, 0);
	CHECK_INT(t[2] - t[0], <, 10 * NSEC_PER_SEC);
}

int main(void)
{
	RUN(test_lines);
	RUN(test_growing);
	RUN(test_rewritten);
	RUN(test_other_file);
	RUN(test_overlap);
	RUN(test_overlap_random);
	RUN(test_hostile);
	RUN(test_long_lines);
	RUN(test_random_bytes);
	RUN(test_bounded);
	RUN(test_speed);
	return 0;
}
