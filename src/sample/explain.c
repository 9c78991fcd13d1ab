/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why an event could not be opened: the cause, the value on this machine, and the remedy. One errno
 * has many causes here, so we check the system for each.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "src/sample/event.h"
#include "src/sample/uprobe.h"
#include "util/cleanup.h"

#define PARANOID "/proc/sys/kernel/perf_event_paranoid"

/* The inode number is fixed in the kernel (include/linux/proc_ns.h). */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCu

static int try_call(struct perf_event_attr *attr)
{
	long r = syscall(SYS_perf_event_open, attr, 0, -1, -1, 0UL);
	int e = r < 0 ? errno : 0;

	if (r >= 0)
		(void)close((int)r);
	return e;
}

/* For a NULL attribute the kernel returns EFAULT or EACCES; EPERM and ENOSYS come from a filter. */
static int filter_answer(void)
{
	int e = try_call(NULL);

	return e == EPERM || e == ENOSYS ? e : 0;
}

/* Where no distribution has changed that, everybody may count this of himself. */
static bool is_refused_own(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = PERF_ATTR_SIZE_VER0,
				       .config = PERF_COUNT_SW_TASK_CLOCK,
				       .disabled = 1,
				       .exclude_kernel = 1,
				       .exclude_hv = 1};

	return try_call(&attr) == EACCES;
}

static const char *status_field(const char *status, const char *name)
{
	const char *p = strstr(status, name);

	return p ? p + strlen(name) : NULL;
}

bool sample_has_proc(void)
{
	struct statfs fs;

	return statfs("/proc", &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

bool sample_sees_all_processes(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == FIRST_PID_NAMESPACE;
}

static const char *manager_of(const char *name)
{
	return strncmp(name, "lxc", 3) == 0		  ? "LXC"
	       : strncmp(name, "systemd-nspawn", 14) == 0 ? "systemd-nspawn"
							  : NULL;
}

/* The container's first process is told who manages it, and what it starts inherits that
 * (systemd.io/CONTAINER_INTERFACE); a service sees what systemd has written of it. */
static const char *find_manager(void)
{
	static const struct {
		const char *path, *prefix; /* of one of the texts in it */
	} sources[] = {{"/proc/1/environ", "container="}, {"/run/systemd/container", ""}};
	const char *own = getenv("container");
	char text[8192];

	if (sample_sees_all_processes())
		return NULL;
	if (own)
		return manager_of(own);
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		size_t n_prefix = strlen(sources[i].prefix);
		_cleanup_close_ int fd = open(sources[i].path, O_RDONLY | O_CLOEXEC);
		ssize_t r = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
		size_t n = r > 0 ? (size_t)r : 0;

		text[n] = '\0';
		for (const char *p = text; p < text + n; p += strlen(p) + 1)
			if (strncmp(p, sources[i].prefix, n_prefix) == 0)
				return manager_of(p + n_prefix);
	}
	return NULL;
}

const char *sample_processes_remedy(const struct sample_circumstances *c)
{
	return c->manager ? "run perfwalk on the host of this container"
			  : "in a container: --pid=host; in Kubernetes: hostPID: true";
}

void sample_read_circumstances(struct sample_circumstances *ret)
{
	_cleanup_close_ int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	char status[8192];
	ssize_t n = fd < 0 ? -1 : read(fd, status, sizeof(status) - 1);
	const char *p;

	*ret = (struct sample_circumstances){.paranoid = event_read_number(PARANOID, LONG_MIN),
					     .seccomp = -1};
	ret->has_perfmon =
		event_read_number("/proc/sys/kernel/cap_last_cap", 0) >= SAMPLE_CAP_PERFMON;
	status[n > 0 ? n : 0] = '\0';
	p = status_field(status, "\nCapEff:");
	if (p)
		ret->capabilities = strtoull(p, NULL, 16);
	p = status_field(status, "\nSeccomp:");
	if (p)
		ret->seccomp = (int)strtol(p, NULL, 10);
	/* A kernel with this line knows the call as well. A filter may be the emulator's. */
	ret->emulated =
		ret->seccomp >= 0 && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0 && errno == EINVAL;
	if (ret->emulated)
		ret->seccomp = 0;
	ret->seccomp_refusal = ret->seccomp > 0 ? filter_answer() : 0;
	ret->paranoid_refusal = ret->paranoid > 2 && is_refused_own();
	ret->manager = find_manager();
}

/* With the capability something else refuses it. */
const char *sample_priority_remedy(void)
{
	struct sample_circumstances c;

	sample_read_circumstances(&c);
	return sample_has_capability(&c, SAMPLE_CAP_SYS_NICE)
		       ? "this process has CAP_SYS_NICE, so its control group has no real-time "
			 "budget (cpu.rt_runtime_us), or a seccomp filter or user namespace "
			 "refuses it"
		       : "run as root, or with CAP_SYS_NICE, or under ulimit -r 1 (LimitRTPRIO=1)";
}

/* The remedy for a process that is root already must be another one. */
static const char *become_root(void)
{
	return geteuid() == 0 ? "run it with all capabilities (in a container: --privileged; "
				"in the systemd unit: " SAMPLE_UNIT_ANEW ")"
			      : "run as root";
}

int sample_paranoid_remedy(const struct sample_circumstances *c, pid_t pid)
{
	return pid != -1 || sample_has_capability(c, SAMPLE_CAP_PERFMON) ? 2 : 0;
}

static void explain_paranoid(const struct sample_circumstances *c, pid_t pid, char *buf,
			     size_t size)
{
	snprintf(buf, size,
		 "kernel.perf_event_paranoid is %ld: this kernel (Debian, Ubuntu) refuses perf "
		 "events without CAP_SYS_ADMIN, which this process does not have%s; %s, or: sysctl "
		 "kernel.perf_event_paranoid=%d",
		 c->paranoid,
		 sample_has_capability(c, SAMPLE_CAP_PERFMON) ? " (CAP_PERFMON is not enough)" : "",
		 geteuid() == 0 ? "give it CAP_SYS_ADMIN (in a container: --cap-add=SYS_ADMIN; in "
				  "the systemd unit: " SAMPLE_UNIT_ANEW ")"
				: "run as root",
		 sample_paranoid_remedy(c, pid));
}

static void explain_not_permitted(const struct sample_circumstances *c, pid_t pid, int cpu,
				  char *buf, size_t size)
{
	const char *capability = c->has_perfmon ? "CAP_PERFMON" : "CAP_SYS_ADMIN";

	if (c->seccomp_refusal && c->manager)
		snprintf(buf, size,
			 "the container's filter refuses perf_event_open (Seccomp: %d), whatever "
			 "this process may do: allow it in the configuration of %s",
			 c->seccomp, c->manager);
	else if (c->seccomp_refusal)
		snprintf(buf, size,
			 "a seccomp filter refuses perf_event_open (Seccomp: %d), whatever this "
			 "process may do: allow it in the container's seccomp profile "
			 "(--privileged, or "
			 "--security-opt seccomp=unconfined and --cap-add %s), or in the unit's "
			 "SystemCallFilter=",
			 c->seccomp, capability + strlen("CAP_"));
	else if (sample_has_capability(c, SAMPLE_CAP_SYS_ADMIN) && c->seccomp > 0)
		snprintf(
			buf, size,
			"perf_event_open is refused although this process has CAP_SYS_ADMIN, and a "
			"seccomp filter is in force (Seccomp: %d): allow perf_event_open in the "
			"container's seccomp profile",
			c->seccomp);
	else if (sample_has_capability(c, SAMPLE_CAP_SYS_ADMIN))
		snprintf(buf, size,
			 "perf_event_open is refused although this process has CAP_SYS_ADMIN "
			 "(kernel.perf_event_paranoid is %ld): a security module (SELinux class "
			 "perf_event) or a user namespace denies it; run in the host's "
			 "namespace and see the audit log",
			 c->paranoid);
	else if (c->paranoid_refusal)
		explain_paranoid(c, pid, buf, size);
	else if (sample_has_capability(c, SAMPLE_CAP_PERFMON))
		snprintf(buf, size,
			 "perf_event_open is refused although this process has CAP_PERFMON "
			 "(kernel.perf_event_paranoid is %ld%s): %s",
			 c->paranoid, c->seccomp > 0 ? ", a seccomp filter is in force" : "",
			 pid != -1 ? "profiling another user's process also needs CAP_SYS_PTRACE"
				   : "allow perf_event_open in the seccomp profile or security "
				     "module");
	else if (pid == -1)
		snprintf(buf, size,
			 "profiling all of CPU %d is not permitted: kernel.perf_event_paranoid is "
			 "%ld "
			 "and this process does not have %s; %s, give it %s, set "
			 "kernel.perf_event_paranoid=0 by sysctl, or profile processes of your own "
			 "(-p PID)",
			 cpu, c->paranoid, capability, become_root(), capability);
	else
		snprintf(
			buf, size,
			"profiling process %d is not permitted: kernel.perf_event_paranoid is %ld, "
			"and the process is not yours or this process lacks %s%s; run as root or "
			"as "
			"the process's user",
			(int)pid, c->paranoid, capability,
			c->seccomp > 0 ? " or a seccomp filter denies it" : "");
}

static void explain_descriptors(int error, char *buf, size_t size)
{
	struct rlimit limit = {0};

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	if (error == -ENFILE)
		snprintf(buf, size,
			 "the system's table of open files is full (fs.file-max is %ld): raise "
			 "fs.file-max",
			 event_read_number("/proc/sys/fs/file-max", -1));
	else
		snprintf(buf, size,
			 "no file descriptor left (limit %llu): two are needed for each CPU; raise "
			 "LimitNOFILE= or ulimit -n",
			 (unsigned long long)limit.rlim_cur);
}

static void explain_refused_attr(const struct sample_options *o, char *buf, size_t size)
{
	struct utsname name = {0};

	(void)uname(&name);
	if (o->event.name[0])
		snprintf(buf, size,
			 "this kernel (%s) refuses the event %s with these settings: try another "
			 "period, rate or stack size (%u bytes)",
			 name.release, o->event.name, o->stack_bytes);
	else
		snprintf(buf, size,
			 "this kernel (%s) refuses the event: rate %u Hz "
			 "(kernel.perf_event_max_sample_rate is "
			 "%ld), stack %u bytes; lower the rate or the stack size",
			 name.release, o->rate_hz,
			 event_read_number("/proc/sys/kernel/perf_event_max_sample_rate", -1),
			 o->stack_bytes);
}

static void explain_no_event(const struct sample_options *o, char *buf, size_t size)
{
	snprintf(buf, size,
		 "the event %s does not exist here, or raises no interrupt%s; every machine has "
		 "cpu-clock, task-clock, page-faults, context-switches, cpu-migrations and "
		 "tracepoints",
		 o->event.name[0] ? o->event.name : "cycles",
		 sample_event_is_hardware(&o->event)
			 ? ": there are no processor counters for it, as in most virtual machines"
			 : "");
}

static void explain_no_call(const struct sample_circumstances *c, char *buf, size_t size)
{
	if (c->paranoid == LONG_MIN)
		snprintf(buf, size,
			 "this kernel has no perf events (" PARANOID " does not exist): a kernel "
			 "with CONFIG_PERF_EVENTS is needed");
	else if (c->seccomp > 0)
		snprintf(buf, size,
			 "perf_event_open is hidden by a seccomp filter (Seccomp: %d): allow it in "
			 "the container's seccomp profile",
			 c->seccomp);
	else
		snprintf(buf, size,
			 "perf_event_open does not exist here, and no seccomp filter hides it: "
			 "this is an emulator without perf events (qemu-user, gVisor); run "
			 "perfwalk outside of it");
}

void event_explain(int error, pid_t pid, int cpu, const struct sample_options *o, char *buf,
		   size_t size)
{
	struct sample_circumstances c;

	if (!size)
		return;
	sample_read_circumstances(&c);
	if (o->event.uprobe && error != -ESRCH && error != -ENODEV && error != -EMFILE &&
	    error != -ENFILE && error != -ENOMEM) {
		uprobe_explain(o->event.uprobe, error, buf, size);
		return;
	}
	switch (error) {
	case -EACCES:
	case -EPERM:
		explain_not_permitted(&c, pid, cpu, buf, size);
		break;
	case -ENOSYS:
		explain_no_call(&c, buf, size);
		break;
	case -EMFILE:
	case -ENFILE:
		explain_descriptors(error, buf, size);
		break;
	case -EINVAL:
	case -E2BIG:
	case -EOVERFLOW:
		explain_refused_attr(o, buf, size);
		break;
	case -ENODEV:
		snprintf(buf, size, "CPU %d is offline or does not exist", cpu);
		break;
	case -ENOENT:
	case -EOPNOTSUPP:
		explain_no_event(o, buf, size);
		break;
	case -EBUSY:
		snprintf(buf, size,
			 "another profiler holds the performance counters of CPU %d exclusively: "
			 "stop "
			 "it, or use event cpu-clock",
			 cpu);
		break;
	case -ESRCH:
		snprintf(buf, size, "no %s %d: it has ended or never existed; see ps -e%s",
			 o->this_thread ? "thread" : "process", (int)pid,
			 o->this_thread ? "L" : "");
		break;
	case -ENOMEM:
		snprintf(buf, size, "not enough kernel memory for an event on CPU %d", cpu);
		break;
	default:
		snprintf(buf, size, "perf_event_open on CPU %d: %s", cpu, strerror(-error));
		break;
	}
}

void ring_explain(int error, char *buf, size_t size)
{
	struct rlimit limit = {0};

	(void)getrlimit(RLIMIT_MEMLOCK, &limit);
	if (error == -EPERM || error == -ENOMEM)
		snprintf(buf, size,
			 "no memory for the smallest ring: the locked-memory quota is spent "
			 "(kernel.perf_event_mlock_kb is %ld for each CPU and user, shared by all "
			 "perf "
			 "users of this user; RLIMIT_MEMLOCK is %llu bytes): give CAP_IPC_LOCK, "
			 "raise "
			 "LimitMEMLOCK= or kernel.perf_event_mlock_kb, or stop the other profiler",
			 event_read_number("/proc/sys/kernel/perf_event_mlock_kb", -1),
			 (unsigned long long)limit.rlim_cur);
	else
		snprintf(buf, size, "the ring of a perf event cannot be mapped: %s",
			 strerror(-error));
}
