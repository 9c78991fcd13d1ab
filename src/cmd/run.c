/* SPDX-License-Identifier: Apache-2.0 */
/* perfwalk run: the daemon, in the foreground. */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/broker/broker.h"
#include "src/broker/control.h"
#include "src/cmd/cmd.h"
#include "src/cmd/notify.h"
#include "src/cmd/run-events.h"
#include "src/cmd/session.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

#define STOP_DEADLINE_NS (4500 * NSEC_PER_MSEC) /* SIGTERM: gone within 5 s */

/* Between two looks at how it goes, for the service manager; the watchdog may want it sooner. */
#define BEAT_NS (5 * NSEC_PER_SEC)

struct daemon_run {
	const char *path;
	bool path_given, check, print;
	struct config *config;
	struct broker_event events[SAMPLE_MAX_EVENTS]; /* of the config that was loaded last */
	uint32_t n_events;
	struct session session;
	struct broker *broker;
	struct control *control;
	uint64_t start_ns;
	uint64_t watchdog_ns;
	int lock_fd;
};

enum { OPT_CONFIG, OPT_PRINT_DEFAULT };

static const struct option_spec option_table[] = {
	{'c', "config", "FILE", "config file; default " CONFIG_DEFAULT_FILE, OPT_CONFIG},
	{0, "check-config", NULL, "check the config and exit: with 0, or 2 and every error",
	 OPTION_FLAG(struct daemon_run, check)},
	{0, "print-config", NULL, "print the config in effect, secrets masked, and exit",
	 OPTION_FLAG(struct daemon_run, print)},
	{0, "print-default-config", NULL, "print the commented default config and exit",
	 OPT_PRINT_DEFAULT},
};

const struct command run_command = {
	.name = "run",
	.usage = "run [-c FILE] [--check-config | --print-config | --print-default-config]",
	.summary = "profile the whole host continuously and export OTLP profiles",
	.options = option_table,
	.n_options = ARRAY_SIZE(option_table),
	.epilog = "SIGHUP reloads the config; SIGTERM and SIGINT send the pending profiles and end "
		  "the\n"
		  "daemon within 5 seconds. The smallest config:\n"
		  "\n"
		  "  [export:collector]\n"
		  "  endpoint = http://127.0.0.1:4318\n",
};

static int on_option(void *ctx, int id, const char *value)
{
	struct daemon_run *d = ctx;

	if (id == OPT_PRINT_DEFAULT) {
		config_print_default(stdout);
		return -ECANCELED; /* nothing more to do */
	}
	d->path = value;
	d->path_given = true;
	return 0;
}

/* NULL: without a default file, defaults and the environment are the config. */
static const char *config_path(const struct daemon_run *d)
{
	return d->path_given || config_exists(d->path) ? d->path : NULL;
}

/* The config with its secrets, ready for use; errors are told. */
static int load(struct daemon_run *d, struct config **ret)
{
	_cleanup_(config_freep) struct config *c = NULL;
	const char *path = config_path(d);
	int r = config_load(&c, path, true, stderr);

	for (size_t i = 0; r == 0 && i < c->n_exports; i++)
		r = config_export_read_headers(&c->exports[i], stderr);
	if (r == 0)
		r = run_events(c, path, d->events, &d->n_events, stderr);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(c);
	return 0;
}

/*
 * The watchdog is fed by the profiler: as long as it reads the rings. Children that die are the
 * supervisor's to bring back; a profiler that hangs, or a broker that does not get here, is the
 * service manager's.
 */
static void on_beat(void *ctx)
{
	const struct daemon_run *d = ctx;
	uint64_t drained = broker_drained_ns(d->broker);
	char text[256];

	broker_describe(d->broker, text, sizeof(text));
	notify_send("STATUS=%s", text);
	if (d->watchdog_ns && drained && clock_monotonic_ns() - drained < d->watchdog_ns / 2)
		notify_send("WATCHDOG=1");
}

static int start_beat(struct daemon_run *d)
{
	uint64_t every = BEAT_NS;

	if (!notify_wanted())
		return 0;
	d->watchdog_ns = notify_watchdog_ns();
	if (d->watchdog_ns && d->watchdog_ns / 4 < every)
		every = d->watchdog_ns / 4;
	return loop_add_timer(d->session.loop, every, every, on_beat, d);
}

static void warn_of_start_only(const char *key, const char *before, const char *now)
{
	if (!text_equal(before, now))
		log_warning("reload: %s in [process] takes effect at the next start", key);
}

static int reload(struct daemon_run *d)
{
	struct config *fresh = NULL;
	int r = load(d, &fresh);

	if (r < 0) {
		log_error("reload: %s has errors; the old config stays in force", d->path);
		return r;
	}
	log_set_level(fresh->log_level);
	r = broker_reload(d->broker, fresh, d->events, d->n_events);
	if (r < 0) {
		log_warning("reload: still busy with the previous reload; try again");
		log_set_level(d->config->log_level);
		config_free(fresh);
		return r;
	}
	warn_of_start_only("user", d->config->user, fresh->user);
	warn_of_start_only("control", d->config->control, fresh->control);
	config_free(d->config);
	d->config = fresh;
	log_info("config reloaded");
	return 0;
}

static int reload_and_tell(struct daemon_run *d)
{
	int r;

	notify_send("RELOADING=1\nMONOTONIC_USEC=%llu",
		    (unsigned long long)(clock_monotonic_ns() / NSEC_PER_USEC));
	r = reload(d);
	notify_send("READY=1");
	return r;
}

/* ---- perfwalk ctl ---- */

/* An upgrade without a restart leaves the old program running. */
static bool program_was_replaced(void)
{
	struct stat st;

	return stat("/proc/self/exe", &st) == 0 && st.st_nlink == 0;
}

static void print_status(const struct daemon_run *d, FILE *out)
{
	const char *path = config_path(d);

	(void)fprintf(out,
		      "version " PACKAGE_VERSION
		      "\nprogram_replaced %s\nuptime_seconds %llu\nconfig %s\n",
		      program_was_replaced() ? "yes" : "no",
		      (unsigned long long)((clock_monotonic_ns() - d->start_ns) / NSEC_PER_SEC),
		      path ? path : "none");
	broker_print_status(d->broker, out);
}

static int pause_or_resume(struct daemon_run *d, bool pause)
{
	bool before = broker_is_paused(d->broker);
	int r = broker_pause(d->broker, pause);

	if (r == 0 && before != pause)
		log_info("sampling %s", pause ? "is paused" : "resumes");
	return r;
}

static int on_command(void *ctx, const char *name, bool *begun, FILE *answer, char *error,
		      size_t n_error)
{
	struct daemon_run *d = ctx;
	const char *reason = "unknown command";
	int r = -EINVAL;

	if (strcmp(name, "status") == 0) {
		print_status(d, answer);
		r = 0;
	} else if (strcmp(name, "flush") == 0) {
		/* A profiler that is just being started again is waited for. */
		*begun = *begun || broker_flush(d->broker) == 0;
		r = *begun && broker_flushed(d->broker) ? 0 : 1;
	} else if (strcmp(name, "reload") == 0) {
		r = reload_and_tell(d);
		reason = r == -EBUSY
				 ? "still busy with the previous request; try again"
				 : "the config has errors, see the log; the old one stays in force";
	} else if (strcmp(name, "pause") == 0 || strcmp(name, "resume") == 0) {
		r = pause_or_resume(d, name[0] == 'p');
		reason = "the events do not respond now; try again";
	} else if (strcmp(name, "set-aside") == 0) {
		broker_print_set_aside(d->broker, answer);
		r = 0;
	} else if (strcmp(name, "clear-set-aside") == 0) {
		broker_clear_set_aside(d->broker, answer);
		r = 0;
	}
	(void)snprintf(error, n_error, "%s", reason);
	return r;
}

/* Two with one config would profile the host twice, the second into nothing. */
static int lock(struct daemon_run *d)
{
	pid_t pid = 0;
	char who[32] = "";

	d->lock_fd = control_lock(d->config->control, &pid);
	if (d->lock_fd != -EWOULDBLOCK)
		return 0; /* or start_control() says what is the matter */
	if (pid > 0)
		(void)snprintf(who, sizeof(who), ", pid %d", (int)pid);
	log_error("perfwalk run is already running with this config (control = %s%s): control it "
		  "with perfwalk ctl, or stop it first; a second daemon needs its own config, with "
		  "another control in [process] and another path in [spool] and [store]",
		  d->config->control, who);
	return -EALREADY;
}

/* Without it everything else goes on. */
static void start_control(struct daemon_run *d)
{
	const struct control_callbacks callbacks = {.command = on_command, .ctx = d};
	char error[256] = "";
	uid_t uid;
	gid_t gid;

	broker_user(d->broker, &uid, &gid);
	if (control_new(&d->control, d->session.loop, d->config->control, uid, gid, &callbacks,
			error, sizeof(error)) < 0)
		log_info("perfwalk ctl will not work: %s: %s", d->config->control, error);
}

static void on_signal(void *ctx, const struct signalfd_siginfo *s)
{
	struct daemon_run *d = ctx;

	switch (s->ssi_signo) {
	case SIGCHLD:
		broker_reap(d->broker);
		break;
	case SIGHUP:
		(void)reload_and_tell(d);
		break;
	default:
		log_info("%s: sending the pending profiles", strsignal((int)s->ssi_signo));
		notify_send("STOPPING=1");
		broker_stop(d->broker);
	}
}

static bool has_filter(const struct config *c)
{
	for (int i = 0; i < CONFIG_N_FILTERS; i++) {
		if (c->include[i] || c->exclude[i])
			return true;
	}
	return false;
}

static void say_started(const struct daemon_run *d)
{
	size_t n = d->config->n_exports;
	char interval[32], where[64], more[SAMPLE_MAX_EVENTS * 112] = "";
	size_t n_more = 0;

	(void)snprintf(where, sizeof(where), " to %zu destination%s", n, n == 1 ? "" : "s");
	for (uint32_t i = 1; i < d->n_events && n_more < sizeof(more); i++) {
		if (d->events[i].use != SAMPLE_USE_SWITCHES) /* what off_cpu is made of */
			n_more += (size_t)snprintf(more + n_more, sizeof(more) - n_more, " and %s",
						   d->events[i].event.name);
	}
	log_info("profiling %s: %u CPUs at %u Hz, %s%s, a profile every %s%s",
		 has_filter(d->config) ? "the selection of [filter]" : "the whole host",
		 broker_n_cpus(d->broker), d->config->samples_per_second,
		 broker_features(d->broker)->hardware ? "cycles" : "cpu-clock", more,
		 text_format_duration(interval, sizeof(interval), d->config->reporter_interval_ns),
		 n ? where : ", kept on this host");
	if (n == 0)
		log_info("no destination ([export:NAME]): perfwalk report --last 10m shows the "
			 "profiles");
}

static int run(struct daemon_run *d)
{
	struct broker_options o = {
		.config = d->config,
		.interval_ns = d->config->reporter_interval_ns,
		.n_events = d->n_events,
		.stop_deadline_ns = STOP_DEADLINE_NS,
		.summary_fd = -1,
		.done = session_end,
		.ctx = &d->session,
	};
	int r;

	memcpy(o.events, d->events, sizeof(o.events));
	if ((r = lock(d)) < 0 || (r = session_open(&d->session, NULL, on_signal, d)) < 0 ||
	    (r = broker_new(&d->broker, d->session.loop, &o)) < 0 ||
	    (r = broker_enable(d->broker)) < 0 || (r = start_beat(d)) < 0)
		return r;
	d->start_ns = clock_monotonic_ns();
	start_control(d);
	say_started(d);
	notify_send("READY=1");
	return session_run(&d->session);
}

int run_main(int argc, char **argv)
{
	struct daemon_run d = {.path = CONFIG_DEFAULT_FILE, .session = SESSION_INIT, .lock_fd = -1};
	int first = argc, r, code;

	r = options_parse(&run_command, argc, argv, on_option, &d, &first);
	if (r > 0 || r == -ECANCELED)
		return EXIT_CODE_OK;
	if (r == 0)
		r = options_end(&run_command, argc, argv, first);
	if (r == 0)
		r = load(&d, &d.config);
	if (r < 0)
		return EXIT_CODE_USAGE;
	if (d.print)
		config_print(d.config, stdout);
	if (d.print || d.check) {
		config_free(d.config);
		return EXIT_CODE_OK;
	}

	log_set_level(d.config->log_level);
	r = run(&d);
	/* What ends a daemon later may be over at the next start, and systemd is to try. */
	code = r >= 0 ? EXIT_CODE_OK : d.start_ns ? EXIT_CODE_FAILURE : exit_code_of(r);
	control_free(d.control);
	broker_free(d.broker);
	session_close(&d.session);
	(void)close_fd(d.lock_fd);
	config_free(d.config);
	return code;
}
