/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "src/render/amount.h"
#include "src/render/frame.h"
#include "src/render/residents.h"
#include "src/render/summary-memory.h"
#include "src/render/summary-page.h"

#define N_RESIDENTS 10
#define JAVA_MODULE "[jvm]" /* of its methods */

static void put_bytes(const struct summary_page *pg, uint64_t bytes)
{
	char text[64];

	fprintf(pg->out, "%11s ", amount_text(text, sizeof(text), (int64_t)bytes, "bytes"));
}

static void put_resident(const struct summary_page *pg, const struct resident_sum *s)
{
	char name[FRAME_MAX_NAME];

	put_bytes(pg, s->begin);
	put_bytes(pg, s->end);
	put_bytes(pg, s->most);
	fprintf(pg->out, "%8" PRIu32 "  ", pg->p->processes.items[s->process].pid);
	(void)frame_process_name(pg->p, s->process, name, sizeof(name));
	summary_put_fit(pg, name, pg->width - 54, false);
	fprintf(pg->out, "%s%s%s\n", summary_on(pg, SUMMARY_DIM), s->ended ? " (ended)" : "",
		summary_off(pg, SUMMARY_DIM));
}

/* Of one that is not certain it is known that it ended. */
static void put_victim(const struct summary_page *pg, const struct profile_victim *v)
{
	const struct profile *p = pg->p;
	char pid[32], name[FRAME_MAX_NAME], owner[FRAME_MAX_NAME], text[2 * FRAME_MAX_NAME + 64];

	(void)snprintf(pid, sizeof(pid), "%" PRIu32, p->processes.items[v->process].pid);
	(void)frame_process_name(p, v->process, name, sizeof(name));
	(void)frame_process_owner(p, v->process, owner, sizeof(owner));
	/* The owner's name may be too long for the line. */
	(void)snprintf(text, sizeof(text), "%s%s%s%s", name,
		       v->certain ? "" : " (maybe: it ended at that time)", *owner ? ", " : "",
		       owner);
	summary_put_fact(pg, v->certain ? "  killed, PID" : "  ended, PID", pid, text);
}

/* "at 2.0 s, 3 at 7.0 s" */
static void put_kills(const struct summary_page *pg)
{
	const struct profile *p = pg->p;
	char count[32], times[256] = "processes killed on this host";
	uint64_t all = 0;
	size_t at = strlen(times);

	for (uint32_t i = 0; i < p->kills.n; i++) {
		const struct profile_kills *k = &p->kills.items[i];
		double s = (double)residents_us(p, k->time_unix_ns) / 1e6;

		all += k->n;
		if (at < sizeof(times))
			at += (size_t)snprintf(times + at, sizeof(times) - at, "%s %.1f s",
					       i ? "," : ", seen at", s);
	}
	if (all)
		summary_put_fact(pg, "\nOut of memory", summary_format_count(count, all), times);
	for (uint32_t i = 0; i < p->victims.n && i < N_RESIDENTS; i++)
		put_victim(pg, &p->victims.items[i]);
	summary_put_more(pg, p->victims.n, N_RESIDENTS);
}

static bool has_java(const struct profile *p)
{
	for (uint32_t i = 0; i < p->modules.n; i++) {
		if (strcmp(profile_text(p, p->modules.items[i].path), JAVA_MODULE) == 0)
			return true;
	}
	return false;
}

/* A VM tells of what it allocates, but not of what it finds unused. */
static void put_java(const struct summary_page *pg)
{
	if (profile_find_type(pg->p, "inuse_space") != PROFILE_NONE && has_java(pg->p))
		summary_put_fact(pg, "\nJava heap", "not in inuse_",
				 "a Java VM reports what it allocates, not what it frees");
}

int summary_put_memory(const struct summary_page *pg)
{
	struct resident_sums s;
	int r = residents_by_process(pg->p, &s);

	if (r == 0 && s.n > 0)
		summary_put_heading(pg, "%11s %11s %11s %8s  %s", "First", "Last", "Most", "PID",
				    "Process, resident memory");
	for (uint32_t i = 0; r == 0 && i < s.n && i < N_RESIDENTS; i++)
		put_resident(pg, &s.items[i]);
	if (r == 0)
		summary_put_more(pg, s.n, N_RESIDENTS);
	if (r == 0)
		put_kills(pg);
	put_java(pg);
	residents_free_sums(&s);
	return r;
}
