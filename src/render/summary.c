/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The summary at the end of a capture. It says, in this order, what was measured, how reliable it
 * is (every loss with its cause), and where the time went. The functions come from the call tree. A
 * loss of zero is left out, except lost samples, since zero is worth saying there.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/render/amount.h"
#include "src/render/calltree.h"
#include "src/render/render.h"
#include "src/render/summary-memory.h"
#include "src/render/summary-page.h"
#include "src/render/summary-shares.h"
#include "src/render/summary-waits.h"
#include "src/render/table.h"
#include "util/cleanup.h"
#include "util/confidence.h"
#include "util/text.h"

/* With it the kernel's callchain comes, too, which leads over to a goroutine's stack, say. */
#define LARGEST_COPY 65528
#define N_FUNCTIONS  15
#define N_OTHERS     5 /* functions of each event after the first */
#define N_PROCESSES  10
#define N_OWNERS     8
#define MIN_WIDTH    60
#define MAX_WIDTH    400
#define TREE_FLAGS   (CALLTREE_MODULES | CALLTREE_CALLERS)

/* An event and its period. */
static void put_event(const struct summary_page *pg, const struct profile *p)
{
	const struct profile_type *t = &p->types[0];
	char count[32], text[256];

	(void)text_clean(text, sizeof(text), profile_text(p, t->event), SIZE_MAX);
	fputs(*text ? text : "samples", pg->out);

	if (t->rate_hz)
		fprintf(pg->out, " at %" PRIu32 " Hz", t->rate_hz);
	else if (t->period_ns)
		fprintf(pg->out, " (every %s ns)", summary_format_count(count, t->period_ns));
	else if (t->period_events > 1)
		fprintf(pg->out, " (one in %s)", summary_format_count(count, t->period_events));
	else if (t->period_events && !t->weighted)
		fputs(" (each one)", pg->out);
}

/* "cpu-clock at 99 Hz and page-faults (each one)". */
static void put_events(const struct summary_page *pg)
{
	uint32_t n = pg->p->n_types;

	for (uint32_t i = 0; i < n; i++) {
		struct profile view;

		profile_view(pg->p, i, &view);
		fputs(i == 0 ? "" : i + 1 < n ? ", " : " and ", pg->out);
		put_event(pg, &view);
	}
}

static void put_head(const struct summary_page *pg, const struct render_info *info)
{
	const struct profile *p = pg->p;
	double seconds = (double)(p->end_unix_ns - p->start_unix_ns) / 1e9;
	char text[256];

	if (p->end_unix_ns < p->start_unix_ns)
		seconds = 0;
	(void)text_clean(text, sizeof(text), info->title ? info->title : "perfwalk", SIZE_MAX);
	fprintf(pg->out, "%s%s%s\n", summary_on(pg, SUMMARY_BOLD), text,
		summary_off(pg, SUMMARY_BOLD));

	put_events(pg);
	fprintf(pg->out, " for %.1f s", seconds);
	if (info->n_cpus)
		fprintf(pg->out, " on %" PRIu32 " CPU%s", info->n_cpus,
			info->n_cpus == 1 ? "" : "s");
	if (info->host_name) {
		(void)text_clean(text, sizeof(text), info->host_name, SIZE_MAX);
		fprintf(pg->out, ", host %s", text);
	}
	if (info->kernel_release) {
		(void)text_clean(text, sizeof(text), info->kernel_release, SIZE_MAX);
		fprintf(pg->out, ", Linux %s", text);
	}
	fputc('\n', pg->out);
}

/* " name 1,234 12.3% why", with share and reason if there are any. */
static void put_count(const struct summary_page *pg, enum summary_style s, const char *name,
		      uint64_t n, uint64_t base, const char *why)
{
	char count[32];

	fprintf(pg->out, "%s%-22s%12s%s", summary_on(pg, s), name, summary_format_count(count, n),
		summary_off(pg, SUMMARY_DIM));
	if (base)
		fprintf(pg->out, "  %5.1f%%", table_share(n, base));
	else if (why)
		fprintf(pg->out, "        ");
	if (why) {
		fprintf(pg->out, "  %s", summary_on(pg, SUMMARY_DIM));
		summary_put_fit(pg, why, pg->width - 44, false);
		fputs(summary_off(pg, SUMMARY_DIM), pg->out);
	}
	fputc('\n', pg->out);
}

/* Samples that are there. */
static uint64_t n_in_values(const struct profile_type *t)
{
	return profile_type_counter(t, PROFILE_SAMPLES) - t->counters[PROFILE_SAMPLES_FILTERED] -
	       t->counters[PROFILE_SAMPLES_DROPPED] - t->counters[PROFILE_SAMPLES_DIED];
}

/* The worth of an event's samples; NULL: unknown, or just their number. */
static const char *format_worth(const struct profile *p, int64_t total, char *buf, size_t size)
{
	uint64_t window_ns = p->end_unix_ns - p->start_unix_ns;
	const struct profile_type *t = &p->types[0];
	double busy_ns = (double)total * (double)t->period_ns;
	char count[32], event[96];

	if (!total || (t->period_events == 1 && !t->weighted) ||
	    (t->unit == STRID_EMPTY && t->weighted && (uint64_t)total == n_in_values(t)))
		return NULL;
	if (t->unit != STRID_EMPTY)
		return amount_worth(buf, size, p, total);
	if (t->period_ns) {
		(void)snprintf(buf, size, "%.1f s of CPU time: %.2f CPUs busy", busy_ns / 1e9,
			       window_ns ? busy_ns / (double)window_ns : 0);
	} else if (t->period_events) {
		(void)text_clean(event, sizeof(event), profile_text(p, t->event), SIZE_MAX);
		(void)snprintf(buf, size, "stand for %s %s",
			       summary_format_count(count, (uint64_t)total * t->period_events),
			       event);
	} else {
		return NULL;
	}
	return buf;
}

static uint64_t n_lost(const struct profile_type *t)
{
	return t->counters[PROFILE_SAMPLES_LOST] + t->counters[PROFILE_SAMPLES_DIED];
}

/* How far a total may be off, with two digits; nothing if losses make it too small by more. */
static void put_error(const struct profile_type *t, int64_t total, char *buf, size_t size)
{
	double percent = confidence_percent(t->variance, (double)total);

	if (!confidence_covers_losses(percent, n_in_values(t), n_lost(t)))
		return;
	(void)snprintf(buf, size, percent < 99.5 ? " \302\261 %.2g%%" : " \302\261 %.0f%%",
		       percent);
}

/* The worth, and how far it may be off; NULL: as format_worth(). */
static const char *format_estimate(const struct profile *p, int64_t total, char *buf, size_t size)
{
	size_t n;

	if (!format_worth(p, total, buf, size))
		return NULL;
	n = strlen(buf);
	if (p->types[0].variance > 0)
		put_error(&p->types[0], total, buf + n, size - n);
	return buf;
}

/* The worth of a type's samples, and those that are missing; NULL: nothing to say. */
static const char *format_type(const struct profile *p, int64_t total, char *buf, size_t size)
{
	uint64_t lost = n_lost(&p->types[0]);
	uint64_t throttled = p->types[0].counters[PROFILE_SAMPLES_THROTTLED];
	char count[32];
	size_t n;

	if (!format_estimate(p, total, buf, size))
		buf[0] = '\0';
	n = strlen(buf);
	if (lost)
		n += (size_t)snprintf(buf + n, size - n, "%s%s lost", n ? "; " : "",
				      summary_format_count(count, lost));
	if (throttled && n < size)
		(void)snprintf(buf + n, size - n, "%s%s times throttled", n ? "; " : "",
			       summary_format_count(count, throttled));
	return *buf ? buf : NULL;
}

/* A line for each of several events, in their order. */
static void put_types(const struct summary_page *pg)
{
	for (uint32_t i = 0; i < pg->p->n_types && pg->p->n_types > 1; i++) {
		struct profile view;
		char worth[192], name[96] = "  ";
		int64_t total = 0;

		profile_view(pg->p, i, &view);
		for (uint32_t k = 0; k < view.types[0].samples.n; k++)
			total = profile_sum(total, view.types[0].samples.items[k].value);
		(void)text_clean(name + 2, sizeof(name) - 2,
				 profile_text(&view, view.types[0].event), SIZE_MAX);
		put_count(pg, SUMMARY_PLAIN, name, n_in_values(&view.types[0]), 0,
			  format_type(&view, total, worth, sizeof(worth)));
	}
}

static void put_losses(const struct summary_page *pg)
{
	static const struct {
		enum profile_counter counter;
		const char *name, *why;
	} losses[] = {
		{PROFILE_SAMPLES_LOST, "  lost", "the kernel's buffers were full"},
		{PROFILE_SAMPLES_DROPPED, "  dropped", "no memory left for them"},
		{PROFILE_SAMPLES_DIED, "  lost with a process", "a process of perfwalk died"},
		{PROFILE_SAMPLES_FILTERED, "  left out", "of other processes"},
		{PROFILE_SAMPLES_THROTTLED, "  throttled", "times the kernel throttled sampling"},
		{PROFILE_SWITCHES_LOST, "  switches lost", "the kernel's buffers were full"},
		{PROFILE_SWITCHES_REFUSED, "  switches not kept",
		 "no room for more threads, places or stacks"},
		{PROFILE_RECORDS_BAD, "  bad records", "damaged records of the kernel, ignored"},
		{PROFILE_SIDEBAND_LOST, "  lost records",
		 "of starts and mappings: names may be missing"},
	};
	const uint64_t *c = pg->counters;
	char worth[192];

	put_count(pg, SUMMARY_BOLD, "Samples", c[PROFILE_SAMPLES] - c[PROFILE_SAMPLES_FILTERED], 0,
		  pg->p->n_types > 1 ? "read from the kernel's buffers"
				     : format_estimate(pg->p, pg->total, worth, sizeof(worth)));
	put_types(pg);
	for (size_t i = 0; i < ARRAY_SIZE(losses); i++) {
		uint64_t n = c[losses[i].counter];
		bool of_samples = losses[i].counter == PROFILE_SAMPLES_LOST ||
				  losses[i].counter == PROFILE_SAMPLES_DROPPED ||
				  losses[i].counter == PROFILE_SAMPLES_DIED ||
				  losses[i].counter == PROFILE_SAMPLES_FILTERED;

		if (n || losses[i].counter == PROFILE_SAMPLES_LOST)
			put_count(pg,
				  n && losses[i].counter != PROFILE_SAMPLES_FILTERED
					  ? SUMMARY_WARN
					  : SUMMARY_PLAIN,
				  losses[i].name, n,
				  of_samples ? c[PROFILE_SAMPLES] + c[PROFILE_SAMPLES_LOST] : 0,
				  losses[i].why);
	}
}

static bool copies_differ(const struct profile *p)
{
	for (uint32_t i = 1; i < p->n_types; i++) {
		if (p->types[i].stack_bytes != p->types[0].stack_bytes)
			return true;
	}
	return false;
}

/* How many stacks smaller copies would hold, if all copies had the same size. */
static void put_copies(const struct summary_page *pg)
{
	const uint64_t *within = &pg->counters[PROFILE_STACKS_WITHIN_8K];
	uint64_t n = within[0] + within[1] + within[2] + within[3];
	uint32_t bytes = pg->p->types[0].stack_bytes;
	char value[32], why[96] = "of each stack";
	size_t at = strlen(why);

	if (!n || !bytes || copies_differ(pg->p))
		return;
	if (bytes > 8 << 10)
		at += (size_t)snprintf(why + at, sizeof(why) - at, "; 8K would do for %.0f%%",
				       table_share(within[0], n));
	if (bytes > 16 << 10)
		(void)snprintf(why + at, sizeof(why) - at, ", 16K for %.0f%%",
			       table_share(within[0] + within[1], n));
	summary_put_fact(pg, "  copied", text_format_bytes(value, sizeof(value), bytes), why);
}

/* The number of frames in a stack. */
static void put_frames(const struct summary_page *pg)
{
	const uint64_t *frames = &pg->counters[PROFILE_STACKS_TO_8_FRAMES];
	uint64_t all = 0, most = 0;
	char value[32], why[96] = "in half of the stacks";
	unsigned int i;

	for (i = 0; i < 6; i++)
		all += frames[i];
	for (i = 0; i < 5 && (most += frames[i]) * 2 < all; i++)
		;
	if (!all)
		return;
	(void)snprintf(value, sizeof(value), "%s %u", i < 5 ? "up to" : "over",
		       i < 5 ? 8u << i : 128);
	if (i == 5)
		(void)snprintf(why, sizeof(why), "in %.1f%% of the stacks",
			       table_share(frames[5], all));
	else if (frames[5])
		(void)snprintf(why, sizeof(why), "in half of them, over 128 in %.1f%%",
			       table_share(frames[5], all));
	summary_put_fact(pg, "  frames", value, why);
}

/* Why something is missing. */
struct summary_cause {
	enum profile_counter counter;
	const char *name, *why;
};

/* Those that there were, with their shares of all. */
static void put_causes(const struct summary_page *pg, const struct summary_cause *causes, size_t n,
		       uint64_t all)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t count = pg->counters[causes[i].counter];

		if (count)
			put_count(pg, SUMMARY_WARN, causes[i].name, count, all, causes[i].why);
	}
}

static void put_stacks(const struct summary_page *pg)
{
	bool largest = pg->p->types[0].stack_bytes >= LARGEST_COPY;
	const struct summary_cause causes[] = {
		{PROFILE_STACKS_TRUNCATED, "  truncated", "larger than the copy of each"},
		{PROFILE_STACKS_LEFT, "  on another stack",
		 largest ? "continue on a stack that is not copied"
			 : "not copied: see --stack-size 65528"},
		{PROFILE_STACKS_UNREADABLE, "  unreadable", "the kernel could not copy enough"},
		{PROFILE_STACKS_NO_MAPPING, "  no mapping", "code in no known file"},
		{PROFILE_STACKS_NO_FILE, "  no file", "the file of the code cannot be read"},
		{PROFILE_STACKS_NO_CFI, "  no unwind info", "the file has none for this code"},
		{PROFILE_STACKS_BAD_CFI, "  bad unwind info", "damaged, or a register is lost"},
		{PROFILE_STACKS_NO_PROGRESS, "  broken", "they lead back to themselves"},
		{PROFILE_STACKS_TOO_DEEP, "  too deep", "more frames than are kept"},
		{PROFILE_STACKS_UNPROVEN, "  not proven", "a runtime's frames had changed"},
		{PROFILE_STACKS_32_BIT, "  of 32-bit programs", "which are not walked"},
		{PROFILE_STACKS_NO_REGS, "  no registers", "the kernel gave no user registers"},
	};
	const uint64_t *c = pg->counters;
	uint64_t base = c[PROFILE_USER_STACKS] + c[PROFILE_STACKS_NO_REGS];
	uint64_t bad = profile_stacks_incomplete(pg->p);

	if (!base)
		return;
	put_count(pg, SUMMARY_BOLD, "User stacks", base, 0, NULL);
	put_count(pg, SUMMARY_PLAIN, "  complete", base > bad ? base - bad : 0, base,
		  "followed to the start of the thread");
	put_causes(pg, causes, ARRAY_SIZE(causes), base);
	if (c[PROFILE_STACKS_CONTINUED])
		put_count(pg, SUMMARY_PLAIN, "  continued", c[PROFILE_STACKS_CONTINUED], base,
			  "beyond the copy, by frame pointers");
	if (c[PROFILE_STACKS_RUNTIME_LATE])
		put_count(pg, SUMMARY_WARN, "  no interpreter", c[PROFILE_STACKS_RUNTIME_LATE],
			  base, "its frames were not read in time");
	if (c[PROFILE_STACKS_RUNTIME_UNREAD])
		put_count(pg, SUMMARY_WARN, "  unread interpreter",
			  c[PROFILE_STACKS_RUNTIME_UNREAD], base,
			  "nobody reads its frames, or not for this event");
	put_copies(pg);
	put_frames(pg);
	if (c[PROFILE_FRAMES_UNNAMED])
		put_count(pg, SUMMARY_WARN, "Frames without a name", c[PROFILE_FRAMES_UNNAMED], 0,
			  "addresses that no symbol covers");
	if (frame_count_cut_names(pg->p))
		put_count(pg, SUMMARY_PLAIN, "Names cut", frame_count_cut_names(pg->p), 0,
			  "longer than 2,047 bytes: they end in a hash");
}

/* Programs that tell the spans of their threads. */
static void put_spans(const struct summary_page *pg)
{
	static const struct summary_cause causes[] = {
		{PROFILE_SPANS_UNREAD, "  not read",
		 "no reader had come to the program, or to them"},
		{PROFILE_SPANS_LATE, "  not in time", "the reader had to wait, or came later"},
		{PROFILE_SPANS_MOVED, "  moved", "the thread may have run on meanwhile"},
		{PROFILE_SPANS_HALF, "  half-written", "the thread was just writing its span"},
		{PROFILE_SPANS_UNREADABLE, "  not readable", "the place of the span was not found"},
	};
	const uint64_t *c = pg->counters;
	uint64_t all = c[PROFILE_SPANS_LINKED] + c[PROFILE_SPANS_OUTSIDE];

	for (size_t i = 0; i < ARRAY_SIZE(causes); i++)
		all += c[causes[i].counter];
	if (!all)
		return;
	put_count(pg, SUMMARY_BOLD, "Samples for spans", all, 0,
		  "of programs that tell their spans");
	put_count(pg, SUMMARY_PLAIN, "  in spans", c[PROFILE_SPANS_LINKED], all, NULL);
	put_count(pg, SUMMARY_PLAIN, "  in none", c[PROFILE_SPANS_OUTSIDE], all, NULL);
	put_causes(pg, causes, ARRAY_SIZE(causes), all);
}

static int compare_self(const void *a, const void *b, void *ctx)
{
	const struct calltree *t = ctx;
	const struct call_symbol *x = &t->symbols.items[*(const uint32_t *)a];
	const struct call_symbol *y = &t->symbols.items[*(const uint32_t *)b];

	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return strcmp(strtab_get(&t->names, x->name), strtab_get(&t->names, y->name));
}

/* With several events, each table names its event. */
static int put_functions(const struct summary_page *pg, uint32_t max, bool several)
{
	const struct calltree *t = pg->t;
	_cleanup_free_ uint32_t *order = malloc(((size_t)t->symbols.n + 1) * sizeof(*order));
	int module_width = pg->width >= 100 ? 26 : 18;
	int name_width = pg->width - 18 - module_width;
	char event[96], column[128];
	uint32_t n = 0;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->symbols.n; i++) {
		if (t->symbols.items[i].kind != FRAME_PROCESS && t->symbols.items[i].self)
			order[n++] = i;
	}
	qsort_r(order, n, sizeof(*order), compare_self, (void *)(uintptr_t)t);

	(void)text_clean(event, sizeof(event), profile_text(pg->p, pg->p->types[0].event),
			 SIZE_MAX);
	(void)snprintf(column, sizeof(column), several ? "Function, by %s" : "Function", event);
	summary_put_heading(pg, "   Self   Total  %-*s %s", name_width, column, "Module");
	for (uint32_t i = 0; i < n && i < max; i++) {
		const struct call_symbol *s = &t->symbols.items[order[i]];

		fprintf(pg->out, "%6.1f%% %6.1f%%  ", table_share(s->self, pg->total),
			table_share(s->total, pg->total));
		summary_put_fit(pg, strtab_get(&t->names, s->name), name_width, true);
		fprintf(pg->out, " %s", summary_on(pg, SUMMARY_DIM));
		summary_put_fit(pg, strtab_get(&t->names, s->module), module_width, false);
		fprintf(pg->out, "%s\n", summary_off(pg, SUMMARY_DIM));
	}
	return 0;
}

struct group {
	uint32_t node, top_symbol;
	int64_t total, top_self;
};

static int compare_groups(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

/* The processes (nodes below the root), each with the function that has most self time in it. */
static int find_groups(const struct calltree *t, struct group *groups, uint32_t *ret_n)
{
	_cleanup_free_ int64_t *self = calloc((size_t)t->symbols.n + 1, sizeof(*self));
	_cleanup_free_ uint32_t *group_of = calloc((size_t)t->symbols.n + 1, sizeof(*group_of));
	uint32_t depth = 0, n = 0;

	if (!self || !group_of)
		return -ENOMEM;
	for (uint32_t i = calltree_next(t, 0, &depth); i != CALLTREE_NONE;
	     i = calltree_next(t, i, &depth)) {
		const struct call_node *node = &t->nodes.items[i];
		struct group *g;

		if (depth == 1)
			groups[n++] = (struct group){i, CALLTREE_NONE, node->total, 0};
		g = &groups[n - 1];
		if (depth == 1 || !node->self)
			continue;
		if (group_of[node->symbol] != n) {
			group_of[node->symbol] = n;
			self[node->symbol] = 0;
		}
		self[node->symbol] += node->self;
		if (self[node->symbol] > g->top_self) {
			g->top_self = self[node->symbol];
			g->top_symbol = node->symbol;
		}
	}
	qsort(groups, n, sizeof(*groups), compare_groups);
	*ret_n = n;
	return 0;
}

static void put_processes(const struct summary_page *pg, const struct group *groups, uint32_t n)
{
	const struct calltree *t = pg->t;
	int name_width = 24, function_width = pg->width - name_width - 26;

	summary_put_heading(pg, "  Share     PIDs  %-*s %s", name_width, "Process", "Top function");
	for (uint32_t i = 0; i < n && i < N_PROCESSES; i++) {
		const struct call_symbol *s =
			&t->symbols.items[t->nodes.items[groups[i].node].symbol];
		char count[32];

		fprintf(pg->out, "%6.1f%% %8s  ", table_share(groups[i].total, pg->total),
			summary_format_count(count, s->n_processes));
		summary_put_fit(pg, strtab_get(&t->names, s->name), name_width, true);
		if (groups[i].top_symbol != CALLTREE_NONE) {
			fprintf(pg->out, " %5.1f%% ", table_share(groups[i].top_self, pg->total));
			summary_put_fit(
				pg,
				strtab_get(&t->names, t->symbols.items[groups[i].top_symbol].name),
				function_width, false);
		}
		fputc('\n', pg->out);
	}
	summary_put_more(pg, n, N_PROCESSES);
}

struct owner {
	strid name;
	int64_t total;
};

static int compare_owners(const void *a, const void *b)
{
	const struct owner *x = a, *y = b;

	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

static int put_owners(const struct summary_page *pg, const struct group *groups, uint32_t n)
{
	const struct calltree *t = pg->t;
	_cleanup_free_ struct owner *owners = calloc((size_t)n + 1, sizeof(*owners));
	_cleanup_free_ uint32_t *row = calloc((size_t)t->names.n + 1, sizeof(*row));
	uint32_t n_owners = 0;

	if (!owners || !row)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		strid name = t->symbols.items[t->nodes.items[groups[i].node].symbol].module;

		if (name == STRID_EMPTY)
			continue;
		if (!row[name]) {
			owners[n_owners].name = name;
			row[name] = ++n_owners;
		}
		owners[row[name] - 1].total += groups[i].total;
	}
	if (!n_owners)
		return 0;
	qsort(owners, n_owners, sizeof(*owners), compare_owners);
	summary_put_heading(pg, "  Share  Container or unit");
	for (uint32_t i = 0; i < n_owners && i < N_OWNERS; i++) {
		fprintf(pg->out, "%6.1f%%  ", table_share(owners[i].total, pg->total));
		summary_put_fit(pg, strtab_get(&t->names, owners[i].name), pg->width - 9, false);
		fputc('\n', pg->out);
	}
	summary_put_more(pg, n_owners, N_OWNERS);
	return 0;
}

static const char *why_none(const struct profile *p)
{
	if (strcmp(profile_text(p, p->types[0].event), "alloc_space") == 0)
		return "no block was picked. A program that runs already is seen only if it\n"
		       "was started with LD_PRELOAD=libperfwalk-alloc.so; no static or setuid\n"
		       "program is; and a Go program picks blocks only if it calls runtime/pprof";
	if (profile_counter(p, PROFILE_IDLE_US))
		return "threads only waited for work, which --idle shows";
	if (profile_counter(p, PROFILE_SAMPLES_FILTERED))
		return "what was selected did not run; all samples were of other processes";
	if (p->types[0].period_ns)
		return "what was captured used no CPU time; an idle host has no samples";
	return "this event did not happen in the selected tasks";
}

static int put_where(const struct summary_page *pg)
{
	_cleanup_free_ struct group *groups = calloc((size_t)pg->t->nodes.n, sizeof(*groups));
	uint32_t n = 0;
	int r;

	if (!groups)
		return -ENOMEM;
	if (!pg->total) {
		if (pg->p->n_types == 1 || profile_n_samples(pg->p) == 0)
			fprintf(pg->out, "\nNo samples: %s.\n", why_none(pg->p));
		return 0;
	}
	r = put_functions(pg, N_FUNCTIONS, pg->p->n_types > 1);
	if (r == 0)
		r = find_groups(pg->t, groups, &n);
	if (r < 0)
		return r;
	put_processes(pg, groups, n);
	return put_owners(pg, groups, n);
}

/* A short table for each event after the first. */
static int put_others(const struct summary_page *pg)
{
	int r = 0;

	for (uint32_t i = 1; i < pg->p->n_types && r == 0; i++) {
		struct summary_page other = *pg;
		struct profile view;
		struct calltree t;

		profile_view(pg->p, i, &view);
		other.p = &view;
		if (view.types[0].samples.n > 0 && profile_is_wall(&view, 0))
			r = summary_put_threads(&other);
		/* Wake-ups are in the table of locks. */
		if (view.types[0].samples.n == 0 || profile_is_wall(&view, 0) ||
		    profile_is_wakeups(&view, 0))
			continue;
		r = calltree_build(&t, &view, TREE_FLAGS);
		if (r == 0) {
			other.t = &t;
			other.total = t.nodes.items[0].total;
			r = put_functions(&other, N_OTHERS, true);
		}
		if (r == 0 && profile_is_off_cpu(&view, 0))
			summary_put_reasons(&other);
		calltree_deinit(&t);
	}
	return r;
}

int render_summary(const struct profile *p, const struct render_info *info, FILE *out, int color,
		   unsigned int width)
{
	struct summary_page pg = {.out = out, .p = p, .color = color};
	struct calltree t;
	int r;

	for (int c = 0; c < PROFILE_N_COUNTERS; c++)
		pg.counters[c] = profile_counter(p, (enum profile_counter)c);
	pg.width = width < MIN_WIDTH ? MIN_WIDTH : width > MAX_WIDTH ? MAX_WIDTH : (int)width;
	r = calltree_build(&t, p, TREE_FLAGS);
	if (r == 0) {
		pg.t = &t;
		pg.total = t.nodes.items[0].total;
		put_head(&pg, info);
		fputc('\n', out);
		put_losses(&pg);
		summary_put_uneven(&pg, info->n_cpus);
		summary_put_states(&pg);
		put_stacks(&pg);
		put_spans(&pg);
		summary_put_blocked_spans(&pg);
		r = put_where(&pg);
	}
	calltree_deinit(&t);
	if (r == 0)
		r = put_others(&pg);
	if (r == 0)
		r = summary_put_locks(&pg);
	if (r == 0)
		r = summary_put_memory(&pg);
	if (r == 0 && (fflush(out) != 0 || ferror(out)))
		r = -EIO;
	return r;
}
