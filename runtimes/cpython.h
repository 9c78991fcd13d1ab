/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * CPython 3.6 to 3.15, for interp.h. A frame is proven if its code object has the type of code
 * objects, and its position is inside the bytecode.
 *
 * Functions: "Outer.method.<locals>.inner"; before 3.11 "inner". All processes share a cache of
 * code of about 2 MiB; each has another 24 KiB.
 *
 * Its files: libpython3.N*.so*; python3.N, which may only load it from a library. interp_new() also
 * finds it in a program of another name.
 */
#include "runtimes/interp.h"

extern const struct interp_type cpython_type;
