/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Any runtime whose frames are on the native stack, and that is read late: HotSpot, V8. Whoever
 * walks the native frames asks it at each frame whose code is not in a file, or in a file without
 * call frame information there.
 */
#include "runtimes/memory.h"
#include "runtimes/stack.h"
#include "util/cleanup.h"

struct stepper;

enum stepper_kind { STEPPER_HOTSPOT, STEPPER_V8, STEPPER_N_KINDS };

/* How telling the path of a mapped file is: the file of the largest number is to be looked into, 0:
 * it is no runtime's. */
int stepper_rank(const char *path);

/* As hotspot_new() and v8_new(), by what the image is. */
int stepper_new(struct stepper **ret, const struct memory *memory, uint64_t image,
		const char **ret_why);
struct stepper *stepper_free(struct stepper *s);
DEFINE_CLEANUP(struct stepper *, stepper_free)

enum stepper_kind stepper_kind(const struct stepper *s);
/* "HotSpot"; its release; whether that was ever tried. */
const char *stepper_name(const struct stepper *s);
const char *stepper_release(const struct stepper *s);
bool stepper_is_tried(const struct stepper *s);

/* Before each walk: its budget, in reads and bytes. */
void stepper_begin(struct stepper *s, uint32_t reads, uint64_t bytes);
/* Whether code at pc may be its own: cheap, and never wrong if false. */
bool stepper_may_have(const struct stepper *s, uint64_t pc);
/* Whether frame pointers lead through its code, without names, where it is not asked. */
bool stepper_has_frame_pointers(const struct stepper *s);
/* As hotspot_step() and v8_step(). */
enum runtime_step stepper_step(struct stepper *s, const struct runtime_stack *stack,
			       struct runtime_regs *regs, struct stepped_frame *frames, size_t max,
			       size_t *ret_n);
/* A frame's text, valid until the next walk. */
const char *stepper_text(const struct stepper *s, strid id);
/* How many frames were not proven so far. */
uint64_t stepper_unproven(const struct stepper *s);
