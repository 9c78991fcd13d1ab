/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start order: events are opened and their rings held, then the children start, then the events
 * count. Stop order is that of the data: the profiler drains and leaves, then the
 * symbolizer, then the exporter; each leaves when its work is settled.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/broker/filter-texts.h"
#include "src/broker/internal.h"
#include "src/process/sandbox.h"
#include "src/process/setup.h"
#include "src/process/statistics.h"
#include "src/process/status-page.h"
#include "src/profile/profile.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"

#define HOTPLUG_NS     NSEC_PER_SEC
#define FLUSH_AGAIN_NS NSEC_PER_SEC
/* Of a reload: until the symbolizer has settled what the profiler gave it. More than the slowest
 * file may take. */
#define REOPEN_DEADLINE_NS (30 * NSEC_PER_SEC)

static void on_message(void *ctx, enum peer who, const struct message *m)
{
	struct tree *t = ctx;

	if (m->type == MESSAGE_STACK_SIZE && who == PEER_PROFILER)
		tree_resize_stacks(t, m->stack_size.bytes);
	if (m->type == MESSAGE_FETCHED && who == PEER_FETCHER)
		tree_tell_fetched(t, m);
	if (m->type != MESSAGE_RESULT)
		return;
	if (who == PEER_FETCHER) {
		/* It cannot fetch, and has said why. */
		supervisor_stop(t->supervisor, PEER_FETCHER);
		return;
	}
	if (who == PEER_METRICS) {
		/* It cannot serve, and has said why. */
		listener_close(&t->metrics);
		supervisor_stop(t->supervisor, PEER_METRICS);
		return;
	}
	if (m->result.code < 0)
		t->result = m->result.code;
	if (who == PEER_SYMBOLIZER) {
		t->written_outputs = m->result.written;
		memcpy(t->output_errors, m->result.output_errors, sizeof(t->output_errors));
	}
	if (who == PEER_PROFILER && m->result.code < 0)
		t->input_damaged = true;
	/* The input is finished or unreadable, or the user has quit top. */
	if ((who == PEER_PROFILER && t->options.input_path) || who == PEER_SCREEN)
		tree_stop(t);
}

static void on_gone(void *ctx, enum peer who, bool clean);

static void forget_exports(struct tree *t)
{
	memset(t->counts_of_the_dead.exports, 0, sizeof(t->counts_of_the_dead.exports));
	t->forget_exports = false;
}

static void on_died(void *ctx, enum peer who)
{
	struct tree *t = ctx;

	status_counts_add(&t->counts_of_the_dead, &supervisor_status(t->supervisor, who)->counts);
	if (who == PEER_EXPORTER && t->forget_exports)
		forget_exports(t);
	if (who == PEER_FETCHER)
		tree_tell_fetched(t, NULL);
}

/* ---- Metrics ---- */

static int on_ask(void *ctx, enum peer who, const struct message *ask, struct message *ret)
{
	struct tree *t = ctx;
	struct statistics s;

	switch (ask->type) {
	case MESSAGE_ASK_STATISTICS:
		statistics_collect(t, &s);
		ret->type = MESSAGE_ANSWER_STATISTICS;
		ret->answer_statistics.error = 0;
		ret->answer_statistics.n = sizeof(s);
		memcpy(ret->answer_statistics.bytes, &s, sizeof(s));
		return 0;
	case MESSAGE_ASK_FLUSH:
		/* One after the other; one that came to nothing holds up no other for long. */
		if (!tree_flushed(t) && clock_monotonic_ns() - t->flushed_at_ns < FLUSH_AGAIN_NS)
			return -EBUSY;
		return tree_flush(t);
	default:
		return -EOPNOTSUPP;
	}
}

/* The socket is there, or it is said why not and everything else goes on. */
static void listen_for_metrics(struct tree *t)
{
	const char *where = t->options.config->metrics_listen;
	char error[256] = "";
	struct address address;
	uid_t uid;
	gid_t gid;

	listener_close(&t->metrics);
	free(t->metrics_listen);
	t->metrics_listen = where ? strdup(where) : NULL;
	if (!where || t->options.capture || t->options.screen)
		return;
	tree_user(t, &uid, &gid);
	if (address_parse(where, &address) < 0 ||
	    listener_open(&t->metrics, &address, gid, error, sizeof(error)) < 0)
		log_error("metrics: cannot serve at %s: %s", where, error);
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* The new one hears of other destinations. */
static void reload_metrics(struct tree *t)
{
	if (!same_text(t->metrics_listen, t->options.config->metrics_listen) || t->metrics.fd < 0)
		listen_for_metrics(t);
	if (t->metrics.fd >= 0)
		supervisor_restart(t->supervisor, PEER_METRICS);
	else if (supervisor_running(t->supervisor, PEER_METRICS))
		supervisor_stop(t->supervisor, PEER_METRICS);
}

/* ---- Life ---- */

static int start_children(struct tree *t)
{
	int r = 0;

	if (t->options.screen)
		r = supervisor_start(t->supervisor, PEER_SCREEN);
	else if (!t->options.capture)
		r = supervisor_start(t->supervisor, PEER_EXPORTER);
	if (r == 0)
		r = tree_start_fetcher(t);
	if (r == 0)
		r = supervisor_start(t->supervisor, PEER_SYMBOLIZER);
	if (r == 0)
		r = supervisor_start(t->supervisor, PEER_PROFILER);
	if (r == 0 && t->metrics.fd >= 0)
		r = supervisor_start(t->supervisor, PEER_METRICS);
	if (r < 0)
		log_error("the children cannot be started: %s", strerror(-r));
	return r;
}

static void on_deadline(void *ctx)
{
	struct tree *t = ctx;

	if (t->reopen) {
		enum peer who = supervisor_running(t->supervisor, PEER_PROFILER) ? PEER_PROFILER
										 : PEER_SYMBOLIZER;

		log_warning("the %s did not exit in time for the new config: its unsettled data is "
			    "lost",
			    peer_name(who));
		supervisor_kill(t->supervisor, who);
		return;
	}
	for (int i = 0; i < PEER_N; i++) {
		if (!supervisor_running(t->supervisor, (enum peer)i))
			continue;
		log_warning("the %s did not finish in time: its unsettled data is lost",
			    peer_name((enum peer)i));
		t->result = -ETIMEDOUT;
		supervisor_kill(t->supervisor, (enum peer)i);
	}
}

int tree_new(struct tree **ret, struct loop *loop, const struct tree_options *options)
{
	_cleanup_(tree_freep) struct tree *t = calloc(1, sizeof(*t));
	struct supervisor_callbacks callbacks = {.setup = tree_set_up,
						 .message = on_message,
						 .died = on_died,
						 .answer = on_ask,
						 .debug_file = tree_debug_file,
						 .gone = on_gone,
						 .recording = options->input_path != NULL,
						 .ctx = t};
	int r;

	if (!t)
		return -ENOMEM;
	if (!sample_has_proc()) {
		log_error(SAMPLE_NO_PROC);
		return -ENODEV;
	}
	t->loop = loop;
	t->options = *options;
	t->start_unix_ns = clock_realtime_ns();
	for (uint32_t i = 0; i < SAMPLE_MAX_EVENTS; i++)
		events_init(&t->events[i]);
	t->spool.fd = t->store.fd = t->debug_cache.fd = -EBADF;
	t->metrics.fd = -EBADF;
	t->seccomp = sandbox_choose_mode(SANDBOX_ERRNO);
	t->has_user = setup_choose_user(&t->privileges, options->config->user);
	r = tree_check_destination(t);
	if (r < 0)
		return r;
	privileges_raise_open_files();
#ifndef WITH_SANITIZERS /* the check for leaks looks into this process */
	privileges_hide_memory();
#endif
	r = options->input_path ? 0 : tree_open_events(t);
	if (r < 0)
		return r;
	r = supervisor_new(&t->supervisor, loop, &callbacks,
			   options->config->symbolizer_file_timeout_ns);
	if (r < 0)
		return r;
	if ((r = t->deadline_timer = loop_add_timer(loop, UINT64_MAX, 0, on_deadline, t)) < 0 ||
	    (r = loop_add_timer(loop, HOTPLUG_NS, HOTPLUG_NS, tree_follow_hotplug, t)) < 0)
		return r;
	listen_for_metrics(t);
	r = start_children(t);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(t);
	return 0;
}

struct tree *tree_free(struct tree *t)
{
	if (t) {
		supervisor_free(t->supervisor);
		for (uint32_t i = 0; i < SAMPLE_MAX_EVENTS; i++)
			events_deinit(&t->events[i]);
		tree_forget_targets(t);
		(void)close_fd(t->spool.fd);
		free(t->spool.path);
		(void)close_fd(t->store.fd);
		free(t->store.path);
		(void)close_fd(t->debug_cache.fd);
		free(t->debug_cache.path);
		listener_close(&t->metrics);
		free(t->metrics_listen);
		free(t);
	}
	return NULL;
}

void tree_stop(struct tree *t)
{
	if (t->stopping)
		return;
	t->stopping = true;
	t->reopen = false;
	if (t->options.stop_deadline_ns)
		loop_set_timer(t->loop, t->deadline_timer, t->options.stop_deadline_ns);
	/* What a live view has not shown yet is of no use to anybody. */
	supervisor_stop(t->supervisor, t->options.screen ? PEER_SCREEN : PEER_PROFILER);
}

void tree_kill(struct tree *t)
{
	t->stopping = true;
	t->reopen = false;
	t->result = -EINTR;
	for (int i = 0; i < PEER_N; i++)
		supervisor_kill(t->supervisor, (enum peer)i);
}

void tree_reap(struct tree *t)
{
	supervisor_reap(t->supervisor);
}

/* They leave as at the end, with all that is theirs to do done. */
static void leave_for_reload(struct tree *t, enum peer who)
{
	loop_set_timer(t->loop, t->deadline_timer, REOPEN_DEADLINE_NS);
	supervisor_stop(t->supervisor, who);
}

/* The events are made anew for a new config; the profiler that read the old ones has left. */
static void reopen_events(struct tree *t)
{
	int r = 0;

	t->reopen = false;
	loop_set_timer(t->loop, t->deadline_timer, UINT64_MAX);
	tree_close_events(t);
	if (t->renew_symbolizer)
		r = supervisor_start(t->supervisor, PEER_SYMBOLIZER);
	t->renew_symbolizer = false;
	if (r < 0 || (r = tree_open_events(t)) < 0 ||
	    (r = supervisor_start(t->supervisor, PEER_PROFILER)) < 0 || (r = tree_enable(t)) < 0) {
		log_error("sampling cannot continue after the reload: %s", strerror(-r));
		t->result = r;
		tree_stop(t);
	}
}

static void on_gone(void *ctx, enum peer who, bool clean)
{
	struct tree *t = ctx;

	/* Alone: it could not serve, or is not wanted any more. */
	if (who == PEER_FETCHER || (who == PEER_METRICS && !t->exporter_gone))
		return;
	if (!clean && t->result == 0 && t->stopping)
		t->result = -ECHILD;
	if (who == PEER_PROFILER && t->reopen && t->renew_symbolizer) {
		leave_for_reload(t, PEER_SYMBOLIZER);
		return;
	}
	if ((who == PEER_PROFILER || who == PEER_SYMBOLIZER) && t->reopen) {
		reopen_events(t);
		return;
	}
	if (who == PEER_SYMBOLIZER && supervisor_running(t->supervisor, PEER_FETCHER))
		supervisor_stop(t->supervisor, PEER_FETCHER);
	if (who == PEER_PROFILER && !t->options.screen) {
		supervisor_stop(t->supervisor, PEER_SYMBOLIZER);
	} else if (who == PEER_SYMBOLIZER && !t->options.capture && !t->options.screen) {
		supervisor_stop(t->supervisor, PEER_EXPORTER);
	} else if (who == PEER_EXPORTER) {
		t->exporter_gone = true;
		supervisor_stop(t->supervisor, PEER_METRICS);
	} else if (!t->finished) {
		t->finished = true;
		t->options.done(t->options.ctx, t->result);
	}
}

static bool sampling_differs(const struct config *a, const struct config *b)
{
	return a->samples_per_second != b->samples_per_second ||
	       a->reporter_interval_ns != b->reporter_interval_ns ||
	       a->stack_size_bytes != b->stack_size_bytes ||
	       a->ring_size_bytes != b->ring_size_bytes || a->kernel_stacks != b->kernel_stacks ||
	       a->max_frames != b->max_frames || a->window_memory_bytes != b->window_memory_bytes ||
	       a->unwind_rows_bytes != b->unwind_rows_bytes || !filter_texts_equal(a, b) ||
	       a->max_processes != b->max_processes || a->max_open_files != b->max_open_files;
}

/* What a symbolizer is told at its start alone. */
static bool symbolizer_limits_differ(const struct config *a, const struct config *b)
{
	return a->symbols_bytes != b->symbols_bytes ||
	       a->symbolizer_memory_bytes != b->symbolizer_memory_bytes ||
	       a->window_memory_bytes != b->window_memory_bytes ||
	       a->max_open_files != b->max_open_files;
}

static bool destinations_differ(const struct config *a, const struct config *b)
{
	for (size_t i = 0; i < a->n_exports && i < b->n_exports; i++) {
		if (strcmp(a->exports[i].name, b->exports[i].name) != 0)
			return true;
	}
	return a->n_exports != b->n_exports;
}

int tree_reload(struct tree *t, const struct config *config)
{
	bool renew_symbolizer = symbolizer_limits_differ(t->options.config, config);
	bool resample = renew_symbolizer || sampling_differs(t->options.config, config);
	struct message log = {.type = MESSAGE_LOG_LEVEL};
	bool other_exports = destinations_differ(t->options.config, config);

	if (t->stopping || t->reopen)
		return -EBUSY;
	t->options.config = config;
	t->options.events[0].rate_hz = config->samples_per_second;
	t->options.interval_ns = config->reporter_interval_ns;
	supervisor_set_file_timeout(t->supervisor, config->symbolizer_file_timeout_ns);
	log.log.level = (uint32_t)log_get_level();
	(void)supervisor_send(t->supervisor, PEER_PROFILER, &log, NULL, 0);
	tree_forget_failed_dir(&t->spool);
	tree_forget_failed_dir(&t->store);
	tree_forget_failed_dir(&t->debug_cache);
	/* The symbolizer stays: it holds what the exporter has not settled and gives it to the new
	 * one. */
	if (supervisor_running(t->supervisor, PEER_SYMBOLIZER)) {
		int control = supervisor_control(t->supervisor, PEER_SYMBOLIZER);

		if (tree_set_up_symbolizer_again(t, control) < 0)
			log_warning("the symbolizer does not accept the new config");
	}
	t->forget_exports = other_exports;
	if (other_exports && !supervisor_running(t->supervisor, PEER_EXPORTER))
		forget_exports(t);
	supervisor_restart(t->supervisor, PEER_EXPORTER);
	reload_metrics(t);
	tree_reload_fetcher(t);
	if (resample) {
		t->reopen = true;
		t->renew_symbolizer = renew_symbolizer;
		/* What the profiler reads after its last window comes into no other. */
		if (t->enabled && !t->paused)
			(void)tree_enable_events(t, false);
		leave_for_reload(t, PEER_PROFILER);
	}
	return 0;
}

int tree_pause(struct tree *t, bool pause)
{
	struct message m = {.type = MESSAGE_PAUSE};
	int r;

	if (t->stopping || t->reopen)
		return -EBUSY;
	if (pause == t->paused)
		return 0;
	r = tree_enable_events(t, !pause);
	if (r < 0)
		return r;
	t->paused = pause;
	/* Events that stood still are not dead. */
	for (uint32_t i = 0; i < t->events[0].cpus.n; i++)
		t->events[0].cpus.items[i].enabled_ns = 0;
	m.pause.paused = pause;
	/* Without a profiler the next one hears of it at its start. */
	(void)supervisor_send(t->supervisor, PEER_PROFILER, &m, NULL, 0);
	return 0;
}

bool tree_is_paused(const struct tree *t)
{
	return t->paused;
}

int tree_flush(struct tree *t)
{
	struct message m = {.type = MESSAGE_FLUSH};

	if (t->stopping || t->reopen)
		return -EBUSY;
	m.flush.id = ++t->flush_id;
	t->flushed_at_ns = clock_monotonic_ns();
	return supervisor_send(t->supervisor, PEER_PROFILER, &m, NULL, 0);
}

bool tree_flushed(const struct tree *t)
{
	return supervisor_status(t->supervisor, PEER_PROFILER)->flushed >= t->flush_id;
}

void tree_user(const struct tree *t, uid_t *ret_uid, gid_t *ret_gid)
{
	*ret_uid = t->privileges.uid;
	/* Not group nogroup: unrelated programs run in it. */
	*ret_gid = t->has_user ? t->privileges.gid : (gid_t)-1;
}

void tree_progress(const struct tree *t, uint64_t *ret_samples, uint64_t *ret_lost)
{
	struct status_counts c;

	tree_counts(t, &c);
	*ret_samples = c.samples - c.filtered;
	*ret_lost = c.lost + c.counters[PROFILE_SAMPLES_DROPPED];
}

uint64_t tree_drained_ns(const struct tree *t)
{
	return supervisor_status(t->supervisor, PEER_PROFILER)->drained_ns;
}

void tree_tell_screen(struct tree *t, const struct message *m)
{
	(void)supervisor_try_send(t->supervisor, PEER_SCREEN, m);
}

const struct sample_features *tree_features(const struct tree *t)
{
	return &t->events[0].features;
}

uint32_t tree_written_outputs(const struct tree *t)
{
	return t->input_damaged ? 0 : t->written_outputs;
}

int tree_output_error(const struct tree *t, uint32_t i)
{
	return t->output_errors[i];
}

uint32_t tree_n_cpus(const struct tree *t)
{
	return t->events[0].cpus.n;
}

bool tree_targets_gone(const struct tree *t)
{
	for (size_t i = 0; i < t->options.n_pids; i++) {
		if (kill(t->options.pids[i], 0) == 0 || errno != ESRCH)
			return false;
	}
	return t->options.n_pids > 0;
}
