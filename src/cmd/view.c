/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfwalk convert, report and diff: recorded files to outputs and tables (debug.c runs this too).
 *
 * This process opens the files; a symbolizer without privileges reads them and renders, so that a
 * file made to break its reader breaks nothing else.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/broker/limits.h"
#include "src/broker/supervisor.h"
#include "src/cmd/cmd.h"
#include "src/cmd/view-perf-data.h"
#include "src/cmd/view.h"
#include "src/config/config.h"
#include "src/process/sandbox.h"
#include "src/store/stored.h"
#include "src/symbolizer/setup.h"
#include "util/clock.h"
#include "util/log.h"

#define PROFILE_BYTES	(UINT64_C(2) << 30)
#define FILE_TIMEOUT_NS (120 * NSEC_PER_SEC)
#define DEFAULT_WIDTH	100
#define STORE_MAX_BYTES (UINT64_C(1) << 30)

/* The daemon's config knows where; one that cannot be read says nothing. */
char *view_find_store(void)
{
	_cleanup_(config_freep) struct config *c = NULL;
	FILE *quiet = fopen("/dev/null", "we");
	char *path = NULL;

	if (quiet && config_exists(CONFIG_DEFAULT_FILE) &&
	    config_load(&c, CONFIG_DEFAULT_FILE, false, quiet) == 0 && c->store_path)
		path = strdup(c->store_path);
	if (quiet)
		(void)fclose(quiet);
	return path ? path : strdup(CONFIG_DEFAULT_STORE);
}

void view_say_store(const char *path, int e)
{
	if (e == -ENOENT && stored_in_use(path))
		log_error("%s has no profile of that time yet: the daemon keeps one at the end of "
			  "each reporter_interval (10s by default); wait for the first, or end the "
			  "interval now with perfwalk ctl flush",
			  path);
	else if (e == -ENOENT)
		log_error("%s has no profile of that time; perfwalk run keeps profiles there if "
			  "its config has no [export:NAME], or has [store] enabled = yes",
			  path);
	else if (e == -EFBIG)
		log_error("%s holds more than 1 GiB for that time: choose a shorter one", path);
	else
		log_error("%s cannot be read: %s", path, strerror(-e));
}

static int open_store(struct view *v)
{
	_cleanup_free_ char *found = v->store ? NULL : view_find_store();
	const char *path = v->store ? v->store : found;
	uint64_t now = clock_realtime_ns();
	uint32_t n;
	int fd;

	if (!path)
		return -ENOMEM;
	fd = stored_open(path, now > v->last_ns ? now - v->last_ns : 0, STORE_MAX_BYTES, &n);
	if (fd < 0) {
		view_say_store(path, fd);
		return fd;
	}
	(void)snprintf(v->store_label, sizeof(v->store_label), "%s", path);
	v->inputs[0] = v->store_label;
	v->setup.of_store = true;
	v->input_fds[0] = fd;
	v->n_inputs = 1;
	return 0;
}

static int open_inputs(struct view *v)
{
	if (v->last_ns)
		return open_store(v);
	if (v->inputs_are_open)
		return 0;
	for (uint32_t i = 0; i < v->n_inputs; i++) {
		int fd = open(v->inputs[i], O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		struct stat st;

		if (fd < 0) {
			int e = -errno;

			log_error("%s cannot be opened: %s", v->inputs[i], strerror(-e));
			return e;
		}
		v->input_fds[i] = fd;
		if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
			log_error("%s is not a regular file; write its contents to one first",
				  v->inputs[i]);
			return -EINVAL;
		}
	}
	return 0;
}

/* ---- The child ---- */

static int on_setup(void *ctx, struct peer_id who, int control, int status_fd)
{
	struct view *v = ctx;
	struct setup_sender to = setup_begin(control, &v->setup, sizeof(v->setup), status_fd);

	for (uint32_t i = 0; i < v->n_inputs; i++)
		setup_put_file(&to, TEXT_INPUT, v->inputs[i], v->input_fds[i]);
	for (uint32_t i = 0; i < v->outputs.n; i++) {
		const struct broker_output *o = &v->outputs.items[i];

		setup_put_text(&to, TEXT_OUTPUT_FORMAT, o->format);
		setup_put_file(&to, TEXT_OUTPUT, o->path, o->fd);
	}
	setup_put_text(&to, TEXT_SYMBOL, v->symbol);
	setup_put_text(&to, TEXT_COMM, v->comm);
	setup_put_text(&to, TEXT_CONTAINER, v->container);
	setup_put_text(&to, TEXT_SERVICE, v->service);
	setup_put_text(&to, TEXT_TRACE, v->trace);
	setup_put_text(&to, TEXT_SPAN, v->span);
	setup_put_text(&to, TEXT_EVENT, v->event);
	if (v->setup.view != VIEW_CONVERT)
		setup_put_file(&to, TEXT_SUMMARY, "the table", v->table_fd);
	return setup_finish(&to);
}

static void on_message(void *ctx, struct peer_id who, const struct message *m)
{
	struct view *v = ctx;

	if (m->type == MESSAGE_RESULT) {
		v->session.result = m->result.code;
		v->written_outputs = m->result.written;
	}
}

static void on_gone(void *ctx, struct peer_id who, bool clean)
{
	struct view *v = ctx;

	if (!clean && v->session.result == 0) {
		log_error("%s: the process that read it died or hung: the file is damaged in a way "
			  "that perfwalk does not survive; please report it",
			  v->n_inputs == 1 ? v->inputs[0] : "one of the files");
		v->session.result = -EIO;
	}
	session_end(&v->session, v->session.result);
}

static void on_signal(void *ctx, const struct signalfd_siginfo *s)
{
	struct view *v = ctx;

	if (s->ssi_signo == SIGCHLD) {
		supervisor_reap(v->supervisor);
	} else {
		v->session.result = -EINTR;
		supervisor_kill(v->supervisor, peer_only(PEER_SYMBOLIZER));
	}
}

static void fill_setup(struct view *v)
{
	struct setup_symbolizer *s = &v->setup;
	struct winsize w;
	bool terminal = isatty(v->table_fd);

	s->common.log_level = (uint32_t)log_get_level();
	s->common.seccomp = sandbox_choose_mode(SANDBOX_ERRNO);
	s->common.landlock = true;
	setup_choose_user(&s->common.privileges, "perfwalk");
	limits_set(&s->common.privileges, LIMITS_VIEWER, NULL);
	s->symbols_bytes = UINT64_C(64) << 20;
	s->profile_bytes = PROFILE_BYTES;
	s->max_open_files = 256;
	s->capture = true;
	s->terminal_width = ioctl(v->table_fd, TIOCGWINSZ, &w) == 0 && w.ws_col >= 40
				    ? w.ws_col
				    : DEFAULT_WIDTH;
	s->color = terminal && !getenv("NO_COLOR");
	s->report.width = terminal ? s->terminal_width : 0;
	s->report.color = s->color;
}

/* By its first bytes, in either byte order, which are compared and not parsed. */
static bool is_perf_data(int fd)
{
	char head[8];

	return pread(fd, head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
	       (memcmp(head, "PERFILE2", 8) == 0 || memcmp(head, "2ELIFREP", 8) == 0);
}

static bool has_perf_data(const struct view *v)
{
	for (uint32_t i = 0; i < v->n_inputs; i++) {
		if (is_perf_data(v->input_fds[i]))
			return true;
	}
	return false;
}

static int run_perf_data(struct view *v)
{
	const struct view_perf_data perf_data = {
		.path = v->inputs[0],
		.fd = v->input_fds[0],
		.outputs = &v->outputs,
		.print_fd = v->setup.view == VIEW_REPORT ? v->table_fd : -1,
		.lines = !v->no_lines,
		.inlined = !v->no_inline,
		.demangle = v->demangle,
		.view = &v->setup,
		.symbol = v->symbol,
		.comm = v->comm,
		.container = v->container,
		.service = v->service,
		.event = v->event,
	};

	if (v->n_inputs > 1) {
		log_error("a perf.data file can only be read alone: convert each to .pb.gz first "
			  "(perfwalk convert perf.data -o one.pb.gz)");
		return -EINVAL;
	}
	return view_perf_data(&perf_data, &v->written_outputs);
}

static int run(struct view *v)
{
	static const struct peer_row symbolizer = {
		.kind = PEER_SYMBOLIZER,
		.max = 1,
		.oom_score = 500,
		.finds = "names",
		.may_ask = ASK_BIT(MESSAGE_ASK_DEBUG_FILE) | ASK_BIT(MESSAGE_ASK_SPLIT_FILE),
		.set_up = on_setup,
	};
	struct supervisor_callbacks callbacks = {
		.message = on_message, .gone = on_gone, .once = true, .ctx = v};
	int r;

	if ((r = open_inputs(v)) < 0 || (r = outputs_open(&v->outputs, 0666)) < 0)
		return r;
	if (outputs_use_standard(&v->outputs)) /* which is for what is made, as with record */
		v->table_fd = STDERR_FILENO;
	fill_setup(v);
	callbacks.judge = v->setup.common;
	if (v->setup.view <= VIEW_DIFF && has_perf_data(v))
		return run_perf_data(v);
	if ((r = session_open(&v->session, NULL, on_signal, v)) < 0 ||
	    (r = supervisor_new(&v->supervisor, v->session.loop, &symbolizer, 1, &callbacks,
				FILE_TIMEOUT_NS)) < 0 ||
	    (r = supervisor_start(v->supervisor, peer_only(PEER_SYMBOLIZER))) < 0) {
		log_error("cannot start: %s", strerror(-r));
		return r;
	}
	supervisor_stop(v->supervisor, peer_only(PEER_SYMBOLIZER));
	return session_run(&v->session);
}

int view_run(struct view *v)
{
	int r = run(v);

	supervisor_free(v->supervisor);
	session_close(&v->session);
	for (uint32_t i = 0; i < v->n_inputs; i++)
		(void)close_fd(v->input_fds[i]);
	outputs_close(&v->outputs);
	if (r < 0)
		outputs_remove_unwritten(&v->outputs, v->written_outputs);
	return r < 0 ? EXIT_CODE_FAILURE : EXIT_CODE_OK;
}

static int view_main(const struct command *command, enum view_mode mode, int argc, char **argv)
{
	struct view v = {.command = command, .session = SESSION_INIT, .table_fd = STDOUT_FILENO};
	int r;

	v.setup.view = mode;
	v.setup.report.min_percent = 0.1;
	r = view_parse_options(&v, argc, argv);
	if (r != 0)
		return r > 0 ? EXIT_CODE_OK : EXIT_CODE_USAGE;
	return view_run(&v);
}

int convert_main(int argc, char **argv)
{
	return view_main(&convert_command, VIEW_CONVERT, argc, argv);
}

int report_main(int argc, char **argv)
{
	return view_main(&report_command, VIEW_REPORT, argc, argv);
}

int diff_main(int argc, char **argv)
{
	return view_main(&diff_command, VIEW_DIFF, argc, argv);
}
