/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The screen of perfwalk top: reads tables from the symbolizer, prints lines of text. It handles
 * untrusted names, so it is a child without privileges like the others.
 */
#include "config.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "src/process/role.h"
#include "src/screen/layout.h"
#include "src/screen/setup.h"
#include "src/screen/terminal.h"
#include "src/screen/wire.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"
#include "util/text.h"

struct screen {
	struct role role;
	struct setup_screen setup;
	struct top_model models[SCREEN_MAX_EVENTS]; /* of each event */
	const struct top_table *sum;		    /* the shown sum; unchanged during a pause */
	struct top_ui ui;
	struct top_facts facts;
	char host[256];
	struct {
		uint64_t cpu_ns, at_ns; /* at first none, and when it began */
	} load;
	int symbolizer_sock;
	uint32_t n_refreshes;
	bool printed; /* a batch: some table */
};

static int on_text(void *ctx, const struct message *m, int fd)
{
	struct screen *s = ctx;

	(void)close_fd(fd);
	if (m->text.kind == TEXT_HOST_NAME)
		(void)text_clean(s->host, sizeof(s->host), m->text.text, SIZE_MAX);
	return 0;
}

/* The user quit, the output was closed, or (code -errno) it failed: the broker ends all. */
static void say_done(int code)
{
	struct message m = {.type = MESSAGE_RESULT};

	m.result.code = code;
	(void)message_send(PROTOCOL_CONTROL_FD, &m, NULL, 0);
}

/* ---- Batch ---- */

static bool nothing_of(const struct top_view *v, const struct top_row *r)
{
	return v->sort == TOP_SORT_SELF && v->kind != TOP_VIEW_TREE ? r->self == 0 : r->total == 0;
}

static void print_batch(struct screen *s, const struct top_table *sum)
{
	unsigned int width = s->setup.width;
	char line[TOP_LINE_MAX];

	top_ui_update(&s->ui, sum);
	top_layout_title(line, width, &s->facts, sum);
	(void)printf("%s%s\n", s->printed ? "\n" : "", line);
	s->printed = true;
	top_layout_status(line, width, &s->facts, sum);
	(void)puts(line);
	top_layout_scope(line, width, &s->ui.view, sum);
	(void)printf("%s\n\n", line);
	top_layout_head(line, width, &s->ui.view, sum);
	(void)puts(line);
	for (uint32_t i = 0; i < s->ui.shown.rows.n; i++) {
		if (nothing_of(&s->ui.view, &s->ui.shown.rows.items[i]))
			break;
		top_layout_row(line, width, &s->ui.view, &s->ui.shown, i);
		(void)puts(line);
	}
	if (fflush(stdout) != 0)
		say_done(0);
}

/* ---- The terminal ---- */

static void show_event(struct screen *s, uint32_t event)
{
	s->sum = &s->models[event].sum;
	s->facts.event = s->setup.n_events ? s->setup.events[event] : NULL;
}

static void on_keys(void *ctx, int fd, uint32_t events)
{
	struct screen *s = ctx;
	int key;

	while ((key = terminal_key()) >= 0) {
		if (!top_ui_key(&s->ui, key)) {
			terminal_close();
			loop_remove_fd(s->role.loop, fd);
			say_done(0);
			return;
		}
		/* The next key refers to what this one shows. */
		show_event(s, s->ui.event);
		top_ui_update(&s->ui, s->sum);
	}
	/* The terminal is gone. */
	if (events & (EPOLLHUP | EPOLLERR)) {
		loop_remove_fd(s->role.loop, fd);
		say_done(0);
	}
	terminal_draw(&s->ui, &s->facts);
}

static int open_terminal(struct screen *s)
{
	const char *type = getenv("TERM");
	int r = terminal_open(&s->setup.termios, s->setup.color);

	if (r < 0) {
		log_error("a terminal of type \"%s\" cannot show the screen; set TERM, install its "
			  "terminfo entry (ncurses-term), or use --batch",
			  type ? type : "");
		say_done(r);
		return 0; /* until the broker says stop */
	}
	terminal_draw(&s->ui, &s->facts);
	return loop_add_fd(s->role.loop, STDIN_FILENO, EPOLLIN, on_keys, s);
}

/* ---- What comes in ---- */

static uint32_t n_events(const struct screen *s)
{
	return s->setup.n_events ? s->setup.n_events : 1;
}

/* With the last table of a window: all of them, from the first that is to be shown on. */
static void print_tables(struct screen *s, uint32_t event)
{
	uint32_t n = n_events(s);

	for (uint32_t i = 0; i < n && event == n - 1; i++) {
		show_event(s, (s->setup.event + i) % n);
		print_batch(s, s->sum);
		if (s->setup.one_event)
			return;
	}
}

static void show(struct screen *s, uint32_t event, const struct top_table *t)
{
	if (s->ui.paused)
		return;
	(void)top_model_slide(&s->models[event], t->end_ns, s->setup.window_ns);
	if (s->setup.batch) {
		print_tables(s, event);
		return;
	}
	if (event != s->ui.event)
		return;
	top_ui_update(&s->ui, s->sum);
	terminal_draw(&s->ui, &s->facts);
}

static void take_table(struct screen *s, uint64_t event, int fd)
{
	uint32_t n_wanted = s->setup.iterations;
	struct top_table *t;
	int r;

	if (event >= n_events(s) || (n_wanted && s->n_refreshes >= n_wanted))
		return;
	t = top_model_begin(&s->models[event], 0, 0);
	r = top_table_read(t, fd);
	if (r < 0) {
		log_warning("a table of the symbolizer's cannot be read: %s", strerror(-r));
		top_table_clear(t);
		return;
	}
	show(s, (uint32_t)event, t);
	if (event + 1 == n_events(s) && ++s->n_refreshes == n_wanted)
		say_done(0);
}

static void on_table(void *ctx, const struct message *m, int fds[2])
{
	if (m->type == MESSAGE_TABLE)
		take_table(ctx, m->item.id, fds[0]);
	(void)close_fd(fds[0]);
	(void)close_fd(fds[1]);
}

static void disconnect_symbolizer(struct screen *s)
{
	loop_remove_fd(s->role.loop, s->symbolizer_sock);
	s->symbolizer_sock = close_fd(s->symbolizer_sock);
}

static void on_symbolizer(void *ctx, int fd, uint32_t events)
{
	struct screen *s = ctx;

	if (role_drain_socket(fd, on_table, s) < 0)
		disconnect_symbolizer(s);
}

static void take_load(struct screen *s, const struct message *m)
{
	uint64_t now = clock_monotonic_ns(), cpu = m->load.cpu_ns;

	if (cpu >= s->load.cpu_ns && now > s->load.at_ns)
		s->facts.own_cpu =
			100.0 * (double)(cpu - s->load.cpu_ns) / (double)(now - s->load.at_ns);
	s->facts.own_rss_bytes = m->load.rss_bytes;
	s->load.cpu_ns = cpu;
	s->load.at_ns = now;
}

static void on_control(void *ctx, const struct message *m, int fds[2])
{
	struct screen *s = ctx;

	switch (m->type) {
	case MESSAGE_PEER:
		disconnect_symbolizer(s);
		s->symbolizer_sock = TAKE_FD(fds[0]);
		(void)loop_add_fd(s->role.loop, s->symbolizer_sock, EPOLLIN, on_symbolizer, s);
		break;
	case MESSAGE_LOAD:
		take_load(s, m);
		break;
	case MESSAGE_RESIZE:
		terminal_resize();
		terminal_draw(&s->ui, &s->facts);
		break;
	case MESSAGE_STOP:
		loop_exit(s->role.loop, 0);
		break;
	default:
		break;
	}
	(void)close_fd(fds[0]);
	(void)close_fd(fds[1]);
}

static int set_up(struct screen *s)
{
	int r = 0;

	/* Do not die with the broker, so that the terminal can be restored. The control socket
	 * shows that the broker is gone. */
	(void)prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
	s->ui.view.kind =
		s->setup.view < TOP_VIEW_N ? (enum top_view_kind)s->setup.view : TOP_VIEW_FUNCTIONS;
	s->ui.view.confidence = s->setup.confidence;
	s->ui.view.no_native = s->setup.no_native;
	s->ui.view.sort = s->setup.sort == TOP_SORT_TOTAL ? TOP_SORT_TOTAL : TOP_SORT_SELF;
	s->facts.host = s->host;
	s->facts.rate_hz = s->setup.rate_hz;
	s->facts.n_cpus = s->setup.n_cpus;
	s->facts.window_ns = s->setup.window_ns;
	if (s->setup.n_events > SCREEN_MAX_EVENTS)
		return -EBADMSG;
	s->ui.n_events = s->setup.n_events;
	s->ui.event = s->setup.event < n_events(s) ? s->setup.event : 0;
	show_event(s, s->ui.event);
	s->ui.view.all_open = s->setup.batch;
	if (s->setup.batch)
		(void)setlocale(LC_CTYPE, "C.UTF-8");
	else
		r = open_terminal(s);
	return r < 0 ? r : role_listen(&s->role, on_control, s);
}

int role_screen_main(void)
{
	static struct screen s = {.symbolizer_sock = -EBADF};
	int r;

	for (uint32_t i = 0; i < SCREEN_MAX_EVENTS; i++)
		top_model_init(&s.models[i]);
	top_ui_init(&s.ui);
	s.load.at_ns = clock_monotonic_ns();
	r = role_start(&s.role, PEER_SCREEN, &s.setup, sizeof(s.setup), on_text, &s);
	if (r == 0)
		r = set_up(&s);
	if (r == 0)
		r = loop_run(s.role.loop);
	terminal_close();
	disconnect_symbolizer(&s);
	top_ui_deinit(&s.ui);
	for (uint32_t i = 0; i < SCREEN_MAX_EVENTS; i++)
		top_model_deinit(&s.models[i]);
	loop_free(s.role.loop);
	return r == 0 ? 0 : 1;
}
