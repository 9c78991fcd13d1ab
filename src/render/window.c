/* SPDX-License-Identifier: Apache-2.0 */
/* A window of the local store as a row of a list. */
#include <stdio.h>
#include <time.h>

#include "src/profile/profile.h"
#include "src/render/amount.h"
#include "src/render/render.h"

static void put_time(FILE *out, uint64_t unix_ns)
{
	time_t seconds = (time_t)(unix_ns / 1000000000);
	char text[32] = "-";
	struct tm tm;

	if (unix_ns && gmtime_r(&seconds, &tm))
		(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	(void)fprintf(out, "%-20s ", text);
}

void render_window_head(FILE *out)
{
	(void)fprintf(out, "%-20s %8s  %-18s %s\n", "FIRST SAMPLE", "SAMPLES", "WORTH", "FILE");
}

int render_window(struct profile *p, const struct render_report_options *options, const char *path,
		  FILE *out)
{
	const struct profile_type *t = &p->types[0];
	uint64_t first = UINT64_MAX, n = 0;
	int64_t sum = 0;
	char worth[72];
	int r = render_choose_samples(p, options);

	if (r < 0 || t->samples.n == 0)
		return r;
	for (uint32_t i = 0; i < t->samples.n; i++) {
		const struct profile_sample *s = &t->samples.items[i];

		first = s->time_unix_ns < first ? s->time_unix_ns : first;
		n += t->weighted ? s->n : (uint64_t)profile_size(s->value);
		sum = profile_sum(sum, s->value);
	}
	put_time(out, first);
	(void)fprintf(out, "%8llu  %-18s %s\n", (unsigned long long)n,
		      amount_worth(worth, sizeof(worth), p, sum) ? worth : "-", path);
	return 0;
}
