/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroups, known by their kernel id (from samples, Linux 5.7) or by path (from /proc/TID/cgroup).
 *
 * The id of a sample is exact at the time of the sample. But it belongs to the perf_event
 * hierarchy: with cgroup v1 or hybrid, systemd's units and the containers of some runtimes are not
 * in there and the path is "/". So if an id gives neither container nor unit, we read the thread's
 * file.
 *
 * The file is read once for each process (threads share the cgroups of their process except in rare
 * v1 set-ups), again after exec, when a runtime has moved its child, and again some windows later.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "src/host/internal.h"
#include "util/text.h"

#define MAX_CGROUPS	 16384
#define READS_PER_SECOND 256
#define READ_AGAIN	 10 /* windows */
#define IDLE_WINDOWS	 10
#define MAX_PATH_BYTES	 4096
#define MAX_FILE_BYTES	 32768
#define MAX_STATE_BYTES	 (1 << 20) /* docker's config: some 10 KiB, more with many labels */
#define MAX_NAME_BYTES	 512

static struct cgroup *cgroup_of(struct host_cgroup *cg)
{
	return (struct cgroup *)cg;
}

static uint64_t path_hash(const char *path)
{
	return hash_bytes(path, strlen(path), 0);
}

static void free_cgroup(struct host *h, struct cgroup *cg)
{
	if (cg->by_id)
		(void)hash_index_remove(&h->cgroup_id_index, hash_u64(cg->pub.id), cg->row);
	else
		(void)hash_index_remove(&h->cgroup_path_index, path_hash(cg->pub.path), cg->row);
	host_rows_remove(&h->cgroups, cg->row);
	h->stats.cgroups--;
	free(cg->pub.path);
	free(cg->pub.container_name);
	free(cg);
}

static void sweep(struct host *h, uint32_t idle_windows)
{
	for (uint32_t row = 0; row < h->cgroups.items.n; row++) {
		struct cgroup *cg = h->cgroups.items.items[row];

		if (cg && !cg->n_refs && h->window - cg->last_window >= idle_windows)
			free_cgroup(h, cg);
	}
}

/* id 0: known by path. The caller knows that there is no equal entry. */
static struct cgroup *new_cgroup(struct host *h, uint64_t id, const char *path)
{
	struct cgroup *cg = h->stats.cgroups < MAX_CGROUPS ? calloc(1, sizeof(*cg)) : NULL;
	char clean[MAX_PATH_BYTES];
	int r;

	(void)text_clean(clean, sizeof(clean), path, strlen(path));
	if (cg)
		cg->pub.path = strdup(clean);
	if (!cg || !cg->pub.path)
		goto refused;
	cg->row = host_rows_add(&h->cgroups, cg);
	if (cg->row == UINT32_MAX)
		goto refused;
	cg->pub.id = id;
	cg->by_id = id != 0;
	cg->last_window = h->window;
	r = id ? hash_index_add(&h->cgroup_id_index, hash_u64(id), cg->row)
	       : hash_index_add(&h->cgroup_path_index, path_hash(clean), cg->row);
	if (r < 0) {
		host_rows_remove(&h->cgroups, cg->row);
		goto refused;
	}
	host_parse_cgroup_path(clean, &cg->pub);
	if (cg->pub.is_named)
		cg->pub.container_name = strdup(cg->pub.container_id);
	h->stats.cgroups++;
	return cg;
refused:
	h->stats.refused_cgroups++;
	if (cg)
		free(cg->pub.path);
	free(cg);
	return NULL;
}

static struct cgroup *find_by_id(struct host *h, uint64_t id)
{
	uint64_t hash = hash_u64(id);
	uint32_t slot = hash_index_first(&h->cgroup_id_index, hash), row;

	for (; (row = hash_index_row(&h->cgroup_id_index, slot)) != HASH_INDEX_NONE;
	     slot = hash_index_next(&h->cgroup_id_index, slot)) {
		struct cgroup *cg = h->cgroups.items.items[row];

		if (cg->pub.id == id)
			return cg;
	}
	return NULL;
}

static struct cgroup *find_by_path(struct host *h, const char *path)
{
	uint64_t hash = path_hash(path);
	uint32_t slot = hash_index_first(&h->cgroup_path_index, hash), row;

	for (; (row = hash_index_row(&h->cgroup_path_index, slot)) != HASH_INDEX_NONE;
	     slot = hash_index_next(&h->cgroup_path_index, slot)) {
		struct cgroup *cg = h->cgroups.items.items[row];

		if (strcmp(cg->pub.path, path) == 0)
			return cg;
	}
	return NULL;
}

/* Removes an entry from the index; if processes still point at it, it is freed after they exit. */
static void drop_id(struct host *h, struct cgroup *cg)
{
	(void)hash_index_remove(&h->cgroup_id_index, hash_u64(cg->pub.id), cg->row);
	if (!cg->n_refs)
		free_cgroup(h, cg);
}

void host_on_cgroup(struct host *h, uint64_t id, const char *path)
{
	struct cgroup *cg = id ? find_by_id(h, id) : NULL;
	char clean[MAX_PATH_BYTES];

	if (!id)
		return;
	(void)text_clean(clean, sizeof(clean), path, strlen(path));
	if (cg && strcmp(cg->pub.path, clean) == 0)
		return;
	/* The kernel gave the id to a new cgroup, or the path was not available before. */
	if (cg)
		drop_id(h, cg);
	(void)new_cgroup(h, id, clean);
}

static void move_ref(struct cgroup *from, struct cgroup *to)
{
	if (to)
		to->n_refs++;
	if (from)
		from->n_refs--;
}

void cgroup_set(struct process *p, struct host_cgroup *pub)
{
	move_ref(cgroup_of(p->pub.cgroup), cgroup_of(pub));
	p->pub.cgroup = pub;
}

void cgroup_set_own(struct process *p, struct host_cgroup *pub)
{
	move_ref(p->own_cgroup, cgroup_of(pub));
	p->own_cgroup = cgroup_of(pub);
}

/* ---- Asking ---- */

static struct cgroup *get_by_id(struct host *h, uint64_t id)
{
	struct cgroup *cg = find_by_id(h, id);
	char path[MAX_PATH_BYTES] = "";

	if (cg && !(cg->failed && h->window - cg->last_window >= READ_AGAIN)) {
		if (!cg->failed)
			cg->last_window = h->window;
		return cg->failed ? NULL : cg;
	}
	if (!h->source.cgroup_path || !host_budget_take(h, &h->cgroup_budget, READS_PER_SECOND))
		return NULL;
	if (cg)
		drop_id(h, cg);
	h->stats.cgroup_reads++;
	if (h->source.cgroup_path(h->source.ctx, id, path, sizeof(path)) < 0)
		path[0] = '\0';
	path[sizeof(path) - 1] = '\0';
	cg = new_cgroup(h, id, path);
	if (!cg)
		return NULL;
	cg->failed = !path[0];
	return cg->failed ? NULL : cg;
}

static ssize_t read_all(int fd, char *buffer, size_t size)
{
	size_t n = 0;

	while (n < size) {
		ssize_t got = read(fd, buffer + n, size - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	return (ssize_t)n;
}

static bool is_telling(const struct cgroup *cg)
{
	return cg && (cg->pub.container_id[0] || cg->pub.unit[0]);
}

/* Reads the cgroup of a thread from its file, for the process. */
static void read_file(struct host *h, struct process *p, uint32_t tid)
{
	_cleanup_close_ int fd = -EBADF;
	_cleanup_free_ char *text = NULL;
	char path[MAX_PATH_BYTES];
	struct cgroup *cg;
	ssize_t n;

	if (!h->source.open_cgroup || p->pub.exited ||
	    !host_budget_take(h, &h->cgroup_budget, READS_PER_SECOND))
		return;
	p->cgroup_read = true;
	p->cgroup_window = h->window;
	h->stats.cgroup_reads++;
	fd = h->source.open_cgroup(h->source.ctx, tid && tid != UINT32_MAX ? tid : p->pub.pid);
	text = fd < 0 ? NULL : malloc(MAX_FILE_BYTES);
	n = text ? read_all(fd, text, MAX_FILE_BYTES) : -1;
	if (n <= 0 || !host_parse_cgroup_file(text, (size_t)n, path, sizeof(path)))
		return;
	/* The newest hierarchy comes first and version 2 is the oldest: if it is first, it is
	 * alone.
	 */
	h->only_v2 = n >= 3 && memcmp(text, "0::", 3) == 0;
	cg = find_by_path(h, path);
	if (!cg)
		cg = new_cgroup(h, 0, path);
	if (!cg)
		return;
	cg->last_window = h->window;
	/* With version 1 the file says "/" of a process that is ending; what was known holds. */
	if (is_telling(cg) || !is_telling(p->own_cgroup) || !info_is_ending(h, p))
		cgroup_set_own(p, &cg->pub);
}

const struct host_cgroup *host_cgroup_get(struct host *h, struct host_process *pub, uint32_t tid,
					  uint64_t id)
{
	struct process *p = (struct process *)pub;
	struct cgroup *cg = id ? get_by_id(h, id) : NULL;

	if (!is_telling(cg) && !(cg && h->only_v2)) {
		if (!p->cgroup_read || h->window - p->cgroup_window >= READ_AGAIN)
			read_file(h, p, tid);
		if (!cg || is_telling(p->own_cgroup))
			cg = p->own_cgroup;
	}
	if (cg)
		cg->last_window = h->window;
	cgroup_set(p, cg ? &cg->pub : NULL);
	return pub->cgroup;
}

static void read_name(struct host *h, struct cgroup *cg)
{
	_cleanup_close_ int fd = h->source.open_container(h->source.ctx, cg->pub.container_id);
	_cleanup_free_ char *text = fd < 0 ? NULL : malloc(MAX_STATE_BYTES);
	ssize_t n = text ? read_all(fd, text, MAX_STATE_BYTES) : -1;
	char name[MAX_NAME_BYTES];

	cg->name_asked = true;
	cg->name_window = h->window;
	if (n > 0 &&
	    host_parse_container_state(text, (size_t)n, cg->pub.container_id, name, sizeof(name)))
		cg->pub.container_name = strdup(name);
}

const char *host_container_name(struct host *h, const struct host_cgroup *pub)
{
	struct cgroup *cg = cgroup_of((struct host_cgroup *)pub);
	bool due = !cg->name_asked || h->window - cg->name_window >= READ_AGAIN;

	if (!pub->container_name && pub->container_id[0] && !pub->is_named && due &&
	    h->source.open_container && host_budget_take(h, &h->cgroup_budget, READS_PER_SECOND))
		read_name(h, cg);
	return pub->container_name;
}

void cgroup_free_all(struct host *h)
{
	for (uint32_t row = 0; row < h->cgroups.items.n; row++) {
		if (h->cgroups.items.items[row])
			free_cgroup(h, h->cgroups.items.items[row]);
	}
}

void cgroup_collect(struct host *h)
{
	/* Cleaning a small table gains nothing. */
	if (h->stats.cgroups > MAX_CGROUPS / 8)
		sweep(h, IDLE_WINDOWS);
}
