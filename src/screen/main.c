/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The screen of perfwalk top: tables of the symbolizer's in, lines of text out. It shows names that
 * strangers chose, so it is a child without privileges like the others.
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
	struct top_model model;
	const struct top_table *sum; /* what is shown; it stays while paused */
	struct top_ui ui;
	struct top_facts facts;
	char host[256];
	struct {
		uint64_t cpu_ns, at_ns;
	} load;
	int symbolizer_sock;
	uint32_t n_tables;
};

static int on_text(void *ctx, const struct message *m, int fd)
{
	struct screen *s = ctx;

	(void)close_fd(fd);
	if (m->text.kind == TEXT_HOST_NAME)
		(void)text_clean(s->host, sizeof(s->host), m->text.text, SIZE_MAX);
	return 0;
}

/* The user wants no more, nobody reads it, or (code -errno) it cannot be: the broker ends all. */
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
	(void)printf("%s%s\n", s->n_tables > 1 ? "\n" : "", line);
	top_layout_status(line, width, &s->facts, sum);
	(void)puts(line);
	top_layout_scope(line, width, &s->ui.view, sum);
	(void)printf("%s\n\n", line);
	top_layout_head(line, width, &s->ui.view);
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
		/* The next key is about what this one shows. */
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
		return 0; /* until told to leave */
	}
	terminal_draw(&s->ui, &s->facts);
	return loop_add_fd(s->role.loop, STDIN_FILENO, EPOLLIN, on_keys, s);
}

/* ---- What comes in ---- */

static void show(struct screen *s, const struct top_table *t)
{
	if (s->ui.paused)
		return;
	s->sum = top_model_slide(&s->model, t->end_ns, s->setup.window_ns);
	if (s->setup.batch) {
		print_batch(s, s->sum);
		return;
	}
	top_ui_update(&s->ui, s->sum);
	terminal_draw(&s->ui, &s->facts);
}

static void take_table(struct screen *s, int fd)
{
	struct top_table *t;
	int r;

	if (s->setup.iterations && s->n_tables >= s->setup.iterations)
		return;
	t = top_model_begin(&s->model, 0, 0);
	r = top_table_read(t, fd);
	if (r < 0) {
		log_warning("a table of the symbolizer's cannot be read: %s", strerror(-r));
		top_table_clear(t);
		return;
	}
	s->n_tables++;
	show(s, t);
	if (s->n_tables == s->setup.iterations)
		say_done(0);
}

static void on_table(void *ctx, const struct message *m, int fds[2])
{
	if (m->type == MESSAGE_TABLE)
		take_table(ctx, fds[0]);
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

	/* Less than before: one of the processes is a new one. */
	if (s->load.at_ns && cpu >= s->load.cpu_ns && now > s->load.at_ns)
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

	/* Not killed with the broker: the terminal is to be left as it was. The control socket
	 * tells that the broker is gone. */
	(void)prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
	s->ui.view.kind =
		s->setup.view < TOP_VIEW_N ? (enum top_view_kind)s->setup.view : TOP_VIEW_FUNCTIONS;
	s->ui.view.confidence = s->setup.confidence;
	s->ui.view.sort = s->setup.sort == TOP_SORT_TOTAL ? TOP_SORT_TOTAL : TOP_SORT_SELF;
	s->facts.host = s->host;
	s->facts.rate_hz = s->setup.rate_hz;
	s->facts.n_cpus = s->setup.n_cpus;
	s->facts.window_ns = s->setup.window_ns;
	s->sum = &s->model.sum;
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

	top_model_init(&s.model);
	top_ui_init(&s.ui);
	r = role_start(&s.role, PEER_SCREEN, &s.setup, sizeof(s.setup), on_text, &s);
	if (r == 0)
		r = set_up(&s);
	if (r == 0)
		r = loop_run(s.role.loop);
	terminal_close();
	disconnect_symbolizer(&s);
	top_ui_deinit(&s.ui);
	top_model_deinit(&s.model);
	loop_free(s.role.loop);
	return r == 0 ? 0 : 1;
}
