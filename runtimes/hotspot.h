/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Stacks of Java threads in OpenJDK's HotSpot (8, 11, 17, 21, 25, 26, on aarch64 17 and 21; others
 * are tried), read from outside after the sample, while the process runs on. It knows the frames of
 * the interpreter, of compiled code with the methods inlined there, of stubs and of native methods.
 * It steps through frames in HotSpot's own code cache only; the walk of the native frames calls it
 * for each of these.
 *
 * The memory may have changed since the sample, or may lie. So HotSpot's own data must prove each
 * step (a return address with debug information, a frame with a valid method), and what we remember
 * of an address is compared with its contents now. Without a proof the walk ends.
 *
 * Not thread-safe. Bounded: about 4 MiB of memory for all processes, and 8 KiB for each; a budget
 * of reads for each walk.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtimes/memory.h"
#include "runtimes/stack.h"
#include "util/cleanup.h"

struct hotspot;

/*
 * image: where the library's first byte is mapped. memory: its function and context are copied, its
 * budget is not used. 0; -ENOENT: not a HotSpot; -ENOTSUP: one that we do not understand (*ret_why,
 * a literal); -EAGAIN: it has not started yet; -ENOMEM.
 */
int hotspot_new(struct hotspot **ret, const struct memory *memory, uint64_t image,
		const char **ret_why);
struct hotspot *hotspot_free(struct hotspot *h);
DEFINE_CLEANUP(struct hotspot *, hotspot_free)

/* Is the address in its code cache? */
bool hotspot_has(const struct hotspot *h, uint64_t pc);
/* "17.0.15+6-Debian-1deb12u1"; "" unknown. Borrowed. */
const char *hotspot_release(const struct hotspot *h);
/* Did we ever test this version on this processor? */
bool hotspot_is_tried(const struct hotspot *h);

/* How a frame was executing. */
enum hotspot_level {
	HOTSPOT_INTERPRETED, /* 1 to 4: compiled, HotSpot's levels: C1, and 4 C2 */
	HOTSPOT_C1,
	HOTSPOT_C1_COUNTS,
	HOTSPOT_C1_PROFILES,
	HOTSPOT_C2,
	HOTSPOT_NATIVE, /* the wrapper of a native method */
	HOTSPOT_STUB,	/* HotSpot's own code */
	HOTSPOT_N_LEVELS
};
const char *hotspot_level_name(enum hotspot_level level);

/* A frame's text, in HotSpot's UTF-8. Borrowed until the next step. */
const char *hotspot_text(const struct hotspot *h, strid id);

/* Call it before each walk, with the walk's budget. */
void hotspot_begin(struct hotspot *h, uint32_t reads, uint64_t bytes);
/*
 * Steps over one physical frame, at a pc that hotspot_has(), to its caller. Puts the functions that
 * were executing in the frame into frames: *ret_n of them, innermost first; those beyond max are
 * left out. Sets them also if the step fails; *ret_n is 0 if they are unknown, too.
 */
enum runtime_step hotspot_step(struct hotspot *h, const struct runtime_stack *stack,
			       struct runtime_regs *regs, struct stepped_frame *frames, size_t max,
			       size_t *ret_n);

/* Prints the version and where each offset came from, for people. */
void hotspot_explain(const struct hotspot *h, FILE *out);

struct hotspot_stats {
	uint64_t steps, learned, stale; /* stale: a remembered address had other contents */
	uint64_t reads, bytes;
	uint64_t failed[RUNTIME_N_STEPS];
};
const struct hotspot_stats *hotspot_stats(const struct hotspot *h);
