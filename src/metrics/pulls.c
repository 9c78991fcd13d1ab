/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pull begins and ends in the middle of windows. It takes the payloads of all windows that close
 * after its start; at its end it has the current window closed at once, waits until the symbolizer
 * has processed it, and leaves out samples from other times. So it needs no second set of events;
 * the destinations get one more profile, and lose or repeat no sample.
 */
#include "config.h"

#include "src/metrics/pulls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/http/serve.h"
#include "src/import/import.h"
#include "src/metrics/setup.h"
#include "src/process/ask.h"
#include "src/process/statistics.h"
#include "src/profile/profile.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"
#include "util/text.h"

#define POLL_NS (20 * NSEC_PER_MSEC)
#define BUSY_NS (100 * NSEC_PER_MSEC)
/* Time for the last window to arrive: a large file may delay the symbolizer. */
#define FLUSH_NS	  (20 * NSEC_PER_SEC)
#define MAX_PAYLOAD_BYTES (UINT64_C(16) << 20)
#define HTTP_OK		  200
#define HTTP_BAD_REQUEST  400
#define HTTP_UNAVAILABLE  503

struct pull {
	struct serve_exchange *x; /* NULL: free */
	bool answered, flushed;
	uint64_t begin_unix_ns, end_unix_ns;
	uint64_t due_ns, give_up_ns; /* CLOCK_MONOTONIC */
	struct profile profile;
	struct import_facts facts;
};

struct pulls {
	struct pulls_options options;
	int timer;
	struct pull pulls[PULLS_MAX];
};

static void on_timer(void *ctx);

int pulls_new(struct pulls **ret, const struct pulls_options *options)
{
	struct pulls *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->options = *options;
	p->timer = loop_add_timer(options->loop, UINT64_MAX, 0, on_timer, p);
	if (p->timer < 0) {
		int r = p->timer;

		free(p);
		return r;
	}
	*ret = p;
	return 0;
}

static void clear(struct pull *u)
{
	profile_deinit(&u->profile);
	import_facts_deinit(&u->facts);
	profile_init(&u->profile, 0);
	u->facts = (struct import_facts){.title = NULL};
}

struct pulls *pulls_free(struct pulls *p)
{
	for (size_t i = 0; p && i < PULLS_MAX; i++) {
		if (p->pulls[i].x)
			clear(&p->pulls[i]);
	}
	free(p);
	return NULL;
}

static bool is_under_way(const struct pull *u)
{
	return u->x && !u->answered;
}

static void refuse(struct pull *u, const char *why)
{
	clear(u);
	u->answered = true;
	serve_answer_text(u->x, HTTP_UNAVAILABLE, "%s", why);
}

void pulls_fail(struct pulls *p, const char *why)
{
	for (size_t i = 0; i < PULLS_MAX; i++) {
		if (is_under_way(&p->pulls[i]))
			refuse(&p->pulls[i], why);
	}
}

void pulls_end(struct pulls *p, const struct serve_exchange *x)
{
	for (size_t i = 0; i < PULLS_MAX; i++) {
		if (p->pulls[i].x != x)
			continue;
		clear(&p->pulls[i]);
		p->pulls[i] = (struct pull){.x = NULL};
	}
}

/* ---- The beginning ---- */

static void say_busy(const struct pulls *p, struct serve_exchange *x)
{
	struct serve_answer a = {.status = HTTP_UNAVAILABLE,
				 .content_type = "text/plain; charset=utf-8",
				 .retry_after = 1};
	uint64_t now = clock_monotonic_ns(), next = UINT64_MAX;
	char *text;
	int n;

	for (size_t i = 0; i < PULLS_MAX; i++)
		next = p->pulls[i].due_ns < next ? p->pulls[i].due_ns : next;
	if (next > now)
		a.retry_after = (unsigned int)((next - now) / NSEC_PER_SEC) + 1;
	n = asprintf(&text, "%d profiles are already running; retry in %u s\n", PULLS_MAX,
		     a.retry_after);
	serve_answer(x, &a, n < 0 ? NULL : text, n < 0 ? 0 : (size_t)n);
}

void pulls_begin(struct pulls *p, struct serve_exchange *x, const char *seconds)
{
	uint64_t n = PULLS_SECONDS, now = clock_realtime_ns();
	struct pull *u = NULL;

	if (seconds && text_parse_u64(seconds, 1, PULLS_MAX_SECONDS, &n) < 0) {
		serve_answer_text(x, HTTP_BAD_REQUEST, "seconds: expected a whole number, 1 .. %d",
				  PULLS_MAX_SECONDS);
		return;
	}
	for (size_t i = 0; i < PULLS_MAX && !u; i++)
		u = p->pulls[i].x ? NULL : &p->pulls[i];
	if (!u) {
		say_busy(p, x);
		return;
	}
	*u = (struct pull){
		.x = x,
		.begin_unix_ns = now,
		.end_unix_ns = now + n * NSEC_PER_SEC,
		.due_ns = clock_monotonic_ns() + n * NSEC_PER_SEC,
		/* CPU time only; payloads have other events, too. */
		.facts = {.like_what = "cpu", .like_unit = "nanoseconds", .like_only = true}};
	u->give_up_ns = u->due_ns + FLUSH_NS;
	profile_init(&u->profile, p->options.profile_bytes);
	loop_set_timer(p->options.loop, p->timer, 0);
}

void pulls_payload(struct pulls *p, int fd)
{
	char error[IMPORT_ERROR_MAX] = "";

	for (size_t i = 0; i < PULLS_MAX; i++) {
		struct pull *u = &p->pulls[i];
		int r;

		if (!is_under_way(u))
			continue;
		r = import_fd(&u->profile, &u->facts, fd, IMPORT_OTLP, NULL, MAX_PAYLOAD_BYTES,
			      error);
		if (r >= 0)
			continue;
		log_warning("a requested profile cannot be made: %s", error);
		refuse(u, r == -ENOMEM
				  ? "the profile does not fit into memory; request fewer seconds"
				  : "a window cannot be read; the log of perfwalk says more");
	}
}

/* ---- The end ---- */

/* Keeps only samples from its time. */
static void cut(struct pull *u, const struct statistics *s)
{
	struct profile *p = &u->profile;
	struct profile_type *type = &p->types[0];
	uint32_t n = 0;

	for (uint32_t i = 0; i < type->samples.n; i++) {
		uint64_t t = type->samples.items[i].time_unix_ns;

		if (t >= u->begin_unix_ns && t < u->end_unix_ns)
			type->samples.items[n++] = type->samples.items[i];
	}
	type->samples.n = n;
	/* Losses may fall into the requested time, so they are kept; the other counters describe
	 * whole windows. */
	for (int c = 0; c < PROFILE_N_COUNTERS; c++) {
		if (c == PROFILE_SAMPLES_LOST || c == PROFILE_SAMPLES_DROPPED ||
		    c == PROFILE_SAMPLES_DIED)
			continue;
		p->counters[c] = 0;
		type->counters[c] = c == PROFILE_SAMPLES ? n : 0;
	}
	p->gaps_ns = 0;
	p->start_unix_ns = u->begin_unix_ns;
	p->end_unix_ns = u->end_unix_ns;
	/* No payload at all: nothing ran. */
	if (!type->period_ns && !type->period_events && s->rate_hz) {
		type->rate_hz = s->rate_hz;
		type->period_ns = NSEC_PER_SEC / s->rate_hz;
		type->event = strtab_put(&p->strings, s->events[0]);
	}
}

static void answer(struct pulls *p, struct pull *u)
{
	static const struct serve_answer a = {.status = HTTP_OK,
					      .content_type = "application/octet-stream",
					      .file_name = "profile.pb.gz"};
	struct render_info info = *p->options.info;
	char title[64], *body = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&body, &n);
	int r = f ? 0 : -errno;

	(void)snprintf(title, sizeof(title), "perfwalk run, %llu s",
		       (unsigned long long)((u->end_unix_ns - u->begin_unix_ns) / NSEC_PER_SEC));
	info.title = title;
	profile_hide_addresses(&u->profile);
	if (f) {
		r = render_pprof(&u->profile, &info, f);
		if (fclose(f) != 0 && r == 0)
			r = -errno;
	}
	if (r < 0) {
		free(body);
		refuse(u, "the profile cannot be written: not enough memory");
		return;
	}
	clear(u);
	u->answered = true;
	serve_answer(u->x, &a, body, n);
}

/* One flush serves all pulls that have ended. */
static void note_flush(struct pulls *p)
{
	uint64_t now = clock_realtime_ns();

	for (size_t i = 0; i < PULLS_MAX; i++)
		p->pulls[i].flushed |= is_under_way(&p->pulls[i]) &&
				       p->pulls[i].end_unix_ns <= now &&
				       p->pulls[i].due_ns <= clock_monotonic_ns();
}

/* Advances a pull that is due; returns when to call again, from now. */
static uint64_t advance(struct pulls *p, struct pull *u)
{
	struct message m = {.type = MESSAGE_ASK_FLUSH};
	struct statistics s;

	if (clock_monotonic_ns() >= u->give_up_ns) {
		refuse(u, "the last samples did not arrive in time; see /healthz");
		return UINT64_MAX;
	}
	if (!u->flushed) {
		/* Refused shortly after another flush, which closed a window before our end. */
		if (ask_values(p->options.ask, &m) < 0)
			return BUSY_NS;
		note_flush(p);
		return POLL_NS;
	}
	if (statistics_ask(p->options.ask, &s) < 0 || s.flushing)
		return POLL_NS;
	p->options.drain(p->options.ctx);
	if (is_under_way(u)) {
		cut(u, &s);
		answer(p, u);
	}
	return UINT64_MAX;
}

static void on_timer(void *ctx)
{
	struct pulls *p = ctx;
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < PULLS_MAX; i++) {
		struct pull *u = &p->pulls[i];
		uint64_t now = clock_monotonic_ns(), wait;

		if (!is_under_way(u))
			continue;
		wait = now < u->due_ns ? u->due_ns - now : advance(p, u);
		next = wait < next ? wait : next;
	}
	loop_set_timer(p->options.loop, p->timer, next);
}
