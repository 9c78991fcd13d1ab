/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks through frames of PHP and Ruby with recorded reads (tests/data/interp): the frames are
 * those that the programs themselves said when they were recorded (tests/workloads/calls.*). Then
 * the memory lies.
 */
#include <elf.h>
#include <errno.h>
#include <stddef.h>

#include "runtimes/ruby-internal.h"
#include "runtimes/trust.h"
#include "tests/runtimes/recorded-chain.h"
#include "tests/unit/recorded-process.h"
#include "tests/unit/test.h"

static const struct {
	const char *name, *release;
	enum runtime_kind kind;
} recordings[] = {
#ifdef RECORDED_AARCH64
	{"php-8.2-aarch64", "8.2.", RUNTIME_KIND_PHP},
	{"ruby-2.7-aarch64", "2.7.", RUNTIME_KIND_RUBY},
	{"ruby-3.1-aarch64", "3.1.", RUNTIME_KIND_RUBY},
	{"ruby-3.3-aarch64", "3.3.", RUNTIME_KIND_RUBY},
#else
	{"php-7.4", "7.4", RUNTIME_KIND_PHP},	 {"php-8.1", "8.1.", RUNTIME_KIND_PHP},
	{"php-8.2", "8.2.", RUNTIME_KIND_PHP},	 {"php-8.3", "8.3.", RUNTIME_KIND_PHP},
	{"php-8.4", "8.4.", RUNTIME_KIND_PHP},	 {"php-8.5", "8.5.", RUNTIME_KIND_PHP},
	{"ruby-2.7", "2.7.", RUNTIME_KIND_RUBY}, {"ruby-3.0", "3.0.", RUNTIME_KIND_RUBY},
	{"ruby-3.1", "3.1.", RUNTIME_KIND_RUBY}, {"ruby-3.2", "3.2.", RUNTIME_KIND_RUBY},
	{"ruby-3.3", "3.3.", RUNTIME_KIND_RUBY}, {"ruby-3.4", "3.4.", RUNTIME_KIND_RUBY},
#endif
};
enum { N_RECORDINGS = ARRAY_SIZE(recordings) };

static struct interp *interp;

static void stop(void)
{
	interp = interp_free(interp);
}

static int start(const struct recorded_process *p)
{
	const char *why;

	stop();
	return interp_new(&interp, &p->memory, p->recorded.image, &why);
}

static void walk_sample(const struct recorded_walk *sample, FILE *out)
{
	(void)recorded_walk_chain(interp, sample, out);
}

static struct recorded_process process = {
	.prefix = "interp/", .start = start, .stop = stop, .walk = walk_sample};

static void open_recording(int i)
{
	recorded_process_open(&process, recordings[i].name);
	CHECK_INT(interp_kind(interp), ==, recordings[i].kind);
	CHECK(interp_is_tried(interp));
	CHECK(strncmp(interp_release(interp), recordings[i].release,
		      strlen(recordings[i].release)) == 0);
}

static void close_recording(void)
{
	recorded_process_close(&process);
}

static enum chain_result walk(uint32_t reads, struct chained_frame *frames, size_t max,
			      size_t *ret_n)
{
	const struct chained_thread thread = {.tid = (uint32_t)process.recorded.samples[0].r[0]};

	interp_begin(interp, reads, 1 << 20);
	return interp_walk(interp, &thread, frames, max, ret_n);
}

/* ---- What was recorded ---- */

static void test_recorded(void)
{
	for (int i = 0; i < N_RECORDINGS; i++) {
		open_recording(i);
		free(recorded_process_check(&process, recordings[i].name));
		close_recording();
	}
}

static uint64_t hidden; /* this word of memory cannot be read */
static bool (*read_all)(void *, uint64_t, void *, size_t);

static bool read_others(void *ctx, uint64_t address, void *ret, size_t n)
{
	if (hidden && address <= hidden && hidden - address < n)
		return false;
	return read_all(ctx, address, ret, n);
}

/* Ruby's names of methods are not there yet when a program begins, and are found later on. */
static void test_late_names(void)
{
	struct chained_frame frames[CHAIN_MAX_FRAMES];

	for (int i = 0; i < N_RECORDINGS; i++) {
		size_t n;

		if (recordings[i].kind != RUNTIME_KIND_RUBY)
			continue;
		open_recording(i);
		CHECK_INT(walk(4000, frames, CHAIN_MAX_FRAMES, &n), ==, CHAIN_WHOLE);
		hidden = ((struct ruby *)interp)->symbols;
		CHECK(hidden != 0);
		read_all = process.memory.read;
		process.memory.read = read_others;
		CHECK_INT(start(&process), ==, 0);
		for (int k = 0; k < 3; k++)
			CHECK_INT(walk(4000, frames, CHAIN_MAX_FRAMES, &n), ==, CHAIN_WHOLE);
		hidden = 0;
		for (int k = 0; k < 3; k++)
			CHECK_INT(walk(4000, frames, CHAIN_MAX_FRAMES, &n), ==, CHAIN_WHOLE);
		free(recorded_process_check(&process, recordings[i].name));
		process.memory.read = read_all;
		close_recording();
	}
}

/* Frames of evaluated functions have an address, and the outermost of each call says so. */
static void test_entries(void)
{
	struct chained_frame frames[CHAIN_MAX_FRAMES];

	for (int i = 0; i < N_RECORDINGS; i++) {
		size_t n, last;

		open_recording(i);
		CHECK_INT(walk(4000, frames, CHAIN_MAX_FRAMES, &n), ==, CHAIN_WHOLE);
		CHECK_INT(n, >, 40);
		for (last = n - 1; !frames[last].address; last--)
			CHECK(last > 0);
		CHECK(frames[last].entry);
		for (size_t k = 0; k < n; k++)
			CHECK(!frames[k].entry || frames[k].address);
		close_recording();
	}
}

static void test_limits(void)
{
	struct chained_frame frames[CHAIN_MAX_FRAMES];
	enum chain_result r;
	size_t n;

	for (int i = 0; i < N_RECORDINGS; i++) {
		open_recording(i);
		CHECK_INT(walk(4000, frames, 5, &n), ==, CHAIN_CUT);
		CHECK_INT(n, ==, 5);
		/* What a walk has learned it keeps: with any budget all is known some time. */
		CHECK_INT(start(&process), ==, 0);
		r = CHAIN_SPENT;
		for (uint32_t reads = 0; r == CHAIN_SPENT; reads++) {
			CHECK_INT(reads, <, 4000);
			r = walk(reads, frames, CHAIN_MAX_FRAMES, &n);
		}
		CHECK_INT(r, ==, CHAIN_WHOLE);
		close_recording();
	}
}

/* In a process that was walked often, frames that are where they were cost next to nothing. */
static void test_believed(void)
{
	struct chained_frame frames[CHAIN_MAX_FRAMES];

	for (int i = 0; i < N_RECORDINGS; i++) {
		uint64_t first, reads;
		size_t n;

		open_recording(i);
		CHECK_INT(walk(4000, frames, CHAIN_MAX_FRAMES, &n), ==, CHAIN_WHOLE);
		first = interp_stats(interp)->reads;
		for (int k = 0; k < TRUST_AFTER; k++)
			CHECK_INT(walk(4000, frames, CHAIN_MAX_FRAMES, &n), ==, CHAIN_WHOLE);
		reads = interp_stats(interp)->reads;
		CHECK_INT(walk(4000, frames, CHAIN_MAX_FRAMES, &n), ==, CHAIN_WHOLE);
		reads = interp_stats(interp)->reads - reads;
		CHECK_INT(reads, <, n);
		CHECK_INT(reads, <, first / 5);
		close_recording();
	}
}

/* In so many walks an object is believed until it is looked at. */
static int count_believed(struct trust *t, struct trust_walks *w)
{
	int n = 0;

	for (trust_begin_walk(w); trust_has(t, w); trust_begin_walk(w))
		n++;
	return n;
}

static void test_trust(void)
{
	struct trust_walks w = {.walk = UINT32_MAX};
	struct trust old = {.walk = 0}, young = {.walk = 0};

	for (int i = 0; i < TRUST_AFTER; i++) {
		CHECK_INT(count_believed(&old, &w), ==, 0);
		trust_prove(&old, &w);
		CHECK(trust_has(&old, &w));
	}
	CHECK_INT(count_believed(&old, &w), ==, TRUST_FOR);
	trust_prove(&old, &w);
	/* One that changes soon says nothing about others. */
	trust_prove(&young, &w);
	trust_end(&young, &w);
	CHECK_INT(count_believed(&old, &w), ==, TRUST_FOR);
	/* One that was believed does, for a long time, but not for ever. */
	trust_prove(&old, &w);
	young = old;
	trust_end(&young, &w);
	CHECK_INT(count_believed(&old, &w), ==, 0);
	for (int i = 0; i < TRUST_NOBODY; i++)
		trust_begin_walk(&w);
	CHECK_INT(count_believed(&old, &w), ==, TRUST_FOR);
}

/* ---- What lies ---- */

/* Each word of the memory that is read, one after the other, is something else. */
static void test_wild(void)
{
	static const uint64_t values[] = {
		0, 1, 0x7fffffffffff, UINT64_MAX, UINT64_C(0x8000000000000000), 0xffffffff, 8};

	for (int i = 0; i < N_RECORDINGS; i++) {
		struct chained_frame frames[CHAIN_MAX_FRAMES];
		uint32_t n_words = 0;

		open_recording(i);
		for (uint32_t k = 0; k < process.recorded.n_ranges; k++) {
			const struct recorded_range *r = &process.recorded.ranges[k];

			for (uint32_t at = 0; at + 8 <= r->n; at += 8) {
				uint8_t *word = process.bytes + (r->bytes - process.bytes) + at;
				uint64_t was;
				size_t n;

				memcpy(&was, word, 8);
				memcpy(word, &values[n_words++ % ARRAY_SIZE(values)], 8);
				if (n_words % 64 == 0 && start(&process) < 0) {
					memcpy(word, &was, 8);
					CHECK_INT(start(&process), ==, 0);
					continue;
				}
				(void)walk(4000, frames, CHAIN_MAX_FRAMES, &n);
				CHECK_INT(n, <=, CHAIN_MAX_FRAMES);
				memcpy(word, &was, 8);
			}
		}
		CHECK_INT(n_words, >, 1000);
		CHECK_INT(start(&process), ==, 0);
		CHECK_INT(walk(4000, frames, CHAIN_MAX_FRAMES, &(size_t){0}), ==, CHAIN_WHOLE);
		close_recording();
	}
}

/* Where a text is in the memory, as many times as it is; NULL: not any more. */
static uint8_t *find_text(const char *text, uint32_t *range, uint32_t *at)
{
	size_t n = strlen(text);

	for (; *range < process.recorded.n_ranges; ++*range, *at = 0) {
		const struct recorded_range *r = &process.recorded.ranges[*range];

		for (; *at + n <= r->n; ++*at) {
			uint8_t *bytes = process.bytes + (r->bytes - process.bytes) + *at;

			if (memcmp(bytes, text, n) == 0) {
				++*at;
				return bytes;
			}
		}
	}
	return NULL;
}

/*
 * A name that was freed, and another one of the same length that now is where it was: only its
 * characters behind the first ones are others. PHP's may have no hash.
 */
static void test_renamed(void)
{
	enum { PHP_HASH = 8, PHP_BYTES = 24 };
	static const char *const names[RUNTIME_N_KINDS][2] = {
		[RUNTIME_KIND_PHP] = {"/w/calls-required.php(3)", "/w/calls-acquired.php(3)"},
		[RUNTIME_KIND_RUBY] = {"(2 levels) in chain_through",
				       "(2 levels) in chain_trodden"},
	};

	for (int i = 0; i < N_RECORDINGS; i++) {
		const char *const *name = names[recordings[i].kind];
		uint8_t *text;
		char *now;

		open_recording(i);
		for (uint32_t k = 0, at = 0; recordings[i].kind == RUNTIME_KIND_PHP &&
					     (text = find_text(name[0], &k, &at));) {
			if (at > PHP_BYTES)
				memset(text - PHP_BYTES + PHP_HASH, 0, 8);
		}
		for (int n = 0; n < 2; n++) {
			now = recorded_process_walk(&process);
			CHECK(strstr(now, name[0]) != NULL);
			free(now);
		}
		for (uint32_t k = 0, at = 0; (text = find_text(name[0], &k, &at));)
			memcpy(text, name[1], strlen(name[1]));
		now = recorded_process_walk(&process);
		CHECK(strstr(now, name[0]) == NULL);
		CHECK(strstr(now, name[1]) != NULL);
		free(now);
		CHECK_INT(interp_stats(interp)->stale, >, 0);
		close_recording();
	}
}

/* ---- Many processes ---- */

/* A process more costs little: most of a host's sleep. */
static void test_memory(void)
{
	enum { N = 64, KIB_OF_EACH = 64 };
	struct chained_frame frames[CHAIN_MAX_FRAMES];
	const char *why;

	for (int i = 0; i < N_RECORDINGS; i++) {
		struct interp *more[N];
		long before;
		size_t n;

		open_recording(i);
		CHECK_INT(walk(4000, frames, CHAIN_MAX_FRAMES, &n), ==, CHAIN_WHOLE);
		before = recorded_process_data_kib();
		for (int k = 0; k < N; k++) {
			more[k] = interp;
			CHECK_INT(
				interp_new(&interp, &process.memory, process.recorded.image, &why),
				==, 0);
			CHECK_INT(walk(4000, frames, CHAIN_MAX_FRAMES, &n), ==, CHAIN_WHOLE);
		}
		CHECK_INT(recorded_process_data_kib() - before, <=, N * KIB_OF_EACH);
		for (int k = 0; k < N; k++)
			interp_free(more[k]);
		close_recording();
	}
}

/* Two processes have other functions at the same addresses. */
static void test_apart(void)
{
	static const char *const names[RUNTIME_N_KINDS][2] = {
		[RUNTIME_KIND_PHP] = {"/w/calls-required.php(3)", "/w/calls-acquired.php(3)"},
		[RUNTIME_KIND_RUBY] = {"(2 levels) in chain_through",
				       "(2 levels) in chain_trodden"},
	};

	for (int i = 0; i < N_RECORDINGS; i++) {
		const char *const *name = names[recordings[i].kind];
		struct recorded_process one = process;
		struct interp *of_one;
		uint8_t *text;

		recorded_process_open(&one, recordings[i].name);
		of_one = interp;
		interp = NULL;
		open_recording(i);
		for (uint32_t k = 0, at = 0; (text = find_text(name[0], &k, &at));)
			memcpy(text, name[1], strlen(name[1]));
		for (int n = 0; n < 3; n++) {
			struct interp *of_two = interp;
			char *two = recorded_process_walk(&process), *its;

			interp = of_one;
			its = recorded_process_walk(&one);
			interp = of_two;
			CHECK(strstr(two, name[1]) && !strstr(two, name[0]));
			CHECK(strstr(its, name[0]) && !strstr(its, name[1]));
			free(two);
			free(its);
		}
		CHECK_INT(interp_stats(interp)->stale + interp_stats(of_one)->stale, ==, 0);
		close_recording();
		interp = of_one;
		recorded_process_close(&one);
	}
}

/* Words that lead to frames lead back to where others are: no walk goes on for ever. */
static void test_loops(void)
{
	for (int i = 0; i < N_RECORDINGS; i++) {
		struct chained_frame frames[CHAIN_MAX_FRAMES], other[CHAIN_MAX_FRAMES];
		size_t n, n_other;
		uint32_t n_bent = 0;

		open_recording(i);
		CHECK_INT(walk(4000, frames, CHAIN_MAX_FRAMES, &n), ==, CHAIN_WHOLE);
		for (uint32_t k = 0; k < process.recorded.n_ranges; k++) {
			const struct recorded_range *r = &process.recorded.ranges[k];

			for (uint32_t at = 0; at + 8 <= r->n; at += 8) {
				uint8_t *word = process.bytes + (r->bytes - process.bytes) + at;
				uint64_t was;

				memcpy(&was, word, 8);
				if (was != frames[n - 1].address || was == 0)
					continue;
				memcpy(word, &frames[4].address, 8);
				n_bent += walk(4000, other, CHAIN_MAX_FRAMES, &n_other) !=
					  CHAIN_WHOLE;
				memcpy(word, &was, 8);
			}
		}
		CHECK(recordings[i].kind != RUNTIME_KIND_PHP || n_bent > 0);
		close_recording();
	}
}

static struct endless {
	Elf64_Ehdr head;
	Elf64_Phdr segments[2];
	Elf64_Dyn dynamic[5];
	uint32_t hash[5]; /* one bucket of two symbols, and the second is the one behind itself */
	Elf64_Sym symbols[2];
	char strings[128];
} endless = {
	.head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		 .e_type = ET_DYN,
		 .e_phoff = offsetof(struct endless, segments),
		 .e_phentsize = sizeof(Elf64_Phdr),
		 .e_phnum = 2},
	.segments = {{.p_type = PT_LOAD, .p_filesz = sizeof(struct endless), .p_memsz = 4096},
		     {.p_type = PT_DYNAMIC,
		      .p_vaddr = offsetof(struct endless, dynamic),
		      .p_memsz = sizeof(Elf64_Dyn[5])}},
	.dynamic = {{DT_HASH, {offsetof(struct endless, hash)}},
		    {DT_SYMTAB, {offsetof(struct endless, symbols)}},
		    {DT_STRTAB, {offsetof(struct endless, strings)}},
		    {DT_STRSZ, {128}}},
	.hash = {1, 2, 1, 0, 1},
	.symbols = {[1] = {.st_name = 1, .st_shndx = 1}},
};

static bool read_endless(void *ctx, uint64_t address, void *ret, size_t n)
{
	++*(uint32_t *)ctx;
	if (address < 4096 || address - 4096 > sizeof(endless) - n)
		return false;
	memcpy(ret, (const char *)&endless + address - 4096, n);
	return true;
}

/* A table of symbols without an end: whoever looks is in front of everything else on its CPU. */
static void test_endless_symbols(void)
{
	uint32_t n_reads = 0;
	const struct memory memory = {.read = read_endless, .ctx = &n_reads};
	struct interp *p = NULL;
	const char *why;

	memset(endless.strings + 1, 'x', 100);
	CHECK_INT(interp_new(&p, &memory, 4096, &why), ==, -ENOENT);
	CHECK_INT(n_reads, >, 1000);
	CHECK_INT(n_reads, <=, 12000);
}

int main(void)
{
#ifndef RECORDED_AARCH64
	NEED_X86_64();
#endif
	RUN(test_recorded);
	RUN(test_late_names);
	RUN(test_entries);
	RUN(test_limits);
	RUN(test_believed);
	RUN(test_trust);
	RUN(test_renamed);
	RUN(test_memory);
	RUN(test_apart);
	RUN(test_wild);
	RUN(test_loops);
	RUN(test_endless_symbols);
	return 0;
}
