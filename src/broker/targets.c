/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what the config includes to what the kernel is asked for: CPUs that have events at all, and
 * control groups whose tasks alone are sampled (PERF_FLAG_PID_CGROUP), which costs the rest of the
 * host nothing.
 *
 * The kernel's way fits a capture of groups that are there at its start. All else, and all of the
 * daemon, whose groups come and go, is picked out sample by sample (filter.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/broker/internal.h"
#include "src/broker/tasks.h"
#include "src/process/filter-rule.h"
#include "util/log.h"
#include "util/text.h"

#define MAX_PATH    4096
#define MAX_TARGETS 1024 /* each is a message */

struct cpus {
	bool *set;
	bool value;
};

static int set_cpus(void *ctx, const char *item, size_t n)
{
	const struct cpus *c = ctx;
	_cleanup_free_ bool *named = calloc(EVENTS_MAX_CPUS, sizeof(*named));
	char text[64];
	int r;

	if (!named)
		return -ENOMEM;
	(void)snprintf(text, sizeof(text), "%.*s", (int)n, item);
	r = text_parse_ranges(text, named, EVENTS_MAX_CPUS);
	for (int i = 0; i < EVENTS_MAX_CPUS && r == 0; i++) {
		if (named[i])
			c->set[i] = c->value;
	}
	return r;
}

static int find_cpus(struct broker *b)
{
	const struct config *config = b->options.config;
	const char *include = config->include[CONFIG_FILTER_CPUS];
	const char *exclude = config->exclude[CONFIG_FILTER_CPUS];
	struct cpus c = {.value = true};
	int r;

	free(b->cpus);
	b->cpus = NULL;
	if (!include && !exclude)
		return 0;
	c.set = b->cpus = calloc(EVENTS_MAX_CPUS, sizeof(*c.set));
	if (!c.set)
		return -ENOMEM;
	if (!include)
		memset(c.set, true, EVENTS_MAX_CPUS * sizeof(*c.set));
	r = config_list_each(include, set_cpus, &c);
	c.value = false;
	return r < 0 ? r : config_list_each(exclude, set_cpus, &c);
}

/* ---- Control groups ---- */

struct groups {
	char **paths; /* as the kernel names them, none inside another */
	size_t n;
};

/* A group inside of another would have its samples twice. */
static int add_group(void *ctx, const char *item, size_t n)
{
	struct groups *g = ctx;
	char text[MAX_PATH], path[MAX_PATH];

	(void)snprintf(text, sizeof(text), "%.*s", (int)n, item);
	filter_cgroup_path(text, path, sizeof(path));
	for (size_t i = g->n; i-- > 0;) {
		if (filter_cgroup_lies_in(path, g->paths[i]))
			return 0;
		if (!filter_cgroup_lies_in(g->paths[i], path))
			continue;
		free(g->paths[i]);
		g->paths[i] = g->paths[--g->n];
	}
	if (g->n == BROKER_MAX_CGROUPS)
		return -E2BIG;
	g->paths[g->n] = strdup(path);
	return g->paths[g->n++] ? 0 : -ENOMEM;
}

/* The hierarchy that perf counts by: version 1's own, if it is mounted, else version 2's. */
static int open_group(const char *path)
{
	static const char *const mounts[] = {"/sys/fs/cgroup/perf_event", "/sys/fs/cgroup/unified",
					     "/sys/fs/cgroup"};

	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++) {
		char text[MAX_PATH + 64];

		(void)snprintf(text, sizeof(text), "%s/cgroup.procs", mounts[i]);
		if (access(text, F_OK) < 0)
			continue;
		(void)snprintf(text, sizeof(text), "%s%s", mounts[i], path);
		return open(text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	return -1;
}

static bool exists_somewhere(const char *path)
{
	static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/*"};

	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++) {
		char pattern[MAX_PATH + 64];
		glob_t found;
		int r;

		(void)snprintf(pattern, sizeof(pattern), "%s%s/cgroup.procs", mounts[i], path);
		r = glob(pattern, GLOB_NOSORT, NULL, &found);
		globfree(&found);
		if (r == 0)
			return true;
	}
	return false;
}

static void close_groups(struct broker *b)
{
	while (b->n_cgroups > 0)
		(void)close_fd(b->cgroup_fds[--b->n_cgroups]);
}

static int open_groups(struct broker *b, const struct groups *g)
{
	for (size_t i = 0; i < g->n; i++) {
		int fd;

		if (!exists_somewhere(g->paths[i])) {
			log_error("no control group %s below /sys/fs/cgroup: %s", g->paths[i],
				  exists_somewhere("")
					  ? "systemd-cgls lists them"
					  : "none is mounted there (mount -t cgroup2 none "
					    "/sys/fs/cgroup)");
			return -ESRCH;
		}
		fd = open_group(g->paths[i]);
		if (fd < 0) {
			close_groups(b);
			log_info("perf cannot count by the hierarchy of %s: its samples are "
				 "selected from the whole host's",
				 g->paths[i]);
			return 0;
		}
		b->cgroup_fds[b->n_cgroups++] = fd;
	}
	return 0;
}

static int find_groups(struct broker *b)
{
	const struct config *c = b->options.config;
	char *paths[BROKER_MAX_CGROUPS];
	struct groups g = {paths, 0};
	int r;

	close_groups(b);
	if (!b->options.capture || !c->include[CONFIG_FILTER_CGROUP])
		return 0;
	r = config_list_each(c->include[CONFIG_FILTER_CGROUP], add_group, &g);
	if (r == -E2BIG)
		log_error("--cgroup names more than %d control groups: name one that contains them",
			  BROKER_MAX_CGROUPS);
	/* perf cannot select tasks and groups together. */
	if (r == 0 && b->options.n_pids == 0)
		r = open_groups(b, &g);
	while (g.n > 0)
		free(paths[--g.n]);
	return r;
}

int broker_find_targets(struct broker *b, struct events_targets *ret)
{
	int r = find_cpus(b);

	if (r == 0)
		r = find_groups(b);
	*ret = (struct events_targets){
		.pids = b->options.pids,
		.n_pids = b->options.n_pids,
		.threads = b->options.threads,
		.cpus = b->cpus,
		.cgroup_fds = b->cgroup_fds,
		.n_cgroups = b->n_cgroups,
	};
	return r;
}

/* The side band tells what they fork. A command is known by its exec. */
void broker_tell_targets(struct broker *b, bool all)
{
	const struct broker_options *o = &b->options;
	_cleanup_free_ pid_t *found = all ? calloc(MAX_TARGETS, sizeof(*found)) : NULL;
	struct message m = {.type = MESSAGE_TARGET};
	const pid_t *pids = found ? found : o->pids;
	size_t n = o->n_pids;

	if (o->n_pids == 0 || o->threads || (o->enable_on_exec && !found))
		return;
	if (found)
		n = tasks_list_processes(o->pids, o->n_pids, found, MAX_TARGETS);
	for (size_t i = 0; i < n; i++) {
		m.client.pid = (uint32_t)pids[i];
		(void)supervisor_send(b->supervisor, peer_only(PEER_PROFILER), &m, NULL, 0);
	}
}

void broker_forget_targets(struct broker *b)
{
	close_groups(b);
	free(b->cpus);
	b->cpus = NULL;
}
