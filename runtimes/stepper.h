/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Runtimes whose frames are on the native stack, and that are read after the sample: those of
 * RUNTIMES_ON_STACK (util/runtime-rows.h), and the trampolines of CPython, which have no functions.
 * The walk of the native frames calls them at each frame whose code is in no file, or in a file
 * without call frame information there. A new one needs a row, and a file of its own with what
 * stepper-internal.h asks for.
 */
#include <stdio.h>

#include "runtimes/memory.h"
#include "runtimes/stack.h"
#include "util/cleanup.h"
#include "util/runtime-rows.h"

struct stepper;

/*
 * Recognises the runtime by the contents of the image. image: where the file's first byte is
 * mapped. memory: its function and context are copied, its budget is not used. 0; -ENOENT: there is
 * none in it; -ENOTSUP: one that we do not understand (*ret_why, a literal); -EAGAIN: it has not
 * started yet; -ENOMEM.
 */
int stepper_new(struct stepper **ret, const struct memory *memory, uint64_t image,
		const char **ret_why);
struct stepper *stepper_free(struct stepper *s);
DEFINE_CLEANUP(struct stepper *, stepper_free)

enum runtime_kind stepper_kind(const struct stepper *s);
/* "HotSpot"; its release; did we ever test that? */
const char *stepper_name(const struct stepper *s);
const char *stepper_release(const struct stepper *s);
bool stepper_is_tried(const struct stepper *s);
/* Can a walk go through its code by frame pointers alone (without names)? */
bool stepper_has_frame_pointers(const struct stepper *s);
/* Has a thread functions of its own, which are gone when it ends? */
bool stepper_has_own_threads(const struct stepper *s);
/* false: its frames stand for no function, and only lead to one of the runtime's. */
bool stepper_has_functions(const struct stepper *s);

/* Call it before each walk, with the walk's budget. */
void stepper_begin(struct stepper *s, uint32_t reads, uint64_t bytes);
/* May pc be in its code? Cheap; false is certain. */
bool stepper_may_have(const struct stepper *s, uint64_t pc);
/*
 * Steps over one physical frame to its caller. Puts the functions that were executing in the frame
 * into frames: *ret_n of them, innermost first; those beyond max are left out.
 */
enum runtime_step stepper_step(struct stepper *s, const struct runtime_stack *stack,
			       struct runtime_regs *regs, struct stepped_frame *frames, size_t max,
			       size_t *ret_n);
/* A frame's text, and how it was executing. The text is borrowed until the next walk. */
const char *stepper_text(const struct stepper *s, strid id);
const char *stepper_level_name(const struct stepper *s, uint8_t level);
/* The number of frames without a proof so far. */
uint64_t stepper_unproven(const struct stepper *s);

/* Prints the version and where each offset came from, for people. */
void stepper_explain(const struct stepper *s, FILE *out);
