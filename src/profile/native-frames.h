/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Stacks without the native frames of interpreters: without those of the file whose frames call a
 * runtime's in the stack, or surely do so in another one, and without compiled code next to a
 * runtime's frames, in which a native walk may end. A stack without a runtime's frames keeps all
 * that it has.
 */
#include <stdint.h>

struct profile;

/* Samples get stacks without these frames; one whose stack does not fit keeps its own. */
void profile_hide_native_frames(struct profile *p);
