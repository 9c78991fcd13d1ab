/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "src/http/microhttpd.h"

#include <string.h>

#include "util/cleanup.h"
#include "util/library.h"

int microhttpd_api_load(struct microhttpd_api *ret, char *error, size_t n_error)
{
	static const char *const names[] = {MICROHTTPD_SONAME};
#define MICROHTTPD_NAME(name) "MHD_" #name,
	static const char *const functions[] = {MICROHTTPD_FUNCTIONS(MICROHTTPD_NAME)};
#undef MICROHTTPD_NAME
	static const struct library library = {.names = names,
					       .n_names = ARRAY_SIZE(names),
					       .package = "libmicrohttpd",
					       .functions = functions,
					       .n_functions = ARRAY_SIZE(functions)};
	void *found[ARRAY_SIZE(functions)];
	int r = library_load(&library, found, error, n_error);

	if (r < 0)
		return r;
	/* Its members are pointers to these functions, in this order. */
	_Static_assert(sizeof(*ret) == sizeof(found), "nothing else is in it");
	memcpy(ret, found, sizeof(found));
	return 0;
}
