/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start order: events are opened and their rings mapped (here only to be held: a ring lives as
 * long as somebody maps it, so a profiler that dies loses no sample in it), then the children,
 * then the events count. Stop order is that of the data: the profiler drains and leaves, then the
 * symbolizer, then the exporter; each leaves when its work is settled.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "src/broker/privileges.h"
#include "src/broker/state-dir.h"
#include "src/broker/supervisor.h"
#include "src/cmd/setup.h"
#include "src/cmd/tree.h"
#include "unwind/unwind.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"
#include "util/text.h"

#define MAX_CPUS	      4096
#define MAX_TASK_EVENTS	      65536
#define DEFAULT_SPOOL	      LOCALSTATEDIR "/lib/perfwalk/spool"
#define MIN_RING_BYTES	      (UINT64_C(64) << 10)
#define HOTPLUG_NS	      NSEC_PER_SEC
#define CAPTURE_PROFILE_BYTES (UINT64_C(1) << 30)
#define DATA_BYTES	      (UINT64_C(256) << 20) /* tables of processes, files and threads */

struct cpu_events {
	struct sample_cpu events;
	struct ring sample, sideband; /* held only */
	uint64_t enabled_ns;	      /* sample_enabled_ns() at the last look; 0: none yet */
};

struct tree {
	struct loop *loop;
	struct tree_options options;
	struct sample_options sample;
	struct sample_features features;
	struct supervisor *supervisor;
	ARRAY(struct cpu_events) cpus;
	ARRAY(struct sample_cpu) attached; /* further tasks of a capture, sharing the rings */
	struct privileges privileges;
	char *spool_path; /* that was tried last, for spool_fd or in vain */
	int spool_fd;
	int deadline_timer;
	int result;
	bool enabled, stopping;
	bool finished; /* done() was called */
	bool reopen;   /* the profiler leaves for new events, not for good */
};

/* ---- Events ---- */

static void close_cpu(struct cpu_events *c)
{
	ring_unmap(&c->sample);
	ring_unmap(&c->sideband);
	sample_close_cpu(&c->events);
}

static int open_cpu(struct tree *t, int cpu, pid_t pid)
{
	struct cpu_events *c = array_push(&t->cpus);
	char error[512] = "";
	int r;

	if (!c)
		return -ENOMEM;
	r = sample_open_cpu(&t->sample, &t->features, cpu, pid, NULL, &c->events, error,
			    sizeof(error));
	if (r < 0) {
		t->cpus.n--;
		if (r != -ENODEV && r != -ESRCH)
			log_error("%s", error);
		return r;
	}
	c->events.sample_ring_bytes = t->sample.ring_bytes;
	c->events.sideband_ring_bytes = t->sample.sideband_bytes;
	r = ring_map(&c->sample, c->events.sample_fd, &c->events.sample_ring_bytes, true);
	if (r == 0)
		r = ring_map(&c->sideband, c->events.sideband_fd, &c->events.sideband_ring_bytes,
			     true);
	if (r < 0) {
		log_error("CPU %d: no ring can be mapped: %s; raise kernel.perf_event_mlock_kb or "
			  "RLIMIT_MEMLOCK, or give CAP_IPC_LOCK",
			  cpu, strerror(-r));
		close_cpu(c);
		t->cpus.n--;
		return r;
	}
	return 0;
}

/*
 * Without CAP_IPC_LOCK all rings come out of one quota: what the first got would be missing for the
 * others, which would lose most of their samples. Then all get the same part of it.
 */
static int share_quota(struct tree *t, int n_cpus, int cpu, pid_t pid)
{
	uint64_t got = t->cpus.items[0].events.sample_ring_bytes, asked = t->sample.ring_bytes;
	uint64_t part = got;
	char want[32], have[32];

	if (got >= asked)
		return 0;
	while (n_cpus > 1 && part > MIN_RING_BYTES && part * (uint64_t)n_cpus > got)
		part /= 2;
	log_warning("the kernel allows rings of %s instead of %s a CPU: raise "
		    "kernel.perf_event_mlock_kb if samples get lost",
		    text_format_bytes(have, sizeof(have), part),
		    text_format_bytes(want, sizeof(want), asked));
	t->sample.ring_bytes = part;
	close_cpu(&t->cpus.items[0]);
	t->cpus.n = 0;
	return open_cpu(t, cpu, pid);
}

/* One more task of the capture: its events write into the rings that are there. */
static int attach_task(struct tree *t, pid_t tid)
{
	for (uint32_t i = 0; i < t->cpus.n; i++) {
		struct sample_cpu *c = array_push(&t->attached);
		char error[512] = "";
		int r;

		if (!c)
			return -ENOMEM;
		r = sample_open_cpu(&t->sample, &t->features, t->cpus.items[i].events.cpu, tid,
				    &t->cpus.items[i].events, c, error, sizeof(error));
		if (r < 0) {
			t->attached.n--;
			if (r != -ESRCH && r != -ENODEV)
				log_error("%s", error);
			return r;
		}
	}
	return 0;
}

static int attach_process(struct tree *t, pid_t pid)
{
	char path[48];
	struct dirent *e;
	int n = 0, r = 0;
	DIR *d;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	if (!d) {
		log_error("no process %d: it has ended or never was; see ps -e", (int)pid);
		return -ESRCH;
	}
	while ((e = readdir(d))) {
		pid_t tid = (pid_t)atoi(e->d_name);

		if (tid <= 0 || (t->cpus.n > 0 && tid == t->options.pids[0]))
			continue;
		r = attach_task(t, tid);
		if (r < 0 && r != -ESRCH)
			break;
		n++;
	}
	(void)closedir(d);
	return r == -ESRCH ? 0 : r;
}

static int open_events(struct tree *t)
{
	pid_t first = t->options.n_pids > 0 ? t->options.pids[0] : -1;
	_cleanup_free_ int *online = calloc(MAX_CPUS, sizeof(*online));
	int n = online ? sample_online_cpus(online, MAX_CPUS) : -ENOMEM, r = 0;

	if (n < 0)
		return n;
	for (int i = 0; i < n; i++) {
		r = open_cpu(t, online[i], first);
		if (r == 0 && t->cpus.n == 1)
			r = share_quota(t, n, online[i], first);
		if (r < 0 && r != -ENODEV)
			break;
	}
	if (r == -ESRCH)
		log_error("no process %d: it has ended or never was; see ps -e", (int)first);
	if (r < 0 && r != -ENODEV)
		return r;
	if (t->cpus.n == 0)
		return -ENODEV;
	for (size_t i = 0; i < t->options.n_pids && !t->options.enable_on_exec; i++) {
		r = attach_process(t, t->options.pids[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static void close_events(struct tree *t)
{
	for (uint32_t i = 0; i < t->attached.n; i++)
		sample_close_cpu(&t->attached.items[i]);
	for (uint32_t i = 0; i < t->cpus.n; i++)
		close_cpu(&t->cpus.items[i]);
	array_clear(&t->attached);
	array_clear(&t->cpus);
}

int tree_enable(struct tree *t)
{
	int r = 0;

	t->enabled = true;
	if (t->options.enable_on_exec)
		return 0;
	for (uint32_t i = 0; i < t->cpus.n && r == 0; i++)
		r = sample_enable_cpu(&t->cpus.items[i].events, true);
	for (uint32_t i = 0; i < t->attached.n && r == 0; i++)
		r = sample_enable_cpu(&t->attached.items[i], true);
	return r;
}

/* ---- Set-up of the children ---- */

static int send_setup(int control, const void *setup, size_t n, int status_fd)
{
	struct message m = {.type = MESSAGE_SETUP};

	m.setup.n = (uint32_t)n;
	memcpy(m.setup.bytes, setup, n);
	return message_send(control, &m, &status_fd, status_fd >= 0 ? 1 : 0);
}

static int send_start(int control)
{
	const struct message m = {.type = MESSAGE_START};

	return message_send(control, &m, NULL, 0);
}

/* NULL texts are not sent. fd -1: none. */
static int send_text(int control, enum text_kind kind, const char *text, int fd)
{
	struct message m = {.type = fd >= 0 ? MESSAGE_FILE : MESSAGE_TEXT};

	if (!text)
		return 0;
	if (strlen(text) >= sizeof(m.text.text))
		return -E2BIG;
	m.text.kind = kind;
	m.text.n = (uint32_t)strlen(text);
	message_set_text(m.text.text, sizeof(m.text.text), text);
	return message_send(control, &m, &fd, fd >= 0 ? 1 : 0);
}

static struct setup_common common_setup(const struct tree *t, uint64_t address_space, uint64_t data)
{
	struct setup_common c = {.privileges = t->privileges,
				 .log_level = (uint32_t)log_get_level()};

#ifndef WITH_SANITIZERS /* the shadow memory is terabytes of address space */
	c.privileges.max_address_space = address_space;
	c.privileges.max_data = data;
#endif
	return c;
}

static int send_cpu(const struct tree *t, const struct cpu_events *c, bool came_online)
{
	struct message m = {.type = MESSAGE_CPU_ADD};
	const int fds[2] = {c->events.sample_fd, c->events.sideband_fd};

	m.cpu.cpu = c->events.cpu;
	m.cpu.came_online = came_online;
	m.cpu.sample_ring_bytes = c->events.sample_ring_bytes;
	m.cpu.sideband_ring_bytes = c->events.sideband_ring_bytes;
	return supervisor_send(t->supervisor, PEER_PROFILER, &m, fds, 2);
}

static int set_up_profiler(struct tree *t, int control, int status_fd)
{
	const struct config *c = t->options.config;
	struct setup_profiler s = {
		.options = t->sample,
		.features = t->features,
		.interval_ns = t->options.interval_ns,
		.window_memory_bytes = c->window_memory_bytes,
		.unwind_rows_bytes = c->unwind_rows_bytes,
		.max_processes = c->max_processes,
		.max_open_files = c->max_open_files,
		.max_frames = c->max_frames,
		.capture = t->options.capture,
	};
	int r;

	/* Files are mapped whole, so address space is no measure of memory here. */
	s.common =
		common_setup(t, 0, 4 * c->window_memory_bytes + c->unwind_rows_bytes + DATA_BYTES);
	s.common.privileges.max_open_files = c->max_open_files + 2 * t->cpus.n + 512;
	r = send_setup(control, &s, sizeof(s), status_fd);
	if (r == 0)
		r = send_start(control);
	for (uint32_t i = 0; i < t->cpus.n && r == 0; i++)
		r = send_cpu(t, &t->cpus.items[i], false);
	return r;
}

static int send_host_facts(int control)
{
	struct utsname u;
	char id[64] = "";
	int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC), r = 0;

	if (fd >= 0) {
		ssize_t n = read(fd, id, sizeof(id) - 1);

		id[n > 0 ? n : 0] = '\0';
		id[strcspn(id, "\n")] = '\0';
		(void)close_fd(fd);
	}
	if (uname(&u) == 0) {
		r = send_text(control, TEXT_HOST_NAME, u.nodename, -1);
		if (r == 0)
			r = send_text(control, TEXT_KERNEL_RELEASE, u.release, -1);
	}
	if (r == 0 && id[0])
		r = send_text(control, TEXT_HOST_ID, id, -1);
	return r;
}

/* What a reload may change: sent at the start, and again to a running symbolizer (status_fd -1). */
static int send_symbolizer_config(struct tree *t, int control, int status_fd)
{
	const struct config *c = t->options.config;
	struct setup_symbolizer s = {
		.common = common_setup(t, t->options.capture ? 0 : c->symbolizer_memory_bytes,
				       t->options.capture ? 3 * CAPTURE_PROFILE_BYTES : 0),
		.symbols_bytes = c->symbols_bytes,
		.profile_bytes =
			t->options.capture ? CAPTURE_PROFILE_BYTES : 2 * c->window_memory_bytes,
		.max_open_files = c->max_open_files,
		.n_cpus = t->cpus.n,
		.terminal_width = t->options.terminal_width,
		.capture = t->options.capture,
		.color = t->options.color,
		.lines = c->source_lines,
		.inlined = c->inline_frames,
	};
	int r;

	s.common.privileges.max_open_files = c->max_open_files + 512;
	r = send_setup(control, &s, sizeof(s), status_fd);
	if (r == 0)
		r = send_text(control, TEXT_SERVICE_NAME, c->service_name ? c->service_name : "",
			      -1);
	for (size_t i = 0; i < 2 * c->n_resource && r == 0; i++)
		r = send_text(control, TEXT_RESOURCE, c->resource[i], -1);
	return r;
}

static int set_up_symbolizer(struct tree *t, int control, int status_fd)
{
	_cleanup_close_ int kallsyms = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	int r = send_symbolizer_config(t, control, status_fd);

	if (r == 0 && kallsyms >= 0)
		r = send_text(control, TEXT_KALLSYMS, "/proc/kallsyms", kallsyms);
	if (r == 0)
		r = send_host_facts(control);
	if (r == 0)
		r = send_text(control, TEXT_TITLE, t->options.title, -1);
	for (uint32_t i = 0; i < t->options.n_outputs && r == 0; i++)
		r = send_text(control, TEXT_OUTPUT, t->options.outputs[i].path,
			      t->options.outputs[i].fd);
	if (r == 0 && t->options.summary_fd >= 0)
		r = send_text(control, TEXT_SUMMARY, "standard output", t->options.summary_fd);
	return r < 0 ? r : send_start(control);
}

static int send_destination(int control, const struct config_export *x)
{
	int r = send_text(control, TEXT_EXPORT_NAME, x->name, -1);

	if (r == 0)
		r = send_text(control, TEXT_EXPORT_ENDPOINT, x->endpoint, -1);
	if (r == 0)
		r = send_text(control, TEXT_EXPORT_PROFILES_ENDPOINT, x->profiles_endpoint, -1);
	for (size_t i = 0; i < x->n_headers && r == 0; i++)
		r = send_text(control, TEXT_EXPORT_HEADER, x->headers[i], -1);
	if (r == 0)
		r = send_text(control, TEXT_EXPORT_CERTIFICATE, x->certificate, -1);
	if (r == 0)
		r = send_text(control, TEXT_EXPORT_CLIENT_CERTIFICATE, x->client_certificate, -1);
	if (r == 0)
		r = send_text(control, TEXT_EXPORT_CLIENT_KEY, x->client_key, -1);
	return r;
}

/* Opened once for each path that is configured; told once when it cannot be. */
static int open_spool(struct tree *t)
{
	const struct config *c = t->options.config;
	const char *path = c->spool_path ? c->spool_path : DEFAULT_SPOOL;
	char error[512];

	if (!c->spool_enabled)
		path = "";
	if (t->spool_path && strcmp(t->spool_path, path) == 0)
		return t->spool_fd;
	t->spool_fd = close_fd(t->spool_fd);
	free(t->spool_path);
	t->spool_path = strdup(path);
	if (!*path)
		return -1;
	t->spool_fd =
		state_dir_open(path, t->privileges.uid, t->privileges.gid, error, sizeof(error));
	if (t->spool_fd < 0)
		log_warning("spool: %s is not used: %s; what cannot be sent is kept in memory only",
			    path, error);
	return t->spool_fd;
}

static int set_up_exporter(struct tree *t, int control, int status_fd)
{
	const struct config *c = t->options.config;
	struct setup_exporter s = {
		.spool_max_bytes = c->spool_max_bytes,
		.spool_max_age_ns = c->spool_max_age_ns,
	};
	uint64_t data = DATA_BYTES;
	int spool_fd = open_spool(t), r;

	for (size_t i = 0; i < c->n_exports && i < SETUP_MAX_DESTINATIONS; i++) {
		const struct config_export *x = &c->exports[i];

		s.destinations[s.n++] = (struct setup_destination){
			.timeout_ns = x->timeout_ns,
			.max_queue_bytes = x->max_queue_bytes,
			.max_elapsed_ns = x->max_elapsed_ns,
			.gzip = x->gzip,
			.insecure_skip_verify = x->insecure_skip_verify,
		};
		data += 2 * x->max_queue_bytes; /* as they came, and compressed */
	}
	s.common = common_setup(t, 0, data);
	r = send_setup(control, &s, sizeof(s), status_fd);
	if (r == 0 && spool_fd >= 0)
		r = send_text(control, TEXT_SPOOL, t->spool_path, spool_fd);
	for (uint32_t i = 0; i < s.n && r == 0; i++)
		r = send_destination(control, &c->exports[i]);
	return r < 0 ? r : send_start(control);
}

static int on_setup(void *ctx, enum peer who, int control, int status_fd)
{
	struct tree *t = ctx;

	switch (who) {
	case PEER_PROFILER:
		return set_up_profiler(t, control, status_fd);
	case PEER_SYMBOLIZER:
		return set_up_symbolizer(t, control, status_fd);
	case PEER_EXPORTER:
		return set_up_exporter(t, control, status_fd);
	case PEER_N:
		break;
	}
	return -EINVAL;
}

static void on_message(void *ctx, enum peer who, const struct message *m)
{
	struct tree *t = ctx;

	if (who == PEER_SYMBOLIZER && m->type == MESSAGE_RESULT && m->result.code < 0)
		t->result = m->result.code;
}

static void on_gone(void *ctx, enum peer who, bool clean);

/* ---- Hotplug ---- */

static bool contains(const int *list, int n, int cpu)
{
	for (int i = 0; i < n; i++) {
		if (list[i] == cpu)
			return true;
	}
	return false;
}

/*
 * An event of a CPU that went away and came back is dead and says nothing of it (every kernel
 * measured, 3.10 to 7.2). A CPU that was offline at one look gets new events at its return. One
 * that went and came between two looks, or while the whole machine was suspended, is found by the
 * time its events have counted, which stands still from then on.
 */
static bool events_died(const struct tree *t, struct cpu_events *c)
{
	uint64_t before = c->enabled_ns;

	if (!t->enabled || sample_enabled_ns(&c->events, &c->enabled_ns) < 0)
		return false;
	return before > 0 && c->enabled_ns == before;
}

static void remove_cpu(struct tree *t, uint32_t i)
{
	struct message m = {.type = MESSAGE_CPU_REMOVE};

	m.cpu.cpu = t->cpus.items[i].events.cpu;
	(void)supervisor_send(t->supervisor, PEER_PROFILER, &m, NULL, 0);
	close_cpu(&t->cpus.items[i]);
	t->cpus.items[i] = t->cpus.items[--t->cpus.n];
}

static void add_cpu(struct tree *t, int cpu)
{
	struct cpu_events *c;

	for (uint32_t i = 0; i < t->cpus.n; i++) {
		if (t->cpus.items[i].events.cpu == cpu)
			return;
	}
	if (open_cpu(t, cpu, -1) < 0)
		return;
	c = &t->cpus.items[t->cpus.n - 1];
	log_info("CPU %d came online", cpu);
	/* In this order: the profiler doubts what it knows until it hears of the CPU. */
	if (t->enabled)
		(void)sample_enable_cpu(&c->events, true);
	(void)send_cpu(t, c, true);
}

static void on_hotplug_timer(void *ctx)
{
	struct tree *t = ctx;
	_cleanup_free_ int *online = calloc(MAX_CPUS, sizeof(*online));
	int n = online ? sample_online_cpus(online, MAX_CPUS) : -1;

	if (n <= 0 || t->stopping || t->reopen || t->options.n_pids > 0)
		return;
	for (uint32_t i = t->cpus.n; i-- > 0;) {
		struct cpu_events *c = &t->cpus.items[i];

		if (!contains(online, n, c->events.cpu))
			log_info("CPU %d went offline", c->events.cpu);
		else if (events_died(t, c))
			log_info("CPU %d was offline for a moment", c->events.cpu);
		else
			continue;
		remove_cpu(t, i);
	}
	for (int i = 0; i < n; i++)
		add_cpu(t, online[i]);
}

/* ---- Life ---- */

static void choose_user(struct tree *t)
{
	const char *name = t->options.config->user, *found = NULL;

	t->privileges = (struct privileges){
		.uid = (uint32_t)-1, .gid = (uint32_t)-1, .parent_pid = (uint32_t)getpid()};
	if (geteuid() != 0)
		return;
	if (privileges_find_user(name, &t->privileges.uid, &t->privileges.gid, &found) < 0) {
		log_warning(
			"neither user \"%s\" nor \"nobody\" exists: the children run as uid 65534",
			name ? name : "");
		t->privileges.uid = t->privileges.gid = 65534;
	} else if (!name || strcmp(name, found) != 0) {
		log_debug("there is no user \"%s\": the children run as \"%s\"", name ? name : "",
			  found);
	}
}

static int probe(struct tree *t)
{
	const struct tree_options *o = &t->options;
	char error[1024] = "";
	int r;

	t->sample = (struct sample_options){
		.event = o->event,
		.rate_hz = o->rate_hz,
		.stack_bytes = o->config->stack_size_bytes,
		.regs_mask = unwind_perf_regs_mask,
		.kernel_stacks = o->config->kernel_stacks,
		.ring_bytes = o->config->ring_size_bytes,
		.sideband_bytes = UINT64_C(256) << 10,
		.enable_on_exec = o->enable_on_exec,
	};
	r = sample_probe(&t->sample, o->n_pids > 0 ? o->pids[0] : -1, &t->features, error,
			 sizeof(error));
	if (r < 0) {
		log_error("%s", error);
		return r;
	}
	t->sample.rate_hz = sample_rate_now(&t->sample);
	if (t->sample.rate_hz < o->rate_hz)
		log_warning(
			"kernel.perf_event_max_sample_rate allows %u samples a second now, not %u",
			t->sample.rate_hz, o->rate_hz);
	return 0;
}

static int start_children(struct tree *t)
{
	int r = 0;

	if (!t->options.capture)
		r = supervisor_start(t->supervisor, PEER_EXPORTER);
	if (r == 0)
		r = supervisor_start(t->supervisor, PEER_SYMBOLIZER);
	if (r == 0)
		r = supervisor_start(t->supervisor, PEER_PROFILER);
	if (r < 0)
		log_error("the children cannot be started: %s", strerror(-r));
	return r;
}

static void on_deadline(void *ctx)
{
	struct tree *t = ctx;
	static const char *const names[PEER_N] = {"profiler", "symbolizer", "exporter"};

	for (int i = 0; i < PEER_N; i++) {
		if (!supervisor_running(t->supervisor, (enum peer)i))
			continue;
		log_warning("the %s did not finish in time: what it had not settled is lost",
			    names[i]);
		t->result = -ETIMEDOUT;
		supervisor_kill(t->supervisor, (enum peer)i);
	}
}

int tree_new(struct tree **ret, struct loop *loop, const struct tree_options *options)
{
	_cleanup_(tree_freep) struct tree *t = calloc(1, sizeof(*t));
	struct supervisor_callbacks callbacks = {
		.setup = on_setup, .message = on_message, .gone = on_gone, .ctx = t};
	int r;

	if (!t)
		return -ENOMEM;
	t->loop = loop;
	t->options = *options;
	t->spool_fd = -EBADF;
	t->cpus.max = MAX_CPUS;
	t->attached.max = MAX_TASK_EVENTS;
	choose_user(t);
	privileges_raise_open_files();
	if ((r = probe(t)) < 0 || (r = open_events(t)) < 0)
		return r;
	r = supervisor_new(&t->supervisor, loop, &callbacks,
			   options->config->symbolizer_file_timeout_ns);
	if (r < 0)
		return r;
	t->deadline_timer = loop_add_timer(loop, UINT64_MAX, 0, on_deadline, t);
	(void)loop_add_timer(loop, HOTPLUG_NS, HOTPLUG_NS, on_hotplug_timer, t);
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
		close_events(t);
		array_deinit(&t->attached);
		array_deinit(&t->cpus);
		(void)close_fd(t->spool_fd);
		free(t->spool_path);
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
	supervisor_stop(t->supervisor, PEER_PROFILER);
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

/* The events are made anew for a new config; the profiler that read the old ones has left. */
static void reopen_events(struct tree *t)
{
	int r;

	t->reopen = false;
	close_events(t);
	if ((r = probe(t)) < 0 || (r = open_events(t)) < 0 ||
	    (r = supervisor_start(t->supervisor, PEER_PROFILER)) < 0 || (r = tree_enable(t)) < 0) {
		log_error("sampling cannot go on after the reload: %s", strerror(-r));
		t->result = r;
		tree_stop(t);
	}
}

static void on_gone(void *ctx, enum peer who, bool clean)
{
	struct tree *t = ctx;

	if (!clean && t->result == 0 && t->stopping)
		t->result = -ECHILD;
	if (who == PEER_PROFILER && t->reopen) {
		reopen_events(t);
		return;
	}
	if (who == PEER_PROFILER) {
		supervisor_stop(t->supervisor, PEER_SYMBOLIZER);
	} else if (who == PEER_SYMBOLIZER && !t->options.capture) {
		supervisor_stop(t->supervisor, PEER_EXPORTER);
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
	       a->unwind_rows_bytes != b->unwind_rows_bytes ||
	       a->max_processes != b->max_processes || a->max_open_files != b->max_open_files;
}

int tree_reload(struct tree *t, const struct config *config)
{
	bool resample = sampling_differs(t->options.config, config);

	if (t->stopping || t->reopen)
		return -EBUSY;
	t->options.config = config;
	t->options.rate_hz = config->samples_per_second;
	t->options.interval_ns = config->reporter_interval_ns;
	/* The symbolizer stays: it holds what the exporter has not settled and gives it to the new
	 * one. */
	if (supervisor_running(t->supervisor, PEER_SYMBOLIZER)) {
		int control = supervisor_control(t->supervisor, PEER_SYMBOLIZER);

		if (send_symbolizer_config(t, control, -1) < 0 || send_start(control) < 0)
			log_warning("the symbolizer does not take the new config");
	}
	supervisor_restart(t->supervisor, PEER_EXPORTER);
	if (resample) {
		t->reopen = true;
		supervisor_stop(t->supervisor, PEER_PROFILER);
	}
	return 0;
}

void tree_progress(const struct tree *t, uint64_t *ret_samples, uint64_t *ret_lost)
{
	const struct status_page *p = supervisor_status(t->supervisor, PEER_PROFILER);

	*ret_samples = p->samples;
	*ret_lost = p->lost;
}

uint64_t tree_drained_ns(const struct tree *t)
{
	return supervisor_status(t->supervisor, PEER_PROFILER)->drained_ns;
}

const struct sample_features *tree_features(const struct tree *t)
{
	return &t->features;
}

uint32_t tree_n_cpus(const struct tree *t)
{
	return t->cpus.n;
}

bool tree_targets_gone(const struct tree *t)
{
	for (size_t i = 0; i < t->options.n_pids; i++) {
		if (kill(t->options.pids[i], 0) == 0 || errno != ESRCH)
			return false;
	}
	return t->options.n_pids > 0;
}
