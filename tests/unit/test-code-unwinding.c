/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks through compiled code by what jitdump files say of it: of both layouts, code that moves and
 * is replaced, and files that lie. The stacks are of f, which was called by g, which nobody called;
 * the frame pointer says nothing.
 */
#include "src/profiler/code-unwinding.h"
#include "tests/unit/jitdump-file.h"

#define AREA	   UINT64_C(0x10000000) /* anonymous executable memory */
#define AREA_BYTES (UINT64_C(1) << 24)
#define F	   (AREA + 0x100)
#define G	   (AREA + 0x1000)
#define SIZE	   60 /* of both: what is behind them is at the next multiple of 8 */
#define SP	   UINT64_C(0x7ffd00001000)
#define F_WORDS	   4 /* of their frames, with the return address */
#define G_WORDS	   7
#if defined(__aarch64__)
#define REG_SP 31
#define REG_PC 32
#define REG_RA 30
#else
#define REG_SP 7
#define REG_PC 16
#define REG_RA 16
#endif

struct bench {
	struct unwinder *unwinder;
	struct code_unwinding *code;
	struct dump *dump;
	uint32_t pid;
	uint64_t time_ns;
	uint64_t stack[16];
	struct unwind_frame frames[8];
	size_t n;
};

static struct bench *start(void)
{
	struct bench *b = calloc(1, sizeof(*b));

	CHECK(b != NULL);
	CHECK_INT(unwinder_new(&b->unwinder, NULL), ==, 0);
	CHECK_INT(code_unwinding_new(&b->code, b->unwinder), ==, 0);
	b->dump = dump_new(0);
	b->pid = 1;
	b->time_ns = ALL;
	b->stack[F_WORDS - 1] = G + 20;
	return b;
}

static void finish_bench(struct bench *b)
{
	code_unwinding_free(b->code);
	unwinder_free(b->unwinder);
	dump_free(b->dump);
	free(b);
}

static bool find(void *ctx, uint64_t pc, struct unwind_mapping *ret)
{
	const struct bench *b = ctx;

	if (pc - AREA >= AREA_BYTES)
		return false;
	*ret = (struct unwind_mapping){.start = AREA, .end = AREA + AREA_BYTES};
	code_unwinding_find(b->code, b->pid, 1, b->dump->fd, b->time_ns, pc, ret);
	return true;
}

/* By the file as it is now. */
static enum unwind_outcome walk(struct bench *b, uint64_t pc)
{
	struct unwind_regs regs = {
		.valid = UNWIND_REG_BIT(REG_SP) | UNWIND_REG_BIT(REG_PC),
	};

	regs.r[REG_SP] = SP;
	regs.r[REG_PC] = pc;
	CHECK_INT(pwrite(b->dump->fd, b->dump->bytes, b->dump->n, 0), ==, b->dump->n);
	code_unwinding_begin(b->code);
	return unwind_walk(b->unwinder, &regs, (const uint8_t *)b->stack, sizeof(b->stack), find, b,
			   b->frames, ARRAY_SIZE(b->frames), &b->n);
}

static void check_whole(struct bench *b, uint64_t pc)
{
	CHECK_STR(unwind_outcome_name(walk(b, pc)), "complete");
	CHECK_INT(b->n, ==, 2);
	CHECK_INT(b->frames[0].address, ==, pc);
	CHECK_INT(b->frames[1].address, ==, G + 19);
	CHECK_INT(b->frames[1].bias, ==, 0);
}

static void check_lost(struct bench *b, uint64_t pc)
{
	CHECK_STR(unwind_outcome_name(walk(b, pc)), "no CFI");
	CHECK_INT(b->n, ==, 1);
}

/* ---- Records ---- */

#define FDE_BYTES 20
#define CIE_BYTES 24

static void put_cie(struct dump *d)
{
	const uint8_t body[16] = {1, 'z',  'R',	 0,	 1, 0x78,	   REG_RA,
				  1, 0x1b, 0x0c, REG_SP, 8, 0x80 | REG_RA, 1};

	put32(d, CIE_BYTES - 4);
	put32(d, 0);
	put(d, body, sizeof(body));
}

/* Of a function whose CFA is sp + 8 * words; at: where the section's first byte is meant to be. */
static void put_fde(struct dump *d, size_t section, uint64_t at, uint64_t from, uint32_t size,
		    uint8_t words)
{
	const uint8_t rest[] = {0, 0x0e, (uint8_t)(8 * words), 0};
	size_t offset = d->n - section;

	put32(d, FDE_BYTES - 4);
	put32(d, (uint32_t)offset + 4);
	put32(d, (uint32_t)(from - (at + offset + 8)));
	put32(d, size);
	put(d, rest, sizeof(rest));
}

static void put_sizes(struct dump *d, uint64_t n, uint64_t n_header)
{
	put64(d, n);
	put64(d, n_header);
	put64(d, n);
}

/* V8's: as if it stood behind the code; the header is last. */
static void put_behind_of(struct dump *d, uint64_t time, uint64_t code, uint64_t from,
			  uint32_t size, uint8_t words)
{
	size_t section;

	begin(d, 4, time);
	put_sizes(d, CIE_BYTES + FDE_BYTES + 4 + 20, 20);
	section = d->n;
	put_cie(d);
	put_fde(d, section, code + ((SIZE + 7) & ~7u), from, size, words);
	put32(d, 0);
	put(d, "\x01\x1b\x03\x3b----++++****////", 20);
	finish(d);
}

static void put_behind(struct dump *d, uint64_t time, uint64_t from, uint8_t words)
{
	put_behind_of(d, time, from, from, SIZE, words);
}

static void put_function(struct dump *d, uint64_t time, uint64_t from, uint8_t words)
{
	put_behind(d, time, from, words);
	put_load(d, time, from, SIZE, "f");
}

/* LLVM's: of f and g; the header is first and tells where it is. */
static void put_apart(struct dump *d, uint64_t at)
{
	size_t section;

	begin(d, 4, 1);
	put_sizes(d, 12 + CIE_BYTES + 2 * FDE_BYTES + 4, 12);
	put(d, "\x01\x0c\xff\xff", 4);
	put64(d, at);
	section = d->n;
	put_cie(d);
	put_fde(d, section, at, F, SIZE, F_WORDS);
	put_fde(d, section, at, G, SIZE, G_WORDS);
	put32(d, 0);
	finish(d);
	put_load(d, 1, F, SIZE, "f");
	put_load(d, 1, G, SIZE, "g");
}

static struct bench *start_with_both(void)
{
	struct bench *b = start();

	put_function(b->dump, 1, F, F_WORDS);
	put_function(b->dump, 1, G, G_WORDS);
	return b;
}

static struct code_unwinding_stats stats(const struct bench *b)
{
	struct code_unwinding_stats s;

	code_unwinding_stats(b->code, &s);
	return s;
}

/* ---- Cases ---- */

static void test_behind(void)
{
	struct bench *b = start_with_both();

	check_whole(b, F);
	check_whole(b, F + 30);
	check_whole(b, F + SIZE - 1);
	check_lost(b, F + SIZE);
	check_lost(b, F - 1);
	CHECK_INT(stats(b).modules_made, ==, 2);
	finish_bench(b);
}

static void test_none(void)
{
	struct bench *b = start();

	check_lost(b, F); /* without a function */
	put_load(b->dump, 1, F, SIZE, "f");
	put_load(b->dump, 1, G, SIZE, "g");
	check_lost(b, F);
	begin(b->dump, 4, 1); /* V8's way to say that there is nothing to say: a header alone */
	put_sizes(b->dump, 20, 20);
	put(b->dump, "\x01\x1b\x03\x3b----++++****////", 20);
	finish(b->dump);
	for (uint64_t i = 0; i < 500; i++)
		put_load(b->dump, 1, F + 100 * i, SIZE, "f");
	check_lost(b, F);
	CHECK_INT(stats(b).modules_made + stats(b).refused, ==, 0);
	CHECK_INT(stats(b).bytes, <, 4096); /* such functions take no memory */
	finish_bench(b);
}

static void test_apart(void)
{
	struct bench *b = start();

	put_apart(b->dump, AREA + 0x654321);
	check_whole(b, F + 30);
	CHECK_INT(stats(b).modules_made, ==, 1);
	/* A record is of what follows it, up to the next one. */
	put_function(b->dump, 2, AREA + 0x5000, F_WORDS);
	put_load(b->dump, 2, F, SIZE, "f");
	check_whole(b, AREA + 0x5000);
	check_lost(b, F);
	finish_bench(b);
}

/* Many functions of one record have its bytes once, also when they do not wait any more. */
static void test_shared(void)
{
	struct bench *b = start();
	size_t section;

	begin(b->dump, 4, 1);
	put_sizes(b->dump, 12 + 20000, 12);
	put(b->dump, "\x01\x0c\xff\xff", 4);
	put64(b->dump, AREA + 0x654320);
	section = b->dump->n;
	put_cie(b->dump);
	for (uint64_t i = 0; i < 400; i++)
		put_fde(b->dump, section, AREA + 0x654320, F + 64 * i, SIZE, F_WORDS);
	put_fde(b->dump, section, AREA + 0x654320, G + 0x100000, SIZE, G_WORDS);
	while (b->dump->n < section + 20000)
		put32(b->dump, 0);
	finish(b->dump);
	for (uint64_t i = 0; i < 400; i++)
		put_load(b->dump, 1, F + 64 * i, SIZE, "f");
	put_load(b->dump, 1, G + 0x100000, SIZE, "g");
	b->stack[F_WORDS - 1] = G + 0x100000 + 20;
	for (uint64_t i = 0; i < 400; i += 7) {
		CHECK_STR(unwind_outcome_name(walk(b, F + 64 * i)), "complete");
		CHECK_INT(b->n, ==, 2);
	}
	CHECK_INT(stats(b).modules_made, ==, 1);
	CHECK_INT(stats(b).bytes, <, 400000);
	finish_bench(b);
}

static void test_moves(void)
{
	struct bench *b = start_with_both();
	const uint64_t there = AREA + 0x20003;

	check_whole(b, F + 30);
	put_move(b->dump, 2, there, F, SIZE);
	check_whole(b, there + 30);
	check_whole(b, F + 30); /* who is still in there */
	put_load(b->dump, 3, F, SIZE, "another");
	check_lost(b, F + 30);
	put_move(b->dump, 4, F, there, SIZE);
	check_whole(b, F + 30);
	put_move(b->dump, 5, F + 1, AREA + 0x30000, SIZE); /* of nothing */
	CHECK_INT(stats(b).refused, ==, 0);
	check_whole(b, F + 30);
	CHECK_INT(stats(b).refused, ==, 1);
	finish_bench(b);
}

/* Other code where code was: never by the rows of the old one. */
static void test_replaced(void)
{
	struct bench *b = start_with_both();

	check_whole(b, F + 30);
	put_function(b->dump, 2, F, F_WORDS + 2);
	b->stack[F_WORDS - 1] = 1;
	b->stack[F_WORDS + 1] = G + 20;
	check_whole(b, F + 30);
	/* In the middle of it; its two ends stay. */
	put_load(b->dump, 3, F + 20, 10, "h");
	check_lost(b, F + 25);
	check_whole(b, F + 19);
	check_whole(b, F + 30);
	put_function(b->dump, 4, F + 20, F_WORDS + 2);
	check_whole(b, F + 25);
	finish_bench(b);
}

static void test_piece(void)
{
	struct dump *d = dump_new(0);
	_cleanup_(jitdump_freep) struct jitdump *j = NULL;
	const struct symbol_limits limits = SYMBOL_LIMITS_DEFAULT;
	struct jitdump_unwinding u;

	CHECK_INT(jitdump_new(&j, &limits, JITDUMP_UNWINDING), ==, 0);
	put_function(d, 1, F, F_WORDS);
	put_load(d, 1, F + 10, 5, "in it");
	put_load(d, 1, F + 40, 500, "over its end");
	for (uint64_t i = 0; i < 300; i++) { /* with these they do not wait any more */
		if (i == 0 || i == 299) {
			CHECK_INT(update(j, d, d->n, ALL), ==, 0);
			CHECK_INT(jitdump_lookup_unwinding(j, F + 3, &u), ==, 0);
			CHECK_INT(u.start, ==, F);
			CHECK_INT(u.end, ==, F + 10);
			CHECK_INT(u.address, ==, F + 64);
			CHECK_INT(u.n_eh_frame, ==, CIE_BYTES + FDE_BYTES + 4);
			CHECK_INT(jitdump_lookup_unwinding(j, F + 10, &u), ==, 1);
			CHECK_INT(jitdump_lookup_unwinding(j, F + 15, &u), ==, 0);
			CHECK_INT(u.start, ==, F + 15);
			CHECK_INT(u.end, ==, F + 40);
			CHECK_INT(u.address, ==, F + 64);
			CHECK_INT(jitdump_lookup_unwinding(j, F + 40, &u), ==, 1);
		}
		put_load(d, 2, G + 100 * i, 100, "elsewhere");
	}
	dump_free(d);
}

static void test_time(void)
{
	struct bench *b = start();

	put_function(b->dump, 10, F, F_WORDS);
	put_function(b->dump, 10, G, G_WORDS);
	put_load(b->dump, 20, F, SIZE, "another");
	b->time_ns = 9;
	check_lost(b, F);
	b->time_ns = 10;
	check_whole(b, F);
	b->time_ns = 19;
	check_whole(b, F);
	b->time_ns = 20;
	check_lost(b, F);
	/* It goes on where the file goes on. */
	b->time_ns = 30;
	check_lost(b, F);
	put_function(b->dump, 30, F, F_WORDS);
	check_whole(b, F);
	finish_bench(b);
}

static void test_processes(void)
{
	struct bench *b = start_with_both();

	for (b->pid = 1; b->pid <= 200; b->pid++)
		check_whole(b, F);
	CHECK_INT(stats(b).modules_made, ==, 400);
	b->pid = 200;
	check_whole(b, F);
	CHECK_INT(stats(b).modules_made, ==, 400);
	for (b->pid = 1; b->pid <= 200; b->pid++)
		code_unwinding_forget(b->code, b->pid, 1);
	CHECK_INT(stats(b).bytes, ==, 0);
	finish_bench(b);
}

/* Another file of the same process, whose functions stand where those of the first did: behind an
 * exec, or when the process was forgotten in between. */
static void check_another_file(bool forget)
{
	struct bench *b = start_with_both();

	check_whole(b, F);
	dump_free(b->dump);
	b->dump = dump_new(0);
	put_function(b->dump, 1, F, F_WORDS + 1);
	put_function(b->dump, 1, G, G_WORDS);
	b->stack[F_WORDS - 1] = 1;
	b->stack[F_WORDS] = G + 20;
	if (forget)
		code_unwinding_forget(b->code, b->pid, 1);
	check_whole(b, F);
	finish_bench(b);
}

static void test_another_file(void)
{
	check_another_file(false);
	check_another_file(true);
}

/* ---- Files that lie ---- */

/* A record of these sizes in front of an .eh_frame that would be right. */
static void check_sizes(uint64_t n, uint64_t n_header, uint64_t refused)
{
	struct bench *b = start();
	size_t at = b->dump->n + 16;

	put_behind(b->dump, 1, F, F_WORDS);
	memcpy(b->dump->bytes + at, &n, sizeof(n));
	memcpy(b->dump->bytes + at + 8, &n_header, sizeof(n_header));
	put_load(b->dump, 1, F, SIZE, "f");
	put_function(b->dump, 1, G, G_WORDS);
	check_lost(b, F);
	CHECK_INT(stats(b).refused, ==, refused);
	CHECK_STR(unwind_outcome_name(walk(b, G)), "complete"); /* the record behind it is read */
	finish_bench(b);
}

static void test_sizes(void)
{
	const uint64_t n = CIE_BYTES + FDE_BYTES + 4 + 20;

	check_sizes(n + 1, 20, 1);
	check_sizes(UINT64_MAX, 20, 1);
	check_sizes(n, n + 1, 1);
	check_sizes(n, UINT64_MAX, 1);
	check_sizes(0, 0, 0);
	check_sizes(n, n, 0);
	check_sizes(3, 0, 0);
}

static void test_too_large(void)
{
	struct bench *b = start();

	begin(b->dump, 4, 1);
	put_sizes(b->dump, 60000, 0);
	for (int i = 0; i < 60000 / 4; i++)
		put32(b->dump, 0);
	finish(b->dump);
	put_load(b->dump, 1, F, SIZE, "f");
	check_lost(b, F); /* many ends */
	CHECK_INT(stats(b).modules_made, ==, 1);
	CHECK_INT(stats(b).refused, ==, 0);
	finish_bench(b);
}

static void test_wrong_place(void)
{
	struct bench *b = start();

	/* The FDE is of other code. */
	put_behind_of(b->dump, 1, F, F + 0x5000, SIZE, F_WORDS);
	put_load(b->dump, 1, F, SIZE, "f");
	check_lost(b, F);
	/* It says that it is of everything: no more than the function is asked for. */
	put_behind_of(b->dump, 1, F, F - 0x1000, UINT32_MAX / 4, F_WORDS);
	put_load(b->dump, 1, F, SIZE, "f");
	put_load(b->dump, 1, F + SIZE, SIZE, "h");
	check_lost(b, F + SIZE);
	/* A header that comes first and does not tell the place. */
	begin(b->dump, 4, 1);
	put_sizes(b->dump, 8 + CIE_BYTES + FDE_BYTES, 8);
	put(b->dump, "\x01\x1b\xff\xff----", 8);
	put_cie(b->dump);
	put_fde(b->dump, b->dump->n - CIE_BYTES, F + 64, F, SIZE, F_WORDS);
	finish(b->dump);
	put_load(b->dump, 1, F, SIZE, "f");
	check_lost(b, F);
	CHECK_INT(stats(b).refused, ==, 1);
	/* At the ends of the world. */
	put_apart(b->dump, 1);
	(void)walk(b, F);
	put_apart(b->dump, UINT64_MAX);
	(void)walk(b, F);
	put_apart(b->dump, INT64_MAX);
	(void)walk(b, F);
	finish_bench(b);
}

static void test_mutants(void)
{
	struct bench *b = start_with_both();
	const size_t n = b->dump->n;
	_cleanup_free_ uint8_t *whole = malloc(n);
	unsigned int n_whole = 0;

	memcpy(whole, b->dump->bytes, n);
	srand(7);
	for (int i = 0; i < 3000; i++) {
		memcpy(b->dump->bytes, whole, n);
		for (int k = 0; k <= i % 4; k++)
			b->dump->bytes[40 + (size_t)rand() % (n - 40)] = (uint8_t)rand();
		b->pid = 2 + (uint32_t)i;
		n_whole += walk(b, F + 30) == UNWIND_COMPLETE && b->n == 2;
	}
	CHECK_INT(n_whole, >, 300);
	CHECK_INT(n_whole, <, 3000);
	finish_bench(b);
}

/* ---- Limits ---- */

/* More functions than modules are kept: each has its rows all the same. */
static void test_many(void)
{
	struct bench *b = start();

	put_function(b->dump, 1, G, G_WORDS);
	for (uint64_t i = 0; i < 300; i++)
		put_function(b->dump, 1, AREA + 0x10000 + 64 * i, F_WORDS);
	for (b->pid = 1; b->pid < 5; b->pid++) {
		for (uint64_t i = 0; i < 300; i++)
			check_whole(b, AREA + 0x10000 + 64 * i);
	}
	CHECK_INT(stats(b).modules_made, >=, 1200);
	CHECK_INT(stats(b).modules_refused, ==, 0);
	finish_bench(b);
}

/* A stack of nothing but different functions with a lot to read: one walk does not get to its end,
 * but each gets further. */
static void test_long_walk(void)
{
	struct bench *b = start();
	uint64_t stack[49] = {0};
	struct unwind_frame frames[64];
	struct unwind_regs regs = {.valid = UNWIND_REG_BIT(REG_SP) | UNWIND_REG_BIT(REG_PC)};
	enum unwind_outcome outcome;
	size_t n = 0, n_before = 0;

	for (uint64_t i = 0; i < 6; i++) {
		size_t section, size = 10000;

		begin(b->dump, 4, 1);
		put_sizes(b->dump, size, 0);
		section = b->dump->n;
		put_cie(b->dump);
		put_fde(b->dump, section, F + 0x100 * i + 64, F + 0x100 * i, SIZE, 1);
		while (b->dump->n < section + size)
			put32(b->dump, 0);
		finish(b->dump);
		put_load(b->dump, 1, F + 0x100 * i, SIZE, "f");
		for (uint64_t k = 0; k < 8; k++) {
			uint64_t place = F + 0x10000 * k + 0x100 * i;

			if (k > 0)
				put_move(b->dump, 1, place, F + 0x100 * i, SIZE);
			stack[i * 8 + k] = place + 20;
		}
	}
	regs.r[REG_SP] = SP;
	regs.r[REG_PC] = F;
	CHECK_INT(pwrite(b->dump->fd, b->dump->bytes, b->dump->n, 0), ==, b->dump->n);
	for (int i = 0; i < 3; i++) {
		code_unwinding_begin(b->code);
		outcome = unwind_walk(b->unwinder, &regs, (const uint8_t *)stack, sizeof(stack),
				      find, b, frames, ARRAY_SIZE(frames), &n);
		CHECK_STR(unwind_outcome_name(outcome), i < 2 ? "no CFI" : "complete");
		CHECK_INT(n, >, n_before);
		n_before = n;
	}
	CHECK_INT(n, ==, 49);
	CHECK_INT(stats(b).modules_refused, ==, 2);
	finish_bench(b);
}

/* A compiler that never ends: the tables stay within their limits. */
static void test_bounded(void)
{
	struct bench *b = start();
	off_t at = 0;

	for (uint64_t i = 0, start = AREA; i < 400; i++) {
		CHECK_INT(pwrite(b->dump->fd, b->dump->bytes, b->dump->n, at), ==, b->dump->n);
		at += (off_t)b->dump->n;
		b->dump->n = 0;
		for (int k = 0; k < 250; k++, start += 64)
			put_function(b->dump, 1, start, F_WORDS);
	}
	for (int i = 0; i < 100; i++) {
		struct unwind_mapping m = {.start = AREA, .end = AREA + AREA_BYTES};

		code_unwinding_begin(b->code);
		code_unwinding_find(b->code, 1, 1, b->dump->fd, ALL, AREA, &m);
		CHECK(m.module != NULL);
	}
	CHECK_INT(stats(b).refused, >, 0);
	CHECK_INT(stats(b).bytes, <, 24 << 20);
	fprintf(stderr, "  %d bytes, %d functions refused\n", (int)stats(b).bytes,
		(int)stats(b).refused);
	finish_bench(b);
}

int main(void)
{
	RUN(test_behind);
	RUN(test_none);
	RUN(test_apart);
	RUN(test_shared);
	RUN(test_moves);
	RUN(test_replaced);
	RUN(test_piece);
	RUN(test_time);
	RUN(test_processes);
	RUN(test_another_file);
	RUN(test_sizes);
	RUN(test_too_large);
	RUN(test_wrong_place);
	RUN(test_mutants);
	RUN(test_many);
	RUN(test_long_walk);
	RUN(test_bounded);
	return 0;
}
