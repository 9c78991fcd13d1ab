/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of runtimes take from code of aarch64, on any processor: instructions as
 * Debian's packages have them. */
#include <errno.h>

#include "runtimes/arch-v8.h"
#include "runtimes/arch.h"
#include "runtimes/trampoline.h"
#include "tests/unit/test.h"

/* Code at one address, and words at others. */
struct model {
	uint64_t code;
	const uint32_t *words;
	size_t n;
	struct {
		uint64_t at, value;
	} data[4];
};

static bool read_model(void *ctx, uint64_t address, void *ret, size_t n)
{
	const struct model *m = ctx;
	uint64_t at = address - m->code;

	memset(ret, 0, n);
	if (address >= m->code && at < m->n * 4) {
		memcpy(ret, (const uint8_t *)m->words + at, n < m->n * 4 - at ? n : m->n * 4 - at);
		return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(m->data); i++) {
		if (m->data[i].at == address && n == sizeof(m->data[i].value)) {
			memcpy(ret, &m->data[i].value, n);
			return true;
		}
	}
	return false;
}

static uint64_t loaded(struct model *model, size_t i)
{
	struct memory memory = {read_model, model, UINT32_MAX, UINT64_MAX};

	return arch_loaded_variable(&memory, model->code, i);
}

/* ruby_vm_at_exit() of Ruby 3.3.8: the variable is in its own library. */
static void test_own_variable(void)
{
	static const uint32_t words[] = {
		0xd503233f, /* paciasp */
		0xa9be7bfd, /* stp x29, x30, [sp, -32]! */
		0x90000fc1, /* adrp x1, 460000 */
		0x910003fd, /* mov x29, sp */
		0xa90153f3, /* stp x19, x20, [sp, 16] */
		0xaa0003f3, /* mov x19, x0 */
		0xd2800200, /* mov x0, 16 */
		0xf9456034, /* ldr x20, [x1, 2752] */
		0x97f763b6, /* bl */
		0xf9429e81, /* ldr x1, [x20, 1336] */
	};
	struct model model = {.code = 0x268668, .words = words, .n = ARRAY_SIZE(words)};

	CHECK_INT(loaded(&model, 0), ==, 0x460ac0);
	CHECK_INT(loaded(&model, 1), ==, 0);
	/* Its value is known, so what that points to is one as well. */
	model.data[0].at = 0x460ac0;
	model.data[0].value = 0x5500023310;
	CHECK_INT(loaded(&model, 1), ==, 0x5500023310 + 1336);
	CHECK_INT(loaded(&model, 2), ==, 0);
}

/* rb_sym_all_symbols() of Ruby 3.1.2, with a guard of its stack. */
static void test_variable_in_struct(void)
{
	static const uint32_t words[] = {
		0xd100c3ff, /* sub sp, sp, 48 */
		0xf0000c20, /* adrp x0, 37f000 */
		0xf9435000, /* ldr x0, [x0, 1696] */
		0xa9017bfd, /* stp x29, x30, [sp, 16] */
		0x910043fd, /* add x29, sp, 16 */
		0xa90253f3, /* stp x19, x20, [sp, 32] */
		0xf0000c34, /* adrp x20, 37f000 */
		0xf9423e94, /* ldr x20, [x20, 1144] */
		0xf9400002, /* ldr x2, [x0] */
		0xf90007e2, /* str x2, [sp, 8] */
		0xd2800002, /* mov x2, 0 */
		0xf9400281, /* ldr x1, [x20] */
		0xb4000341, /* cbz x1 */
		0x90000c53, /* adrp x19, 380000 */
		0x91060273, /* add x19, x19, 384 */
		0xf9400660, /* ldr x0, [x19, 8] */
		0xf9400800, /* ldr x0, [x0, 16] */
		0xd65f03c0, /* ret */
		0xf9400660, /* ldr x0, [x19, 8] */
	};
	struct model model = {.code = 0x1f87c0,
			      .words = words,
			      .n = ARRAY_SIZE(words),
			      .data = {{0x37f6a0, 0x7000}, {0x37f478, 0x8000}, {0x7000, 0}}};

	CHECK_INT(loaded(&model, 0), ==, 0x37f6a0);
	CHECK_INT(loaded(&model, 1), ==, 0x37f478);
	CHECK_INT(loaded(&model, 2), ==, 0x7000);
	CHECK_INT(loaded(&model, 3), ==, 0x8000);
	CHECK_INT(loaded(&model, 4), ==, 0x380188);
	CHECK_INT(loaded(&model, 5), ==, 0);
}

/* A call may change what it need not keep, and other instructions what they write. */
static void test_forgotten(void)
{
	static const uint32_t called[] = {
		0x90000001, /* adrp x1, 0 */
		0x97f763b6, /* bl */
		0xf9400420, /* ldr x0, [x1, 8] */
	};
	static const uint32_t written[] = {
		0x90000001, /* adrp x1, 0 */
		0xaa0003e1, /* mov x1, x0 */
		0xf9400420, /* ldr x0, [x1, 8] */
	};
	static const uint32_t pair[] = {
		0x90000001, /* adrp x1, 0 */
		0xa94007e0, /* ldp x0, x1, [sp] */
		0xf9400420, /* ldr x0, [x1, 8] */
	};
	static const uint32_t kept[] = {
		0x90000013, /* adrp x19, 0 */
		0x97f763b6, /* bl */
		0xf9400660, /* ldr x0, [x19, 8] */
	};
	struct model model = {.code = 0x1000, .words = called, .n = ARRAY_SIZE(called)};

	CHECK_INT(loaded(&model, 0), ==, 0);
	model.words = written;
	CHECK_INT(loaded(&model, 0), ==, 0);
	model.words = pair;
	CHECK_INT(loaded(&model, 0), ==, 0);
	model.words = kept;
	CHECK_INT(loaded(&model, 0), ==, 0x1008);
}

/* get_zend_version() of PHP 8.2, and with a landing pad. */
static void test_returned(void)
{
	static const uint32_t words[] = {
		0xd503245f, /* bti c */
		0xb0001540, /* adrp x0, page */
		0xf9402000, /* ldr x0, [x0, 64] */
		0xd65f03c0, /* ret */
		0xd503201f, /* nop */
	};
	struct model model = {.code = 0x1ffc, .words = words, .n = ARRAY_SIZE(words)};
	struct memory memory = {read_model, &model, UINT32_MAX, UINT64_MAX};

	CHECK_INT(arch_returned_variable(&memory, 0x2000), ==, 0x2ab040);
	CHECK_INT(arch_returned_variable(&memory, 0x1ffc), ==, 0x2ab040);
	CHECK_INT(arch_returned_variable(&memory, 0x2004), ==, 0);
}

/* The shapes at each instruction of some code, '-' for a frame that is its own, 'l' where the
 * return address is in lr. from_entry: it begins where the function does. */
static void check_shapes(const uint32_t *words, size_t n, bool from_entry, const char *expected)
{
	const uint8_t *code = (const uint8_t *)words;

	CHECK_INT(strlen(expected), ==, n);
	for (size_t i = 0; i < n; i++) {
		/* What is in front of a built-in function is another one. */
		uint32_t before[16] = {0};
		const uint8_t *in_front = code;
		size_t n_before = i * 4;
		uint8_t reg = 0;
		enum v8_shape shape;

		if (!from_entry) {
			memcpy(before + 16 - i, words, i * 4);
			in_front = (const uint8_t *)before;
			n_before = sizeof(before);
		}
		shape = arch_v8_shape(in_front, n_before, code + i * 4, (n - i) * 4, &reg);
		if ((shape == V8_SHAPE_POPPED ? 'l' : '-') != expected[i])
			(void)fprintf(stderr, "instruction %zu\n", i);
		CHECK_INT(shape, ==, expected[i] == 'l' ? V8_SHAPE_POPPED : V8_SHAPE_FULL);
		CHECK(shape == V8_SHAPE_FULL || reg == 30);
	}
}

/* A compiled function: its checks, its frame, a call; it drops its arguments. */
static void test_shapes_of_function(void)
{
	static const uint32_t words[] = {
		0xf85e8050, /* ldur x16, [x2, -24] */
		0xb9400e10, /* ldr w16, [x16, 12] */
		0x36000070, /* tbz w16, 0 */
		0xf9629751, /* ldr x17, [x26] */
		0xd61f0220, /* br x17 */
		0xa9bf7bfd, /* stp x29, x30, [sp, -16]! */
		0x910003fd, /* mov x29, sp */
		0xa9be03ff, /* stp xzr, x0, [sp, -32]! */
		0xa9016fe1, /* stp x1, x27, [sp, 16] */
		0xd63f01c0, /* blr x14 */
		0xf85f03a3, /* ldur x3, [x29, -16] */
		0x910003bf, /* mov sp, x29 */
		0xa8c17bfd, /* ldp x29, x30, [sp], 16 */
		0xf100047f, /* cmp x3, 1 */
		0x8b236fff, /* add sp, sp, x3 */
		0xd65f03c0, /* ret */
		0xd2800000, /* mov x0, 0: another way, with the frame */
		0xd63f01c0, /* blr x14 */
	};

	check_shapes(words, ARRAY_SIZE(words), true, "lllllll------lll--");
}

/* A built-in function that marks its kind of frame. */
static void test_shapes_of_builtin(void)
{
	static const uint32_t words[] = {
		0xd2800250, /* mov x16, 18 */
		0xa9be43ff, /* stp xzr, x16, [sp, -32]! */
		0xa9017bfd, /* stp x29, x30, [sp, 16] */
		0x910043fd, /* add x29, sp, 16 */
		0x94000010, /* bl */
		0x910003bf, /* mov sp, x29 */
		0xa8c17bfd, /* ldp x29, x30, [sp], 16 */
		0xd65f03c0, /* ret */
	};

	check_shapes(words, ARRAY_SIZE(words), false, "llll---l");
	/* Nothing but a call stands in front of a frame of its own. */
	check_shapes(words + 4, 1, false, "-");
}

static void test_calls(void)
{
	static const uint32_t call = 0x94000010, by_register = 0xd63f01c0, jump = 0xd61f0220;

	CHECK(arch_v8_is_call((const uint8_t *)&call, 4));
	CHECK(arch_v8_is_call((const uint8_t *)&by_register, 4));
	CHECK(!arch_v8_is_call((const uint8_t *)&jump, 4));
	CHECK(!arch_v8_is_call((const uint8_t *)&call, 3));
}

static bool read_nothing(void *ctx, uint64_t address, void *ret, size_t n)
{
	(void)ctx;
	(void)address;
	memset(ret, 0, n);
	return false;
}

/* A file without a virtual machine of Java's is none. */
static void test_no_hotspot(void)
{
	const struct memory memory = {.read = read_nothing};
	struct hotspot *h = NULL;
	const char *why;

	CHECK_INT(hotspot_new(&h, &memory, 0x10000, &why), ==, -ENOENT);
	CHECK(!h);
}

/* ---- HotSpot: code as version 17 makes it ---- */

/* The shapes at each instruction of code that is n_before words long before it has its frame: 'n'
 * no frame, 's' not saved, 't' on top of the stack, 'p' where fp points, 'f' all of it. */
static void check_frames(const uint32_t *words, size_t n, size_t n_before, const char *expected)
{
	static const char letters[] = {[SHAPE_NONE] = 'n',
				       [SHAPE_NOT_SAVED] = 's',
				       [SHAPE_PUSHED] = 't',
				       [SHAPE_POINTED] = 'p',
				       [SHAPE_FULL] = 'f'};
	const uint8_t *code = (const uint8_t *)words;

	CHECK_INT(strlen(expected), ==, n);
	for (size_t i = 0; i < n; i++) {
		bool complete = i >= n_before;
		size_t before = complete ? 0 : i;
		size_t behind = n - i < 8 ? n - i : 8;
		enum frame_shape shape =
			arch_frame_shape(code + (i - before) * 4, before * 4, behind * 4, complete);

		if (letters[shape] != expected[i])
			(void)fprintf(stderr, "instruction %zu: %c\n", i, letters[shape]);
		CHECK(letters[shape] == expected[i]);
	}
}

static const uint32_t method_code[] = {
	0xd503201f, /* nop */
	0xd14053e9, /* sub x9, sp, 20, lsl 12 */
	0xf900013f, /* str xzr, [x9] */
	0xd10103ff, /* sub sp, sp, 64 */
	0xa9037bfd, /* stp x29, x30, [sp, 48] */
	0x97fcb48a, /* bl */
	0xa9437bfd, /* ldp x29, x30, [sp, 48] */
	0x910103ff, /* add sp, sp, 64 */
	0xf941a388, /* ldr x8, [x28, 832] */
	0xeb2863ff, /* cmp sp, x8 */
	0x540005e8, /* b.hi */
	0xd65f03c0, /* ret */
};

static void test_frames_of_methods(void)
{
	static const uint32_t large[] = {
		0xd503201f, /* nop */
		0xa9bf7bfd, /* stp x29, x30, [sp, -16]! */
		0xd108c3ff, /* sub sp, sp, 560 */
		0xd503201f, /* nop */
		0x9108c3ff, /* add sp, sp, 560 */
		0xa8c17bfd, /* ldp x29, x30, [sp], 16 */
		0xd65f03c0, /* ret */
	};
	static const uint32_t native[] = {
		0xd503201f, /* nop */
		0xa9bf7bfd, /* stp x29, x30, [sp, -16]! */
		0x910003fd, /* mov x29, sp */
		0xd10143ff, /* sub sp, sp, 80 */
		0xd63f0100, /* blr x8 */
		0x910003bf, /* mov sp, x29 */
		0xa8c17bfd, /* ldp x29, x30, [sp], 16 */
		0xf9400788, /* ldr x8, [x28, 8] */
		0xb5000048, /* cbnz x8 */
		0xd65f03c0, /* ret */
	};

	check_frames(method_code, ARRAY_SIZE(method_code), 5, "nnnnsffsnnnn");
	/* A loop may be entered, which makes a frame, too: no prologue is known there. */
	check_frames(method_code + 2, ARRAY_SIZE(method_code) - 2, 0, "nnsffsnnnn");
	check_frames(large, ARRAY_SIZE(large), 3, "nntfftn");
	check_frames(native, ARRAY_SIZE(native), 4, "nntpfftnnn");
}

/* What the code from each instruction on does: 'r' it returns by the register, 't' by the top of
 * the stack, 'p' where fp points, 'f' it has a frame of fixed size, '?' not known; and the words
 * that it takes from the stack before. */
static void check_ahead(const uint32_t *words, size_t n, const char *ways, const char *pushed)
{
	static const char letters[] = {[WAY_UNKNOWN] = '?',
				       [WAY_REGISTER] = 'r',
				       [WAY_TOP] = 't',
				       [WAY_FRAME] = 'p',
				       [WAY_FIXED] = 'f'};
	struct model model = {.code = 0x4000, .words = words, .n = n};
	struct memory memory = {read_model, &model, UINT32_MAX, UINT64_MAX};

	CHECK_INT(strlen(ways), ==, n);
	CHECK_INT(strlen(pushed), ==, n);
	for (size_t i = 0; i < n; i++) {
		struct code_ahead ahead;

		arch_look_ahead(&memory, 0x4000 + i * 4, 0x4000 + n * 4, &ahead);
		if (letters[ahead.way] != ways[i] || ahead.pushed != (pushed[i] - '0') * 8)
			(void)fprintf(stderr, "instruction %zu: %c %u\n", i, letters[ahead.way],
				      ahead.pushed);
		CHECK(letters[ahead.way] == ways[i]);
		CHECK_INT(ahead.pushed, ==, (pushed[i] - '0') * 8);
	}
}

static void test_ahead(void)
{
	/* A method calls a function that is not Java: it leaves its place on the stack. */
	static const uint32_t leaf[] = {
		0x10000089, /* adr x9 */
		0xa9bf27ff, /* stp xzr, x9, [sp, -16]! */
		0xd63f0100, /* blr x8 */
		0x910043ff, /* add sp, sp, 16 */
		0x14000002, /* b 2 further */
		0xf84107fe, /* ldr x30, [sp], 16: not on the way */
		0xa9437bfd, /* ldp x29, x30, [sp, 48] */
		0x910103ff, /* add sp, sp, 64 */
		0xd65f03c0, /* ret */
	};
	/* Of a stub that copies memory, and of one that searches the classes of a class. */
	static const uint32_t copy[] = {
		0xa9bf7bfd, /* stp x29, x30, [sp, -16]! */
		0x910003fd, /* mov x29, sp */
		0xcb000028, /* sub x8, x1, x0 */
		0x910003bf, /* mov sp, x29 */
		0xa8c17bfd, /* ldp x29, x30, [sp], 16 */
		0xaa1f03e0, /* mov x0, xzr */
		0xd65f03c0, /* ret */
	};
	static const uint32_t search[] = {
		0xa9be0be0, /* stp x0, x2, [sp, -32]! */
		0xa90117e4, /* stp x4, x5, [sp, 16] */
		0xa94117e4, /* ldp x4, x5, [sp, 16] */
		0xa8c20be0, /* ldp x0, x2, [sp], 32 */
		0xd65f03c0, /* ret */
		0x17fffffb, /* b backwards */
	};
	static const uint32_t large[] = {
		0x9108c3ff, /* add sp, sp, 560 */
		0xa8c17bfd, /* ldp x29, x30, [sp], 16 */
		0xd65f03c0, /* ret */
	};

	check_ahead(leaf, ARRAY_SIZE(leaf), "fffffffrr", "002202080");
	check_ahead(copy, ARRAY_SIZE(copy), "rtpptrr", "0000000");
	check_ahead(search, ARRAY_SIZE(search), "rrrrr?", "044400");
	check_ahead(large, ARRAY_SIZE(large), "ftr", "000");
}

/* Words of a stack from 0x7000 on. */
static uint64_t frame_words[32];
static const struct runtime_stack frame_stack = {
	.bytes = (const uint8_t *)frame_words, .start = 0x7000, .n = sizeof(frame_words)};

static uint64_t *frame_word(uint64_t address)
{
	return &frame_words[(address - 0x7000) / 8];
}

static void check_caller(const struct interpreted *found, uint64_t pc, uint64_t sp, uint64_t fp)
{
	CHECK_INT(found->caller_pc, ==, pc);
	CHECK_INT(found->caller_sp, ==, sp);
	CHECK_INT(found->caller_fp, ==, fp);
}

/* The caller of a frame in each shape; the return address may be signed. */
static void test_callers(void)
{
	struct runtime_regs regs = {.sp = 0x7010, .fp = 0x7050, .innermost = true};
	struct interpreted found;

	regs.r[30] = UINT64_C(0x5a00000000006004);
	memset(frame_words, 0, sizeof(frame_words));
	*frame_word(0x7010) = 0x7090;
	*frame_word(0x7018) = UINT64_C(0x2b00000000006008);
	*frame_word(0x7030) = 0x70a0;
	*frame_word(0x7038) = 0x600c;
	*frame_word(0x7050) = 0x70b0;
	*frame_word(0x7058) = 0x6010;
	CHECK(arch_framed(&frame_stack, &regs, 6, SHAPE_NONE, &found));
	check_caller(&found, 0x6004, 0x7010, 0x7050);
	CHECK(arch_framed(&frame_stack, &regs, 6, SHAPE_NOT_SAVED, &found));
	check_caller(&found, 0x6004, 0x7040, 0x7050);
	CHECK(arch_framed(&frame_stack, &regs, 6, SHAPE_PUSHED, &found));
	check_caller(&found, 0x6008, 0x7020, 0x7090);
	CHECK(arch_framed(&frame_stack, &regs, 6, SHAPE_FULL, &found));
	check_caller(&found, 0x600c, 0x7040, 0x70a0);
	CHECK(arch_framed(&frame_stack, &regs, 6, SHAPE_POINTED, &found));
	check_caller(&found, 0x6010, 0x7060, 0x70b0);
	CHECK(!arch_framed(&frame_stack, &regs, 600, SHAPE_FULL, &found));
	CHECK(arch_return(&frame_stack, &regs, &found));
	check_caller(&found, 0x6004, 0x7010, 0x7050);
}

/* At each instruction of one of CPython's trampolines: 'l' its return address is in lr, where it
 * may be signed; 'f' its frame is on top of the stack. */
static void check_trampoline(const uint32_t *words, size_t n, const char *expected)
{
	struct model model = {.code = 0x4000, .words = words, .n = n};
	struct memory memory = {read_model, &model, UINT32_MAX, UINT64_MAX};

	frame_words[0] = 0x7090;
	frame_words[1] = UINT64_C(0x2b00000000006008);
	CHECK_INT(strlen(expected), ==, n);
	for (size_t i = 0; i < n; i++) {
		struct runtime_regs regs = {.pc = model.code + i * 4, .sp = 0x7000, .fp = 0x7050};
		bool is_framed = expected[i] == 'f';

		/* Nothing returns to where there is no frame. */
		CHECK_INT(trampoline_step(&memory, &frame_stack, &regs), ==,
			  is_framed ? RUNTIME_STEP : RUNTIME_NOT_MINE);
		regs = (struct runtime_regs){
			.pc = model.code + i * 4, .sp = 0x7000, .fp = 0x7050, .innermost = true};
		regs.r[30] = UINT64_C(0x5a00000000006004);
		CHECK_INT(trampoline_step(&memory, &frame_stack, &regs), ==, RUNTIME_STEP);
		CHECK_INT(regs.pc, ==, is_framed ? 0x6008 : 0x6004);
		CHECK_INT(regs.sp, ==, is_framed ? 0x7010 : 0x7000);
		CHECK_INT(regs.fp, ==, is_framed ? 0x7090 : 0x7050);
	}
}

static void test_trampolines(void)
{
	/* Of Debian's 3.13. */
	static const uint32_t plain[] = {
		0xa9bf7bfd, /* stp x29, x30, [sp, -16]! */
		0x910003fd, /* mov x29, sp */
		0xd63f0060, /* blr x3 */
		0xa8c17bfd, /* ldp x29, x30, [sp], 16 */
		0xd65f03c0, /* ret */
	};
	/* With -mbranch-protection. */
	static const uint32_t with_signature[] = {
		0xd503233f,						    /* paciasp */
		0xa9bf7bfd, 0x910003fd, 0xd63f0060, 0xa8c17bfd, 0xd50323bf, /* autiasp */
		0xd65f03c0,
	};
	static const uint32_t by_key_b[] = {
		0xd503245f,						    /* bti c */
		0xd503237f,						    /* pacibsp */
		0xa9bf7bfd, 0x910003fd, 0xd63f0060, 0xa8c17bfd, 0xd50323ff, /* autibsp */
		0xd65f03c0,
	};
	/* Functions that are alike. */
	static const uint32_t others[] = {
		0xa9bf7bfd, 0x910003fd, 0xd63f0080, /* blr x4 */
		0xa8c17bfd, 0xd65f03c0, 0xd503245f, 0xa9bf7bfd,
		0x910003fd, 0xd63f0060, 0xa8c17bfd, 0xd61f0200, /* br x16 */
	};
	struct model model = {.code = 0x4000, .words = others, .n = ARRAY_SIZE(others)};
	struct memory memory = {read_model, &model, UINT32_MAX, UINT64_MAX};

	check_trampoline(plain, ARRAY_SIZE(plain), "lfffl");
	check_trampoline(with_signature, ARRAY_SIZE(with_signature), "llfffll");
	check_trampoline(by_key_b, ARRAY_SIZE(by_key_b), "lllfffll");
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		struct runtime_regs regs = {.pc = 0x4000 + i * 4, .sp = 0x7000, .innermost = true};

		CHECK_INT(trampoline_step(&memory, &frame_stack, &regs), ==, RUNTIME_NOT_MINE);
	}
}

/* The interpreter's frame of a method, and before it is made. */
static void test_interpreted(void)
{
	static struct hotspot h = {.major = 17, .low = 0x6000, .high = 0x7000};
	struct runtime_regs regs = {.sp = 0x7010, .fp = 0x7060, .innermost = true};
	struct interpreted found;

	memset(frame_words, 0, sizeof(frame_words));
	*frame_word(0x7060) = 0x70a0;
	*frame_word(0x7068) = UINT64_C(0x5a00000000006004);
	*frame_word(0x7058) = 0x7080; /* the sender's sp */
	*frame_word(0x7048) = 0x1230; /* the method */
	*frame_word(0x7018) = 0x4567; /* the bytecode; in version 8 elsewhere */
	*frame_word(0x7028) = 0x4568;
	CHECK(arch_interpreted(&h, &frame_stack, 0x7060, &found));
	check_caller(&found, 0x6004, 0x7080, 0x70a0);
	CHECK_INT(found.method, ==, 0x1230);
	CHECK_INT(found.bcp, ==, 0x4567);
	h.major = 8;
	CHECK(arch_interpreted(&h, &frame_stack, 0x7060, &found));
	CHECK_INT(found.bcp, ==, 0x4568);
	/* An interpreted caller's is lower; and it is not there yet. */
	*frame_word(0x7058) = 0x7020;
	CHECK(arch_interpreted(&h, &frame_stack, 0x7060, &found));
	CHECK_INT(found.caller_sp, ==, 0x7070);
	*frame_word(0x7058) = UINT64_C(0x123456789);
	CHECK(arch_interpreted(&h, &frame_stack, 0x7060, &found));
	CHECK_INT(found.caller_sp, ==, 0x7070);
	CHECK(!arch_interpreted(&h, &frame_stack, 0x7068, &found));

	regs.r[12] = 0x1230;
	regs.r[13] = 0x7030;
	regs.r[19] = 0x7040;
	regs.r[22] = 0x4567;
	regs.r[30] = UINT64_C(0x5a00000000006004);
	h.major = 17;
	CHECK(arch_entering(&h, &frame_stack, &regs, &found));
	check_caller(&found, 0x6004, 0x7030, 0x7060);
	CHECK_INT(found.method, ==, 0x1230);
	CHECK_INT(arch_bcp(&regs), ==, 0x4567);
	h.major = 21;
	CHECK(arch_entering(&h, &frame_stack, &regs, &found));
	CHECK_INT(found.caller_sp, ==, 0x7040);
	regs.r[30] = 0x1000;
	CHECK(!arch_entering(&h, &frame_stack, &regs, &found));
}

static void test_hotspot_calls(void)
{
	static const uint32_t call = 0x94000010, by_register = 0xd63f0100, jump = 0x14000010;

	CHECK(arch_is_call((const uint8_t *)&call, 4));
	CHECK(arch_is_call((const uint8_t *)&by_register, 4));
	CHECK(!arch_is_call((const uint8_t *)&jump, 4));
	CHECK(!arch_is_call((const uint8_t *)&call, 3));
}

int main(void)
{
	RUN(test_own_variable);
	RUN(test_variable_in_struct);
	RUN(test_forgotten);
	RUN(test_returned);
	RUN(test_shapes_of_function);
	RUN(test_shapes_of_builtin);
	RUN(test_calls);
	RUN(test_no_hotspot);
	RUN(test_frames_of_methods);
	RUN(test_ahead);
	RUN(test_callers);
	RUN(test_trampolines);
	RUN(test_interpreted);
	RUN(test_hotspot_calls);
	return 0;
}
