/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into Node.js: publishes the process context (OTEP 4719) that a tracer there publishes,
 * which says in which form its threads have their contexts. */
#include <stddef.h>

#include "../unit/context-publisher.h"

__attribute__((constructor)) static void publish(void)
{
	/* Attributes 2 of a ProcessContext: the schema, and the list of keys. */
	static const char payload[] = "\x12\x2d"
				      "\x0a\x1athreadlocal.schema_version"
				      "\x12\x0f\x0a\x0dnodejs_v1_dev"
				      "\x12\x31"
				      "\x0a\x1dthreadlocal.attribute_key_map"
				      "\x12\x10\x2a\x0e"
				      "\x0a\x0c\x0a\x0ahttp.route";
	struct published_header *h = published_map(1);

	if (h)
		published_set(h, payload, sizeof(payload) - 1, 1);
}
