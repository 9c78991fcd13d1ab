/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The role's main: what it samples or reads, and when; and the messages of the broker.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/process/kept-blocks.h"
#include "src/process/status-page.h"
#include "src/profiler/profiler.h"
#include "src/profiler/readers.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"
#include "util/text.h"

/* Rings wake us at their watermark; this is for quiet hosts, and for catching short-lived processes
 * while /proc still knows them. Each wake-up costs as much as a sample or two. */
#define DRAIN_NS     (200 * NSEC_PER_MSEC)
#define MIN_DRAIN_NS (5 * NSEC_PER_MSEC)
#define LOOK_NS	     (40 * NSEC_PER_MSEC)
#define BLOCKS_NS    (10 * NSEC_PER_MSEC) /* 6,000 blocks a second of a CPU fill half a ring */
#define RECORD_BYTES 2048		  /* of a sample without its stack */
#define STOP_NS	     (10 * NSEC_PER_MSEC) /* between looks at whether all is settled */
#define MAX_CPUS     4096
/* Of a file, between looks at the sockets: some milliseconds of walking. */
#define REPLAY_SLICE   1024
#define REPLAY_POLL_NS (1 * NSEC_PER_MSEC) /* while the symbolizer has a window */

static void on_flush_timer(void *ctx)
{
	struct profiler *p = ctx;

	if (!handover_settled(p->handover))
		return;
	p->role.status->flushed = p->flush_id;
	loop_set_timer(p->role.loop, p->flush_timer, UINT64_MAX);
}

/* ---- A perf.data file ---- */

/* Of a file: those of the rings are in the ledger. */
static void count_sample(struct profiler *p, const struct record *r)
{
	struct status_counts *counts = &p->role.status->counts;

	if (r->type != RECORD_SAMPLE)
		return;
	counts->samples++;
	counts->events[r->index].samples++;
}

/* The broker stops us then, or all, by what the result says. */
static void end_replay(struct profiler *p, int result)
{
	struct message m = {.type = MESSAGE_RESULT};

	loop_set_timer(p->role.loop, p->replay_timer, UINT64_MAX);
	if (result == 0) {
		attribution_add_lost(
			p->attribution,
			(struct sample_losses){.samples = {replay_stats(p->replay)->lost}});
		replay_report(p->replay);
		profiler_close_window(p);
	}
	m.result.code = result;
	(void)message_send(PROTOCOL_CONTROL_FD, &m, NULL, 0);
}

/*
 * The file is read no faster than the symbolizer takes windows: nothing is gained by piling them
 * up, and none may be dropped.
 */
static void on_replay_timer(void *ctx)
{
	struct profiler *p = ctx;
	struct record r;
	int e = 1;

	if (!handover_settled(p->handover)) {
		loop_set_timer(p->role.loop, p->replay_timer, REPLAY_POLL_NS);
		return;
	}
	role_job_begin(&p->role);
	attribution_begin(p->attribution);
	for (int i = 0; i < REPLAY_SLICE && e > 0; i++) {
		e = replay_next(p->replay, &r);
		if (e <= 0)
			break;
		if (!attribution_record(p->attribution, &r))
			p->role.status->counts.filtered++;
		count_sample(p, &r);
	}
	role_job_end(&p->role);
	if (e <= 0) {
		end_replay(p, e);
		return;
	}
	if (profile_nearly_full(attribution_profile(p->attribution)))
		profiler_close_window(p);
	loop_set_timer(p->role.loop, p->replay_timer, 0);
}

/* No switch says where a thread blocks: whoever is blocked is looked at now and then. So is one
 * whose span is wanted. */
static bool looks_for_blocked(const struct profiler *p)
{
	const struct setup_event *last = &p->setup.events[p->setup.n_events - 1];

	return last->options.use == SAMPLE_USE_SWITCHES && last->options.switch_fields.plain &&
	       !last->features.kernel;
}

/*
 * Are the rings of an event read by the timer alone? Each sample of some would wake us. And if each
 * block is sampled, rings that are read whenever they are full hold up who blocks all the time.
 */
static bool is_timed(const struct profiler *p, uint32_t index)
{
	bool wakes_readers = p->setup.of_tasks && p->setup.events[index].options.wake_each;

	return wakes_readers || profiler_picks_blocks(p, index);
}

static bool times_blocks(const struct profiler *p)
{
	for (uint32_t i = 1; i < p->setup.n_events; i++) {
		if (p->setup.events[i].options.use == SAMPLE_USE_BLOCKS && is_timed(p, i))
			return true;
	}
	return false;
}

/* So long that no ring of samples is more than half full by then: some of them are not polled. */
static uint64_t drain_ns(const struct profiler *p)
{
	const struct sample_options *o = &p->setup.events[0].options;
	uint64_t record = o->stack_bytes + RECORD_BYTES;
	uint64_t ns = o->period ? DRAIN_NS
				: o->ring_bytes / 2 * NSEC_PER_SEC / (record * (o->rate_hz + 1));
	uint64_t young_ns = attribution_drain_ns(p->attribution);

	if ((looks_for_blocked(p) || attribution_follows_blocks(p->attribution)) && ns > LOOK_NS)
		ns = LOOK_NS;
	if (times_blocks(p) && ns > BLOCKS_NS)
		ns = BLOCKS_NS;
	if (ns > young_ns)
		ns = young_ns;
	return ns < MIN_DRAIN_NS ? MIN_DRAIN_NS : ns < DRAIN_NS ? ns : DRAIN_NS;
}

static void read_late(struct profiler *p)
{
	if (!p->merger || p->finished || p->paused_since_ns)
		return;
	role_job_begin(&p->role);
	attribution_read_late(p->attribution, p->drained_ns);
	attribution_read_residents(p->attribution, clock_realtime_ns(), false);
	role_job_end(&p->role);
}

/* All rings: none needs the timer's drain before that time has passed again. */
static void drain(struct profiler *p)
{
	uint64_t after_ns, now;

	profiler_drain(p, false);
	after_ns = drain_ns(p);
	now = clock_monotonic_ns();
	loop_set_timer(p->role.loop, p->drain_timer, after_ns);
	if (now - p->read_late_ns < after_ns / 2)
		return;
	p->read_late_ns = now;
	read_late(p);
}

static void on_drain_timer(void *ctx)
{
	drain(ctx);
}

static void on_ring(void *ctx, int fd, uint32_t events)
{
	struct profiler *p = ctx;

	/* An event whose task is gone reports an error for ever. */
	if (events & (EPOLLHUP | EPOLLERR))
		loop_remove_fd(p->role.loop, fd);
	drain(p);
}

static void on_window_timer(void *ctx)
{
	struct profiler *p = ctx;

	profiler_drain(p, false);
	profiler_close_window(p);
}

/* Everything handed over and settled: nothing is left to do. */
static void on_stop_timer(void *ctx)
{
	struct profiler *p = ctx;

	if (handover_settled(p->handover))
		loop_exit(p->role.loop, 0);
}

/* NULL: there cannot be such an event or CPU. */
static struct sample_cpu **place_of_cpu(struct profiler *p, uint32_t index, int cpu)
{
	if (index >= p->setup.n_events || cpu < 0 || cpu >= MAX_CPUS)
		return NULL;
	return &p->cpus[index * MAX_CPUS + (uint32_t)cpu];
}

/* NULL: it is not sampled. */
static struct sample_cpu *find_cpu(struct profiler *p, uint32_t index, int cpu)
{
	struct sample_cpu **place = place_of_cpu(p, index, cpu);

	return place ? *place : NULL;
}

static void add_cpu(struct profiler *p, const struct message *m, int fds[2])
{
	struct sample_cpu **place = place_of_cpu(p, m->cpu.index, m->cpu.cpu), *c;
	int r;

	c = place && !*place ? malloc(sizeof(*c)) : NULL;
	if (!c) {
		(void)close_fd(fds[0]);
		(void)close_fd(fds[1]);
		return;
	}
	*place = c;
	*c = (struct sample_cpu){
		.cpu = m->cpu.cpu,
		.index = m->cpu.index,
		.sample_fd = fds[0],
		.sideband_fd = fds[1],
		.event_fd = -EBADF,
		.sample_ring_bytes = m->cpu.sample_ring_bytes,
		.sideband_ring_bytes = m->cpu.sideband_ring_bytes,
	};
	/*
	 * A CPU that came online ran for a while without events, so its forks and execs were not
	 * recorded. Its events count by now: processes made before are known once all rings are
	 * read.
	 */
	if (m->cpu.came_online && c->index == 0) {
		profiler_drain(p, true);
		attribution_doubt(p->attribution);
	}
	r = merger_add_cpu(p->merger, c);
	if (r == 0 && !is_timed(p, c->index))
		r = loop_add_fd(p->role.loop, c->sample_fd, EPOLLIN, on_ring, p);
	if (p->newcomers && c->sideband_fd >= 0)
		newcomers_add(p->newcomers, c->sideband_fd);
	if (r < 0)
		log_error("CPU %d is not sampled: its ring cannot be mapped: %s", c->cpu,
			  strerror(-r));
}

static void close_cpu(struct profiler *p, uint32_t index, int cpu)
{
	struct sample_cpu **place = place_of_cpu(p, index, cpu), *c = place ? *place : NULL;

	if (!c)
		return;
	loop_remove_fd(p->role.loop, c->sample_fd);
	if (p->newcomers)
		newcomers_remove(p->newcomers, c->sideband_fd);
	(void)close_fd(c->sample_fd);
	(void)close_fd(c->sideband_fd);
	(void)close_fd(c->event_fd);
	free(c);
	*place = NULL;
}

static void remove_cpu(struct profiler *p, int cpu)
{
	if (!find_cpu(p, 0, cpu))
		return;
	profiler_drain(p, true);
	/* Its rings know what they lost since the last window, so read that before they go. */
	attribution_add_lost(p->attribution, merger_read_lost(p->merger));
	merger_remove_cpu(p->merger, cpu);
	for (uint32_t i = 0; i < p->setup.n_events; i++)
		close_cpu(p, i, cpu);
}

/* Samples of the event before are in the same ring, in front of those of this one. */
static void replace_event(struct profiler *p, const struct message *m, int fd)
{
	struct sample_cpu *c = find_cpu(p, m->cpu.index, m->cpu.cpu);

	if (!c) {
		(void)close_fd(fd);
		return;
	}
	merger_replace_event(p->merger, c->cpu, c->index, fd);
	(void)close_fd(c->event_fd);
	c->event_fd = fd;
}

static void set_stack_size(struct profiler *p, uint32_t bytes)
{
	if (bytes != p->setup.events[0].options.stack_bytes)
		log_info("stack copies of %u bytes instead of %u", bytes,
			 p->setup.events[0].options.stack_bytes);
	p->setup.events[0].options.stack_bytes = bytes;
	stack_size_set(&p->stack_size, bytes);
}

static void look_at(struct profiler *p, const struct message *m)
{
	if (m->client.pid)
		attribution_look_at(p->attribution, m->client.pid, clock_monotonic_ns());
	else
		(void)message_send(PROTOCOL_CONTROL_FD, m, NULL, 0);
}

/* Owns fd. */
static void connect_peer(struct profiler *p, const struct message *m, int fd)
{
	if (m->peer.peer != PEER_READER)
		handover_connect(p->handover, fd);
	else if (p->readers)
		readers_join(p->readers, m->peer.index, fd);
	else
		(void)close_fd(fd);
}

static void flush(struct profiler *p, uint64_t id)
{
	profiler_drain(p, true);
	profiler_close_window(p);
	p->flush_id = id;
	loop_set_timer(p->role.loop, p->flush_timer, 0);
}

static void finish(struct profiler *p)
{
	if (!p->replay) {
		profiler_drain(p, true);
		attribution_end(p->attribution);
		profiler_close_window(p);
		p->finished = true;
	}
	loop_set_timer(p->role.loop, p->stop_timer, 0);
}

static void on_control(void *ctx, const struct message *m, int fds[2])
{
	struct profiler *p = ctx;

	switch (m->type) {
	case MESSAGE_PEER:
		connect_peer(p, m, fds[0]);
		return;
	case MESSAGE_CLIENT_GONE:
		if (p->readers)
			readers_refuse(p->readers, m->client.pid);
		break;
	case MESSAGE_INTERPRETER:
		if (p->readers)
			readers_ask_again(p->readers, m->client.pid);
		break;
	case MESSAGE_LOOK:
		look_at(p, m);
		break;
	case MESSAGE_TARGET:
		attribution_add_target(p->attribution, m->client.pid);
		break;
	case MESSAGE_STANDS:
		attribution_stands(p->attribution, m);
		break;
	case MESSAGE_CPU_ADD:
		add_cpu(p, m, fds);
		return;
	case MESSAGE_CPU_EVENT:
		replace_event(p, m, fds[0]);
		return;
	case MESSAGE_STACK_SIZE:
		set_stack_size(p, m->stack_size.bytes);
		break;
	case MESSAGE_CPU_REMOVE:
		remove_cpu(p, m->cpu.cpu);
		break;
	case MESSAGE_QUARANTINE:
		attribution_quarantine(p->attribution, m);
		break;
	case MESSAGE_FLUSH:
		flush(p, m->flush.id);
		break;
	case MESSAGE_STOOD_STILL:
		attribution_miss_ends(p->attribution);
		break;
	case MESSAGE_PAUSE:
		profiler_pause(p, m->pause.paused != 0);
		break;
	case MESSAGE_LOG_LEVEL:
		log_set_level((enum log_level)m->log.level);
		break;
	case MESSAGE_STOP:
		finish(p);
		break;
	default:
		break;
	}
	(void)close_fd(fds[0]);
	(void)close_fd(fds[1]);
}

static void on_reader_joined(void *ctx, int cpu, bool joined)
{
	struct profiler *p = ctx;

	for (uint32_t i = 0; i < p->setup.n_events && !p->setup.of_tasks; i++) {
		const struct sample_cpu *c = find_cpu(p, i, cpu);

		if (!c || (i > 0 && p->setup.events[i].options.use != SAMPLE_USE_BLOCKS))
			continue;
		if (joined)
			loop_remove_fd(p->role.loop, c->sample_fd);
		else
			(void)loop_add_fd(p->role.loop, c->sample_fd, EPOLLIN, on_ring, p);
	}
}

static void on_context(void *ctx, const struct blocked_context *context)
{
	struct profiler *p = ctx;

	attribution_context(p->attribution, context);
}

static bool look_for_newcomers(void *ctx)
{
	struct profiler *p = ctx;
	uint64_t before = p->n_sideband;

	drain(p);
	return p->n_sideband != before;
}

static int set_up_readers(struct profiler *p)
{
	const struct readers_callbacks callbacks = {on_reader_joined, on_context, p};
	int r = readers_new(&p->readers, p->role.loop, &callbacks);

	if (r == 0)
		r = attribution_set_readers(p->attribution, p->readers);
	return r < 0 ? r : newcomers_new(&p->newcomers, p->role.loop, look_for_newcomers, p);
}

static int on_text(void *ctx, const struct message *m, int fd)
{
	struct profiler *p = ctx;

	switch (m->text.kind) {
	case TEXT_INPUT:
		p->input_fd = fd;
		return text_set(&p->input_path, m->text.text);
	case TEXT_EVENT:
		return text_set(&p->input_event, m->text.text);
	case TEXT_KALLSYMS:
		p->kallsyms_fd = fd;
		return 0;
	case TEXT_KERNEL_NOTES:
		p->kernel_notes_fd = fd;
		return 0;
	case TEXT_ALLOW:
		return text_set(&p->allowed_attributes, m->text.text);
	case TEXT_DENY:
		return text_set(&p->denied_attributes, m->text.text);
	case TEXT_LEDGER:
		p->ledger_fd = fd;
		return 0;
	case TEXT_BLOCKS:
		p->blocks_fd = fd;
		return 0;
	default:
		(void)close_fd(fd);
		return m->text.kind == TEXT_FILTER ? filter_add(&p->filter, m->text.text) : 0;
	}
}

/* Its header is a stranger's already. */
static int set_up_replay(struct profiler *p)
{
	const struct replay_options options = {
		.path = p->input_path,
		.event = p->input_event,
		.fd = TAKE_FD(p->input_fd),
		.kallsyms_fd = TAKE_FD(p->kallsyms_fd),
		.kernel_notes_fd = TAKE_FD(p->kernel_notes_fd),
		.ask = &p->ask,
	};

	role_confine(&p->role);
	return replay_new(&p->replay, &options);
}

static int start_replay(struct profiler *p)
{
	p->replay_timer = loop_add_timer(p->role.loop, 0, 0, on_replay_timer, p);
	return p->replay_timer < 0 ? p->replay_timer : 0;
}

static int new_merger(struct profiler *p)
{
	const struct setup_event *e = p->setup.events;
	int r = ledger_map(p->ledger_fd, &p->ledger);

	if (r == 0)
		r = kept_blocks_map(p->blocks_fd, &p->blocks);
	if (r == 0)
		attribution_share_blocks(p->attribution, p->blocks);
	if (r == 0)
		r = merger_new(&p->merger, &e[0].options, &e[0].features);
	if (r == 0)
		merger_keep_ledger(p->merger, p->ledger);
	if (r == 0)
		attribution_watch_gaps(p->attribution, p->ledger);
	for (uint32_t i = 1; i < p->setup.n_events && r == 0; i++)
		r = merger_add_event(p->merger, &e[i].options, &e[i].features);
	return r;
}

static int start_draining(struct profiler *p)
{
	int r;

	if ((r = new_merger(p)) < 0 ||
	    (r = p->drain_timer =
		     loop_add_timer(p->role.loop, drain_ns(p), DRAIN_NS, on_drain_timer, p)) < 0 ||
	    (r = loop_add_timer(p->role.loop, p->setup.interval_ns, p->setup.interval_ns,
				on_window_timer, p)) < 0)
		return r;
	return 0;
}

static void on_refused_control(void *ctx, const struct message *m, int fds[2])
{
	struct profiler *p = ctx;

	if (m->type == MESSAGE_STOP)
		loop_exit(p->role.loop, 0);
	(void)close_fd(fds[0]);
	(void)close_fd(fds[1]);
}

/* A new profiler could not read the file either, so this one stays until the broker stops it. */
static int refuse_input(struct profiler *p, int error)
{
	struct message m = {.type = MESSAGE_RESULT};

	m.result.code = error;
	(void)message_send(PROTOCOL_CONTROL_FD, &m, NULL, 0);
	return role_listen(&p->role, on_refused_control, p);
}

static int set_up(struct profiler *p)
{
	struct handover_callbacks callbacks = {
		.descriptor = attribution_descriptor,
		.mark = attribution_mark_sent,
		.keep_settled = p->setup.capture,
	};
	int r;

	p->ask.sock = PROTOCOL_ASK_FD;
	if (p->setup.n_events > SAMPLE_MAX_EVENTS)
		return -EBADMSG;
	p->cpus = calloc(p->setup.n_events + 1, MAX_CPUS * sizeof(*p->cpus));
	p->block_grants = block_grants_new();
	p->wakeup_grants = block_grants_new();
	if (!p->cpus || !p->block_grants || !p->wakeup_grants)
		return -ENOMEM;
	p->window_start_unix_ns = clock_realtime_ns();
	if (p->setup.events[0].features.clockid) {
		p->clock_offset_ns = clock_realtime_ns() - clock_monotonic_ns();
		p->offset_known = true;
	}
	r = p->input_fd >= 0 ? set_up_replay(p) : 0;
	if (r < 0)
		return refuse_input(p, r);
	r = attribution_new(&p->attribution, &p->role, &p->ask, &p->setup, &p->filter, p->replay);
	if (r < 0)
		return r;
	callbacks.ctx = p->attribution;
	attribution_choose_attributes(p->attribution, p->allowed_attributes, p->denied_attributes);
	stack_size_init(&p->stack_size, p->setup.events[0].options.stack_bytes,
			p->setup.events[0].options.ring_bytes, p->setup.events[0].options.rate_hz);
	if (p->setup.adapt_stack_size)
		attribution_watch_stacks(p->attribution, &p->stack_size);
	if ((p->setup.interpreters && !p->replay && (r = set_up_readers(p)) < 0) ||
	    (r = handover_new(&p->handover, p->role.loop, &callbacks)) < 0 ||
	    (r = p->replay ? start_replay(p) : start_draining(p)) < 0 ||
	    (r = p->flush_timer =
		     loop_add_timer(p->role.loop, UINT64_MAX, STOP_NS, on_flush_timer, p)) < 0 ||
	    (r = p->stop_timer =
		     loop_add_timer(p->role.loop, UINT64_MAX, STOP_NS, on_stop_timer, p)) < 0)
		return r;
	profiler_pause(p, p->setup.paused);
	return role_listen(&p->role, on_control, p);
}

static void init(struct profiler *p)
{
	*p = (struct profiler){.input_fd = -EBADF,
			       .kallsyms_fd = -EBADF,
			       .kernel_notes_fd = -EBADF,
			       .ledger_fd = -EBADF,
			       .blocks_fd = -EBADF};
}

static void deinit(struct profiler *p)
{
	handover_free(p->handover);
	merger_free(p->merger);
	ledger_unmap(p->ledger);
	(void)close_fd(p->ledger_fd);
	attribution_free(p->attribution);
	kept_blocks_unmap(p->blocks);
	(void)close_fd(p->blocks_fd);
	newcomers_free(p->newcomers);
	readers_free(p->readers);
	filter_deinit(&p->filter);
	replay_free(p->replay);
	free(p->block_grants);
	free(p->wakeup_grants);
	free(p->input_path);
	free(p->input_event);
	free(p->allowed_attributes);
	free(p->denied_attributes);
	loop_free(p->role.loop);
	for (uint32_t i = 0; p->cpus && i < p->setup.n_events * MAX_CPUS; i++)
		free(p->cpus[i]);
	free(p->cpus);
}

/* The state is not on the stack, so that small copies of it are whole. */
int role_profiler_main(void)
{
	struct profiler *p = malloc(sizeof(*p));
	int r;

	if (!p)
		return 1;
	init(p);
	r = role_start(&p->role, PEER_PROFILER, &p->setup, sizeof(p->setup), on_text, p);
	if (r == 0)
		r = set_up(p);
	if (r == 0)
		r = loop_run(p->role.loop);
	else
		log_error("cannot start: %s", strerror(-r));
	deinit(p);
	free(p);
	return r == 0 ? 0 : 1;
}
