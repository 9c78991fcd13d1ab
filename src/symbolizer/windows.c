/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profile is kept between windows without its samples, so a frame that was named once has its
 * name when the next window brings it again; it has room for two windows, and is emptied when there
 * is none for one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/process/status-page.h"
#include "src/profile/native-frames.h"
#include "src/profile/window.h"
#include "src/render/kept-memory.h"
#include "src/render/render.h"
#include "src/symbolizer/idle.h"
#include "src/symbolizer/internal.h"
#include "src/symbolizer/live.h"
#include "src/symbolizer/wait-reasons.h"
#include "util/clock.h"
#include "util/heap.h"
#include "util/log.h"
#include "util/loop.h"

#define SETTLE_NS   (20 * NSEC_PER_MSEC) /* between looks at what is sent */
#define PARTS_SHIFT 16			 /* payloads of a window */
#define HEAP_NS	    (30 * NSEC_PER_SEC)	 /* between returns of unused pages */

/* So many windows show what the host has; what came since may be twice as much, or as little. */
#define KEPT_WINDOWS 16
#define KEPT_BYTES   (UINT64_C(4) << 20)

struct export_progress {
	struct symbolizer *symbolizer;
	uint64_t n_payloads, n_samples;
	uint8_t *kept; /* goes with the first payload */
	size_t n_kept;
};

static int on_payload(void *ctx, const uint8_t *bytes, size_t n, uint64_t n_samples)
{
	struct export_progress *done = ctx;
	struct counted *counted = &done->symbolizer->counted;
	uint64_t window = arrivals_n_samples(&done->symbolizer->arrivals);
	const struct payload_bytes b = {bytes, done->kept, n, done->n_payloads ? 0 : done->n_kept};
	int r = payloads_push(done->symbolizer->payloads, &b, n_samples,
			      window << PARTS_SHIFT | done->n_payloads);

	if (r < 0)
		return r;
	counted->payloads++;
	counted->payload_bytes += n;
	done->n_payloads++;
	done->n_samples += n_samples;
	return 0;
}

/* It goes with the next window. */
static void count(struct symbolizer *s, enum profile_counter c, uint64_t n)
{
	s->profile.counters[c] += n;
	s->counted.counters[c] += n;
}

void symbolizer_count_lost(struct symbolizer *s, uint64_t n_samples)
{
	if (n_samples > s->lost)
		count(s, PROFILE_SAMPLES_DIED, n_samples - s->lost);
	s->lost = n_samples;
}

static uint64_t count_new_unnamed(const struct profile *p, uint32_t stack, bool *seen)
{
	uint64_t unnamed = 0;
	uint32_t n;
	const uint32_t *frames = profile_stack_frames(p, stack, &n);

	for (uint32_t j = 0; j < n; j++) {
		const struct profile_frame *f = &p->frames.items[frames[j]];

		unnamed += !seen[frames[j]] && f->n_lines == 0 && !profile_is_marked(p, frames[j]);
		seen[frames[j]] = true;
	}
	return unnamed;
}

/* Frames of this window's samples that stay without a name. */
static uint64_t count_unnamed(const struct profile *p)
{
	_cleanup_free_ bool *seen = calloc((size_t)p->frames.n + 1, sizeof(*seen));
	uint64_t unnamed = 0;

	for (uint32_t type = 0; seen && type < p->n_types; type++) {
		const struct profile_type *t = &p->types[type];

		for (uint32_t i = 0; i < t->samples.n; i++)
			unnamed += count_new_unnamed(p, t->samples.items[i].stack, seen);
	}
	return unnamed;
}

void symbolizer_forget(struct symbolizer *s)
{
	uint64_t counters[PROFILE_N_COUNTERS];

	memcpy(counters, s->profile.counters, sizeof(counters));
	profile_clear(&s->profile);
	memcpy(s->profile.counters, counters, sizeof(counters));
	namer_forget_rows(s->namer);
	s->n_kept = 0;
}

/*
 * Do most rows belong to processes and files of the past? On a host where programs come and go,
 * each window brings new processes, files and frames, for ever. Where the same programs run, all
 * rows come with the first windows, and naming their frames again would be wasted.
 */
static bool is_mostly_past(struct symbolizer *s)
{
	uint64_t bytes = profile_bytes(&s->profile);

	if (s->n_kept < KEPT_WINDOWS) {
		s->n_kept++;
		s->kept_bytes = bytes;
		return false;
	}
	return bytes > KEPT_BYTES && bytes > 2 * s->kept_bytes;
}

/* Tables of files come and go, each of thousands of blocks, and what stays lies everywhere between:
 * the heap would keep the most that it ever held. */
static void return_memory(struct symbolizer *s)
{
	uint64_t now = clock_monotonic_ns();

	if (now - s->heap_ns < HEAP_NS)
		return;
	s->heap_ns = now;
	heap_return_pages();
}

/* Made ready for the next window: names stay with their frames. */
static void end_window(struct symbolizer *s)
{
	profile_clear_samples(&s->profile);
	s->profile.start_unix_ns = s->profile.end_unix_ns = 0;
	if (is_mostly_past(s) || !profile_has_room(&s->profile, s->profile.max_bytes / 2))
		symbolizer_forget(s);
	return_memory(s);
}

static void export_window(struct symbolizer *s)
{
	struct export_progress done = {.symbolizer = s};
	struct profile *p = &s->profile;
	uint64_t place = arrivals_n_samples(&s->arrivals);
	uint32_t n = profile_n_samples(p);
	int r;

	/* Payloads are known by the samples up to their window. One without any, as in a pause,
	 * would pass for the one before it: its counters go with the next window. */
	if (place == s->exported_at) {
		end_window(s);
		return;
	}
	s->exported_at = place;
	if (s->setup.hide_native)
		profile_hide_native_frames(p);
	count(s, PROFILE_SAMPLES_DROPPED, payloads_take_dropped(s->payloads));
	if (s->setup.keeps && render_kept_memory(p, &done.kept, &done.n_kept) < 0)
		log_error("what processes have in memory is not kept: out of memory");
	r = render_otlp(p, &s->info, NULL, on_payload, &done);
	free(done.kept);
	if (r < 0)
		log_error("%llu of a window's %u samples cannot be encoded: %s",
			  (unsigned long long)(n - done.n_samples), n, strerror(-r));
	/* The first payload carries the counters; without one they go with the next window. */
	if (done.n_payloads > 0)
		profile_clear_counters(p);
	count(s, PROFILE_SAMPLES_DROPPED, n - done.n_samples);
	end_window(s);
}

/*
 * A table that nobody takes is dropped, and the next one counts it: the view shows what is now.
 * Not inlined: a message takes 8 KiB of the stack. Below all that names frames, it would cut these
 * stacks in a profile of ourselves.
 */
static __attribute__((noinline)) int show_type(struct symbolizer *s, uint32_t type)
{
	struct message m = {.type = MESSAGE_TABLE};
	_cleanup_close_ int fd = -EBADF;
	struct profile view;
	int r;

	profile_view(&s->profile, type, &view);
	r = live_table(&s->table, &view);
	if (r == 0)
		r = fd = top_table_write(&s->table);
	m.item.id = type;
	if (r >= 0)
		r = s->screen_sock < 0 ? -ENOTCONN : message_send(s->screen_sock, &m, &fd, 1);
	return r < 0 ? r : 0;
}

static void show_window(struct symbolizer *s)
{
	struct profile *p = &s->profile;
	uint64_t n_dropped = 0;

	for (uint32_t type = 0; type < p->n_types; type++) {
		int r = show_type(s, type);

		if (r == 0)
			continue;
		log_debug("a table of %u samples is not shown: %s", p->types[type].samples.n,
			  strerror(-r));
		n_dropped += p->types[type].samples.n;
	}
	profile_clear_counters(p);
	p->counters[PROFILE_SAMPLES_DROPPED] += n_dropped;
	end_window(s);
}

/* Of off-CPU time, whose samples are some more with this window. */
static void put_reasons(struct profile *p, const uint32_t *n_before)
{
	for (uint32_t i = 0; i < p->n_types; i++) {
		if (profile_is_off_cpu(p, i) || profile_is_wall(p, i))
			wait_reasons_put(p, i, n_before[i]);
	}
}

void symbolizer_fold_idle(struct symbolizer *s)
{
	struct profile *p = &s->profile;
	uint64_t before = profile_counter(p, PROFILE_IDLE_US);

	idle_fold(p, s->setup.show_idle);
	s->counted.counters[PROFILE_IDLE_US] += profile_counter(p, PROFILE_IDLE_US) - before;
}

void symbolizer_take_window(struct symbolizer *s, int fd, const struct message *m,
			    const struct arrivals_gap *gaps)
{
	struct profile *p = &s->profile;
	uint32_t first = p->types[0].samples.n, n_before[PROFILE_MAX_TYPES];
	struct counted before;
	char why[192];
	int r;

	for (uint32_t i = 0; i < PROFILE_MAX_TYPES; i++)
		n_before[i] = i < p->n_types ? p->types[i].samples.n : 0;
	counted_read(&before, p);
	r = window_read(p, fd, s->uid_base, why, sizeof(why));
	if (r < 0) {
		log_error("a window of %llu samples cannot be read: %s",
			  (unsigned long long)m->window.n_samples, why);
		counted_unreadable(p, m);
	}
	s->switches = m->window.switches;
	counted_missing(p, gaps, s->switches);
	counted_add_since(&s->counted, p, &before);
	if (r < 0)
		return;
	namer_name(s->namer, p, first);
	put_reasons(p, n_before);
	if (!s->setup.capture)
		symbolizer_fold_idle(s);
	p->counters[PROFILE_FRAMES_UNNAMED] = count_unnamed(p);
	p->counters[PROFILE_FRAMES_PUT_OFF] = namer_n_put_off(s->namer);
	s->counted.counters[PROFILE_FRAMES_UNNAMED] += p->counters[PROFILE_FRAMES_UNNAMED];
	s->counted.counters[PROFILE_FRAMES_PUT_OFF] += p->counters[PROFILE_FRAMES_PUT_OFF];
	s->counted.windows_named++;
	if (s->setup.live)
		show_window(s);
	else if (!s->setup.capture)
		export_window(s);
}

/* Payloads of the windows before that place are below it. */
static uint64_t first_order(uint64_t n_samples)
{
	return (n_samples + 1) << PARTS_SHIFT;
}

/* The page first: if we die in between, the profiler sends the window again, and the next
 * symbolizer knows it. */
static void settle_one(const struct symbolizer *s, const struct unsettled *u)
{
	struct status_page *page = s->role.status;

	payloads_settle_windows(s->payloads, first_order(arrivals_samples_at(&u->end)));
	counted_publish(&u->counted, &page->counts);
	page->lost = u->lost;
	page->places[(page->turn + 1) & 1] = u->end;
	__atomic_store_n(&page->turn, page->turn + 1, __ATOMIC_RELEASE);
	receipts_say(s->receipts, MESSAGE_WINDOW_DONE, u->id);
}

void symbolizer_settle_sent(struct symbolizer *s)
{
	bool sent = s->setup.capture || s->setup.live || payloads_all_sent(s->payloads);

	for (uint32_t i = 0; i < s->unsettled.n && sent; i++)
		settle_one(s, &s->unsettled.items[i]);
	if (sent)
		array_clear(&s->unsettled);
	loop_set_timer(s->role.loop, s->settle_timer, sent ? UINT64_MAX : SETTLE_NS);
}

void symbolizer_settle(struct symbolizer *s, uint64_t id)
{
	struct unsettled now = {
		.id = id, .end = s->arrivals.expected, .counted = s->counted, .lost = s->lost};
	struct unsettled *u = array_push(&s->unsettled);

	s->counted = (struct counted){0};
	if (u)
		*u = now;
	else
		settle_one(s, &now);
	symbolizer_settle_sent(s);
}

void symbolizer_name_rest(struct symbolizer *s)
{
	namer_name(s->namer, &s->profile, 0);
	s->profile.counters[PROFILE_FRAMES_UNNAMED] = count_unnamed(&s->profile);
}
