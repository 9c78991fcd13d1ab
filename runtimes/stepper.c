/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "runtimes/hotspot.h"
#include "runtimes/stepper.h"
#include "runtimes/v8.h"

struct stepper {
	struct hotspot *hotspot; /* one of them */
	struct v8 *v8;
};

int stepper_rank(const char *path)
{
	if (hotspot_is_library(path))
		return 3;
	if (v8_is_image(path))
		return strstr(path, "/libnode.so") ? 2 : 1;
	return 0;
}

int stepper_new(struct stepper **ret, const struct memory *memory, uint64_t image,
		const char **ret_why)
{
	_cleanup_(stepper_freep) struct stepper *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	r = hotspot_new(&s->hotspot, memory, image, ret_why);
	if (r == -ENOENT)
		r = v8_new(&s->v8, memory, image, ret_why);
	if (r == 0)
		*ret = TAKE_PTR(s);
	return r;
}

struct stepper *stepper_free(struct stepper *s)
{
	if (s) {
		hotspot_free(s->hotspot);
		v8_free(s->v8);
		free(s);
	}
	return NULL;
}

enum stepper_kind stepper_kind(const struct stepper *s)
{
	return s->v8 ? STEPPER_V8 : STEPPER_HOTSPOT;
}

const char *stepper_name(const struct stepper *s)
{
	return s->v8 ? "V8" : "HotSpot";
}

const char *stepper_release(const struct stepper *s)
{
	return s->v8 ? v8_release(s->v8) : hotspot_release(s->hotspot);
}

bool stepper_is_tried(const struct stepper *s)
{
	return s->v8 ? v8_is_tried(s->v8) : hotspot_is_tried(s->hotspot);
}

void stepper_begin(struct stepper *s, uint32_t reads, uint64_t bytes)
{
	if (s->v8)
		v8_begin(s->v8, reads, bytes);
	else
		hotspot_begin(s->hotspot, reads, bytes);
}

bool stepper_may_have(const struct stepper *s, uint64_t pc)
{
	return s->v8 || hotspot_has(s->hotspot, pc);
}

bool stepper_has_frame_pointers(const struct stepper *s)
{
	return s->v8 != NULL;
}

enum runtime_step stepper_step(struct stepper *s, const struct runtime_stack *stack,
			       struct runtime_regs *regs, struct stepped_frame *frames, size_t max,
			       size_t *ret_n)
{
	*ret_n = 0;
	if (s->v8)
		return v8_step(s->v8, stack, regs, frames, max, ret_n);
	if (!hotspot_has(s->hotspot, regs->pc))
		return RUNTIME_NOT_MINE;
	return hotspot_step(s->hotspot, stack, regs, frames, max, ret_n);
}

const char *stepper_text(const struct stepper *s, strid id)
{
	return s->v8 ? v8_text(s->v8, id) : hotspot_text(s->hotspot, id);
}

uint64_t stepper_unproven(const struct stepper *s)
{
	return s->v8 ? v8_stats(s->v8)->unproven
		     : hotspot_stats(s->hotspot)->failed[RUNTIME_UNPROVEN];
}
