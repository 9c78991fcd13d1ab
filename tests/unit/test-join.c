/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of a second source: where they stand in the native stack, against a model of the places.
 */
#include "src/profiler/join.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"

enum { MAX_NATIVE = 40, MAX_OWN = 30, MAX_ROWS = MAX_NATIVE + MAX_OWN + 8 };
enum { NATIVE = 0x1000, RUNTIME = 1 << 30, MARKER = 1 << 29 };

static uint64_t seed = 1;

static uint32_t chance(uint32_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((seed >> 33) % below);
}

/* ---- A stack: what is given, and as numbers what comes out ---- */

struct given {
	uint32_t n_kernel, n_native, n_own;
	uint32_t marker; /* behind the native ones; PROFILE_N_MARKERS: none */
	uint64_t sp[MAX_NATIVE];
	struct runtime_frame own[MAX_OWN];
	char names[MAX_OWN][24];
	uint32_t id; /* so that no two stacks are the same */
};

struct frames {
	uint32_t n;
	uint32_t items[MAX_ROWS];
};

static uint32_t native_address(const struct given *g, uint32_t i)
{
	return NATIVE + g->id * MAX_ROWS + i;
}

static void give_rows(struct profile *p, const struct given *g, uint32_t *rows,
		      struct walked_stack *ret)
{
	const struct profile_module m = {.uid = PROFILE_UID_FIRST_FILE,
					 .kind = PROFILE_MODULE_FILE,
					 .process = PROFILE_NONE};
	const struct profile_module marker = {
		.uid = PROFILE_UID_MARKER, .kind = PROFILE_MODULE_MARKER, .process = PROFILE_NONE};
	uint32_t module = profile_add_module(p, &m), n = 0;

	for (; n < g->n_kernel + g->n_native; n++)
		rows[n] = profile_add_frame(p, module, native_address(g, n));
	if (g->marker != PROFILE_N_MARKERS)
		rows[n++] = profile_add_frame(p, profile_add_module(p, &marker), g->marker);
	*ret = (struct walked_stack){rows, g->sp, n, g->n_kernel, g->n_native};
}

static void read_stack(const struct profile *p, uint32_t stack, struct frames *ret)
{
	const uint32_t *rows = profile_stack_frames(p, stack, &ret->n);

	CHECK_INT(ret->n, <=, MAX_ROWS);
	for (uint32_t i = 0; i < ret->n; i++) {
		const struct profile_frame *f = &p->frames.items[rows[i]];
		uint32_t kind = p->modules.items[f->module].kind;

		ret->items[i] = (uint32_t)f->address;
		if (kind == PROFILE_MODULE_MARKER)
			ret->items[i] = MARKER + (uint32_t)f->address;
		if (kind == PROFILE_MODULE_RUNTIME) {
			const struct profile_line *l = &p->lines.items[f->first_line];
			const char *name = profile_text(p, p->functions.items[l->function].name);

			CHECK_INT(f->n_lines, ==, 1);
			ret->items[i] = RUNTIME + l->line;
			CHECK_STR(name, l->line % 2 ? "odd" : "even");
		}
	}
}

static void check_frames(const struct frames *have, const struct frames *want)
{
	for (uint32_t i = 0; i < have->n || i < want->n; i++) {
		if (i >= have->n || i >= want->n || have->items[i] != want->items[i]) {
			for (uint32_t k = 0; k < have->n || k < want->n; k++)
				fprintf(stderr, "  %2u have %#x want %#x\n", k,
					k < have->n ? have->items[k] : 0,
					k < want->n ? want->items[k] : 0);
		}
		CHECK_INT(i < have->n ? have->items[i] : 0, ==, i < want->n ? want->items[i] : 0);
	}
}

/* ---- The model of the places ---- */

/* The first frame of the run of growing stack pointers that frame i is in. */
static uint64_t run_of(const struct given *g, uint32_t i, uint32_t *ret_first)
{
	uint32_t first = i, before = i;

	while (before-- > 0) {
		if (g->sp[before] == 0)
			continue;
		if (g->sp[before] > g->sp[first])
			break;
		first = before;
	}
	*ret_first = first;
	return g->sp[first];
}

/* In front of which native frame the runtime's frame stands, at `from` or behind it. */
static uint32_t place_of(const struct given *g, uint64_t sp, uint32_t from)
{
	uint32_t ignored;

	for (uint32_t i = from; i < g->n_native; i++) {
		if (g->sp[i] != 0 && g->sp[i] >= sp && run_of(g, i, &ignored) <= sp)
			return i;
	}
	return g->n_native;
}

static void model_join(const struct given *g, struct frames *ret)
{
	uint32_t place[MAX_OWN], at = 0;

	ret->n = 0;
	for (uint32_t k = 0; k < g->n_own; k++)
		place[k] = at = place_of(g, g->own[k].sp, at);
	for (uint32_t i = 0; i < g->n_kernel; i++)
		ret->items[ret->n++] = native_address(g, i);
	for (uint32_t i = 0; i <= g->n_native; i++) {
		bool hidden = false;

		for (uint32_t k = 0; k < g->n_own; k++) {
			uint32_t own_run, run;

			if (place[k] == i)
				ret->items[ret->n++] = RUNTIME + g->own[k].line;
			if (i == g->n_native || place[k] > i || g->sp[i] == 0)
				continue;
			(void)run_of(g, place[k], &own_run);
			(void)run_of(g, i, &run);
			hidden |= own_run == run && g->sp[i] >= g->own[k].sp &&
				  g->sp[i] < g->own[k].sp_end;
		}
		if (i < g->n_native && !hidden)
			ret->items[ret->n++] = native_address(g, g->n_kernel + i);
	}
	if (g->marker != PROFILE_N_MARKERS)
		ret->items[ret->n++] = MARKER + g->marker;
}

/* ---- Made-up stacks ---- */

static void put_own(struct given *g, uint64_t sp, uint64_t sp_end)
{
	struct runtime_frame *f = &g->own[g->n_own];

	*f = (struct runtime_frame){
		.sp = sp,
		.sp_end = sp_end,
		.runtime = PROFILE_RUNTIME_CPYTHON,
		.line = g->id * MAX_OWN + g->n_own,
		.file = "app.py",
	};
	f->function = f->line % 2 ? "odd" : "even";
	g->n_own++;
}

/* Stack pointers that grow, now and then those of another stack, or none that is known. */
static void make(struct given *g, uint32_t id)
{
	uint64_t sp = 0x1000, own_sp;

	*g = (struct given){
		.id = id, .n_kernel = chance(3), .n_native = 1 + chance(MAX_NATIVE - 4)};
	g->marker = chance(4) ? PROFILE_N_MARKERS : chance(PROFILE_MARKER_RUNTIME_LATE);
	for (uint32_t i = 0; i < g->n_native; i++) {
		if (chance(12) == 0)
			sp = chance(2) ? sp + 0x100000 : 0x800 + chance(0x800);
		g->sp[i] = chance(15) == 0 ? 0 : sp;
		sp += chance(4) * 16;
	}
	own_sp = chance(3) ? 0x1000 : g->sp[chance(g->n_native)];
	for (uint32_t n = chance(MAX_OWN); g->n_own < n;) {
		uint64_t end = chance(2) ? 0 : own_sp + chance(64);

		put_own(g, own_sp, end);
		own_sp = chance(10) == 0 ? g->sp[chance(g->n_native)] : own_sp + chance(40);
	}
}

static struct runtime_frames own_of(const struct given *g)
{
	return (struct runtime_frames){.items = g->own, .n = g->n_own};
}

/* ---- Places ---- */

struct bench {
	struct profile p;
	struct joiner j;
	uint32_t rows[MAX_ROWS];
};

static void begin(struct bench *b, uint64_t max_bytes)
{
	profile_init(&b->p, max_bytes);
	CHECK_INT(joiner_init(&b->j, &b->p, MAX_ROWS), ==, 0);
}

static void end(struct bench *b)
{
	joiner_deinit(&b->j);
	profile_deinit(&b->p);
}

static void check_joined(struct bench *b, const struct given *g)
{
	const struct runtime_frames own = own_of(g);
	struct walked_stack stack;
	struct frames have, want;
	uint32_t row;

	give_rows(&b->p, g, b->rows, &stack);
	row = joiner_stack(&b->j, &stack, &own, PROFILE_N_MARKERS, 0);
	CHECK_INT(row, !=, PROFILE_NONE);
	CHECK_INT(b->p.stacks.items[row].n_kernel, ==, g->n_kernel);
	read_stack(&b->p, row, &have);
	model_join(g, &want);
	check_frames(&have, &want);
}

/* CPython: each run of its eval function is in the place of one frame; the next one was called by
 * a C function that Python code had called. */
static void test_frames_in_the_middle(void)
{
	struct given g = {.n_kernel = 1,
			  .n_native = 5,
			  .marker = PROFILE_N_MARKERS,
			  .sp = {0x100, 0x140, 0x180, 0x240, 0x300}};
	const uint32_t want[] = {NATIVE + 0, NATIVE + 1,  RUNTIME + 0, RUNTIME + 1,
				 NATIVE + 3, RUNTIME + 2, NATIVE + 5};
	struct frames have;
	struct bench b;

	put_own(&g, 0x140, 0x180);
	put_own(&g, 0x148, 0);
	put_own(&g, 0x240, 0x241);
	begin(&b, 1 << 20);
	check_joined(&b, &g);
	read_stack(&b.p, 0, &have);
	CHECK_INT(have.n, ==, ARRAY_SIZE(want));
	for (uint32_t i = 0; i < have.n; i++)
		CHECK_INT(have.items[i], ==, want[i]);
	end(&b);
}

/* A signal handler on a stack of its own, above or below: the runtime's frames are of the other. */
static void test_frames_of_the_other_stack(void)
{
	const uint64_t base[] = {0x100, 0x900000};

	for (size_t i = 0; i < ARRAY_SIZE(base); i++) {
		struct given g = {.n_native = 4,
				  .marker = PROFILE_N_MARKERS,
				  .sp = {base[i], base[i] + 64, 0x4000, 0x4100}};
		struct frames have;
		struct bench b;

		put_own(&g, 0x4080, 0x4101);
		begin(&b, 1 << 20);
		check_joined(&b, &g);
		read_stack(&b.p, 0, &have);
		CHECK_INT(have.n, ==, 4);
		CHECK_INT(have.items[2], ==, NATIVE + 2);
		CHECK_INT(have.items[3], ==, RUNTIME + 0);
		end(&b);
	}
}

static void test_places_by_chance(void)
{
	struct bench b;
	struct given g;

	begin(&b, 64 << 20);
	for (uint32_t i = 0; i < 20000; i++) {
		make(&g, i);
		check_joined(&b, &g);
	}
	end(&b);
}

static void test_too_many_frames(void)
{
	enum { N = FRAME_SOURCE_MAX_FRAMES + 1 };
	struct runtime_frame *many = calloc(N, sizeof(*many));
	const struct runtime_frames frames = {.items = many, .n = N};
	struct given g = {.n_native = 1, .marker = PROFILE_N_MARKERS, .sp = {0x100}};
	struct walked_stack stack;
	const uint32_t *rows;
	struct bench b;
	uint32_t row, n;

	for (uint32_t i = 0; i < N; i++)
		many[i].runtime = PROFILE_RUNTIME_RUBY;
	begin(&b, 1 << 20);
	give_rows(&b.p, &g, b.rows, &stack);
	row = joiner_stack(&b.j, &stack, &frames, PROFILE_MARKER_RUNTIME_LATE, 0);
	CHECK_INT(row, !=, PROFILE_NONE);
	rows = profile_stack_frames(&b.p, row, &n);
	CHECK_INT(n, ==, 1 + N - 1 + 2);
	CHECK_INT(b.p.frames.items[rows[n - 2]].address, ==, PROFILE_MARKER_TOO_DEEP);
	CHECK_INT(b.p.frames.items[rows[n - 1]].address, ==, PROFILE_MARKER_RUNTIME_LATE);
	CHECK_INT(b.p.types[0].counters[PROFILE_STACKS_TOO_DEEP], ==, 1);
	free(many);
	end(&b);
}

/* Names of strangers. */
static void test_names_are_cleaned(void)
{
	const struct runtime_frame own[] = {
		{.runtime = PROFILE_RUNTIME_PHP, .function = "a\nb\xff", .file = "\x1b[0m"},
		{.runtime = PROFILE_RUNTIME_PHP}};
	const struct runtime_frames frames = {.items = own, .n = 2};
	struct given g = {.n_native = 0, .marker = PROFILE_N_MARKERS};
	const struct profile_function *f;
	struct walked_stack stack;
	struct bench b;

	begin(&b, 1 << 20);
	give_rows(&b.p, &g, b.rows, &stack);
	CHECK_INT(joiner_stack(&b.j, &stack, &frames, PROFILE_N_MARKERS, 0), ==, 0);
	f = &b.p.functions.items[0];
	CHECK_STR(profile_text(&b.p, f->name), "a?b?");
	CHECK_STR(profile_text(&b.p, f->file), "?[0m");
	CHECK_INT(b.p.frames.n, ==, 2);
	CHECK_INT(b.p.frames.items[1].n_lines, ==, 0);
	end(&b);
}

int main(void)
{
	RUN(test_frames_in_the_middle);
	RUN(test_frames_of_the_other_stack);
	RUN(test_places_by_chance);
	RUN(test_too_many_frames);
	RUN(test_names_are_cleaned);
	return 0;
}
