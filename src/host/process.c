/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes. The index has at most one process for a pid; an older one with a reused pid is not in
 * the index and waits for the collection.
 *
 * Every fork record makes an entry, whether the parent is known or not: a process that lives for
 * milliseconds is gone when its samples are read, and then its fork, exec and mmap records are all
 * we have. Facts from /proc are read once, at a sample, and only those that no record gave.
 *
 * Lost records are not repaired at once: host_on_lost() only increments a counter. When a process
 * with an older number is sampled next, its identity (start time), its program and its mappings are
 * checked.
 */
#include <string.h>

#include "src/host/internal.h"
#include "util/clock.h"
#include "util/text.h"

#define SWEEP_PER_WINDOW 64
#define LAST_SAMPLES_NS	 NSEC_PER_SEC /* of a process that has exited and frees its memory */

struct process *process_find(struct host *h, uint32_t pid)
{
	uint64_t hash = hash_u64(pid);
	uint32_t slot = hash_index_first(&h->process_index, hash), row;

	for (; (row = hash_index_row(&h->process_index, slot)) != HASH_INDEX_NONE;
	     slot = hash_index_next(&h->process_index, slot)) {
		struct process *p = h->processes.items.items[row];

		if (p->pub.pid == pid)
			return p;
	}
	return NULL;
}

/*
 * Makes room in a full table: frees the process that exited first, if its last samples have come
 * and nobody has looked it up, so that nothing of a window rests on it. A storm of forks has many
 * thousands of these in a window.
 */
static bool free_forgotten(struct host *h)
{
	struct process *p;

	while ((p = h->exited) && p->exit_ns + LAST_SAMPLES_NS <= h->time_ns) {
		h->exited = p->next_exited;
		p->in_exited_list = false;
		if (p->pub.exited && !p->looked_up) {
			process_free(h, p);
			return true;
		}
		if (p->pub.exited) {
			p->in_exited_list = true;
			p->next_exited = h->exited_kept;
			h->exited_kept = p;
		}
	}
	return false;
}

static struct process *process_new(struct host *h, uint32_t pid)
{
	struct process *p;

	if (h->processes.n_used >= h->limits.max_processes && !free_forgotten(h))
		goto refused;
	p = calloc(1, sizeof(*p));
	if (!p)
		goto refused;
	p->row = host_rows_add(&h->processes, p);
	if (p->row == UINT32_MAX) {
		free(p);
		goto refused;
	}
	if (hash_index_add(&h->process_index, hash_u64(pid), p->row) < 0) {
		host_rows_remove(&h->processes, p->row);
		free(p);
		goto refused;
	}
	p->pub.pid = pid;
	p->pub.perf_map_fd = p->pub.jitdump_fd = -1;
	p->generation = h->generation;
	p->last_hit = UINT32_MAX;
	h->stats.processes = h->processes.n_used;
	return p;
refused:
	h->stats.refused_processes++;
	return NULL;
}

struct process *process_of_record(struct host *h, uint32_t pid)
{
	struct process *p = process_find(h, pid);

	if (p || !h->limits.recorded || !pid || pid == UINT32_MAX)
		return p;
	p = process_new(h, pid);
	if (p)
		p->exe_pending = p->pub.mappings_known = p->info_known = true;
	return p;
}

void process_free(struct host *h, struct process *p)
{
	(void)hash_index_remove(&h->process_index, hash_u64(p->pub.pid), p->row);
	if (h->limits.free_process_user && p->pub.user)
		h->limits.free_process_user(h->limits.ctx, &p->pub);
	cgroup_set(p, NULL);
	cgroup_set_own(p, NULL);
	mapset_unref(h, p->set);
	host_rows_remove(&h->processes, p->row);
	h->stats.processes = h->processes.n_used;
	process_close_code(p);
	free(p->pub.executable_path);
	free(p);
}

void process_close_code(struct process *p)
{
	if (p->pub.perf_map_fd >= 0)
		(void)close_fd(p->pub.perf_map_fd);
	if (p->pub.jitdump_fd >= 0)
		(void)close_fd(p->pub.jitdump_fd);
	p->pub.perf_map_fd = p->pub.jitdump_fd = -1;
}

void process_mark_exited(struct host *h, struct process *p, uint64_t time_ns)
{
	p->pub.exited = true;
	p->exit_ns = time_ns;
	p->exit_window = h->window;
	if (p->in_exited_list)
		return;
	p->in_exited_list = true;
	p->next_exited = NULL;
	*(h->exited ? &h->exited_last->next_exited : &h->exited) = p;
	h->exited_last = p;
}

/*
 * Removes the process from the index for a new one with its pid; a later host_collect() frees it.
 */
static void retire(struct host *h, struct process *p)
{
	(void)hash_index_remove(&h->process_index, hash_u64(p->pub.pid), p->row);
	process_mark_exited(h, p, h->time_ns);
}

void process_set_maps(struct process *p, struct mapset *set)
{
	p->set = set;
	p->pub.mappings = set ? set->maps.items : NULL;
	p->pub.n_mappings = set ? set->maps.n : 0;
}

/* ---- Records ---- */

static void inherit(struct host *h, struct process *p, const struct process *parent)
{
	process_set_maps(p, mapset_ref(parent->set));
	p->next_whole_ns = parent->next_whole_ns;
	memcpy(p->pub.comm, parent->pub.comm, sizeof(p->pub.comm));
	p->pub.n_names++;
	if (parent->pub.executable_path)
		info_set_exe(p, parent->pub.executable_path);
	p->pub.is_kernel = parent->pub.is_kernel;
	p->pub.mappings_known = parent->pub.mappings_known;
	p->doubtful = parent->doubtful || parent->generation != h->generation;
	/* Without a clock to derive its start time from, ask /proc. */
	p->info_known = parent->info_known && (h->source.now || h->limits.recorded);
	/*
	 * A child that a runtime moves is moved before it runs its program; its exec reads the file
	 * again.
	 */
	cgroup_set_own(p, parent->pub.cgroup);
	p->cgroup_read = parent->cgroup_read;
	p->cgroup_window = h->window;
}

void host_on_fork(struct host *h, uint32_t pid, uint32_t tid, uint32_t parent_pid,
		  uint32_t parent_tid, uint64_t time_ns)
{
	struct process *p = process_find(h, pid), *parent;

	host_see_time(h, time_ns);
	if (pid == parent_pid) {
		if (p)
			thread_on_fork(h, p, tid, parent_tid);
		return;
	}
	if (!pid || pid == UINT32_MAX)
		return;
	if (p)
		retire(h, p);
	p = process_new(h, pid);
	if (!p)
		return;
	p->pub.parent_pid = parent_pid;
	p->is_target = true;
	parent = process_find(h, parent_pid);
	if (parent)
		inherit(h, p, parent);
	info_set_start(h, p, info_start_from_record(h, time_ns), false);
}

void host_on_exit(struct host *h, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	struct process *p = process_find(h, pid);

	host_see_time(h, time_ns);
	if (pid != tid)
		thread_on_exit(h, tid);
	if (!p)
		return;
	p->leader_exited |= pid == tid;
	/* The main thread may exit before the others; see revive(). */
	if (p->leader_exited)
		process_mark_exited(h, p, time_ns);
}

/* The address space is new: drop all about the old one. */
static void on_exec(struct host *h, struct process *p, uint64_t time_ns)
{
	/* A thread that calls exec ends the main thread and takes its tid. */
	p->pub.exited = p->leader_exited = false;
	p->is_target = true;
	p->pub.n_execs++;
	p->pub.is_kernel = false;
	p->info_known |= p->pub.start_time_ns != 0;
	p->cgroup_read = false;
	if (p->maps_time_ns && time_ns <= p->maps_time_ns)
		return; /* maps were read later and show the new program */
	mapset_unref(h, p->set);
	process_set_maps(p, NULL);
	p->pub.mappings_known = true;
	p->doubtful = false;
	p->generation = h->generation;
	p->read_delay_ns = p->next_read_ns = p->next_whole_ns = 0;
	p->exe_pending = true;
	info_set_exe(p, NULL);
	process_close_code(p);
}

void host_on_comm(struct host *h, uint32_t pid, uint32_t tid, const char *comm, bool exec,
		  uint64_t time_ns)
{
	struct process *p = process_of_record(h, pid);

	host_see_time(h, time_ns);
	if (!pid || pid == UINT32_MAX)
		return;
	if (!p && exec)
		p = process_new(h, pid);
	if (!p)
		return;
	if (exec)
		on_exec(h, p, time_ns);
	else if (tid == pid && h->limits.exec_unmarked)
		p->doubtful = true;
	/* exec ends all other threads and gives its caller the main thread's tid. */
	if (tid != pid && !exec) {
		thread_set_comm(h, pid, tid, comm);
		return;
	}
	(void)text_clean(p->pub.comm, sizeof(p->pub.comm), comm, strlen(comm));
	p->pub.n_names++;
}

/* ---- Look-up ---- */

/* Was the exit of this task recorded? */
static bool task_exited(struct host *h, const struct process *p, uint32_t tid)
{
	return tid == p->pub.pid ? p->leader_exited : thread_exited(h, p->pub.pid, tid);
}

/*
 * A sample after an exit. If it is of another thread: threads go on without the main one. If it is
 * of the task itself: the kernel records the exit before it frees the memory (since about Linux
 * 6.16), and these are the last samples. If we could not store the exit of a thread, it counts as
 * alive, so the collection checks processes without a main thread, too.
 */
static void revive(struct host *h, struct process *p, uint32_t tid, uint64_t time_ns)
{
	if (!p->pub.exited || time_ns <= p->exit_ns)
		return;
	if (task_exited(h, p, tid))
		p->exit_window = h->window;
	else
		p->pub.exited = false;
}

/* Records were lost: is this still the same process? NULL: no, and it has been retired. */
static struct process *recheck(struct host *h, struct process *p)
{
	if (p->generation == h->generation || p->pub.exited)
		return p;
	if (!info_may_ask(h))
		return p;
	p->generation = h->generation;
	p->doubtful = true;
	p->next_read_ns = p->read_delay_ns = 0;
	/* Gone: keep what we know. */
	if (info_check_again(h, p) != INFO_OTHER)
		return p;
	retire(h, p);
	return NULL;
}

/*
 * A process with an unknown parent that exited before we could read /proc: it ran its parent's
 * program, and the parent is likely still there.
 */
static void adopt(struct host *h, struct process *p, uint64_t time_ns)
{
	struct process *parent = process_find(h, p->pub.parent_pid);

	if (!p->pub.parent_pid || p->set)
		return;
	if (!parent)
		parent = process_new(h, p->pub.parent_pid);
	if (!parent)
		return;
	if (!parent->info_known)
		info_fill(h, parent, time_ns);
	if (!parent->pub.comm[0])
		return;
	if (!parent->pub.mappings_known)
		(void)mapping_refresh(h, parent);
	inherit(h, p, parent);
}

struct host_process *host_process_get(struct host *h, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	struct process *p;

	if (!pid || pid == UINT32_MAX)
		return NULL;
	host_see_time(h, time_ns);
	p = process_find(h, pid);
	if (p)
		p = recheck(h, p);
	if (!p)
		p = process_new(h, pid);
	if (!p)
		return NULL;
	p->looked_up = true;
	revive(h, p, tid, time_ns);
	if (!p->info_known) {
		info_fill(h, p, time_ns);
		if (!p->pub.comm[0])
			adopt(h, p, time_ns);
	}
	return &p->pub;
}

struct host_process *host_process_peek(struct host *h, uint32_t pid)
{
	struct process *p = process_find(h, pid);

	return p ? &p->pub : NULL;
}

/* A process that ended some time ago is not sampled: another one has its number by now. */
bool host_is_target(struct host *h, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	const struct process *p = process_find(h, pid);

	return p && p->is_target &&
	       (!p->pub.exited || !task_exited(h, p, tid) ||
		time_ns <= p->exit_ns + LAST_SAMPLES_NS);
}

void host_add_target(struct host *h, uint32_t pid)
{
	struct process *p = process_find(h, pid);

	p = p ? p : process_new(h, pid);
	if (p)
		p->is_target = true;
}

/* ---- Collection ---- */

static void free_exited(struct host *h, struct process **link)
{
	while (*link) {
		struct process *p = *link;

		if (p->pub.exited && p->exit_window >= h->window) {
			h->exited_last = p;
			link = &p->next_exited;
			continue;
		}
		*link = p->next_exited;
		p->in_exited_list = false;
		if (p->pub.exited)
			process_free(h, p);
	}
}

/* A process with a lost exit record would stay forever, so some are checked each time. */
static bool is_doubtful(const struct host *h, const struct process *p)
{
	return !p->pub.exited && (p->leader_exited || p->generation != h->generation);
}

static void sweep_doubtful(struct host *h)
{
	uint32_t n_rows = h->processes.items.n, asked = 0;

	for (uint32_t i = 0; i < n_rows && asked < SWEEP_PER_WINDOW; i++) {
		struct process *p = h->processes.items.items[h->sweep_row++ % n_rows];

		if (!p || !is_doubtful(h, p))
			continue;
		asked++;
		p->doubtful |= p->generation != h->generation;
		p->generation = h->generation;
		switch (info_check_again(h, p)) {
		case INFO_SAME:
			break;
		case INFO_GONE:
			/* Its last samples may still arrive. */
			process_mark_exited(h, p, h->time_ns);
			break;
		case INFO_OTHER:
			retire(h, p);
			break;
		}
	}
}

void process_collect(struct host *h)
{
	free_exited(h, &h->exited_kept);
	free_exited(h, &h->exited);
	if (h->source.process_info)
		sweep_doubtful(h);
}
