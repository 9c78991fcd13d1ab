/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The role: it sleeps until its CPU is sampled. Then it runs at once, before the sampled thread
 * goes on, so it reads that thread's state at the sample. It leaves everything else to others:
 * it does not walk native stacks, and takes nothing out of the ring.
 *
 * It must not cost the host more than it is worth: a share of the wall clock for its reads, and the
 * kernel ends it if it runs without a pause.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "runtimes/arch.h"
#include "runtimes/go.h"
#include "src/process/role.h"
#include "src/reader/clients.h"
#include "src/reader/instants.h"
#include "src/reader/moment.h"
#include "src/reader/own-tids.h"
#include "src/reader/setup.h"
#include "src/reader/teller.h"
#include "src/sample/peek.h"
#include "src/sample/sample.h"
#include "util/clock.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/loop.h"
#include "util/time-share.h"

/* A thread whose sample is older has gone on, or is about to: one with a higher priority, say. */
#define MAX_AGE_NS (2 * NSEC_PER_MSEC)
/* Of one CPU: of the reader's whole CPU time, which is looked at once in so many reads. */
#define SHARE_PERCENT	   5
#define READS_OF_ONE_SHARE 16
/* Of blocked threads, besides that: few reads, and each is all that is known of a long time. */
#define BLOCKED_PERCENT 1
#define MAX_BLOCKED	32 /* threads that the profiler asks for, at a time */

struct reader_role {
	struct role role;
	struct setup_reader setup;
	struct watched {
		struct peek *peek;
		int event; /* negative: none */
		bool is_new;
		struct peek_sample sample;
	} watched[READER_MAX_EVENTS];
	int sampling; /* the event of CPU time, which is to be set anew; negative: it is not */
	struct instants instants;
	int profiler; /* a socket; negative: none */
	struct clients *clients;
	struct teller *teller; /* NULL: nobody listens */
	struct time_share share, blocked_share;
	uint32_t n_shared; /* reads */
	bool may_read;
	struct moment rest, last; /* with nothing left to do; at the end of the last read */
	struct moment woke;	  /* when it began with what is new, of tasks */
	struct frame_record_stack stack;
	struct frame_record_context context;
};

static void on_reading(void *ctx, uint32_t pid, bool begins)
{
	struct reader_role *r = ctx;

	r->role.status->process = begins ? pid : 0;
	if (begins)
		role_job_begin(&r->role);
	else
		role_job_end(&r->role);
}

static void ask_thread(void *ctx, uint32_t tid, bool with_stat)
{
	struct message m = {.type = MESSAGE_THREAD};

	m.client.pid = tid;
	m.client.stat = with_stat;
	(void)message_try_send(PROTOCOL_CONTROL_FD, &m, NULL, 0);
}

/* Nothing is left to do: what is sampled from now on is new. */
static void rest(struct reader_role *r)
{
	r->rest = r->last.time_ns ? r->last : moment_now();
	r->last.time_ns = 0;
}

/* Records of kernels before 4.1 have times of another clock. */
static uint64_t time_of(const struct reader_role *r, const struct peek_sample *s)
{
	return r->setup.events[0].features.clockid ? s->time_ns : UINT64_MAX;
}

/* The thread is as it was sampled, as far as its own CPU goes. */
static bool is_in_time(const struct reader_role *r, const struct peek_sample *s)
{
	uint64_t time_ns = time_of(r, s);

	return moment_saw(&r->last, &r->rest, time_ns) &&
	       (time_ns == UINT64_MAX || r->last.time_ns - time_ns < MAX_AGE_NS);
}

/* The same, most likely: frames are compared with the native stack, spans with nothing. */
static bool is_likely_in_time(const struct reader_role *r, const struct peek_sample *s)
{
	return r->setup.of_tasks && moment_saw_since(&r->last, &r->woke, &r->rest, time_of(r, s));
}

static void refuse_span(struct reader_role *r)
{
	r->context.n = 0;
	if (r->stack.span != FRAME_RECORD_SPAN_UNREAD)
		r->stack.span = FRAME_RECORD_SPAN_LATE;
}

static void refuse_frames(struct reader_role *r)
{
	r->stack.result = FRAME_RECORD_LATE;
	r->stack.n = r->stack.n_others = 0;
}

/* Once it has to wait, each read looks again: where few threads are read, 16 of them are long. */
static bool may_read(struct reader_role *r)
{
	uint64_t now;

	if (r->n_shared++ % READS_OF_ONE_SHARE != 0 && r->may_read)
		return true;
	now = clock_monotonic_ns();
	if (r->n_shared > 1)
		time_share_end(&r->share, now);
	r->may_read = time_share_begin(&r->share, now);
	return r->may_read;
}

/* The sample must stay in the ring until the end. Without a priority the reader sees threads that
 * have gone on. */
static bool read_client(struct reader_role *r, struct reader_client *client,
			const struct watched *w)
{
	struct client_sample sample = {
		.tid = w->sample.tid, .cpu = w->sample.cpu, .time_ns = time_of(r, &w->sample)};
	struct record record;

	if (peek_record(w->peek, &record)) {
		sample.stack = peek_stack(w->peek, &record, &sample.start, &sample.n_stack);
		sample.registers = record.sample.user_regs;
		sample.n_registers = record.sample.user_regs
					     ? (uint32_t)__builtin_popcountll(sample_user_regs)
					     : 0;
		sample.goroutine = peek_register(w->peek, &record, arch_go_register);
	}
	r->stack.span = r->setup.realtime ? client_read_context(client, &sample, &r->context)
					  : FRAME_RECORD_SPAN_LATE;
	client_read(client, &sample, r->teller, &r->stack);
	return peek_is_there(w->peek);
}

/* How many of the process's interpreters have that result. */
static uint32_t n_with(const struct frame_record_stack *s, enum frame_record_result result)
{
	uint32_t n = s->result == result;

	for (uint32_t k = 0; k < s->n_others; k++)
		n += s->others[k].result == result;
	return n;
}

/* One that is loaded and never used is late for ever. */
static void count(const struct reader_role *r, const struct reader_client *client)
{
	struct status_reader *counts = &r->role.status->counts.reader;

	if (!client_has_interpreter(client))
		return;
	counts->reads++;
	counts->late += n_with(&r->stack, FRAME_RECORD_LATE) == 1 + r->stack.n_others;
	counts->unproven += n_with(&r->stack, FRAME_RECORD_UNPROVEN) > 0;
}

static void read_stack(struct reader_role *r, struct reader_client *client, const struct watched *w)
{
	const struct peek_sample *s = &w->sample;
	struct status_reader *counts = &r->role.status->counts.reader;
	bool is_new = time_of(r, s) > r->rest.time_ns, is_there;

	r->stack.type = FRAME_RECORD_STACK;
	refuse_frames(r);
	/* Unless there is no time to read it. */
	r->stack.span = is_new ? FRAME_RECORD_SPAN_UNREAD : FRAME_RECORD_SPAN_LATE;
	r->stack.time_ns = s->time_ns;
	r->stack.pid = s->pid;
	r->stack.tid = s->tid;
	r->context = (struct frame_record_context){
		.type = FRAME_RECORD_CONTEXT, .time_ns = s->time_ns, .pid = s->pid, .tid = s->tid};
	teller_begin(r->teller);
	is_there = is_new && may_read(r) && read_client(r, client, w);
	r->last = moment_now();
	if (!is_there || !is_in_time(r, s)) {
		refuse_span(r);
		if (!is_there || !is_likely_in_time(r, s))
			refuse_frames(r);
	}
	r->stack.read_ns = r->last.time_ns;
	r->context.read_ns = r->last.time_ns;
	if (r->context.n && !teller_context(r->teller, &r->context))
		r->stack.span = FRAME_RECORD_SPAN_UNREAD;
	count(r, client);
	counts->refused += !teller_stack(r->teller, &r->stack);
}

/* The oldest of those that are new; NULL: there is none. The profiler takes them by time. */
static struct watched *next_new(struct reader_role *r)
{
	struct watched *oldest = NULL;

	for (uint32_t i = 0; i < r->setup.n_events; i++) {
		struct watched *w = &r->watched[i];

		if (w->is_new && (!oldest || w->sample.time_ns < oldest->sample.time_ns))
			oldest = w;
	}
	return oldest;
}

/* Who was sampled while it ran goes on before the next one does. Who blocked stands still: another
 * thread came onto the CPU before the reader did, and may have been sampled as it left. */
static uint32_t n_read(const struct reader_role *r, uint32_t event)
{
	return r->setup.events[event].options.use == SAMPLE_USE_BLOCKS ? PEEK_MAX : 1;
}

/* 0: the one that is set is right. */
static void set_period(struct reader_role *r, uint64_t period_ns)
{
	if (period_ns && r->sampling >= 0 && sample_set_timer(r->sampling, period_ns) < 0)
		r->sampling = close_fd(r->sampling);
}

static void set_instant(struct reader_role *r, const struct instants_sample *s)
{
	if (s->n > 0 && r->sampling >= 0)
		set_period(r, instants_next(&r->instants, s, clock_monotonic_ns()));
}

static void read_new(struct reader_role *r)
{
	struct reader_client *client;
	struct instants_sample newest = {.seen_ns = clock_monotonic_ns()};
	struct watched *w;
	uint32_t n_passed;

	if (r->setup.of_tasks)
		r->woke = moment_now();
	for (uint32_t i = 0; i < r->setup.n_events; i++) {
		w = &r->watched[i];
		if (!w->peek)
			continue;
		n_passed = peek_look(w->peek, n_read(r, i));
		r->role.status->counts.reader.passed_over += n_passed;
		w->is_new = peek_next(w->peek, &w->sample);
		if (i == 0 && w->is_new) {
			newest.time_ns = w->sample.time_ns;
			newest.tid = w->sample.tid;
			newest.n = n_passed + 1;
		}
	}
	while ((w = next_new(r))) {
		client = clients_find(r->clients, w->sample.pid);
		/* For a block alone, the instant stays. */
		if (client && newest.n > 0)
			set_period(r, instants_hold(&r->instants, clock_monotonic_ns()));
		if (client)
			read_stack(r, client, w);
		w->is_new = peek_next(w->peek, &w->sample);
	}
	set_instant(r, &newest);
}

static void on_sample(void *ctx, int fd, uint32_t events)
{
	struct reader_role *r = ctx;

	/* An event whose task is gone reports an error for ever. */
	if (events & (EPOLLHUP | EPOLLERR))
		loop_remove_fd(r->role.loop, fd);
	if (!r->teller)
		return;
	read_new(r);
	rest(r);
}

/* ---- Who it talks to ---- */

static void leave_profiler(struct reader_role *r)
{
	loop_remove_fd(r->role.loop, r->profiler);
	r->profiler = close_fd(r->profiler);
	r->teller = teller_free(r->teller);
	/* Nobody sets it until there is a new one. */
	set_period(r, r->instants.period_ns);
	instants_forget(&r->instants);
}

_Static_assert((int)MESSAGE_MAX_CONTEXT == (int)FRAME_RECORD_MAX_CONTEXT, "an answer has all");

/* The context of a thread that should be blocked: the profiler finds out whether it was. */
static void read_blocked(struct reader_role *r, struct message *m, bool allowed)
{
	struct reader_client *client = clients_find(r->clients, m->context.pid);
	/* It is as it was when the block began: there is no hurry. */
	const struct client_sample sample = {
		.tid = m->context.tid, .cpu = m->context.cpu, .time_ns = clock_monotonic_ns()};

	r->context.n = 0;
	m->context.span = client && allowed ? client_read_context(client, &sample, &r->context)
					    : FRAME_RECORD_SPAN_UNREAD;
	m->context.read_ns = clock_monotonic_ns();
	m->context.n = r->context.n;
	memcpy(m->context.bytes, r->context.bytes, r->context.n);
	(void)message_try_send(r->profiler, m, NULL, 0);
}

static void on_profiler(void *ctx, int fd, uint32_t events)
{
	struct reader_role *r = ctx;
	struct message m;
	int fds[2], e = -EAGAIN;
	bool allowed;

	/* Their threads go on once it rests. */
	if (r->teller)
		read_new(r);
	allowed = time_share_begin(&r->blocked_share, clock_monotonic_ns());
	for (int i = 0; i < MAX_BLOCKED && (e = message_recv(fd, &m, fds, MSG_DONTWAIT)) > 0; i++) {
		if (m.type == MESSAGE_CONTEXT)
			read_blocked(r, &m, allowed);
		(void)close_fd(fds[0]);
		(void)close_fd(fds[1]);
	}
	time_share_end(&r->blocked_share, clock_monotonic_ns());
	if (e <= 0 && e != -EAGAIN)
		leave_profiler(r);
	rest(r);
}

static void join_profiler(struct reader_role *r, int owned_fd)
{
	const struct message m = {.type = MESSAGE_FRAMES};
	int ring, e;

	leave_profiler(r);
	r->profiler = owned_fd;
	ring = teller_new(&r->teller);
	clients_forget_told(r->clients);
	e = ring < 0 ? ring : message_send(r->profiler, &m, &ring, 1);
	if (e == 0)
		e = loop_add_fd(r->role.loop, r->profiler, EPOLLIN, on_profiler, r);
	(void)close_fd(ring);
	if (e == 0)
		return;
	log_warning("frames cannot be passed to the profiler: %s", strerror(-e));
	leave_profiler(r);
}

static void watch(struct reader_role *r, const struct message *m, int owned_fd)
{
	const struct reader_event *of = &r->setup.events[m->cpu.index];
	struct watched *w = &r->watched[m->cpu.index];
	int e;

	if (m->cpu.index >= r->setup.n_events) {
		(void)close_fd(owned_fd);
		return;
	}
	loop_remove_fd(r->role.loop, w->event);
	w->peek = peek_free(w->peek);
	(void)close_fd(w->event);
	w->event = owned_fd;
	e = peek_new(&w->peek, &of->options, &of->features, w->event, m->cpu.sample_ring_bytes);
	if (e == 0)
		/* Once a wake-up: else it asks the kernel each time whether there are more. */
		e = loop_add_fd(r->role.loop, w->event, EPOLLIN | EPOLLET, on_sample, r);
	if (e < 0)
		log_warning("the samples of CPU %d cannot be watched: %s", m->cpu.cpu,
			    strerror(-e));
}

/* The event that samples CPU time into the ring. */
static void take_event(struct reader_role *r, int owned_fd)
{
	(void)close_fd(r->sampling);
	r->sampling = r->setup.realtime ? owned_fd : close_fd(owned_fd);
	instants_forget(&r->instants);
}

static void on_control(void *ctx, const struct message *m, int fds[2])
{
	struct reader_role *r = ctx;

	switch (m->type) {
	case MESSAGE_PEER:
		join_profiler(r, TAKE_FD(fds[0]));
		break;
	case MESSAGE_CPU_ADD:
		watch(r, m, TAKE_FD(fds[0]));
		break;
	case MESSAGE_CPU_EVENT:
		take_event(r, TAKE_FD(fds[0]));
		break;
	case MESSAGE_CLIENT:
		(void)clients_add(r->clients, m, TAKE_FD(fds[0]), TAKE_FD(fds[1]));
		break;
	case MESSAGE_CLIENT_GONE:
		clients_remove(r->clients, m->client.pid);
		break;
	case MESSAGE_THREAD:
		clients_tell_thread(r->clients, m->client.pid,
				    &(struct own_thread){m->client.own_pid, m->client.in_front != 0,
							 m->client.robust_list, TAKE_FD(fds[0])});
		break;
	case MESSAGE_STOP:
		loop_exit(r->role.loop, 0);
		break;
	default:
		break;
	}
	(void)close_fd(fds[0]);
	(void)close_fd(fds[1]);
	rest(r);
}

static int on_text(void *ctx, const struct message *m, int fd)
{
	(void)close_fd(fd);
	return 0;
}

/* The first warning of the kernel that it runs without a pause: the second one ends it. */
static void on_overrun(int signal)
{
	_exit(1);
}

int role_reader_main(void)
{
	struct reader_role *r = calloc(1, sizeof(*r));
	const struct clients_callbacks callbacks = {on_reading, ask_thread, r};
	int e;

	if (!r)
		return 1;
	r->profiler = r->sampling = -EBADF;
	for (int i = 0; i < READER_MAX_EVENTS; i++)
		r->watched[i].event = -EBADF;
	r->share = (struct time_share){
		.percent = SHARE_PERCENT, .only_cpu = true, .save_ns = NSEC_PER_SEC};
	r->blocked_share = r->share;
	r->blocked_share.percent = BLOCKED_PERCENT;
	e = role_start(&r->role, PEER_READER, &r->setup, sizeof(r->setup), on_text, r);
	instants_init(&r->instants,
		      sample_timer_ns(&r->setup.events[0].options, &r->setup.events[0].features),
		      r->setup.own_time, hash_u64(clock_monotonic_ns()));
	(void)signal(SIGXCPU, on_overrun);
	if (e == 0)
		e = clients_new(&r->clients, &callbacks);
	if (e == 0)
		e = role_listen(&r->role, on_control, r);
	if (e == 0)
		e = loop_run(r->role.loop);
	if (r->role.loop)
		leave_profiler(r);
	for (int i = 0; i < READER_MAX_EVENTS; i++) {
		peek_free(r->watched[i].peek);
		(void)close_fd(r->watched[i].event);
	}
	(void)close_fd(r->sampling);
	clients_free(r->clients);
	loop_free(r->role.loop);
	free(r);
	return e == 0 ? 0 : 1;
}
