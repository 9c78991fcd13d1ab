/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mapped files. A file is its device, inode and inode generation; /proc/PID/maps does not show the
 * generation; without it the path must be the same, too, because another file may have the inode
 * number by now. What is written into a file in place, as cp does, makes another one of it for
 * those who map it from then on.
 *
 * Descriptors are opened at first use, so that the file can still be read when its process or its
 * name is gone. Their number is limited. Each frame uses a file, so a use only leaves a mark: the
 * list of open files is put in order when one of them is to be closed. That is the first from the
 * old end of the list without a mark; those before it go to the new end, without their marks.
 * Entries without a mapping stay for some windows, because the next short-lived process maps the
 * same libraries.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "src/host/internal.h"
#include "util/clock.h"

#define IDLE_WINDOWS   10 /* how long entries without a mapping are kept */
#define UID_ROW_BITS   16 /* the row is a part of the uid, so no index is needed */
#define MAX_FAILURES   4  /* try to open a file through so many processes */
#define MAX_PATH_BYTES 4096
/* How long after an attempt that had no answer in time the next one is made. */
#define MIN_OFF_NS NSEC_PER_SEC
#define MAX_OFF_NS (64 * NSEC_PER_SEC)

static struct file *file_of(struct host_file *f)
{
	return (struct file *)f;
}

static uint64_t key_hash(const struct host_file_key *key)
{
	return hash_combine(hash_combine(key->major, key->minor), key->inode);
}

/* ---- Open descriptors ---- */

static void lru_unlink(struct host *h, struct file *f)
{
	*(f->lru_prev ? &f->lru_prev->lru_next : &h->lru_first) = f->lru_next;
	*(f->lru_next ? &f->lru_next->lru_prev : &h->lru_last) = f->lru_prev;
	f->lru_prev = f->lru_next = NULL;
}

static void lru_push(struct host *h, struct file *f)
{
	f->lru_next = h->lru_first;
	*(h->lru_first ? &h->lru_first->lru_prev : &h->lru_last) = f;
	h->lru_first = f;
}

/* The open file to close first; NULL: none is open. Each step takes a mark away, so it ends; with
 * two or more, it is not the one at the front if that has a mark. */
static struct file *lru_oldest(struct host *h)
{
	struct file *f;

	while ((f = h->lru_last) && f->used) {
		f->used = false;
		lru_unlink(h, f);
		lru_push(h, f);
	}
	return f;
}

static void close_file(struct host *h, struct file *f)
{
	if (f->pub.fd < 0)
		return;
	(void)close(f->pub.fd);
	f->pub.fd = -1;
	f->pub.tried = false;
	lru_unlink(h, f);
	h->stats.open_files--;
}

/* Since it was opened; a descriptor that was closed says nothing. All that is told in one round
 * happened before it began, so one look is as good as one for each mapping. */
static bool is_rewritten(const struct host *h, struct file *f)
{
	struct file_identity now;

	if (f->pub.fd < 0 || f->round == h->round)
		return false;
	f->round = h->round;
	return f->contents.ino && file_identity_get(f->pub.fd, &now) == 0 &&
	       !file_identity_equal(&now, &f->contents);
}

void file_used(struct host *h, struct host_file *pub)
{
	struct file *f = file_of(pub);

	f->last_window = h->window;
	f->used = true;
}

/* The host, or another file, is to blame, so this is no failure: the file is tried again later. */
static void put_off(struct host *h, struct file *f)
{
	f->pub.tried = false;
	f->off_ns = f->off_ns ? 2 * f->off_ns : MIN_OFF_NS;
	if (f->off_ns > MAX_OFF_NS)
		f->off_ns = MAX_OFF_NS;
	f->not_before_ns = h->time_ns + f->off_ns;
	h->stats.deferred++;
}

int host_file_open(struct host *h, struct host_process *p, struct host_mapping *m)
{
	struct file *f;
	int fd;

	if (m->kind == HOST_MAPPING_FILE)
		file_check(h, m);
	f = m->kind == HOST_MAPPING_FILE ? file_of(m->file) : NULL;
	if (!f)
		return -1;
	file_used(h, &f->pub);
	if (f->pub.tried &&
	    (f->pub.fd >= 0 || f->failed_pid == p->pid || f->n_failed >= MAX_FAILURES))
		return f->pub.fd;
	if (h->time_ns < f->not_before_ns)
		return -1;
	f->pub.tried = true;
	h->stats.file_opens++;
	fd = h->source.open_file ? h->source.open_file(h->source.ctx, p->pid, p->parent_pid,
						       m->start, m->end, &f->pub.key, f->pub.path)
				 : -ENOSYS;
	if (fd == -EAGAIN) { /* too many open requests */
		f->pub.tried = false;
		h->stats.deferred++;
		return -1;
	}
	if (fd == -ETIMEDOUT || fd == -EBUSY) {
		put_off(h, f);
		return -1;
	}
	if (fd < 0) {
		h->stats.file_open_failed++;
		f->failed_pid = p->pid;
		f->n_failed++;
		return -1;
	}
	f->pub.fd = fd;
	(void)file_identity_get(fd, &f->contents);
	f->n_failed = 0;
	f->off_ns = 0;
	lru_push(h, f);
	h->stats.open_files++;
	while (h->stats.open_files > h->limits.max_open_files)
		close_file(h, lru_oldest(h));
	f->used = false;
	return fd;
}

void host_files_retry(struct host *h)
{
	for (uint32_t row = 0; row < h->files.items.n; row++) {
		struct file *f = h->files.items.items[row];

		if (!f || f->pub.fd >= 0)
			continue;
		f->pub.tried = false;
		f->n_failed = 0;
		f->failed_pid = 0;
	}
}

/* ---- Entries ---- */

static void free_file(struct host *h, struct file *f)
{
	close_file(h, f);
	if (f->indexed)
		(void)hash_index_remove(&h->file_index, key_hash(&f->pub.key), f->row);
	if (h->limits.free_user && f->pub.user)
		h->limits.free_user(h->limits.ctx, &f->pub);
	host_rows_remove(&h->files, f->row);
	h->stats.files--;
	free(f->pub.path);
	free(f);
}

/* Frees entries without a mapping that were not used for that many windows. */
static void sweep(struct host *h, uint32_t idle_windows)
{
	for (uint32_t row = 0; row < h->files.items.n; row++) {
		struct file *f = h->files.items.items[row];

		if (f && !f->pub.n_refs && h->window - f->last_window >= idle_windows)
			free_file(h, f);
	}
}

/* The newest match: if two have the same inode number and path, the older file is gone. */
static struct file *find_file(struct host *h, const struct host_file_key *key, const char *path)
{
	uint64_t hash = key_hash(key);
	uint32_t slot = hash_index_first(&h->file_index, hash), row;
	struct file *found = NULL;

	for (; (row = hash_index_row(&h->file_index, slot)) != HASH_INDEX_NONE;
	     slot = hash_index_next(&h->file_index, slot)) {
		struct file *f = h->files.items.items[row];
		const struct host_file_key *k = &f->pub.key;

		if (!hash_index_match(&h->file_index, slot, hash) || k->major != key->major ||
		    k->minor != key->minor || k->inode != key->inode)
			continue;
		if (k->generation && key->generation ? k->generation != key->generation
						     : strcmp(f->pub.path, path) != 0)
			continue;
		if (!found || f->pub.uid > found->pub.uid)
			found = f;
	}
	return found;
}

struct host_file *host_file_find(struct host *h, uint64_t uid)
{
	uint32_t row = uid & ((1u << UID_ROW_BITS) - 1);
	struct file *f = row < h->files.items.n ? h->files.items.items[row] : NULL;

	return f && f->pub.uid == uid ? &f->pub : NULL;
}

static struct file *new_file(struct host *h, const struct host_file_key *key, const char *path)
{
	struct file *f;

	/* Once a window, so that not every file of a flood walks the table. */
	if (h->stats.files >= h->limits.max_files && h->full_window != h->window + 1) {
		h->full_window = h->window + 1;
		sweep(h, 2);
	}
	if (h->stats.files >= h->limits.max_files || h->stats.files >> UID_ROW_BITS)
		return NULL;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->pub.fd = -1;
	f->pub.path = strndup(path, MAX_PATH_BYTES);
	f->row = f->pub.path ? host_rows_add(&h->files, f) : UINT32_MAX;
	if (f->row == UINT32_MAX) {
		free(f->pub.path);
		free(f);
		return NULL;
	}
	f->pub.uid = ++h->next_file_uid << UID_ROW_BITS | f->row;
	h->stats.files++;
	if (key) {
		f->pub.key = *key;
		f->indexed = hash_index_add(&h->file_index, key_hash(key), f->row) >= 0;
	}
	return f;
}

struct host_file *file_get(struct host *h, const struct host_file_key *key, const char *path)
{
	struct file *f = key ? find_file(h, key, path) : NULL;

	if (!f)
		f = new_file(h, key, path);
	if (!f) {
		h->stats.refused_files++;
		return NULL;
	}
	if (key && !f->pub.key.generation)
		f->pub.key.generation = key->generation;
	f->pub.n_refs++;
	f->last_window = h->window;
	return &f->pub;
}

void file_unref(struct host *h, struct host_file *pub)
{
	(void)h;
	if (pub)
		pub->n_refs--;
}

void file_check(struct host *h, struct host_mapping *m)
{
	struct host_file *old = m->file;
	struct file *f = file_of(old);

	if (m->bias_state || !f->indexed)
		return;
	f = find_file(h, &old->key, old->path);
	if (!f || is_rewritten(h, f))
		f = new_file(h, &old->key, old->path);
	if (f == file_of(old))
		return;
	m->file = f ? &f->pub : NULL;
	m->kind = f ? m->kind : HOST_MAPPING_ANON;
	if (f) {
		f->pub.n_refs++;
		f->last_window = h->window;
	} else {
		h->stats.refused_files++;
	}
	file_unref(h, old);
}

void file_free_all(struct host *h)
{
	for (uint32_t row = 0; row < h->files.items.n; row++) {
		if (h->files.items.items[row])
			free_file(h, h->files.items.items[row]);
	}
}

void file_collect(struct host *h)
{
	struct file *f;

	sweep(h, IDLE_WINDOWS);
	/* Mapped but long unused: close the descriptor, keep the entry. */
	while ((f = lru_oldest(h)) && h->window - f->last_window >= IDLE_WINDOWS)
		close_file(h, f);
}
