/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Runtimes whose frames are on the native stack, and that are read after the sample: HotSpot, V8,
 * and the trampolines of CPython, which have no functions.
 * The walk of the native frames calls them at each frame whose code is in no file, or in a file
 * without call frame information there.
 */
#include "runtimes/memory.h"
#include "runtimes/stack.h"
#include "util/cleanup.h"

struct stepper;

enum stepper_kind { STEPPER_HOTSPOT, STEPPER_V8, STEPPER_TRAMPOLINES, STEPPER_N_KINDS };

/* As hotspot_new() or v8_new(), by the contents of the image. */
int stepper_new(struct stepper **ret, const struct memory *memory, uint64_t image,
		const char **ret_why);
struct stepper *stepper_free(struct stepper *s);
DEFINE_CLEANUP(struct stepper *, stepper_free)

enum stepper_kind stepper_kind(const struct stepper *s);
/* "HotSpot"; its release; did we ever test that? */
const char *stepper_name(const struct stepper *s);
const char *stepper_release(const struct stepper *s);
bool stepper_is_tried(const struct stepper *s);

/* Call it before each walk, with the walk's budget. */
void stepper_begin(struct stepper *s, uint32_t reads, uint64_t bytes);
/* May pc be in its code? Cheap; false is certain. */
bool stepper_may_have(const struct stepper *s, uint64_t pc);
/* Can a walk go through its code by frame pointers alone (without names)? */
bool stepper_has_frame_pointers(const struct stepper *s);
/* As hotspot_step() and v8_step(). */
enum runtime_step stepper_step(struct stepper *s, const struct runtime_stack *stack,
			       struct runtime_regs *regs, struct stepped_frame *frames, size_t max,
			       size_t *ret_n);
/* A frame's text. Borrowed until the next walk. */
const char *stepper_text(const struct stepper *s, strid id);
/* The number of frames without a proof so far. */
uint64_t stepper_unproven(const struct stepper *s);
