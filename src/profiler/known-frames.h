/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Frames of runtimes, under numbers that outlive the window: stacks that are kept have these
 * numbers instead of addresses. Equal frames have one number. Bounded: if a frame does not fit, all
 * are forgotten, and earlier numbers have no frame.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/profiler/frame-source.h"

struct known_frames;
/* 0 or -ENOMEM. */
int known_frames_new(struct known_frames **ret, uint32_t max_frames, uint32_t max_bytes);
struct known_frames *known_frames_free(struct known_frames *k);

/* The number of a frame, which is no address; 0: no memory. Copies the texts. */
uint64_t known_frames_put(struct known_frames *k, const struct runtime_frame *f);
/* Is it such a number, and no address? */
static inline bool known_frames_is_number(uint64_t address)
{
	return address >> 62 == 1;
}
/* The frame of a number; its texts are valid until the next put. false: it was forgotten. */
bool known_frames_get(const struct known_frames *k, uint64_t number, struct runtime_frame *ret);
