/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Prints the unwinder's work for people: the rows of a binary, and the walk of a recorded sample
 * step by step, as the walk itself reports each step.
 */
#include <stdio.h>

#include "unwind/recorded.h"
#include "unwind/unwind.h"

/*
 * Prints all rows of a module's code, or only the one that covers an address (as in the file), and
 * where each comes from. 0; -ENOENT: the address is in no code; -E2BIG: so much of the CFI is
 * damaged that the rest was left out.
 */
int explain_module(FILE *out, struct unwinder *u, struct unwind_module *m, const uint64_t *address);

/* Explains the walk of the i-th sample, after recorded_open() with the same u. */
void explain_sample(FILE *out, struct unwinder *u, struct recorded *r, uint32_t i);
