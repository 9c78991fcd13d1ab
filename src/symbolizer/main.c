/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The symbolizer: windows in, names found, and either OTLP payloads out (the daemon) or one profile
 * rendered at the end (a capture). It reads symbol tables that strangers wrote and may die of them;
 * the profiler keeps each window until it is told that the window is settled: its payloads are with
 * the exporter.
 *
 * The profile is kept between windows without its samples, so a frame that was named once has its
 * name when the next window brings it again; it has room for two windows, and is emptied when there
 * is none for one.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "src/process/ask.h"
#include "src/process/role.h"
#include "src/process/status-page.h"
#include "src/profile/profile.h"
#include "src/profile/window.h"
#include "src/render/format.h"
#include "src/render/render.h"
#include "src/screen/wire.h"
#include "src/symbolizer/arrivals.h"
#include "src/symbolizer/counted.h"
#include "src/symbolizer/debug-show.h"
#include "src/symbolizer/live.h"
#include "src/symbolizer/namer.h"
#include "src/symbolizer/payloads.h"
#include "src/symbolizer/setup.h"
#include "src/symbolizer/viewer.h"
#include "symbolize/arch.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"
#include "util/text.h"

#define MIN_PAYLOADS   16
#define MAX_RESOURCE   256		    /* resource attributes */
#define AWAIT_NS       (5 * NSEC_PER_SEC)   /* of a capture's end, for debug files to come */
#define LEAVE_NS       (10 * NSEC_PER_MSEC) /* between looks at whether all is sent */
#define SETTLE_NS      (20 * NSEC_PER_MSEC) /* between looks at what is sent */
#define MAX_UNSETTLED  4096
#define PARTS_SHIFT    16		    /* payloads of a window */
#define UID_BASE_SHIFT 40 /* one profiler's files: 2^40 */

/* A window whose payloads are not all with the exporter, and what is counted with it. */
struct unsettled {
	uint64_t id;
	struct sample_place end;
	struct counted counted;
};

struct symbolizer {
	struct role role;
	struct setup_symbolizer setup;
	struct ask ask;
	struct namer *namer;
	struct payloads *payloads;
	struct arrivals arrivals;
	struct sample_place last; /* how far the profilers had come, once they have left */
	struct profile profile;
	struct render_info info;
	ARRAY(const char *) resource;
	struct output {
		char *path;
		const struct format *format;
		int fd;
	} outputs[PROTOCOL_MAX_OUTPUTS];
	const struct format *output_format; /* of the next one */
	uint32_t n_outputs;
	ARRAY(struct unsettled) unsettled; /* in their order */
	struct counted counted;		   /* of what is not settled */
	struct viewer viewer;
	struct top_table table; /* live */
	int summary_fd, kallsyms_fd, notes_fd, profiler_sock, screen_sock, leave_timer,
		settle_timer;
	uint64_t uid_base;
	bool stopping;
	uint64_t await_until_ns; /* 0: not yet */
	uint32_t n_awaited;	 /* then, debug files */
};

/* ---- Set-up ---- */

/* Keys and values come in turn. */
static int add_resource(struct symbolizer *s, const char *text)
{
	const char **item = array_push(&s->resource);

	if (item)
		*item = strdup(text);
	return item && *item ? 0 : -ENOMEM;
}

static int on_text(void *ctx, const struct message *m, int fd)
{
	struct symbolizer *s = ctx;
	const char *text = m->text.text;
	int r;

	switch (m->text.kind) {
	case TEXT_OUTPUT_FORMAT:
		s->output_format = format_of_name(text);
		return 0;
	case TEXT_OUTPUT:
		if (s->n_outputs == PROTOCOL_MAX_OUTPUTS || fd < 0)
			break;
		s->outputs[s->n_outputs].format = s->output_format;
		s->outputs[s->n_outputs].path = strdup(text);
		s->outputs[s->n_outputs++].fd = fd;
		return 0;
	case TEXT_SUMMARY:
		s->summary_fd = fd;
		return 0;
	case TEXT_KALLSYMS:
		s->kallsyms_fd = fd;
		return 0;
	case TEXT_KERNEL_NOTES:
		s->notes_fd = fd;
		return 0;
	case TEXT_HOST_NAME:
		return text_set(&s->info.host_name, text);
	case TEXT_HOST_ID:
		return text_set(&s->info.host_id, text);
	case TEXT_KERNEL_RELEASE:
		return text_set(&s->info.kernel_release, text);
	case TEXT_TITLE:
		return text_set(&s->info.title, text);
	case TEXT_SERVICE_NAME:
		return text_set(&s->info.service_name, text);
	case TEXT_RESOURCE:
		return add_resource(s, text);
	default:
		r = viewer_text(&s->viewer, m->text.kind, text, fd);
		if (r <= 0)
			return r;
		break;
	}
	(void)close_fd(fd);
	return -EBADMSG;
}

/* ---- Windows ---- */

struct export_progress {
	struct symbolizer *symbolizer;
	uint64_t n_payloads, n_samples;
};

static int on_payload(void *ctx, const uint8_t *bytes, size_t n, uint64_t n_samples)
{
	struct export_progress *done = ctx;
	struct status_counts *counts = &done->symbolizer->role.status->counts;
	uint64_t window = arrivals_n_samples(&done->symbolizer->arrivals);
	int r = payloads_push(done->symbolizer->payloads, bytes, n, n_samples,
			      window << PARTS_SHIFT | done->n_payloads);

	if (r < 0)
		return r;
	counts->payloads++;
	counts->payload_bytes += n;
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

static uint64_t count_new_unnamed(const struct profile *p, uint32_t stack, bool *seen)
{
	uint64_t unnamed = 0;
	uint32_t n;
	const uint32_t *frames = profile_stack_frames(p, stack, &n);

	for (uint32_t j = 0; j < n; j++) {
		const struct profile_frame *f = &p->frames.items[frames[j]];

		unnamed += !seen[frames[j]] && f->n_lines == 0 &&
			   p->modules.items[f->module].kind != PROFILE_MODULE_MARKER;
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

static void forget_all(struct symbolizer *s)
{
	uint64_t counters[PROFILE_N_COUNTERS];

	memcpy(counters, s->profile.counters, sizeof(counters));
	profile_clear(&s->profile);
	memcpy(s->profile.counters, counters, sizeof(counters));
	namer_forget_rows(s->namer);
}

/* Made ready for the next window: names stay with their frames. */
static void end_window(struct symbolizer *s)
{
	profile_clear_samples(&s->profile);
	s->profile.start_unix_ns = s->profile.end_unix_ns = 0;
	if (!profile_has_room(&s->profile, s->profile.max_bytes / 2))
		forget_all(s);
}

static void export_window(struct symbolizer *s)
{
	struct export_progress done = {.symbolizer = s};
	struct profile *p = &s->profile;
	uint32_t n = profile_n_samples(p);
	int r;

	count(s, PROFILE_SAMPLES_DROPPED, payloads_take_dropped(s->payloads));
	r = render_otlp(p, &s->info, NULL, on_payload, &done);
	if (r < 0)
		log_error("%llu of a window's %u samples cannot be encoded: %s",
			  (unsigned long long)(n - done.n_samples), n, strerror(-r));
	/* The first payload has them; without one they go with the next window. */
	if (done.n_payloads > 0)
		profile_clear_counters(p);
	count(s, PROFILE_SAMPLES_DROPPED, n - done.n_samples);
	end_window(s);
}

/*
 * A table that nobody takes is dropped and counted in the next: the view shows what is now.
 * Not inlined, as settle() is not: a message takes 8 KiB of the stack, and would do so below all
 * that names frames, so that a profile of ourselves has these stacks cut.
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

static void take_window(struct symbolizer *s, int fd, const struct message *m,
			const struct arrivals_gap *gaps)
{
	struct profile *p = &s->profile;
	uint32_t first = p->types[0].samples.n;
	struct counted before;
	int r;

	counted_read(&before, p);
	r = window_read(p, fd, s->uid_base);
	if (r < 0) {
		log_error("a window of %llu samples cannot be read: %s",
			  (unsigned long long)m->window.n_samples, strerror(-r));
		counted_unreadable(p, m);
	}
	counted_missing(p, gaps);
	counted_add_since(&s->counted, p, &before);
	if (r < 0)
		return;
	namer_name(s->namer, p, first);
	p->counters[PROFILE_FRAMES_UNNAMED] = count_unnamed(p);
	p->counters[PROFILE_FRAMES_PUT_OFF] = namer_n_put_off(s->namer);
	s->counted.counters[PROFILE_FRAMES_UNNAMED] += p->counters[PROFILE_FRAMES_UNNAMED];
	s->counted.counters[PROFILE_FRAMES_PUT_OFF] += p->counters[PROFILE_FRAMES_PUT_OFF];
	s->role.status->counts.windows_named++;
	if (s->setup.live)
		show_window(s);
	else if (!s->setup.capture)
		export_window(s);
}

/* The page first: who dies in between is sent a window that the next one knows. */
static __attribute__((noinline)) void settle_one(const struct symbolizer *s,
						 const struct unsettled *u)
{
	struct message done = {.type = MESSAGE_WINDOW_DONE};
	struct status_page *page = s->role.status;

	counted_publish(&u->counted, &page->counts);
	page->places[(page->turn + 1) & 1] = u->end;
	__atomic_store_n(&page->turn, page->turn + 1, __ATOMIC_RELEASE);
	done.item.id = u->id;
	(void)message_send(s->profiler_sock, &done, NULL, 0);
}

/* What has not left for the exporter dies with us: the profiler keeps it until then. */
static void settle_sent(struct symbolizer *s)
{
	bool sent = s->setup.capture || s->setup.live || payloads_all_sent(s->payloads);

	for (uint32_t i = 0; i < s->unsettled.n && sent; i++)
		settle_one(s, &s->unsettled.items[i]);
	if (sent)
		array_clear(&s->unsettled);
	loop_set_timer(s->role.loop, s->settle_timer, sent ? UINT64_MAX : SETTLE_NS);
}

static void on_settle_timer(void *ctx)
{
	settle_sent(ctx);
}

/* Without memory for it, it is settled as if it were sent. */
static void settle(struct symbolizer *s, uint64_t id)
{
	struct unsettled now = {.id = id, .end = s->arrivals.expected, .counted = s->counted};
	struct unsettled *u = array_push(&s->unsettled);

	s->counted = (struct counted){0};
	if (u)
		*u = now;
	else
		settle_one(s, &now);
	settle_sent(s);
}

static void on_profiler_message(void *ctx, const struct message *m, int fds[2])
{
	struct symbolizer *s = ctx;
	struct arrivals_gap gaps[STATUS_MAX_EVENTS];

	switch (m->type) {
	case MESSAGE_MODULE:
		if (!message_text_ok(m->module.path, sizeof(m->module.path)))
			break;
		file_names_add(namer_files(s->namer), s->uid_base + m->module.uid, m->module.pid,
			       m->module.path, TAKE_FD(fds[0]));
		break;
	case MESSAGE_KALLSYMS:
		namer_set_kernel(s->namer, TAKE_FD(fds[0]),
				 -EBADF); /* of another kernel, perhaps */
		break;
	case MESSAGE_PERF_MAP:
	case MESSAGE_JITDUMP:
		namer_add_code(s->namer, m->type == MESSAGE_JITDUMP ? CODE_JITDUMP : CODE_PERF_MAP,
			       m->perf_map.pid, m->perf_map.start_time_unix_ns, TAKE_FD(fds[0]));
		break;
	case MESSAGE_WINDOW:
		if (arrivals_window(&s->arrivals, m, gaps))
			take_window(s, fds[0], m, gaps);
		settle(s, m->window.id);
		break;
	default:
		break;
	}
	(void)close_fd(fds[0]);
	(void)close_fd(fds[1]);
}

static void on_module_closed(void *ctx, uint64_t uid)
{
	struct symbolizer *s = ctx;
	struct message m = {.type = MESSAGE_MODULE_GONE};

	m.item.id = uid - s->uid_base;
	if (s->profiler_sock >= 0)
		(void)message_send(s->profiler_sock, &m, NULL, 0);
}

static void leave_if_done(struct symbolizer *s);

static void disconnect_profiler(struct symbolizer *s)
{
	loop_remove_fd(s->role.loop, s->profiler_sock);
	s->profiler_sock = close_fd(s->profiler_sock);
}

static void on_profiler(void *ctx, int fd, uint32_t events)
{
	struct symbolizer *s = ctx;
	int r = role_drain_socket(fd, on_profiler_message, s);

	if (r < 0)
		disconnect_profiler(s);
	if (r < 0 && r != -EPIPE) {
		/* Both live on, and only the start of one joins them again. */
		log_error("messages of the profiler cannot be received: %s; exiting",
			  role_receive_error(r));
		loop_exit(s->role.loop, 1);
		return;
	}
	leave_if_done(s);
}

/* ---- The end of a capture ---- */

/* A format that holds one type has the first: record has said so when it began. */
static int render_profile(const struct symbolizer *s, const struct format *format, FILE *f)
{
	struct profile first;

	if (s->setup.view == VIEW_DIFF)
		return format->render_diff(&s->viewer.before, &s->profile, &s->info, f);
	if (format->all_types)
		return format->render(&s->profile, &s->info, f);
	profile_view(&s->profile, 0, &first);
	return format->render(&first, &s->info, f);
}

static int render_to(struct symbolizer *s, const char *what, int fd, const struct format *format)
{
	_cleanup_close_ int again = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	FILE *f = fdopen(fd, "we");
	int r = f ? 0 : -errno;

	/* One that died while it wrote has left a part of it. A pipe has no start and no end, and
	 * standard output may be a file that others write to as well. */
	if (f && !format_is_standard_output(what) && lseek(fd, 0, SEEK_SET) == 0 &&
	    ftruncate(fd, 0) < 0)
		log_debug("%s cannot be truncated: %s", what, strerror(errno));

	if (f) {
		errno = 0;
		r = render_profile(s, format, f);
		/* The stream only knows that a write failed; errno still knows why. */
		if (r == -EIO && errno)
			r = -errno;
		if (fclose(f) != 0 && r == 0)
			r = -errno;
	}
	if (r < 0) {
		log_error("%s cannot be written: %s",
			  format_is_standard_output(what) ? "standard output" : what, strerror(-r));
		/* Half of a file is none; the broker removes what it made for it. */
		if (!format_is_standard_output(what) && ftruncate(again, 0) < 0)
			log_debug("%s is left unchanged: %s", what, strerror(errno));
	}
	return r;
}

/* What the command prints. */
static int render_text(struct symbolizer *s, FILE *f)
{
	switch ((enum view_mode)s->setup.view) {
	case VIEW_REPORT:
		return render_report(&s->profile, &s->info, &s->setup.report, f);
	case VIEW_DIFF:
		return render_diff(&s->viewer.before, &s->profile, &s->setup.report, f);
	default:
		return render_summary(&s->profile, &s->info, f, s->setup.color,
				      s->setup.terminal_width);
	}
}

/* A table is all that a report is; the summary of a capture may get lost, its files are there. */
static int print_text(struct symbolizer *s)
{
	FILE *f = fdopen(TAKE_FD(s->summary_fd), "we");
	int r = f ? 0 : -errno;

	if (f) {
		errno = 0;
		r = render_text(s, f);
		if (r == -EIO && errno)
			r = -errno;
		if (fclose(f) != 0 && r == 0)
			r = -errno;
	}
	/* Nobody reading it (a closed pipe) is no failure. */
	if (r == 0 || r == -EPIPE || s->setup.view == VIEW_NONE)
		return 0;
	log_error("the table cannot be written: %s", strerror(-r));
	return r;
}

/* perfwalk debug: the file is shown as it is, there is no profile. */
static int show_debug(struct symbolizer *s)
{
	const struct setup_symbolizer *setup = &s->setup;
	FILE *f = fdopen(TAKE_FD(s->summary_fd), "we");
	int r = f ? debug_show(&s->role, (enum view_mode)setup->view, s->viewer.inputs[0].path,
			       s->viewer.inputs[0].fd, setup->has_which ? &setup->which : NULL, f)
		  : -EBADF;

	if (f)
		(void)fclose(f);
	return r;
}

/* Recorded files are read when everything else is known, and take the place of this host. */
static int view_files(struct symbolizer *s)
{
	int r;

	/* A part of the daemon's profiles may begin with any of its events. */
	if (s->setup.of_store && !s->viewer.event) {
		s->viewer.facts.like_what = "cpu";
		s->viewer.facts.like_unit = "nanoseconds";
		s->viewer.facts.like_only = true;
	}
	r = viewer_read(&s->viewer, &s->role, (enum view_mode)s->setup.view, &s->profile);

	/* Without files of its own: perf.data, from a profiler. */
	if (s->viewer.n > 0) {
		viewer_info(&s->viewer, &s->profile, &s->info);
		if (s->setup.demangle_again) {
			namer_demangle_again(s->namer, &s->profile);
			namer_demangle_again(s->namer, &s->viewer.before);
		}
	}
	s->setup.report.symbol = s->viewer.symbol;
	s->setup.report.comm = s->viewer.comm;
	s->setup.report.container = s->viewer.container;
	return r;
}

/* A profile from a file may say where it was recorded. */
static int use_facts(struct symbolizer *s)
{
	const struct profile *p = &s->profile;
	int r = 0;

	if (p->host_name != STRID_EMPTY)
		r = text_set(&s->info.host_name, profile_text(p, p->host_name));
	if (r == 0 && p->kernel_release != STRID_EMPTY)
		r = text_set(&s->info.kernel_release, profile_text(p, p->kernel_release));
	if (p->n_cpus)
		s->info.n_cpus = p->n_cpus;
	return r;
}

static int render_all(struct symbolizer *s, struct message *ret)
{
	int result = use_facts(s);

	for (uint32_t i = 0; i < s->n_outputs; i++) {
		const struct format *f = s->outputs[i].format;
		bool known = f && (s->setup.view != VIEW_DIFF || f->render_diff);
		int r = known ? format_check_values(f, s->outputs[i].path, &s->profile) : -EINVAL;

		if (r == 0)
			r = render_to(s, s->outputs[i].path, TAKE_FD(s->outputs[i].fd), f);
		if (r == 0)
			ret->result.written |= UINT32_C(1) << i;
		ret->result.output_errors[i] = r;
		result = result < 0 ? result : r;
	}
	/* Of perf.data that could not be read no window has come, and its reader has said why. */
	if (s->summary_fd >= 0 && (s->setup.view == VIEW_NONE || s->viewer.n > 0 ||
				   s->role.status->counts.windows_named > 0)) {
		int r = print_text(s);

		result = result < 0 ? result : r;
	}
	return result;
}

/* Compilers write down what they made in large pieces, the last one at their end. */
static void name_rest(struct symbolizer *s)
{
	namer_name(s->namer, &s->profile, 0);
	s->profile.counters[PROFILE_FRAMES_UNNAMED] = count_unnamed(&s->profile);
}

/*
 * Debug files that are under way at the end of a capture get a moment; of what they name, some may
 * want another one.
 */
static bool await_debug_files(struct symbolizer *s)
{
	uint64_t now = clock_monotonic_ns();

	if (!s->await_until_ns || namer_n_awaited(s->namer) != s->n_awaited)
		name_rest(s);
	s->n_awaited = namer_n_awaited(s->namer);
	if (s->n_awaited && !s->await_until_ns)
		log_info("waiting up to 5s for %u debug file%s from debuginfod", s->n_awaited,
			 s->n_awaited == 1 ? "" : "s");
	if (!s->await_until_ns)
		s->await_until_ns = now + AWAIT_NS;
	if (s->n_awaited && now >= s->await_until_ns)
		log_info("%u debug file%s did not arrive in time; some frames lack names or lines",
			 s->n_awaited, s->n_awaited == 1 ? "" : "s");
	return s->n_awaited && now < s->await_until_ns;
}

/* After STOP: all windows are in (the profiler left before us), all payloads are with the exporter.
 */
static void leave_if_done(struct symbolizer *s)
{
	struct message m = {.type = MESSAGE_RESULT};

	struct arrivals_gap gaps[STATUS_MAX_EVENTS];
	struct counted before;

	if (!s->stopping || s->profiler_sock >= 0 || loop_exiting(s->role.loop))
		return;
	arrivals_end(&s->arrivals, &s->last, gaps);
	counted_read(&before, &s->profile);
	counted_missing(&s->profile, gaps);
	counted_add_since(&s->counted, &s->profile, &before);
	counted_publish(&s->counted, &s->role.status->counts);
	s->counted = (struct counted){0};
	/* Recorded profiles have their names. */
	if (s->setup.capture && s->viewer.n == 0 && await_debug_files(s))
		return;
	if (s->setup.view == VIEW_DEBUG_SAMPLE || s->setup.view == VIEW_DEBUG_UNWIND)
		m.result.code = s->viewer.n == 1 ? show_debug(s) : -EINVAL;
	else if (s->setup.view != VIEW_NONE)
		m.result.code = view_files(s);
	if (s->setup.capture && m.result.code == 0)
		m.result.code = render_all(s, &m);
	else if (!s->setup.capture && !payloads_all_sent(s->payloads))
		return;
	(void)message_send(PROTOCOL_CONTROL_FD, &m, NULL, 0);
	loop_exit(s->role.loop, 0);
}

static void on_leave_timer(void *ctx)
{
	leave_if_done(ctx);
}

static void clear_resource(struct symbolizer *s)
{
	for (uint32_t i = 0; i < s->resource.n; i++)
		free((void *)s->resource.items[i]);
	array_clear(&s->resource);
	s->info.n_resource_attributes = 0;
}

static void use_resource(struct symbolizer *s)
{
	s->info.resource_attributes = s->resource.items;
	s->info.n_resource_attributes = s->resource.n / 2;
	if (s->info.service_name && !s->info.service_name[0]) {
		free((void *)s->info.service_name);
		s->info.service_name = NULL;
	}
}

/* True: frames that have names would have others now. */
static bool set_naming(struct symbolizer *s)
{
	bool differs = namer_set_lines(s->namer, s->setup.lines, s->setup.inlined);

	namer_set_window(s->namer, s->setup.window_ns);
	return namer_set_demangling(s->namer, s->setup.demangle) || differs;
}

/* A reload: the set-up comes again, without descriptors. */
static void reconfigure(struct symbolizer *s, const struct message *m)
{
	if (m->type == MESSAGE_SETUP && m->setup.n == sizeof(s->setup)) {
		memcpy(&s->setup, m->setup.bytes, sizeof(s->setup));
		log_set_level((enum log_level)s->setup.common.log_level);
		if (set_naming(s))
			forget_all(s);
		clear_resource(s);
	} else if (m->type == MESSAGE_TEXT && message_text_ok(m->text.text, sizeof(m->text.text))) {
		(void)on_text(s, m, -1);
	} else if (m->type == MESSAGE_START) {
		use_resource(s);
	}
}

/* The one before is dead; its last windows may still lie in its socket. */
static void use_profiler(struct symbolizer *s, int sock)
{
	if (s->profiler_sock >= 0)
		(void)role_read_messages(s->profiler_sock, INT_MAX, on_profiler_message, s);
	disconnect_profiler(s);
	arrivals_new_profiler(&s->arrivals);
	s->profiler_sock = sock;
	s->uid_base += UINT64_C(1) << UID_BASE_SHIFT;
	(void)loop_add_fd(s->role.loop, s->profiler_sock, EPOLLIN, on_profiler, s);
}

static void on_control(void *ctx, const struct message *m, int fds[2])
{
	struct symbolizer *s = ctx;

	if (m->type == MESSAGE_PEER && m->peer.peer == PEER_PROFILER) {
		use_profiler(s, TAKE_FD(fds[0]));
	} else if (m->type == MESSAGE_PEER && m->peer.peer == PEER_SCREEN) {
		(void)close_fd(s->screen_sock);
		s->screen_sock = TAKE_FD(fds[0]);
	} else if (m->type == MESSAGE_PEER && m->peer.peer == PEER_METRICS) {
		payloads_mirror(s->payloads, TAKE_FD(fds[0]));
	} else if (m->type == MESSAGE_PEER) {
		payloads_connect(s->payloads, TAKE_FD(fds[0]));
	} else if (m->type == MESSAGE_FETCHED && m->fetch.n <= sizeof(m->fetch.build_id)) {
		if (m->fetch.n == 0)
			namer_ask_again(s->namer, m->fetch.error == 0);
		else
			namer_debug_file_came(s->namer, m->fetch.build_id, m->fetch.n,
					      m->fetch.error == 0);
		leave_if_done(s);
	} else if (m->type == MESSAGE_PLACE) {
		s->last = m->place;
	} else if (m->type == MESSAGE_STOP) {
		s->stopping = true;
		loop_set_timer(s->role.loop, s->leave_timer, 0);
		leave_if_done(s);
	} else {
		reconfigure(s, m);
	}
	(void)close_fd(fds[0]);
	(void)close_fd(fds[1]);
}

/*
 * Half of all for files of programs at most, and what is left for payloads, where the host allows
 * fewer descriptors than the broker wanted for us.
 */
static void share_descriptors(const struct symbolizer *s, uint32_t *ret_files,
			      uint32_t *ret_payloads)
{
	struct rlimit l = {.rlim_cur = 0};
	uint64_t others = CODE_NAMES_MAX_DESCRIPTORS + SETUP_OTHER_DESCRIPTORS, left;

	(void)getrlimit(RLIMIT_NOFILE, &l);
	*ret_files = s->setup.max_open_files;
	if (*ret_files > l.rlim_cur / 2)
		*ret_files = (uint32_t)l.rlim_cur / 2;
	left = l.rlim_cur > *ret_files + others ? l.rlim_cur - *ret_files - others : 0;
	*ret_payloads = left > PAYLOADS_MAX   ? PAYLOADS_MAX
			: left < MIN_PAYLOADS ? MIN_PAYLOADS
					      : (uint32_t)left;
}

static int set_up(struct symbolizer *s)
{
	uint32_t max_files, max_payloads;
	int r;

	share_descriptors(s, &max_files, &max_payloads);

	s->ask.sock = PROTOCOL_ASK_FD;
	s->arrivals.expected = s->setup.place;
	s->info.version = PACKAGE_VERSION;
	s->info.host_arch = arch_here()->name;
	s->info.n_cpus = s->setup.n_cpus;
	use_resource(s);
	profile_init(&s->profile, s->setup.profile_bytes);
	if ((r = namer_new(&s->namer, &s->role, &s->ask, s->setup.symbols_bytes, max_files,
			   s->setup.view != VIEW_NONE, on_module_closed, s)) < 0 ||
	    (r = payloads_new(&s->payloads, s->role.loop, max_payloads)) < 0 ||
	    (r = s->leave_timer =
		     loop_add_timer(s->role.loop, UINT64_MAX, LEAVE_NS, on_leave_timer, s)) < 0 ||
	    (r = s->settle_timer =
		     loop_add_timer(s->role.loop, UINT64_MAX, 0, on_settle_timer, s)) < 0)
		return r;
	(void)set_naming(s);
	namer_set_kernel(s->namer, TAKE_FD(s->kallsyms_fd), TAKE_FD(s->notes_fd));
	return role_listen(&s->role, on_control, s);
}

int role_symbolizer_main(void)
{
	struct symbolizer s = {.resource = ARRAY_INIT(2 * MAX_RESOURCE),
			       .unsettled = ARRAY_INIT(MAX_UNSETTLED),
			       .summary_fd = -EBADF,
			       .kallsyms_fd = -EBADF,
			       .notes_fd = -EBADF,
			       .profiler_sock = -EBADF,
			       .screen_sock = -EBADF};
	int r;

	top_table_init(&s.table);

	r = role_start(&s.role, PEER_SYMBOLIZER, &s.setup, sizeof(s.setup), on_text, &s);
	if (r == 0)
		r = set_up(&s);
	if (r == 0)
		r = loop_run(s.role.loop);
	else
		log_error("cannot start: %s", strerror(-r));

	disconnect_profiler(&s);
	payloads_free(s.payloads);
	namer_free(s.namer);
	profile_deinit(&s.profile);
	if (s.viewer.n > 0) /* the facts are the viewer's */
		s.info.host_name = s.info.kernel_release = s.info.title = NULL;
	viewer_deinit(&s.viewer);
	clear_resource(&s);
	array_deinit(&s.resource);
	array_deinit(&s.unsettled);
	free((void *)s.info.host_name);
	free((void *)s.info.host_id);
	free((void *)s.info.kernel_release);
	free((void *)s.info.title);
	free((void *)s.info.service_name);
	for (uint32_t i = 0; i < s.n_outputs; i++) {
		free(s.outputs[i].path);
		(void)close_fd(s.outputs[i].fd);
	}
	top_table_deinit(&s.table);
	(void)close_fd(s.screen_sock);
	(void)close_fd(s.summary_fd);
	(void)close_fd(s.kallsyms_fd);
	(void)close_fd(s.notes_fd);
	loop_free(s.role.loop);
	return r == 0 ? 0 : 1;
}
