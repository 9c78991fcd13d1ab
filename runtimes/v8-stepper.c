/* SPDX-License-Identifier: Apache-2.0 */
/* V8 as stepper.h has it. */
#include "runtimes/v8.h"
#include "runtimes/stepper-internal.h"

static int open_it(void **ret, const struct memory *memory, uint64_t image, const char **ret_why)
{
	struct v8 *v;
	int r = v8_new(&v, memory, image, ret_why);

	if (r == 0)
		*ret = v;
	return r;
}

static void close_it(void *it)
{
	v8_free(it);
}

static const char *its_release(const void *it)
{
	return v8_release(it);
}

static bool it_is_tried(const void *it)
{
	return v8_is_tried(it);
}

static void begin_it(void *it, uint32_t reads, uint64_t bytes)
{
	v8_begin(it, reads, bytes);
}

/* It has code in many places, and in its file. */
static bool it_may_have(const void *it, uint64_t pc)
{
	return true;
}

static enum runtime_step step_it(void *it, const struct runtime_stack *stack,
				 struct runtime_regs *regs, struct stepped_frame *frames,
				 size_t max, size_t *ret_n)
{
	return v8_step(it, stack, regs, frames, max, ret_n);
}

static const char *its_text(const void *it, strid id)
{
	return v8_text(it, id);
}

static const char *name_of_level(uint8_t level)
{
	return v8_level_name((enum v8_level)level);
}

static uint64_t its_unproven(const void *it)
{
	return v8_stats(it)->unproven;
}

static void explain_it(const void *it, FILE *out)
{
	v8_explain(it, out);
}

const struct stepper_type v8_stepper = {
	.name = "V8",
	.kind = RUNTIME_KIND_V8JS,
	.has_frame_pointers = true,
	.has_own_threads = true,
	.has_functions = true,
	.open = open_it,
	.close = close_it,
	.release = its_release,
	.is_tried = it_is_tried,
	.begin = begin_it,
	.may_have = it_may_have,
	.step = step_it,
	.text = its_text,
	.level_name = name_of_level,
	.unproven = its_unproven,
	.explain = explain_it,
};
