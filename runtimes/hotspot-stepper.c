/* SPDX-License-Identifier: Apache-2.0 */
/* HotSpot as stepper.h has it. */
#include "runtimes/hotspot.h"
#include "runtimes/stepper-internal.h"

static int open_it(void **ret, const struct memory *memory, uint64_t image, const char **ret_why)
{
	struct hotspot *h;
	int r = hotspot_new(&h, memory, image, ret_why);

	if (r == 0)
		*ret = h;
	return r;
}

static void close_it(void *it)
{
	hotspot_free(it);
}

static const char *its_release(const void *it)
{
	return hotspot_release(it);
}

static bool it_is_tried(const void *it)
{
	return hotspot_is_tried(it);
}

static void begin_it(void *it, uint32_t reads, uint64_t bytes)
{
	hotspot_begin(it, reads, bytes);
}

static bool it_has(const void *it, uint64_t pc)
{
	return hotspot_has(it, pc);
}

static enum runtime_step step_it(void *it, const struct runtime_stack *stack,
				 struct runtime_regs *regs, struct stepped_frame *frames,
				 size_t max, size_t *ret_n)
{
	return hotspot_has(it, regs->pc) ? hotspot_step(it, stack, regs, frames, max, ret_n)
					 : RUNTIME_NOT_MINE;
}

static const char *its_text(const void *it, strid id)
{
	return hotspot_text(it, id);
}

static const char *name_of_level(uint8_t level)
{
	return hotspot_level_name((enum hotspot_level)level);
}

static uint64_t its_unproven(const void *it)
{
	return hotspot_stats(it)->failed[RUNTIME_UNPROVEN];
}

static void explain_it(const void *it, FILE *out)
{
	hotspot_explain(it, out);
}

const struct stepper_type hotspot_stepper = {
	.name = "HotSpot",
	.kind = RUNTIME_KIND_JVM,
	.has_functions = true,
	.open = open_it,
	.close = close_it,
	.release = its_release,
	.is_tried = it_is_tried,
	.begin = begin_it,
	.may_have = it_has,
	.step = step_it,
	.text = its_text,
	.level_name = name_of_level,
	.unproven = its_unproven,
	.explain = explain_it,
};
