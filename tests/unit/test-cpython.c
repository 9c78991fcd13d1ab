/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks through Python's frames with recorded reads of CPython 3.6 to 3.15 (tests/data/cpython):
 * the frames are those that the interpreters themselves said when they were recorded. Then the
 * memory lies: chains that loop, pointers to nowhere, names of 4 GiB.
 */
#include <errno.h>

#include "runtimes/cpython-internal.h"
#include "tests/runtimes/recorded-chain.h"
#include "tests/unit/recorded-process.h"
#include "tests/unit/test.h"

static const char *const versions[] = {"3.6",  "3.7",  "3.8",  "3.9",  "3.10",
				       "3.11", "3.12", "3.13", "3.14", "3.15"};
enum { N_VERSIONS = 10 };

static struct interp *interp;
static const char *why = ""; /* start(&process) failed */
static struct chained_frame frames[CHAIN_MAX_FRAMES];
static size_t n_frames;

static struct cpython *python(void)
{
	return (struct cpython *)interp;
}

static void stop(void)
{
	interp = interp_free(interp);
}

static int start(const struct recorded_process *p)
{
	stop();
	return interp_new(&interp, &p->memory, p->recorded.image, &why);
}

static void walk(const struct recorded_walk *sample, FILE *out)
{
	(void)recorded_walk_chain(interp, sample, out);
}

static struct recorded_process process = {
	.prefix = "cpython/", .start = start, .stop = stop, .walk = walk};

static void open_version(const char *version)
{
	recorded_process_open(&process, version);
	CHECK(interp_is_tried(interp));
	CHECK(strncmp(interp_release(interp), version, strlen(version)) == 0);
}

static void close_version(void)
{
	recorded_process_close(&process);
}

static char *walk_all(void)
{
	return recorded_process_walk(&process);
}

static const struct chained_thread unknown_thread = {.tid = 999999};

static uint32_t first_tid(void)
{
	return (uint32_t)process.recorded.samples[0].r[RECORDED_TID];
}

/* The first thread's frames. */
static enum chain_result walk_first(uint32_t reads)
{
	interp_begin(interp, reads, 1 << 20);
	return interp_walk(interp, &(const struct chained_thread){.tid = first_tid()}, frames,
			   CHAIN_MAX_FRAMES, &n_frames);
}

static uint8_t *bytes_at(uint64_t at)
{
	return recorded_process_at(&process, at);
}

static uint64_t u64_at(uint64_t at)
{
	return memory_u64_of(bytes_at(at), 0);
}

static void put_u64(uint64_t at, uint64_t value)
{
	CHECK(bytes_at(at) != NULL);
	memcpy(bytes_at(at), &value, sizeof(value));
}

static uint64_t field(uint64_t of, enum cpython_value v)
{
	return of + (uint64_t)py(python(), v);
}

static uint64_t code_of(const struct chained_frame *f)
{
	return u64_at(field(f->address, PY_FRAME_CODE)) & ~UINT64_C(3);
}

/* ---- What was recorded ---- */

static void test_recorded(void)
{
	for (int v = 0; v < N_VERSIONS; v++) {
		open_version(versions[v]);
		free(recorded_process_check(&process, versions[v]));
		close_version();
	}
}

/* What is remembered costs a look at the heads of each code object and of its texts once in a walk,
 * and the frames: one read of all, or one for each object. */
static void test_remembered(void)
{
	for (int v = 0; v < N_VERSIONS; v++) {
		uint64_t learned, reads;

		open_version(versions[v]);
		free(walk_all());
		learned = interp_stats(interp)->learned;
		CHECK_INT(learned, >, 20);
		CHECK_INT(walk_first(1000), ==, CHAIN_WHOLE);
		reads = interp_stats(interp)->reads;
		CHECK_INT(walk_first(1000), ==, CHAIN_WHOLE);
		CHECK_INT(n_frames, >, 30);
		CHECK_INT(interp_stats(interp)->reads - reads, <,
			  python()->tables.minor < 11 ? n_frames + 24 : 26);
		CHECK_INT(interp_stats(interp)->learned, ==, learned);
		CHECK_INT(interp_stats(interp)->stale, ==, 0);
		close_version();
	}
}

/* In a process that was walked often, frames that are where they were cost nothing more. */
static void test_believed(void)
{
	char function[256];

	for (int v = 0; v < N_VERSIONS; v++) {
		uint64_t reads, name, of, other;

		open_version(versions[v]);
		for (int i = 0; i < TRUST_AFTER + 8; i++)
			CHECK_INT(walk_first(1000), ==, CHAIN_WHOLE);
		reads = interp_stats(interp)->reads;
		CHECK_INT(walk_first(1000), ==, CHAIN_WHOLE);
		CHECK_INT(interp_stats(interp)->reads - reads, <=,
			  python()->tables.minor < 11 ? n_frames + 2 : 4);
		/* Another code object is where the outermost frame's was: it is seen in time, and
		 * from then on at once. */
		of = field(code_of(&frames[n_frames - 1]), PY_CODE_NAME);
		other = field(code_of(&frames[0]), PY_CODE_NAME);
		(void)snprintf(function, sizeof(function), "%s",
			       interp_text(interp, frames[0].function));
		name = u64_at(of);
		CHECK(name != u64_at(other));
		put_u64(of, u64_at(other));
		for (int i = 0; i < 17; i++)
			CHECK_INT(walk_first(1000), ==, CHAIN_WHOLE);
		CHECK_STR(interp_text(interp, frames[n_frames - 1].function), function);
		put_u64(of, name);
		CHECK_INT(walk_first(1000), ==, CHAIN_WHOLE);
		CHECK_STR(interp_text(interp, frames[n_frames - 1].function), "<module>");
		CHECK_INT(interp_stats(interp)->stale, ==, 2);
		close_version();
	}
}

static void test_entries(void)
{
	uint64_t start_of, end;

	for (int v = 0; v < N_VERSIONS; v++) {
		uint32_t n = 0;

		open_version(versions[v]);
		CHECK_INT(walk_first(1000), ==, CHAIN_WHOLE);
		for (size_t i = 0; i < n_frames; i++)
			n += frames[i].entry;
		CHECK(frames[n_frames - 1].entry);
		if (python()->tables.minor < 11)
			CHECK_INT(n, ==, n_frames);
		else
			CHECK_INT(n, ==, 1);
		CHECK(interp_eval_range(interp, 0, &start_of, &end) && start_of < end);
		/* In these two the compiler has put most of it elsewhere. */
		if (python()->tables.minor >= 14)
			CHECK(interp_eval_range(interp, 1, &start_of, &end) &&
			      end - start_of > 65536);
		else
			CHECK(!interp_eval_range(interp, 1, &start_of, &end));
		CHECK(!interp_eval_range(interp, 100, &start_of, &end));
		close_version();
	}
}

static void test_unknown_thread(void)
{
	for (int v = 0; v < N_VERSIONS; v++) {
		uint64_t reads;

		uint32_t n_looks = 0;

		open_version(versions[v]);
		for (int i = 0; i < 640; i++) {
			reads = interp_stats(interp)->reads;
			interp_begin(interp, 1000, 1 << 20);
			CHECK_INT(interp_walk(interp, &unknown_thread, frames, 8, &n_frames), ==,
				  CHAIN_NO_THREAD);
			CHECK_INT(n_frames, ==, 0);
			n_looks += interp_stats(interp)->reads - reads >= 4;
		}
		/* It is believed for a while, which doubles. */
		CHECK(n_looks >= 20 && n_looks <= 25);
		close_version();
	}
}

/* A thread that does not say yet whose its state is gets its frames soon after it has. */
static void test_beginning(void)
{
	for (int v = 0; v < N_VERSIONS; v++) {
		uint64_t at, number, native = 0;
		bool says;
		int n = 0;

		open_version(versions[v]);
		CHECK_INT(walk_first(1000), ==, CHAIN_WHOLE);
		at = python()->states[0].at;
		says = py_known(python(), PY_THREAD_NATIVE_ID);
		number = u64_at(field(at, PY_THREAD_ID));
		put_u64(field(at, PY_THREAD_ID), 0);
		if (says) {
			native = u64_at(field(at, PY_THREAD_NATIVE_ID));
			put_u64(field(at, PY_THREAD_NATIVE_ID), 0);
		}
		for (int i = 0; i < 3; i++)
			CHECK_INT(walk_first(1000), ==, CHAIN_NO_THREAD);
		put_u64(field(at, PY_THREAD_ID), number);
		if (says)
			put_u64(field(at, PY_THREAD_NATIVE_ID), native);
		while (walk_first(1000) == CHAIN_NO_THREAD)
			CHECK_INT(++n, <, 5);
		CHECK_INT(walk_first(1000), ==, CHAIN_WHOLE);
		close_version();
	}
}

/* A thread of which nobody knows the number yet is found by its stack, and no other one. */
static void test_by_stack(void)
{
	for (int v = 0; v < N_VERSIONS; v++) {
		struct chained_thread thread = {.tid = 0};
		struct chained_frame first;
		uint64_t number;
		size_t n;

		open_version(versions[v]);
		CHECK_INT(walk_first(1000), ==, CHAIN_WHOLE);
		first = frames[0];
		n = n_frames;
		number = u64_at(field(python()->states[0].at, PY_THREAD_ID));
		for (int i = 0; i < 3; i++) {
			thread.stack = number - 4096;
			interp_begin(interp, 1000, 1 << 20);
			CHECK_INT(interp_walk(interp, &thread, frames, CHAIN_MAX_FRAMES, &n_frames),
				  ==, CHAIN_WHOLE);
			CHECK_INT(n_frames, ==, n);
			CHECK_INT(frames[0].address, ==, first.address);
			thread.stack = number + 4096;
			interp_begin(interp, 1000, 1 << 20);
			CHECK_INT(interp_walk(interp, &thread, frames, CHAIN_MAX_FRAMES, &n_frames),
				  !=, CHAIN_WHOLE);
		}
		thread.stack = 0;
		interp_begin(interp, 1000, 1 << 20);
		CHECK_INT(interp_walk(interp, &thread, frames, CHAIN_MAX_FRAMES, &n_frames), ==,
			  CHAIN_SPENT);
		CHECK_INT(walk_first(1000), ==, CHAIN_WHOLE);
		close_version();
	}
}

static void test_budget(void)
{
	for (int v = 0; v < N_VERSIONS; v++) {
		bool cut = false;

		open_version(versions[v]);
		for (uint32_t reads = 0; reads < 60; reads++) {
			enum chain_result r = walk_first(reads);

			CHECK(r == CHAIN_SPENT || r == CHAIN_WHOLE);
			cut = cut || r == CHAIN_SPENT;
		}
		CHECK(cut);
		interp_begin(interp, 1000, 1 << 20);
		CHECK_INT(interp_walk(interp, &(const struct chained_thread){.tid = first_tid()},
				      frames, 5, &n_frames),
			  ==, CHAIN_CUT);
		CHECK_INT(n_frames, ==, 5);
		close_version();
	}
}

/* ---- What changes, or lies ---- */

static void test_missing(void)
{
	open_version("3.12");
	recorded_process_lose(&process, UINT32_MAX, "=");
	close_version();
}

/* A code object that was freed, and another one that now is where it was. */
static void test_reused(void)
{
	for (int v = 0; v < N_VERSIONS; v++) {
		uint64_t code, other;

		open_version(versions[v]);
		CHECK_INT(walk_first(1000), ==, CHAIN_WHOLE);
		CHECK_STR(interp_text(interp, frames[1].function), "recursion");
		code = code_of(&frames[1]);
		other = code_of(&frames[n_frames - 1]);
		put_u64(field(code, PY_CODE_NAME), u64_at(field(other, PY_CODE_NAME)));
		CHECK_INT(walk_first(1000), ==, CHAIN_WHOLE);
		CHECK_STR(interp_text(interp, frames[1].function), "<module>");
		CHECK_INT(interp_stats(interp)->stale, ==, 1);
		close_version();
	}
}

/*
 * A generated function that was freed, and another one that now is where it was: only the text of
 * its name is another, with another hash, or without one.
 */
static void test_renamed(void)
{
	static const uint64_t hashes[][2] = {
		{0x1111, 0x2222}, {PYTHON_NO_HASH, PYTHON_NO_HASH}, {0x1111, PYTHON_NO_HASH}};

	for (int v = 0; v < N_VERSIONS; v++) {
		for (size_t i = 0; i < sizeof(hashes) / sizeof(*hashes); i++) {
			uint64_t name, hash;

			open_version(versions[v]);
			CHECK_INT(walk_first(1000), ==, CHAIN_WHOLE);
			name = u64_at(field(code_of(&frames[1]), PY_CODE_NAME));
			hash = field(name, PY_TEXT_LENGTH) + 8;
			put_u64(hash, hashes[i][0]);
			CHECK_INT(walk_first(1000), ==, CHAIN_WHOLE);
			CHECK_STR(interp_text(interp, frames[1].function), "recursion");
			CHECK_INT(interp_stats(interp)->stale, ==, 0);
			put_u64(hash, hashes[i][1]);
			memcpy(bytes_at(field(name, PY_TEXT_ASCII)), "incurable", 9);
			CHECK_INT(walk_first(1000), ==, CHAIN_WHOLE);
			CHECK_STR(interp_text(interp, frames[1].function), "incurable");
			CHECK_INT(interp_stats(interp)->stale, ==, 1);
			close_version();
		}
	}
}

static void test_loops(void)
{
	for (int v = 0; v < N_VERSIONS; v++) {
		for (size_t from = 1; from < 30; from += 7) {
			open_version(versions[v]);
			CHECK_INT(walk_first(1000), ==, CHAIN_WHOLE);
			put_u64(field(frames[from].address, PY_FRAME_PREVIOUS),
				frames[from / 2].address);
			CHECK_INT(walk_first(1000), ==, CHAIN_UNPROVEN);
			CHECK_INT(n_frames, <, 200);
			close_version();
		}
	}
}

/* Pointers to nowhere, not aligned, into the middle of something else: what comes before stays. */
static void test_wild(void)
{
	static const uint64_t wild[] = {8, 0x4141414141414141, 0x4141414141414140, UINT64_MAX,
					UINT64_MAX - 15};

	for (int v = 0; v < N_VERSIONS; v++) {
		for (size_t i = 0; i < sizeof(wild) / sizeof(*wild); i++) {
			open_version(versions[v]);
			CHECK_INT(walk_first(1000), ==, CHAIN_WHOLE);
			put_u64(field(frames[20].address, PY_FRAME_PREVIOUS), wild[i]);
			CHECK_INT(walk_first(1000), ==, CHAIN_UNPROVEN);
			CHECK_INT(n_frames, ==, 21);
			put_u64(field(frames[10].address, PY_FRAME_CODE), wild[i]);
			CHECK_INT(walk_first(1000), ==, CHAIN_UNPROVEN);
			CHECK_INT(n_frames, ==, 10);
			put_u64(field(frames[4].address, PY_FRAME_CODE),
				u64_at(field(code_of(&frames[4]), PY_CODE_NAME)));
			CHECK_INT(walk_first(1000), ==, CHAIN_UNPROVEN);
			CHECK_INT(n_frames, ==, 4);
			close_version();
		}
	}
}

/* Texts and tables that say to be larger than anything, in objects that nobody has read before. */
static void test_huge(void)
{
	static const uint64_t sizes[] = {UINT64_C(1) << 32, UINT64_C(1) << 40, UINT64_MAX,
					 UINT64_MAX / 2};
	for (int v = 0; v < N_VERSIONS; v++) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			uint64_t code;

			open_version(versions[v]);
			CHECK_INT(walk_first(1000), ==, CHAIN_WHOLE);
			code = code_of(&frames[1]);
			put_u64(field(u64_at(field(code, PY_CODE_LINES)), PY_OBJECT_SIZE),
				sizes[i]);
			CHECK_INT(start(&process), ==, 0);
			CHECK_INT(walk_first(1000), ==, CHAIN_WHOLE);
			CHECK_INT(frames[1].line, ==, 0);
			put_u64(field(u64_at(field(code, PY_CODE_NAME)), PY_TEXT_LENGTH), sizes[i]);
			CHECK_INT(start(&process), ==, 0);
			CHECK_INT(walk_first(1000), ==, CHAIN_UNPROVEN);
			CHECK_INT(n_frames, ==, 1);
			CHECK_INT(interp_stats(interp)->bytes, <, 200000);
			close_version();
		}
	}
}

/* A list of threads that does not end: each walk has its budget, and the next goes on there. */
static void test_endless_threads(void)
{
	for (int v = 0; v < N_VERSIONS; v++) {
		uint64_t first;

		open_version(versions[v]);
		CHECK_INT(walk_first(1000), ==, CHAIN_WHOLE);
		first = u64_at(field(python()->interp, PY_INTERP_THREADS));
		put_u64(field(first, PY_THREAD_NEXT), first);
		for (int i = 0; i < 5; i++) {
			enum chain_result r;

			interp_begin(interp, 500, 1 << 20);
			r = interp_walk(interp, &unknown_thread, frames, 8, &n_frames);
			CHECK(r == CHAIN_SPENT || r == CHAIN_NO_THREAD);
		}
		close_version();
	}
}

static void check_refused(const char *version, uint64_t at, uint64_t value, const char *expected)
{
	open_version(version);
	put_u64(python()->tables.interpreters - (uint64_t)py(python(), PY_INTERPRETERS) + at,
		value);
	CHECK_INT(start(&process), ==, -ENOTSUP);
	CHECK(strstr(why, expected) != NULL);
	close_version();
}

static void test_refused(void)
{
	static const uint8_t words[] = {5,  8,	9,  20, 21, 22, 23, 24, 25, 26, 29, 30, 31,
					33, 35, 37, 38, 39, 43, 45, 65, 66, 68, 69, 70};

	check_refused("3.13", 8, 0x032000f0, "newer than any");
	check_refused("3.14", 8, 0x040e00f0, "newer than any");
	for (size_t i = 0; i < sizeof(words); i++)
		check_refused("3.13", words[i] * 8, UINT64_MAX - 4, "too large");
}

/* ---- Lines ---- */

/* Each of the three kinds of tables of: line 10 for 4 bytes, line 12 for 2, nothing for 2, line 9.
 */
static void test_lines(void)
{
	static const uint8_t lnotab[] = {4, 2, 2, 0xfd};
	static const uint8_t ranges[] = {4, 0, 2, 2, 2, 0x80, 4, 0xfd};
	/* A short form, one of two lines further, none, a long one of 3 lines back. */
	static const uint8_t locations[] = {0x81, 0, 0xe0, 5, 6, 0xf8, 0xf1, 7, 1, 2, 3};
	static const uint32_t expected[] = {10, 10, 12, 0, 9, 9};

	for (int32_t unit = 0; unit < 6; unit++) {
		uint32_t line = expected[unit];

		CHECK_INT(cpython_find_line(10, ranges, sizeof(ranges), 10, unit * 2), ==, line);
		CHECK_INT(cpython_find_line(11, locations, sizeof(locations), 10, unit * 2), ==,
			  line);
		if (line)
			CHECK_INT(cpython_find_line(9, lnotab, sizeof(lnotab), 10, unit * 2), ==,
				  line);
	}
	for (uint32_t minor = 6; minor < 16; minor++) {
		CHECK_INT(cpython_find_line(minor, ranges, sizeof(ranges), 10, -1), ==, 10);
		CHECK_INT(cpython_find_line(minor, NULL, 0, 10, 4), ==, minor < 10 ? 10 : 0);
	}
	CHECK_INT(cpython_find_line(10, ranges, sizeof(ranges), 10, 99), ==, 0);
	CHECK_INT(cpython_find_line(11, locations, sizeof(locations), 10, 99), ==, 0);
}

int main(void)
{
	NEED_X86_64();
	RUN(test_recorded);
	RUN(test_remembered);
	RUN(test_believed);
	RUN(test_entries);
	RUN(test_unknown_thread);
	RUN(test_beginning);
	RUN(test_by_stack);
	RUN(test_budget);
	RUN(test_missing);
	RUN(test_reused);
	RUN(test_renamed);
	RUN(test_loops);
	RUN(test_wild);
	RUN(test_huge);
	RUN(test_endless_threads);
	RUN(test_refused);
	RUN(test_lines);
	return 0;
}
