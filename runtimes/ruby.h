/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * CRuby 2.7 to 3.4, for interp.h. A frame is proven by its code, which is an object of that kind,
 * and by its place, which is inside of it.
 *
 * Functions: "each", "block in each", "<main>". Methods that are written in C are not evaluated:
 * their address is 0. The evaluation function is known after the first walk that found a frame.
 *
 * Its files: libruby*.so*; ruby, ruby3.1, which may only load it from a library.
 */
#include "runtimes/interp.h"

extern const struct interp_type ruby_type;
