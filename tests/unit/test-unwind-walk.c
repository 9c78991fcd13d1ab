/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over stacks and CFI made by hand: each rule, each way to end. */
#include "tests/unit/test.h"
#include "tests/unit/unwind-elf.h"
#include "unwind/internal.h"

#define SP   UINT64_C(0x7ffd00001000)
#define JIT  UINT64_C(0x30000000) /* anonymous executable memory, one page */
#define LOST UINT64_C(0x40000000) /* a mapping whose file could not be opened */
#define RAX  0
#define RBX  3
#define RDI  5
#define RBP  6
#define RSP  7
#define R10  10
#define RIP  16

/* Where the functions of the test module are. */
enum {
	F_PLAIN = 0x100,     /* rsp + 8 */
	F_FRAME = 0x200,     /* +4: rsp + 32, rbp at CFA - 24 */
	F_FP = 0x300,	     /* rbp + 16, rbp at CFA - 16 */
	F_END = 0x400,	     /* return address undefined */
	F_RBX = 0x500,	     /* CFA = rbx + 32 */
	F_SAVES_RBX = 0x600, /* rsp + 24, rbx at CFA - 16 */
	F_SIGNAL = 0x700,    /* trampoline: registers at rsp + ... by expressions */
	F_PLT = 0x800,	     /* CFA = rsp + 8 + ((rip & 15) >= 11 ? 8 : 0) */
	F_RA_IN_RDI = 0x900, /* CFA = rsp, return address in rdi */
	F_VAL = 0xa00,	     /* rsp + 16; rbp is CFA - 8 */
	F_SAME_CFA = 0xb00,  /* rsp + 0 */
	F_R10 = 0xc00,	     /* CFA is loaded from r10 - 8 */
	F_LOOP = 0xd00,	     /* CFA by an expression that never ends */
	F_EPILOGUE = 0xe00,  /* rsp + 8; rbp at CFA - 16 */
	F_NO_CFI = 0xf00,
	F_ENTRY = 0xf80,
	F_CLONE = 0x1100, /* as glibc's clone3: rsp + 8, 10 bytes without CFI, outermost */
	F_CLONE_GAP = F_CLONE + 0x17,
	F_CLONE_NEW = F_CLONE + 0x21,
	F_WIDE = 0x1200, /* the same with 17 bytes */
	F_WIDE_GAP = F_WIDE + 0x17,
	F_WIDE_NEW = F_WIDE + 0x28,
	F_LOST = 0x1300, /* rbp + 16, rbx saved below rbp, 24 bytes more by a sub; a system call */
};
/* Return addresses in F_END: behind calls of F_LOST, of another function, by a pointer. */
enum { CALLS_LOST = F_END + 0x20, CALLS_OTHER = F_END + 0x30, CALLS_POINTER = F_END + 0x40 };

struct bench {
	struct unwinder *u;
	struct unwind_module *m;
	struct unwind_regs regs;
	uint64_t stack[64];
	size_t n_stack; /* bytes */
	struct unwind_frame frames[32];
	size_t max, n;
};

static bool find(void *ctx, uint64_t pc, struct unwind_mapping *ret)
{
	const struct bench *b = ctx;

	*ret = (struct unwind_mapping){.start = pc & ~UINT64_C(0xfff)};
	ret->end = ret->start + 0x1000;
	if (ret->start == JIT) {
		ret->tag = 2;
		return true;
	}
	if (ret->start == LOST) {
		ret->tag = 3;
		ret->file_missing = true;
		return true;
	}
	*ret = (struct unwind_mapping){ELF_TEXT + 0x10000000,
				       ELF_TEXT + 0x10000000 + ELF_TEXT_SIZE,
				       0x10000000,
				       b->m,
				       1,
				       0};
	return pc >= ret->start && pc < ret->end;
}

#define AT(function) (ELF_TEXT + 0x10000000 + (function))

static void add(struct bytes *b, size_t cie, uint64_t at, const char *code, size_t n)
{
	elf_fde(b, 0, cie, ELF_TEXT + at, 0x80, code, n);
}
#define ADD(cie, at, code) add(&eh, cie, at, code, sizeof(code) - 1)

/* The few instructions that a walk looks at. */
static void put_code(struct bytes *image)
{
	uint8_t *text = image->data + 0x1000;
	int32_t distance = F_LOST - CALLS_LOST;

	memcpy(text + F_LOST, "\x55\x48\x89\xe5\x53\x48\x83\xec\x18\0\0\0\0\0\x0f\x05", 16);
	text[CALLS_LOST - 5] = text[CALLS_OTHER - 5] = 0xe8;
	memcpy(text + CALLS_LOST - 4, &distance, 4);
	memcpy(text + CALLS_POINTER - 2, "\xff\xd0", 2);
}

static struct bench *start(void)
{
	static struct bytes eh, image;
	struct bench *b = calloc(1, sizeof(*b));
	size_t cie, signal;

	eh.n = 0;
	cie = elf_cie(&eh, 0, 0);
	signal = elf_cie(&eh, 0, 1);
	ADD(cie, F_PLAIN, "");
	ADD(cie, F_FRAME, "\x44\x0e\x20\x86\x03");
	ADD(cie, F_FP, "\x0c\x06\x10\x86\x02");
	ADD(cie, F_END, "\x07\x10");
	ADD(cie, F_RBX, "\x0c\x03\x20");
	ADD(cie, F_SAVES_RBX, "\x0e\x18\x83\x02");
	/* CFA = *(rsp + 16), rip at rsp + 24, rbp at rsp + 32, rsp at rsp + 16. */
	ADD(signal, F_SIGNAL,
	    "\x0f\x03\x77\x10\x06"
	    "\x10\x10\x02\x77\x18"
	    "\x10\x06\x02\x77\x20"
	    "\x10\x07\x02\x77\x10");
	ADD(cie, F_PLT, "\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22");
	ADD(cie, F_RA_IN_RDI, "\x0e\x00\x09\x10\x05");
	ADD(cie, F_VAL, "\x0e\x10\x14\x06\x01");
	ADD(cie, F_SAME_CFA, "\x0e\x00");
	ADD(cie, F_EPILOGUE, "\x86\x02");
	ADD(cie, F_R10, "\x0f\x03\x7a\x78\x06");
	ADD(cie, F_LOOP, "\x0f\x05\x77\x00\x2f\xfd\xff");
	ADD(cie, F_LOST, "\x0c\x06\x10\x86\x02\x83\x03");
	elf_fde(&eh, 0, cie, ELF_TEXT + F_CLONE, F_CLONE_GAP - F_CLONE, "", 0);
	elf_fde(&eh, 0, cie, ELF_TEXT + F_CLONE_NEW, 0x15, "\x07\x10", 2);
	elf_fde(&eh, 0, cie, ELF_TEXT + F_WIDE, F_WIDE_GAP - F_WIDE, "", 0);
	elf_fde(&eh, 0, cie, ELF_TEXT + F_WIDE_NEW, 0x15, "\x07\x10", 2);
	elf_make(&image, &(struct elf_spec){.eh_frame = &eh, .entry = ELF_TEXT + F_ENTRY});
	put_code(&image);
	CHECK_INT(unwinder_new(&b->u, NULL), ==, 0);
	CHECK_INT(unwind_module_new_memory(&b->m, b->u, image.data, image.n, "hand"), ==, 0);
	b->regs.valid = UNWIND_ALL_REGS;
	b->regs.r[RSP] = SP;
	b->n_stack = sizeof(b->stack);
	b->max = ARRAY_SIZE(b->frames);
	return b;
}

static void finish(struct bench *b)
{
	unwind_module_free(b->m);
	unwinder_free(b->u);
	free(b);
}

static enum unwind_outcome walk(struct bench *b, uint64_t pc)
{
	b->regs.r[RIP] = pc;
	return unwind_walk(b->u, &b->regs, (const uint8_t *)b->stack, b->n_stack, find, b,
			   b->frames, b->max, &b->n);
}

static void test_plain(void)
{
	struct bench *b = start();

	b->stack[0] = AT(F_FRAME) + 10; /* called F_PLAIN */
	b->stack[2] = 0x1111;		/* its rbp: CFA is SP + 8 + 32 */
	b->stack[4] = AT(F_END) + 1;
	CHECK_INT(walk(b, AT(F_PLAIN)), ==, UNWIND_COMPLETE);
	CHECK_INT(b->n, ==, 3);
	CHECK_INT(b->frames[0].address, ==, AT(F_PLAIN));
	CHECK_INT(b->frames[0].tag, ==, 1);
	CHECK_INT(b->frames[0].bias, ==, 0x10000000);
	CHECK_INT(b->frames[1].address, ==, AT(F_FRAME) + 9);
	CHECK_INT(b->frames[2].address, ==, AT(F_END));
	/* Exactly as many frames as there are is not too many. */
	b->max = 3;
	CHECK_INT(walk(b, AT(F_PLAIN)), ==, UNWIND_COMPLETE);
	b->max = 2;
	CHECK_INT(walk(b, AT(F_PLAIN)), ==, UNWIND_TOO_DEEP);
	CHECK_INT(b->n, ==, 2);
	b->max = 0;
	CHECK_INT(walk(b, AT(F_PLAIN)), ==, UNWIND_TOO_DEEP);
	CHECK_INT(b->n, ==, 0);
	finish(b);
}

static void test_ends(void)
{
	struct bench *b = start();

	/* A return address of 0. */
	CHECK_INT(walk(b, AT(F_PLAIN)), ==, UNWIND_COMPLETE);
	CHECK_INT(b->n, ==, 1);
	/* The entry function has no CFI. What is before and behind it is not the entry. */
	CHECK_INT(walk(b, AT(F_ENTRY) + 20), ==, UNWIND_COMPLETE);
	CHECK_INT(walk(b, AT(F_NO_CFI) + 20), ==, UNWIND_NO_CFI);
	CHECK_INT(walk(b, AT(F_ENTRY) + ARCH_ENTRY_BYTES), ==, UNWIND_NO_CFI);
	CHECK_INT(walk(b, AT(F_ENTRY)), ==, UNWIND_COMPLETE);
	CHECK_INT(walk(b, LOST + 5), ==, UNWIND_NO_FILE);
	CHECK_INT(b->frames[0].tag, ==, 3);
	b->stack[0] = 0xdead0000;
	CHECK_INT(walk(b, AT(F_PLAIN)), ==, UNWIND_NO_MAPPING);
	CHECK_INT(b->n, ==, 2);
	CHECK_INT(b->frames[1].tag, ==, UINT32_MAX);
	CHECK_INT(walk(b, AT(F_SAME_CFA)), ==, UNWIND_NO_PROGRESS);
	b->n_stack = 0;
	CHECK_INT(walk(b, AT(F_PLAIN)), ==, UNWIND_TRUNCATED);
	CHECK_INT(b->n, ==, 1);
	CHECK_INT(walk(b, AT(F_END)), ==, UNWIND_COMPLETE);
	b->regs.valid &= ~UNWIND_REG_BIT(RSP);
	CHECK_INT(walk(b, AT(F_END)), ==, UNWIND_TRUNCATED);
	CHECK_INT(b->n, ==, 0);
	finish(b);
}

/* Every length of the copy: complete only where the bytes are there, else truncated. */
static void test_short_copies(void)
{
	struct bench *b = start();

	b->stack[0] = AT(F_FRAME) + 10;
	b->stack[4] = AT(F_END) + 1;
	for (b->n_stack = 0; b->n_stack <= 48; b->n_stack++) {
		CHECK_INT(walk(b, AT(F_PLAIN)), ==,
			  b->n_stack >= 40 ? UNWIND_COMPLETE : UNWIND_TRUNCATED);
		CHECK_INT(b->n, ==, b->n_stack >= 40 ? 3 : b->n_stack >= 8 ? 2 : 1);
		if (b->n_stack < 40)
			CHECK_INT(unwinder_stats(b->u)->last_missing_bytes, ==,
				  b->n_stack >= 8 ? 32 : 0);
		else
			CHECK_INT(unwinder_stats(b->u)->last_depth_bytes, ==, 40);
	}
	finish(b);
}

static void test_frame_pointer_rule(void)
{
	struct bench *b = start();

	b->regs.r[RBP] = SP + 32;
	b->stack[4] = SP + 80;
	b->stack[5] = AT(F_FP) + 9;
	b->stack[10] = 0;
	b->stack[11] = AT(F_END) + 1;
	CHECK_INT(walk(b, AT(F_FP)), ==, UNWIND_COMPLETE);
	CHECK_INT(b->n, ==, 3);
	/* A circle. */
	b->stack[10] = SP + 32;
	b->stack[11] = AT(F_FP) + 9;
	CHECK_INT(walk(b, AT(F_FP)), ==, UNWIND_NO_PROGRESS);
	CHECK_INT(b->n, ==, 3);
	b->regs.r[RBP] = SP - 64;
	CHECK_INT(walk(b, AT(F_FP)), ==, UNWIND_NO_PROGRESS);
	b->regs.r[RBP] = UINT64_MAX - 4;
	CHECK_INT(walk(b, AT(F_FP)), ==, UNWIND_NO_PROGRESS);
	b->regs.r[RBP] = SP + sizeof(b->stack);
	CHECK_INT(walk(b, AT(F_FP)), ==, UNWIND_TRUNCATED);
	/* The frame pointer of another stack. */
	b->regs.r[RBP] = SP + (UINT64_C(1) << 32);
	CHECK_INT(walk(b, AT(F_FP)), ==, UNWIND_TRUNCATED);
	CHECK_INT(unwinder_stats(b->u)->last_missing_bytes >> 32, ==, 1);
	b->regs.valid &= ~UNWIND_REG_BIT(RBP);
	CHECK_INT(walk(b, AT(F_FP)), ==, UNWIND_BAD_CFI);
	finish(b);
}

/* In an epilogue CFI names a slot that is below sp already: the register is right. */
static void test_below_sp(void)
{
	struct bench *b = start();

	/* The slot is the word before the copy. */
	b->regs.r[RBP] = SP + 8;
	b->stack[0] = AT(F_FP) + 9;
	b->stack[2] = AT(F_END) + 1;
	CHECK_INT(walk(b, AT(F_EPILOGUE)), ==, UNWIND_COMPLETE);
	CHECK_INT(b->n, ==, 3);
	/* The slot is in the copy, and full of something else. */
	b->stack[0] = AT(F_EPILOGUE) + 1;
	b->stack[1] = AT(F_FP) + 9;
	b->regs.r[RBP] = SP + 16;
	b->stack[3] = AT(F_END) + 1;
	CHECK_INT(walk(b, AT(F_PLAIN)), ==, UNWIND_COMPLETE);
	CHECK_INT(b->n, ==, 4);
	finish(b);
}

static void test_rbx(void)
{
	struct bench *b = start();

	/* In the first frame rbx is at hand. */
	b->regs.r[RBX] = SP + 16;
	b->stack[5] = AT(F_END) + 1;
	CHECK_INT(walk(b, AT(F_RBX)), ==, UNWIND_COMPLETE);
	CHECK_INT(b->n, ==, 2);
	/* Deeper, from where the callee saved it, or left it alone. */
	b->regs.r[RBX] = 0x5555;
	b->stack[1] = SP + 64; /* rbx of the caller: CFA is SP + 24 */
	b->stack[2] = AT(F_RBX) + 9;
	b->stack[11] = AT(F_END) + 1;
	CHECK_INT(walk(b, AT(F_SAVES_RBX)), ==, UNWIND_COMPLETE);
	CHECK_INT(b->n, ==, 3);
	CHECK_INT(b->frames[1].address, ==, AT(F_RBX) + 8);
	b->regs.r[RBX] = SP + 64;
	b->stack[0] = AT(F_RBX) + 9;
	CHECK_INT(walk(b, AT(F_PLAIN)), ==, UNWIND_COMPLETE);
	CHECK_INT(b->n, ==, 3);
	/* The kernel did not tell it. */
	b->regs.valid &= ~UNWIND_REG_BIT(RBX);
	CHECK_INT(walk(b, AT(F_PLAIN)), ==, UNWIND_BAD_CFI);
	CHECK_INT(b->n, ==, 2);
	/* r10 is nobody's to keep: usable in the first frame only. */
	b->regs.r[R10] = SP + 24;
	b->stack[2] = SP + 48;
	b->stack[5] = AT(F_END) + 1;
	CHECK_INT(walk(b, AT(F_R10)), ==, UNWIND_COMPLETE);
	b->stack[0] = AT(F_R10) + 9;
	CHECK_INT(walk(b, AT(F_PLAIN)), ==, UNWIND_BAD_CFI);
	finish(b);
}

static void test_signal_frame(void)
{
	struct bench *b = start();

	b->stack[0] = AT(F_SIGNAL) + 1; /* the handler returns to the trampoline; rsp = SP + 8 */
	b->stack[3] = SP + 0x100;	/* interrupted rsp */
	b->stack[4] = AT(F_FP);		/* interrupted at the first byte of a function */
	b->stack[5] = SP + 0x120;	/* its rbp */
	b->stack[0x120 / 8 + 1] = AT(F_END) + 1;
	CHECK_INT(walk(b, AT(F_PLAIN)), ==, UNWIND_COMPLETE);
	CHECK_INT(b->n, ==, 4);
	CHECK_INT(b->frames[1].address, ==,
		  AT(F_SIGNAL) + 1); /* exact, as is what it interrupted */
	CHECK_INT(b->frames[2].address, ==, AT(F_FP));
	CHECK_INT(b->frames[3].address, ==, AT(F_END));
	/* The interrupted stack is another one: its first frame is known, the rest is not here. */
	b->stack[3] = SP - 0x100000;
	b->stack[5] = SP - 0x100000 + 64;
	CHECK_INT(walk(b, AT(F_PLAIN)), ==, UNWIND_TRUNCATED);
	CHECK_INT(b->n, ==, 3);
	/* Back to itself. */
	b->stack[3] = SP;
	b->stack[4] = AT(F_PLAIN);
	CHECK_INT(walk(b, AT(F_PLAIN)), ==, UNWIND_NO_PROGRESS);
	finish(b);
}

static void test_expressions(void)
{
	struct bench *b = start();

	for (unsigned int i = 0; i < 16; i++) {
		b->stack[0] = i < 11 ? AT(F_END) + 1 : 0x33;
		b->stack[1] = i < 11 ? 0x44 : AT(F_END) + 1;
		CHECK_INT(walk(b, AT(F_PLT) + i), ==, UNWIND_COMPLETE);
		CHECK_INT(b->n, ==, 2);
	}
	CHECK_INT(walk(b, AT(F_LOOP)), ==, UNWIND_BAD_CFI);
	/* vfork: the return address has gone to rdi, the CFA is sp. Only where it was interrupted.
	 */
	b->regs.r[RDI] = AT(F_PLAIN) + 5;
	b->stack[0] = AT(F_END) + 1;
	CHECK_INT(walk(b, AT(F_RA_IN_RDI)), ==, UNWIND_COMPLETE);
	CHECK_INT(b->n, ==, 3);
	b->stack[0] = AT(F_RA_IN_RDI) + 1;
	CHECK_INT(walk(b, AT(F_PLAIN)), !=, UNWIND_COMPLETE);
	/* DW_CFA_val_offset: rbp is CFA - 8 = SP + 8; then [rbp + 8] is the return address. */
	b->stack[1] = AT(F_FP) + 1;
	b->stack[2] = AT(F_END) + 1;
	b->regs.r[RBP] = 0;
	CHECK_INT(walk(b, AT(F_VAL)), ==, UNWIND_COMPLETE);
	CHECK_INT(b->n, ==, 3);
	finish(b);
}

static void test_no_cfi(void)
{
	struct bench *b = start();

	/* JIT code with frame pointers, called from JIT code, called from a function with CFI. */
	b->regs.r[RBP] = SP + 16;
	b->stack[2] = SP + 48;
	b->stack[3] = JIT + 0x300;
	b->stack[6] = 0x1234; /* rbp was a general register out there */
	b->stack[7] = AT(F_END) + 1;
	CHECK_INT(walk(b, JIT + 0x200), ==, UNWIND_COMPLETE);
	CHECK_INT(b->n, ==, 3);
	CHECK_INT(b->frames[1].tag, ==, 2);
	/* A return address that is no code; rbp unaligned, behind, far away; the copy ends. */
	b->stack[3] = 0x4444;
	CHECK_INT(walk(b, JIT + 0x200), ==, UNWIND_NO_CFI);
	b->regs.r[RBP] = SP + 17;
	CHECK_INT(walk(b, JIT + 0x200), ==, UNWIND_NO_CFI);
	b->regs.r[RBP] = SP - 8;
	CHECK_INT(walk(b, JIT + 0x200), ==, UNWIND_NO_CFI);
	b->regs.r[RBP] = SP + (UINT64_C(1) << 40);
	CHECK_INT(walk(b, JIT + 0x200), ==, UNWIND_NO_CFI);
	b->regs.r[RBP] = SP + sizeof(b->stack) + 64;
	CHECK_INT(walk(b, JIT + 0x200), ==, UNWIND_TRUNCATED);
	/* 0 marks the outermost frame of a chain, but says nothing in the first frame. */
	b->regs.r[RBP] = 0;
	CHECK_INT(walk(b, JIT + 0x200), ==, UNWIND_NO_CFI);
	b->regs.r[RBP] = SP + 16;
	b->stack[2] = 0;
	b->stack[3] = JIT + 0x300;
	CHECK_INT(walk(b, JIT + 0x200), ==, UNWIND_COMPLETE);
	CHECK_INT(b->n, ==, 2);
	/* Zeros where rbp points by chance are no end either; behind a real link they are. */
	b->stack[3] = 0;
	CHECK_INT(walk(b, JIT + 0x200), ==, UNWIND_NO_CFI);
	b->stack[2] = SP + 48;
	b->stack[3] = JIT + 0x300;
	b->stack[6] = b->stack[7] = 0;
	CHECK_INT(walk(b, JIT + 0x200), ==, UNWIND_COMPLETE);
	/* A call through a bad pointer. */
	b->stack[0] = AT(F_END) + 1;
	CHECK_INT(walk(b, 0x10), ==, UNWIND_COMPLETE);
	CHECK_INT(b->n, ==, 2);
	CHECK_INT(b->frames[0].tag, ==, UINT32_MAX);
	CHECK_INT(b->frames[1].address, ==, AT(F_END));
	b->stack[0] = 0x77;
	CHECK_INT(walk(b, 0), ==, UNWIND_NO_MAPPING);
	finish(b);
}

/* The caller of clone() goes on with its stack; the new thread is there with another. */
static void test_clone(void)
{
	struct bench *b = start();

	b->regs.r[RBP] = 0x1111;
	b->stack[0] = AT(F_FRAME) + 10;
	b->stack[4] = AT(F_END) + 1;
	/* It has its stack, and a result: -ENOSYS as long as there is none. */
	b->regs.r[RAX] = (uint64_t)-38;
	CHECK_INT(walk(b, AT(F_CLONE_GAP) + 2), ==, UNWIND_COMPLETE);
	CHECK_INT(b->n, ==, 3);
	b->n_stack = 16;
	CHECK_INT(walk(b, AT(F_CLONE_GAP) + 2), ==, UNWIND_TRUNCATED);
	CHECK_INT(b->n, ==, 2);
	b->n_stack = sizeof(b->stack);
	b->regs.r[RAX] = 0;
	CHECK_INT(walk(b, AT(F_CLONE_GAP) + 2), ==, UNWIND_COMPLETE);
	CHECK_INT(b->n, ==, 1);
	/* Without the result. */
	b->regs.valid &= ~UNWIND_REG_BIT(RAX);
	for (uint64_t pc = AT(F_CLONE_GAP); pc < AT(F_CLONE_NEW); pc++) {
		CHECK_INT(walk(b, pc), ==, UNWIND_COMPLETE);
		CHECK_INT(b->n, ==, 3);
		CHECK_INT(b->frames[1].address, ==, AT(F_FRAME) + 9);
		CHECK_INT(b->frames[2].address, ==, AT(F_END));
	}
	CHECK_INT(walk(b, AT(F_CLONE_NEW)), ==, UNWIND_COMPLETE);
	CHECK_INT(b->n, ==, 1);
	/* Too much for a system call. */
	CHECK_INT(walk(b, AT(F_WIDE_GAP)), ==, UNWIND_NO_CFI);
	CHECK_INT(b->n, ==, 1);
	/* A new thread: its stack is empty, has the function to run on top, or something else. */
	b->stack[4] = 0x2222;
	CHECK_INT(walk(b, AT(F_CLONE_GAP) + 2), ==, UNWIND_NO_CFI);
	CHECK_INT(b->n, ==, 1);
	b->stack[4] = 0;
	CHECK_INT(walk(b, AT(F_CLONE_GAP) + 2), ==, UNWIND_NO_CFI);
	CHECK_INT(b->n, ==, 1);
	b->n_stack = 16;
	CHECK_INT(walk(b, AT(F_CLONE_GAP) + 2), ==, UNWIND_NO_CFI);
	CHECK_INT(b->n, ==, 1);
	b->n_stack = 0;
	CHECK_INT(walk(b, AT(F_CLONE_GAP) + 2), ==, UNWIND_NO_CFI);
	CHECK_INT(b->n, ==, 1);
	/* A word that is no return address, but looks like one, has no caller in there. */
	b->n_stack = sizeof(b->stack);
	b->stack[0] = AT(F_CLONE_GAP) + 3;
	CHECK_INT(walk(b, AT(F_CLONE_GAP) + 2), ==, UNWIND_NO_CFI);
	CHECK_INT(b->n, ==, 1);
	finish(b);
}

/* Only sp and pc were recorded, and the function's frame begins where rbp points. */
static void test_lost_fp(void)
{
	struct bench *b = start();

	b->regs.valid = UNWIND_REG_BIT(RSP) | UNWIND_REG_BIT(RIP);
	/* sp, 24 bytes, rbx, { rbp, return address }. */
	b->stack[4] = SP + 0x100;
	b->stack[5] = AT(CALLS_LOST);
	CHECK_INT(walk(b, AT(F_LOST) + 0x10), ==, UNWIND_COMPLETE);
	CHECK_INT(b->n, ==, 2);
	CHECK_INT(b->frames[1].address, ==, AT(CALLS_LOST) - 1);
	CHECK_INT(b->frames[1].fp, ==, SP + 0x100);
	b->stack[5] = AT(CALLS_POINTER);
	CHECK_INT(walk(b, AT(F_LOST) + 0x10), ==, UNWIND_COMPLETE);
	/* Where it calls nothing: the epilogue may have begun. */
	CHECK_INT(walk(b, AT(F_LOST) + 0xd), ==, UNWIND_BAD_CFI);
	/* It called another function, or nothing; before the sub; the word is not in the copy. */
	b->stack[5] = AT(CALLS_OTHER);
	CHECK_INT(walk(b, AT(F_LOST) + 0x10), ==, UNWIND_BAD_CFI);
	CHECK_INT(b->n, ==, 1);
	b->stack[5] = AT(F_END) + 0x50;
	CHECK_INT(walk(b, AT(F_LOST) + 0x10), ==, UNWIND_BAD_CFI);
	b->stack[5] = AT(CALLS_LOST);
	CHECK_INT(walk(b, AT(F_LOST) + 5), ==, UNWIND_BAD_CFI);
	b->n_stack = 40;
	CHECK_INT(walk(b, AT(F_LOST) + 0x10), ==, UNWIND_BAD_CFI);
	CHECK_INT(b->n, ==, 1);
	/* An rbp that was recorded is believed. */
	b->n_stack = sizeof(b->stack);
	b->regs.valid |= UNWIND_REG_BIT(RBP);
	b->regs.r[RBP] = SP + 64;
	b->stack[9] = AT(F_END) + 1;
	CHECK_INT(walk(b, AT(F_LOST) + 0x10), ==, UNWIND_COMPLETE);
	CHECK_INT(b->frames[1].address, ==, AT(F_END));
	finish(b);
}

static enum arch_call call_before(const char *bytes, size_t n, uint64_t *ret)
{
	uint8_t code[ARCH_CALL_BYTES] = {0};

	memcpy(code + sizeof(code) - n, bytes, n);
	return arch_call_before(code, 0x1000, ret);
}
#define CALL_BEFORE(bytes) call_before(bytes, sizeof(bytes) - 1, &target)

/* As an assembler writes them. */
static void test_calls(void)
{
	uint32_t sizes[2] = {0};
	uint64_t target = 0;

	CHECK_INT(CALL_BEFORE("\xe8\xfb\xff\xff\xff"), ==, ARCH_CALL_DIRECT);
	CHECK_INT(target, ==, 0xffb);
	CHECK_INT(CALL_BEFORE("\xff\xd0"), ==, ARCH_CALL_INDIRECT);		/* *%rax */
	CHECK_INT(CALL_BEFORE("\x41\xff\xd7"), ==, ARCH_CALL_INDIRECT);		/* *%r15 */
	CHECK_INT(CALL_BEFORE("\xff\x10"), ==, ARCH_CALL_INDIRECT);		/* *(%rax) */
	CHECK_INT(CALL_BEFORE("\xff\x50\x18"), ==, ARCH_CALL_INDIRECT);		/* *24(%rax) */
	CHECK_INT(CALL_BEFORE("\x41\xff\x54\x24\x08"), ==, ARCH_CALL_INDIRECT); /* *8(%r12) */
	CHECK_INT(CALL_BEFORE("\xff\x14\xc3"), ==, ARCH_CALL_INDIRECT);		/* *(%rbx,%rax,8) */
	CHECK_INT(CALL_BEFORE("\xff\x15\x01\x02\x03\x04"), ==, ARCH_CALL_INDIRECT);
	CHECK_INT(CALL_BEFORE("\xff\x90\x01\x02\x03\x04"), ==, ARCH_CALL_INDIRECT);
	CHECK_INT(CALL_BEFORE("\xff\x94\xc3\x01\x02\x03\x04"), ==, ARCH_CALL_INDIRECT);
	CHECK_INT(CALL_BEFORE("\xff\xe0"), ==, ARCH_NO_CALL); /* jmp *%rax */
	CHECK_INT(CALL_BEFORE("\xff\x30"), ==, ARCH_NO_CALL); /* push (%rax) */
	CHECK_INT(CALL_BEFORE("\x90\x90\x90"), ==, ARCH_NO_CALL);
	CHECK_INT(CALL_BEFORE("\xff\x15\x01\x02\x03"), ==, ARCH_NO_CALL);

	/* The same twice is one; more than there is room for is none; what is cut is none. */
	CHECK_INT(arch_frame_sizes((const uint8_t *)"\x55\x48\x83\xec\x20\x48\x83\xec\x20", 9,
				   sizes, 2),
		  ==, 1);
	CHECK_INT(sizes[0], ==, 0x20);
	CHECK_INT(arch_frame_sizes((const uint8_t *)"\x48\x81\xec\x00\x01\x00\x00", 7, sizes, 2),
		  ==, 1);
	CHECK_INT(sizes[0], ==, 0x100);
	CHECK_INT(arch_frame_sizes((const uint8_t *)"\x48\x81\xec\x00\x01\x00\x00", 6, sizes, 2),
		  ==, 0);
	CHECK_INT(
		arch_frame_sizes((const uint8_t *)"\x48\x83\xec\x20\x48\x83\xec\x10", 8, sizes, 1),
		==, 2);
	CHECK_INT(
		arch_frame_sizes((const uint8_t *)"\x48\x83\xec\x23\x48\x83\xec\x80", 8, sizes, 2),
		==, 0);
}

/* Cut behind two frames of one recursion, both of which have their frame pointers. */
static struct bench *start_cut(uint64_t *chain)
{
	struct bench *b = start();

	b->regs.r[RBP] = SP + 16;
	b->stack[2] = SP + 48;
	b->stack[3] = chain[1] = AT(F_FP) + 1;
	b->stack[6] = SP + 0x10000;
	b->stack[7] = chain[2] = AT(F_FP) + 1;
	b->n_stack = 64;
	chain[0] = AT(F_FP) + 9;
	CHECK_INT(walk(b, chain[0]), ==, UNWIND_TRUNCATED);
	CHECK_INT(b->n, ==, 3);
	return b;
}

static enum unwind_outcome go_on(struct bench *b, const uint64_t *chain, size_t n)
{
	b->n = 3;
	return unwind_continue(b->u, chain, n, find, b, b->frames, b->max, &b->n);
}

static void test_continue(void)
{
	uint64_t chain[8];
	struct bench *b = start_cut(chain);

	chain[3] = chain[4] = AT(F_FP) + 1;
	chain[5] = AT(F_END) + 1;
	chain[6] = 0x1234;
	CHECK_INT(go_on(b, chain, 7), ==, UNWIND_COMPLETE);
	CHECK_INT(b->n, ==, 6);
	CHECK_INT(b->frames[3].address, ==, AT(F_FP));
	CHECK_INT(b->frames[5].address, ==, AT(F_END));
	CHECK_INT(b->frames[5].tag, ==, 1);
	/* The chain is over, or ends in the mark of the outermost frame. */
	CHECK_INT(go_on(b, chain, 5), ==, UNWIND_TRUNCATED);
	CHECK_INT(b->n, ==, 5);
	CHECK_INT(go_on(b, chain, 3), ==, UNWIND_TRUNCATED);
	CHECK_INT(b->n, ==, 3);
	CHECK_INT(go_on(b, chain, 0), ==, UNWIND_TRUNCATED);
	chain[5] = 0;
	CHECK_INT(go_on(b, chain, 6), ==, UNWIND_COMPLETE);
	CHECK_INT(b->n, ==, 5);
	/* A caller without a frame pointer is still right, and the last that is. */
	chain[4] = AT(F_FRAME) + 8;
	chain[5] = AT(F_END) + 1;
	CHECK_INT(go_on(b, chain, 6), ==, UNWIND_TRUNCATED);
	CHECK_INT(b->n, ==, 5);
	CHECK_INT(b->frames[4].address, ==, AT(F_FRAME) + 7);
	/* Nor does it go on from code without CFI, nor to where there is no code. */
	chain[4] = JIT + 8;
	CHECK_INT(go_on(b, chain, 6), ==, UNWIND_TRUNCATED);
	CHECK_INT(b->n, ==, 5);
	chain[4] = 0x77;
	CHECK_INT(go_on(b, chain, 6), ==, UNWIND_TRUNCATED);
	CHECK_INT(b->n, ==, 4);
	/* No room. */
	b->max = 3;
	CHECK_INT(go_on(b, chain, 6), ==, UNWIND_TOO_DEEP);
	CHECK_INT(b->n, ==, 3);
	finish(b);
}

/* Chains that are not of this stack. */
static void test_continue_not(void)
{
	uint64_t chain[8];
	struct bench *b = start_cut(chain);

	chain[3] = chain[4] = AT(F_FP) + 1;
	for (size_t i = 0; i < 3; i++) {
		chain[i] += 2;
		CHECK_INT(go_on(b, chain, 5), ==, UNWIND_TRUNCATED);
		CHECK_INT(b->n, ==, 3);
		chain[i] -= 2;
	}
	CHECK_INT(go_on(b, chain, 5), ==, UNWIND_TRUNCATED);
	CHECK_INT(b->n, ==, 5);
	/* The kernel started from what is no frame pointer, and never came by the cut frame. */
	b->regs.r[RBP] = SP + 200;
	b->stack[1] = SP + 48;
	chain[0] = AT(F_FRAME) + 10;
	CHECK_INT(walk(b, chain[0]), ==, UNWIND_TRUNCATED);
	CHECK_INT(b->n, ==, 3);
	CHECK_INT(go_on(b, chain, 5), ==, UNWIND_TRUNCATED);
	CHECK_INT(b->n, ==, 3);
	finish(b);
}

static void test_perf_registers(void)
{
	const uint64_t mask = UINT64_C(1) << 1 | UINT64_C(1) << 7 | UINT64_C(1) << 8 |
			      UINT64_C(1) << 23 | UINT64_C(1) << 9;
	const uint64_t values[] = {11, 77, 88, 99, 1515}; /* bx sp ip flags r15 */
	struct unwind_regs regs;

	unwind_regs_from_perf(values, mask, &regs);
	CHECK_INT(regs.valid, ==,
		  UNWIND_REG_BIT(3) | UNWIND_REG_BIT(7) | UNWIND_REG_BIT(16) | UNWIND_REG_BIT(15));
	CHECK_INT(regs.r[3], ==, 11);
	CHECK_INT(regs.r[7], ==, 77);
	CHECK_INT(regs.r[16], ==, 88);
	CHECK_INT(regs.r[15], ==, 1515);
}

int main(void)
{
	NEED_X86_64();
	RUN(test_plain);
	RUN(test_ends);
	RUN(test_short_copies);
	RUN(test_frame_pointer_rule);
	RUN(test_below_sp);
	RUN(test_rbx);
	RUN(test_signal_frame);
	RUN(test_expressions);
	RUN(test_no_cfi);
	RUN(test_clone);
	RUN(test_lost_fp);
	RUN(test_calls);
	RUN(test_continue);
	RUN(test_continue_not);
	RUN(test_perf_registers);
	return 0;
}
