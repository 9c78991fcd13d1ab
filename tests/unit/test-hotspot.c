/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks through Java frames with recorded reads of HotSpot 11, 17, 21 and 25 (tests/data/runtimes):
 * the frames are those that were looked through when they were recorded, and whatever is missing or
 * has changed since makes a walk end, but never go wrong.
 */
#include "runtimes/hotspot-internal.h"
#include "tests/runtimes/recorded-hotspot.h"
#include "tests/unit/recorded-file.h"
#include "tests/unit/test.h"

static const char *const versions[] = {"11", "17", "21", "25"};
enum { N_VERSIONS = 4 };

static uint8_t *bytes;
static struct recording recorded;
static struct hotspot *hotspot;

static char *load(const char *version, const char *suffix, size_t *ret_n)
{
	return recorded_file_load("runtimes/hotspot-", version, suffix, ret_n);
}

static int start(void)
{
	const struct memory memory = {.read = recording_read, .ctx = &recorded};
	const char *why;

	return hotspot_new(&hotspot, &memory, recorded.image, &why);
}

static void open_version(const char *version)
{
	size_t n;

	bytes = (uint8_t *)load(version, "gz", &n);
	CHECK(recording_parse(&recorded, bytes, n));
	CHECK_INT(start(), ==, 0);
	CHECK(hotspot_is_tried(hotspot));
	CHECK(strncmp(hotspot_release(hotspot), version, 2) == 0);
}

static void close_version(void)
{
	hotspot = hotspot_free(hotspot);
	recording_deinit(&recorded);
	free(bytes);
}

/* What all samples' walks print; free(). */
static char *walk_all(void)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	for (uint32_t i = 0; i < recorded.n_samples; i++)
		(void)recording_walk(hotspot, &recorded.samples[i], f);
	CHECK_INT(fclose(f), ==, 0);
	return text;
}

static void test_recorded(void)
{
	for (int v = 0; v < N_VERSIONS; v++) {
		size_t n;
		char *expected = load(versions[v], "expect", &n), *cold, *warm;

		open_version(versions[v]);
		cold = walk_all();
		CHECK_STR(cold, expected);
		warm = walk_all();
		CHECK_STR(warm, expected);
		free(cold);
		free(warm);
		free(expected);
		close_version();
	}
}

/* What is remembered costs a look at each frame's head, and no more. */
static void test_remembered(void)
{
	for (int v = 0; v < N_VERSIONS; v++) {
		uint64_t learned;

		open_version(versions[v]);
		free(walk_all());
		learned = hotspot_stats(hotspot)->learned;
		CHECK_INT(learned, >, 20);
		free(walk_all());
		/* Two may be remembered in the same place. */
		CHECK_INT(hotspot_stats(hotspot)->learned - learned, <, learned / 4);
		CHECK_INT(hotspot_stats(hotspot)->stale, ==, 0);
		close_version();
	}
}

/* With the memory of one range gone, walks end; no frame appears that was in no walk before. */
static void test_missing(void)
{
	open_version("17");
	char *before = walk_all();
	int ended = 0;

	for (uint32_t gone = 0; gone < recorded.n_ranges; gone += 1 + recorded.n_ranges / 150) {
		uint32_t n = recorded.ranges[gone].n;
		char *after;

		recorded.ranges[gone].n = 0;
		hotspot = hotspot_free(hotspot);
		if (start() == 0) {
			after = walk_all();
			ended += strcmp(after, before) != 0;
			/* Without a line number, a file or a level, or an end. */
			for (char *line = strtok(after, "\n"); line; line = strtok(NULL, "\n")) {
				char name[256];

				if (sscanf(line, "  %255[^( ] (", name) == 1 && name[0] != '=')
					CHECK(strstr(before, name) != NULL);
			}
			free(after);
		}
		recorded.ranges[gone].n = n;
	}
	CHECK_INT(ended, >, 10);
	free(before);
	hotspot = hotspot_free(hotspot);
	CHECK_INT(start(), ==, 0);
	close_version();
}

/* The bytes of the range that holds an address. */
static uint8_t *bytes_at(uint64_t at)
{
	for (uint32_t i = 0; i < recorded.n_ranges; i++) {
		const struct recorded_range *r = &recorded.ranges[i];

		if (at >= r->at && at - r->at < r->n)
			return bytes + (r->bytes - bytes) + (at - r->at);
	}
	return NULL;
}

static void change_name(const char *from, const char *to)
{
	uint32_t before = (uint32_t)(hs(hotspot, HS_SYMBOL_BODY) - hs(hotspot, HS_SYMBOL_LENGTH));
	uint16_t wanted = (uint16_t)strlen(from), length;

	for (uint32_t i = 0; i < recorded.n_ranges; i++) {
		for (uint32_t k = before; k + wanted <= recorded.ranges[i].n; k++) {
			uint8_t *at = bytes_at(recorded.ranges[i].at + k);

			memcpy(&length, at - before, sizeof(length));
			if (length == wanted && memcmp(at, from, wanted) == 0)
				memcpy(at, to, wanted);
		}
	}
}

/*
 * Code and methods that were freed, and others that now are where they were: another compilation,
 * another ConstMethod. What is remembered of the addresses is not believed.
 */
static void test_reused(void)
{
	for (int v = 0; v < N_VERSIONS; v++) {
		int n_codes = 0, n_spots = 0;

		open_version(versions[v]);
		char *before = walk_all(), *after;

		CHECK(strstr(before, "Mix.work") != NULL);
		change_name("work", "rest");
		for (int i = 0; i < HOTSPOT_N_CODES; i++) {
			const struct blob *b = &hotspot->codes[i].blob;

			if (!hotspot->codes[i].pc || b->kind != BLOB_NMETHOD)
				continue;
			bytes_at(b->at + (uint64_t)hs(hotspot, HS_NMETHOD_COMPILE_ID))[3] = 0x5a;
			n_codes++;
		}
		for (int i = 0; i < HOTSPOT_N_SPOTS; i++) {
			if (!hotspot->spots[i].method)
				continue;
			/* Its vtable, once for several places in it. */
			bytes_at(hotspot->spots[i].method)[1] = 0x5a;
			n_spots++;
		}
		CHECK_INT(n_codes, >, 0);
		CHECK_INT(n_spots, >, 0);
		after = walk_all();
		CHECK(strstr(after, "Mix.work") == NULL);
		CHECK(strstr(after, "Mix.rest") != NULL);
		CHECK_INT(hotspot_stats(hotspot)->stale, >, 0);
		free(before);
		free(after);
		close_version();
	}
}

/* A budget that is spent is said. */
static void test_spent(void)
{
	const struct recorded_walk *w;
	struct runtime_stack stack;
	struct runtime_regs regs;
	struct stepped_frame frames[8];
	size_t n;

	open_version("17");
	w = &recorded.samples[0];
	stack = (struct runtime_stack){w->stack, w->r[7], w->n, NULL};
	regs = (struct runtime_regs){
		.pc = w->r[16], .sp = w->r[7], .fp = w->r[6], .innermost = true};
	memcpy(regs.r, w->r, sizeof(w->r));
	hotspot_begin(hotspot, 3, 1000);
	CHECK_INT(hotspot_step(hotspot, &stack, &regs, frames, 8, &n), ==, RUNTIME_SPENT);
	CHECK_INT(regs.pc, ==, w->r[16]);
	close_version();
}

/* A stack copy of any size: the frames that it has, and then its end. */
static void test_cut(void)
{
	open_version("21");
	char *whole = walk_all(), *cut;
	struct recorded_walk *samples = recorded.samples;

	for (uint32_t size = 0; size < 2000; size += 40) {
		for (uint32_t i = 0; i < recorded.n_samples; i++)
			samples[i].n = samples[i].n < size ? samples[i].n : size;
		free(walk_all());
	}
	for (uint32_t i = 0; i < recorded.n_samples; i++)
		samples[i].n = 64;
	cut = walk_all();
	CHECK(strstr(cut, "= end of the copy") != NULL);
	CHECK_INT(strlen(cut), <, strlen(whole));
	free(cut);
	free(whole);
	close_version();
}

int main(void)
{
	RUN(test_recorded);
	RUN(test_remembered);
	RUN(test_missing);
	RUN(test_reused);
	RUN(test_spent);
	RUN(test_cut);
	return 0;
}
