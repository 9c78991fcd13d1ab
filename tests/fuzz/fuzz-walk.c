/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: a walk over a sound file with rules of every kind; registers, stack and the
 * answers of find() are the fuzzer's.
 * tests/fuzz/run.sh builds and runs it.
 *
 * With a main of its own (FUZZ_REPLAY) it makes its inputs itself, as make check does.
 */
#include "tests/unit/unwind-elf.h"
#include "unwind/internal.h"

#define STACK UINT64_C(0x7ffd00001000)
enum { MAX_FRAMES = 64, MAX_CHAIN = 32, N_MAPS = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct input {
	struct unwind_module *module;
	struct {
		uint64_t start, end, bias;
		uint8_t kind;
	} maps[N_MAPS];
	unsigned int calls;
};

/* Mappings may overlap, be empty, not hold the pc, and change from call to call. */
static bool find(void *ctx, uint64_t pc, struct unwind_mapping *ret)
{
	struct input *in = ctx;

	in->calls++;
	for (unsigned int i = 0; i < N_MAPS; i++) {
		unsigned int k = (i + (in->maps[0].kind & 0x80 ? in->calls : 0)) % N_MAPS;

		if ((pc < in->maps[k].start || pc >= in->maps[k].end) && !(in->maps[k].kind & 0x40))
			continue;
		*ret = (struct unwind_mapping){.start = in->maps[k].start,
					       .end = in->maps[k].end,
					       .bias = in->maps[k].bias,
					       .module = in->maps[k].kind & 1 ? NULL : in->module,
					       .file_missing = (in->maps[k].kind & 3) == 3,
					       .tag = k};
		return true;
	}
	return false;
}

#define ADD(cie, at, code) elf_fde(&eh, 0, cie, ELF_TEXT + (at), 0x80, code, sizeof(code) - 1)

/* Rules as in test-unwind-walk, a page apart in 0x100. */
static struct unwinder *make(struct unwind_module **ret)
{
	static struct bytes eh, image;
	const struct unwind_limits limits = {256, 65536, 65536};
	struct unwinder *u = NULL;
	size_t cie, signal;

	cie = elf_cie(&eh, 0, 0);
	signal = elf_cie(&eh, 0, 1);
	ADD(cie, 0x100, "");
	ADD(cie, 0x200, "\x44\x0e\x20\x86\x03");
	ADD(cie, 0x300, "\x0c\x06\x10\x86\x02");
	ADD(cie, 0x400, "\x07\x10");
	ADD(cie, 0x500, "\x0c\x03\x20");
	ADD(cie, 0x600, "\x0e\x18\x83\x02");
	ADD(signal, 0x700,
	    "\x0f\x03\x77\x10\x06\x10\x10\x02\x77\x18\x10\x06\x02\x77\x20\x10\x07\x02\x77\x10");
	ADD(cie, 0x800, "\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22");
	ADD(cie, 0x900, "\x0e\x00\x09\x10\x05");
	ADD(cie, 0xa00, "\x0e\x10\x14\x06\x01");
	ADD(cie, 0xb00, "\x0e\x00");
	ADD(cie, 0xc00, "\x0f\x03\x7a\x78\x06");
	ADD(cie, 0xd00, "\x0f\x05\x77\x00\x2f\xfd\xff");
	ADD(cie, 0xe00, "\x86\x02");
	elf_make(&image, &(struct elf_spec){.eh_frame = &eh, .entry = ELF_TEXT + 0xf80});
	if (unwinder_new(&u, &limits) < 0 ||
	    unwind_module_new_memory(ret, u, image.data, image.n, "hand") < 0)
		abort();
	return u;
}

/* The kernel's callchain, which agrees with the copy; behind that it is words of the copy. */
static void go_on(struct unwinder *u, const struct stack_copy *stack,
		  const struct unwind_regs *regs, struct input *in, struct unwind_frame *frames,
		  size_t max, size_t *n_frames)
{
	uint64_t chain[MAX_CHAIN] = {regs->r[ARCH_REG_PC]}, fp = regs->r[ARCH_REG_FP];
	size_t n = 1;

	while (n < MAX_CHAIN && stack_read(stack, fp + 8, &chain[n]) && stack_read(stack, fp, &fp))
		n++;
	while (n < MAX_CHAIN && stack_read(stack, stack->start + 8 * n, &chain[n]))
		n++;
	(void)unwind_continue(u, chain, n, find, in, frames, max, n_frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct unwinder *u;
	static struct unwind_module *module;
	struct input in = {.calls = 0};
	struct unwind_frame frames[MAX_FRAMES];
	struct cursor c = cursor_make(data, n);
	struct unwind_regs regs;
	size_t n_frames = 0, max, n_stack;
	const uint8_t *stack;

	if (!u)
		u = make(&module);
	in.module = module;
	regs.valid = cursor_u64(&c) & UNWIND_ALL_REGS;
	for (unsigned int i = 0; i < UNWIND_N_REGS; i++)
		regs.r[i] = cursor_u64(&c);
	max = cursor_u8(&c) % (MAX_FRAMES + 1);
	for (unsigned int i = 0; i < N_MAPS; i++) {
		in.maps[i].kind = cursor_u8(&c);
		/* Mostly where the code is; else anywhere. */
		in.maps[i].bias = in.maps[i].kind & 0x20 ? cursor_u64(&c) : 0;
		in.maps[i].start = in.maps[i].kind & 0x10 ? cursor_u64(&c) : ELF_TEXT;
		in.maps[i].end = in.maps[i].kind & 8 ? cursor_u64(&c) : ELF_TEXT + ELF_TEXT_SIZE;
	}
	if (!cursor_ok(&c))
		return 0;
	n_stack = cursor_left(&c);
	stack = cursor_take(&c, n_stack);
	if (unwind_walk(u, &regs, stack, n_stack, find, &in, frames, max, &n_frames) ==
	    UNWIND_TRUNCATED)
		go_on(u, &(struct stack_copy){stack, regs.r[ARCH_REG_SP], n_stack, NULL}, &regs,
		      &in, frames, max, &n_frames);
	if (n_frames > max)
		abort();
	return 0;
}

#ifdef FUZZ_REPLAY
#include <stdio.h>

/* Inputs whose registers and words point where something is. */
static uint64_t next(uint64_t *state, uint64_t i)
{
	uint64_t r = *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;

	switch (r >> 61) {
	case 0:
	case 1:
		return STACK + 8 * (r >> 33 & 0xff);
	case 2:
	case 3:
	case 4:
		return ELF_TEXT + (r >> 33 & 0xfff);
	case 5:
		return i;
	default:
		return r;
	}
}

int main(void)
{
	static uint64_t input[1 + UNWIND_N_REGS + 512];
	uint64_t state = 1;
	const unsigned int n = 200000;

#ifndef __x86_64__
	fprintf(stderr, "SKIP: what it reads is CFI of x86_64\n");
	return 77;
#endif
	for (unsigned int k = 0; k < n; k++) {
		size_t words = 1 + UNWIND_N_REGS + k % 400 + 2;

		for (size_t i = 0; i < words; i++)
			input[i] = next(&state, i);
		input[0] |= UNWIND_REG_BIT(ARCH_REG_SP) | UNWIND_REG_BIT(ARCH_REG_PC);
		input[1 + ARCH_REG_SP] = STACK;
		input[1 + ARCH_REG_PC] = ELF_TEXT + (state >> 40 & 0xfff);
		/* The frames allowed, and four mappings. */
		memcpy(&input[1 + UNWIND_N_REGS], "\x40\x00\x01\x03\x02", 5);
		(void)LLVMFuzzerTestOneInput((const uint8_t *)input, words * 8);
	}
	printf("%u walks over what is no stack\n", n);
	return 0;
}
#endif
