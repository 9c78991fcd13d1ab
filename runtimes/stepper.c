/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "runtimes/stepper-internal.h"
#include "util/cleanup.h"

struct stepper {
	const struct stepper_type *type;
	void *it;
};

#define DECLARE(kind, name, ...) extern const struct stepper_type name##_stepper;
RUNTIMES_ON_STACK(DECLARE)
extern const struct stepper_type trampoline_stepper;

/* The trampolines are CPython's, whose row is that of its chain. */
#define ROW(kind, name, ...) &name##_stepper,
static const struct stepper_type *const types[] = {RUNTIMES_ON_STACK(ROW) & trampoline_stepper};

int stepper_new(struct stepper **ret, const struct memory *memory, uint64_t image,
		const char **ret_why)
{
	_cleanup_(stepper_freep) struct stepper *s = calloc(1, sizeof(*s));
	int r = -ENOENT;

	if (!s)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(types) && r == -ENOENT; i++) {
		s->type = types[i];
		r = s->type->open(&s->it, memory, image, ret_why);
	}
	if (r == 0)
		*ret = TAKE_PTR(s);
	return r;
}

struct stepper *stepper_free(struct stepper *s)
{
	if (s && s->it)
		s->type->close(s->it);
	free(s);
	return NULL;
}

enum runtime_kind stepper_kind(const struct stepper *s)
{
	return s->type->kind;
}

const char *stepper_name(const struct stepper *s)
{
	return s->type->name;
}

const char *stepper_release(const struct stepper *s)
{
	return s->type->release(s->it);
}

bool stepper_is_tried(const struct stepper *s)
{
	return s->type->is_tried(s->it);
}

bool stepper_has_frame_pointers(const struct stepper *s)
{
	return s->type->has_frame_pointers;
}

bool stepper_has_own_threads(const struct stepper *s)
{
	return s->type->has_own_threads;
}

bool stepper_has_functions(const struct stepper *s)
{
	return s->type->has_functions;
}

void stepper_begin(struct stepper *s, uint32_t reads, uint64_t bytes)
{
	s->type->begin(s->it, reads, bytes);
}

bool stepper_may_have(const struct stepper *s, uint64_t pc)
{
	return s->type->may_have(s->it, pc);
}

enum runtime_step stepper_step(struct stepper *s, const struct runtime_stack *stack,
			       struct runtime_regs *regs, struct stepped_frame *frames, size_t max,
			       size_t *ret_n)
{
	*ret_n = 0;
	return s->type->step(s->it, stack, regs, frames, max, ret_n);
}

const char *stepper_text(const struct stepper *s, strid id)
{
	return s->type->text(s->it, id);
}

const char *stepper_level_name(const struct stepper *s, uint8_t level)
{
	return s->type->level_name(level);
}

uint64_t stepper_unproven(const struct stepper *s)
{
	return s->type->unproven(s->it);
}

void stepper_explain(const struct stepper *s, FILE *out)
{
	s->type->explain(s->it, out);
}
