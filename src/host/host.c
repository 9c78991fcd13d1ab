/* SPDX-License-Identifier: Apache-2.0 */
/* The host model as a whole: making it with all limits, collection, freeing it. */
#include <errno.h>

#include "src/host/internal.h"
#include "util/clock.h"

#define DEFAULT_PROCESSES  65536
#define DEFAULT_MAPPINGS   65536
#define DEFAULT_THREADS	   262144
#define DEFAULT_FILES	   16384
#define DEFAULT_OPEN_FILES 1024
#define MAPS_PERCENT	   5
/* 0.2 s at once: the rings hold little more than that */
#define MAPS_SAVE_NS (4 * NSEC_PER_SEC)

static void set_default(uint32_t *limit, uint32_t value)
{
	if (!*limit)
		*limit = value;
}

int host_new(struct host **ret, const struct host_source *source, const struct host_limits *limits)
{
	struct host *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->source = *source;
	h->limits = *limits;
	set_default(&h->limits.max_processes, DEFAULT_PROCESSES);
	set_default(&h->limits.max_mappings, DEFAULT_MAPPINGS);
	set_default(&h->limits.max_threads, DEFAULT_THREADS);
	set_default(&h->limits.max_files, DEFAULT_FILES);
	set_default(&h->limits.max_open_files, DEFAULT_OPEN_FILES);
	host_rows_init(&h->processes);
	host_rows_init(&h->files);
	host_rows_init(&h->cgroups);
	h->threads.max = h->limits.max_threads;
	h->dead_threads.max = h->limits.max_threads;
	h->free_thread = UINT32_MAX;
	h->maps_share.percent = MAPS_PERCENT;
	h->maps_share.save_ns = MAPS_SAVE_NS;
	/* 0 means "never" where a window number is stored. */
	h->window = h->round = 1;
	*ret = h;
	return 0;
}

struct host *host_free(struct host *h)
{
	if (!h)
		return NULL;
	for (uint32_t row = 0; row < h->processes.items.n; row++) {
		if (h->processes.items.items[row])
			process_free(h, h->processes.items.items[row]);
	}
	file_free_all(h);
	cgroup_free_all(h);
	host_rows_deinit(&h->processes);
	host_rows_deinit(&h->files);
	host_rows_deinit(&h->cgroups);
	hash_index_deinit(&h->process_index);
	hash_index_deinit(&h->file_index);
	hash_index_deinit(&h->cgroup_id_index);
	hash_index_deinit(&h->cgroup_path_index);
	hash_index_deinit(&h->thread_index);
	array_deinit(&h->threads);
	array_deinit(&h->dead_threads);
	free(h);
	return NULL;
}

void host_on_lost(struct host *h)
{
	/*
	 * A process with an older number is checked when it is next used; no table is walked here.
	 */
	h->generation++;
}

void host_begin(struct host *h)
{
	h->round++;
}

void host_collect(struct host *h)
{
	process_collect(h);
	thread_collect(h);
	file_collect(h);
	cgroup_collect(h);
	h->window++;
}

const struct host_stats *host_stats(const struct host *h)
{
	return &h->stats;
}
