/* SPDX-License-Identifier: Apache-2.0 */
#include "src/screen/layout.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include "util/confidence.h"
#include "util/text.h"

#define COMM_COLUMNS 15 /* TASK_COMM_LEN, without its 0 */
#define WIDE	     100

/* Columns and bytes of the character at text; unprintable ones become '?'. */
static unsigned int next_char(const char *text, mbstate_t *state, const char **ret_out,
			      size_t *ret_n, size_t *ret_out_n)
{
	wchar_t c;
	size_t n = mbrtowc(&c, text, strlen(text), state);
	int columns = n == (size_t)-1 || n == (size_t)-2 || n == 0 ? -1 : wcwidth(c);

	*ret_out = text;
	*ret_n = *ret_out_n = n;
	if (columns > 0)
		return (unsigned int)columns;
	memset(state, 0, sizeof(*state));
	*ret_n = n == (size_t)-1 || n == (size_t)-2 || n == 0 ? 1 : n;
	*ret_out = "?";
	*ret_out_n = 1;
	return 1;
}

size_t top_layout_fit(char *buf, size_t size, const char *text, unsigned int columns, bool pad)
{
	mbstate_t state = {0};
	unsigned int used = 0, last_w = 0;
	size_t at = 0, last = 0;

	while (*text) {
		const char *out;
		size_t n, out_n;
		unsigned int w = next_char(text, &state, &out, &n, &out_n);

		if (used + w > columns || at + out_n >= size) {
			/* The mark replaces the last character. */
			if (last_w > 0) {
				at = last;
				buf[at++] = '~';
				used -= last_w - 1;
			}
			break;
		}
		last = at;
		last_w = w;
		memcpy(buf + at, out, out_n);
		at += out_n;
		used += w;
		text += n;
	}
	for (; pad && used < columns && at + 1 < size; used++)
		buf[at++] = ' ';
	buf[at] = '\0';
	return at;
}

static void __attribute__((format(printf, 3, 4)))
put_line(char *buf, unsigned int columns, const char *format, ...)
{
	char line[TOP_LINE_MAX];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	(void)top_layout_fit(buf, TOP_LINE_MAX, line, columns, false);
}

static double share(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* " 3.1-4.2" with a space before it; "": not wanted. */
static const char *interval(char *buf, size_t size, const struct top_view *v, uint64_t part,
			    const struct top_table *t)
{
	double low, high;
	char text[32] = "-";

	buf[0] = '\0';
	if (!v->confidence)
		return buf;
	if (t->unit == TOP_UNIT_SAMPLES &&
	    confidence_interval(weight_of_count(part), weight_of_count(t->counts.n_samples), &low,
				&high))
		(void)snprintf(text, sizeof(text), "%.1f-%.1f", 100 * low, 100 * high);
	(void)snprintf(buf, size, " %10s", text);
	return buf;
}

static double seconds_of(const struct top_table *t)
{
	return (double)(t->end_ns - t->start_ns) / 1e9;
}

void top_layout_title(char *buf, unsigned int columns, const struct top_facts *f,
		      const struct top_table *t)
{
	double seconds = seconds_of(t);
	char window[32], rate[16], what[96];

	(void)snprintf(rate, sizeof(rate), "%" PRIu32 " Hz", f->rate_hz);
	if (t->in_use)
		(void)snprintf(what, sizeof(what), "now, by %" PRIu64 " samples",
			       t->counts.n_samples);
	else
		(void)snprintf(what, sizeof(what), "%.0f samples/s  window %s",
			       seconds > 0 ? (double)t->counts.n_samples / seconds : 0,
			       text_format_duration(window, sizeof(window), f->window_ns));
	put_line(buf, columns, "perfwalk top%s  %.40s  %s on %" PRIu32 " CPUs  %s",
		 f->paused ? " PAUSED" : "", f->host, f->event ? f->event : rate, f->n_cpus, what);
}

/* "all 1234 samples", "12.3 s", "5.1 MiB +-4.2%", "77 objects": what the shares are of. */
static const char *whole_text(char *buf, size_t size, const struct top_table *t)
{
	double percent = confidence_percent(t->variance, (double)t->counts.whole);
	char amount[32], error[32] = "";

	if (t->variance > 0 && t->counts.whole > 0 &&
	    confidence_covers_losses(percent, t->counts.n_samples, t->counts.n_lost))
		(void)snprintf(error, sizeof(error), " +-%.2g%%", percent);
	if (t->unit == TOP_UNIT_NANOSECONDS)
		(void)snprintf(buf, size, "%.1f s of threads", (double)t->counts.whole / 1e9);
	else if (t->unit == TOP_UNIT_BYTES)
		(void)snprintf(buf, size, "%s%s",
			       text_format_bytes(amount, sizeof(amount), t->counts.whole), error);
	else if (t->unit == TOP_UNIT_OBJECTS)
		(void)snprintf(buf, size, "%" PRIu64 " objects%s", t->counts.whole, error);
	else
		(void)snprintf(buf, size, "all %" PRIu64 " samples", t->counts.n_samples);
	return buf;
}

/* The time that the whole is of. */
static const char *time_text(char *buf, size_t size, const struct top_table *t)
{
	if (t->in_use)
		(void)snprintf(buf, size, "in use");
	else
		(void)snprintf(buf, size, "in %.1f s", seconds_of(t));
	return buf;
}

void top_layout_scope(char *buf, unsigned int columns, const struct top_view *v,
		      const struct top_table *t)
{
	char what[300] = "", whole[96], time[32], idle[64] = "";

	if (t->counts.idle_ns)
		(void)snprintf(idle, sizeof(idle), ", without %.1f s of idle ones",
			       (double)t->counts.idle_ns / 1e9);
	if (v->one_process)
		(void)snprintf(what, sizeof(what), " of process %" PRIu32, v->pid);
	else if (v->one_owner)
		(void)snprintf(what, sizeof(what), " of %s", v->owner);
	put_line(buf, columns, "%s%s%s%s%s%s  100%% = %s %s%s%s%s", top_view_name(v->kind), what,
		 v->kind == TOP_VIEW_TREE	 ? " by total"
		 : v->kind != TOP_VIEW_FUNCTIONS ? ""
		 : v->sort == TOP_SORT_SELF	 ? " by self"
						 : " by total",
		 v->filter[0] ? "  /" : "", v->filter, v->filter[0] ? "/" : "",
		 whole_text(whole, sizeof(whole), t), time_text(time, sizeof(time), t), idle,
		 v->no_native ? ", no native frames" : "",
		 t->n_refused ? "  (some rows did not fit)" : "");
}

static const char *rate_name(const struct top_table *t)
{
	switch (t->unit) {
	case TOP_UNIT_NANOSECONDS: /* as CPUs: by how many there were on average */
		return "THREADS";
	case TOP_UNIT_BYTES:
		return t->in_use ? "BYTES" : "BYTES/S";
	case TOP_UNIT_OBJECTS:
		return t->in_use ? "OBJECTS" : "PER S";
	default:
		return t->period_events ? "PER S" : "CPU%";
	}
}

void top_layout_head(char *buf, unsigned int columns, const struct top_view *v,
		     const struct top_table *t)
{
	const char *rate = rate_name(t);
	const char *sure = v->confidence ? "  95% RANGE" : "";

	switch (v->kind) {
	case TOP_VIEW_FUNCTIONS:
		put_line(buf, columns, "%7s%s %7s%s  %-*s %-*s %s", "SELF%", sure, "TOTAL%", sure,
			 COMM_COLUMNS, "PROCESS", columns < WIDE ? 14 : 24, "MODULE", "FUNCTION");
		break;
	case TOP_VIEW_PROCESSES:
		put_line(buf, columns, "%7s%s %7s %8s  %-*s %s", "SHARE%", sure, rate, "PID",
			 COMM_COLUMNS, "PROCESS", "CONTAINER OR UNIT");
		break;
	case TOP_VIEW_TREE:
		put_line(buf, columns, "%7s%s %7s%s  %s", "TOTAL%", sure, "SELF%", sure,
			 "PROCESS, AND WHAT IS CALLED");
		break;
	default:
		put_line(buf, columns, "%7s%s %7s  %s", "SHARE%", sure, rate, "CONTAINER OR UNIT");
	}
}

/* One column for each level; beyond a third of the line it prints the depth instead. */
static void put_node(char *buf, unsigned int columns, const struct top_view *v,
		     const struct top_table *t, const struct top_row *r)
{
	static const char marks[] = {[TOP_LEAF] = ' ', [TOP_CLOSED] = '+', [TOP_OPEN] = '-'};
	const char *where = strtab_get(&t->strings, r->depth ? r->module : r->owner);
	uint32_t indent = r->depth < columns / 3 ? r->depth : columns / 3;
	char deep[16] = "", process[32] = "", total_sure[48], self_sure[48];

	if (r->depth > indent)
		(void)snprintf(deep, sizeof(deep), "%" PRIu32 "> ", r->depth);
	if (r->depth == 0)
		(void)snprintf(process, sizeof(process), " (%" PRIu32 ")", r->pid);
	put_line(buf, columns, "%7.2f%s %7.2f%s  %*s%s%c %s%s%s%s",
		 share(r->total, t->counts.whole),
		 interval(total_sure, sizeof(total_sure), v, r->total, t),
		 share(r->self, t->counts.whole),
		 interval(self_sure, sizeof(self_sure), v, r->self, t), (int)indent, "", deep,
		 marks[r->fold], strtab_get(&t->strings, r->depth ? r->function : r->comm), process,
		 *where ? "  " : "", where);
}

/* As in top: percent of one CPU. For counted events: events per second. What is in use has no
 * rate. */
static const char *rate_text(char *buf, size_t size, const struct top_table *t, uint64_t self)
{
	double seconds = seconds_of(t), each = (double)t->period_ns / 1e7;
	double rate;

	if (t->period_events)
		each = (double)t->period_events;
	if (t->unit == TOP_UNIT_NANOSECONDS)
		each = 1e-9;
	rate = t->in_use ? (double)self : seconds > 0 ? (double)self * each / seconds : 0;
	if (t->unit == TOP_UNIT_BYTES)
		return text_format_bytes(buf, size, (uint64_t)rate);
	(void)snprintf(buf, size, "%.*f",
		       t->unit == TOP_UNIT_NANOSECONDS ? 2
		       : t->in_use		       ? 0
						       : 1,
		       rate);
	return buf;
}

void top_layout_row(char *buf, unsigned int columns, const struct top_view *v,
		    const struct top_table *t, uint32_t row)
{
	const struct top_row *r = &t->rows.items[row];
	double self = share(r->self, t->counts.whole);
	const char *owner = strtab_get(&t->strings, r->owner);
	char comm[128], module[128], self_sure[48], total_sure[48], rate[32];

	(void)rate_text(rate, sizeof(rate), t, r->self);
	(void)interval(self_sure, sizeof(self_sure), v, r->self, t);
	(void)interval(total_sure, sizeof(total_sure), v, r->total, t);
	(void)top_layout_fit(comm, sizeof(comm), strtab_get(&t->strings, r->comm), COMM_COLUMNS,
			     true);
	(void)top_layout_fit(module, sizeof(module), strtab_get(&t->strings, r->module),
			     columns < WIDE ? 14 : 24, true);
	switch (v->kind) {
	case TOP_VIEW_FUNCTIONS:
		put_line(buf, columns, "%7.2f%s %7.2f%s  %s %s %s", self, self_sure,
			 share(r->total, t->counts.whole), total_sure, comm, module,
			 strtab_get(&t->strings, r->function));
		break;
	case TOP_VIEW_PROCESSES:
		put_line(buf, columns, "%7.2f%s %7s %8" PRIu32 "  %s %s", self, self_sure, rate,
			 r->pid, comm, *owner ? owner : "-");
		break;
	case TOP_VIEW_TREE:
		put_node(buf, columns, v, t, r);
		break;
	default:
		put_line(buf, columns, "%7.2f%s %7s  %s", self, self_sure, rate, owner);
	}
}

void top_layout_status(char *buf, unsigned int columns, const struct top_facts *f,
		       const struct top_table *t)
{
	const struct top_counts *c = &t->counts;
	char rss[32];

	put_line(buf, columns,
		 "lost %" PRIu64 " (%.1f%%)  stacks cut short %.1f%%  perfwalk %.1f%% CPU, %s RSS",
		 c->n_lost, share(c->n_lost, c->n_samples + c->n_lost),
		 share(c->n_incomplete, c->n_user_stacks), f->own_cpu,
		 text_format_bytes(rss, sizeof(rss), f->own_rss_bytes));
}
