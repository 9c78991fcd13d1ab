/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Private to the runtimes behind stepper.h: the functions that each provides. */
#include "runtimes/stepper.h"

/* A kind of runtime. Its functions get what open() has set. */
struct stepper_type {
	const char *name; /* "HotSpot" */
	enum runtime_kind kind;
	bool has_frame_pointers; /* a walk can go through its code by these alone */
	bool has_own_threads;	 /* a thread has functions of its own, gone when it ends */
	bool has_functions;	 /* false: its frames only lead on */
	/* As stepper_new(). */
	int (*open)(void **ret, const struct memory *memory, uint64_t image, const char **ret_why);
	void (*close)(void *it);
	const char *(*release)(const void *it);
	bool (*is_tried)(const void *it);
	void (*begin)(void *it, uint32_t reads, uint64_t bytes);
	bool (*may_have)(const void *it, uint64_t pc);
	enum runtime_step (*step)(void *it, const struct runtime_stack *stack,
				  struct runtime_regs *regs, struct stepped_frame *frames,
				  size_t max, size_t *ret_n);
	const char *(*text)(const void *it, strid id);
	const char *(*level_name)(uint8_t level);
	uint64_t (*unproven)(const void *it);
	void (*explain)(const void *it, FILE *out);
};
