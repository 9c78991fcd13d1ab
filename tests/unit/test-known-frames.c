/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of frames: equal for equal frames, and of what was forgotten there is nothing. */
#include <stdio.h>

#include "src/profiler/known-frames.h"
#include "tests/unit/test.h"

static struct runtime_frame frame(const char *function, uint32_t line)
{
	return (struct runtime_frame){.runtime = PROFILE_RUNTIME_JVM,
				      .function = function,
				      .file = "A.java",
				      .line = line,
				      .start_line = 7};
}

static void test_equal(void)
{
	struct runtime_frame a = frame("A.run", 10), b = frame("A.run", 11), found;
	struct known_frames *k;
	uint64_t one, other;

	CHECK_INT(known_frames_new(&k, 16, 4096), ==, 0);
	one = known_frames_put(k, &a);
	other = known_frames_put(k, &b);
	CHECK(known_frames_is_number(one) && known_frames_is_number(other) && one != other);
	CHECK_INT(known_frames_put(k, &a), ==, one);
	CHECK(known_frames_get(k, other, &found));
	CHECK_STR(found.function, "A.run");
	CHECK_STR(found.file, "A.java");
	CHECK_INT(found.line, ==, 11);
	CHECK_INT(found.start_line, ==, 7);
	CHECK_INT(found.runtime, ==, PROFILE_RUNTIME_JVM);
	CHECK(!known_frames_get(k, other + 1, &found));
	CHECK(!known_frames_is_number(UINT64_C(0x7fffffffffff)));
	CHECK(!known_frames_is_number(UINT64_C(0xffffffff81000000)));
	(void)known_frames_free(k);
}

/* Neither more frames nor more bytes than that. */
static void test_full(uint32_t max_frames, uint32_t max_bytes)
{
	struct runtime_frame f, found;
	struct known_frames *k;
	uint64_t numbers[1000];
	uint32_t n_known = 0;
	char name[32];

	CHECK_INT(known_frames_new(&k, max_frames, max_bytes), ==, 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		(void)snprintf(name, sizeof(name), "A.method%u", i);
		f = frame(name, i);
		numbers[i] = known_frames_put(k, &f);
		CHECK(known_frames_is_number(numbers[i]));
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (!known_frames_get(k, numbers[i], &found))
			continue;
		(void)snprintf(name, sizeof(name), "A.method%u", i);
		CHECK_STR(found.function, name);
		CHECK_INT(found.line, ==, i);
		n_known++;
	}
	CHECK_INT(n_known, >, 0);
	CHECK_INT(n_known, <, 900);
	CHECK(known_frames_get(k, numbers[999], &found));
	(void)known_frames_free(k);
}

static void test_many_frames(void)
{
	test_full(64, 1 << 20);
}

static void test_many_bytes(void)
{
	test_full(1 << 20, 4096);
}

int main(void)
{
	RUN(test_equal);
	RUN(test_many_frames);
	RUN(test_many_bytes);
	return 0;
}
