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
 * Sets ret to the addresses of the functions, in their order. 0; -ENOENT with a message in error.
 */
int library_load(const struct library *l, void **ret, char *error, size_t n_error);
