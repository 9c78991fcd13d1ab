/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of threads other than main threads (which have the name of the process). A thread's fork or
 * name record, or its first sample, makes an entry; it is freed one window after the exit record.
 * If the exit was lost, the pid in the entry shows that the tid was reused.
 */
#include <limits.h>
#include <string.h>

#include "src/host/internal.h"
#include "util/text.h"

static uint32_t thread_find(struct host *h, uint32_t tid)
{
	uint64_t hash = hash_u64(tid);
	uint32_t slot = hash_index_first(&h->thread_index, hash), row;

	for (; (row = hash_index_row(&h->thread_index, slot)) != HASH_INDEX_NONE;
	     slot = hash_index_next(&h->thread_index, slot)) {
		if (h->threads.items[row].tid == tid)
			return row;
	}
	return UINT32_MAX;
}

static void thread_drop(struct host *h, uint32_t row)
{
	struct thread *t = &h->threads.items[row];

	(void)hash_index_remove(&h->thread_index, hash_u64(t->tid), row);
	*t = (struct thread){.next_free = h->free_thread};
	h->free_thread = row;
	h->stats.threads--;
}

/*
 * The entry of that thread; an entry of an older thread with its tid is cleared. NULL: table full.
 */
static struct thread *thread_get(struct host *h, uint32_t pid, uint32_t tid)
{
	uint32_t row = thread_find(h, tid);
	struct thread *t;

	if (row == UINT32_MAX) {
		row = h->free_thread;
		if (row != UINT32_MAX) {
			h->free_thread = h->threads.items[row].next_free;
		} else {
			if (!array_push(&h->threads))
				goto refused;
			row = h->threads.n - 1;
		}
		if (hash_index_add(&h->thread_index, hash_u64(tid), row) < 0) {
			h->threads.items[row].next_free = h->free_thread;
			h->free_thread = row;
			goto refused;
		}
		h->stats.threads++;
		h->threads.items[row] = (struct thread){.tid = tid, .pid = pid, .used = true};
	}
	t = &h->threads.items[row];
	if (t->pid != pid)
		*t = (struct thread){.tid = tid, .pid = pid, .used = true};
	return t;
refused:
	h->stats.refused_threads++;
	return NULL;
}

void thread_set_comm(struct host *h, uint32_t pid, uint32_t tid, const char *comm)
{
	struct thread *t = thread_get(h, pid, tid);

	if (t)
		(void)text_clean(t->comm, sizeof(t->comm), comm, strlen(comm));
}

void thread_on_fork(struct host *h, struct process *p, uint32_t tid, uint32_t parent_tid)
{
	uint32_t row = parent_tid == p->pub.pid ? UINT32_MAX : thread_find(h, parent_tid);
	char comm[17];
	struct thread *t;

	/* A thread starts with the name of its creator. Unknown: we ask for it later. */
	memcpy(comm, p->pub.comm, sizeof(comm));
	if (row != UINT32_MAX && h->threads.items[row].pid == p->pub.pid)
		memcpy(comm, h->threads.items[row].comm, sizeof(comm));
	else if (parent_tid != p->pub.pid)
		return;
	t = thread_get(h, p->pub.pid, tid);
	if (!t)
		return;
	/* A new thread with this tid: forget the old one. */
	t->dead = false;
	memcpy(t->comm, comm, sizeof(comm));
}

void thread_on_exit(struct host *h, uint32_t tid)
{
	uint32_t row = thread_find(h, tid), *dead;
	struct thread *t;

	if (row == UINT32_MAX)
		return;
	t = &h->threads.items[row];
	t->dead_window = h->window;
	if (t->dead)
		return;
	dead = array_push(&h->dead_threads);
	if (!dead) {
		thread_drop(h, row);
		return;
	}
	*dead = tid;
	t->dead = true;
}

bool thread_exited(struct host *h, uint32_t pid, uint32_t tid)
{
	uint32_t row = thread_find(h, tid);

	return row != UINT32_MAX && h->threads.items[row].pid == pid && h->threads.items[row].dead;
}

/* A thread that started before us: ask for its name once. */
static void learn_comm(struct host *h, const struct process *p, uint32_t tid)
{
	uint64_t start_ns = 0;
	uint32_t parent = 0;
	bool is_kernel = false;
	char comm[17] = "", exe[PATH_MAX] = "";

	if (!h->source.process_info || p->pub.exited || !info_may_ask(h))
		return;
	h->stats.infos++;
	if (h->source.process_info(h->source.ctx, tid, &start_ns, &parent, comm, exe, sizeof(exe),
				   &is_kernel) < 0)
		comm[0] = '\0';
	comm[sizeof(comm) - 1] = '\0';
	thread_set_comm(h, p->pub.pid, tid, comm);
}

const char *host_thread_name(struct host *h, struct host_process *p, uint32_t tid)
{
	uint32_t row;

	if (tid == p->pid || !tid || tid == UINT32_MAX)
		return p->comm;
	row = thread_find(h, tid);
	if (row == UINT32_MAX || h->threads.items[row].pid != p->pid) {
		learn_comm(h, (struct process *)p, tid);
		row = thread_find(h, tid);
	}
	if (row == UINT32_MAX || h->threads.items[row].pid != p->pid ||
	    !h->threads.items[row].comm[0])
		return p->comm;
	return h->threads.items[row].comm;
}

/* Lost exit records leave entries without a process: frees these when the table is nearly full. */
static void sweep_orphans(struct host *h)
{
	for (uint32_t row = 0; row < h->threads.n; row++) {
		struct thread *t = &h->threads.items[row];

		if (t->used && !t->dead && !process_find(h, t->pid))
			thread_drop(h, row);
	}
}

void thread_collect(struct host *h)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < h->dead_threads.n; i++) {
		uint32_t tid = h->dead_threads.items[i], row = thread_find(h, tid);

		if (row == UINT32_MAX || !h->threads.items[row].dead)
			continue;
		if (h->threads.items[row].dead_window >= h->window)
			h->dead_threads.items[kept++] = tid;
		else
			thread_drop(h, row);
	}
	h->dead_threads.n = kept;
	if (h->stats.threads > h->limits.max_threads / 4 * 3)
		sweep_orphans(h);
}
