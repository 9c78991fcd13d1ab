/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about a process from /proc, and its identity: the kernel reuses pids, so the pid with the
 * start time is the process. /proc is about now, records are about an earlier moment; the start
 * time says whether both mean the same process.
 */
#include <limits.h>
#include <string.h>

#include "src/host/internal.h"
#include "util/clock.h"
#include "util/text.h"

#define INFOS_PER_SECOND   512
#define START_TICK_NS	   (10 * NSEC_PER_MSEC) /* /proc rounds start times to this */
#define START_TOLERANCE_NS (50 * NSEC_PER_MSEC) /* of a start time from a fork record */
#define CLOCK_TOLERANCE_NS (100 * NSEC_PER_MSEC)

uint64_t info_start_from_record(struct host *h, uint64_t time_ns)
{
	uint64_t boot, monotonic;

	if (!h->source.now)
		return 0;
	monotonic = clock_monotonic_ns();
	boot = clock_get_ns(CLOCK_BOOTTIME);
	time_ns += boot > monotonic ? boot - monotonic : 0;
	return time_ns - time_ns % START_TICK_NS;
}

/*
 * When the host booted, in Unix time. Two clocks cannot be read at the same moment, and one of them
 * is adjusted. So this changes only if the difference matters, and a process has the same start
 * each time it is computed.
 */
static uint64_t boot_unix_ns(struct host *h)
{
	uint64_t real = clock_realtime_ns(), boot = clock_get_ns(CLOCK_BOOTTIME);
	uint64_t now = real > boot ? real - boot : 0;
	uint64_t change = now > h->boot_unix_ns ? now - h->boot_unix_ns : h->boot_unix_ns - now;

	if (change > CLOCK_TOLERANCE_NS)
		h->boot_unix_ns = now;
	return h->boot_unix_ns;
}

void info_set_start(struct host *h, struct process *p, uint64_t start_ns, bool exact)
{
	bool is_past = start_ns && start_ns <= clock_get_ns(CLOCK_BOOTTIME);

	p->pub.start_time_ns = start_ns;
	p->start_is_exact = exact;
	p->pub.start_unix_ns = is_past ? boot_unix_ns(h) + start_ns : 0;
}

static bool same_start(const struct process *p, uint64_t start_ns)
{
	uint64_t known = p->pub.start_time_ns;
	uint64_t difference = known > start_ns ? known - start_ns : start_ns - known;

	if (!known || !start_ns)
		return true;
	return difference <= (p->start_is_exact ? 0 : START_TOLERANCE_NS);
}

bool info_may_ask(struct host *h)
{
	return host_budget_take(h, &h->info_budget, INFOS_PER_SECOND);
}

struct info {
	uint64_t start_ns;
	uint32_t parent;
	char comm[17];
	char exe[PATH_MAX];
	bool is_kernel;
};

static bool ask_info(struct host *h, uint32_t pid, struct info *ret)
{
	memset(ret, 0, offsetof(struct info, exe) + 1);
	ret->is_kernel = false;
	if (!h->source.process_info)
		return false;
	h->stats.infos++;
	if (h->source.process_info(h->source.ctx, pid, &ret->start_ns, &ret->parent, ret->comm,
				   ret->exe, sizeof(ret->exe), &ret->is_kernel) < 0)
		return false;
	ret->comm[sizeof(ret->comm) - 1] = '\0';
	ret->exe[sizeof(ret->exe) - 1] = '\0';
	return true;
}

void info_set_exe(struct process *p, const char *path)
{
	char *copy = path ? strndup(path, PATH_MAX) : NULL;

	free(p->pub.executable_path);
	p->pub.executable_path = copy;
	p->pub.n_names++;
}

/*
 * Reads /proc at first sight of a process. If the process in /proc started after the sample, it
 * only has the same pid as the sampled one, which then gets no name.
 */
void info_fill(struct host *h, struct process *p, uint64_t time_ns)
{
	struct info info;

	if (!info_may_ask(h))
		return;
	p->info_known = true;
	if (!ask_info(h, p->pub.pid, &info))
		return;
	if (h->source.now &&
	    info.start_ns > info_start_from_record(h, time_ns) + START_TOLERANCE_NS) {
		h->stats.reused_pids++;
		process_mark_exited(h, p, time_ns);
		/* A later sample of this pid may be of the process that is there now. */
		p->info_known = false;
		return;
	}
	info_set_start(h, p, info.start_ns, true);
	p->pub.parent_pid = info.parent;
	p->pub.is_kernel = info.is_kernel;
	p->pub.mappings_known |= info.is_kernel;
	(void)text_clean(p->pub.comm, sizeof(p->pub.comm), info.comm, sizeof(info.comm));
	p->pub.n_names++;
	if (info.exe[0])
		info_set_exe(p, info.exe);
}

/* An exec was among the lost records: the same process runs another program. */
static void notice_exec(struct process *p, const struct info *info)
{
	const char *known = p->pub.executable_path;

	(void)text_clean(p->pub.comm, sizeof(p->pub.comm), info->comm, sizeof(info->comm));
	p->pub.n_names++;
	if (!info->exe[0] || (known && strcmp(known, info->exe) == 0))
		return;
	info_set_exe(p, info->exe);
	p->pub.n_execs++;
	process_close_code(p);
}

static enum info_identity identity_of(struct host *h, const struct process *p,
				      const struct info *info)
{
	if (same_start(p, info->start_ns))
		return INFO_SAME;
	h->stats.reused_pids++;
	return INFO_OTHER;
}

enum info_identity info_check_identity(struct host *h, const struct process *p)
{
	struct info info;

	return ask_info(h, p->pub.pid, &info) ? identity_of(h, p, &info) : INFO_GONE;
}

enum info_identity info_check_again(struct host *h, struct process *p)
{
	enum info_identity r;
	struct info info;

	if (!ask_info(h, p->pub.pid, &info))
		return INFO_GONE;
	r = identity_of(h, p, &info);
	if (r == INFO_SAME)
		notice_exec(p, &info);
	return r;
}

/* Its memory goes first, and its program with it. */
bool info_is_ending(struct host *h, const struct process *p)
{
	struct info info;

	return !info_may_ask(h) || !ask_info(h, p->pub.pid, &info) ||
	       (!info.exe[0] && !info.is_kernel);
}
