/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The frames of a window's samples that have no name yet, module by module. */
#include <stdbool.h>
#include <stdint.h>

#include "src/profile/profile.h"

struct wanted {
	uint32_t *uses;	  /* of each frame of the profile: samples, in this window */
	uint32_t *frames; /* grouped by module: those of m from first[m] to first[m + 1] */
	uint32_t *first;
	uint32_t *modules; /* all of this window, in the order in which they are named */
	uint32_t n_modules;
	uint64_t *module_uses;
};

/*
 * *w, all 0 before, for the samples of the first type from first_sample on, and all of the others.
 * by_uses: modules of the most samples come first. False: no memory; wanted_free() in any case.
 */
bool wanted_find(struct wanted *w, const struct profile *p, uint32_t first_sample, bool by_uses);
void wanted_free(struct wanted *w);
