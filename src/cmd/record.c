/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfwalk record: the broker for a bounded time. It ends with the duration, Ctrl-C, the command,
 * or the last of the processes asked for, and always with usable files.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/broker/broker.h"
#include "src/cmd/allocations.h"
#include "src/cmd/cmd.h"
#include "src/cmd/record.h"
#include "src/cmd/session.h"
#include "src/render/format.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

#define WINDOW_NS	 (2 * NSEC_PER_SEC)
#define COMMAND_GRACE_NS (3 * NSEC_PER_SEC)
#define PROGRESS_NS	 (250 * NSEC_PER_MSEC)
#define REPEATED_NS	 (300 * NSEC_PER_MSEC)
#define DEFAULT_WIDTH	 100

struct record_run {
	struct record_options options;
	struct session session;
	struct broker *broker;
	struct config *config;
	pid_t command;	  /* 0: none */
	int command_gate; /* a byte into it lets the command exec; -1 */
	int exec_fd; /* what became of that: an errno, or the end of file of one that runs; -1 */
	int command_status;  /* as waitpid(2) says; -1: still running */
	bool command_ended;  /* by us, at the end of the duration */
	struct rusage usage; /* of the command and of what it waited for, once it has ended */
	uint64_t start_ns;
	bool has_command, terminal, stopping, output_failed;
	int stop_signals;
	uint32_t stop_signal; /* the first one, and when it came */
	uint64_t stop_signal_ns;
};

/* ---- The command ---- */

static void exec_command(char **argv, bool allocations, int gate, int exec_fd)
{
	sigset_t none;
	ssize_t n;
	char byte;
	int e;

	(void)sigemptyset(&none);
	(void)signal(SIGPIPE, SIG_DFL);
	if (allocations)
		allocations_preload();
	/* One byte: go. End of file: perfwalk gave up. */
	n = read(gate, &byte, 1);
	/* A signal that ends it does so now: until then perfwalk opens events of it. */
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (n != 1)
		_exit(EXIT_CODE_OWN_FAILURE);
	(void)execvp(argv[0], argv);
	e = errno;
	(void)fprintf(stderr, "perfwalk: record: %s cannot be executed: %s\n", argv[0],
		      strerror(e));
	if (write(exec_fd, &e, sizeof(e)) < 0)
		log_debug("no process waits for the command");
	_exit(e == ENOENT ? EXIT_CODE_NOT_FOUND : EXIT_CODE_CANNOT_EXECUTE);
}

/*
 * The child waits for its gate to open before it execs, so that the events that start counting at
 * the exec are open by then.
 */
static int start_command(struct record_run *r, char **argv)
{
	_cleanup_close_ int gate = -EBADF, result = -EBADF; /* the command's ends */
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	gate = fds[0];
	r->command_gate = fds[1];
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	r->exec_fd = fds[0];
	result = fds[1];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		(void)close(r->command_gate);
		exec_command(argv, r->options.allocations, gate, result);
	}
	r->command = pid;
	r->options.pids[0] = r->command;
	r->options.n_pids = 1;
	return 0;
}

static void release_command(struct record_run *r)
{
	if (r->command_gate >= 0) {
		if (write(r->command_gate, "", 1) != 1)
			log_debug("the command has already ended");
		r->command_gate = close_fd(r->command_gate);
	}
}

static void say_started(struct record_run *r)
{
	if (r->options.quiet || r->terminal)
		return;
	/* As it is now, not as it was asked for. */
	for (uint32_t i = 0; i < r->options.n_events; i++)
		r->options.events[i].rate_hz = broker_rate_hz(r->broker, i);
	record_say_started(&r->options, r->has_command, broker_n_cpus(r->broker));
}

static void print_progress(struct record_run *r, bool last)
{
	uint64_t samples, lost, elapsed = clock_monotonic_ns() - r->start_ns;

	if (r->options.quiet || !r->terminal)
		return;
	broker_progress(r->broker, &samples, &lost);
	(void)fprintf(stderr, "\r%6.1f s  %llu samples  %llu lost%s",
		      (double)elapsed / NSEC_PER_SEC, (unsigned long long)samples,
		      (unsigned long long)lost,
		      last ? "\033[K\n" : "   (Ctrl-C ends the capture)\033[K");
}

static void stop(struct record_run *r)
{
	if (r->stopping)
		return;
	r->stopping = true;
	print_progress(r, true); /* before the summary, which is another process's */
	broker_stop(r->broker);
}

/*
 * The command runs, or it cannot: then there is nothing to record, and the outputs stay as they
 * were. Its end may be known before this is read.
 */
static void check_exec(struct record_run *r)
{
	ssize_t n;
	int e;

	if (r->exec_fd < 0)
		return;
	n = read(r->exec_fd, &e, sizeof(e));
	if (n < 0)
		return;
	loop_remove_fd(r->session.loop, r->exec_fd);
	r->exec_fd = close_fd(r->exec_fd);
	if (n > 0) {
		r->stopping = true;
		broker_kill(r->broker);
	} else {
		say_started(r);
	}
}

static void on_exec(void *ctx, int fd, uint32_t events)
{
	check_exec(ctx);
}

static void reap_command(struct record_run *r)
{
	int status;

	if (r->command <= 0 || r->command_status >= 0)
		return;
	if (wait4(r->command, &status, WNOHANG, &r->usage) == r->command) {
		r->command_status = status;
		check_exec(r);
		stop(r);
	}
}

/* ---- While it runs ---- */

static void on_progress(void *ctx)
{
	struct record_run *r = ctx;

	if (r->stopping)
		return;
	print_progress(r, false);
	if (r->command <= 0 && broker_targets_gone(r->broker)) {
		log_info("the last of the given processes has ended");
		stop(r);
	}
}

static void signal_command(const struct record_run *r, int number)
{
	if (r->command > 0 && r->command_status < 0)
		(void)kill(r->command, number);
}

/* The capture ends before the command: so does the command, as with perf. */
static void end_command(struct record_run *r)
{
	r->command_ended = r->command > 0 && r->command_status < 0;
	signal_command(r, SIGTERM);
}

static void on_duration(void *ctx)
{
	struct record_run *r = ctx;

	if (r->stopping)
		return;
	end_command(r);
	stop(r);
}

/* The first asks the command to end, too, and the second makes it. The terminal's (SI_KERNEL) have
 * reached it already. */
static void pass_on(struct record_run *r, const struct signalfd_siginfo *s)
{
	if (++r->stop_signals > 1)
		signal_command(r, SIGKILL);
	else if (s->ssi_code != SI_KERNEL)
		signal_command(r, (int)s->ssi_signo);
}

/* timeout(1) sends its signal to us and at once to our process group: that is one wish to stop. */
static bool is_repeated(struct record_run *r, const struct signalfd_siginfo *s)
{
	uint64_t now = clock_monotonic_ns();

	if (r->stop_signals > 0)
		return s->ssi_signo == r->stop_signal && now - r->stop_signal_ns < REPEATED_NS;
	r->stop_signal = s->ssi_signo;
	r->stop_signal_ns = now;
	return false;
}

static void on_signal(void *ctx, const struct signalfd_siginfo *s)
{
	struct record_run *r = ctx;

	if (s->ssi_signo == SIGCHLD) {
		reap_command(r);
		broker_reap(r->broker);
		return;
	}
	if (is_repeated(r, s))
		return;
	pass_on(r, s);
	if (r->stop_signals == 1) {
		stop(r);
	} else {
		log_warning("stopped at the second signal: the outputs are incomplete");
		broker_kill(r->broker);
	}
}

/* ---- Start and end ---- */

static void on_begun(void *session)
{
	struct record_run *r = ((const struct session *)session)->ctx;

	r->start_ns = clock_monotonic_ns();
	if (r->options.duration_ns)
		(void)loop_add_timer(r->session.loop, r->options.duration_ns, 0, on_duration, r);
	(void)loop_add_timer(r->session.loop, PROGRESS_NS, PROGRESS_NS, on_progress, r);
	release_command(r);
	if (r->command <= 0)
		say_started(r);
}

static uint32_t written_outputs(const struct record_run *r)
{
	return r->broker ? broker_written_outputs(r->broker) : 0;
}

static uint32_t terminal_width(int fd)
{
	struct winsize w;

	return ioctl(fd, TIOCGWINSZ, &w) == 0 && w.ws_col >= 40 ? w.ws_col : DEFAULT_WIDTH;
}

static char *make_title(int argc, char **argv)
{
	char *title = NULL;
	size_t n;
	FILE *f = open_memstream(&title, &n);

	if (!f)
		return NULL;
	(void)fputs("perfwalk", f);
	for (int i = 0; i < argc; i++)
		(void)fprintf(f, " %s", argv[i]);
	(void)fclose(f);
	if (title && n > 1000)
		title[1000] = '\0';
	return title;
}

static int set_up(struct record_run *r, struct broker_options *o)
{
	int e;

	r->config->kernel_stacks = !r->options.user_only;
	r->config->interpreters = !r->options.no_interpreters;
	r->config->native_frames = !r->options.no_native_frames;
	r->config->off_cpu_idle = r->options.idle;
	r->config->source_lines = !r->options.no_lines;
	r->config->inline_frames = !r->options.no_inline;
	r->config->demangle = r->options.demangle;
	o->config = r->config;
	o->asked = r->options.asked;
	o->begun = on_begun;
	e = session_open(&r->session, NULL, on_signal, r);
	if (e < 0)
		return e;
	e = outputs_open(&r->options.outputs, 0600);
	r->output_failed = e < 0;
	memcpy(o->outputs, r->options.outputs.items, sizeof(o->outputs));
	o->n_outputs = r->options.outputs.n;
	return e;
}

static int run(struct record_run *r, struct broker_options *o)
{
	int e;

	if (!r->has_command)
		record_say_who_was_forked(&r->options);
	record_say_what_is_left_out(&r->options);
	record_say_what_is_guessed(&r->options);
	e = broker_new(&r->broker, r->session.loop, o);
	if (e < 0)
		return e;
	record_say_if_nothing_matches(&r->options);
	e = broker_enable(r->broker);
	if (e < 0)
		return e;
	if (r->exec_fd >= 0 &&
	    (e = loop_add_fd(r->session.loop, r->exec_fd, EPOLLIN, on_exec, r)) < 0)
		return e;
	return session_run(&r->session);
}

static void print_files(const struct record_run *r)
{
	const struct outputs *o = &r->options.outputs;
	FILE *out = outputs_use_standard(o) ? stderr : stdout;
	uint32_t n = 0;

	for (uint32_t i = 0; i < o->n && !r->options.quiet; i++) {
		const char *path = o->items[i].path;
		bool written = written_outputs(r) >> i & 1;
		int error = r->broker ? broker_output_error(r->broker, i) : 0;
		char size[32] = "-";
		struct stat st;

		if (format_is_standard_output(path) || (!written && !error))
			continue;
		if (n++ == 0)
			(void)fputs("\nFiles\n", out);
		if (written && stat(path, &st) == 0)
			(void)text_format_bytes(size, sizeof(size), (uint64_t)st.st_size);
		(void)fprintf(out, "  %-32s %10s  %s%s\n", path, size,
			      written ? outputs_format(o, i)->help : "not written: ",
			      written ? "" : strerror(-error));
	}
	(void)fflush(out);
}

/* It has had its time. */
static void urge_command(const struct record_run *r)
{
	if (r->command_ended) {
		log_warning("the command does not end on SIGTERM: killing it");
		signal_command(r, SIGKILL);
	} else {
		log_warning(
			"the command is still running: sending SIGTERM; another Ctrl-C kills it");
		signal_command(r, SIGTERM);
	}
}

/*
 * A command that we end may take a moment, but not for ever. A command that was interrupted
 * together with us, as by Ctrl-C, may have more to do: we send it SIGTERM, as perf does, and the
 * user decides how long to wait.
 */
static void wait_for_command(struct record_run *r)
{
	uint64_t now = clock_monotonic_ns(), deadline = now + COMMAND_GRACE_NS;
	struct pollfd p = {.fd = r->session.signal_fd, .events = POLLIN};
	struct signalfd_siginfo s;

	if (r->command <= 0 || r->command_status >= 0)
		return;
	r->command_gate = close_fd(r->command_gate);
	if (!r->command_ended && r->stop_signals == 0) /* the capture failed */
		end_command(r);
	while (waitpid(r->command, &r->command_status, WNOHANG) == 0) {
		int left_ms = now < deadline ? (int)((deadline - now) / NSEC_PER_MSEC) + 1 : -1;

		(void)poll(&p, 1, left_ms);
		/* Other children end, too. */
		while (session_next_signal(&r->session, &s)) {
			if (s.ssi_signo != SIGCHLD)
				pass_on(r, &s);
		}
		now = clock_monotonic_ns();
		if (left_ms >= 0 && now >= deadline)
			urge_command(r);
	}
}

static bool has_lost(const struct record_run *r)
{
	uint64_t samples, lost = 0;

	if (r->broker)
		broker_progress(r->broker, &samples, &lost);
	return lost > 0;
}

/* With a command, its own failure is the result unless perfwalk itself failed. */
static int finish(struct record_run *r, int e)
{
	int code = EXIT_CODE_OK;

	wait_for_command(r);
	if (e == 0 && r->command > 0)
		record_say_what_is_missing(&r->options, r->broker,
					   (uint64_t)r->usage.ru_utime.tv_sec * NSEC_PER_SEC +
						   (uint64_t)r->usage.ru_utime.tv_usec *
							   NSEC_PER_USEC);
	if (e < 0 && e != -EINTR)
		return r->has_command	  ? EXIT_CODE_OWN_FAILURE
		       : r->output_failed ? EXIT_CODE_FAILURE
					  : exit_code_of(e);
	if (e == -EINTR && r->command_status < 0)
		return EXIT_CODE_FAILURE;
	if (r->command > 0 && r->command_status >= 0)
		code = WIFSIGNALED(r->command_status) ? 128 + WTERMSIG(r->command_status)
						      : WEXITSTATUS(r->command_status);
	return code == EXIT_CODE_OK && r->options.strict && has_lost(r) ? EXIT_CODE_DATA_LOST
									: code;
}

int record_main(int argc, char **argv)
{
	struct record_run r = {
		.session = SESSION_INIT, .command_gate = -1, .exec_fd = -1, .command_status = -1};
	struct broker_options o = {.capture = true,
				   .interval_ns = WINDOW_NS,
				   .summary_fd = -1,
				   .done = session_end,
				   .ctx = &r.session};
	_cleanup_free_ char *title = make_title(argc, argv);
	int first = argc, summary_fd, e, code;

	if (config_load(&r.config, NULL, false, stderr) < 0)
		return EXIT_CODE_FAILURE;
	/* Who looks at a capture may want the number of each goroutine. */
	if (text_set(&r.config->attributes_deny, CONFIG_SECRET_ATTRIBUTES) < 0)
		return EXIT_CODE_FAILURE;
	r.options.config = r.config;
	e = record_options_parse(&r.options, argc, argv, &first);
	if (e != 0) {
		config_free(r.config);
		return e > 0 ? EXIT_CODE_OK : EXIT_CODE_USAGE;
	}
	log_set_level(r.options.verbose ? LOG_LEVEL_DEBUG
		      : r.options.quiet ? LOG_LEVEL_WARNING
					: LOG_LEVEL_INFO);

	r.terminal = isatty(STDERR_FILENO);
	o.title = title;
	summary_fd = outputs_use_standard(&r.options.outputs) ? STDERR_FILENO : STDOUT_FILENO;
	o.summary_fd = r.options.quiet ? -1 : summary_fd;
	o.color = isatty(summary_fd) && !getenv("NO_COLOR");
	o.terminal_width = terminal_width(summary_fd);
	r.has_command = first < argc;
	e = set_up(&r, &o);
	if (e == 0 && r.has_command)
		e = start_command(&r, argv + first);
	o.pids = r.options.pids;
	o.n_pids = r.options.n_pids;
	o.threads = r.options.threads;
	memcpy(o.events, r.options.events, sizeof(o.events));
	o.n_events = r.options.n_events;
	o.stacks = r.options.stacks;
	o.only_user = r.options.only_user;
	o.only_kernel = r.options.only_kernel;
	o.enable_on_exec = r.command > 0;
	if (e == 0)
		e = run(&r, &o);
	outputs_remove_unwritten(&r.options.outputs, written_outputs(&r));
	print_files(&r);
	code = finish(&r, e);
	broker_free(r.broker);
	/* Not earlier: a symbolizer that is started again gets them again. */
	outputs_close(&r.options.outputs);
	session_close(&r.session);
	(void)close_fd(r.command_gate);
	(void)close_fd(r.exec_fd);
	config_free(r.config);
	return code;
}
