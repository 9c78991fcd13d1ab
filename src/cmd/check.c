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
#include <limits.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "src/broker/events.h"
#include "src/cmd/cmd.h"
#include "src/cmd/container-options.h"
#include "src/cmd/profile-types.h"
#include "src/process/frame-ring.h"
#include "src/process/sandbox.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/text.h"

#define RATE_HZ	    99
#define STACK_BYTES 32768
#define RING_BYTES  (UINT64_C(2) << 20)

/* The inode number is fixed in the kernel (include/linux/proc_ns.h). */
#define FIRST_USER_NAMESPACE 0xEFFFFFFDu

enum level { OK, NOTE, BAD };

struct check {
	struct sample_circumstances circumstances;
	struct sample_options options;
	struct sample_features features;
	char host_error[1024], own_error[1024], ring_error[512];
	int host, own, rings; /* 0 or -errno of opening: all CPUs, ourselves, the rings */
	uint64_t ring_bytes;  /* the smallest that was given */
	int cpus[EVENTS_MAX_CPUS], n_cpus;
	char commands[1024]; /* what gets what is missing, a line each */
};

const struct command check_command = {
	.name = "check",
	.usage = "check",
	.summary = "show what this host allows, what is missing, and how to get it",
	.epilog = "Opens events as a capture does, but records nothing.\n"
		  "Exit codes: 0 the whole host can be recorded, 3 not permitted (or own processes "
		  "only),\n"
		  "4 not supported by this host.\n",
};

static void line(enum level level, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void line(enum level level, const char *name, const char *format, ...)
{
	static const char *const marks[] = {"ok", "note", "BAD"};
	va_list ap;

	(void)printf("%-5s %-16s ", marks[level], name);
	va_start(ap, format);
	(void)vprintf(format, ap);
	va_end(ap);
	(void)putchar('\n');
}

static void fix(const char *text)
{
	(void)printf("%-22s -> %s\n", "", text);
}

/* A command to copy, for the end. */
static void command(struct check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void command(struct check *c, const char *format, ...)
{
	size_t n = strlen(c->commands);
	va_list ap;
	int length;

	length = snprintf(c->commands + n, sizeof(c->commands) - n, "    %s",
			  geteuid() == 0 ? "" : "sudo ");
	va_start(ap, format);
	if (length > 0 && n + (size_t)length < sizeof(c->commands))
		(void)vsnprintf(c->commands + n + length, sizeof(c->commands) - n - (size_t)length,
				format, ap);
	va_end(ap);
	n = strlen(c->commands);
	if (n + 1 < sizeof(c->commands))
		memcpy(c->commands + n, "\n", 2);
}

static long read_number(const char *path, long fallback)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[32];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return fallback;
	text[n] = '\0';
	return strtol(text, NULL, 10);
}

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
		uint64_t bytes = RING_BYTES, sideband = 256 << 10;
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

static bool in_user_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/user", &st) == 0 && st.st_ino != FIRST_USER_NAMESPACE;
}

/* Capabilities of a rootless container are of no use to perf events. */
static bool counts(const struct check *c, int capability)
{
	return sample_has_capability(&c->circumstances, capability) && !in_user_namespace();
}

static void say_paranoid(struct check *c)
{
	long paranoid = c->circumstances.paranoid;
	bool admin = counts(c, SAMPLE_CAP_SYS_ADMIN);
	bool perfmon = counts(c, SAMPLE_CAP_PERFMON);

	if (paranoid == LONG_MIN && (c->host == 0 || c->own == 0)) {
		line(NOTE, "paranoid", "kernel.perf_event_paranoid cannot be read (/proc/sys)");
		return;
	}
	if (paranoid == LONG_MIN) {
		line(BAD, "perf events",
		     "this kernel has no perf events (no kernel.perf_event_paranoid)");
		fix("boot a kernel with CONFIG_PERF_EVENTS");
		return;
	}
	if (admin || (perfmon && paranoid < 3))
		line(OK, "paranoid", "kernel.perf_event_paranoid is %ld, which %s overrides",
		     paranoid, admin ? "CAP_SYS_ADMIN" : "CAP_PERFMON");
	else if (paranoid <= 0)
		line(OK, "paranoid", "kernel.perf_event_paranoid is %ld: everybody may sample",
		     paranoid);
	else {
		/* Level 3 is Debian's, 4 Ubuntu's; the trial decides, not the number. */
		line(BAD, "paranoid", "kernel.perf_event_paranoid is %ld: %s", paranoid,
		     c->own < 0 && !c->circumstances.seccomp_refusal
			     ? "nothing without CAP_SYS_ADMIN"
		     : paranoid > 1 ? "own processes only, and no kernel frames"
				    : "own processes only");
		if (paranoid > 2)
			fix("a value of Debian's and Ubuntu's kernels, set in /etc/sysctl.d or "
			    "built in");
		fix(geteuid() == 0 ? "give it CAP_PERFMON or CAP_SYS_ADMIN (in a container: "
				     "--privileged, or "
				     "--cap-add), or: sysctl kernel.perf_event_paranoid=0"
				   : "run as root, or: sysctl kernel.perf_event_paranoid=0");
		if (geteuid() != 0 && !c->circumstances.seccomp_refusal)
			command(c, "perfwalk record -a");
	}
}

static void say_capabilities(const struct check *c)
{
	static const struct {
		int number;
		const char *name, *without;
	} wanted[] = {
		{SAMPLE_CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "no mappings of other users' processes"},
		{SAMPLE_CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", "no files of other users"},
		{SAMPLE_CAP_IPC_LOCK, "CAP_IPC_LOCK", "rings count against a quota"},
	};
	char text[256] = "";

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		size_t n = strlen(text);

		if (!counts(c, wanted[i].number))
			(void)snprintf(text + n, sizeof(text) - n, "%s%s (%s)", n ? ", " : "",
				       wanted[i].name, wanted[i].without);
	}
	if (!*text) {
		line(OK, "capabilities", "all that help");
		return;
	}
	line(NOTE, "capabilities", "without %s", text);
	fix("run as root; in a container: --privileged, or --cap-add for each");
}

/* One as root has others' processes hidden from it only in a container; others by hidepid. */
static void say_proc(void)
{
	if (access("/proc/1/status", R_OK) == 0)
		return;
	line(NOTE, "/proc", "processes of other users are hidden (hidepid): they have no names");
	fix("run as root, or mount /proc with gid= of one of your groups");
}

static void say_sys(struct check *c)
{
	struct statfs fs;

	if (statfs("/sys", &fs) == 0 && fs.f_type == SYSFS_MAGIC)
		return;
	line(NOTE, "/sys",
	     "is not mounted: no tracepoints, no --cgroup, and fewer names of groups");
	fix("mount -t sysfs sysfs /sys");
	command(c, "mount -t sysfs sysfs /sys");
}

static void say_descriptors(struct check *c)
{
	struct rlimit limit = {0};
	unsigned long long need = 4ULL * (unsigned long long)c->n_cpus + 64;

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max >= need)
		return;
	line(BAD, "open files", "at most %llu, and %d CPUs need about %llu",
	     (unsigned long long)limit.rlim_max, c->n_cpus, need);
	fix("raise ulimit -Hn, or LimitNOFILE= of the unit");
	command(c, "prlimit --pid $$ --nofile=%llu", need);
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
			line(OK, "tracepoints", "in %s", places[i]);
			return;
		}
	}
	line(NOTE, "tracepoints", "is not readable: -e SUBSYSTEM:NAME does not work");
	fix("run as root; where it is not mounted: mount -t tracefs none /sys/kernel/tracing");
	if (counts(c, SAMPLE_CAP_SYS_ADMIN) && access("/sys/kernel/tracing", F_OK) == 0)
		command(c, "mount -t tracefs none /sys/kernel/tracing");
}

/* Each type of profiles: where, why not elsewhere, and what changes that. */
static void say_types(void)
{
	struct profile_reached types[PROFILE_TYPES_N];

	profile_types_find(types);
	for (int i = 0; i < PROFILE_TYPES_N; i++) {
		const struct profile_reached *t = &types[i];

		line(t->reach == REACH_HOST ? OK : NOTE, t->name, "record%s%s: %s%s%s",
		     *t->options ? " " : "", t->options, profile_reach_text(t->reach),
		     *t->why ? "; " : "", t->why);
		if (t->mend)
			fix(t->mend);
	}
}

static void say_seccomp(const struct check *c)
{
	int e = c->circumstances.seccomp_refusal;

	if (e) {
		line(BAD, "seccomp", "a filter refuses perf_event_open (%s)", strerror(e));
		fix("allow perf_event_open in the container's profile: --security-opt "
		    "seccomp=FILE or unconfined, or --privileged");
	} else if (c->circumstances.seccomp > 0)
		line(OK, "seccomp", "a filter is in force, but allows perf_event_open");
	else
		line(OK, "seccomp", "no filter");
}

static void add_name(char *list, size_t size, enum peer who)
{
	size_t n = strlen(list);

	(void)snprintf(list + n, size - n, "%s%s", n ? ", " : "", sandbox_name(who));
}

/* Not deduced: each role is taken on by a process that then tries to get out. */
static void say_sandbox(const struct check *c)
{
	struct sandbox_tried t;
	int landlock = -ENOSYS;
	char roles[128] = "", without[64] = "";

	if (sandbox_choose_mode(SANDBOX_ERRNO) == SANDBOX_NO) {
		line(NOTE, "sandbox", "no system call filters: %s",
		     sandbox_choose_mode(SANDBOX_KILL) == SANDBOX_NO && !getenv("PERFWALK_SECCOMP")
			     ? "this build has sanitizers, which do not work under them"
			     : "PERFWALK_SECCOMP says no");
		return;
	}
	if (c->circumstances.emulated) {
		line(NOTE, "sandbox", "no system call filters: an emulator has none");
		fix("run perfwalk outside of it");
		return;
	}
	for (int who = 0; who <= SANDBOX_OPENER; who++) {
		int r;

		if (sandbox_makes_files((enum peer)who)) {
			add_name(without, sizeof(without), (enum peer)who);
			continue;
		}
		r = sandbox_try((enum peer)who, &t);
		if (r == 0)
			r = t.seccomp_error;
		if (r < 0) {
			line(NOTE, "sandbox", "no system call filter for the %s: %s",
			     sandbox_name((enum peer)who), strerror(-r));
			fix("boot a kernel with CONFIG_SECCOMP_FILTER; in a container, its own "
			    "filter has to allow seccomp and prctl");
			return;
		}
		if (t.passed) {
			line(BAD, "sandbox", "the filter of the %s lets %s through",
			     sandbox_name((enum peer)who), sandbox_tried_name(t.passed));
			fix("report this kernel");
			return;
		}
		add_name(roles, sizeof(roles), (enum peer)who);
		if (who != SANDBOX_OPENER)
			landlock = t.landlock;
	}
	line(OK, "sandbox", "filters hold in %s", roles);
	if (*without)
		line(NOTE, "sandbox",
		     "no filter in %s: before Linux 3.17 they make files in /dev/shm by name",
		     without);
	if (landlock < 0)
		line(NOTE, "sandbox",
		     "no Landlock (%s): files are limited by the filters and the user alone",
		     strerror(-landlock));
	else
		line(OK, "sandbox", "Landlock (version %d) limits what each may open", landlock);
	if (geteuid() != 0)
		line(NOTE, "sandbox",
		     "not root: all processes run as this user, none is without the network");
}

static void say_lockdown(void)
{
	_cleanup_close_ int fd = open("/sys/kernel/security/lockdown", O_RDONLY | O_CLOEXEC);
	char text[128];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0) {
		line(OK, "lockdown", "%s",
		     access("/sys/kernel/security/lockdown", F_OK) == 0
			     ? "this user cannot read it"
			     : "not visible (/sys/kernel/security)");
		return;
	}
	text[n] = '\0';
	if (strstr(text, "[confidentiality]")) {
		line(BAD, "lockdown", "confidentiality: the kernel hides its own stacks");
		fix("boot with lockdown=integrity, or record with --user-only");
	} else
		line(OK, "lockdown", "%s", strstr(text, "[integrity]") ? "integrity" : "none");
}

static void say_namespaces(void)
{
	if (in_user_namespace()) {
		line(NOTE, "user namespace", "not the host's: capabilities in it have no effect");
		fix("run as root of the host, not in a rootless container");
	}
	if (!sample_sees_all_processes()) {
		line(NOTE, "pid namespace", "not the host's: processes outside have no names");
		fix("in a container: --pid=host; in Kubernetes: hostPID: true");
	} else
		line(OK, "pid namespace", "the host's");
}

static void say_kernel_names(void)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	unsigned long long address = 0;
	char text[512];
	long restriction;

	for (int i = 0; f && i < 64 && !address && fgets(text, sizeof(text), f); i++)
		address = strtoull(text, NULL, 16);
	if (f)
		(void)fclose(f);
	if (address) {
		line(OK, "kernel names", "/proc/kallsyms has addresses");
		return;
	}
	restriction = read_number("/proc/sys/kernel/kptr_restrict", -1);
	line(NOTE, "kernel names", "/proc/kallsyms is hidden (kernel.kptr_restrict is %ld)",
	     restriction);
	/* At 0 the kernel also shows it to those who may sample the kernel without a capability. */
	(void)snprintf(text, sizeof(text), "%s%s",
		       geteuid() == 0 ? "give it CAP_SYSLOG" : "run as root or with CAP_SYSLOG",
		       restriction > 1	  ? ", and: sysctl kernel.kptr_restrict=1"
		       : restriction == 0 ? ", or: sysctl kernel.perf_event_paranoid=1"
					  : "");
	fix(text);
}

static void say_cgroups(const struct check *c)
{
	struct statfs fs, unified;
	bool v2 = statfs("/sys/fs/cgroup", &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
	bool hybrid = !v2 && statfs("/sys/fs/cgroup/unified", &unified) == 0 &&
		      unified.f_type == CGROUP2_SUPER_MAGIC;

	line(OK, "cgroups", "%s; the cgroup comes with %s",
	     v2	      ? "v2"
	     : hybrid ? "hybrid (v1 with a v2 tree)"
		      : "v1, or not mounted",
	     c->features.cgroup ? "each sample" : "/proc/PID/cgroup (no cgroup ids in samples)");
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
		line(NOTE, "interpreters", "frames cannot be passed to the profiler: %s",
		     strerror(-r));
		fix("boot Linux 3.17 or later (memfd_create with seals)");
		return;
	}
	r = try_priority();
	if (r == 0)
		line(all ? OK : NOTE, "interpreters", "the frames of %s are read at each sample",
		     all ? "all processes" : "no other user's processes");
	else
		line(NOTE, "interpreters", "frames are read too late to be proven, mostly: %s",
		     strerror(-r));
	if (!all)
		fix("run as root, or with CAP_SYS_PTRACE, to read other users' processes");
	if (r < 0)
		fix(sample_priority_remedy());
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
		line(OK, "PMU", "cycles are counted, and interrupt");
	else {
		line(OK, "PMU",
		     "none that interrupts (common in virtual machines): cpu-clock is sampled "
		     "instead");
		fix("only for -e cycles, cache-misses ...: let the hypervisor give its guest a PMU "
		    "(QEMU/KVM: -cpu host,pmu=on; AWS, GCP: larger or metal instances)");
	}
	if (!c->features.user_stack) {
		line(BAD, "kernel features", "no user stacks in samples");
		fix("Linux 3.10 or later with CONFIG_HAVE_PERF_USER_STACK_DUMP is needed");
	} else
		line(OK, "kernel features", *missing ? "all but %s; perfwalk works without" : "all",
		     missing);
	if (!c->features.kernel) {
		line(NOTE, "kernel frames", "not allowed: stacks have no kernel frames");
		fix("sysctl kernel.perf_event_paranoid=1, or root");
	}
}

static void say_rings(const struct check *c)
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
	if (c->rings < 0) {
		line(BAD, "rings", "%s", c->ring_error);
		return;
	}
	if (c->ring_bytes == RING_BYTES) {
		line(OK, "rings", "%s for each of %d CPUs", each, c->n_cpus);
		return;
	}
	line(NOTE, "rings",
	     "only %s a CPU instead of %s: busy CPUs may lose samples "
	     "(perf_event_mlock_kb %ld, locked-memory limit %s)",
	     each, asked, read_number("/proc/sys/kernel/perf_event_mlock_kb", -1), memlock);
	fix("run as root, give CAP_IPC_LOCK, or raise ulimit -l or kernel.perf_event_mlock_kb");
}

static void say_rate(struct check *c)
{
	long max = read_number("/proc/sys/kernel/perf_event_max_sample_rate", -1);

	if (max > 0 && max < 2 * RATE_HZ) {
		line(NOTE, "rate", "kernel.perf_event_max_sample_rate is %ld: fewer samples", max);
		fix("sysctl kernel.perf_event_max_sample_rate=10000");
		command(c, "sysctl kernel.perf_event_max_sample_rate=10000");
	} else
		line(OK, "rate", "kernel.perf_event_max_sample_rate is %ld", max);
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

static void say_options(const struct check *c)
{
	char missing[512];

	container_options_missing(&c->circumstances, missing, sizeof(missing));
	if (*missing && !in_user_namespace())
		(void)printf("In a container it needs these options of podman or docker:\n    %s\n",
			     missing);
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
		line(BAD, "/proc",
		     "is not mounted: perfwalk finds processes and their files there");
		fix("mount -t proc proc /proc");
		(void)puts("\nperfwalk does not work here: /proc is not mounted.");
		command(c, "mount -t proc proc /proc");
		(void)printf("What is missing comes with:\n%s", c->commands);
		return EXIT_CODE_NOT_SUPPORTED;
	}
	log_set_level(LOG_LEVEL_WARNING);
	sample_read_circumstances(&c->circumstances);
	try_events(c);
	(void)uname(&name);
	(void)printf("Linux %s, %s, %d CPUs, user %u\n\n", name.release, name.machine, c->n_cpus,
		     (unsigned int)geteuid());
	say_paranoid(c);
	say_capabilities(c);
	say_seccomp(c);
	say_sandbox(c);
	say_lockdown();
	say_namespaces();
	say_proc();
	say_sys(c);
	say_kernel_names();
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
	say_options(c);
	return r;
}
