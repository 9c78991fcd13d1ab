/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/cmd/allocations.h"
#include "src/cmd/off-cpu-events.h"
#include "src/cmd/profile-types.h"
#include "src/cmd/uprobes.h"
#include "src/sample/sample.h"
#include "src/sample/uprobe.h"

#define MOUNT "mount -t tracefs none /sys/kernel/tracing"

/* What can be sampled at all. */
struct reachable {
	int host, own; /* 0 or -errno */
	char error[1024];
	bool kernel;  /* its code, too */
	bool library; /* the allocation library is there */
};

static void find_reachable(struct reachable *r)
{
	const struct sample_options o = {.rate_hz = 99,
					 .stack_bytes = 8192,
					 .regs_mask = sample_user_regs,
					 .kernel_stacks = true};
	struct sample_features features = {.kernel = false};
	char error[1024];

	r->host = sample_probe(&o, -1, &features, r->error, sizeof(r->error));
	r->own = r->host == 0 ? 0 : sample_probe(&o, getpid(), &features, error, sizeof(error));
	r->kernel = features.kernel;
	if (r->own < 0)
		(void)snprintf(r->error, sizeof(r->error), "%s", error);
}

static bool has_tracefs(void)
{
	return access("/sys/kernel/tracing/events", F_OK) == 0 ||
	       access("/sys/kernel/debug/tracing/events", F_OK) == 0;
}

static void set_reach(struct profile_reached *t, const struct reachable *r)
{
	t->reach = r->host == 0 ? REACH_HOST : r->own == 0 ? REACH_OWN : REACH_NONE;
	if (r->host < 0)
		(void)snprintf(t->why, sizeof(t->why), "%s", r->error);
}

static void find_off_cpu(struct profile_reached *t, const struct reachable *r)
{
	struct broker_event events[OFF_CPU_N_EVENTS];
	int e = off_cpu_events(events, false, t->why, sizeof(t->why));

	if (e == 0)
		e = sample_event_try(&events[0].event);
	if (r->host == 0 && e == 0) {
		t->why[0] = '\0';
		return;
	}
	if (r->host < 0)
		(void)snprintf(t->why, sizeof(t->why), "%s", r->error);
	else if (e != -ENOENT)
		(void)snprintf(t->why, sizeof(t->why), "%s", strerror(-e));
	t->reach = r->own == 0 && off_cpu_events(events, true, t->why, sizeof(t->why)) == 0
			   ? REACH_OWN
			   : REACH_NONE;
	if (t->reach == REACH_OWN && !r->kernel)
		t->options = "--off-cpu, --wall (stacks of long waits)";
}

/* They are found at the ends of off-CPU time. */
static void find_locks(struct profile_reached *t, const struct profile_reached *off_cpu,
		       const struct reachable *r)
{
	struct broker_event event;
	int e;

	if (off_cpu->reach == REACH_NONE) {
		t->reach = REACH_NONE;
		memcpy(t->why, off_cpu->why, sizeof(t->why));
		return;
	}
	e = off_cpu_wakeups(&event, false, t->why, sizeof(t->why));
	if (e == 0 && (e = sample_event_try(&event.event)) < 0)
		(void)snprintf(t->why, sizeof(t->why), "%s", strerror(-e));
	t->reach = r->host == 0 && e == 0 ? REACH_HOST : REACH_NONE;
	if (t->reach == REACH_HOST)
		t->why[0] = '\0';
}

static void find_memory_growth(struct profile_reached *t, const struct reachable *r)
{
	struct sample_event event;
	int e = sample_event_parse("memory_growth", &event, t->why, sizeof(t->why));

	if (e == 0 && (e = sample_event_try(&event)) < 0)
		(void)snprintf(t->why, sizeof(t->why), "%s", strerror(-e));
	if (e == 0)
		set_reach(t, r);
	else
		t->reach = REACH_NONE;
}

static void find_allocations(struct profile_reached *t, struct reachable *r)
{
	struct broker_event events[ALLOCATIONS_N_EVENTS];
	int e = allocations_events(events, t->why, sizeof(t->why));

	r->library = e == 0;
	if (e == 0)
		e = uprobes_place(&events[0].event, 0, t->why, sizeof(t->why));
	if (e == 0 && (e = sample_event_try(&events[0].event)) < 0)
		uprobe_explain(events[0].event.uprobe, e, t->why, sizeof(t->why));
	t->reach = e < 0			     ? REACH_NONE
		   : events[0].event.uprobe->by_path ? REACH_HOST_ALONE
						     : REACH_HOST;
	if (t->reach == REACH_HOST_ALONE)
		(void)snprintf(t->why, sizeof(t->why), "%s", uprobe_tracefs_remedy());
}

/* Root lacks tracefs as a rule, others root; neither helps where there are no perf events. */
static const char *find_mend(const struct reachable *r, const struct profile_reached *t,
			     const char *as_root)
{
	if (t->reach == REACH_HOST || r->host == -ENOSYS)
		return NULL;
	if (geteuid() != 0)
		return as_root;
	return r->host < 0 || has_tracefs() || tracefs_is_locked_down() ? NULL : MOUNT;
}

static void find_others(struct profile_reached *types, struct reachable *r)
{
	find_off_cpu(&types[1], r);
	find_locks(&types[2], &types[1], r);
	find_memory_growth(&types[3], r);
	find_allocations(&types[4], r);
}

void profile_types_find(struct profile_reached ret[PROFILE_TYPES_N])
{
	static const struct {
		const char *name, *options, *as_root;
	} types[PROFILE_TYPES_N] = {
		{"CPU time", "", "sudo perfwalk record -a"},
		{"off-CPU time", "--off-cpu, --wall", "sudo perfwalk record --off-cpu -a"},
		{"locks", "--locks", "sudo perfwalk record --locks -a"},
		{"memory growth", "--memory", "sudo perfwalk record --memory -a"},
		{"allocations", "--alloc", "sudo perfwalk record --alloc -- COMMAND"},
	};
	struct reachable r = {.kernel = false};

	find_reachable(&r);
	for (int i = 0; i < PROFILE_TYPES_N; i++)
		ret[i] = (struct profile_reached){.name = types[i].name,
						  .options = types[i].options};
	set_reach(&ret[0], &r);
	(void)snprintf(r.error, sizeof(r.error), "as for CPU time");
	if (r.host != -ENOSYS)
		find_others(ret, &r);
	else
		for (int i = 1; i < PROFILE_TYPES_N; i++)
			set_reach(&ret[i], &r);
	for (int i = 0; i < PROFILE_TYPES_N; i++)
		ret[i].mend = find_mend(&r, &ret[i], types[i].as_root);
	if (!r.library)
		ret[4].mend = NULL;
}

const char *profile_reach_text(enum profile_reach reach)
{
	static const char *const texts[] = {[REACH_HOST] = "the whole host",
					    [REACH_HOST_ALONE] = "the whole host, not of commands",
					    [REACH_OWN] = "own processes and commands",
					    [REACH_NONE] = "not here"};

	return texts[reach];
}
