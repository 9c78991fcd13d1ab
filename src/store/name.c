/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/store/name.h"

bool store_parse_name(const char *name, uint64_t *ret_time_unix_ns, uint32_t *ret_sum)
{
	char again[STORE_NAME_MAX];
	uint64_t time_unix_ns;
	uint32_t sum;

	/* sscanf() accepts blanks, signs and capitals, too. */
	if (sscanf(name, "%20" SCNu64 "-%8" SCNx32, &time_unix_ns, &sum) != 2 ||
	    strcmp(store_format_name(again, time_unix_ns, sum), name) != 0)
		return false;
	*ret_time_unix_ns = time_unix_ns;
	*ret_sum = sum;
	return true;
}

const char *store_format_name(char name[STORE_NAME_MAX], uint64_t time_unix_ns, uint32_t sum)
{
	(void)snprintf(name, STORE_NAME_MAX, "%020" PRIu64 "-%08" PRIx32 STORE_SUFFIX, time_unix_ns,
		       sum);
	return name;
}
