/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks through JavaScript's frames with recorded reads of V8 of Node.js 16 to 26 (tests/data/v8):
 * the frames are those that were looked through when they were recorded, and whatever is missing or
 * has changed since leaves a function without a name, but never gives it another's.
 */
#include "runtimes/v8-internal.h"
#include "tests/runtimes/recorded-v8.h"
#include "tests/unit/recorded-process.h"
#include "tests/unit/test.h"

static const char *const versions[] = {"16", "18", "20", "22", "24", "26"};
enum { N_VERSIONS = 6 };

static struct v8 *v8;

static void stop(void)
{
	v8 = v8_free(v8);
}

static int start(const struct recorded_process *p)
{
	const char *why;

	stop();
	return v8_new(&v8, &p->memory, p->recorded.image, &why);
}

static void walk(const struct recorded_walk *sample, FILE *out)
{
	(void)recorded_walk_v8(v8, sample, out);
}

static struct recorded_process node = {.prefix = "v8/", .start = start, .stop = stop, .walk = walk};

static void open_version(const char *version)
{
	recorded_process_open(&node, version);
	CHECK(v8_is_tried(v8));
}

static void close_version(void)
{
	recorded_process_close(&node);
}

static char *walk_all(void)
{
	return recorded_process_walk(&node);
}

static void test_recorded(void)
{
	for (int v = 0; v < N_VERSIONS; v++) {
		char *text;

		open_version(versions[v]);
		text = recorded_process_check(&node, versions[v]);
		CHECK(strstr(text, "deep (") && strstr(text, "mix.js:"));
		free(text);
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

static bool refuse(void *ctx, uint64_t address, void *ret, size_t n)
{
	return false;
}

static bool read_zeros(void *ctx, uint64_t address, void *ret, size_t n)
{
	if (address >= v8->image.start && address < v8->image.end)
		return recording_read(ctx, address, ret, n);
	memset(ret, 0, n);
	return true;
}

static void check_later(bool (*before)(void *, uint64_t, void *, size_t))
{
	for (int v = 0; v < N_VERSIONS; v++) {
		bool (*read)(void *, uint64_t, void *, size_t);

		open_version(versions[v]);
		read = v8->below.read;
		v8->below.read = before;
		free(walk_all());
		v8->below.read = read;
		free(recorded_process_check(&node, versions[v]));
		close_version();
	}
}

/* Code in memory that cannot be read yet, as if a program had just got it, is found later. */
static void test_unread(void)
{
	check_later(refuse);
}

/* Code that a worker put where that of another one had been, which had ended when it was read. */
static void test_emptied(void)
{
	check_later(read_zeros);
}

static void test_missing(void)
{
	open_version("20");
	recorded_process_lose(&node, 150, "=[");
	close_version();
}

static uint8_t *bytes_at(uint64_t at)
{
	return recorded_process_at(&node, at);
}

static void change_name(const char *from, const char *to)
{
	size_t n = strlen(from) + 1;

	for (uint32_t i = 0; i < node.recorded.n_ranges; i++) {
		for (uint32_t k = 0; k + n <= node.recorded.ranges[i].n; k++) {
			uint8_t *at = bytes_at(node.recorded.ranges[i].at + k);

			if (memcmp(at, from, n) == 0)
				memcpy(at, to, n);
		}
	}
}

/* All scripts that were met get other numbers; how many times. */
static int change_scripts(void)
{
	int n = 0;

	for (int i = 0; i < V8_N_SPOTS; i++) {
		uint64_t shared = v8->memo->spots[i].shared, script;

		if (!shared)
			continue;
		memcpy(&script, bytes_at(shared - 1 + v8_value(v8, V8_SHARED_SCRIPT)), 8);
		if (!bytes_at(script - 1 + v8_value(v8, V8_SCRIPT_ID)))
			continue;
		bytes_at(script - 1 + v8_value(v8, V8_SCRIPT_ID))[7] = 0x5a;
		n++;
	}
	return n;
}

/*
 * Functions that were freed, and others that now are where they were, as another script's: what is
 * remembered of their addresses is not believed, or, once it was long the same, not for more than
 * so many walks, and then never again.
 */
static void check_reused(const char *version, int n_before, int n_after)
{
	char *before, *after = NULL;

	open_version(version);
	before = walk_all();
	for (int i = 1; i < n_before; i++)
		free(walk_all());
	CHECK(strstr(before, " work (") != NULL);
	CHECK_INT(v8->walks.doubtful, ==, 0);
	change_name("work", "rest");
	CHECK_INT(change_scripts(), >, 0);
	for (int i = 0; i < n_after; i++) {
		free(after);
		after = walk_all();
	}
	CHECK(strstr(after, " work (") == NULL);
	CHECK(strstr(after, " rest (") != NULL);
	CHECK_INT(v8_stats(v8)->stale, >, 0);
	CHECK_INT(v8->walks.doubtful > 0, ==, n_before > TRUST_AFTER);
	free(before);
	free(after);
	close_version();
}

static void test_reused(void)
{
	for (int v = 0; v < N_VERSIONS; v++)
		check_reused(versions[v], 1, 1);
}

static void test_believed(void)
{
	check_reused("16", TRUST_AFTER + 1, TRUST_FOR + 1);
	check_reused("22", TRUST_AFTER + 1, TRUST_FOR + 1);
}

/* The word of a function that leads to its name. */
static uint8_t *name_of(const struct v8_spot *s)
{
	return bytes_at(s->shared - 1 + v8_value(v8, V8_SHARED_NAME));
}

/* What is long believed is compared with its head still: another name is seen at once. */
static void test_other_head(void)
{
	uint8_t *other = NULL;
	int n_changed = 0;
	char *after;

	open_version("20");
	for (int i = 0; i < TRUST_AFTER; i++)
		free(walk_all());
	for (int i = 0; i < V8_N_SPOTS && !other; i++) {
		if (strcmp(v8_text(v8, v8->memo->spots[i].frame.function), "deep") == 0)
			other = name_of(&v8->memo->spots[i]);
	}
	CHECK(other != NULL);
	for (int i = 0; i < V8_N_SPOTS; i++) {
		if (strcmp(v8_text(v8, v8->memo->spots[i].frame.function), "work") != 0)
			continue;
		memcpy(name_of(&v8->memo->spots[i]), other, 8);
		n_changed++;
	}
	CHECK_INT(n_changed, >, 0);
	after = walk_all();
	CHECK(strstr(after, " work (") == NULL);
	CHECK_INT(v8->walks.doubtful, ==, 0);
	free(after);
	close_version();
}

/* All words that the process has of one become the other, and the other way round. */
static void exchange_words(uint64_t a, uint64_t b)
{
	for (uint32_t i = 0; i < node.recorded.n_ranges; i++) {
		const struct recorded_range *r = &node.recorded.ranges[i];

		for (uint64_t k = -r->at & 7; k + 8 <= r->n; k += 8) {
			uint8_t *at = bytes_at(r->at + k);
			uint64_t word;

			memcpy(&word, at, 8);
			/* A table may hold it weakly. */
			if ((word & ~UINT64_C(2)) == a)
				word += b - a;
			else if ((word & ~UINT64_C(2)) == b)
				word += a - b;
			memcpy(at, &word, 8);
		}
	}
}

static const char *name_at(uint64_t shared)
{
	struct stepped_frame f;

	return v8_function_frame(v8, shared, -1, &f) ? v8_text(v8, f.function) : "";
}

/* Two functions that optimized code is made of change their places. */
static void exchange_functions(void)
{
	uint64_t a = v8->memo->places.items[0].shared, b = 0;

	for (uint32_t i = 1; i < v8->memo->places.n && !b; i++) {
		uint64_t other = v8->memo->places.items[i].shared;

		if (*name_at(other) && strcmp(name_at(other), name_at(a)) != 0)
			b = other;
	}
	CHECK(*name_at(a) && b);
	for (uint64_t i = 0; i < V8_SHARED_BYTES; i++) {
		uint8_t *at_a = bytes_at(a - 1 + i), *at_b = bytes_at(b - 1 + i), byte = *at_a;

		*at_a = *at_b;
		*at_b = byte;
	}
	exchange_words(a, b);
}

/* The collector moves functions, and tells all that leads to them: each still has its own name. */
static void test_exchanged(void)
{
	for (int v = 0; v < N_VERSIONS; v++) {
		char *before, *after;

		open_version(versions[v]);
		for (int i = 0; i < TRUST_AFTER; i++)
			free(walk_all());
		before = walk_all();
		exchange_functions();
		after = walk_all();
		CHECK_STR(after, before);
		free(before);
		free(after);
		close_version();
	}
}

/* The first word of a stack that is a function, but not the one of that SharedFunctionInfo; 0:
 * there is none. */
static uint64_t find_function(const uint64_t *words, uint32_t n, uint64_t but)
{
	uint64_t word, shared;

	for (uint32_t k = 0; k < n; k++) {
		memcpy(&word, &words[k], 8);
		shared = v8_shared(v8, word);
		if (shared && shared != but)
			return word;
	}
	return 0;
}

/* All frames have functions of others. */
static void move_functions(void)
{
	for (uint32_t i = 0; i < node.recorded.n_samples; i++) {
		const struct recorded_walk *w = &node.recorded.samples[i];
		uint64_t *words = (uint64_t *)(void *)(node.bytes + (w->stack - node.bytes));
		uint64_t a, b, word;

		v8_begin(v8, UINT32_MAX, UINT64_MAX);
		a = find_function(words, w->n / 8, 0);
		b = find_function(words, w->n / 8, v8_shared(v8, a));
		CHECK(a && b);
		for (uint32_t k = 0; k < w->n / 8; k++) {
			memcpy(&word, &words[k], 8);
			if (v8_shared(v8, word))
				memcpy(&words[k], v8_shared(v8, word) == v8_shared(v8, a) ? &b : &a,
				       8);
		}
	}
}

/* A function whose address has another one's by now has no name: its bytecode is not the
 * frame's. */
static void test_moved(void)
{
	for (int v = 0; v < N_VERSIONS; v++) {
		open_version(versions[v]);
		move_functions();
		char *after = walk_all();

		CHECK(strstr(after, "[JavaScript function not proven]") != NULL);
		CHECK(strstr(after, "Module._load (") == NULL);
		CHECK(strstr(after, " work (") != NULL); /* by its code */
		free(after);
		close_version();
	}
}

static void test_cut(void)
{
	open_version("22");
	free(recorded_process_cut(&node));
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
	w = &node.recorded.samples[0];
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

static void forget_object(uint64_t at)
{
	if (at && bytes_at(at))
		memset(bytes_at(at), 0, 8);
}

/* All compiled code that was met. */
static void free_code(void)
{
	for (int i = 0; i < V8_N_HEADS; i++)
		forget_object(v8->memo->heads[i].head);
	for (int i = 0; i < V8_N_CODES; i++)
		forget_object(v8->memo->codes[i].code.at & ~UINT64_C(1));
}

/* Compiled code that was freed since, and never met: there is a function, and nobody knows
 * which. */
static void test_freed_code(void)
{
	for (int v = 0; v < N_VERSIONS; v++) {
		char *after;

		open_version(versions[v]);
		free(walk_all());
		free_code();
		CHECK_INT(node.start(&node), ==, 0);
		after = walk_all();
		CHECK(strstr(after, " work (") == NULL);
		CHECK(strstr(after, "[JavaScript function not proven]") != NULL);
		free(after);
		close_version();
	}
}

/* Walks of before and after optimized code was freed that had been met. */
static void check_gone_code(const char *version, bool moves, bool finds)
{
	char *before, *after;

	open_version(version);
	before = walk_all();
	free_code();
	if (moves)
		move_functions();
	after = walk_all();
	CHECK(strstr(before, " inlined\n") != NULL);
	CHECK_INT(strstr(after, " inlined\n") != NULL, ==, finds);
	CHECK(finds || strstr(after, "[JavaScript function not proven]") != NULL);
	free(after);
	free(before);
	close_version();
}

/* The frame is one of the function that the code was made of: of these versions, one was looked at
 * when the process was recorded. */
static void test_gone_code(void)
{
	check_gone_code("16", false, true);
	check_gone_code("26", false, true);
}

/* Frames of others, which may have had code there before it was freed, too. */
static void test_gone_code_of_others(void)
{
	for (int v = 0; v < N_VERSIONS; v++)
		check_gone_code(versions[v], true, false);
}

/* ---- Copies of V8's built-in functions ---- */

enum { COPY = 0x700000000000, COPY_BYTES = 0x180000, ISOLATE = 0x710000000000 };
enum { ISOLATE_WORDS = 16384, AT = 7890, BIAS = 128, PAGE = 4096 };

/* Two isolates; the second one has no copy. */
static struct {
	uint64_t words[2][ISOLATE_WORDS];
	uint32_t n_searches;
} isolates;

static bool read_isolates(void *ctx, uint64_t address, void *ret, size_t n)
{
	if (address < ISOLATE || address + n > ISOLATE + sizeof(isolates.words))
		return recording_read(ctx, address, ret, n);
	isolates.n_searches += (address - ISOLATE) % sizeof(isolates.words[0]) == 0;
	memcpy(ret, (const uint8_t *)isolates.words + (address - ISOLATE), n);
	return true;
}

static bool find_copy(uint64_t pc, int isolate)
{
	struct runtime_regs regs = {.pc = pc, .innermost = true};

	regs.r[13] = ISOLATE + BIAS + (uint64_t)isolate * sizeof(isolates.words[0]);
	v8_begin(v8, 1000, 1 << 20);
	return v8_copies_find(v8, &regs);
}

static void say(uint64_t start, uint64_t n, uint64_t data, uint64_t n_data)
{
	const uint64_t words[] = {start, n, data, n_data};

	memcpy(&isolates.words[0][AT], words, sizeof(words));
}

static void open_with_isolates(void)
{
	memset(&isolates, 0, sizeof(isolates));
	open_version("20");
	node.memory.read = read_isolates;
	CHECK_INT(start(&node), ==, 0);
}

static void close_with_isolates(void)
{
	node.memory.read = recording_read;
	close_version();
}

static void test_copies(void)
{
	open_with_isolates();
	say(COPY, COPY_BYTES, v8->image.end - PAGE, PAGE);
	CHECK(!v8_is_own(v8, COPY + 64));
	CHECK(find_copy(COPY + 64, 0));
	CHECK(v8_is_own(v8, COPY) && v8_is_own(v8, COPY + COPY_BYTES - 1));
	CHECK(!v8_is_own(v8, COPY - 1) && !v8_is_own(v8, COPY + COPY_BYTES));
	for (int i = 0; i < 100; i++)
		CHECK(find_copy(COPY + COPY_BYTES - 1, 0));
	CHECK_INT(isolates.n_searches, ==, 1);
	/* Now another isolate runs code of its own there. */
	CHECK(!find_copy(COPY + 64, 1));
	CHECK(!v8_is_own(v8, COPY));
	for (int i = 0; i < 100; i++)
		CHECK(!find_copy(COPY + 64, 1));
	CHECK_INT(isolates.n_searches, ==, 2);
	close_with_isolates();
}

static void check_no_copy(uint64_t start, uint64_t n, int64_t data_from_end, uint64_t n_data)
{
	open_with_isolates();
	say(start, n, v8->image.end + (uint64_t)data_from_end, n_data);
	CHECK(!find_copy(COPY + PAGE, 0));
	CHECK(!v8_is_own(v8, COPY + PAGE));
	close_with_isolates();
}

/* Words that are there by accident. */
static void test_no_copies(void)
{
	check_no_copy(COPY + 8, COPY_BYTES, -PAGE, PAGE);
	check_no_copy(COPY + 2 * PAGE, COPY_BYTES, -PAGE, PAGE);
	check_no_copy(COPY, PAGE, -PAGE, PAGE);
	check_no_copy(COPY, UINT32_MAX, -PAGE, PAGE);
	check_no_copy(COPY, COPY_BYTES, 0, PAGE);
	check_no_copy(COPY, COPY_BYTES, -PAGE, PAGE + 1);
	check_no_copy(COPY, COPY_BYTES, -PAGE, 0);
}

int main(void)
{
	NEED_X86_64();
	RUN(test_recorded);
	RUN(test_remembered);
	RUN(test_unread);
	RUN(test_emptied);
	RUN(test_missing);
	RUN(test_reused);
	RUN(test_believed);
	RUN(test_other_head);
	RUN(test_exchanged);
	RUN(test_moved);
	RUN(test_cut);
	RUN(test_spent);
	RUN(test_freed_code);
	RUN(test_gone_code);
	RUN(test_gone_code_of_others);
	RUN(test_copies);
	RUN(test_no_copies);
	return 0;
}
