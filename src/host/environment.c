/* SPDX-License-Identifier: Apache-2.0 */
/* What variables of a process's environment say of it, as OpenTelemetry writes them. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/host.h"
#include "util/text.h"

/* One pass over all pairs, which may not be wrong: only the second one tells them. */
static bool each_pair(const char *text, void (*fn)(void *ctx, const char *key, const char *value),
		      void *ctx)
{
	_cleanup_free_ char *copy = strdup(text);

	for (char *item, *rest = copy; copy && (item = strsep(&rest, ","));) {
		char *equals, *key, *value;

		item = text_strip(item);
		if (!*item)
			continue;
		equals = strchr(item, '=');
		if (!equals)
			return false;
		*equals = '\0';
		key = text_strip(item);
		value = text_strip(equals + 1);
		if (!*key || !text_decode_percent(value))
			return false;
		if (fn)
			fn(ctx, key, value);
	}
	return copy != NULL;
}

int host_parse_resource_variable(const char *text,
				 void (*fn)(void *ctx, const char *key, const char *value),
				 void *ctx)
{
	return each_pair(text, NULL, NULL) && each_pair(text, fn, ctx) ? 0 : -EBADMSG;
}
