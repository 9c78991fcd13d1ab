/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * CPython 3.6 to 3.15, for interp.h. A frame is proven by its code object, which has the type of
 * code objects, and by its position, which is inside the bytecode.
 *
 * Functions: "Outer.method.<locals>.inner"; before 3.11 "inner". All processes share about 2 MiB of
 * what is remembered of code; each has 24 KiB of its own.
 *
 * Its files: libpython3.N*.so*; python3.N, which may only load it from a library. An interpreter in
 * a program of another name is found by interp_new() alone.
 */
#include "runtimes/interp.h"

extern const struct interp_type cpython_type;
