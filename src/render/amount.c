/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/profile/profile.h"
#include "src/render/amount.h"
#include "util/cleanup.h"
#include "util/text.h"

/* Three digits, more for the largest unit. */
static const char *time_text(char *buf, size_t size, double ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
	size_t i = 0;

	while (i + 1 < ARRAY_SIZE(units) && ns < units[i].ns)
		i++;
	(void)snprintf(buf, size, ns >= 1000 * units[i].ns ? "%.0f %s" : "%.4g %s",
		       ns / units[i].ns, units[i].name);
	return buf;
}

const char *amount_text(char *buf, size_t size, int64_t value, const char *unit)
{
	char text[64];

	if (strcmp(unit, "nanoseconds") == 0)
		(void)time_text(text, sizeof(text), (double)profile_size(value));
	else if (strcmp(unit, "bytes") == 0)
		(void)text_format_bytes(text, sizeof(text), (uint64_t)profile_size(value));
	else
		(void)snprintf(text, sizeof(text), "%" PRId64, profile_size(value));
	(void)snprintf(buf, size, "%s%s", value < 0 ? "-" : "", text);
	return buf;
}

const char *amount_worth(char *buf, size_t size, const struct profile *p, int64_t value)
{
	const char *unit = profile_period_unit(p);
	bool counts = strcmp(unit, "count") == 0;
	char amount[72], what[128];

	if (!profile_has_period(p))
		return NULL;
	(void)text_clean(what, sizeof(what), profile_period_type(p), SIZE_MAX);
	(void)snprintf(buf, size, "%s %s%s",
		       amount_text(amount, sizeof(amount),
				   profile_product(value, profile_period(p)), unit),
		       counts ? "" : "of ", what);
	return buf;
}
