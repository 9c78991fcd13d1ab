/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The short form of a demangled name; only for the demangler. */

enum demangle_language { DEMANGLE_CXX, DEMANGLE_RUST, DEMANGLE_D };

/* Returns libiberty's text without the parts in brackets, allocated, or a copy of the whole text if
 * that fails. NULL: no memory. See demangle-simple.c for examples. */
char *demangle_simplify(const char *text, enum demangle_language language);
