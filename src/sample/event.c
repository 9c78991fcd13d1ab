/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two events per CPU. The sample event counts (cycles or cpu-clock) and writes samples. The side
 * band is a software event that never fires: it only carries mappings, names, forks, exits and
 * cgroups. It has a ring of its own, so that a flood of stacks cannot push out the records that
 * explain them.
 *
 * Both have the same trailer and the same clock: their records can be ordered against each other.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "src/sample/event.h"
#include "src/sample/uprobe.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define MAX_STACK_BYTES	    65528 /* the kernel refuses more */
#define SIDEBAND_WAKE_BYTES 64	  /* less than what a fork writes */

/* The fields that the trailer of a side-band record shares with a sample, but for those of
 * switches_attr(). */
#define COMMON_SAMPLE_TYPE (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

/*
 * The kernel lowers its limit by itself when samples take too long, and a higher rate is EINVAL, so
 * it is read each time. At the limit itself the kernel would throttle the event at nearly every
 * tick, and Linux 6.16 and 6.17 can hang when they throttle a cpu-clock event. Half of the limit
 * avoids both.
 */
static long max_rate(void)
{
	long max = event_read_number("/proc/sys/kernel/perf_event_max_sample_rate", 100000) / 2;

	return max < 1 ? 1 : max;
}

uint32_t sample_rate_now(const struct sample_options *options)
{
	long max = max_rate();
	uint32_t rate = options->rate_hz ? options->rate_hz : 1;

	return (unsigned long)max < rate ? (uint32_t)max : rate;
}

static bool is_auto_cycles(const struct sample_options *o, const struct sample_features *f)
{
	return f->hardware && !o->event.name[0];
}

static void common_attr(const struct sample_features *f, pid_t pid, struct perf_event_attr *ret)
{
	*ret = (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		/* All fields we set are in the first 96 bytes, which 3.10 knows. It would refuse a
		 * longer attr with a tail that is not zero. */
		.size = PERF_ATTR_SIZE_VER3,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.disabled = 1,
		.inherit = pid != -1,
		.exclude_kernel = !f->kernel,
		.exclude_hv = 1,
		.exclude_guest = 1,
		.sample_id_all = 1,
		/* With wakeup_watermark 0 the kernel wakes us at half of the mapped ring, also if
		 * the ring had to shrink. */
		.watermark = 1,
		.sample_type = COMMON_SAMPLE_TYPE,
		.use_clockid = f->clockid,
		.clockid = f->clockid ? CLOCK_MONOTONIC : 0,
		.read_format =
			PERF_FORMAT_TOTAL_TIME_ENABLED | (f->read_lost ? PERF_FORMAT_LOST : 0),
	};
}

/* Samples every switch. A single task needs its returns to the CPU, too (context_switch), since
 * those are switches of other tasks. A callchain would cost more than all the rest. Plain switches
 * are records alone, of an event that never happens: of two software events that happen at once,
 * the kernel writes damaged samples (seen on Linux 6.18). */
static void switches_attr(const struct sample_options *o, const struct sample_features *f,
			  pid_t pid, struct perf_event_attr *ret)
{
	common_attr(f, pid, ret);
	ret->type = o->event.type;
	ret->config = o->event.config;
	ret->inherit = pid != -1 && !o->this_thread;
	ret->enable_on_exec = o->enable_on_exec && pid != -1;
	ret->sample_period = 1;
	/* Each field takes time at each switch. The ring is that of a CPU. */
	ret->sample_type &= ~(uint64_t)PERF_SAMPLE_CPU;
	ret->context_switch = pid != -1 || o->switch_fields.plain;
	if (o->switch_fields.plain) {
		ret->config = PERF_COUNT_SW_DUMMY;
		return;
	}
	ret->sample_type |= PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER;
	ret->sample_regs_user = o->regs_mask;
}

static void set_event(const struct sample_event *e, uint32_t site, struct perf_event_attr *attr)
{
	attr->type = e->type;
	attr->config = e->config;
	if (e->uprobe)
		uprobe_attr(e->uprobe, site, attr);
}

/* All but the rate, which the kernel is asked for: a confined process cannot. */
static void sample_attr(const struct sample_options *o, const struct sample_features *f, pid_t pid,
			struct perf_event_attr *ret)
{
	uint32_t stack = o->stack_bytes > MAX_STACK_BYTES ? MAX_STACK_BYTES : o->stack_bytes & ~7u;

	bool chain = f->kernel && o->kernel_stacks;

	if (o->use == SAMPLE_USE_SWITCHES) {
		switches_attr(o, f, pid, ret);
		return;
	}
	common_attr(f, pid, ret);
	if (o->wake_each) {
		ret->watermark = 0;
		ret->wakeup_events = 1;
	}
	if (is_auto_cycles(o, f)) {
		ret->type = PERF_TYPE_HARDWARE;
		ret->config = PERF_COUNT_HW_CPU_CYCLES;
	} else if (o->event.name[0]) {
		set_event(&o->event, o->site, ret);
	}
	/* A halted CPU counts time but no cycles, and some PMUs refuse the bit. */
	ret->exclude_idle = !is_auto_cycles(o, f) && sample_event_is_time(&o->event);
	ret->exclude_user = o->only_kernel;
	ret->exclude_kernel |= o->only_user;
	ret->inherit = pid != -1 && !o->this_thread;
	ret->freq = o->period == 0;
	ret->sample_period = o->period;
	ret->enable_on_exec = o->enable_on_exec && pid != -1;
	ret->sample_type |= PERF_SAMPLE_IP;
	/* With the address, the kernel samples every software event, whatever the period is. */
	if (!o->period)
		ret->sample_type |= PERF_SAMPLE_PERIOD;
	/* The kernel needs the address to find the page. */
	if (o->event.bytes && f->page_size)
		ret->sample_type |= PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_PAGE_SIZE;
	if (chain || f->frame_pointers) {
		ret->sample_type |= PERF_SAMPLE_CALLCHAIN;
		ret->exclude_callchain_kernel = !chain;
		/* We walk the user side in the stack copy; if the kernel also followed frame
		 * pointers, that would cost as much as the copy. Only its chain goes beyond the
		 * largest copy. */
		ret->exclude_callchain_user = !f->frame_pointers && stack < MAX_STACK_BYTES;
	}
	if (f->user_stack && !f->frame_pointers) {
		ret->sample_type |= PERF_SAMPLE_REGS_USER | (stack ? PERF_SAMPLE_STACK_USER : 0);
		ret->sample_regs_user = o->regs_mask;
		ret->sample_stack_user = stack;
	}
	if (f->cgroup)
		ret->sample_type |= PERF_SAMPLE_CGROUP;
	if (o->use == SAMPLE_USE_PICKED ||
	    ((o->use == SAMPLE_USE_BLOCKS || o->use == SAMPLE_USE_WAKEUPS) &&
	     !o->switch_fields.plain))
		ret->sample_type |= PERF_SAMPLE_RAW;
}

void event_sample_attr(const struct sample_options *o, const struct sample_features *f, pid_t pid,
		       struct perf_event_attr *ret)
{
	sample_attr(o, f, pid, ret);
	if (ret->freq)
		ret->sample_freq = sample_rate_now(o);
}

void event_sideband_attr(const struct sample_options *o, const struct sample_features *f, pid_t pid,
			 struct perf_event_attr *ret)
{
	common_attr(f, pid, ret);
	/* Without the dummy event (3.10): a cpu-clock without a period counts but never fires. */
	if (f->dummy)
		ret->config = PERF_COUNT_SW_DUMMY;
	ret->inherit = pid != -1 && !o->this_thread;
	ret->enable_on_exec = o->enable_on_exec && pid != -1;
	ret->wakeup_watermark = SIDEBAND_WAKE_BYTES;
	ret->mmap = 1;
	ret->mmap2 = f->mmap2;
	ret->comm = 1;
	ret->comm_exec = f->comm_exec;
	ret->task = 1;
	ret->cgroup = f->cgroup;
}

void event_layout(const struct sample_options *o, const struct sample_features *f, bool sideband,
		  struct record_layout *ret)
{
	struct perf_event_attr attr;

	if (sideband)
		event_sideband_attr(o, f, -1, &attr);
	else
		sample_attr(o, f, -1, &attr);
	*ret = (struct record_layout){
		.sample_type = attr.sample_type,
		.read_format = attr.read_format,
		.regs_mask = attr.sample_regs_user,
		.kernel_regs_valid = f->kernel_regs_valid,
		.sample_id_all = true,
		.switches_out =
			!sideband && o->use == SAMPLE_USE_SWITCHES && o->switch_fields.plain,
	};
	if (!sideband)
		switch_layout(o, attr.sample_type, &ret->switches);
}

/* pid: with PERF_FLAG_PID_CGROUP a descriptor of a cgroup's directory. */
static int open_flags(struct perf_event_attr *attr, pid_t pid, int cpu, bool cloexec,
		      unsigned long flags)
{
	int fd;

	flags |= cloexec ? PERF_FLAG_FD_CLOEXEC : 0;
	fd = (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, flags);

	if (fd < 0)
		return -errno;
	if (!cloexec)
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fd;
}

int event_open(struct perf_event_attr *attr, pid_t pid, int cpu, bool cloexec)
{
	return open_flags(attr, pid, cpu, cloexec, 0);
}

static int set_filter(int fd, const char *filter)
{
	return filter && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter) < 0 ? -errno : 0;
}

/* The kernel may lower the allowed rate between our read and the open: then read it again. */
static int open_at_rate(const struct sample_options *o, const struct sample_features *f, int cpu,
			pid_t pid)
{
	struct perf_event_attr attr;
	uint64_t asked;
	int fd;

	for (int i = 0;; i++) {
		event_sample_attr(o, f, pid, &attr);
		asked = attr.sample_freq;
		fd = o->by_cgroup ? open_flags(&attr, o->cgroup_fd, cpu, f->cloexec,
					       PERF_FLAG_PID_CGROUP)
				  : event_open(&attr, pid, cpu, f->cloexec);
		if (fd != -EINVAL || i == 2 || o->period || sample_rate_now(o) == asked)
			return fd;
	}
}

static const char *event_filter(const struct sample_options *o)
{
	return o->switch_fields.plain	      ? NULL
	       : o->use == SAMPLE_USE_BLOCKS  ? SAMPLE_BLOCKS_FILTER
	       : o->use == SAMPLE_USE_WAKEUPS ? SAMPLE_WAKEUPS_FILTER
					      : o->filter;
}

static int open_sample_event(const struct sample_options *o, const struct sample_features *f,
			     int cpu, pid_t pid)
{
	_cleanup_close_ int fd = open_at_rate(o, f, cpu, pid);
	int r = fd < 0 ? fd : set_filter(fd, event_filter(o));

	return r < 0 ? r : TAKE_FD(fd);
}

static int share_ring(int fd, int with)
{
	return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, with) < 0 ? -errno : 0;
}

/* Parses "0-3,8" and returns the number of CPUs, or -errno. */
static int parse_cpus(const char *text, int *cpus, size_t max)
{
	char *p = (char *)text;
	size_t n_cpus = 0;

	while (*p >= '0' && *p <= '9') {
		long first = strtol(p, &p, 10), last = first;

		if (*p == '-')
			last = strtol(p + 1, &p, 10);
		if (first < 0 || last < first || last >= 1 << 20)
			return -EPROTO;
		for (long cpu = first; cpu <= last; cpu++) {
			if (n_cpus == max)
				return -E2BIG;
			cpus[n_cpus++] = (int)cpu;
		}
		if (*p == ',')
			p++;
	}
	return n_cpus ? (int)n_cpus : -EPROTO;
}

/* Reads the lines "cpu7 ..." of /proc/stat, one for each online CPU. */
static int online_cpus_of_stat(int *cpus, size_t max)
{
	FILE *f = fopen("/proc/stat", "re");
	size_t n_cpus = 0;
	char line[512];
	int r = f ? 0 : -errno;

	while (r == 0 && fgets(line, sizeof(line), f) && strncmp(line, "cpu", 3) == 0) {
		if (line[3] < '0' || line[3] > '9')
			continue;
		if (n_cpus == max)
			r = -E2BIG;
		else
			cpus[n_cpus++] = (int)strtol(line + 3, NULL, 10);
	}
	if (f)
		(void)fclose(f);
	return r < 0 ? r : n_cpus ? (int)n_cpus : -EPROTO;
}

int sample_online_cpus(int *cpus, size_t max)
{
	_cleanup_close_ int fd = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);
	char text[4096];
	ssize_t n;

	if (fd < 0) /* /sys is not mounted */
		return online_cpus_of_stat(cpus, max);
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return parse_cpus(text, cpus, max);
}

static bool is_online(int cpu)
{
	_cleanup_free_ int *cpus = calloc(EVENT_MAX_CPUS, sizeof(*cpus));
	int n = cpus ? sample_online_cpus(cpus, EVENT_MAX_CPUS) : 0;

	for (int i = 0; i < n; i++) {
		if (cpus[i] == cpu)
			return true;
	}
	/* Without the list, assume that it is online. */
	return n <= 0;
}

int sample_open_cpu(const struct sample_options *o, const struct sample_features *f, int cpu,
		    pid_t pid, const struct sample_cpu *attach, struct sample_cpu *ret, char *error,
		    size_t n_error)
{
	_cleanup_close_ int sample_fd = -EBADF, sideband_fd = -EBADF;
	struct perf_event_attr attr;
	int r = 0;

	if (!o->whole_cpus || !attach) {
		sample_fd = open_sample_event(o, f, cpu, o->whole_cpus ? -1 : pid);
		r = sample_fd;
	}
	if (r >= 0 && o->index == 0 && o->site == 0) {
		event_sideband_attr(o, f, pid, &attr);
		sideband_fd = event_open(&attr, pid, cpu, f->cloexec);
		r = sideband_fd;
	}
	if (r >= 0 && attach) {
		r = sample_fd >= 0 ? share_ring(sample_fd, attach->sample_fd) : 0;
		if (r >= 0 && sideband_fd >= 0)
			r = share_ring(sideband_fd, attach->sideband_fd);
	}
	/* For a number above all CPUs of this machine the kernel returns EINVAL. */
	if (r == -EINVAL && !is_online(cpu))
		r = -ENODEV;
	if (r < 0) {
		event_explain(r, pid, cpu, o, error, n_error);
		return r;
	}
	*ret = (struct sample_cpu){
		.cpu = cpu,
		.index = o->index,
		.sample_fd = TAKE_FD(sample_fd),
		.sideband_fd = TAKE_FD(sideband_fd),
		.event_fd = -EBADF,
		.uprobe = o->event.uprobe,
		.whole_cpu = o->whole_cpus,
	};
	return 0;
}

void sample_close_cpu(struct sample_cpu *c)
{
	c->event_fd = close_fd(c->event_fd);
	c->sample_fd = close_fd(c->sample_fd);
	c->sideband_fd = close_fd(c->sideband_fd);
}

int sample_fd_in_use(const struct sample_cpu *c)
{
	return c->event_fd >= 0 ? c->event_fd : c->sample_fd;
}

int sample_replace_event(const struct sample_options *o, const struct sample_features *f,
			 struct sample_cpu *c, bool enable)
{
	_cleanup_close_ int fd = open_sample_event(o, f, c->cpu, -1);
	int r = fd;

	if (r >= 0)
		r = share_ring(fd, c->sample_fd);
	if (r < 0)
		return r;
	/* Disable the old one first, so that no time is sampled twice. */
	(void)ioctl(sample_fd_in_use(c), PERF_EVENT_IOC_DISABLE, 0);
	if (enable && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0) {
		r = -errno;
		(void)ioctl(sample_fd_in_use(c), PERF_EVENT_IOC_ENABLE, 0);
		return r;
	}
	(void)close_fd(c->event_fd);
	c->event_fd = TAKE_FD(fd);
	c->granted = 0;
	return 0;
}

int sample_enable_cpu(const struct sample_cpu *c, bool enable)
{
	/* Enable the side band first and disable it last, so that it covers every sample. */
	const int fds[2] = {enable ? c->sideband_fd : sample_fd_in_use(c),
			    enable ? sample_fd_in_use(c) : c->sideband_fd};
	unsigned long request = enable ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;

	for (int i = 0; i < 2; i++) {
		if (fds[i] >= 0 && ioctl(fds[i], request, 0) < 0)
			return -errno;
	}
	return 0;
}

int sample_enable_sideband(const struct sample_cpu *c)
{
	int fd = c->sideband_fd;

	return fd >= 0 && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0 ? -errno : 0;
}

int sample_enable_whole_cpu(const struct sample_cpu *c)
{
	int fd = sample_fd_in_use(c);

	return c->whole_cpu && fd >= 0 && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0 ? -errno : 0;
}

int sample_grant_cpu(struct sample_cpu *c, uint64_t period, uint32_t n)
{
	int fd = sample_fd_in_use(c);
	struct {
		uint64_t value, enabled_ns, lost;
	} counts = {0};
	uint64_t taken;
	bool used_up;

	if (read(fd, &counts, sizeof(counts)) < 0)
		return -errno;
	taken = counts.value / period;
	used_up = c->granted > 0 && taken >= c->granted;
	if (taken + n <= c->granted)
		return sample_enable_cpu(c, true) < 0 ? -EIO : 0;
	if (ioctl(fd, PERF_EVENT_IOC_REFRESH, (unsigned long)(taken + n - c->granted)) < 0)
		return -errno;
	c->granted = taken + n;
	/*
	 * A tracepoint's event that used up its samples is enabled again by that, but goes on
	 * being stopped (seen on Linux 6.18): a new period, if the same, starts it.
	 */
	if (used_up)
		(void)ioctl(fd, PERF_EVENT_IOC_PERIOD, &period);
	return used_up;
}

int sample_enabled_ns(const struct sample_cpu *c, uint64_t *ret_ns)
{
	/* The kernel writes the fields of read_format, or nothing if they do not fit. */
	struct {
		uint64_t value, enabled_ns, lost;
	} counts;
	/* A side band of tasks counts while one of them runs. */
	ssize_t n =
		read(c->sideband_fd >= 0 && !c->whole_cpu ? c->sideband_fd : sample_fd_in_use(c),
		     &counts, sizeof(counts));

	if (n < 0)
		return -errno;
	if (n < (ssize_t)(2 * sizeof(uint64_t)))
		return -ENODATA; /* end of file: the event is in an error state */
	*ret_ns = counts.enabled_ns;
	return 0;
}

uint64_t sample_timer_ns(const struct sample_options *o, const struct sample_features *f)
{
	if (is_auto_cycles(o, f) || !sample_event_is_time(&o->event))
		return 0;
	return o->period ? o->period : o->rate_hz ? NSEC_PER_SEC / o->rate_hz : 0;
}

bool sample_may_set_timer(uint64_t timer_ns)
{
	return timer_ns >= SAMPLE_TIMER_PART * NSEC_PER_SEC / (uint64_t)max_rate();
}

int sample_set_timer(int fd, uint64_t period_ns)
{
	return ioctl(fd, PERF_EVENT_IOC_PERIOD, &period_ns) < 0 ? -errno : 0;
}

const char *sample_event_name(const struct sample_options *o, const struct sample_features *f)
{
	if (o->event.name[0])
		return o->event.name;
	return f->hardware ? "cycles" : "cpu-clock";
}

/* Before 3.14 PERF_FLAG_FD_CLOEXEC itself is invalid. */
static int open_on_ourselves(struct perf_event_attr *attr)
{
	int fd = event_open(attr, 0, -1, true);

	return fd == -EINVAL ? event_open(attr, 0, -1, false) : fd;
}

/* Opens the event without counting: a descriptor, or the kernel's -errno. */
static int open_to_try(const struct sample_event *e)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .disabled = 1};
	int fd;

	set_event(e, 0, &attr);
	fd = open_on_ourselves(&attr);

	/* A user who may not see the kernel may still count in user code. */
	if (fd == -EACCES || fd == -EPERM) {
		attr.exclude_kernel = 1;
		fd = open_on_ourselves(&attr);
	}
	return fd;
}

int sample_event_try(const struct sample_event *e)
{
	_cleanup_close_ int fd = open_to_try(e);

	return fd < 0 ? fd : 0;
}

int sample_filter_try(const struct sample_event *e, const char *filter, char *error, size_t n_error)
{
	_cleanup_close_ int fd = -EBADF;
	int r;

	if (e->type != PERF_TYPE_TRACEPOINT || e->uprobe) {
		snprintf(error, n_error, "only tracepoints have fields to filter by");
		return -EINVAL;
	}
	fd = open_to_try(e);
	if (fd < 0)
		return fd == -EINVAL ? -EIO : fd;
	r = set_filter(fd, filter);
	if (r == 0)
		return 0;
	event_explain_filter(r, e, filter, error, n_error);
	return -EINVAL;
}
