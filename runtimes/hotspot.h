/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Stacks of Java threads in OpenJDK's HotSpot (11, 17, 21, 25; others are tried), read from outside
 * and late: while the process runs on. Frames of the interpreter, of compiled code with what was
 * inlined there, of stubs and native methods. It steps through the frames of HotSpot's own code
 * cache; whoever walks the native frames in between asks it whenever a frame is there.
 *
 * What it reads may have changed since the sample, or be a lie: each step must be proven by what
 * HotSpot keeps of its code (a return address with debug information, a frame with a sound method
 * in it), and what is remembered of an address is compared with what is there now. A step that is
 * not proven is not made.
 *
 * Not thread-safe. Bounded: memory of one process about 2 MiB, reads of one walk by its budget.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtimes/memory.h"
#include "runtimes/stack.h"
#include "util/cleanup.h"

struct hotspot;

/* Whether a mapped file of that path is the library to look into. */
bool hotspot_is_library(const char *path);

/*
 * image: where the library's first byte is mapped. memory: its function and context are copied, the
 * budget is the module's own. 0; -ENOENT: it is no HotSpot; -ENOTSUP: one that is not understood
 * (*ret_why, a literal); -EAGAIN: it has not started yet; -ENOMEM.
 */
int hotspot_new(struct hotspot **ret, const struct memory *memory, uint64_t image,
		const char **ret_why);
struct hotspot *hotspot_free(struct hotspot *h);
DEFINE_CLEANUP(struct hotspot *, hotspot_free)

/* Whether an address lies in its code cache. */
bool hotspot_has(const struct hotspot *h, uint64_t pc);
/* "17.0.15+6-Debian-1deb12u1"; "" unknown. And whether this version was ever tried. */
const char *hotspot_release(const struct hotspot *h);
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

/* A frame's text: in HotSpot's UTF-8, valid until the next step. */
const char *hotspot_text(const struct hotspot *h, strid id);

/* Before each walk: its budget, in reads and bytes. */
void hotspot_begin(struct hotspot *h, uint32_t reads, uint64_t bytes);
/*
 * One physical frame, at a pc that hotspot_has(). Puts the functions that were executing in it into
 * frames (innermost first, at most max; more are left out), *ret_n of them, also where the step to
 * its caller fails: none then if it is not known either.
 */
enum runtime_step hotspot_step(struct hotspot *h, const struct runtime_stack *stack,
			       struct runtime_regs *regs, struct stepped_frame *frames, size_t max,
			       size_t *ret_n);

/* What it is and where each offset came from, for people. */
void hotspot_explain(const struct hotspot *h, FILE *out);

struct hotspot_stats {
	uint64_t steps, learned, stale; /* stale: a remembered address had other contents */
	uint64_t reads, bytes;
	uint64_t failed[RUNTIME_N_STEPS];
};
const struct hotspot_stats *hotspot_stats(const struct hotspot *h);
