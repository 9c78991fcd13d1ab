/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "src/render/summary-page.h"
#include "src/render/table.h"

const char *summary_on(const struct summary_page *pg, enum summary_style s)
{
	static const char *const codes[] = {"", "\033[1m", "\033[2m", "\033[33m"};

	return pg->color ? codes[s] : "";
}

const char *summary_off(const struct summary_page *pg, enum summary_style s)
{
	return pg->color && s != SUMMARY_PLAIN ? "\033[0m" : "";
}

const char *summary_format_count(char buf[32], uint64_t n)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, n), out = 0;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			buf[out++] = ',';
		buf[out++] = digits[i];
	}
	buf[out] = '\0';
	return buf;
}

void summary_put_fit(const struct summary_page *pg, const char *text, int width, bool pad)
{
	table_put_fit(pg->out, text, strlen(text), width, pad);
}

void summary_put_heading(const struct summary_page *pg, const char *format, ...)
{
	va_list ap;

	fprintf(pg->out, "\n%s", summary_on(pg, SUMMARY_BOLD));
	va_start(ap, format);
	(void)vfprintf(pg->out, format, ap);
	va_end(ap);
	fprintf(pg->out, "%s\n", summary_off(pg, SUMMARY_BOLD));
}

void summary_put_fact(const struct summary_page *pg, const char *name, const char *value,
		      const char *why)
{
	fprintf(pg->out, "%-22s%12s%s          ", name, value, summary_on(pg, SUMMARY_DIM));
	summary_put_fit(pg, why, pg->width - 44, false);
	fprintf(pg->out, "%s\n", summary_off(pg, SUMMARY_DIM));
}

void summary_put_more(const struct summary_page *pg, uint32_t n, uint32_t max)
{
	if (n > max)
		fprintf(pg->out, "%sand %" PRIu32 " more%s\n", summary_on(pg, SUMMARY_DIM), n - max,
			summary_off(pg, SUMMARY_DIM));
}
