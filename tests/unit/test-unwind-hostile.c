/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile stacks, registers and files: whatever they hold, a walk ends soon, in bounds, with an
 * outcome. Mutation alone finds little in such code, so the bombs are built on purpose: rules for
 * register 134 million (2 GB in libdw), 30000 remembered states, expressions without end.
 */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "tests/unit/test.h"
#include "tests/unit/unwind-elf.h"
#include "tests/unit/unwind-proc.h"
#include "unwind/internal.h"
#include "util/clock.h"

static uint64_t state = 88172645463325252u;

static uint64_t random_u64(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* An address of our own code, a stack address, a small number, or anything. */
static uint64_t random_word(const struct proc_maps *maps, uint64_t sp)
{
	const struct proc_mapping *m = &maps->items[random_u64() % maps->n];

	switch (random_u64() % 8) {
	case 0 ... 3:
		return m->start + random_u64() % (m->end - m->start);
	case 4:
	case 5:
		return sp + random_u64() % 2048;
	case 6:
		return random_u64() % 100;
	default:
		return random_u64();
	}
}

/* 150000 walks over nonsense through the real libraries of this process. */
static void test_random_stacks(void)
{
	struct proc_modules modules = {.u = NULL};
	struct proc_maps maps;
	struct unwind_frame frames[40];
	uint64_t stack[64];
	uint64_t outcomes[UNWIND_N_OUTCOMES] = {0};
	unsigned int kinds = 0;

	CHECK_INT(unwinder_new(&modules.u, NULL), ==, 0);
	CHECK_INT(proc_maps_load(&maps, &modules, getpid(), NULL), ==, 0);
	for (unsigned int i = 0; i < 150000; i++) {
		struct unwind_regs regs = {.valid = random_u64() | UNWIND_REG_BIT(ARCH_REG_SP) |
						    UNWIND_REG_BIT(ARCH_REG_PC)};
		uint64_t sp = UINT64_C(0x7ffd00001000) + (random_u64() % 16 == 0 ? 3 : 0);
		enum unwind_outcome outcome;
		size_t n, n_stack = random_u64() % (sizeof(stack) + 1);

		if (random_u64() % 64 == 0)
			sp = UINT64_MAX - random_u64() % 600;
		for (size_t k = 0; k < ARRAY_SIZE(stack); k++)
			stack[k] = random_word(&maps, sp);
		for (size_t k = 0; k < UNWIND_N_REGS; k++)
			regs.r[k] = random_word(&maps, sp);
		regs.r[ARCH_REG_SP] = sp;
		outcome = unwind_walk(modules.u, &regs, (const uint8_t *)stack, n_stack, proc_find,
				      &maps, frames, ARRAY_SIZE(frames), &n);
		CHECK_INT(outcome, <, UNWIND_N_OUTCOMES);
		CHECK_INT(n, >=, 1);
		CHECK_INT(n, <=, ARRAY_SIZE(frames));
		outcomes[outcome]++;
	}
	for (unsigned int i = 0; i < UNWIND_N_OUTCOMES; i++) {
		fprintf(stderr, "  %s %" PRIu64 "\n", unwind_outcome_name(i), outcomes[i]);
		CHECK_INT(outcomes[i], ==, unwinder_stats(modules.u)->outcomes[i]);
		kinds += outcomes[i] > 0;
	}
	CHECK_INT(kinds, >=, 4);
	proc_maps_deinit(&maps);
	proc_modules_deinit(&modules);
	unwinder_free(modules.u);
}

/* Whatever CFI says at pcs all over the file is asked for, both ways. */
static void compile_everywhere(struct unwind_module *m, unsigned int n)
{
	struct stack_copy stack = {.start = 0x7000, .n = 512};
	static uint8_t bytes[512];
	static struct full_rule full;
	struct row row;

	stack.bytes = bytes;
	for (unsigned int i = 0; i < n; i++) {
		uint64_t pc = m->base + random_u64() % m->span;
		struct unwind_regs regs = {.valid = UNWIND_ALL_REGS};

		for (unsigned int k = 0; k < UNWIND_N_REGS; k++)
			regs.r[k] = 0x7000 + random_u64() % 600;
		cfi_compile_row(m, pc, &row);
		CHECK_INT(row.start, <=, pc - m->base);
		CHECK_INT(row.end, >, pc - m->base);
		if (cfi_compile_full(m, pc, &full) == 0)
			(void)step_full(&full, &stack, true, &regs);
	}
}

/* The test program's own file with bytes changed in its headers and its CFI. */
static void test_mutations(void)
{
	_cleanup_close_ int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct unwind_module *m = NULL, *whole = NULL;
	struct unwinder *u = NULL;
	unsigned int loaded = 0;
	struct stat st;
	uint8_t *image, *copy;
	uint64_t cfi_at, hdr_at;

	CHECK_INT(unwinder_new(&u, NULL), ==, 0);
	CHECK_INT(fstat(exe, &st), ==, 0);
	image = malloc((size_t)st.st_size);
	copy = malloc((size_t)st.st_size);
	CHECK_INT(pread(exe, image, (size_t)st.st_size, 0), ==, st.st_size);
	CHECK_INT(unwind_module_new_memory(&whole, u, image, (size_t)st.st_size, "whole"), ==, 0);
	CHECK(whole->eh_frame.data.data && whole->hdr.data);
	cfi_at = (uint64_t)(whole->eh_frame.data.data - image);
	hdr_at = (uint64_t)(whole->hdr.data - image);
	for (unsigned int i = 0; i < 600; i++) {
		memcpy(copy, image, (size_t)st.st_size);
		for (unsigned int k = 0; k < 1 + random_u64() % 40; k++) {
			uint64_t at = random_u64() % 3 == 0 ? random_u64() % 0x400
				      : random_u64() % 2
					      ? cfi_at + random_u64() % whole->eh_frame.data.n
					      : hdr_at + random_u64() % whole->hdr.n;

			if (i % 4 != 0 && at < 0x400)
				continue;
			copy[at] = (uint8_t)random_u64();
		}
		if (unwind_module_new_memory(&m, u, copy, (size_t)st.st_size, "mutant") < 0)
			continue;
		loaded++;
		compile_everywhere(m, 100);
		m = unwind_module_free(m);
	}
	CHECK_INT(loaded, >, 300);
	unwind_module_free(whole);
	unwinder_free(u);
	free(image);
	free(copy);
}

static uint64_t cpu_ns(void)
{
	return clock_get_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static uint64_t max_rss_kib(void)
{
	struct rusage ru;

	(void)getrusage(RUSAGE_SELF, &ru);
	return (uint64_t)ru.ru_maxrss;
}

/* One FDE of these instructions: a step through it must fail, quickly and in little memory. */
static void check_bomb(const char *what, const struct bytes *code)
{
	static struct bytes eh, image;
	struct unwinder *u = NULL;
	struct unwind_module *m = NULL;
	struct unwind_regs regs = {.valid = UNWIND_ALL_REGS};
	struct stack_copy stack = {(const uint8_t *)"12345678901234567890", 0x7000, 16, NULL};
	static struct full_rule full;
	uint64_t start = cpu_ns(), rss = max_rss_kib(), ns;
	struct row row;
	enum step step = STEP_BAD;
	size_t cie;

	eh.n = 0;
	cie = elf_cie(&eh, 0, 0);
	elf_fde(&eh, 0, cie, ELF_TEXT, 0x8000, code->data, code->n);
	elf_make(&image, &(struct elf_spec){.eh_frame = &eh});
	CHECK_INT(unwinder_new(&u, NULL), ==, 0);
	CHECK_INT(unwind_module_new_memory(&m, u, image.data, image.n, what), ==, 0);
	for (unsigned int i = 0; i < UNWIND_N_REGS; i++)
		regs.r[i] = 0x7000;
	for (unsigned int i = 0; i < 10; i++) {
		cfi_compile_row(m, ELF_TEXT + 0x7000 + i, &row);
		if (cfi_compile_full(m, ELF_TEXT + 0x7000, &full) == 0)
			step = step_full(&full, &stack, true, &regs);
		CHECK_INT(step, !=, STEP_OK);
	}
	ns = cpu_ns() - start;
	fprintf(stderr, "  %s: rule %u, %" PRIu64 " us, %" PRIu64 " KiB\n", what, row.rule.kind,
		ns / 1000 / 20, max_rss_kib() - rss);
	CHECK_INT(ns, <, NSEC_PER_SEC);
	CHECK_INT(max_rss_kib() - rss, <, 64 * 1024);
	unwind_module_free(m);
	unwinder_free(u);
}

static void put_expression(struct bytes *code, const char *ops, size_t n, unsigned int times)
{
	code->n = 0;
	bytes_u8(code, 0x0f); /* DW_CFA_def_cfa_expression */
	bytes_uleb(code, n * times);
	for (unsigned int i = 0; i < times; i++)
		bytes_put(code, ops, n);
}
#define EXPRESSION(code, ops, times) put_expression(code, ops, sizeof(ops) - 1, times)

static void test_bombs(void)
{
	static struct bytes code;

	code.n = 0;
	bytes_u8(&code, 0x07); /* DW_CFA_undefined */
	bytes_uleb(&code, 134217726);
	check_bomb("register 134 million", &code);

	code.n = 0;
	for (unsigned int i = 0; i < 30000; i++)
		bytes_u8(&code, 0x0a); /* DW_CFA_remember_state */
	check_bomb("30000 remembered states", &code);

	code.n = 0;
	for (unsigned int i = 0; i < 100000; i++)
		bytes_u8(&code, 0x00);
	bytes_put(&code, "\x0e\x00", 2);
	check_bomb("100000 instructions", &code);

	code.n = 0;
	bytes_put(&code, "\x0e\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 13);
	check_bomb("a number without end", &code);

	code.n = 0;
	bytes_put(&code, "\x0f\xff\xff\xff\xff\x0f\x77", 7);
	check_bomb("an expression longer than the section", &code);

	EXPRESSION(&code, "\x77\x00\x2f\xfd\xff", 1);
	check_bomb("a jump to itself", &code);
	EXPRESSION(&code, "\x31\x31\x28\xfa\xff", 1);
	check_bomb("pushes in a circle", &code);
	EXPRESSION(&code, "\x30", 20000);
	check_bomb("20000 pushes", &code);
	EXPRESSION(&code, "\x31\x30\x1b", 1);
	check_bomb("division by zero", &code);
	EXPRESSION(&code, "\x31\x30\x1d", 1);
	check_bomb("remainder by zero", &code);
	EXPRESSION(&code, "\x22", 1);
	check_bomb("an empty stack", &code);
	EXPRESSION(&code, "\x30\x06", 1);
	check_bomb("address 0", &code);
	EXPRESSION(&code,
		   "\x0e\x00\x00\x00\x00\x00\x00\x00\x80\x0f\xff\xff\xff\xff\xff\xff\xff\xff\x1b",
		   1);
	check_bomb("the lowest number by -1", &code);
	EXPRESSION(&code, "\x9b", 1); /* DW_OP_push_object_address */
	check_bomb("an operator of other places", &code);
	EXPRESSION(&code, "\x92\xff\xff\xff\xff\x0f\x00", 1);
	check_bomb("register 4294967295", &code);
}

static struct unwind_module *long_module;

static bool find_long(void *ctx, uint64_t pc, struct unwind_mapping *ret)
{
	*ret = (struct unwind_mapping){ELF_TEXT, ELF_TEXT + ELF_TEXT_SIZE, 0, long_module, 1,
				       false};
	return pc >= ret->start && pc < ret->end;
}

/* 400 frames in a function of 30000 rows: the walk gives up in time, the next ones get further. */
static void test_long_work(void)
{
	static struct bytes eh, image, code;
	struct unwind_regs regs = {.valid = UNWIND_ALL_REGS};
	static struct unwind_frame frames[512];
	static uint64_t stack[401];
	struct unwinder *u = NULL;
	enum unwind_outcome outcome;
	uint64_t start, worst = 0;
	size_t cie, n;
	int walks = 0;

	code.n = eh.n = 0;
	for (unsigned int i = 0; i < 30000; i++)
		bytes_u8(&code, 0x41); /* DW_CFA_advance_loc 1 */
	cie = elf_cie(&eh, 0, 0);
	elf_fde(&eh, 0, cie, ELF_TEXT, 0x8000, code.data, code.n);
	elf_make(&image, &(struct elf_spec){.eh_frame = &eh});
	CHECK_INT(unwinder_new(&u, NULL), ==, 0);
	CHECK_INT(unwind_module_new_memory(&long_module, u, image.data, image.n, "long"), ==, 0);
	for (unsigned int i = 0; i < 400; i++)
		stack[i] = ELF_TEXT + 1 + i * 70;
	regs.r[ARCH_REG_SP] = 0x7000;
	regs.r[ARCH_REG_PC] = ELF_TEXT + 29000;
	do {
		start = cpu_ns();
		outcome = unwind_walk(u, &regs, (const uint8_t *)stack, sizeof(stack), find_long,
				      NULL, frames, ARRAY_SIZE(frames), &n);
		if (cpu_ns() - start > worst)
			worst = cpu_ns() - start;
		CHECK(outcome == UNWIND_BAD_CFI || outcome == UNWIND_COMPLETE);
	} while (outcome != UNWIND_COMPLETE && ++walks < 200);
	fprintf(stderr, "  %d walks, the longest %" PRIu64 " us\n", walks, worst / 1000);
	CHECK_INT(walks, >, 10);
	CHECK_INT(outcome, ==, UNWIND_COMPLETE);
	CHECK_INT(n, ==, 401);
	CHECK_INT(worst, <, 200 * NSEC_PER_MSEC);
	unwind_module_free(long_module);
	unwinder_free(u);
}

int main(void)
{
	RUN(test_random_stacks);
	RUN(test_mutations);
	NEED_X86_64();
	RUN(test_bombs);
	RUN(test_long_work);
	return 0;
}
