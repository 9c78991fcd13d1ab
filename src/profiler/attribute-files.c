/* SPDX-License-Identifier: Apache-2.0 */
/* The files that the symbolizer needs for a window, as the hand-over sees them. */
#include <stdlib.h>
#include <string.h>

#include "src/profiler/attribute-internal.h"
#include "symbolize/symbolize.h"
#include "util/clock.h"
#include "util/file-identity.h"

/* A user wants to know all programs, and waits for that. */
static bool is_waited_for(const struct attribution *a)
{
	return a->setup->capture || a->setup->live;
}

bool attribution_begin_look(struct attribution *a)
{
	return is_waited_for(a) || time_share_begin(&a->look_share, clock_monotonic_ns());
}

void attribution_end_look(struct attribution *a)
{
	if (!is_waited_for(a))
		time_share_end(&a->look_share, clock_monotonic_ns());
}

struct handover_item *attribution_window_items(struct attribution *a, uint32_t *ret_n)
{
	struct handover_item *items = a->items.n ? calloc(a->items.n, sizeof(*items)) : NULL;

	*ret_n = items ? a->items.n : 0;
	if (items)
		memcpy(items, a->items.items, a->items.n * sizeof(*items));
	return items;
}

static struct host_file *item_file(struct attribution *a, const struct handover_item *item)
{
	return item->type == MESSAGE_MODULE
		       ? host_file_find(a->host, item->id - PROFILE_UID_FIRST_FILE)
		       : NULL;
}

static bool is_set_aside(const struct attribution *a, int fd)
{
	uint32_t n = a->n_set_aside < MAX_SET_ASIDE ? a->n_set_aside : MAX_SET_ASIDE;
	struct file_identity id;

	if (n == 0 || file_identity_get(fd, &id) < 0)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		if (file_identity_equal(&a->set_aside[i], &id))
			return true;
	}
	return false;
}

/* The build id that it had when it was opened is still there, if it has one. */
static bool has_same_build_id(struct attribution *a, const struct file_state *s, int fd)
{
	size_t n = 0, n_now = 0;
	const uint8_t *id = s->module ? unwind_module_build_id(s->module, &n) : NULL;
	uint8_t now[64];
	bool same;

	if (!id || n == 0)
		return false;
	role_job_begin(a->role);
	role_job_read(a->role, &s->identity, s->path);
	same = symbol_file_build_id(fd, now, &n_now) == 0 && n == n_now && memcmp(id, now, n) == 0;
	role_job_begin(a->role);
	return same;
}

/* What ran is not there any more: names of what was written over it would be wrong. */
static bool is_rewritten(struct attribution *a, struct file_state *s, int fd)
{
	struct file_identity now;

	if (!s || !s->identity.ino || file_identity_get(fd, &now) < 0 ||
	    file_identity_equal(&now, &s->identity))
		return false;
	if (!file_identity_may_be_touched(&now, &s->identity) || !has_same_build_id(a, s, fd))
		return true;
	s->identity = now;
	return false;
}

int attribution_descriptor(void *ctx, const struct handover_item *item, struct message *m)
{
	struct attribution *a = ctx;
	const struct host_file *file;
	int fd;

	if (item->type == MESSAGE_KALLSYMS)
		return replay_kallsyms_copy(a->replay);
	if (item->type != MESSAGE_MODULE) {
		const struct host_process *p = host_process_peek(a->host, item->pid);

		if (!p || p->start_unix_ns != item->id)
			return -1;
		fd = item->type == MESSAGE_JITDUMP ? p->jitdump_fd : p->perf_map_fd;
		return is_set_aside(a, fd) ? -1 : fd;
	}
	file = item_file(a, item);
	if (!file || file->fd < 0 || is_set_aside(a, file->fd) ||
	    is_rewritten(a, file->user, file->fd))
		return -1;
	m->module.pid = a->replay || !file->user ? 0 : ((struct file_state *)file->user)->pid;
	message_set_text(m->module.path, sizeof(m->module.path), file->path);
	return file->fd;
}

bool attribution_mark_sent(void *ctx, const struct handover_item *item, uint32_t generation,
			   bool sent)
{
	struct attribution *a = ctx;
	struct host_file *file = item_file(a, item);
	struct file_state *s = file ? file->user : NULL;

	if (generation) /* 0: a module that it has let go */
		a->symbolizer_generation = generation;
	if (!s)
		return false; /* a map of code grows: its descriptor goes with every window; so does
				 the one kallsyms of a file */
	if (sent) {
		s->sent_generation = generation;
		s->was_sent = true;
	}
	return s->sent_generation == generation;
}

/* A file that the profiler itself was not given is asked for again at its next sample. */
void attribution_quarantine(struct attribution *a, const struct message *m)
{
	uint32_t n = a->n_set_aside < MAX_SET_ASIDE ? a->n_set_aside : MAX_SET_ASIDE;

	if (m->quarantine.for_peer != PEER_SYMBOLIZER) {
		if (m->quarantine.lifted)
			host_files_retry(a->host);
		return;
	}
	if (!m->quarantine.lifted) {
		a->set_aside[a->n_set_aside++ % MAX_SET_ASIDE] = m->quarantine.file;
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (file_identity_equal(&a->set_aside[i], &m->quarantine.file))
			a->set_aside[i] = (struct file_identity){.ino = 0};
	}
}
