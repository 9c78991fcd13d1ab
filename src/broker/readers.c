/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The readers of interpreters' stacks, one on each CPU. The profiler says which processes have an
 * interpreter; only while there is one do readers run, and do samples wake them. A process whose
 * memory keeps one of them waiting is not read for a while, and each time for twice as long: it may
 * be innocent, when one of its threads has the lock of its mappings and gets no CPU.
 */
#include "config.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/broker/internal.h"
#include "src/broker/limits.h"
#include "src/config/config.h"
#include "src/opener/helper.h"
#include "src/opener/opener.h"
#include "src/reader/setup.h"
#include "util/log.h"
#include "util/text.h"

#ifndef SCHED_DEADLINE
#define SCHED_DEADLINE 6 /* linux/sched.h, which cannot stand beside sched.h */
#endif
#define IDLE_NS	 (30 * NSEC_PER_SEC) /* without clients, before the readers leave */
#define PRIORITY 1
/* Of each CPU: the event that wakes, two sockets, the status page, and as many while it starts. */
#define READER_DESCRIPTORS 8
#define SPARE_DESCRIPTORS  64
#define SECONDS		   600
#define ASIDE_NS	   (10 * NSEC_PER_SEC) /* the first time; at most 64 times as long */
#define MIN_PERIOD_NS	   NSEC_PER_MSEC       /* of samples of time that wake readers */
#define MAX_EVEN_HZ	   200 /* where they shift shares by some per cent at most */

/* ---- Clients ---- */

static struct broker_client *find_client(struct broker *b, uint32_t pid)
{
	for (uint32_t i = 0; i < b->readers.n_clients; i++) {
		if (b->readers.clients[i].pid == pid)
			return &b->readers.clients[i];
	}
	return NULL;
}

static void close_client(struct broker_client *c)
{
	c->memory = close_fd(c->memory);
	c->maps = close_fd(c->maps);
}

static struct message message_of(const struct broker_client *c)
{
	struct message m = {.type = MESSAGE_CLIENT};

	m.client.pid = c->pid;
	m.client.own_pid = c->own_pid;
	memcpy(m.client.images, c->images, sizeof(c->images));
	m.client.major = c->major;
	m.client.minor = c->minor;
	m.client.threads = c->threads;
	return m;
}

static bool is_reader(const struct broker *b, struct peer_id who)
{
	return who.kind == PEER_READER && supervisor_running(b->supervisor, who);
}

static void tell_readers(const struct broker *b, const struct broker_client *c)
{
	bool is_gone = c->memory < 0;
	const int fds[] = {c->memory, c->maps};
	struct message m = {.type = MESSAGE_CLIENT_GONE};
	struct peer_id who;

	m.client.pid = c->pid;
	if (!is_gone)
		m = message_of(c);
	for (uint32_t at = 0; supervisor_next(b->supervisor, &at, &who);) {
		if (is_reader(b, who))
			(void)supervisor_send_now(b->supervisor, who, &m, is_gone ? NULL : fds,
						  is_gone ? 0 : ARRAY_SIZE(fds));
	}
}

static void refuse_client(struct broker *b, uint32_t pid, int error)
{
	struct message m = {.type = MESSAGE_CLIENT_GONE};

	m.client.pid = pid;
	(void)supervisor_send(b->supervisor, peer_only(PEER_PROFILER), &m, NULL, 0);
	b->readers.n_not_allowed += error == -EACCES || error == -EPERM;
	b->readers.n_too_many += error == -ENOSPC || error == -EMFILE;
	if ((error == -EACCES || error == -EPERM) && log_ratelimit(&b->readers.refused, SECONDS))
		log_warning("the memory of process %u may not be read, so its samples lack spans, "
			    "and functions of an interpreter: that needs root, or CAP_SYS_PTRACE",
			    pid);
	else
		log_debug("process %u: its memory is not read: %s", pid, strerror(-error));
}

/* 0: it is gone. */
static uint64_t start_of(uint32_t pid)
{
	struct message m = {.type = MESSAGE_ANSWER_PROCESS};

	return opener_process(pid, &m) == 0 ? m.answer_process.start_time_ns : 0;
}

/* As that of a file: another process may get the number later, but it begins at another time. */
static struct file_identity identity_of(uint32_t pid)
{
	return (struct file_identity){.ino = pid, .mtime_ns = start_of(pid)};
}

uint32_t broker_process_of(const struct strike *k)
{
	uint32_t pid = (uint32_t)k->file.identity.ino;
	struct file_identity now = identity_of(pid);

	return now.mtime_ns && file_identity_equal(&now, &k->file.identity) ? pid : 0;
}

bool broker_may_read(void *ctx, uint32_t pid)
{
	const struct strikes *aside = &((const struct broker *)ctx)->readers.aside;
	const struct strike *k;

	/* What /proc says is asked only if it matters. */
	for (uint32_t at = 0; (k = strikes_next(aside, &at));) {
		if (k->file.identity.ino == pid && broker_process_of(k))
			return false;
	}
	return true;
}

/* As a reader has, or a higher one: that reader would wait until it sleeps. */
static bool is_in_front(uint32_t tid)
{
	int policy = sched_getscheduler((pid_t)tid);

	policy &= ~SCHED_RESET_ON_FORK;
	return policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE;
}

static int open_client(struct broker *b, const struct message *from, struct broker_client *ret)
{
	struct message ask = {.type = MESSAGE_ASK_MEMORY};
	struct file_identity none; /* of a file in /proc */
	int r;

	if (from->client.pid == 0 || from->client.pid > INT32_MAX)
		return -EINVAL;
	if (!broker_may_read(b, from->client.pid))
		return -EUCLEAN;
	if (!find_client(b, from->client.pid) && b->readers.n_clients == READERS_MAX_CLIENTS)
		return -ENOSPC;
	ask.ask_pid.pid = from->client.pid;
	ask.ask_pid.image = from->client.images[0];
	*ret = (struct broker_client){
		.pid = from->client.pid,
		.major = from->client.major,
		.minor = from->client.minor,
		.threads = from->client.threads,
	};
	memcpy(ret->images, from->client.images, sizeof(ret->images));
	if (opener_own_pid(ret->pid, &ret->own_pid) < 0)
		return -ESRCH;
	ret->memory = opener_helper_open(supervisor_opener(b->supervisor), &ask, &none);
	if (ret->memory < 0)
		return ret->memory;
	ret->maps = opener_maps(ret->pid, false);
	/* The process that the profiler means is older than its message: if it has the pid now,
	 * both files are its. */
	r = ret->maps < 0 ? ret->maps : opener_check_start(ret->pid, from->client.start_time_ns);
	if (r < 0)
		close_client(ret);
	return r;
}

/* The readers must leave descriptors for all else. Those in use have the lowest numbers. */
static bool is_room(struct broker *b)
{
	uint64_t n = b->events[0].cpus.n * (uint64_t)READER_DESCRIPTORS;
	_cleanup_close_ int next = b->readers.running ? -EBADF : dup(STDIN_FILENO);
	struct rlimit l = {0};

	if (b->readers.running)
		return true;
	(void)getrlimit(RLIMIT_NOFILE, &l);
	if (next >= 0 && l.rlim_cur >= (uint64_t)next + n + SPARE_DESCRIPTORS)
		return true;
	if (log_ratelimit(&b->readers.no_room, SECONDS))
		log_warning("samples lack spans, and functions of interpreters: the "
			    "readers need %llu descriptors, "
			    "and the limit is %llu (ulimit -n, LimitNOFILE=)",
			    (unsigned long long)n, (unsigned long long)l.rlim_cur);
	return false;
}

static bool are_wanted(struct broker *b)
{
	bool wanted = broker_reads_interpreters(b);

	if (b->options.config->interpreters && !wanted &&
	    log_ratelimit(&b->readers.counted, SECONDS))
		log_warning("functions of interpreters have no names, and samples no "
			    "spans: readers need an event at a rate (-F, or EVENT/freq=HZ/), or "
			    "CPU time by a millisecond or more, and the first one is sampled by a "
			    "count");
	return wanted;
}

void broker_add_client(struct broker *b, const struct message *from)
{
	struct broker_client client, *place;
	bool wanted = are_wanted(b);
	int r = !wanted ? -EOPNOTSUPP : is_room(b) ? open_client(b, from, &client) : -EMFILE;

	if (r < 0) {
		refuse_client(b, from->client.pid, r);
		return;
	}
	place = find_client(b, client.pid);
	if (place)
		close_client(place);
	else
		place = &b->readers.clients[b->readers.n_clients++];
	*place = client;
	tell_readers(b, place);
	broker_look_after_readers(b);
}

void broker_remove_client(struct broker *b, uint32_t pid)
{
	struct broker_client *c = find_client(b, pid);

	if (!c)
		return;
	close_client(c);
	tell_readers(b, c);
	*c = b->readers.clients[--b->readers.n_clients];
	b->readers.idle_since_ns = clock_monotonic_ns();
}

/* Thread pointers are found by it: glibc keeps it in the struct of the thread. */
static uint64_t robust_list_of(uint32_t tid)
{
	void *head = NULL;
	size_t size = 0;

	return syscall(SYS_get_robust_list, (int)tid, &head, &size) == 0 ? (uintptr_t)head : 0;
}

void broker_tell_thread(struct broker *b, struct peer_id who, uint32_t tid, bool with_stat)
{
	struct message m = {.type = MESSAGE_THREAD};
	_cleanup_close_ int stat = -EBADF;

	m.client.pid = tid;
	if (tid == 0 || tid > INT32_MAX || opener_own_pid(tid, &m.client.own_pid) < 0)
		m.client.own_pid = 0;
	m.client.robust_list = m.client.own_pid ? robust_list_of(tid) : 0;
	m.client.in_front = m.client.own_pid && is_in_front(tid);
	if (m.client.own_pid && with_stat)
		stat = opener_thread_stat(tid);
	(void)supervisor_try_send(b->supervisor, who, &m, &stat, stat >= 0);
}

/* ---- Readers ---- */

static const struct cpu_events *find_cpu(const struct events *e, uint32_t cpu)
{
	for (uint32_t i = 0; i < e->cpus.n; i++) {
		if (e->cpus.items[i].events.cpu == (int)cpu)
			return &e->cpus.items[i];
	}
	return NULL;
}

bool broker_reads_interpreters(const struct broker *b)
{
	const struct broker_event *e = &b->options.events[0];

	return b->options.config->interpreters &&
	       (!e->period || (sample_event_is_time(&e->event) && e->period >= MIN_PERIOD_NS));
}

bool broker_wakes_readers(const struct broker *b, uint32_t index)
{
	const struct broker_event *e = &b->options.events[index];

	/* Plain switches of whole CPUs have no filter: the readers' own would wake them. */
	return index == 0 ||
	       (e->use == SAMPLE_USE_BLOCKS && (b->options.n_pids > 0 || !e->switch_fields.plain));
}

/*
 * A reader runs on one CPU, before everything else there: otherwise the sampled thread would go on
 * before it is read. The kernel ends a reader that does not pause.
 */
static bool put_in_front(struct broker *b, pid_t pid, uint32_t cpu)
{
	const struct sched_param param = {.sched_priority = PRIORITY};
	const struct limits_pause pause = limits_pause_of((enum limits_role)PEER_READER);
	const struct rlimit overrun = {pause.soft_us, pause.hard_us};
	cpu_set_t set;
	int r;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	(void)sched_setaffinity(pid, sizeof(set), &set);
	if (prlimit(pid, RLIMIT_RTTIME, &overrun, NULL) == 0 &&
	    sched_setscheduler(pid, SCHED_FIFO, &param) == 0)
		return true;
	r = -errno;
	if (log_ratelimit(&b->readers.not_in_front, SECONDS))
		log_warning("interpreters are read late, so most of their stacks are not proven, "
			    "and samples have no spans: the reader may not have a real-time "
			    "priority: %s; %s",
			    strerror(-r), sample_priority_remedy());
	return false;
}

static void add_event(struct setup_reader *s, const struct events *e)
{
	struct reader_event *to = &s->events[s->n_events++];

	to->options = e->sample;
	to->features = e->features;
	to->options.filter = NULL; /* an address here means nothing there */
	to->options.event.uprobe = NULL;
}

/* Nobody can set when the CPUs are sampled next, although readers run. */
static void warn_if_uneven(struct broker *b)
{
	const struct events *e = &b->events[0];
	uint64_t ns = sample_timer_ns(&e->sample, &e->features);

	if (ns > 0 && ns < NSEC_PER_SEC / MAX_EVEN_HZ && !broker_timer_ns(e) &&
	    log_ratelimit(&b->readers.uneven, SECONDS))
		log_warning("shares of CPU time may be off by up to 30%% on busy CPUs: after each "
			    "sample the kernel chooses anew who runs, and here samples come at a "
			    "fixed period; %u a second (-F, samples_per_second) shift less",
			    MAX_EVEN_HZ - 1);
}

static void send_timer(const struct broker *b, uint32_t cpu, struct setup_sender *to)
{
	const struct cpu_events *c = find_cpu(&b->events[0], cpu);
	const struct message m = {.type = MESSAGE_CPU_EVENT};
	int fd = c ? sample_fd_in_use(&c->events) : -EBADF;

	if (fd >= 0 && broker_timer_ns(&b->events[0]))
		setup_put_message(to, &m, &fd, 1);
}

static void send_cpu(const struct broker *b, uint32_t cpu, struct setup_sender *to)
{
	struct message m = {.type = MESSAGE_CPU_ADD};

	for (uint32_t i = 0; i < b->options.n_events; i++) {
		const struct cpu_events *c = find_cpu(&b->events[i], cpu);

		if (!broker_wakes_readers(b, i) || !c)
			continue;
		m.cpu.cpu = c->events.cpu;
		m.cpu.sample_ring_bytes = c->events.sample_ring_bytes;
		setup_put_message(to, &m, &c->events.sample_fd, 1);
		m.cpu.index++;
	}
}

int broker_set_up_reader(void *ctx, struct peer_id who, int control, int status_fd)
{
	struct broker *b = ctx;
	struct setup_reader s = {.common = broker_common_setup(b, PEER_READER)};
	struct setup_sender to;

	if (!find_cpu(&b->events[0], who.index))
		return -ENODEV;
	for (uint32_t i = 0; i < b->options.n_events && s.n_events < READER_MAX_EVENTS; i++) {
		if (broker_wakes_readers(b, i))
			add_event(&s, &b->events[i]);
	}
	s.own_time = b->events[0].targets.n_cgroups > 0;
	s.of_tasks = b->options.n_pids > 0;
	s.realtime = put_in_front(b, supervisor_pid(b->supervisor, who), who.index);
	to = setup_begin(control, &s, sizeof(s), status_fd);
	(void)setup_finish(&to);
	send_cpu(b, who.index, &to);
	send_timer(b, who.index, &to);
	for (uint32_t i = 0; i < b->readers.n_clients; i++) {
		const struct broker_client *c = &b->readers.clients[i];
		const struct message m = message_of(c);

		setup_put_message(&to, &m, (const int[]){c->memory, c->maps}, 2);
	}
	return to.result;
}

static void wake_by(struct broker *b, struct events *e, bool wake)
{
	bool on = broker_is_sampling(b) && !(e->budget && b->turns.off);

	if (e->sample.wake_each == wake || events_wake_each(e, wake, on) < 0)
		return;
	for (uint32_t i = 0; i < e->cpus.n; i++)
		(void)broker_send_event(b, &e->cpus.items[i]);
}

static void wake_readers(struct broker *b, bool wake)
{
	for (uint32_t i = 0; i < b->options.n_events; i++) {
		if (broker_wakes_readers(b, i))
			wake_by(b, &b->events[i], wake);
	}
}

static void start_readers(struct broker *b)
{
	const struct events *e = &b->events[0];

	wake_readers(b, true);
	warn_if_uneven(b);
	for (uint32_t i = 0; i < e->cpus.n; i++) {
		struct peer_id who = {PEER_READER, (uint32_t)e->cpus.items[i].events.cpu};

		if (who.index < READERS_MAX && !supervisor_is_there(b->supervisor, who))
			(void)supervisor_start(b->supervisor, who);
	}
}

static void stop_readers(struct broker *b)
{
	struct peer_id who;

	for (uint32_t at = 0; supervisor_next(b->supervisor, &at, &who);) {
		if (who.kind == PEER_READER && supervisor_is_there(b->supervisor, who))
			supervisor_kill(b->supervisor, who);
	}
	wake_readers(b, false);
}

void broker_look_after_readers(struct broker *b)
{
	struct broker_readers *r = &b->readers;

	if (b->state != BROKER_RUNNING)
		return;
	(void)broker_read_processes_again(b, clock_monotonic_ns());
	if (r->n_clients > 0) {
		r->running = true;
		start_readers(b);
	} else if (r->running && clock_monotonic_ns() - r->idle_since_ns > IDLE_NS) {
		r->running = false;
		stop_readers(b);
	}
}

void broker_forget_clients(struct broker *b)
{
	struct broker_readers *r = &b->readers;

	while (r->n_clients > 0)
		close_client(&r->clients[--r->n_clients]);
	r->running = false;
	stop_readers(b);
}

void broker_set_aside_process(struct broker *b, struct peer_id who, uint32_t pid)
{
	struct broker_readers *r = &b->readers;
	uint64_t now = clock_monotonic_ns();
	struct status_file process = {.identity = identity_of(pid)};
	const struct strike *k;
	char time[32];

	if (pid == 0 || !broker_may_read(b, pid))
		return;
	r->aside.period_ns = ASIDE_NS;
	/* The oldest one would be forgotten, and nobody would read it again. */
	if (r->aside.n == STRIKES_MAX && r->aside.items[r->aside.next].until_ns)
		(void)broker_read_processes_again(b, r->aside.items[r->aside.next].until_ns);
	(void)strikes_add(&r->aside, who.kind, &process, true, true, now);
	k = strikes_find(&r->aside, who.kind, &process.identity);
	r->n_set_aside++;
	log_warning("the %s ended while it read the memory of process %u, which is read again in "
		    "%s",
		    supervisor_name(b->supervisor, who), pid,
		    text_format_duration(time, sizeof(time), k ? k->until_ns - now : 0));
	broker_remove_client(b, pid);
	refuse_client(b, pid, -EUCLEAN);
}

uint32_t broker_read_processes_again(struct broker *b, uint64_t now)
{
	struct message again = {.type = MESSAGE_INTERPRETER};
	const struct strike *k;
	uint32_t n = 0;

	while ((k = strikes_take_back(&b->readers.aside, now))) {
		again.client.pid = broker_process_of(k);
		if (!again.client.pid)
			continue;
		(void)supervisor_send(b->supervisor, peer_only(PEER_PROFILER), &again, NULL, 0);
		n++;
	}
	if (now == UINT64_MAX) /* somebody says so: the next time is the first */
		b->readers.aside.n = b->readers.aside.next = 0;
	return n;
}
