/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Shared libraries that only some of the processes need: loaded when they are used, and never
 * unloaded.
 */
#include <stddef.h>

struct library {
	const char *const *names; /* n_names files; the first that exists is loaded */
	size_t n_names;
	const char *package;	      /* for messages */
	const char *const *functions; /* n_functions names in the library */
	size_t n_functions;
};

/*
 * Loads the library and sets ret[0 .. n_functions) to the addresses of its functions. 0; -ENOENT:
 * error says what is missing.
 */
int library_load(const struct library *l, void **ret, char *error, size_t n_error);
