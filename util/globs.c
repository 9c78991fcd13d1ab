/* SPDX-License-Identifier: Apache-2.0 */
#include <fnmatch.h>
#include <string.h>

#include "util/globs.h"

#define MAX_GLOB 256 /* a longer one matches nothing */

/* Commas separate globs; blanks around them do not count. */
static bool matches_any(const char *list, const char *text)
{
	char glob[MAX_GLOB];

	while (*list) {
		size_t n = strcspn(list, ","), used = n;

		while (n && strchr(" \t", list[n - 1]))
			n--;
		while (n && strchr(" \t", *list)) {
			list++;
			n--;
			used--;
		}
		if (n && n < sizeof(glob)) {
			memcpy(glob, list, n);
			glob[n] = '\0';
			if (fnmatch(glob, text, 0) == 0)
				return true;
		}
		list += used + (list[used] == ',');
	}
	return false;
}

bool globs_allow(const char *allow, const char *deny, const char *text)
{
	return (!allow || !*allow || matches_any(allow, text)) &&
	       !(deny && matches_any(deny, text));
}
