/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The frames of a window's samples that have no name yet, module by module. */
#include <stdbool.h>
#include <stdint.h>

#include "src/profile/profile.h"

struct wanted {
	uint32_t *uses;	  /* of each frame of the profile: its samples in this window */
	uint32_t *frames; /* by module: those of m from first[m] to first[m + 1] */
	uint32_t *first;
	uint32_t *modules; /* all of this window, in the order to name them */
	uint32_t n_modules;
	uint64_t *module_uses;
};

/*
 * Fills *w, which must be all 0, for the samples of the first type from first_sample on, and all of
 * other types. by_uses: modules with the most samples come first. false: no memory. Call
 * wanted_free() in any case.
 */
bool wanted_find(struct wanted *w, const struct profile *p, uint32_t first_sample, bool by_uses);
void wanted_free(struct wanted *w);
