/* SPDX-License-Identifier: Apache-2.0 */
#include "src/serve/microhttpd.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/cleanup.h"

int microhttpd_api_load(struct microhttpd_api *ret, char *error, size_t n_error)
{
	static const struct {
		const char *name;
		size_t offset;
	} functions[] = {
#define MICROHTTPD_ROW(name) {"MHD_" #name, offsetof(struct microhttpd_api, name)},
		MICROHTTPD_FUNCTIONS(MICROHTTPD_ROW)
#undef MICROHTTPD_ROW
	};
	void *library = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
	struct microhttpd_api api;

	if (!library) {
		(void)snprintf(error, n_error,
			       "libmicrohttpd.so.12 is needed, and cannot be loaded: install the "
			       "libmicrohttpd package of this system (%s)",
			       dlerror());
		return -ENOENT;
	}
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		void *f = dlsym(library, functions[i].name);

		if (!f) {
			(void)snprintf(error, n_error,
				       "the libmicrohttpd of this system is too old: it has no %s",
				       functions[i].name);
			return -ENOENT;
		}
		memcpy((char *)&api + functions[i].offset, &f, sizeof(f));
	}
	*ret = api;
	return 0;
}
