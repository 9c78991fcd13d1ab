/* SPDX-License-Identifier: Apache-2.0 */
/* How the checks of values say what is wrong. */
#include <errno.h>
#include <string.h>

#include "src/config/table.h"

int config_expected(char *error, const char *what)
{
	(void)snprintf(error, CONFIG_ERROR_MAX, "expected %s", what);
	return -EINVAL;
}

int config_text_check(const char *text, char *error)
{
	if (strlen(text) <= CONFIG_VALUE_MAX_BYTES)
		return 0;
	(void)snprintf(error, CONFIG_ERROR_MAX, "expected at most %d bytes",
		       CONFIG_VALUE_MAX_BYTES);
	return -EINVAL;
}
