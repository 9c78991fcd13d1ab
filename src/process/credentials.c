/* SPDX-License-Identifier: Apache-2.0 */
#include "src/process/credentials.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

bool credentials_of_proxy(const char *variable)
{
	static const char proxy[] = "_proxy";
	size_t n = strcspn(variable, "="), n_proxy = strlen(proxy);

	return n >= n_proxy && strncasecmp(variable + n - n_proxy, proxy, n_proxy) == 0;
}

bool credentials_in_variable(const char *variable)
{
	return begins(variable, "OTEL_EXPORTER_") || begins(variable, "DEBUGINFOD_") ||
	       credentials_of_proxy(variable);
}

void credentials_leave_stack(void)
{
	for (char **v = environ; v && *v; v++) {
		char *copy = credentials_in_variable(*v) ? strdup(*v) : NULL;
		char *value = strchr(*v, '=');

		if (!copy)
			continue;
		if (value)
			explicit_bzero(value + 1, strlen(value + 1));
		*v = copy;
	}
}
