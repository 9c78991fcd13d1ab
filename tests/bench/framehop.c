/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tests/bench/framehop.h"
#include "util/cleanup.h"

bool framehop_load(struct framehop *ret, const char *path)
{
	const struct {
		const char *name;
		void *to;
	} functions[] = {
		{"framehop_file_new", &ret->file_new},
		{"framehop_file_new_memory", &ret->file_new_memory},
		{"framehop_file_free", &ret->file_free},
		{"framehop_process_new", &ret->process_new},
		{"framehop_process_free", &ret->process_free},
		{"framehop_process_add", &ret->process_add},
		{"framehop_cache_new", &ret->cache_new},
		{"framehop_cache_free", &ret->cache_free},
		{"framehop_walk", &ret->walk},
		{"framehop_cache_stats", &ret->cache_stats},
	};
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *function;

	for (size_t i = 0; library && i < ARRAY_SIZE(functions); i++) {
		function = dlsym(library, functions[i].name);
		if (!function)
			library = NULL;
		memcpy(functions[i].to, &function, sizeof(function));
	}
	if (!library) {
		fprintf(stderr, "unwind-bench: %s: %s\n", path, dlerror());
		return false;
	}
	ret->library = library;
	return true;
}
