/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfwalk check: what this host lets this user sample, before anything is recorded. One line a
 * cause, with the fix below where one is needed, and a verdict. The verdict is not deduced from the
 * settings: events and rings are really opened, disabled, as a capture would. The settings are read
 * to say why.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "src/broker/events.h"
#include "src/cmd/check.h"
#include "src/cmd/cmd.h"
#include "src/cmd/container-options.h"
#include "src/cmd/profile-types.h"
#include "src/process/frame-ring.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/text.h"

#define RATE_HZ	       99
#define STACK_BYTES    32768
#define RING_BYTES     (UINT64_C(2) << 20)
#define SIDEBAND_BYTES (UINT64_C(256) << 10)

const struct command check_command = {
	.name = "check",
	.usage = "check",
	.summary = "show what this host allows, what is missing, and how to get it",
	.epilog = "Opens events as a capture does, but records nothing.\n"
		  "Exit codes: 0 the whole host can be recorded, 3 not permitted (or own processes "
		  "only),\n"
		  "4 not supported by this host.\n",
};

/* ---- Trying ---- */

static void try_rings(struct check *c)
{
	_cleanup_free_ struct sample_cpu *events = calloc((size_t)c->n_cpus, sizeof(*events));
	_cleanup_free_ struct ring *rings = calloc((size_t)c->n_cpus * 2, sizeof(*rings));
	pid_t pid = c->host == 0 ? -1 : getpid();
	int n = 0, n_rings = 0;

	c->ring_bytes = RING_BYTES;
	c->rings = events && rings ? 0 : -ENOMEM;
	for (; n < c->n_cpus && c->rings == 0; n++) {
		uint64_t bytes = RING_BYTES, sideband = SIDEBAND_BYTES;
		int r = sample_open_cpu(&c->options, &c->features, c->cpus[n], pid, NULL,
					&events[n], c->ring_error, sizeof(c->ring_error));

		if (r < 0) {
			c->rings = r;
			break;
		}
		c->rings = ring_map(&rings[n_rings], events[n].sample_fd, &bytes, true);
		n_rings += c->rings == 0;
		if (c->rings == 0) {
			c->rings =
				ring_map(&rings[n_rings], events[n].sideband_fd, &sideband, true);
			n_rings += c->rings == 0;
		}
		if (c->rings < 0)
			ring_explain(c->rings, c->ring_error, sizeof(c->ring_error));
		if (bytes < c->ring_bytes)
			c->ring_bytes = bytes;
	}
	while (n_rings > 0)
		ring_unmap(&rings[--n_rings]);
	for (int i = 0; i < c->n_cpus && i <= n && events; i++) {
		if (events[i].sample_fd > 0)
			sample_close_cpu(&events[i]);
	}
}

static void try_events(struct check *c)
{
	struct sample_features own = {0};

	c->options = (struct sample_options){.rate_hz = RATE_HZ,
					     .stack_bytes = STACK_BYTES,
					     .regs_mask = sample_user_regs,
					     .kernel_stacks = true,
					     .ring_bytes = RING_BYTES};
	c->host = sample_probe(&c->options, -1, &c->features, c->host_error, sizeof(c->host_error));
	c->own = sample_probe(&c->options, getpid(), &own, c->own_error, sizeof(c->own_error));
	if (c->host < 0)
		c->features = own;
	c->n_cpus = sample_online_cpus(c->cpus, EVENTS_MAX_CPUS);
	if (c->n_cpus > 0 && (c->host == 0 || c->own == 0))
		try_rings(c);
}

/* ---- Saying ---- */

/* One as root has others' processes hidden from it only in a container; others by hidepid. */
static void say_proc(struct check *c)
{
	if (access("/proc/1/status", R_OK) == 0)
		return;
	check_say(CHECK_NOTE, "/proc",
		  "processes of other users are hidden (hidepid): they have no names");
	check_say_fix("run as root, or mount /proc with gid= of one of your groups");
	if (geteuid() != 0)
		check_add_command(c, "mount -o remount,gid=%u /proc", (unsigned int)getegid());
}

static void say_sys(struct check *c)
{
	struct statfs fs;

	if (statfs("/sys", &fs) == 0 && fs.f_type == SYSFS_MAGIC)
		return;
	check_say(CHECK_NOTE, "/sys",
		  "is not mounted: no tracepoints, no --cgroup, and fewer names of groups");
	check_say_fix("mount -t sysfs sysfs /sys");
	check_add_command(c, "mount -t sysfs sysfs /sys");
}

static void say_descriptors(struct check *c)
{
	struct rlimit limit = {0};
	unsigned long long need = 4ULL * (unsigned long long)c->n_cpus + 64;

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max >= need)
		return;
	check_say(CHECK_BAD, "open files", "at most %llu, and %d CPUs need about %llu",
		  (unsigned long long)limit.rlim_max, c->n_cpus, need);
	check_say_fix("raise ulimit -Hn, or LimitNOFILE= of the unit");
	check_add_command(c, "prlimit --pid $$ --nofile=%llu", need);
}

/* Only for -e SUBSYSTEM:NAME. */
static void say_tracepoints(struct check *c)
{
	static const char *const places[] = {"/sys/kernel/tracing/events",
					     "/sys/kernel/debug/tracing/events"};

	/* Nor any other event. */
	if (c->host == -ENOSYS)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (access(places[i], R_OK) == 0) {
			check_say(CHECK_OK, "tracepoints", "in %s", places[i]);
			return;
		}
	}
	check_say(CHECK_NOTE, "tracepoints",
		  "tracefs is not readable: -e SUBSYSTEM:NAME does not work");
	if (tracefs_is_locked_down())
		return;
	check_say_fix(
		"run as root; where it is not mounted: mount -t tracefs none /sys/kernel/tracing");
	if (check_has_capability(c, SAMPLE_CAP_SYS_ADMIN) &&
	    access("/sys/kernel/tracing", F_OK) == 0)
		check_add_command(c, "mount -t tracefs none /sys/kernel/tracing");
}

/* Each type of profiles: where, why not elsewhere, and what changes that. */
static void say_types(void)
{
	struct profile_reached types[PROFILE_TYPES_N];

	profile_types_find(types);
	for (int i = 0; i < PROFILE_TYPES_N; i++) {
		const struct profile_reached *t = &types[i];

		check_say(t->reach == REACH_HOST ? CHECK_OK : CHECK_NOTE, t->name,
			  "record%s%s: %s%s%s", *t->options ? " " : "", t->options,
			  profile_reach_text(t->reach), *t->why ? "; " : "", t->why);
		if (t->mend)
			check_say_fix(t->mend);
	}
}

static void say_cgroups(const struct check *c)
{
	struct statfs fs, unified;
	bool v2 = statfs("/sys/fs/cgroup", &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
	bool hybrid = !v2 && statfs("/sys/fs/cgroup/unified", &unified) == 0 &&
		      unified.f_type == CGROUP2_SUPER_MAGIC;

	check_say(CHECK_OK, "cgroups", "%s; the cgroup comes with %s",
		  v2	   ? "v2"
		  : hybrid ? "hybrid (v1 with a v2 tree)"
			   : "v1, or not mounted",
		  c->features.cgroup ? "each sample"
				     : "/proc/PID/cgroup (no cgroup ids in samples)");
}

/* Readers get the priority from the broker, which is started as we are. */
static int try_priority(void)
{
	const struct sched_param first = {.sched_priority = 1}, none = {0};

	if (sched_setscheduler(0, SCHED_FIFO, &first) < 0)
		return -errno;
	return sched_setscheduler(0, SCHED_OTHER, &none) < 0 ? -errno : 0;
}

/* Readers pass frames to the profiler through it. */
static int try_frame_ring(void)
{
	_cleanup_(frame_ring_freep) struct frame_ring *ring = NULL;
	int fd = frame_ring_new(&ring);

	(void)close_fd(fd);
	return fd < 0 ? fd : 0;
}

static void say_interpreters(const struct check *c)
{
	bool all = sample_has_capability(&c->circumstances, SAMPLE_CAP_SYS_PTRACE);
	int r = try_frame_ring();

	if (r < 0) {
		check_say(CHECK_NOTE, "interpreters", "frames cannot be passed to the profiler: %s",
			  strerror(-r));
		check_say_fix("boot Linux 3.17 or later (memfd_create with seals)");
		return;
	}
	r = try_priority();
	if (r == 0)
		check_say(all ? CHECK_OK : CHECK_NOTE, "interpreters",
			  "the frames of %s are read at each sample",
			  all ? "all processes" : "no other user's processes");
	else
		check_say(CHECK_NOTE, "interpreters",
			  "frames are read too late to be proven, mostly, and samples have no "
			  "spans: %s",
			  strerror(-r));
	if (!all)
		check_say_fix(
			"run as root, or with CAP_SYS_PTRACE, to read other users' processes");
	if (r < 0)
		check_say_fix(sample_priority_remedy());
}

static void say_event(const struct check *c)
{
	const struct {
		bool there;
		const char *name;
	} ladder[] = {
		{c->features.user_stack, "user stacks"},
		{c->features.dummy, "dummy event"},
		{c->features.mmap2, "mmap2"},
		{c->features.comm_exec, "comm_exec"},
		{c->features.clockid, "clockid"},
		{c->features.cgroup, "cgroup"},
		{c->features.build_id, "build id"},
		{c->features.read_lost, "read lost"},
	};
	char missing[256] = "";

	if (c->host < 0 && c->own < 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(ladder); i++) {
		size_t n = strlen(missing);

		if (!ladder[i].there)
			(void)snprintf(missing + n, sizeof(missing) - n, "%s%s", n ? ", " : "",
				       ladder[i].name);
	}
	if (c->features.hardware)
		check_say(CHECK_OK, "PMU", "cycles are counted, and interrupt");
	else {
		check_say(CHECK_OK, "PMU",
			  "none that interrupts (common in virtual machines): cpu-clock is sampled "
			  "instead");
		check_say_fix("only for -e cycles, cache-misses ...: let the hypervisor give its "
			      "guest a PMU "
			      "(QEMU/KVM: -cpu host,pmu=on; AWS, GCP: larger or metal instances)");
	}
	if (!c->features.user_stack) {
		check_say(CHECK_BAD, "kernel features", "no user stacks in samples");
		check_say_fix(
			"Linux 3.10 or later with CONFIG_HAVE_PERF_USER_STACK_DUMP is needed");
	} else
		check_say(CHECK_OK, "kernel features",
			  *missing ? "all but %s; perfwalk works without" : "all", missing);
	if (!c->features.kernel) {
		check_say(CHECK_NOTE, "kernel frames", "not allowed: stacks have no kernel frames");
		check_say_fix("sysctl kernel.perf_event_paranoid=1, or root");
	}
}

/* What all rings take, besides what others may have: the quota is for each CPU and user. */
static void add_quota(struct check *c)
{
	static const char setting[] = "kernel.perf_event_mlock_kb";
	long have = check_read_number("/proc/sys/kernel/perf_event_mlock_kb", 0);
	uint64_t bytes = RING_BYTES + SIDEBAND_BYTES + 2 * (uint64_t)sysconf(_SC_PAGESIZE);

	if (!check_has_capability(c, SAMPLE_CAP_IPC_LOCK))
		check_add_sysctl(c, setting, have + (long)(bytes >> 10));
}

static void say_rings(struct check *c)
{
	struct rlimit limit = {0};
	char each[32], asked[32], memlock[32] = "unlimited";

	if (c->host < 0 && c->own < 0)
		return;
	(void)getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur != RLIM_INFINITY)
		(void)text_format_bytes(memlock, sizeof(memlock), limit.rlim_cur);
	(void)text_format_bytes(each, sizeof(each), c->ring_bytes);
	(void)text_format_bytes(asked, sizeof(asked), RING_BYTES);
	if (c->rings < 0 || c->ring_bytes < RING_BYTES)
		add_quota(c);
	if (c->rings < 0) {
		check_say(CHECK_BAD, "rings", "%s", c->ring_error);
		return;
	}
	if (c->ring_bytes == RING_BYTES) {
		check_say(CHECK_OK, "rings", "%s for each of %d CPUs", each, c->n_cpus);
		return;
	}
	check_say(CHECK_NOTE, "rings",
		  "only %s a CPU instead of %s: busy CPUs may lose samples "
		  "(perf_event_mlock_kb %ld, locked-memory limit %s)",
		  each, asked, check_read_number("/proc/sys/kernel/perf_event_mlock_kb", -1),
		  memlock);
	check_say_fix(
		"run as root, give CAP_IPC_LOCK, or raise ulimit -l or kernel.perf_event_mlock_kb");
}

static void say_rate(struct check *c)
{
	long max = check_read_number("/proc/sys/kernel/perf_event_max_sample_rate", -1);

	if (max > 0 && max < 2 * RATE_HZ) {
		check_say(CHECK_NOTE, "rate",
			  "kernel.perf_event_max_sample_rate is %ld: fewer samples", max);
		check_say_fix("sysctl kernel.perf_event_max_sample_rate=10000");
		check_add_sysctl(c, "kernel.perf_event_max_sample_rate", 10000);
	} else
		check_say(CHECK_OK, "rate", "kernel.perf_event_max_sample_rate is %ld", max);
}

static int verdict(const struct check *c)
{
	(void)putchar('\n');
	if (c->host == 0 && c->rings == 0 && c->features.user_stack) {
		(void)puts("perfwalk record -a works here.");
		return EXIT_CODE_OK;
	}
	if (c->own == 0 && c->rings == 0 && c->features.user_stack) {
		(void)puts(
			"perfwalk record works for your own processes only (-p PID, -- COMMAND).");
		(void)printf("The whole host (-a): %s.\n", c->host_error);
		return exit_code_of(c->host) == EXIT_CODE_FAILURE ? EXIT_CODE_NOT_PERMITTED
								  : exit_code_of(c->host);
	}
	(void)printf("perfwalk record does not work here: %s.\n",
		     c->host < 0 && c->own < 0 ? c->host_error
		     : c->rings < 0	       ? c->ring_error
					       : "samples have no user stacks");
	if (c->rings < 0)
		return EXIT_CODE_NOT_PERMITTED;
	return c->host < 0 && exit_code_of(c->host) == EXIT_CODE_NOT_PERMITTED
		       ? EXIT_CODE_NOT_PERMITTED
		       : EXIT_CODE_NOT_SUPPORTED;
}

int check_main(int argc, char **argv)
{
	_cleanup_free_ struct check *c = calloc(1, sizeof(*c));
	struct utsname name = {0};
	int first = argc, r;

	r = options_parse(&check_command, argc, argv, NULL, NULL, &first);
	if (r > 0)
		return EXIT_CODE_OK;
	if (r == 0 && first < argc)
		(void)options_refuse(&check_command, "%s: takes no arguments", argv[first]);
	if (r < 0 || first < argc)
		return EXIT_CODE_USAGE;
	if (!c)
		return EXIT_CODE_FAILURE;
	if (!sample_has_proc()) {
		check_say(CHECK_BAD, "/proc",
			  "is not mounted: perfwalk finds processes and their files there");
		check_say_fix("mount -t proc proc /proc");
		(void)puts("\nperfwalk does not work here: /proc is not mounted.");
		check_add_command(c, "mount -t proc proc /proc");
		(void)printf("What is missing comes with:\n%s", c->commands);
		return EXIT_CODE_NOT_SUPPORTED;
	}
	log_set_level(LOG_LEVEL_WARNING);
	sample_read_circumstances(&c->circumstances);
	try_events(c);
	(void)uname(&name);
	(void)printf("Linux %s, %s, %d CPUs, user %u\n\n", name.release, name.machine, c->n_cpus,
		     (unsigned int)geteuid());
	check_say_paranoid(c);
	check_say_capabilities(c);
	check_say_seccomp(c);
	check_say_sandbox(c);
	check_say_users(c);
	check_say_limits(c);
	check_say_lockdown();
	check_say_namespaces(c);
	say_proc(c);
	say_sys(c);
	check_say_kernel_names(c);
	say_cgroups(c);
	say_interpreters(c);
	say_descriptors(c);
	say_tracepoints(c);
	say_types();
	say_rate(c);
	say_event(c);
	say_rings(c);
	r = verdict(c);
	if (*c->commands)
		(void)printf("What is missing comes with:\n%s", c->commands);
	if (!check_in_user_namespace())
		container_options_say(&c->circumstances);
	return r;
}
