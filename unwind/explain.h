/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The unwinder's work as a person reads it: the rows of a binary, and the walk of a recorded sample
 * step by step. What is printed comes from the walk itself, which is asked to tell what it does.
 */
#include <stdio.h>

#include "unwind/recorded.h"
#include "unwind/unwind.h"

/*
 * All rows of a module's code, or with an address (as in the file) the one that covers it, each
 * with where it comes from. 0; -ENOENT: the address is in no code; -E2BIG: so much of it is damaged
 * that the rest was left out.
 */
int explain_module(FILE *out, struct unwinder *u, struct unwind_module *m, const uint64_t *address);

/* The i-th sample; recorded_open() was called with u. */
void explain_sample(FILE *out, struct unwinder *u, struct recorded *r, uint32_t i);
