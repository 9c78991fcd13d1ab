/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of several interpreters of one process: in which order they are, and when some lack. */
#include <string.h>

#include "src/host/host.h"
#include "src/profiler/chains.h"
#include "tests/unit/test.h"

enum { N_NATIVE = 8, STACK = 0x7f0000, SECOND = 0x900000, UNKNOWN = UINT32_MAX };

static struct chains chains;
static struct unwind_frame frames[N_NATIVE];
static struct host_file file;
static struct host_mapping mapping = {
	.start = SECOND, .end = SECOND + 0x1000, .file = &file, .kind = HOST_MAPPING_FILE};
static const struct host_process process = {.mappings = &mapping, .n_mappings = 1};

static void begin(void)
{
	for (uint32_t i = 0; i < N_NATIVE; i++)
		frames[i] = (struct unwind_frame){.address = 0x1000 * i + 7, .sp = STACK + 64 * i};
	chains.n = 0;
}

/* One with n frames, whose lines are line and so on, at these native frames. */
static struct chain_of *add(enum frame_source_answer answer, uint32_t line, uint32_t n,
			    const uint32_t *natives)
{
	struct chain_of *c = &chains.of[chains.n++];

	c->image = chains.n == 2 ? SECOND : 0x1000;
	c->answer = answer;
	for (uint32_t i = 0; i < n; i++) {
		c->places.frames[i] = (struct runtime_frame){.line = line + i};
		c->places.natives[i] = natives[i];
	}
	memset(c->places.functions, 0, sizeof(c->places.functions));
	c->frames = (struct runtime_frames){
		.items = c->places.frames, .n = n, .functions = c->places.functions};
	return c;
}

static void expect(enum frame_source_answer answer, enum frame_source_answer lacks,
		   const char *lines)
{
	const struct frame_source_sample sample = {
		.process = &process, .frames = frames, .n = N_NATIVE, .whole = true};
	struct runtime_frames got;
	char text[128] = "";

	CHECK_INT(chains_merge(&chains, &sample, &got), ==, answer);
	for (size_t i = 0; answer == FRAME_SOURCE_READY && i < got.n; i++)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%u ",
			       got.items[i].line);
	CHECK_STR(text, lines);
	if (answer == FRAME_SOURCE_READY)
		CHECK_INT(got.lacks, ==, lacks);
}

static const uint32_t outside[] = {1, 1, 5, 5}, inside[] = {3, 3}, beyond[] = {3, UNKNOWN};

static void test_order(void)
{
	begin();
	add(FRAME_SOURCE_READY, 10, 4, outside);
	add(FRAME_SOURCE_READY, 20, 2, inside);
	expect(FRAME_SOURCE_READY, FRAME_SOURCE_NONE, "10 11 20 21 12 13 ");
	begin();
	add(FRAME_SOURCE_READY, 10, 2, (const uint32_t[]){2, 2});
	add(FRAME_SOURCE_READY, 20, 2, (const uint32_t[]){0, 4});
	add(FRAME_SOURCE_READY, 30, 1, (const uint32_t[]){3});
	expect(FRAME_SOURCE_READY, FRAME_SOURCE_NONE, "20 10 11 30 21 ");
}

/* Each says which native frames are calls of its own function. */
static void test_functions(void)
{
	const struct frame_source_sample sample = {.frames = frames, .n = N_NATIVE};
	struct runtime_frames got;

	begin();
	add(FRAME_SOURCE_READY, 10, 4, outside)->places.functions[1] = 0x1000;
	add(FRAME_SOURCE_READY, 20, 2, inside)->places.functions[3] = 0x3000;
	CHECK_INT(chains_merge(&chains, &sample, &got), ==, FRAME_SOURCE_READY);
	for (uint64_t i = 0; i < N_NATIVE; i++)
		CHECK_INT(got.functions[i], ==, i == 1 || i == 3 ? i * 0x1000 : 0);
}

/* Where the native stack was not followed, nobody knows how those of two are nested. */
static void test_unknown_order(void)
{
	begin();
	add(FRAME_SOURCE_READY, 10, 4, outside);
	add(FRAME_SOURCE_READY, 20, 2, beyond);
	expect(FRAME_SOURCE_READY, FRAME_SOURCE_NONE, "10 11 20 12 13 21 ");
	begin();
	add(FRAME_SOURCE_READY, 10, 3, (const uint32_t[]){1, 5, UNKNOWN});
	add(FRAME_SOURCE_READY, 20, 2, beyond);
	expect(FRAME_SOURCE_READY, FRAME_SOURCE_UNPROVEN, "10 20 11 ");
	/* Both say that it is theirs. */
	begin();
	add(FRAME_SOURCE_READY, 10, 4, outside);
	add(FRAME_SOURCE_READY, 20, 2, outside);
	expect(FRAME_SOURCE_READY, FRAME_SOURCE_UNPROVEN, "");
}

static void lacks_if_passed(enum frame_source_answer second, bool anyway)
{
	begin();
	add(FRAME_SOURCE_READY, 10, 4, outside);
	add(second, 0, 0, NULL);
	expect(FRAME_SOURCE_READY, anyway ? second : FRAME_SOURCE_NONE, "10 11 12 13 ");
	frames[3].address = SECOND + 7;
	expect(FRAME_SOURCE_READY, second, "10 11 12 13 ");
	begin();
	add(FRAME_SOURCE_NONE, 0, 0, NULL);
	add(second, 0, 0, NULL);
	expect(anyway ? second : FRAME_SOURCE_NONE, FRAME_SOURCE_NONE, "");
	frames[3].address = SECOND + 7;
	expect(second, FRAME_SOURCE_NONE, "");
}

/* Frames of one that is not read are missing where it has native frames. */
static void test_lacks(void)
{
	lacks_if_passed(FRAME_SOURCE_MISSED, false);
	lacks_if_passed(FRAME_SOURCE_UNREAD, false);
	lacks_if_passed(FRAME_SOURCE_UNPROVEN, true);
}

/* A process with one interpreter has its answer. */
static void test_one(void)
{
	begin();
	add(FRAME_SOURCE_MISSED, 0, 0, NULL);
	expect(FRAME_SOURCE_MISSED, FRAME_SOURCE_NONE, "");
	begin();
	add(FRAME_SOURCE_READY, 10, 4, outside);
	expect(FRAME_SOURCE_READY, FRAME_SOURCE_NONE, "10 11 12 13 ");
}

int main(void)
{
	RUN(test_order);
	RUN(test_functions);
	RUN(test_unknown_order);
	RUN(test_lacks);
	RUN(test_one);
	return 0;
}
