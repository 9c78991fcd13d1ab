/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/broker/event-budget.h"
#include "src/broker/events.h"
#include "src/broker/tasks.h"
#include "src/sample/stack-size.h"
#include "src/sample/uprobe.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"
#include "util/ticks.h"

#define MIN_RING_BYTES (UINT64_C(64) << 10)
#define TELL_SECONDS   60
#define MAX_LATE_TASKS 8192 /* threads of a capture that follow a new CPU */

void events_init(struct events *e)
{
	*e = (struct events){0};
	e->cpus.max = EVENTS_MAX_CPUS;
	e->attached.max = EVENTS_MAX_TASKS;
	e->copies.max = EVENTS_MAX_COPIES;
}

void events_deinit(struct events *e)
{
	events_close(e);
	array_deinit(&e->attached);
	array_deinit(&e->copies);
	array_deinit(&e->cpus);
}

/* A refused event, with where to look if this host or user is the cause of it. */
static void tell(const char *error, int r)
{
	bool host = r == -EPERM || r == -EACCES || r == -ENOSYS || r == -ENOENT ||
		    r == -EOPNOTSUPP || r == -EMFILE;

	log_error("%s%s", error, host ? "; perfwalk check shows what this host allows" : "");
}

/* Who may not sample whole CPUs may still sample own tasks. */
static int probe(struct events *e, char *error, size_t n_error)
{
	pid_t first = e->targets.n_pids > 0 ? e->targets.pids[0] : -1;

	if (e->sample.whole_cpus && sample_probe(&e->sample, -1, &e->features, error, n_error) == 0)
		return 0;
	e->sample.whole_cpus = false;
	return sample_probe(&e->sample, first, &e->features, error, n_error);
}

/* A period that was asked for stays. The processor's counters are never in step. */
static void leave_step(struct sample_options *o, const struct sample_features *features)
{
	uint32_t rate = ticks_rate_beside(o->rate_hz, ticks_ns());

	if (o->period || !sample_timer_ns(o, features) || rate == o->rate_hz)
		return;
	log_info("it samples %u times a second: %u is in step with the kernel's ticks, at which it "
		 "chooses who runs",
		 rate, o->rate_hz);
	o->rate_hz = rate;
}

int events_probe(struct events *e, const struct sample_options *want)
{
	char error[1024] = "";
	int r;

	e->sample = *want;
	e->sample.this_thread = e->targets.threads;
	r = probe(e, error, sizeof(error));
	if (r < 0) {
		tell(error, r);
		return r;
	}
	e->sample.rate_hz = sample_rate_now(&e->sample);
	if (!want->period && e->sample.rate_hz < want->rate_hz)
		log_warning(
			"kernel.perf_event_max_sample_rate allows %u samples a second now, not %u",
			e->sample.rate_hz, want->rate_hz);
	leave_step(&e->sample, &e->features);
	return 0;
}

/* A CPU that is refused now is refused in a second, too: one line a minute for all of them. */
static void tell_refusal(struct events *e, const char *error, int r)
{
	if (log_ratelimit(&e->refused, TELL_SECONDS))
		tell(error, r);
}

static void close_cpu(struct cpu_events *c)
{
	ring_unmap(&c->sample);
	ring_unmap(&c->sideband);
	sample_close_cpu(&c->events);
}

/* The options of the i-th of several cgroups; of the only target there is. */
static struct sample_options options_of(const struct events *e, size_t i)
{
	struct sample_options o = e->sample;

	if (e->targets.n_cgroups > 0) {
		o.by_cgroup = true;
		o.cgroup_fd = e->targets.cgroup_fds[i];
	}
	return o;
}

/* -ENOBUFS: not all of it, and it need not be. */
static int map_rings(const struct events *e, struct cpu_events *c, bool may_shrink)
{
	int r;

	c->events.sample_ring_bytes = e->sample.ring_bytes;
	c->events.sideband_ring_bytes = e->sample.sideband_bytes;
	r = ring_map(&c->sample, c->events.sample_fd, &c->events.sample_ring_bytes, may_shrink);
	if (r == 0 && c->events.sideband_fd >= 0)
		r = ring_map(&c->sideband, c->events.sideband_fd, &c->events.sideband_ring_bytes,
			     may_shrink);
	return (r == -EPERM || r == -ENOMEM) && !may_shrink ? -ENOBUFS : r;
}

/* One more event of a CPU: it writes into the rings that are there. */
static int attach_site(struct events *e, const struct sample_options *o,
		       const struct sample_cpu *to, pid_t tid)
{
	struct sample_cpu *c = array_push(&e->attached);
	char error[512] = "";
	int r;

	if (!c)
		return -ENOMEM;
	r = sample_open_cpu(o, &e->features, to->cpu, tid, to, c, error, sizeof(error));
	if (r < 0) {
		e->attached.n--;
		if (r != -ESRCH && r != -ENODEV)
			tell_refusal(e, error, r);
	}
	return r;
}

/* From that place of a probe on; other events have one. */
static int attach_sites(struct events *e, struct sample_options o, const struct sample_cpu *to,
			pid_t tid, uint32_t first)
{
	uint32_t n = sample_event_sites(&o.event);
	int r = 0;

	for (o.site = first; o.site < n && r == 0; o.site++)
		r = attach_site(e, &o, to, tid);
	return r;
}

/* One more task, or cgroup, of a CPU. */
static int attach(struct events *e, const struct sample_options *o, const struct sample_cpu *to,
		  pid_t tid)
{
	return attach_sites(e, *o, to, tid, 0);
}

static int open_cpu(struct events *e, int cpu, pid_t pid, bool may_shrink)
{
	struct sample_options o = options_of(e, 0);
	struct cpu_events *c = array_push(&e->cpus);
	char error[600] = "", reason[512];
	int r;

	if (!c)
		return -ENOMEM;
	r = sample_open_cpu(&o, &e->features, cpu, pid, NULL, &c->events, error, sizeof(error));
	if (r < 0) {
		e->cpus.n--;
		if (r != -ENODEV && r != -ESRCH)
			tell_refusal(e, error, r);
		return r;
	}
	r = map_rings(e, c, may_shrink);
	if (r == 0)
		return attach_sites(e, o, &c->events, pid, 1);
	close_cpu(c);
	e->cpus.n--;
	if (r != -ENOBUFS) {
		ring_explain(r, reason, sizeof(reason));
		(void)snprintf(error, sizeof(error), "CPU %d: %s", cpu, reason);
		tell_refusal(e, error, r);
	}
	return r;
}

static int open_cpus(struct events *e, const int *cpus, int n, pid_t pid, bool may_shrink)
{
	int r = 0;

	for (int i = 0; i < n; i++) {
		r = open_cpu(e, cpus[i], pid, may_shrink);
		if (r < 0 && r != -ENODEV)
			return r;
	}
	return r;
}

static void warn_of_quota(const struct events *e, uint64_t asked, uint32_t stack_asked)
{
	char want[32], have[32], copies[48] = "", stack[32];

	if (e->sample.stack_bytes < stack_asked)
		(void)snprintf(copies, sizeof(copies), ", with stack copies of %s",
			       text_format_bytes(stack, sizeof(stack), e->sample.stack_bytes));
	log_warning("the kernel allows rings of %s instead of %s a CPU%s: raise "
		    "kernel.perf_event_mlock_kb if samples are lost",
		    text_format_bytes(have, sizeof(have), e->sample.ring_bytes),
		    text_format_bytes(want, sizeof(want), asked), copies);
}

static uint64_t ring_size_within(uint64_t max)
{
	uint64_t bytes = MIN_RING_BYTES;

	while (bytes * 2 <= max)
		bytes *= 2;
	return bytes;
}

/* Rings of that many bytes at most, and stack copies of which they hold some. */
static void limit_rings(struct events *e, uint64_t asked, uint64_t bytes)
{
	uint32_t stack = stack_size_max(bytes, e->sample.rate_hz);

	e->sample.ring_bytes = asked < bytes ? asked : bytes;
	if (e->sample.sideband_bytes > bytes)
		e->sample.sideband_bytes = bytes;
	if (bytes < asked && e->sample.stack_bytes > stack)
		e->sample.stack_bytes = stack;
}

/*
 * Without CAP_IPC_LOCK all rings share one quota. If the first ones took all of it, the others
 * would lose most of their samples or have no ring at all. So each ring, on every CPU and for every
 * event, gets an equal share at most. The stack copies shrink with it, since a ring must hold some
 * of them.
 */
static int share_quota(struct events *e, uint32_t n_events, const int *cpus, int n, pid_t pid)
{
	uint64_t asked[SAMPLE_MAX_EVENTS] = {0}, bytes;
	uint32_t largest = 0, stack;
	int r;

	for (uint32_t i = 0; i < n_events; i++) {
		asked[i] = ring_size_within(e[i].sample.ring_bytes);
		largest = asked[i] > asked[largest] ? i : largest;
	}
	stack = e[largest].sample.stack_bytes;
	for (bytes = asked[largest];; bytes /= 2) {
		r = 0;
		for (uint32_t i = 0; i < n_events && (r == 0 || r == -ENODEV); i++) {
			limit_rings(&e[i], asked[i], bytes);
			r = open_cpus(&e[i], cpus, n, pid, bytes == MIN_RING_BYTES);
		}
		if (r != -ENOBUFS)
			break;
		for (uint32_t i = 0; i < n_events; i++)
			events_close(&e[i]);
	}
	if ((r == 0 || r == -ENODEV) && bytes < asked[largest])
		warn_of_quota(&e[largest], asked[largest], stack);
	return r;
}

static int attach_task(struct events *e, pid_t tid)
{
	int r = 0;

	for (uint32_t i = 0; i < e->cpus.n && r == 0; i++)
		r = attach(e, &e->sample, &e->cpus.items[i].events, tid);
	return r;
}

static int attach_cgroups(struct events *e, const struct sample_cpu *to)
{
	int r = 0;

	for (size_t i = 1; i < e->targets.n_cgroups && r == 0; i++) {
		const struct sample_options o = options_of(e, i);

		r = attach(e, &o, to, -1);
	}
	return r;
}

static int attach_process(struct events *e, pid_t pid)
{
	char path[48];
	struct dirent *entry;
	int r = 0;
	DIR *d;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	if (!d) {
		log_error("no process %d: it has ended or never existed; see ps -e", (int)pid);
		return -ESRCH;
	}
	while ((entry = readdir(d))) {
		pid_t tid = (pid_t)atoi(entry->d_name);

		if (tid <= 0 || (e->cpus.n > 0 && tid == e->targets.pids[0]))
			continue;
		r = attach_task(e, tid);
		if (r < 0 && r != -ESRCH)
			break;
	}
	(void)closedir(d);
	return r == -ESRCH ? 0 : r;
}

static int attach_targets(struct events *e)
{
	const struct events_targets *t = &e->targets;
	int r = 0;

	for (uint32_t i = 0; i < e->cpus.n && r == 0; i++)
		r = attach_cgroups(e, &e->cpus.items[i].events);
	/* A command that is still to exec has one thread and no child. */
	if (e->sample.enable_on_exec)
		return r;
	for (size_t i = t->threads; i < t->n_pids && r == 0; i++) {
		r = t->threads ? attach_task(e, t->pids[i]) : attach_process(e, t->pids[i]);
		if (r == -ESRCH && t->threads)
			log_error("no thread %d: it has ended or never existed; see ps -eL",
				  (int)t->pids[i]);
	}
	return r;
}

static bool is_wanted(const struct events *e, int cpu)
{
	return !e->targets.cpus || (cpu < EVENTS_MAX_CPUS && e->targets.cpus[cpu]);
}

int events_open(struct events *e, uint32_t n_events)
{
	pid_t first = e->targets.n_pids > 0 ? e->targets.pids[0] : -1;
	_cleanup_free_ int *online = calloc(EVENTS_MAX_CPUS, sizeof(*online));
	int n = online ? sample_online_cpus(online, EVENTS_MAX_CPUS) : -ENOMEM, n_wanted = 0, r;

	if (n < 0) {
		log_error("/sys/devices/system/cpu/online and /proc/stat, which list the CPUs, "
			  "cannot be read: %s",
			  strerror(-n));
		return n;
	}
	for (uint32_t i = 0; i < n_events; i++)
		e[i].refused = (struct log_ratelimit){0}; /* what ends it all is told in any case */
	for (int i = 0; i < n; i++) {
		if (is_wanted(e, online[i]))
			online[n_wanted++] = online[i];
	}
	r = share_quota(e, n_events, online, n_wanted, first);
	if (r == -ESRCH)
		log_error("no %s %d: it has ended or never existed; see ps -e%s",
			  e->targets.threads ? "thread" : "process", (int)first,
			  e->targets.threads ? "L" : "");
	if (r < 0 && r != -ENODEV)
		return r;
	if (e->cpus.n == 0) {
		log_error("none of the given CPUs is online; see /sys/devices/system/cpu/online");
		return -ENODEV;
	}
	r = 0;
	for (uint32_t i = 0; i < n_events && r == 0; i++)
		r = attach_targets(&e[i]);
	return r;
}

void events_close(struct events *e)
{
	for (uint32_t i = 0; i < e->attached.n; i++)
		sample_close_cpu(&e->attached.items[i]);
	for (uint32_t i = 0; i < e->cpus.n; i++)
		close_cpu(&e->cpus.items[i]);
	array_clear(&e->attached);
	array_clear(&e->cpus);
	array_clear(&e->copies);
}

static int enable_cpu(const struct events *e, const struct sample_cpu *c, bool enable)
{
	int r = sample_enable_cpu(c, enable);

	for (uint32_t i = 0; i < e->attached.n && r == 0; i++) {
		if (e->attached.items[i].cpu == c->cpu)
			r = sample_enable_cpu(&e->attached.items[i], enable);
	}
	return r;
}

void events_refill(struct events *e)
{
	if (e->budget)
		(void)event_budget_refill(e);
	for (uint32_t i = 0; i < e->cpus.n; i++) {
		if (e->cpus.items[i].rests)
			(void)enable_cpu(e, &e->cpus.items[i].events, true);
		e->cpus.items[i].rests = false;
	}
}

void events_rest(struct events *e, int cpu)
{
	for (uint32_t i = 0; i < e->cpus.n && !e->budget; i++) {
		if (e->cpus.items[i].events.cpu != cpu || e->cpus.items[i].rests)
			continue;
		e->cpus.items[i].rests = true;
		(void)enable_cpu(e, &e->cpus.items[i].events, false);
	}
}

int events_enable(struct events *e, bool enable)
{
	int r = 0;

	if (e->budget && enable) {
		for (uint32_t i = 0; i < e->cpus.n; i++)
			e->cpus.items[i].refilled_ns = 0;
		return event_budget_refill(e);
	}
	for (uint32_t i = 0; i < e->cpus.n && r == 0; i++) {
		e->cpus.items[i].rests = false;
		r = sample_enable_cpu(&e->cpus.items[i].events, enable);
	}
	for (uint32_t i = 0; i < e->attached.n && r == 0; i++)
		r = sample_enable_cpu(&e->attached.items[i], enable);
	return r;
}

int events_enable_sidebands(struct events *e)
{
	int r = 0;

	for (uint32_t i = 0; i < e->cpus.n && r == 0; i++)
		r = sample_enable_sideband(&e->cpus.items[i].events);
	return r;
}

int events_enable_whole_cpus(struct events *e)
{
	int r = 0;

	for (uint32_t i = 0; i < e->cpus.n && r == 0; i++)
		r = sample_enable_whole_cpu(&e->cpus.items[i].events);
	return r;
}

/* ---- CPUs that come online ---- */

/*
 * Events of tasks that are inherited follow their CPUs, so those of a new CPU must be opened for
 * each task that is alive.
 */
size_t events_list_tasks(const struct events *e, pid_t *tasks, size_t max)
{
	const struct events_targets *t = &e->targets;
	size_t n = t->n_pids < max ? t->n_pids : max;

	if (!t->threads)
		return tasks_list(t->pids, t->n_pids, tasks, max);
	memcpy(tasks, t->pids, n * sizeof(*tasks));
	return n;
}

/* The first task that lives gets the ring, the others share it. */
static int open_cpu_of_tasks(struct events *e, int cpu)
{
	_cleanup_free_ pid_t *tasks = calloc(MAX_LATE_TASKS, sizeof(*tasks));
	size_t n = tasks ? events_list_tasks(e, tasks, MAX_LATE_TASKS) : 0, i = 0;
	int r = -ESRCH;

	while (i < n && r == -ESRCH)
		r = open_cpu(e, cpu, tasks[i++], true);
	if (r < 0)
		return r;
	for (; i < n; i++)
		(void)attach(e, &e->sample, &e->cpus.items[e->cpus.n - 1].events, tasks[i]);
	return 0;
}

/* ---- Probes of other files ---- */

static int attach_copy_to_tasks(struct events *e, const struct sample_options *o,
				const struct sample_cpu *to)
{
	_cleanup_free_ pid_t *tasks = calloc(MAX_LATE_TASKS, sizeof(*tasks));
	size_t n = tasks ? events_list_tasks(e, tasks, MAX_LATE_TASKS) : 0;
	int r = 0;

	if (o->event.uprobe->by_path && !o->this_thread)
		return -EOPNOTSUPP; /* see uprobe.h */
	for (size_t i = 0; i < n && r == 0; i++) {
		r = attach_sites(e, *o, to, tasks[i], 0);
		r = r == -ESRCH ? 0 : r;
	}
	return r;
}

static int attach_copy(struct events *e, const struct sample_uprobe *copy,
		       const struct sample_cpu *to)
{
	struct sample_options o = options_of(e, 0);

	o.event.uprobe = copy;
	o.enable_on_exec = false; /* the command has exec'd */
	return e->targets.n_pids > 0 ? attach_copy_to_tasks(e, &o, to)
				     : attach_sites(e, o, to, -1, 0);
}

static int enable_copy(struct events *e, const struct sample_uprobe *copy)
{
	int r = 0;

	for (uint32_t i = 0; i < e->attached.n && r >= 0; i++) {
		struct sample_cpu *c = &e->attached.items[i];

		if (c->uprobe != copy)
			continue;
		r = e->budget ? event_budget_grant(e, c) : sample_enable_cpu(c, true);
	}
	return r < 0 ? r : 0;
}

int events_add_copy(struct events *e, const struct sample_uprobe *copy, bool enable)
{
	const struct sample_uprobe **place = array_push(&e->copies);
	int r = place ? 0 : -E2BIG;

	if (place)
		*place = copy;
	for (uint32_t i = 0; i < e->cpus.n && r == 0; i++)
		r = attach_copy(e, copy, &e->cpus.items[i].events);
	if (r == 0 && enable)
		r = enable_copy(e, copy);
	if (r < 0)
		events_remove_copy(e, copy);
	return r;
}

void events_remove_copy(struct events *e, const struct sample_uprobe *copy)
{
	for (uint32_t i = e->attached.n; i-- > 0;) {
		if (e->attached.items[i].uprobe != copy)
			continue;
		sample_close_cpu(&e->attached.items[i]);
		e->attached.items[i] = e->attached.items[--e->attached.n];
	}
	for (uint32_t i = e->copies.n; i-- > 0;) {
		if (e->copies.items[i] == copy)
			e->copies.items[i] = e->copies.items[--e->copies.n];
	}
}

struct cpu_events *events_add_cpu(struct events *e, int cpu, bool enable)
{
	struct cpu_events *c;
	int r;

	if (!is_wanted(e, cpu))
		return NULL;
	for (uint32_t i = 0; i < e->cpus.n; i++) {
		if (e->cpus.items[i].events.cpu == cpu)
			return NULL;
	}
	/* The command has exec'd long ago. */
	e->sample.enable_on_exec = false;
	r = e->targets.n_pids > 0 ? open_cpu_of_tasks(e, cpu) : open_cpu(e, cpu, -1, true);
	if (r < 0)
		return NULL;
	c = &e->cpus.items[e->cpus.n - 1];
	(void)attach_cgroups(e, &c->events);
	for (uint32_t i = 0; i < e->copies.n; i++)
		(void)attach_copy(e, e->copies.items[i], &c->events);
	if (enable && !e->budget)
		(void)enable_cpu(e, &c->events, true);
	else if (enable)
		(void)event_budget_refill_cpu(e, c);
	return c;
}

static bool can_replace(const struct events *e)
{
	return e->targets.n_pids == 0 && e->targets.n_cgroups <= 1;
}

/* On a CPU where that fails it stays as it was, in what the caller says. */
static void replace_all(struct events *e, bool enable, const char *what)
{
	const struct sample_options o = options_of(e, 0);

	for (uint32_t i = 0; i < e->cpus.n; i++) {
		struct sample_cpu *c = &e->cpus.items[i].events;
		int r = sample_replace_event(&o, &e->features, c, enable);

		if (r < 0)
			log_warning("CPU %d: %s: %s", c->cpu, what, strerror(-r));
	}
}

int events_resize_stacks(struct events *e, uint32_t stack_bytes, bool enable)
{
	if (!can_replace(e))
		return -ENOTSUP;
	e->sample.stack_bytes = stack_bytes;
	replace_all(e, enable, "stack copies keep their size");
	return 0;
}

int events_wake_each(struct events *e, bool wake, bool enable)
{
	if (!can_replace(e))
		return -ENOTSUP;
	e->sample.wake_each = wake;
	replace_all(e, enable && !e->budget, "its samples wake no reader, or too many");
	return enable && e->budget ? event_budget_refill(e) : 0;
}

bool events_revive_cpu(struct events *e, struct cpu_events *c)
{
	return e->sample.whole_cpus && events_died(c) &&
	       sample_replace_event(&e->sample, &e->features, &c->events, true) == 0;
}

void events_remove_cpu(struct events *e, int cpu)
{
	for (uint32_t j = e->attached.n; j-- > 0;) {
		if (e->attached.items[j].cpu != cpu)
			continue;
		sample_close_cpu(&e->attached.items[j]);
		e->attached.items[j] = e->attached.items[--e->attached.n];
	}
	for (uint32_t i = e->cpus.n; i-- > 0;) {
		if (e->cpus.items[i].events.cpu != cpu)
			continue;
		close_cpu(&e->cpus.items[i]);
		e->cpus.items[i] = e->cpus.items[--e->cpus.n];
	}
}

/*
 * When a CPU goes offline and comes back, its events are dead and do not say so (every kernel
 * measured, 3.10 to 7.2). A CPU that was offline at one look gets new events when it returns. If it
 * went and came back between two looks, or while the whole machine was suspended, we notice that
 * the time of its events stands still.
 */
bool events_died(struct cpu_events *c)
{
	uint64_t before = c->enabled_ns;

	if (sample_enabled_ns(&c->events, &c->enabled_ns) < 0)
		return false;
	return before > 0 && c->enabled_ns == before;
}
