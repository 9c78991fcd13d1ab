/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of runtimes take from code of aarch64, on any processor: instructions as
 * Debian's packages have them. */
#include <errno.h>

#include "runtimes/arch-v8.h"
#include "runtimes/arch.h"
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

/* A file without a virtual machine of Java's is none, also where its frames are not known. */
static void test_no_hotspot(void)
{
	const struct memory memory = {.read = read_nothing};
	struct hotspot *h = NULL;
	const char *why;

	CHECK_INT(hotspot_new(&h, &memory, 0x10000, &why), ==, -ENOENT);
	CHECK(!h);
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
	return 0;
}
