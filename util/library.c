/* SPDX-License-Identifier: Apache-2.0 */
#include "util/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

int library_load(const struct library *l, void **ret, char *error, size_t n_error)
{
	void *library = NULL;

	for (size_t i = 0; i < l->n_names && !library; i++)
		library = dlopen(l->names[i], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		(void)snprintf(error, n_error,
			       "%s is needed, and cannot be loaded: install the %s package of this "
			       "system (%s)",
			       l->names[0], l->package, dlerror());
		return -ENOENT;
	}
	for (size_t i = 0; i < l->n_functions; i++) {
		ret[i] = dlsym(library, l->functions[i]);
		if (!ret[i]) {
			(void)snprintf(error, n_error,
				       "the %s of this system is too old: it has no %s", l->package,
				       l->functions[i]);
			return -ENOENT;
		}
	}
	return 0;
}
