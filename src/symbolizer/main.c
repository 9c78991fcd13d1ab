/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The symbolizer takes windows, finds names, and makes either OTLP payloads (the daemon) or one
 * profile that it renders at the end (a capture). It reads untrusted symbol tables and may die of
 * them; the profiler keeps each window until the symbolizer has settled it, that is, until the
 * exporter has its payloads. windows.c handles a window, results.c the end of a capture.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "src/process/status-page.h"
#include "src/render/format.h"
#include "src/symbolizer/internal.h"
#include "symbolize/arch.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"
#include "util/text.h"

#define MIN_PAYLOADS   16
#define MAX_RESOURCE   256		     /* resource attributes */
#define AWAIT_NS       (5 * NSEC_PER_SEC)    /* of a capture's end, for debug files to come */
#define LEAVE_NS       (10 * NSEC_PER_MSEC)  /* between looks at whether all is sent */
#define SAFE_NS	       (300 * NSEC_PER_MSEC) /* from then on, if the exporter is still there */
#define MAX_UNSETTLED  4096
#define UID_BASE_SHIFT 40 /* one profiler's files: 2^40 */

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
	case TEXT_ASKED:
		return text_set(&s->info.asked, text);
	case TEXT_SERVICE_NAME:
		return text_set(&s->info.service_name, text);
	case TEXT_ALLOW:
		return text_set(&s->info.allowed_attributes, text);
	case TEXT_DENY:
		return text_set(&s->info.denied_attributes, text);
	case TEXT_REDUCED:
		return text_set(&s->info.reduced, text);
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

static void on_settle_timer(void *ctx)
{
	symbolizer_settle_sent(ctx);
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
			symbolizer_take_window(s, fds[0], m, gaps);
		symbolizer_settle(s, m->window.id);
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

	receipts_say(s->receipts, MESSAGE_MODULE_GONE, uid - s->uid_base);
}

static void leave_if_done(struct symbolizer *s);

static void disconnect_profiler(struct symbolizer *s)
{
	loop_remove_fd(s->role.loop, s->profiler_sock);
	receipts_connect(s->receipts, -EBADF);
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

/* ---- The end ---- */

/*
 * A capture waits a moment at its end for debug files that are under way. The functions they name
 * may need further ones.
 */
static bool await_debug_files(struct symbolizer *s)
{
	uint64_t now = clock_monotonic_ns();

	if (!s->await_until_ns || namer_n_awaited(s->namer) != s->n_awaited)
		symbolizer_name_rest(s);
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

/* An exporter may die with what it was sent, and the next one gets it from us alone. One whose
 * receiver is down does not settle it for long: that is not waited for. */
static bool payloads_are_safe(struct symbolizer *s)
{
	uint64_t now = clock_monotonic_ns();

	if (!payloads_all_sent(s->payloads))
		s->sent_ns = 0;
	else if (!s->sent_ns)
		s->sent_ns = now;
	return payloads_all_settled(s->payloads) || (s->sent_ns && now - s->sent_ns >= SAFE_NS);
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
	counted_missing(&s->profile, gaps, s->switches);
	counted_add_since(&s->counted, &s->profile, &before);
	counted_publish(&s->counted, &s->role.status->counts);
	s->counted = (struct counted){0};
	/* Recorded profiles have their names. */
	if (s->setup.capture && s->viewer.n == 0 && await_debug_files(s))
		return;
	if (s->setup.view >= VIEW_DEBUG_SAMPLE)
		m.result.code = s->viewer.n >= 1 ? symbolizer_show_debug(s) : -EINVAL;
	else if (s->setup.view != VIEW_NONE)
		m.result.code = symbolizer_view_files(s);
	else if (s->setup.capture)
		symbolizer_fold_idle(s);
	if (s->setup.capture && m.result.code == 0)
		m.result.code = symbolizer_render_all(s, &m);
	else if (!s->setup.capture && !payloads_are_safe(s))
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

	namer_set_window(s->namer, s->setup.window_ns, s->setup.sparing);
	return namer_set_demangling(s->namer, s->setup.demangle) || differs;
}

/* A reload: the set-up comes again, without descriptors. */
static void reconfigure(struct symbolizer *s, const struct message *m)
{
	if (m->type == MESSAGE_SETUP && m->setup.n == sizeof(s->setup)) {
		memcpy(&s->setup, m->setup.bytes, sizeof(s->setup));
		log_set_level((enum log_level)s->setup.common.log_level);
		if (set_naming(s))
			symbolizer_forget(s);
		clear_resource(s);
	} else if (m->type == MESSAGE_TEXT && message_text_ok(m->text.text, sizeof(m->text.text))) {
		(void)on_text(s, m, -1);
	} else if (m->type == MESSAGE_START) {
		use_resource(s);
	}
}

/* The previous profiler is dead; its last windows may still wait in its socket. */
static void use_profiler(struct symbolizer *s, int sock)
{
	if (s->profiler_sock >= 0)
		(void)role_read_messages(s->profiler_sock, INT_MAX, on_profiler_message, s);
	disconnect_profiler(s);
	arrivals_new_profiler(&s->arrivals);
	s->profiler_sock = sock;
	receipts_connect(s->receipts, sock);
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
		payloads_connect(s->payloads, TAKE_FD(fds[0]), m->peer.start);
	} else if (m->type == MESSAGE_FETCHED && m->fetch.n <= sizeof(m->fetch.build_id)) {
		if (m->fetch.n == 0)
			namer_ask_again(s->namer, m->fetch.error == 0);
		else
			namer_debug_file_came(s->namer, m->fetch.build_id, m->fetch.n,
					      m->fetch.error == 0);
		leave_if_done(s);
	} else if (m->type == MESSAGE_PLACE) {
		s->last = m->place;
	} else if (m->type == MESSAGE_LOST) {
		symbolizer_count_lost(s, m->lost.n_samples);
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
 * If the host allows fewer descriptors than the broker asked for, files of programs get half of
 * them at most, and payloads get the rest.
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
	left /= s->setup.keeps ? 2 : 1; /* a payload, and what the store keeps beside it */
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
	s->exported_at = arrivals_n_samples(&s->arrivals);
	s->info.version = PACKAGE_VERSION;
	s->info.host_arch = arch_here()->name;
	s->info.n_cpus = s->setup.n_cpus;
	use_resource(s);
	profile_init(&s->profile, s->setup.profile_bytes);
	if ((r = receipts_new(&s->receipts, s->role.loop)) < 0 ||
	    (r = namer_new(&s->namer, &s->role, &s->ask, s->setup.symbols_bytes, max_files,
			   s->setup.view != VIEW_NONE, on_module_closed, s)) < 0 ||
	    (r = payloads_new(&s->payloads, s->role.loop, max_payloads, &s->role.status->custody)) <
		    0 ||
	    (r = s->leave_timer =
		     loop_add_timer(s->role.loop, UINT64_MAX, LEAVE_NS, on_leave_timer, s)) < 0 ||
	    (r = s->settle_timer =
		     loop_add_timer(s->role.loop, UINT64_MAX, 0, on_settle_timer, s)) < 0)
		return r;
	s->lost = s->setup.lost_counted;
	symbolizer_count_lost(s, s->setup.lost);
	(void)set_naming(s);
	namer_set_kernel(s->namer, TAKE_FD(s->kallsyms_fd), TAKE_FD(s->notes_fd));
	return role_listen(&s->role, on_control, s);
}

static void init(struct symbolizer *s)
{
	*s = (struct symbolizer){.resource = ARRAY_INIT(2 * MAX_RESOURCE),
				 .unsettled = ARRAY_INIT(MAX_UNSETTLED),
				 .summary_fd = -EBADF,
				 .kallsyms_fd = -EBADF,
				 .notes_fd = -EBADF,
				 .profiler_sock = -EBADF,
				 .screen_sock = -EBADF};
	top_table_init(&s->table);
}

static void deinit(struct symbolizer *s)
{
	if (s->receipts)
		disconnect_profiler(s);
	payloads_free(s->payloads);
	namer_free(s->namer);
	receipts_free(s->receipts);
	profile_deinit(&s->profile);
	if (s->viewer.n > 0) /* the facts are the viewer's */
		s->info.host_name = s->info.kernel_release = s->info.title = NULL;
	viewer_deinit(&s->viewer);
	clear_resource(s);
	array_deinit(&s->resource);
	array_deinit(&s->unsettled);
	free((void *)s->info.host_name);
	free((void *)s->info.host_id);
	free((void *)s->info.allowed_attributes);
	free((void *)s->info.denied_attributes);
	free((void *)s->info.kernel_release);
	free((void *)s->info.title);
	free((void *)s->info.asked);
	free((void *)s->info.service_name);
	free((void *)s->info.reduced);
	for (uint32_t i = 0; i < s->n_outputs; i++) {
		free(s->outputs[i].path);
		(void)close_fd(s->outputs[i].fd);
	}
	top_table_deinit(&s->table);
	(void)close_fd(s->screen_sock);
	(void)close_fd(s->summary_fd);
	(void)close_fd(s->kallsyms_fd);
	(void)close_fd(s->notes_fd);
	loop_free(s->role.loop);
}

/* The state is not on the stack: a small copy of it shows where an idle symbolizer waits. */
int role_symbolizer_main(void)
{
	struct symbolizer *s = malloc(sizeof(*s));
	int r;

	if (!s)
		return 1;
	init(s);
	r = role_start(&s->role, PEER_SYMBOLIZER, &s->setup, sizeof(s->setup), on_text, s);
	s->switches = s->setup.switches;
	if (r == 0)
		r = set_up(s);
	if (r == 0)
		r = loop_run(s->role.loop);
	else
		log_error("cannot start: %s", strerror(-r));
	deinit(s);
	free(s);
	return r == 0 ? 0 : 1;
}
