/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "src/render/amount.h"
#include "src/render/frame.h"
#include "src/render/summary-page.h"
#include "src/render/summary-waits.h"
#include "src/render/table.h"
#include "src/render/waits.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/text.h"

#define N_LOCKS	  15
#define N_THREADS 15

void summary_put_states(const struct summary_page *pg)
{
	static const struct {
		enum profile_counter counter;
		const char *name, *why;
	} parts[] = {
		{PROFILE_RUNNING_US, "  on a CPU", "from one switch to the next"},
		{PROFILE_WAITING_US, "  waiting for a CPU", "others took it before they blocked"},
		{PROFILE_BLOCKED_US, "  blocked",
		 "until they ran again, also if a CPU came late: this is off_cpu"},
		{PROFILE_NOT_SEEN_US, "    [not seen]",
		 "of these, in places without a sampled stack"},
		{PROFILE_IDLE_US, "    [idle]",
		 "of these, left out: they waited for work (--idle shows them)"},
		{PROFILE_STOPPED_US, "  stopped", "by a signal or a debugger"},
		{PROFILE_BEFORE_US, "  not yet run",
		 "until they switched or were found: not recorded why"},
		{PROFILE_UNKNOWN_US, "  not known",
		 "switches were lost, or followed in turns alone"},
	};
	const uint64_t *c = pg->counters;
	uint64_t all = c[PROFILE_RUNNING_US] + c[PROFILE_WAITING_US] + c[PROFILE_BLOCKED_US] +
		       c[PROFILE_STOPPED_US] + c[PROFILE_BEFORE_US] + c[PROFILE_UNKNOWN_US];
	char text[64], count[32], why[96];

	if (!all)
		return;
	(void)snprintf(why, sizeof(why), "which switched %s times; the sum of:",
		       summary_format_count(count, c[PROFILE_SWITCHES]));
	summary_put_fact(
		pg, "Time of threads",
		amount_text(text, sizeof(text), (int64_t)(all * NSEC_PER_USEC), "nanoseconds"),
		why);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		uint64_t us = c[parts[i].counter];

		if (us || parts[i].counter == PROFILE_BLOCKED_US)
			summary_put_fact(pg, parts[i].name,
					 amount_text(text, sizeof(text),
						     (int64_t)(us * NSEC_PER_USEC), "nanoseconds"),
					 parts[i].why);
	}
}

void summary_put_blocked_spans(const struct summary_page *pg)
{
	static const struct {
		enum profile_counter counter;
		const char *name, *why;
	} parts[] = {
		{PROFILE_SPANS_BLOCKED_LINKED_US, "  in spans", "with the id of their span"},
		{PROFILE_SPANS_BLOCKED_OUTSIDE_US, "  in none", "that a reader saw in no span"},
		{PROFILE_SPANS_BLOCKED_UNPROVEN_US, "  not known",
		 "nobody read their spans, or not in time"},
	};
	uint64_t all = 0;
	char text[64];

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		all += pg->counters[parts[i].counter];
	if (!all)
		return;
	summary_put_fact(
		pg, "Blocked, for spans",
		amount_text(text, sizeof(text), (int64_t)(all * NSEC_PER_USEC), "nanoseconds"),
		"of programs that tell their spans");
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		summary_put_fact(
			pg, parts[i].name,
			amount_text(text, sizeof(text),
				    (int64_t)(pg->counters[parts[i].counter] * NSEC_PER_USEC),
				    "nanoseconds"),
			parts[i].why);
}

void summary_put_reasons(const struct summary_page *pg)
{
	struct wait_sum sums[WAITS_MAX_REASONS];
	uint32_t n = waits_by_reason(pg->p, sums);
	char count[32], time[72];

	summary_put_heading(pg, "  Share       Time       Waits  Waited for");
	for (uint32_t i = 0; i < n; i++)
		fprintf(pg->out, "%6.1f%% %10s %11s  %s\n", table_share(sums[i].ns, pg->total),
			amount_text(time, sizeof(time), sums[i].ns, "nanoseconds"),
			summary_format_count(count, sums[i].n),
			profile_marker_text(sums[i].marker));
}

static void put_lock(const struct summary_page *pg, const struct lock_sum *l, int width)
{
	char text[FRAME_MAX_NAME], count[32];

	fprintf(pg->out, "%8s %10s", summary_format_count(count, l->n),
		amount_text(text, sizeof(text), l->ns, "nanoseconds"));
	fprintf(pg->out, " %10s  ", amount_text(text, sizeof(text), l->longest_ns, "nanoseconds"));
	summary_put_fit(pg, waits_lock_name(pg->p, l, text, sizeof(text)), width, true);
	fputs("  ", pg->out);
	summary_put_fit(pg, waits_caller_name(pg->p, l->waiter, text, sizeof(text)), width, true);
	fputs("  ", pg->out);
	summary_put_fit(pg, waits_caller_name(pg->p, l->releaser, text, sizeof(text)), width,
			false);
	fputc('\n', pg->out);
}

int summary_put_locks(const struct summary_page *pg)
{
	_cleanup_free_ struct lock_sum *locks = NULL;
	int width = (pg->width - 36) / 3;
	uint32_t n = 0;
	int r = waits_by_lock(pg->p, &locks, &n);

	if (r < 0 || n == 0)
		return r;
	summary_put_heading(pg, "   Waits       Time    Longest  %-*s  %-*s  %s", width, "Lock",
			    width, "Who waited", "Who released");
	for (uint32_t i = 0; i < n && i < N_LOCKS; i++)
		put_lock(pg, &locks[i], width);
	summary_put_more(pg, n, N_LOCKS);
	return 0;
}

static void put_thread(const struct summary_page *pg, const struct thread_sum *s)
{
	const struct profile_thread *t = &pg->p->threads.items[s->thread];
	char text[72], name[FRAME_MAX_NAME], full[FRAME_MAX_NAME + 32];

	fprintf(pg->out, "%9s", amount_text(text, sizeof(text), s->ns, "nanoseconds"));
	fprintf(pg->out, " %9s", amount_text(text, sizeof(text), s->running_ns, "nanoseconds"));
	fprintf(pg->out, " %9s", amount_text(text, sizeof(text), s->runnable_ns, "nanoseconds"));
	fprintf(pg->out, " %9s  %-20s ",
		amount_text(text, sizeof(text), s->blocked_ns, "nanoseconds"),
		s->blocked_ns ? profile_marker_text(s->reason) : "");
	(void)text_clean(name, sizeof(name), profile_text(pg->p, t->name), SIZE_MAX);
	(void)snprintf(full, sizeof(full), "%s (%" PRIu32 ")", name, t->tid);
	summary_put_fit(pg, full, pg->width - 62, false);
	fputc('\n', pg->out);
}

int summary_put_threads(const struct summary_page *pg)
{
	_cleanup_free_ struct thread_sum *threads = NULL;
	uint32_t n = 0;
	int r = waits_by_thread(pg->p, &threads, &n);

	if (r < 0)
		return r;
	summary_put_heading(pg, "     Time    On CPU   Waiting   Blocked  %-20s Thread",
			    "Mostly for");
	for (uint32_t i = 0; i < n && i < N_THREADS; i++)
		put_thread(pg, &threads[i]);
	summary_put_more(pg, n, N_THREADS);
	return 0;
}
