/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Frames that runtimes told of in a walk, under numbers that outlive the window: stacks that are
 * kept have them in place of addresses. Equal frames have one number. Bounded: when they find no
 * room, all are forgotten, and numbers from before have no frame.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/profiler/frame-source.h"

struct known_frames;
/* 0 or -ENOMEM. */
int known_frames_new(struct known_frames **ret, uint32_t max_frames, uint32_t max_bytes);
struct known_frames *known_frames_free(struct known_frames *k);

/* A number that is no address; 0: no memory. */
uint64_t known_frames_put(struct known_frames *k, const struct runtime_frame *f);
/* Whether it is such a number, and no address. */
static inline bool known_frames_is_number(uint64_t address)
{
	return address >> 62 == 1;
}
/* Its texts are valid until the next put. false: it was forgotten. */
bool known_frames_get(const struct known_frames *k, uint64_t number, struct runtime_frame *ret);
