/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks through Java frames with recorded reads of HotSpot 8, 11, 17, 21 and 25, on aarch64 17 and
 * 21 (tests/data/runtimes): the frames are those that were looked through when they were recorded,
 * and whatever is missing or has changed since makes a walk end, but never go wrong.
 */
#include "runtimes/hotspot-internal.h"
#include "tests/runtimes/recorded-hotspot.h"
#include "tests/unit/recorded-process.h"
#include "tests/unit/test.h"

#ifdef RECORDED_AARCH64
static const char *const versions[] = {"17-aarch64", "21-aarch64"};
enum { N_VERSIONS = 2, IS_AARCH64 = 1 };
#define ONE_VERSION   "17-aarch64"
#define OTHER_VERSION "21-aarch64"
#else
static const char *const versions[] = {"8", "11", "17", "21", "25"};
enum { N_VERSIONS = 5, IS_AARCH64 = 0 };
#define ONE_VERSION   "17"
#define OTHER_VERSION "21"
#endif

static struct hotspot *hotspot;

static void stop(void)
{
	hotspot = hotspot_free(hotspot);
}

static int start(const struct recorded_process *p)
{
	const char *why;

	stop();
	return hotspot_new(&hotspot, &p->memory, p->recorded.image, &why);
}

static void walk(const struct recorded_walk *sample, FILE *out)
{
	(void)recording_walk(hotspot, sample, out);
}

static struct recorded_process java = {
	.prefix = "runtimes/hotspot-", .start = start, .stop = stop, .walk = walk};

static void open_version(const char *version)
{
	recorded_process_open(&java, version);
	CHECK(hotspot_is_tried(hotspot));
	CHECK(strncmp(hotspot_release(hotspot), version, strcspn(version, "-")) == 0);
}

static void close_version(void)
{
	recorded_process_close(&java);
}

static char *walk_all(void)
{
	return recorded_process_walk(&java);
}

static void test_recorded(void)
{
	for (int v = 0; v < N_VERSIONS; v++) {
		open_version(versions[v]);
		free(recorded_process_check(&java, versions[v]));
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

static void test_missing(void)
{
	open_version(ONE_VERSION);
	recorded_process_lose(&java, 150, "=");
	close_version();
}

static uint8_t *bytes_at(uint64_t at)
{
	return recorded_process_at(&java, at);
}

static void change_name(const char *from, const char *to)
{
	uint32_t before = (uint32_t)(hs(hotspot, HS_SYMBOL_BODY) - hs(hotspot, HS_SYMBOL_LENGTH));
	uint16_t wanted = (uint16_t)strlen(from), length;

	for (uint32_t i = 0; i < java.recorded.n_ranges; i++) {
		for (uint32_t k = before; k + wanted <= java.recorded.ranges[i].n; k++) {
			uint8_t *at = bytes_at(java.recorded.ranges[i].at + k);

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
			const struct blob *b = &hotspot->memo->codes[i].blob;

			if (!hotspot->memo->codes[i].pc || b->kind != BLOB_NMETHOD)
				continue;
			bytes_at(b->at + (uint64_t)hs(hotspot, HS_NMETHOD_COMPILE_ID))[3] = 0x5a;
			n_codes++;
		}
		for (int i = 0; i < HOTSPOT_N_SPOTS; i++) {
			if (!hotspot->memo->spots[i].method)
				continue;
			/* Its vtable, once for several places in it. */
			bytes_at(hotspot->memo->spots[i].method)[1] = 0x5a;
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

/*
 * A class that was unloaded, and another one of the same shape that now is where it was: all
 * pointers are the same, only the texts of the names are others.
 */
static void test_renamed(void)
{
	static const char *const names[][2] = {{"work", "rest"}, {"Mix", "Mox"}};
	static struct spot spots[HOTSPOT_N_SPOTS];

	for (int v = 0; v < N_VERSIONS; v++) {
		for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
			char old[8], new[8];
			int n = 0;

			open_version(versions[v]);
			free(walk_all());
			memcpy(spots, hotspot->memo->spots, sizeof(spots));
			(void)snprintf(old, sizeof(old), k ? "%s." : ".%s", names[k][0]);
			(void)snprintf(new, sizeof(new), k ? "%s." : ".%s", names[k][1]);
			change_name(names[k][0], names[k][1]);
			for (int i = 0; i < HOTSPOT_N_SPOTS; i++) {
				struct stepped_frame *f = &spots[i].frame;

				if (!spots[i].method || spots[i].bci < -1 ||
				    !strstr(hotspot_text(hotspot, f->function), old))
					continue;
				hotspot_begin(hotspot, 1000, 1 << 20);
				CHECK(hotspot_method_frame(hotspot, spots[i].method, spots[i].bci,
							   f));
				CHECK(strstr(hotspot_text(hotspot, f->function), new) != NULL);
				n++;
			}
			CHECK_INT(n, >, 0);
			CHECK_INT(hotspot_stats(hotspot)->stale, >, 0);
			close_version();
		}
	}
}

/* A walk looks several times at a method, and reads it once; the next walk reads it again. */
static void test_once(void)
{
	struct stepped_frame frame;
	const struct spot *s;

	open_version(ONE_VERSION);
	free(walk_all());
	for (int i = 0; i < HOTSPOT_N_NAMES; i++)
		hotspot->memo->names[i].trust = (struct trust){.walk = 0};
	for (s = hotspot->memo->spots; !s->method; s++)
		;
	for (int walk = 0; walk < TRUST_AFTER + 2; walk++) {
		hotspot_begin(hotspot, 100, 1 << 20);
		for (int i = 0; i < 3; i++) {
			CHECK(hotspot_method_frame(hotspot, s->method, s->bci, &frame));
			CHECK_INT(hotspot_method_bci(hotspot, s->method, 0), ==, -1);
		}
		/* The Method and its ConstMethod; the names of its class and its own, and where
		 * they are, until they are trusted. */
		CHECK_INT(hotspot->memory.reads_left, ==, walk < TRUST_AFTER ? 91 : 98);
	}
	close_version();
}

/* A process more costs little: most of a host's sleep. */
static void test_memory(void)
{
	enum { N = 64, KIB_OF_EACH = 64 };
	struct hotspot *more[N];
	const char *why;
	long before;

	open_version(ONE_VERSION);
	free(walk_all());
	before = recorded_process_data_kib();
	for (int i = 0; i < N; i++) {
		more[i] = hotspot;
		CHECK_INT(hotspot_new(&hotspot, &java.memory, java.recorded.image, &why), ==, 0);
		free(walk_all());
	}
	CHECK_INT(recorded_process_data_kib() - before, <=, N * KIB_OF_EACH);
	for (int i = 0; i < N; i++)
		hotspot_free(more[i]);
	close_version();
}

/* Two processes have other methods at the same addresses. */
static void test_apart(void)
{
	struct recorded_process one = java;
	struct hotspot *of_one, *of_two;

	recorded_process_open(&one, ONE_VERSION);
	of_one = hotspot;
	hotspot = NULL;
	open_version(ONE_VERSION);
	of_two = hotspot;
	change_name("work", "rest");
	for (int n = 0; n < 3; n++) {
		char *two = walk_all(), *its;

		hotspot = of_one;
		its = recorded_process_walk(&one);
		hotspot = of_two;
		CHECK(strstr(two, "Mix.rest") && !strstr(two, "Mix.work"));
		CHECK(strstr(its, "Mix.work") && !strstr(its, "Mix.rest"));
		free(two);
		free(its);
	}
	CHECK_INT(hotspot_stats(of_one)->stale + hotspot_stats(of_two)->stale, ==, 0);
	close_version();
	hotspot = of_one;
	recorded_process_close(&one);
}

/* A budget that is spent is said. */
static void test_spent(void)
{
	const struct recorded_walk *w;
	struct runtime_stack stack;
	struct runtime_regs regs;
	struct stepped_frame frames[8];
	size_t n;

	open_version(ONE_VERSION);
	w = &java.recorded.samples[0];
	stack = (struct runtime_stack){w->stack, w->r[RECORDED_SP], w->n, NULL};
	regs = recording_regs(w);
	hotspot_begin(hotspot, 3, 1000);
	CHECK_INT(hotspot_step(hotspot, &stack, &regs, frames, 8, &n), ==, RUNTIME_SPENT);
	CHECK_INT(regs.pc, ==, w->r[RECORDED_PC]);
	close_version();
}

/* A step from a sample whose code has put that many words more below its frame, and at one of them
 * where the frame is (-1: nowhere). */
static enum runtime_step step_pushed(const struct recorded_walk *w, size_t words, int says,
				     struct runtime_regs *ret, struct stepped_frame frames[8],
				     size_t *ret_n)
{
	static uint8_t bytes[16 * 8 + 65536];
	size_t n = w->n < 65536 ? w->n : 65536;
	const struct runtime_stack stack = {bytes, w->r[RECORDED_SP] - words * 8, words * 8 + n,
					    NULL};

	memset(bytes, 0x11, words * 8);
	if (says >= 0)
		memcpy(bytes + 8 * says, &w->r[RECORDED_SP], sizeof(w->r[RECORDED_SP]));
	memcpy(bytes + words * 8, w->stack, n);
	*ret = recording_regs(w);
	ret->sp -= words * 8;
	ret->r[recording_register(RECORDED_SP)] = ret->sp;
	hotspot_begin(hotspot, 4000, 1 << 20);
	return hotspot_step(hotspot, &stack, ret, frames, 8, ret_n);
}

static bool is_in_method(uint64_t pc)
{
	const struct code *c;

	hotspot_begin(hotspot, 4000, 1 << 20);
	c = hotspot_has(hotspot, pc) ? hotspot_code_find(hotspot, pc, PC_INTERRUPTED) : NULL;
	return c && c->blob.kind == BLOB_NMETHOD && c->blob.level == HOTSPOT_C2 &&
	       c->shape == SHAPE_FULL;
}

/* The code of a method keeps words on the stack: its caller is the same one. false: there may be
 * two, which it says. */
static bool check_pushed(const struct recorded_walk *w, size_t words, int says)
{
	struct stepped_frame frames[8], same[8];
	struct runtime_regs caller, regs;
	enum runtime_step step;
	size_t n, n_same;

	CHECK_INT(step_pushed(w, 0, -1, &caller, frames, &n), ==, RUNTIME_STEP);
	step = step_pushed(w, words, says, &regs, same, &n_same);
	if (step == RUNTIME_UNPROVEN)
		return false;
	CHECK_INT(step, ==, RUNTIME_STEP);
	CHECK_INT(regs.pc, ==, caller.pc);
	CHECK_INT(regs.sp, ==, caller.sp);
	CHECK_INT(regs.fp, ==, caller.fp);
	CHECK_INT(n_same, ==, n);
	CHECK(memcmp(same, frames, n * sizeof(*frames)) == 0);
	return true;
}

/* Behind a call in the method's code; 0: none is known. */
static uint64_t find_call(uint64_t pc)
{
	struct blob b;

	hotspot_begin(hotspot, 4000, 1 << 20);
	b = hotspot_code_find(hotspot, pc, PC_INTERRUPTED)->blob;
	for (pc = b.code_begin + 1; pc < b.code_end; pc++) {
		hotspot_begin(hotspot, 4000, 1 << 20);
		if (hotspot_code_find(hotspot, pc, PC_CALLED_JAVA))
			return pc;
	}
	return 0;
}

/*
 * The method has called itself, and a word in its frame points to the end of the frame, as to the
 * lock of an object: if that was an old sp, the frame would be its caller's. Returns how many such
 * words there can be.
 */
static uint32_t check_not_pushed(const struct recorded_walk *w, uint64_t size)
{
	static uint8_t bytes[64 + 65536];
	const uint64_t sp = w->r[RECORDED_SP] - size, end = w->r[RECORDED_SP],
		       call = find_call(w->r[RECORDED_PC]);
	const size_t n = w->n < 65536 ? w->n : 65536;
	const struct runtime_stack stack = {bytes, sp, size + n, NULL};
	struct stepped_frame frames[8];
	uint32_t n_words = 0;
	size_t n_frames;

	memcpy(bytes + size, w->stack, n);
	for (uint64_t at = 0; call && at + 16 < size; at += 8) {
		struct runtime_regs got = {
			.pc = w->r[RECORDED_PC], .sp = sp, .fp = end, .innermost = true};

		memset(bytes, 0x11, size);
		memcpy(bytes + size - 8, &call, sizeof(call));
		hotspot_begin(hotspot, 4000, 1 << 20);
		if (hotspot_step(hotspot, &stack, &got, frames, 8, &n_frames) != RUNTIME_STEP ||
		    got.sp != end)
			continue;
		got = (struct runtime_regs){
			.pc = w->r[RECORDED_PC], .sp = sp, .fp = end, .innermost = true};
		memcpy(bytes + at, &end, sizeof(end));
		hotspot_begin(hotspot, 4000, 1 << 20);
		CHECK_INT(hotspot_step(hotspot, &stack, &got, frames, 8, &n_frames), ==,
			  RUNTIME_UNPROVEN);
		n_words++;
	}
	return n_words;
}

static void test_pushed(void)
{
	enum { MOST = 8 };
	uint32_t n_words = 0, n_pushed = 0, n_unproven = 0;

	for (int v = 0; v < N_VERSIONS; v++) {
		int n_samples = 0;

		open_version(versions[v]);
		for (uint32_t i = 0; i < java.recorded.n_samples; i++) {
			const struct recorded_walk *w = &java.recorded.samples[i];
			struct stepped_frame frames[8];
			struct runtime_regs regs;
			size_t n;

			if (!is_in_method(w->r[RECORDED_PC]) ||
			    step_pushed(w, 0, -1, &regs, frames, &n) != RUNTIME_STEP)
				continue;
			n_samples++;
			if (regs.sp - w->r[RECORDED_SP] <= 64)
				n_words += check_not_pushed(w, regs.sp - w->r[RECORDED_SP]);
			CHECK(check_pushed(w, 1, -1));
			for (int words = 1; words <= MOST; words++) {
				for (int says = 0; says < words; says++, n_pushed++)
					n_unproven += !check_pushed(w, (size_t)words, says);
			}
			/* None of them says where: it is not looked for. */
			CHECK_INT(step_pushed(w, MOST + 1, 0, &regs, frames, &n), ==,
				  RUNTIME_UNPROVEN);
		}
		CHECK_INT(n_samples, >, 0);
		close_version();
	}
	CHECK_INT(n_words, >, 0);
	CHECK_INT(n_unproven, <, n_pushed / 50);
}

/* A frame whose code is given up, the place that it returns to having been put aside: the step over
 * it is the same one. Whether there was one. */
static bool check_given_up(const struct runtime_stack *stack, const struct runtime_regs *at)
{
	static uint8_t bytes[65536];
	struct runtime_stack other = *stack;
	struct runtime_regs whole = *at, given_up = *at;
	struct stepped_frame frames[64], same[64];
	size_t n, n_same;
	const struct code *c;
	uint64_t slot;

	hotspot_begin(hotspot, 4000, 1 << 20);
	c = hotspot_code_find(hotspot, at->pc, PC_CALLED_JAVA);
	if (at->innermost || !c || c->blob.kind != BLOB_NMETHOD || stack->n > sizeof(bytes))
		return false;
	slot = at->sp + c->blob.orig_pc_offset;
	CHECK_INT(slot + 8 - stack->start, <=, stack->n);
	given_up.pc = c->blob.deopt;
	other.bytes = memcpy(bytes, stack->bytes, stack->n);
	memcpy(bytes + (slot - stack->start), &at->pc, sizeof(at->pc));
	/* The recording may lack what is there. */
	if (!hotspot_code_find(hotspot, given_up.pc, PC_INTERRUPTED))
		return false;
	if (hotspot_step(hotspot, stack, &whole, frames, 64, &n) != RUNTIME_STEP)
		return false;
	CHECK_INT(hotspot_step(hotspot, &other, &given_up, same, 64, &n_same), ==, RUNTIME_STEP);
	CHECK_INT(given_up.pc, ==, whole.pc);
	CHECK_INT(given_up.sp, ==, whole.sp);
	CHECK_INT(n_same, ==, n);
	CHECK(memcmp(same, frames, n * sizeof(*frames)) == 0);
	return true;
}

static void test_given_up(void)
{
	for (int v = 0; v < N_VERSIONS; v++) {
		int n_frames = 0;

		open_version(versions[v]);
		for (uint32_t i = 0; i < java.recorded.n_samples; i++) {
			const struct recorded_walk *w = &java.recorded.samples[i];
			const struct runtime_stack stack = {w->stack, w->r[RECORDED_SP], w->n,
							    NULL};
			struct runtime_regs regs = recording_regs(w);
			struct stepped_frame frames[64];
			size_t n;

			do {
				n_frames += check_given_up(&stack, &regs);
				hotspot_begin(hotspot, 4000, 1 << 20);
			} while (hotspot_step(hotspot, &stack, &regs, frames, 64, &n) ==
					 RUNTIME_STEP &&
				 hotspot_has(hotspot, regs.pc));
		}
		CHECK_INT(n_frames, >, 0);
		close_version();
	}
}

static void test_cut(void)
{
	char *cut;

	open_version(OTHER_VERSION);
	cut = recorded_process_cut(&java);
	CHECK(strstr(cut, "= end of the copy") != NULL);
	free(cut);
	close_version();
}

int main(void)
{
#ifndef RECORDED_AARCH64
	NEED_X86_64();
#endif
	RUN(test_recorded);
	RUN(test_remembered);
	RUN(test_missing);
	RUN(test_reused);
	RUN(test_renamed);
	RUN(test_once);
	RUN(test_memory);
	RUN(test_apart);
	RUN(test_spent);
	if (!IS_AARCH64) /* where the code says it */
		RUN(test_pushed);
	RUN(test_given_up);
	RUN(test_cut);
	return 0;
}
