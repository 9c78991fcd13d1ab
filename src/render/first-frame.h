/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where the stacks of a type begin to say something, for tables of functions. Blocks and wake-ups
 * end in the scheduler, and memory grows inside of an allocator: who called these is of interest.
 */
#include <stdint.h>

#include "src/profile/profile.h"

/* How many frames of the stack, from the leaf on, to leave out for the first type of p. At least
 * one frame that is no marker is left, if the stack has any. */
uint32_t first_frame(const struct profile *p, uint32_t stack);
