/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/trampoline.h"

#include <errno.h>
#include <stdlib.h>

#include "runtimes/arch.h"
#include "runtimes/image.h"
#include "runtimes/stepper-internal.h"

/* More than a trampoline has, on each side of a place in it. */
enum { AROUND = 32, PAGE = 4096 };
enum { OPEN_READS = 4000, OPEN_BYTES = 1 << 20 };

bool trampoline_is_image(struct memory *m, uint64_t image)
{
	struct image i;

	return image_open(&i, m, image) && image_symbol(&i, "_PyRuntime") &&
	       image_symbol(&i, "PyUnstable_PerfMapState_Init");
}

/* What is around pc. In front of the first trampoline of all, and behind the last one, may be no
 * memory. 0: not readable. */
static size_t read_around(struct memory *m, uint64_t pc, size_t n_before, uint8_t *ret)
{
	uint64_t left = PAGE - pc % PAGE;

	if (memory_read(m, pc - n_before, ret, n_before + AROUND))
		return AROUND;
	return left < AROUND && memory_read(m, pc - n_before, ret, n_before + left) ? left : 0;
}

enum runtime_step trampoline_step(struct memory *m, const struct runtime_stack *stack,
				  struct runtime_regs *regs)
{
	uint8_t code[2 * AROUND];
	size_t n_before = regs->pc % PAGE < AROUND ? regs->pc % PAGE : AROUND;
	size_t n = regs->file_end ? 0 : read_around(m, regs->pc, n_before, code);
	enum frame_shape shape;
	struct interpreted to;

	/* Nothing returns to where there is no frame. */
	if (n == 0 || !arch_trampoline_shape(code, n_before, n, &shape) ||
	    (shape == SHAPE_NONE && !regs->innermost))
		return RUNTIME_NOT_MINE;
	if (!arch_framed(stack, regs, 2, shape, &to))
		return RUNTIME_TRUNCATED;
	if (to.caller_pc == 0)
		return RUNTIME_UNPROVEN;
	regs->pc = to.caller_pc;
	regs->sp = to.caller_sp;
	regs->fp = to.caller_fp;
	regs->innermost = false;
	regs->called_own = false;
	return RUNTIME_STEP;
}

/* ---- As a stepper, which keeps the memory alone ---- */

static int open_it(void **ret, const struct memory *memory, uint64_t image, const char **ret_why)
{
	struct memory *m = malloc(sizeof(*m));

	if (!m)
		return -ENOMEM;
	*m = *memory;
	m->reads_left = OPEN_READS;
	m->bytes_left = OPEN_BYTES;
	if (!trampoline_is_image(m, image)) {
		free(m);
		return -ENOENT;
	}
	*ret = m;
	return 0;
}

static const char *no_release(const void *it)
{
	return "";
}

static bool is_tried(const void *it)
{
	return true;
}

static void begin(void *it, uint32_t reads, uint64_t bytes)
{
	struct memory *m = it;

	m->reads_left = reads;
	m->bytes_left = bytes;
}

static bool may_have(const void *it, uint64_t pc)
{
	return true;
}

static enum runtime_step step(void *it, const struct runtime_stack *stack,
			      struct runtime_regs *regs, struct stepped_frame *frames, size_t max,
			      size_t *ret_n)
{
	return trampoline_step(it, stack, regs);
}

static const char *no_text(const void *it, strid id)
{
	return "";
}

static const char *no_level(uint8_t level)
{
	return "";
}

static uint64_t none_unproven(const void *it)
{
	return 0;
}

static void explain(const void *it, FILE *out)
{
	(void)fprintf(out, "CPython's trampolines\n");
}

const struct stepper_type trampoline_stepper = {
	.name = "CPython's trampolines",
	.kind = RUNTIME_KIND_CPYTHON,
	.has_frame_pointers = true,
	.open = open_it,
	.close = free,
	.release = no_release,
	.is_tried = is_tried,
	.begin = begin,
	.may_have = may_have,
	.step = step,
	.text = no_text,
	.level_name = no_level,
	.unproven = none_unproven,
	.explain = explain,
};
