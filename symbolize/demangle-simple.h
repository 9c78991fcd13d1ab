/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The short form of a demangled name: inside of the demangler only. */

enum demangle_language { DEMANGLE_CXX, DEMANGLE_RUST, DEMANGLE_D };

/* text as libiberty writes it, without what is between brackets; allocated. What it cannot be made
 * of comes back as it is. NULL: no memory. See demangle-simple.c for examples. */
char *demangle_simplify(const char *text, enum demangle_language language);
