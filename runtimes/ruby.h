/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * CRuby 2.7 to 3.4, for interp.h. A frame is proven if its code is an object of that kind, and its
 * position is inside that code.
 *
 * Functions: "each", "block in each", "<main>". Methods written in C are not evaluated: their
 * address is 0. The first walk that finds a frame also finds the evaluation function.
 *
 * Its files: libruby*.so*; ruby, ruby3.1, which may only load it from a library.
 */
#include "runtimes/interp.h"

extern const struct interp_type ruby_type;
