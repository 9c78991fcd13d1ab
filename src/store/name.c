/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/store/name.h"

bool store_parse_name(const char *name, uint64_t *ret_time_unix_ns, uint32_t *ret_sum)
{
	int end = 0;

	return strlen(name) == 20 + 1 + 8 + strlen(STORE_SUFFIX) &&
	       sscanf(name, "%20" SCNu64 "-%8" SCNx32 STORE_SUFFIX "%n", ret_time_unix_ns, ret_sum,
		      &end) == 2 &&
	       end > 0 && name[end] == '\0';
}

const char *store_format_name(char name[STORE_NAME_MAX], uint64_t time_unix_ns, uint32_t sum)
{
	(void)snprintf(name, STORE_NAME_MAX, "%020" PRIu64 "-%08" PRIx32 STORE_SUFFIX, time_unix_ns,
		       sum);
	return name;
}
