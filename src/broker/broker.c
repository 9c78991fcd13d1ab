/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start order: events are opened and their rings held, then the children start, then the events
 * count. Stop order is that of the data, as the table of children says (peers.c): the profiler
 * drains and leaves, then the symbolizer, then the exporter; each leaves when its work is settled.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/broker/filter-texts.h"
#include "src/broker/internal.h"
#include "src/broker/limits.h"
#include "src/broker/seen.h"
#include "src/broker/tasks.h"
#include "src/process/kept-blocks.h"
#include "src/process/setup.h"
#include "src/process/statistics.h"
#include "src/process/status-page.h"
#include "src/profile/profile.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"
#include "util/text.h"

#define FLUSH_EVERY_NS (5 * NSEC_PER_SEC) /* for pulled profiles */
/* How long a reload waits for the symbolizer to settle what the profiler gave it. Longer than
 * the slowest file may take. */
#define REOPEN_DEADLINE_NS (30 * NSEC_PER_SEC)
#define EVERYBODY	   UINT32_MAX /* kinds */

static void on_message(void *ctx, struct peer_id who, const struct message *m)
{
	struct broker *b = ctx;

	if (m->type == MESSAGE_STACK_SIZE && who.kind == PEER_PROFILER)
		broker_resize_stacks(b, m->stack_size.bytes);
	if (m->type == MESSAGE_ENOUGH && who.kind == PEER_PROFILER)
		broker_rest_event(b, m);
	if (m->type == MESSAGE_PLACES_KNOWN && who.kind == PEER_PROFILER)
		broker_know_places(b, m->places.known != 0);
	if (m->type == MESSAGE_INTERPRETER && who.kind == PEER_PROFILER)
		broker_add_client(b, m);
	if (m->type == MESSAGE_CLIENT_GONE && who.kind == PEER_PROFILER)
		broker_remove_client(b, m->client.pid);
	if (m->type == MESSAGE_LOOK && who.kind == PEER_PROFILER)
		broker_has_looked(b);
	if (m->type == MESSAGE_THREAD && who.kind == PEER_READER)
		broker_tell_thread(b, who, m->client.pid, m->client.stat != 0);
	if (m->type == MESSAGE_FETCHED && who.kind == PEER_FETCHER)
		broker_tell_fetched(b, m);
	if (m->type != MESSAGE_RESULT)
		return;
	if (who.kind == PEER_FETCHER) {
		/* It cannot fetch, and has said why. */
		supervisor_stop(b->supervisor, peer_only(PEER_FETCHER));
		return;
	}
	if (who.kind == PEER_METRICS) {
		/* It cannot serve, and has said why. */
		listener_close(&b->metrics);
		supervisor_stop(b->supervisor, peer_only(PEER_METRICS));
		return;
	}
	if (m->result.code < 0)
		b->result = m->result.code;
	if (who.kind == PEER_SYMBOLIZER) {
		b->written_outputs = m->result.written;
		memcpy(b->output_errors, m->result.output_errors, sizeof(b->output_errors));
	}
	if (who.kind == PEER_PROFILER && m->result.code < 0)
		b->input_damaged = true;
	/* The input is finished or unreadable, or the user has quit top. */
	if ((who.kind == PEER_PROFILER && b->options.input_path) || who.kind == PEER_SCREEN)
		broker_stop(b);
}

static void on_gone(void *ctx, struct peer_id who, bool clean);
static void on_left(void *ctx, uint32_t kinds);

static void forget_exports(struct broker *b)
{
	memset(b->counts_of_the_dead.exports, 0, sizeof(b->counts_of_the_dead.exports));
	b->forget_exports = false;
}

static void symbolizer_died(struct broker *b, const struct status_page *page)
{
	struct supervisor *s = b->supervisor;
	const struct peer_id exporter = peer_only(PEER_EXPORTER);

	custody_symbolizer_died(
		&b->custody, &page->custody, supervisor_starts(s, peer_only(PEER_SYMBOLIZER)),
		supervisor_running(s, exporter) ? supervisor_starts(s, exporter) : 0);
	if (page->turn == 0)
		return;
	b->place = page->places[page->turn & 1];
	b->custody.counted = page->lost;
}

static void exporter_died(struct broker *b, const struct status_page *page)
{
	struct message m = {.type = MESSAGE_LOST};

	custody_exporter_died(&b->custody, &page->custody);
	m.lost.n_samples = b->custody.lost;
	(void)supervisor_send(b->supervisor, peer_only(PEER_SYMBOLIZER), &m, NULL, 0);
	if (b->forget_exports)
		forget_exports(b);
}

static void on_died(void *ctx, struct peer_id who)
{
	struct broker *b = ctx;
	const struct status_page *page = supervisor_status(b->supervisor, who);

	if (!supervisor_stopping(b->supervisor, who))
		broker_set_aside_process(b, who, page->process);
	if (who.kind == PEER_PROFILER)
		broker_forget_clients(b);
	if (who.kind == PEER_SYMBOLIZER && b->options.capture) {
		b->last_symbolizer = page->counts;
		return;
	}
	status_counts_add(&b->counts_of_the_dead, &page->counts);
	if (who.kind == PEER_SYMBOLIZER)
		symbolizer_died(b, page);
	if (who.kind == PEER_EXPORTER)
		exporter_died(b, page);
	if (who.kind == PEER_FETCHER)
		broker_tell_fetched(b, NULL);
	if (who.kind == PEER_READER)
		broker_set_timer(b, who.index);
}

/* ---- Metrics ---- */

static int on_ask(void *ctx, struct peer_id who, const struct message *ask, struct message *ret)
{
	struct broker *b = ctx;
	struct statistics s;

	switch (ask->type) {
	case MESSAGE_ASK_STATISTICS:
		statistics_collect(b, &s);
		ret->type = MESSAGE_ANSWER_STATISTICS;
		ret->answer_statistics.error = 0;
		ret->answer_statistics.n = sizeof(s);
		memcpy(ret->answer_statistics.bytes, &s, sizeof(s));
		return 0;
	case MESSAGE_ASK_FLUSH:
		/* Each flush costs a window: naming, payloads, requests. Clients of the socket
		 * cannot have as many as they like. */
		if (b->flushed_at_ns && clock_monotonic_ns() - b->flushed_at_ns < FLUSH_EVERY_NS)
			return -EBUSY;
		return broker_flush(b);
	case MESSAGE_ASK_COPY:
		return broker_add_copy(b, ask);
	case MESSAGE_ASK_ALLOCATOR:
		return broker_add_allocator(b, ask);
	default:
		return -EOPNOTSUPP;
	}
}

/* Opens the socket, or logs why it cannot; everything else goes on. */
static void listen_for_metrics(struct broker *b)
{
	const char *where = b->options.config->metrics_listen;
	char error[256] = "";
	struct address address;
	uid_t uid;
	gid_t gid;

	listener_close(&b->metrics);
	free(b->metrics_listen);
	b->metrics_listen = where ? strdup(where) : NULL;
	if (!where || b->options.capture || b->options.screen)
		return;
	broker_user(b, &uid, &gid);
	if (address_parse(where, &address) < 0 ||
	    listener_open(&b->metrics, &address, gid, error, sizeof(error)) < 0)
		log_error("metrics: cannot serve at %s: %s", where, error);
}

static void begin_later(struct broker *b)
{
	int r = b->state == BROKER_RUNNING ? broker_begin(b) : 0;

	if (r == 0)
		return;
	b->result = r;
	broker_stop(b);
}

int broker_enable(struct broker *b)
{
	b->state = BROKER_RUNNING;
	if (!b->options.enable_on_exec && !b->paused && broker_foresee(b, begin_later))
		return 0;
	return broker_begin(b);
}

/* The new one hears of other destinations. */
static void reload_metrics(struct broker *b)
{
	if (!text_equal(b->metrics_listen, b->options.config->metrics_listen) || b->metrics.fd < 0)
		listen_for_metrics(b);
	if (b->metrics.fd >= 0)
		supervisor_restart(b->supervisor, peer_only(PEER_METRICS));
	else if (supervisor_running(b->supervisor, peer_only(PEER_METRICS)))
		supervisor_stop(b->supervisor, peer_only(PEER_METRICS));
}

/* ---- Life ---- */

/* Of a reload it is who was asked to leave, else everybody. */
static void on_deadline(void *ctx)
{
	struct broker *b = ctx;
	bool reload = b->state == BROKER_REOPENING;
	struct peer_id who;

	for (uint32_t at = 0; supervisor_next(b->supervisor, &at, &who);) {
		if (reload ? !supervisor_stopping(b->supervisor, who)
			   : !supervisor_running(b->supervisor, who))
			continue;
		log_warning("the %s did not %s in time%s: its unsettled data is lost",
			    supervisor_name(b->supervisor, who), reload ? "exit" : "finish",
			    reload ? " for the new config" : "");
		b->result = reload ? b->result : -ETIMEDOUT;
		supervisor_kill(b->supervisor, who);
	}
}

/* Children that need a new set-up leave first. */
static void begin_reopening(struct broker *b, uint32_t leave)
{
	/* Whatever the profiler read after its last window would be in none. */
	if (broker_is_sampling(b))
		(void)broker_enable_events(b, false);
	b->state = BROKER_REOPENING;
	loop_set_timer(b->loop, b->deadline_timer, REOPEN_DEADLINE_NS);
	supervisor_leave(b->supervisor, leave);
}

static void on_watched(void *ctx)
{
	struct broker *b = ctx;
	uint64_t now = clock_monotonic_ns();

	if (now - b->looked_ns < BROKER_LOOK_NS / 8 * 7)
		return;
	b->looked_ns = now;
	broker_look_after_events(b);
	broker_look_after_readers(b);
	broker_look_at_switches(b);
	if (b->options.capture || b->options.screen || !broker_look_at_budget(b))
		return;
	memcpy(b->next_events, b->options.events, sizeof(b->next_events));
	b->n_next_events = b->options.n_events;
	begin_reopening(b, PEER_BIT(PEER_PROFILER));
}

/* Under systemd a daemon that dies is started again, and would meet the same files. */
static char *strikes_path(const struct broker_options *options)
{
	const char *dir = getenv("STATE_DIRECTORY");
	char *path;

	if (options->capture || options->screen || !dir || dir[0] != '/' || strchr(dir, ':'))
		return NULL;
	return asprintf(&path, "%s/set-aside", dir) < 0 ? NULL : path;
}

static int open_shared(struct broker *b)
{
	b->ledger_fd = ledger_new(&b->ledger);
	b->blocks_fd = b->ledger_fd < 0 ? b->ledger_fd : kept_blocks_new();
	if (b->blocks_fd < 0)
		log_error("no memory to share with the profiler: %s", strerror(-b->blocks_fd));
	return b->blocks_fd < 0 ? b->blocks_fd : 0;
}

static void say_what_is_out_of_sight(const struct broker_options *o)
{
	struct sample_circumstances c;

	if (o->input_path || o->n_pids > 0 || sample_sees_all_processes())
		return;
	sample_read_circumstances(&c);
	log_warning("this is not the host's pid namespace: processes outside it have neither names "
		    "nor code, and appear together as [outside]; %s",
		    sample_processes_remedy(&c));
}

/* Before anything is opened: users, destinations, and this process's own limits. */
static int prepare(struct broker *b)
{
	int r = broker_choose_users(b);

	if (r == 0)
		r = broker_check_destination(b);
	if (r < 0)
		return r;
	privileges_raise_open_files();
#ifndef WITH_SANITIZERS /* shadow memory; and the check for leaks looks into this process */
	privileges_limit_data(limits_data_of(LIMITS_BROKER));
	privileges_hide_memory();
#endif
	return 0;
}

/* supervisor_callbacks.was_mapped: the first event has the records of mappings. */
static bool was_mapped(void *ctx, const struct mapped_file_name *file)
{
	const struct broker *b = ctx;

	return b->options.n_events > 0 && seen_mapped(&b->events[0], file);
}

/* The kernel's events and what profilers share; neither when a file takes their place. */
static int open_sources(struct broker *b)
{
	const struct broker_options *options = &b->options;
	int r = options->input_path ? 0 : broker_open_events(b);

	if (r < 0)
		return r;
	say_what_is_out_of_sight(options);
	b->strikes_path = strikes_path(options);
	return options->input_path ? 0 : open_shared(b);
}

int broker_new(struct broker **ret, struct loop *loop, const struct broker_options *options)
{
	_cleanup_(broker_freep) struct broker *b = calloc(1, sizeof(*b));
	struct supervisor_callbacks callbacks = {.message = on_message,
						 .died = on_died,
						 .answer = on_ask,
						 .debug_file = broker_debug_file,
						 .may_read = broker_may_read,
						 .was_mapped = was_mapped,
						 .gone = on_gone,
						 .watched = on_watched,
						 .left = on_left,
						 .recording = options->input_path != NULL,
						 .ctx = b};
	int r;

	if (!b)
		return -ENOMEM;
	if (!sample_has_proc()) {
		log_error(SAMPLE_NO_PROC);
		return -ENODEV;
	}
	b->loop = loop;
	b->rows = peer_rows;
	b->n_rows = n_peer_rows;
	b->options = *options;
	b->start_unix_ns = clock_realtime_ns();
	for (uint32_t i = 0; i < SAMPLE_MAX_EVENTS; i++)
		events_init(&b->events[i]);
	b->spool.fd = b->store.fd = b->debug_cache.fd = -EBADF;
	b->metrics.fd = b->ledger_fd = b->blocks_fd = -EBADF;
	r = prepare(b);
	if (r == 0)
		r = open_sources(b);
	if (r < 0)
		return r;
	callbacks.strikes_path = b->strikes_path;
	callbacks.judge = (struct setup_common){.privileges = b->privileges,
						.seccomp = broker_seccomp(b),
						.landlock = options->config->landlock};
	r = supervisor_new(&b->supervisor, loop, b->rows, b->n_rows, &callbacks,
			   options->config->symbolizer_file_timeout_ns);
	if (r < 0)
		return r;
	if ((r = b->deadline_timer = loop_add_timer(loop, UINT64_MAX, 0, on_deadline, b)) < 0 ||
	    (r = broker_add_turns(b)) < 0 || (r = broker_add_standing(b)) < 0)
		return r;
	listen_for_metrics(b);
	(void)broker_open_debug_cache(b);
	r = supervisor_start_kinds(b->supervisor, EVERYBODY);
	if (r < 0) {
		log_error("the children cannot be started: %s", strerror(-r));
		return r;
	}
	*ret = TAKE_PTR(b);
	return 0;
}

struct broker *broker_free(struct broker *b)
{
	if (b) {
		supervisor_free(b->supervisor);
		while (b->readers.n_clients > 0) {
			const struct broker_client *c = &b->readers.clients[--b->readers.n_clients];

			(void)close_fd(c->memory);
			(void)close_fd(c->maps);
		}
		free(b->strikes_path);
		broker_forget_standing(b);
		for (uint32_t i = 0; i < SAMPLE_MAX_EVENTS; i++)
			events_deinit(&b->events[i]);
		broker_forget_copies(b);
		broker_forget_targets(b);
		(void)close_fd(b->spool.fd);
		free(b->spool.path);
		(void)close_fd(b->store.fd);
		free(b->store.path);
		(void)close_fd(b->debug_cache.fd);
		free(b->debug_cache.path);
		listener_close(&b->metrics);
		free(b->metrics_listen);
		ledger_unmap(b->ledger);
		(void)close_fd(b->ledger_fd);
		(void)close_fd(b->blocks_fd);
		free(b);
	}
	return NULL;
}

void broker_stop(struct broker *b)
{
	if (b->state >= BROKER_STOPPING)
		return;
	b->state = BROKER_STOPPING;
	broker_end_standing(b);
	loop_set_timer(b->loop, b->deadline_timer,
		       b->options.stop_deadline_ns ? b->options.stop_deadline_ns : UINT64_MAX);
	/* What a live view has not shown yet is of no use to anybody. */
	supervisor_leave(b->supervisor, b->options.screen ? PEER_BIT(PEER_SCREEN) : EVERYBODY);
}

void broker_kill(struct broker *b)
{
	if (b->state == BROKER_DONE)
		return;
	b->state = BROKER_STOPPING;
	b->result = -EINTR;
	supervisor_kill_all(b->supervisor);
}

void broker_reap(struct broker *b)
{
	supervisor_reap(b->supervisor);
}

/* Opens new events for a new config. The profiler that read the old ones has finished its work
 * and left; so has the symbolizer, if its limits change. */
static void reopen_events(struct broker *b, uint32_t kinds)
{
	int r;

	loop_set_timer(b->loop, b->deadline_timer, UINT64_MAX);
	broker_close_events(b);
	memcpy(b->options.events, b->next_events, sizeof(b->options.events));
	b->options.n_events = b->n_next_events;
	if ((r = broker_open_events(b)) < 0 ||
	    (r = supervisor_start_kinds(b->supervisor, kinds)) < 0 || (r = broker_enable(b)) < 0) {
		log_error("sampling cannot continue after the reload: %s", strerror(-r));
		b->result = r;
		broker_stop(b);
	}
}

/* Tells the symbolizer how far the profilers have come, so it can count what the last one read
 * and did not hand over. */
static void tell_place(struct broker *b)
{
	struct message m = {.type = MESSAGE_PLACE};

	if (!b->ledger)
		return;
	for (uint32_t i = 0; i < SAMPLE_MAX_EVENTS; i++) {
		const struct sample_tally t = ledger_sum(b->ledger, i);

		m.place.events[i] = (struct place_of_event){t.samples, t.filtered, t.lost};
	}
	(void)supervisor_send(b->supervisor, peer_only(PEER_SYMBOLIZER), &m, NULL, 0);
}

static void on_gone(void *ctx, struct peer_id who, bool clean)
{
	struct broker *b = ctx;

	if (b->state == BROKER_REOPENING)
		loop_set_timer(b->loop, b->deadline_timer, REOPEN_DEADLINE_NS);
	if (!clean && b->result == 0 && b->state == BROKER_STOPPING)
		b->result = -ECHILD;
	/* With other events the windows go on from where they are. */
	if (who.kind == PEER_PROFILER && b->state != BROKER_REOPENING)
		tell_place(b);
}

static void on_left(void *ctx, uint32_t kinds)
{
	struct broker *b = ctx;

	if (b->state == BROKER_REOPENING) {
		reopen_events(b, kinds);
		return;
	}
	b->state = BROKER_DONE;
	b->options.done(b->options.ctx, b->result);
}

static bool texts_differ(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") != 0;
}

static bool events_differ(const struct config *a, const struct config *b)
{
	for (size_t i = 0; i < a->n_events && i < b->n_events; i++) {
		const struct config_event *x = &a->events[i], *y = &b->events[i];

		if (strcmp(x->name, y->name) != 0 || texts_differ(x->event, y->event) ||
		    texts_differ(x->filter, y->filter) || x->period != y->period ||
		    x->samples_per_second != y->samples_per_second || x->user != y->user ||
		    x->kernel != y->kernel || x->budget != y->budget ||
		    x->stack_size_bytes != y->stack_size_bytes)
			return true;
	}
	return a->n_events != b->n_events;
}

static bool sampling_differs(const struct config *a, const struct config *b)
{
	return a->samples_per_second != b->samples_per_second || events_differ(a, b) ||
	       a->reporter_interval_ns != b->reporter_interval_ns ||
	       a->stack_size_bytes != b->stack_size_bytes || a->memory_growth != b->memory_growth ||
	       a->off_cpu != b->off_cpu || a->off_cpu_locks != b->off_cpu_locks ||
	       a->off_cpu_wall != b->off_cpu_wall || a->alloc != b->alloc ||
	       a->alloc_budget != b->alloc_budget || a->ring_size_bytes != b->ring_size_bytes ||
	       a->kernel_stacks != b->kernel_stacks || a->interpreters != b->interpreters ||
	       a->max_frames != b->max_frames || a->window_memory_bytes != b->window_memory_bytes ||
	       a->unwind_rows_bytes != b->unwind_rows_bytes || !filter_texts_equal(a, b) ||
	       !text_equal(a->attributes_allow, b->attributes_allow) ||
	       !text_equal(a->attributes_deny, b->attributes_deny) ||
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

int broker_reload(struct broker *b, const struct config *config, const struct broker_event *events,
		  uint32_t n)
{
	uint32_t leave = symbolizer_limits_differ(b->options.config, config)
				 ? PEER_BIT(PEER_PROFILER) | PEER_BIT(PEER_SYMBOLIZER)
			 : sampling_differs(b->options.config, config) ? PEER_BIT(PEER_PROFILER)
								       : 0;
	struct message log = {.type = MESSAGE_LOG_LEVEL};
	bool other_exports = destinations_differ(b->options.config, config);

	if (b->state != BROKER_RUNNING)
		return -EBUSY;
	b->options.config = config;
	memcpy(b->next_events, events, n * sizeof(*events));
	b->n_next_events = n;
	b->options.interval_ns = config->reporter_interval_ns;
	supervisor_set_file_timeout(b->supervisor, config->symbolizer_file_timeout_ns);
	log.log.level = (uint32_t)log_get_level();
	(void)supervisor_send(b->supervisor, peer_only(PEER_PROFILER), &log, NULL, 0);
	broker_forget_failed_dir(&b->spool);
	broker_forget_failed_dir(&b->store);
	broker_forget_failed_dir(&b->debug_cache);
	/* The symbolizer stays: it holds what the exporter has not settled and gives it to the new
	 * one. */
	broker_tell_symbolizer_config(b);
	b->forget_exports = other_exports;
	if (other_exports && !supervisor_running(b->supervisor, peer_only(PEER_EXPORTER)))
		forget_exports(b);
	supervisor_restart(b->supervisor, peer_only(PEER_EXPORTER));
	reload_metrics(b);
	broker_reload_fetcher(b);
	if (leave)
		begin_reopening(b, leave);
	return 0;
}

int broker_pause(struct broker *b, bool pause)
{
	struct message m = {.type = MESSAGE_PAUSE};
	int r;

	if (b->state != BROKER_RUNNING)
		return -EBUSY;
	if (pause == b->paused)
		return 0;
	r = broker_enable_events(b, !pause);
	if (r < 0)
		return r;
	b->paused = pause;
	/* Events that stood still are not dead. */
	for (uint32_t i = 0; i < b->events[0].cpus.n; i++)
		b->events[0].cpus.items[i].enabled_ns = 0;
	m.pause.paused = pause;
	/* Without a profiler the next one hears of it at its start. */
	(void)supervisor_send(b->supervisor, peer_only(PEER_PROFILER), &m, NULL, 0);
	return 0;
}

bool broker_is_paused(const struct broker *b)
{
	return b->paused;
}

int broker_flush(struct broker *b)
{
	struct message m = {.type = MESSAGE_FLUSH};

	if (b->state != BROKER_RUNNING)
		return -EBUSY;
	m.flush.id = ++b->flush_id;
	b->flushed_at_ns = clock_monotonic_ns();
	return supervisor_send(b->supervisor, peer_only(PEER_PROFILER), &m, NULL, 0);
}

void broker_user(const struct broker *b, uid_t *ret_uid, gid_t *ret_gid)
{
	*ret_uid = b->privileges.uid;
	*ret_gid = b->group;
}

void broker_progress(const struct broker *b, uint64_t *ret_samples, uint64_t *ret_lost)
{
	struct status_counts c;

	broker_counts(b, &c);
	*ret_samples = c.samples - c.filtered;
	*ret_lost = c.counters[PROFILE_SAMPLES_LOST] + c.counters[PROFILE_SAMPLES_DROPPED] +
		    c.counters[PROFILE_SAMPLES_DIED] + c.counters[PROFILE_SWITCHES_LOST];
}

void broker_tell_screen(struct broker *b, const struct message *m)
{
	(void)supervisor_try_send(b->supervisor, peer_only(PEER_SCREEN), m, NULL, 0);
}

const struct sample_features *broker_features(const struct broker *b)
{
	return &b->events[0].features;
}

bool broker_samples_whole_cpus(const struct broker *b)
{
	return b->events[0].targets.n_pids == 0 || b->events[0].sample.whole_cpus;
}

uint32_t broker_written_outputs(const struct broker *b)
{
	return b->input_damaged ? 0 : b->written_outputs;
}

int broker_output_error(const struct broker *b, uint32_t i)
{
	return b->output_errors[i];
}

uint32_t broker_n_cpus(const struct broker *b)
{
	return b->events[0].cpus.n;
}

bool broker_targets_gone(const struct broker *b)
{
	for (size_t i = 0; i < b->options.n_pids; i++) {
		if (!tasks_has_ended(b->options.pids[i], b->options.threads))
			return false;
	}
	return b->options.n_pids > 0;
}
