/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfwalk top: the broker with a screen in the exporter's place. Whatever becomes of the screen,
 * the terminal is put back here.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/broker/broker.h"
#include "src/cmd/cmd.h"
#include "src/cmd/record.h"
#include "src/cmd/session.h"
#include "src/screen/setup.h"
#include "src/screen/terminal.h"
#include "src/screen/view.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"
#include "util/memory-file.h"

#define DEFAULT_HZ	 99
#define MAX_HZ		 10000
#define DEFAULT_WINDOW	 (10 * NSEC_PER_SEC)
#define DEFAULT_INTERVAL (2 * NSEC_PER_SEC)
#define MIN_INTERVAL	 (100 * NSEC_PER_MSEC)
#define MAX_INTERVAL	 (600 * NSEC_PER_SEC)
#define STACK_BYTES	 (32u << 10)
#define PIPE_WIDTH	 512	     /* columns of a line when nobody looks at a terminal */
#define MAX_LOG		 (256 << 10) /* bytes of it that are kept */
#define STOP_NS		 (2 * NSEC_PER_SEC)

/* Those of objects come besides, and wall time in the place of switches. */
_Static_assert(SCREEN_MAX_EVENTS == SAMPLE_MAX_EVENTS + 2, "the screen has room for all");

struct top_run {
	struct config *config;
	struct session session;
	struct broker *broker;
	struct setup_screen screen;
	pid_t pids[OPTIONS_MAX_IDS];
	size_t n_pids;
	struct record_options events; /* of -e and the options for types, and nothing else */
	const char *type;	      /* of --type; NULL: what was asked for first */
	uint64_t rate_hz, interval_ns;
	int log_fd, stderr_fd; /* while curses has the terminal; else -1 */
};

enum {
	OPT_PID,
	OPT_EVENT,
	OPT_ALLOC,
	OPT_MEMORY,
	OPT_OFF_CPU,
	OPT_LOCKS,
	OPT_WALL,
	OPT_IDLE,
	OPT_TYPE,
	OPT_FREQ,
	OPT_INTERVAL,
	OPT_WINDOW,
	OPT_VIEW,
	OPT_SORT,
	OPT_ITERATIONS,
	OPT_NO_COLOR
};

static const struct option_spec option_table[] = {
	{'p', "pid", "PID[,PID...]", "only these processes, with their threads and children",
	 OPT_PID},
	{'e', "event", "EVENT[,EVENT...]",
	 "what to count instead of CPU time (repeatable); key e shows the next", OPT_EVENT},
	{0, "off-cpu", NULL, "also how long threads are blocked, where, and what for", OPT_OFF_CPU},
	{0, "locks", NULL, "like --off-cpu, and which locks they wait for", OPT_LOCKS},
	{0, "wall", NULL, "also all time of each thread", OPT_WALL},
	{0, "idle", NULL, "off-CPU and wall time also of threads that only wait for work",
	 OPT_IDLE},
	{0, "alloc", NULL,
	 "memory allocated, and in use now, by programs with the allocation library, Go and Java",
	 OPT_ALLOC},
	{0, "memory", NULL, "where memory grows, in bytes", OPT_MEMORY},
	{0, "type", "NAME",
	 "start with this type, if there are several; with --batch only this one", OPT_TYPE},
	{'F', "freq", "HZ", "samples a second on each CPU; default 99", OPT_FREQ},
	{'d', "interval", "TIME", "time between refreshes: 500ms, 2s (the default)", OPT_INTERVAL},
	{0, "window", "TIME", "length of time that a table covers; default 10s", OPT_WINDOW},
	{0, "view", "VIEW", "start with functions (the default), processes, containers or tree",
	 OPT_VIEW},
	{0, "sort", "KEY", "start sorted by self (the default) or total", OPT_SORT},
	{0, "confidence", NULL, "start with the 95% interval of each share",
	 OPTION_FLAG(struct top_run, screen.confidence)},
	{0, "no-native-frames", NULL,
	 "start without an interpreter's own functions where the program's are known",
	 OPTION_FLAG(struct top_run, screen.no_native)},
	{'b', "batch", NULL, "print tables to standard output, without a terminal",
	 OPTION_FLAG(struct top_run, screen.batch)},
	{'n', "iterations", "N", "exit after N refreshes", OPT_ITERATIONS},
	{0, "no-color", NULL, "no colours; the variable NO_COLOR does the same", OPT_NO_COLOR},
};

static const char *const sort_keys[] = {[TOP_SORT_SELF] = "self", [TOP_SORT_TOTAL] = "total"};

static const char *value_of(int id, unsigned int i)
{
	if (id == OPT_VIEW && i < TOP_VIEW_N)
		return top_view_name((enum top_view_kind)i);
	if (id == OPT_EVENT)
		return sample_event_known(i);
	return id == OPT_SORT && i < ARRAY_SIZE(sort_keys) ? sort_keys[i] : NULL;
}

const struct command top_command = {
	.name = "top",
	.usage = "top [-p PID[,PID...]] [-e EVENT[,EVENT...]] [-F HZ] [-d TIME] [--window TIME] "
		 "[--batch] [-n N]",
	.summary = "show live where this host spends its CPU time",
	.options = option_table,
	.n_options = ARRAY_SIZE(option_table),
	.value = value_of,
	.epilog = "Keys: 1 functions, 2 processes, 3 containers, 4 tree, s self or total,\n"
		  "e next event, c 95% intervals of shares, i without native functions of\n"
		  "interpreters, / filter, space pause, enter the functions of a process or\n"
		  "container, right and left open and close nodes of the tree, esc back,\n"
		  "? help, q quit.\n"
		  "\n"
		  "Examples:\n"
		  "  perfwalk top\n"
		  "  perfwalk top -p 1234 -d 1\n"
		  "  perfwalk top --batch -n 1 -e page-faults,cpu-clock\n"
		  "  perfwalk top --batch -n 1 --view processes\n"
		  "  perfwalk top --off-cpu --type off_cpu\n"
		  "  perfwalk top --batch -n 1 --alloc --type inuse_space\n",
};

/* ---- Options ---- */

static int parse_time(const char *option, const char *value, uint64_t *ret_ns)
{
	uint64_t ns;

	if (text_parse_duration_ns(value, &ns) < 0 || ns < MIN_INTERVAL || ns > MAX_INTERVAL)
		return options_complain(&top_command, option, value,
					"a time from 100ms to 10m, like 2, 2s or 500ms");
	*ret_ns = ns;
	return 0;
}

static int parse_view(struct top_run *t, const char *value)
{
	for (uint32_t i = 0; i < TOP_VIEW_N; i++) {
		if (strcmp(value, top_view_name((enum top_view_kind)i)) == 0) {
			t->screen.view = i;
			return 0;
		}
	}
	return options_complain(&top_command, "--view", value,
				"functions, processes, containers or tree");
}

static int parse_sort(struct top_run *t, const char *value)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(sort_keys); i++) {
		if (strcmp(value, sort_keys[i]) == 0) {
			t->screen.sort = i;
			return 0;
		}
	}
	return options_complain(&top_command, "--sort", value, "self or total");
}

/* What there are tables of. */
static int add_types(struct top_run *t, int id, const char *value)
{
	switch (id) {
	case OPT_EVENT:
		t->events.events_given = true;
		return record_events_parse(&t->events, value);
	case OPT_ALLOC:
		record_ask_for(&t->events, "alloc_space");
		return record_add_allocations(&t->events);
	case OPT_MEMORY:
		record_ask_for(&t->events, "memory_growth");
		return record_add_memory_growth(&t->events);
	default:
		record_ask_for(&t->events, id == OPT_WALL ? "wall" : "off_cpu");
		t->events.off_cpu = true;
		t->events.locks |= id == OPT_LOCKS;
		t->events.wall |= id == OPT_WALL;
		return 0;
	}
}

static int on_option(void *ctx, int id, const char *value)
{
	struct top_run *t = ctx;
	uint64_t n;

	switch (id) {
	case OPT_PID:
		return options_parse_ids(&top_command, "-p", value, t->pids, &t->n_pids);
	case OPT_EVENT:
	case OPT_ALLOC:
	case OPT_MEMORY:
	case OPT_OFF_CPU:
	case OPT_LOCKS:
	case OPT_WALL:
		return add_types(t, id, value);
	case OPT_IDLE:
		t->config->off_cpu_idle = true;
		return 0;
	case OPT_TYPE:
		t->type = value;
		return 0;
	case OPT_FREQ:
		if (text_parse_u64(value, 1, MAX_HZ, &t->rate_hz) < 0)
			return options_complain(
				&top_command, "-F", value,
				"expected a number of samples a second, from 1 to 10000");
		t->events.rate_hz = t->rate_hz;
		return 0;
	case OPT_INTERVAL:
		return parse_time("-d", value, &t->interval_ns);
	case OPT_WINDOW:
		return parse_time("--window", value, &t->screen.window_ns);
	case OPT_VIEW:
		return parse_view(t, value);
	case OPT_SORT:
		return parse_sort(t, value);
	case OPT_ITERATIONS:
		if (text_parse_u64(value, 1, UINT32_MAX, &n) < 0)
			return options_complain(&top_command, "-n", value,
						"expected a number of refreshes, at least 1");
		t->screen.iterations = (uint32_t)n;
		return 0;
	default:
		t->screen.color = false;
		return 0;
	}
}

static int add_type(struct top_run *t, const char *name)
{
	if (t->screen.n_events == SCREEN_MAX_EVENTS)
		return options_refuse(&top_command, "too many types: 8 at most");
	(void)snprintf(t->screen.events[t->screen.n_events++], sizeof(t->screen.events[0]), "%s",
		       name);
	return 0;
}

/* The type of each table. Shares are shares of samples, so all samples must represent the same
 * amount, or have a value. */
static int name_type(struct top_run *t, const struct broker_event *e)
{
	char text[sizeof(t->screen.events[0])];

	if (e->use == SAMPLE_USE_SWITCHES) /* what off_cpu is made of */
		return 0;
	if (e->use != SAMPLE_USE_EVENT)
		return add_type(t, e->event.name);
	if (e->event.name[0] && !e->period && !sample_event_is_time(&e->event))
		return options_complain(&top_command, "-e", e->event.name,
					"top counts samples, so each must stand for the same "
					"number of events: add a period, as in "
					"page-faults/period=10/ or cycles/period=1000000/");
	if (e->event.name[0])
		(void)record_describe_event(e, text, sizeof(text));
	else
		(void)snprintf(text, sizeof(text), "cpu at %u Hz", e->rate_hz);
	return add_type(t, text);
}

/* By the beginning of what stands in the title. */
static bool find_type(struct top_run *t, const char *name)
{
	for (uint32_t i = 0; i < t->screen.n_events; i++) {
		if (strncmp(t->screen.events[i], name, strlen(name)) == 0) {
			t->screen.event = i;
			return true;
		}
	}
	return false;
}

static int choose_type(struct top_run *t)
{
	t->screen.one_event = t->type != NULL;
	if (!t->type)
		(void)find_type(t, t->events.asked ? t->events.asked : "");
	else if (!find_type(t, t->type))
		return options_complain(&top_command, "--type", t->type,
					"there is no table of it: one of -e, cpu, off_cpu "
					"(--off-cpu), lock_wakeups (--locks), wall (--wall), "
					"memory_growth (--memory), alloc_space, inuse_space, "
					"alloc_objects or inuse_objects (--alloc)");
	return 0;
}

/* Those behind the types of events, in their order. */
static int add_more_types(struct top_run *t)
{
	int r = 0;

	if (t->events.allocations)
		r = add_type(t, "alloc_objects");
	if (r == 0 && t->events.allocations)
		r = add_type(t, "inuse_objects");
	return r == 0 && t->events.wall ? add_type(t, "wall") : r;
}

static int check_events(struct top_run *t)
{
	int r = 0;

	if (t->events.n_events == 0 && !t->events.off_cpu && !t->type)
		return 0;
	if (record_events_check(&t->events) < 0 ||
	    (t->events.off_cpu && record_add_off_cpu(&t->events, t->n_pids > 0) < 0))
		return -EINVAL;
	for (uint32_t i = 0; i < t->events.n_events && r == 0; i++)
		r = name_type(t, &t->events.events[i]);
	if (r == 0)
		r = add_more_types(t);
	return r == 0 ? choose_type(t) : r;
}

static int check_options(struct top_run *t)
{
	if (check_events(t) < 0)
		return -EINVAL;
	if (t->screen.window_ns < t->interval_ns)
		return options_refuse(
			&top_command,
			"--window is shorter than the interval (-d): samples between two "
			"refreshes would never be shown");
	if (t->screen.window_ns / t->interval_ns >= TOP_MAX_INTERVALS)
		return options_refuse(
			&top_command,
			"--window is more than 63 intervals (-d): choose a shorter window or "
			"a longer interval");
	if (t->screen.batch)
		return 0;
	if (!terminal_supported())
		return options_refuse(&top_command,
				      "this perfwalk was built without ncurses, use --batch");
	if (!terminal_get(&t->screen.termios))
		return options_refuse(
			&top_command,
			"standard input and output are no terminal; use --batch for a pipe "
			"or a file");
	return 0;
}

static int parse(struct top_run *t, int argc, char **argv)
{
	int first = argc, r;

	r = options_parse(&top_command, argc, argv, on_option, t, &first);
	if (r == 0)
		r = options_end(&top_command, argc, argv, first);
	return r != 0 ? r : check_options(t);
}

/* ---- The terminal ---- */

/* Messages would spoil the screen while curses has the terminal: they are kept and printed at the
 * end. */
static void hold_log(struct top_run *t)
{
	int fd = t->screen.batch || !isatty(STDERR_FILENO) ? -1 : memory_file_new("perfwalk-log");

	if (fd < 0 || fcntl(fd, F_SETFL, O_APPEND) < 0) {
		(void)close_fd(fd);
		return;
	}
	t->log_fd = fd;
	t->stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	(void)dup2(fd, STDERR_FILENO);
}

static void tell_log(struct top_run *t)
{
	char text[4096];
	off_t at = 0;
	ssize_t n;

	if (t->log_fd < 0)
		return;
	(void)dup2(t->stderr_fd, STDERR_FILENO);
	while ((n = pread(t->log_fd, text, sizeof(text), at)) > 0) {
		if (write(STDERR_FILENO, text, (size_t)n) < 0)
			break;
		at += n;
	}
	t->log_fd = close_fd(t->log_fd);
	t->stderr_fd = close_fd(t->stderr_fd);
}

/* ---- While it runs ---- */

static void on_load_timer(void *ctx)
{
	struct top_run *t = ctx;
	struct message m = {.type = MESSAGE_LOAD};

	broker_load(t->broker, &m.load.cpu_ns, &m.load.rss_bytes);
	broker_tell_screen(t->broker, &m);
	if (t->log_fd >= 0 && lseek(t->log_fd, 0, SEEK_END) > MAX_LOG &&
	    ftruncate(t->log_fd, 0) < 0)
		log_debug("the kept log grows: %s", strerror(errno));
	if (broker_targets_gone(t->broker)) {
		log_info("the last of the given processes has ended");
		broker_stop(t->broker);
	}
}

static void on_signal(void *ctx, const struct signalfd_siginfo *s)
{
	struct top_run *t = ctx;

	if (s->ssi_signo == SIGCHLD)
		broker_reap(t->broker);
	else if (s->ssi_signo == SIGWINCH)
		broker_tell_screen(t->broker, &(struct message){.type = MESSAGE_RESIZE});
	else
		broker_stop(t->broker);
}

static void fill_config(struct top_run *t)
{
	struct config *c = t->config;

	c->stack_size_bytes = STACK_BYTES;
	c->source_lines = false;
	c->inline_frames = true;
	t->screen.rate_hz = (uint32_t)t->rate_hz;
}

static int run(struct top_run *t)
{
	static const int more[] = {SIGQUIT, SIGWINCH, 0};
	struct broker_options o = {
		.config = t->config,
		.screen = &t->screen,
		.interval_ns = t->interval_ns,
		.events = {{.rate_hz = (uint32_t)t->rate_hz}},
		.n_events = 1,
		.pids = t->pids,
		.n_pids = t->n_pids,
		.stop_deadline_ns = STOP_NS,
		.summary_fd = -1,
		.done = session_end,
		.ctx = &t->session,
	};
	int r;

	if (t->events.n_events > 0) {
		memcpy(o.events, t->events.events, sizeof(o.events));
		o.n_events = t->events.n_events;
	}
	if (!t->screen.batch) {
		/* The screen goes on while we would stop, or could not put back the terminal. */
		(void)signal(SIGTSTP, SIG_IGN);
		(void)signal(SIGTTOU, SIG_IGN);
	}
	if ((r = session_open(&t->session, more, on_signal, t)) < 0 ||
	    (r = broker_new(&t->broker, t->session.loop, &o)) < 0 ||
	    (r = broker_enable(t->broker)) < 0)
		return r;
	(void)loop_add_timer(t->session.loop, t->interval_ns / 2, t->interval_ns, on_load_timer, t);
	return session_run(&t->session);
}

static uint32_t batch_width(void)
{
	struct winsize w;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col >= 40 ? w.ws_col : PIPE_WIDTH;
}

int top_main(int argc, char **argv)
{
	static struct top_run t = {.session = SESSION_INIT,
				   .log_fd = -EBADF,
				   .stderr_fd = -EBADF,
				   .rate_hz = DEFAULT_HZ,
				   .interval_ns = DEFAULT_INTERVAL,
				   .events = {.command = &top_command},
				   .screen = {.window_ns = DEFAULT_WINDOW}};
	int r;

	t.screen.color = !getenv("NO_COLOR");
	t.screen.width = batch_width();
	if (config_load(&t.config, NULL, false, stderr) < 0)
		return EXIT_CODE_FAILURE;
	t.events.config = t.config;
	r = parse(&t, argc, argv);
	if (r != 0) {
		config_free(t.config);
		return r > 0 ? EXIT_CODE_OK : EXIT_CODE_USAGE;
	}
	fill_config(&t);
	hold_log(&t);
	r = run(&t);
	broker_free(t.broker);
	if (!t.screen.batch)
		terminal_restore(&t.screen.termios);
	tell_log(&t);
	session_close(&t.session);
	config_free(t.config);
	return r < 0 ? exit_code_of(r) : EXIT_CODE_OK;
}
