/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks through JavaScript's frames with recorded reads of V8 of Node.js 16 to 24 (tests/data/v8):
 * the frames are those that were looked through when they were recorded, and whatever is missing or
 * has changed since leaves a function without a name, but never gives it another's.
 */
#include <zlib.h>

#include "runtimes/v8-internal.h"
#include "tests/runtimes/recorded-v8.h"
#include "tests/unit/test.h"

static const char *const versions[] = {"16", "18", "20", "22", "24"};
enum { N_VERSIONS = 5, MAX_FILE = 4 << 20 };

static uint8_t *bytes;
static struct recording recorded;
static struct v8 *v8;

static char *load(const char *version, const char *suffix, size_t *ret_n)
{
	const char *top = getenv("srcdir");
	char path[4096], *text = calloc(1, MAX_FILE);
	gzFile f;
	int n;

	(void)snprintf(path, sizeof(path), "%s/tests/data/v8/%s.%s", top ? top : ".", version,
		       suffix);
	f = gzopen(path, "rb");
	CHECK(f && text);
	n = gzread(f, text, MAX_FILE - 1);
	CHECK_INT(n, >, 0);
	(void)gzclose(f);
	*ret_n = (size_t)n;
	return text;
}

static int start(void)
{
	const struct memory memory = {.read = recording_read, .ctx = &recorded};
	const char *why;

	return v8_new(&v8, &memory, recorded.image, &why);
}

static void open_version(const char *version)
{
	size_t n;

	bytes = (uint8_t *)load(version, "gz", &n);
	CHECK(recording_parse(&recorded, bytes, n));
	CHECK_INT(start(), ==, 0);
	CHECK(v8_is_tried(v8));
}

static void close_version(void)
{
	v8 = v8_free(v8);
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
		(void)recorded_walk_v8(v8, &recorded.samples[i], f);
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
		CHECK(strstr(cold, "deep (") && strstr(cold, "mix.js:"));
		free(cold);
		free(warm);
		free(expected);
		close_version();
	}
}

static void test_remembered(void)
{
	for (int v = 0; v < N_VERSIONS; v++) {
		uint64_t learned;

		open_version(versions[v]);
		free(walk_all());
		learned = v8_stats(v8)->learned;
		CHECK_INT(learned, >, 10);
		free(walk_all());
		/* Two may be remembered in the same place. */
		CHECK_INT(v8_stats(v8)->learned - learned, <, learned / 4);
		CHECK_INT(v8_stats(v8)->stale, ==, 0);
		close_version();
	}
}

/* With the memory of one range gone, no function appears that was in no walk before. */
static void test_missing(void)
{
	open_version("20");
	char *before = walk_all();
	int ended = 0;

	for (uint32_t gone = 0; gone < recorded.n_ranges; gone += 1 + recorded.n_ranges / 150) {
		uint32_t n = recorded.ranges[gone].n;
		char *after;

		recorded.ranges[gone].n = 0;
		v8 = v8_free(v8);
		if (start() == 0) {
			after = walk_all();
			ended += strcmp(after, before) != 0;
			for (char *line = strtok(after, "\n"); line; line = strtok(NULL, "\n")) {
				char name[256];

				if (sscanf(line, "  %255[^( ] (", name) == 1 && name[0] != '=' &&
				    name[0] != '[')
					CHECK(strstr(before, name) != NULL);
			}
			free(after);
		}
		recorded.ranges[gone].n = n;
	}
	CHECK_INT(ended, >, 10);
	free(before);
	v8 = v8_free(v8);
	CHECK_INT(start(), ==, 0);
	close_version();
}

/* The bytes at an address. */
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
	size_t n = strlen(from) + 1;

	for (uint32_t i = 0; i < recorded.n_ranges; i++) {
		for (uint32_t k = 0; k + n <= recorded.ranges[i].n; k++) {
			uint8_t *at = bytes_at(recorded.ranges[i].at + k);

			if (memcmp(at, from, n) == 0)
				memcpy(at, to, n);
		}
	}
}

/*
 * Functions that were freed, and others that now are where they were, as another script's: what is
 * remembered of their addresses is not believed.
 */
static void test_reused(void)
{
	for (int v = 0; v < N_VERSIONS; v++) {
		int n_scripts = 0;

		open_version(versions[v]);
		char *before = walk_all(), *after;

		CHECK(strstr(before, " work (") != NULL);
		change_name("work", "rest");
		for (int i = 0; i < V8_N_SPOTS; i++) {
			uint64_t shared = v8->memo->spots[i].shared, script;

			if (!shared)
				continue;
			memcpy(&script, bytes_at(shared - 1 + v8_value(v8, V8_SHARED_SCRIPT)), 8);
			if (!bytes_at(script - 1 + v8_value(v8, V8_SCRIPT_ID)))
				continue;
			bytes_at(script - 1 + v8_value(v8, V8_SCRIPT_ID))[7] = 0x5a;
			n_scripts++;
		}
		CHECK_INT(n_scripts, >, 0);
		after = walk_all();
		CHECK(strstr(after, " work (") == NULL);
		CHECK(strstr(after, " rest (") != NULL);
		CHECK_INT(v8_stats(v8)->stale, >, 0);
		free(before);
		free(after);
		close_version();
	}
}

/* A function whose address has another one's by now has no name: its bytecode is not the
 * frame's. */
static void test_moved(void)
{
	for (int v = 0; v < N_VERSIONS; v++) {
		open_version(versions[v]);
		for (uint32_t i = 0; i < recorded.n_samples; i++) {
			uint64_t *words =
				(uint64_t *)(void *)(bytes + (recorded.samples[i].stack - bytes));

			/* The functions of all frames are the first one's. */
			for (uint32_t k = 0, first = 0; k < recorded.samples[i].n / 8; k++) {
				uint64_t word;

				memcpy(&word, &words[k], 8);
				if (!v8_shared(v8, word))
					continue;
				if (!first)
					first = k;
				memcpy(&words[k], &words[first], 8);
			}
		}
		char *after = walk_all();

		CHECK(strstr(after, "[JavaScript function not proven]") != NULL);
		CHECK(strstr(after, "Module._load (") == NULL);
		CHECK(strstr(after, " work (") != NULL); /* by its code */
		free(after);
		close_version();
	}
}

/* A stack copy of any size: the frames that it has, and then its end. */
static void test_cut(void)
{
	open_version("22");
	char *whole = walk_all(), *cut;

	for (uint32_t size = 0; size < 2000; size += 40) {
		for (uint32_t i = 0; i < recorded.n_samples; i++)
			recorded.samples[i].n =
				recorded.samples[i].n < size ? recorded.samples[i].n : size;
		free(walk_all());
	}
	for (uint32_t i = 0; i < recorded.n_samples; i++)
		recorded.samples[i].n = 64;
	cut = walk_all();
	CHECK_INT(strlen(cut), <, strlen(whole));
	free(cut);
	free(whole);
	close_version();
}

/* A budget that is spent is said. */
static void test_spent(void)
{
	const struct recorded_walk *w;
	struct runtime_stack stack;
	struct runtime_regs regs;
	struct stepped_frame frames[8];
	enum runtime_step step = RUNTIME_STEP;
	size_t n;

	open_version("18");
	w = &recorded.samples[0];
	stack = (struct runtime_stack){w->stack, w->r[7], w->n, NULL};
	regs = (struct runtime_regs){
		.pc = w->r[16], .sp = w->r[7], .fp = w->r[6], .innermost = true};
	memcpy(regs.r, w->r, sizeof(w->r));
	v8_begin(v8, 2, 1000);
	for (int i = 0; i < 64 && step == RUNTIME_STEP; i++)
		step = v8_step(v8, &stack, &regs, frames, 8, &n);
	CHECK_INT(step, ==, RUNTIME_SPENT);
	close_version();
}

int main(void)
{
	RUN(test_recorded);
	RUN(test_remembered);
	RUN(test_missing);
	RUN(test_reused);
	RUN(test_moved);
	RUN(test_cut);
	RUN(test_spent);
	return 0;
}
