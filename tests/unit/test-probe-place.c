/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places in this very program: what is found by reading its file must be where the kernel has
 * mapped the function, of which the program knows the address.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "symbolize/probe-place.h"
#include "tests/unit/probe-target.h"
#include "tests/unit/test.h"

int probe_data = 1;

static int chosen(void)
{
	return 1;
}
__attribute__((used)) static int (*choose(void))(void)
{
	return chosen;
}
int probe_indirect(void) __attribute__((ifunc("choose")));

static struct probe_place places[PROBE_PLACES_MAX];
static char error[1024];

static int find(const char *what, bool marker)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), r;

	CHECK(fd >= 0);
	error[0] = '\0';
	r = probe_find_places(fd, what, marker, NULL, NULL, places, error, sizeof(error));
	(void)close(fd);
	return r;
}

static void test_function(void)
{
	CHECK_INT(find("probe_target", false), ==, 1);
	CHECK_INT(places[0].offset, ==, probe_offset_of((const void *)(uintptr_t)probe_target));
	CHECK_INT(places[0].counter, ==, 0);
	CHECK_INT(find("probe_target+0x2", false), ==, 1);
	CHECK_INT(places[0].offset, ==, probe_offset_of((const void *)(uintptr_t)probe_target) + 2);
	CHECK_INT(find("chosen", false), ==, 1);
	CHECK_INT(places[0].offset, ==, probe_offset_of((const void *)(uintptr_t)chosen));
}

static void test_address(void)
{
	extern const char __executable_start[];
	char text[32];

	(void)snprintf(
		text, sizeof(text), "0x%llx",
		(unsigned long long)((uintptr_t)probe_target - (uintptr_t)__executable_start));
	/* A program at a fixed place has other addresses in its file. */
	if ((uintptr_t)__executable_start < UINT64_C(0x10000000))
		return;
	CHECK_INT(find(text, false), ==, 1);
	CHECK_INT(places[0].offset, ==, probe_offset_of((const void *)(uintptr_t)probe_target));
}

static void check_refused(const char *what, bool marker, int expected, const char *why)
{
	CHECK_INT(find(what, marker), ==, expected);
	if (!strstr(error, why)) {
		fprintf(stderr, "%s: \"%s\" does not say \"%s\"\n", what, error, why);
		exit(1);
	}
}

static void test_refused(void)
{
	check_refused("probe_tarket", false, -ENOENT, "did you mean probe_target?");
	check_refused("probe_data", false, -ENOENT, "is data");
	check_refused("fopen", false, -ENOENT, "another file has");
	check_refused("probe_indirect", false, -EOPNOTSUPP, "IFUNC");
	check_refused("0x7", false, -ENOENT, "no code at 0x7");
	check_refused("probe_target+0x99999999", false, -ENOENT, "no code at");
	check_refused("unit:stop", true, -ENOENT, "did you mean unit:step?");
	check_refused("probe_target", true, -ENOENT, "no marker");
}

static void test_marker(void)
{
	CHECK_INT(find("unit:step", true), ==, 2);
	CHECK_INT(places[0].offset, ==, probe_offset_of(probe_site_1));
	CHECK_INT(places[0].counter, ==, 0);
	CHECK_INT(places[1].offset, ==, probe_offset_of(probe_site_2));
	CHECK_INT(places[1].counter, ==, probe_offset_of(&probe_watchers));
	CHECK_INT(find("unit:other", true), ==, 1);
}

static void test_list(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	CHECK(fd >= 0 && f);
	CHECK_INT(probe_list_markers(fd, f), ==, 2);
	CHECK_INT(fclose(f), ==, 0);
	CHECK_STR(text, "unit:other\nunit:step\n");
	free(text);
	(void)close(fd);
}

/* Every byte may be another one: nothing but an error, or places in the file, may come of it. */
static void test_damaged(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), copy = fileno(tmpfile());
	static uint8_t bytes[64 << 10];
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);

	CHECK(n > 0 && copy >= 0);
	for (ssize_t i = 16; i < 1024 && i < n; i += 3) {
		uint8_t before = bytes[i];

		bytes[i] = (uint8_t)(before ^ 0xff);
		CHECK_INT(pwrite(copy, bytes, (size_t)n, 0), ==, n);
		bytes[i] = before;
		for (int marker = 0; marker < 2; marker++) {
			int r = probe_find_places(copy, marker ? "unit:step" : "probe_target",
						  marker, NULL, NULL, places, error, sizeof(error));

			for (int k = 0; k < r; k++)
				CHECK_INT(places[k].offset, <, n);
		}
	}
	(void)close(fd);
}

int main(void)
{
	CHECK_INT(probe_indirect() + probe_data + probe_watchers, ==, 2);
	probe_target();
	RUN(test_function);
	RUN(test_address);
	RUN(test_refused);
	RUN(test_marker);
	RUN(test_list);
	RUN(test_damaged);
	return 0;
}
