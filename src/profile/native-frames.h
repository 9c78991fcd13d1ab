/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Stacks without the native frames of interpreters. The file whose native frames call a runtime's
 * frames is its interpreter; so a stack without such frames keeps all that it has.
 */
#include <stdint.h>

struct profile;

/* Samples get stacks without these frames; one whose stack does not fit keeps its own. */
void profile_hide_native_frames(struct profile *p);
