/* SPDX-License-Identifier: Apache-2.0 */
#include "src/render/table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "src/profile/profile.h"
#include "src/render/amount.h"
#include "src/render/frame.h"
#include "src/render/render.h"
#include "util/clock.h"
#include "util/text.h"

#define NO_WIDTH       (1 << 24)
#define DEFAULT_WIDTH  100
#define MIN_WIDTH      60
#define INTERVAL_WIDTH 13 /* "100.00-100.00", and its title */
#define MAX_WIDTH      1000

double table_share(double part, double whole)
{
	return whole != 0 ? 100.0 * part / whole : 0;
}

struct table_estimate table_estimate(struct weight part, struct weight whole)
{
	struct table_estimate e = {.share = whole.sum > 0 ? 100 * part.sum / whole.sum : 0};

	if (confidence_interval(part, whole, &e.low, &e.high)) {
		e.low *= 100;
		e.high *= 100;
	}
	return e;
}

void table_init(struct table *t, FILE *out, unsigned int width, bool color, bool csv)
{
	*t = (struct table){.out = out, .color = color && !csv, .csv = csv};
	t->unlimited = width == 0;
	width = width ? width : DEFAULT_WIDTH;
	t->width = width < MIN_WIDTH ? MIN_WIDTH : width > MAX_WIDTH ? MAX_WIDTH : width;
}

static const char *on(const struct table *t, const char *code)
{
	return t->color ? code : "";
}

#define BOLD "\033[1m"
#define DIM  "\033[2m"
#define OFF  "\033[0m"

/* Terminal columns of n bytes of UTF-8. */
static int text_columns(const char *text, size_t n)
{
	int columns = 0;

	for (size_t i = 0; i < n; i++)
		columns += (text[i] & 0xc0) != 0x80;
	return columns;
}

void table_put_fit(FILE *out, const char *text, size_t n, int width, bool pad)
{
	int columns = text_columns(text, n), keep = columns > width ? width - 1 : columns;
	size_t bytes = 0;

	for (int seen = 0; bytes < n; bytes++)
		if ((text[bytes] & 0xc0) != 0x80 && seen++ == keep)
			break;
	(void)fprintf(out, "%.*s%s%*s", (int)bytes, text, columns > width ? "…" : "",
		      pad && columns < width ? width - columns : 0, "");
}

/* Prints nothing for an empty text. */
static void put_clean(struct table *t, const char *before, const char *text)
{
	char clean[512];

	if (!text || !*text)
		return;
	(void)text_clean(clean, sizeof(clean), text, SIZE_MAX);
	(void)fprintf(t->out, "%s%s", before, clean);
}

/*
 * If samples have values of their own, their number says little; so it does if files were added up
 * by value.
 */
static void put_worth(struct table *t, const struct profile *p)
{
	char text[256];
	int64_t sum = 0;

	for (uint32_t i = 0; i < p->types[0].samples.n; i++)
		sum = profile_sum(sum, p->types[0].samples.items[i].value);
	if (p->types[0].weighted && amount_worth(text, sizeof(text), p, sum))
		(void)fprintf(t->out, " with values of their own: %s", text);
}

/* What was left out of off-CPU time. */
static void put_idle(struct table *t, const struct profile *p)
{
	uint64_t us = profile_counter(p, PROFILE_IDLE_US);
	char text[72];

	if (us)
		(void)fprintf(t->out, ", without %s of idle threads",
			      amount_text(text, sizeof(text), (int64_t)(us * NSEC_PER_USEC),
					  "nanoseconds"));
}

static void put_losses(struct table *t, const struct profile *p)
{
	uint64_t n_samples = profile_view_counter(p, PROFILE_SAMPLES) -
			     profile_counter(p, PROFILE_SAMPLES_FILTERED);
	uint64_t n_lost = profile_counter(p, PROFILE_SAMPLES_LOST);
	uint64_t n_missing = n_lost + profile_counter(p, PROFILE_SAMPLES_DROPPED) +
			     profile_counter(p, PROFILE_SAMPLES_DIED);
	uint64_t n_stacks = profile_counter(p, PROFILE_USER_STACKS);
	uint64_t n_unnamed = profile_counter(p, PROFILE_FRAMES_UNNAMED);
	uint64_t short_stacks = profile_stacks_incomplete(p);

	(void)fprintf(t->out, "%" PRIu64 " samples", n_samples);
	put_worth(t, p);
	put_idle(t, p);
	(void)fprintf(t->out, ", %" PRIu64 " lost (%.1f%%)", n_missing,
		      table_share(n_missing, n_samples + n_lost));
	if (n_stacks)
		(void)fprintf(t->out, ", %.1f%% of the user stacks do not reach their entry",
			      table_share(short_stacks, n_stacks));
	if (n_unnamed)
		(void)fprintf(t->out, ", %" PRIu64 " frames without a name", n_unnamed);
	if (frame_count_cut_names(p))
		(void)fprintf(t->out, ", %" PRIu32 " names cut at %d bytes",
			      frame_count_cut_names(p), FRAME_MAX_NAME - 1);
	(void)fputc('\n', t->out);
}

void table_facts(struct table *t, const struct profile *p, const struct render_info *info)
{
	double seconds = (double)profile_covered_ns(p) / 1e9;

	if (t->csv)
		return;
	(void)fputs(on(t, BOLD), t->out);
	put_clean(t, "", info->title);
	(void)fprintf(t->out, "%s%s", on(t, OFF), info->title ? "\n" : "");
	put_clean(t, "", profile_text(p, p->types[0].event));
	if (p->types[0].rate_hz)
		(void)fprintf(t->out, " at %" PRIu32 " Hz", p->types[0].rate_hz);
	if (seconds >= 0.001)
		(void)fprintf(t->out, " for %.1f s", seconds);
	if (p->gaps_ns)
		(void)fprintf(t->out, " of %.1f s", seconds + (double)p->gaps_ns / 1e9);
	if (info->n_cpus)
		(void)fprintf(t->out, " on %" PRIu32 " CPU%s", info->n_cpus,
			      info->n_cpus == 1 ? "" : "s");
	put_clean(t, ", host ", info->host_name);
	put_clean(t, ", Linux ", info->kernel_release);
	if (p->types[0].event != STRID_EMPTY || p->types[0].rate_hz || info->host_name)
		(void)fputc('\n', t->out);
	if (info->sum)
		(void)fprintf(t->out, "%s\n", info->sum);
	put_losses(t, p);
}

void table_intervals(struct table *t, const struct profile *p, bool known, struct weight whole)
{
	t->intervals = t->csv || known;
	t->known = known;
	if (t->csv)
		return;
	if (!known) {
		(void)fprintf(t->out, "No 95%% intervals: %s\n",
			      profile_is_difference(p)
				      ? "the values are differences of two profiles"
				      : "the file does not say how many samples its values add up");
		return;
	}
	(void)fputs("95% intervals by Wilson's score, ", t->out);
	if (p->types[0].weighted)
		(void)fprintf(
			t->out,
			"values as uneven as these carry as much information as %.0f equal ones\n",
			whole.sum > 0 ? whole.sum * whole.sum / whole.squares : 0);
	else
		(void)fprintf(t->out, "of %.0f samples%s\n", whole.sum,
			      profile_has_period(p) ? "" : ", if that is what the file counts");
}

/* "3.10-4.20", right-aligned in its column. */
static void put_interval(const struct table *t, const struct table_estimate *e)
{
	char text[32];

	if (!t->intervals)
		return;
	(void)snprintf(text, sizeof(text), "%.2f-%.2f", e->low, e->high);
	(void)fprintf(t->out, "  %s%*s%s", on(t, DIM), INTERVAL_WIDTH, text, on(t, OFF));
}

static void put_csv_interval(const struct table *t, const struct table_estimate *e)
{
	if (t->intervals && t->known)
		(void)fprintf(t->out, "\t%.4f\t%.4f", e->low, e->high);
	else if (t->intervals)
		(void)fputs("\t\t", t->out);
}

void table_heading(struct table *t, const char *format, ...)
{
	va_list ap;

	if (t->csv)
		return;
	(void)fprintf(t->out, "\n%s", on(t, BOLD));
	va_start(ap, format);
	(void)vfprintf(t->out, format, ap);
	va_end(ap);
	(void)fprintf(t->out, "%s\n", on(t, OFF));
}

void table_note(struct table *t, const char *text)
{
	if (!t->csv)
		(void)fprintf(t->out, "  %s\n", text);
}

void table_column(struct table *t, const char *title)
{
	if (t->n_columns < TABLE_MAX_COLUMNS)
		t->columns[t->n_columns++] = title;
}

/* Columns of a line for shares and their intervals. */
static int shares_width(const struct table *t)
{
	int n = t->totals ? 2 : 1;

	return 1 + 9 * n + (t->intervals ? n * (INTERVAL_WIDTH + 2) : 0);
}

/* Width of a column that is not the last. */
static int column_width(const struct table *t, unsigned int column)
{
	int shares = t->intervals ? shares_width(t) : 16;
	int each = ((int)t->width - shares) / (int)(t->n_columns + 1);
	int title = (int)strlen(t->columns[column]), widest = t->widest[column];
	int most = strcmp(t->columns[column], "SYMBOL") == 0 ? 2 * each : each;

	most = most < 16 ? 16 : most;
	widest = widest < title ? title : widest;
	return widest < most ? widest : most;
}

void table_measure(struct table *t, const char *text, size_t n)
{
	int columns = text_columns(text, n);

	if (t->at < t->n_columns && t->widest[t->at] < columns)
		t->widest[t->at] = columns;
	t->at++;
}

static void put_cell(struct table *t, const char *text, size_t n)
{
	bool last = t->at + 1 == t->n_columns;
	int width = last ? t->room : column_width(t, t->at);

	/* A pipe has room for everything. */
	width = last && t->unlimited ? NO_WIDTH : width > 4 ? width : 4;
	table_put_fit(t->out, text, n, width, !last);
	if (!last)
		(void)fputs("  ", t->out);
	t->room -= width + 2;
	t->at++;
}

static void put_share_title(const struct table *t, const char *title)
{
	(void)fprintf(t->out, "%8s", title);
	if (t->intervals)
		(void)fprintf(t->out, "  %*s", INTERVAL_WIDTH, "95% INTERVAL");
}

void table_head(struct table *t, bool totals)
{
	t->at = 0;
	t->totals = totals;
	t->room = (int)t->width - shares_width(t);
	if (t->csv) {
		(void)fputs("self\ttotal\tvalue", t->out);
		if (t->intervals)
			(void)fputs("\tself_low\tself_high\ttotal_low\ttotal_high", t->out);
		for (unsigned int i = 0; i < t->n_columns; i++)
			(void)fprintf(t->out, "\t%s", t->columns[i]);
		(void)fputc('\n', t->out);
		return;
	}
	(void)fprintf(t->out, "\n%s", on(t, BOLD));
	put_share_title(t, "SELF");
	if (totals) {
		(void)fputc(' ', t->out);
		put_share_title(t, "TOTAL");
	}
	(void)fputs("  ", t->out);
	for (unsigned int i = 0; i < t->n_columns; i++)
		put_cell(t, t->columns[i], strlen(t->columns[i]));
	(void)fprintf(t->out, "%s\n", on(t, OFF));
}

void table_begin(struct table *t, struct table_estimate self, struct table_estimate total,
		 int64_t value)
{
	t->at = 0;
	t->room = (int)t->width - shares_width(t);
	if (t->csv) {
		(void)fprintf(t->out, "%.4f\t%.4f\t%" PRId64, self.share, total.share, value);
		put_csv_interval(t, &self);
		put_csv_interval(t, &total);
		return;
	}
	(void)fprintf(t->out, "%7.2f%%", self.share);
	put_interval(t, &self);
	if (t->totals) {
		(void)fprintf(t->out, " %7.2f%%", total.share);
		put_interval(t, &total);
	}
	(void)fputs("  ", t->out);
}

void table_cell(struct table *t, const char *text, size_t n)
{
	if (t->csv)
		(void)fprintf(t->out, "\t%.*s", (int)n, text);
	else
		put_cell(t, n ? text : "-", n ? n : 1);
}

void table_end(struct table *t)
{
	(void)fputc('\n', t->out);
}

void table_dim(struct table *t, bool dim)
{
	(void)fputs(on(t, dim ? DIM : OFF), t->out);
}

void table_rest(struct table *t, uint32_t n_rows, double self)
{
	if (n_rows && !t->csv)
		(void)fprintf(t->out, "%s%7.2f%%%*s%" PRIu32 " more row%s%s\n", on(t, DIM), self,
			      shares_width(t) - 8, "", n_rows, n_rows == 1 ? "" : "s", on(t, OFF));
}

void table_tree_line(struct table *t, struct table_estimate e, uint32_t depth, bool same,
		     const char *text, size_t n)
{
	int indent = (int)depth * 2, room = (int)t->width - shares_width(t);

	if (t->csv) {
		(void)fprintf(t->out, "%.4f", e.share);
		put_csv_interval(t, &e);
		(void)fprintf(t->out, "\t%" PRIu32 "\t%.*s\n", depth, (int)n, text);
		return;
	}
	indent = indent < room / 2 ? indent : room / 2;
	if (same) {
		(void)fprintf(t->out, "%*s", shares_width(t) - 2, "");
	} else {
		(void)fprintf(t->out, "%7.2f%%", e.share);
		put_interval(t, &e);
	}
	(void)fprintf(t->out, "  %*s", indent, "");
	table_put_fit(t->out, text, n, t->unlimited ? NO_WIDTH : room - indent, false);
	(void)fputc('\n', t->out);
}
