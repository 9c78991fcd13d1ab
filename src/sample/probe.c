/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out what this kernel can do by opening disabled events: one feature at a time, added to the
 * plainest event. Versions are never read: vendors' kernels have newer features than their version
 * says, and stable kernels lack older ones. Features that passed alone are then tried together.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "src/sample/event.h"
#include "src/sample/uprobe.h"
#include "util/cleanup.h"
#include "util/log.h"

enum event_kind { KIND_SAMPLE, KIND_SIDEBAND };

struct probe {
	const struct sample_options *options;
	struct sample_features *features;
	pid_t pid;
	int cpu;
};

static int try_open(const struct probe *p, enum event_kind kind, int cpu)
{
	struct perf_event_attr attr;
	int fd;

	if (kind == KIND_SAMPLE)
		event_sample_attr(p->options, p->features, p->pid, &attr);
	else
		event_sideband_attr(p->options, p->features, p->pid, &attr);
	/*
	 * Only probed: records with a build id have no inode, which we need to identify the file.
	 */
	attr.build_id = kind == KIND_SIDEBAND && p->features->build_id;
	fd = event_open(&attr, p->pid, cpu, p->features->cloexec);
	if (fd < 0)
		return fd;
	(void)close_fd(fd);
	return 0;
}

static int try_both(const struct probe *p)
{
	int r = try_open(p, KIND_SAMPLE, p->cpu);

	return r < 0 ? r : try_open(p, KIND_SIDEBAND, p->cpu);
}

static int probe_plainest(const struct probe *p)
{
	struct sample_features *f = p->features;
	int r;

	f->cloexec = f->kernel = true;
	r = try_open(p, KIND_SAMPLE, p->cpu);
	if (r == -EINVAL) {
		f->cloexec = false;
		r = try_open(p, KIND_SAMPLE, p->cpu);
	}
	if (r == -EACCES || r == -EPERM) {
		/* Above paranoid 1 a user may still sample their own processes in user mode. */
		f->kernel = false;
		r = try_open(p, KIND_SAMPLE, p->cpu);
	}
	return r;
}

static void probe_each(const struct probe *p)
{
	struct sample_features *f = p->features;
	/* Oldest first: if they do not work together, features are dropped from the end. */
	struct {
		bool *feature;
		enum event_kind kind;
		const char *name;
	} ladder[] = {
		{&f->user_stack, KIND_SAMPLE, "user stacks"},
		{&f->dummy, KIND_SIDEBAND, "dummy event"},
		{&f->mmap2, KIND_SIDEBAND, "mmap2"},
		{&f->comm_exec, KIND_SIDEBAND, "comm_exec"},
		{&f->clockid, KIND_SAMPLE, "clockid"},
		{&f->cgroup, KIND_SAMPLE, "cgroup"},
		{&f->page_size, KIND_SAMPLE, "page size"},
		{&f->build_id, KIND_SIDEBAND, "build_id"},
		{&f->read_lost, KIND_SAMPLE, "read lost"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(ladder); i++) {
		*ladder[i].feature = true;
		*ladder[i].feature = try_open(p, ladder[i].kind, p->cpu) >= 0;
		log_debug("perf feature %s: %s", ladder[i].name, *ladder[i].feature ? "yes" : "no");
	}
	for (size_t i = ARRAY_SIZE(ladder); i > 0 && try_both(p) == -EINVAL; i--)
		*ladder[i - 1].feature = false;
}

/* Every CPU must have it: hybrid processors have some counters only on some CPUs. */
static int open_everywhere(const struct probe *p)
{
	_cleanup_free_ int *cpus = calloc(EVENT_MAX_CPUS, sizeof(*cpus));
	int n, r;

	if (!cpus)
		return -ENOMEM;
	n = sample_online_cpus(cpus, EVENT_MAX_CPUS);
	for (int i = 0; i < n; i++) {
		r = try_open(p, KIND_SAMPLE, cpus[i]);
		if (r < 0 && r != -ENODEV)
			return r;
	}
	return n < 0 ? n : 0;
}

/* Uses cycles if they really fire; the same recording finds the registers to trust. */
static int probe_cycles(const struct probe *p)
{
	struct sample_features *f = p->features;
	int r;

	f->hardware = true;
	r = open_everywhere(p);
	if (r >= 0) {
		r = event_self_check(p->options, f, &f->kernel_regs_valid);
		if (r > 0)
			return 0;
		r = r < 0 ? r : -EOPNOTSUPP;
	}
	log_debug("cycles event: %s", strerror(-r));
	f->hardware = false;
	return r;
}

/*
 * An event that the user named must exist on every CPU; whether it fires depends on the workload.
 * The clock finds out which registers a sample inside the kernel has.
 */
static int probe_event(const struct probe *p)
{
	struct sample_features *f = p->features;
	struct sample_options clock = *p->options;
	int r;

	f->kernel_regs_valid = 0;
	if (clock.event.name[0]) {
		r = open_everywhere(p);
		if (r < 0)
			return r;
	} else if (probe_cycles(p) == 0) {
		return 0;
	}
	clock.event = (struct sample_event){0};
	r = event_self_check(&clock, f, &f->kernel_regs_valid);
	if (r <= 0)
		log_debug("cpu-clock gave no sample of this process: %s", strerror(-r));
	return 0;
}

static int choose_stacks(const struct probe *p, char *error, size_t n_error)
{
	struct sample_features *f = p->features;

	f->frame_pointers = p->options->stacks == SAMPLE_STACKS_FP ||
			    (p->options->stacks == SAMPLE_STACKS_AUTO && !f->user_stack);
	if (p->options->stacks != SAMPLE_STACKS_DWARF || f->user_stack)
		return 0;
	snprintf(
		error, n_error,
		"this kernel gives no user registers and stacks with samples: use --call-graph fp");
	return -EOPNOTSUPP;
}

/* The only use of a version: a warning about a bug that a trial would trigger. */
static void warn_of_hang(const struct sample_features *f)
{
	struct utsname name;

	if (f->hardware || uname(&name) < 0 ||
	    (strncmp(name.release, "6.16.", 5) != 0 && strncmp(name.release, "6.17.", 5) != 0))
		return;
	log_warning("Linux %s may hang when a cpu-clock event is throttled; the rate is kept low, "
		    "but a newer kernel is advised",
		    name.release);
}

int sample_keep_probe(struct sample_uprobe *u, int cpu)
{
	for (uint32_t i = 0; i < u->n_sites; i++) {
		struct perf_event_attr attr = {
			.size = PERF_ATTR_SIZE_VER3, .sample_period = 1, .disabled = 1};

		if (u->sites[i].keeper_fd >= 0)
			continue;
		uprobe_attr(u, i, &attr);
		u->sites[i].keeper_fd = event_open(&attr, -1, cpu, true);
		if (u->sites[i].keeper_fd < 0)
			return u->sites[i].keeper_fd;
	}
	return 0;
}

/* A thread that is followed by perf's own probe could make no thread and no child any more. */
static int check_uprobe(const struct sample_options *o, pid_t pid, int cpu, char *error,
			size_t n_error)
{
	/* Ours, if it is to be opened. */
	struct sample_uprobe *u = (struct sample_uprobe *)o->event.uprobe;
	int r;

	if (!u || pid == -1)
		return 0;
	if (!u->by_path || o->this_thread) {
		r = sample_keep_probe(u, cpu);
		if (r < 0)
			uprobe_explain(u, r, error, n_error);
		return r;
	}
	r = sample_event_try(&o->event);
	if (r < 0)
		uprobe_explain(u, r, error, n_error);
	else
		snprintf(error, n_error, "%s", uprobe_tracefs_remedy());
	return r < 0 ? r : -EOPNOTSUPP;
}

static int first_online_cpu(void)
{
	_cleanup_free_ int *cpus = calloc(EVENT_MAX_CPUS, sizeof(*cpus));

	return cpus && sample_online_cpus(cpus, EVENT_MAX_CPUS) > 0 ? cpus[0] : 0;
}

int sample_probe(const struct sample_options *options, pid_t pid, struct sample_features *ret,
		 char *error, size_t n_error)
{
	struct sample_features features = {
		.paranoid = (int)event_read_number("/proc/sys/kernel/perf_event_paranoid", INT_MIN),
	};
	struct probe p = {options, &features, pid, first_online_cpu()};
	int r = check_uprobe(options, pid, p.cpu, error, n_error);

	if (r < 0)
		return r;
	r = probe_plainest(&p);

	if (r >= 0) {
		probe_each(&p);
		r = choose_stacks(&p, error, n_error);
		if (r < 0)
			return r;
		r = probe_event(&p);
	}
	if (r < 0) {
		event_explain(r, pid, p.cpu, options, error, n_error);
		return r;
	}
	warn_of_hang(&features);
	*ret = features;
	return 0;
}
