/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "runtimes/hotspot.h"
#include "runtimes/interp-internal.h"
#include "runtimes/stepper.h"
#include "runtimes/trampoline.h"
#include "runtimes/v8.h"

enum { OPEN_READS = 4000, OPEN_BYTES = 1 << 20 };

struct stepper {
	struct hotspot *hotspot; /* one of them, or neither: trampolines */
	struct v8 *v8;
	struct memory memory; /* of trampolines */
};

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
	if (r == -ENOENT) {
		s->memory = *memory;
		s->memory.reads_left = OPEN_READS;
		s->memory.bytes_left = OPEN_BYTES;
		r = trampoline_is_image(&s->memory, image) ? 0 : -ENOENT;
	}
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
	return s->v8 ? STEPPER_V8 : s->hotspot ? STEPPER_HOTSPOT : STEPPER_TRAMPOLINES;
}

const char *stepper_name(const struct stepper *s)
{
	return s->v8 ? "V8" : s->hotspot ? "HotSpot" : "CPython's trampolines";
}

const char *stepper_release(const struct stepper *s)
{
	return s->v8 ? v8_release(s->v8) : s->hotspot ? hotspot_release(s->hotspot) : "";
}

bool stepper_is_tried(const struct stepper *s)
{
	return s->v8 ? v8_is_tried(s->v8) : !s->hotspot || hotspot_is_tried(s->hotspot);
}

void stepper_begin(struct stepper *s, uint32_t reads, uint64_t bytes)
{
	s->memory.reads_left = reads;
	s->memory.bytes_left = bytes;
	if (s->v8)
		v8_begin(s->v8, reads, bytes);
	else if (s->hotspot)
		hotspot_begin(s->hotspot, reads, bytes);
}

bool stepper_may_have(const struct stepper *s, uint64_t pc)
{
	return !s->hotspot || hotspot_has(s->hotspot, pc);
}

bool stepper_has_frame_pointers(const struct stepper *s)
{
	return !s->hotspot;
}

enum runtime_step stepper_step(struct stepper *s, const struct runtime_stack *stack,
			       struct runtime_regs *regs, struct stepped_frame *frames, size_t max,
			       size_t *ret_n)
{
	*ret_n = 0;
	if (s->v8)
		return v8_step(s->v8, stack, regs, frames, max, ret_n);
	if (!s->hotspot)
		return trampoline_step(&s->memory, stack, regs);
	if (!hotspot_has(s->hotspot, regs->pc))
		return RUNTIME_NOT_MINE;
	return hotspot_step(s->hotspot, stack, regs, frames, max, ret_n);
}

const char *stepper_text(const struct stepper *s, strid id)
{
	return s->v8 ? v8_text(s->v8, id) : s->hotspot ? hotspot_text(s->hotspot, id) : "";
}

uint64_t stepper_unproven(const struct stepper *s)
{
	return s->v8	    ? v8_stats(s->v8)->unproven
	       : s->hotspot ? hotspot_stats(s->hotspot)->failed[RUNTIME_UNPROVEN]
			    : 0;
}
