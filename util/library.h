/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Shared libraries that one process of the tree needs and the others should not pay for: loaded
 * when they are used, and never unloaded.
 */
#include <stddef.h>

struct library {
	const char *const *names; /* of files, n_names; the first that is there is taken */
	size_t n_names;
	const char *package;	      /* for messages */
	const char *const *functions; /* n_functions, as the library calls them */
	size_t n_functions;
};

/* Addresses of the functions, in their order, to ret. 0; -ENOENT with a message in error. */
int library_load(const struct library *l, void **ret, char *error, size_t n_error);
