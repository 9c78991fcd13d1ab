/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A probe is set in a file, so one in the allocation library sees each process that has this file
 * mapped. Containers may have copies of it, which are other files, and runtimes have allocators of
 * their own. The profiler sees these files mapped and requests probes in them here.
 *
 * The broker parses nothing of such a file. A copy gets probes at the places of our library if it
 * has the same bytes; a runtime gets them at the places that the profiler found, if functions of
 * such a runtime may begin there (allocators.c): a probe in the middle of an instruction would
 * break the program. A container's files cannot be unmounted while a probe is in them, so we remove
 * the probes once the process is gone; if others have the file mapped, the profiler asks again.
 */
#include <errno.h>
#include <linux/magic.h>
#include <signal.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "src/broker/internal.h"
#include "src/opener/allocators.h"
#include "src/opener/helper.h"
#include "src/sample/uprobe.h"
#include "util/log.h"

#define MAX_LIBRARY_BYTES (1 << 20)
#define TELL_SECONDS	  60

/* NULL: allocations are not sampled. */
static struct events *find_picked(struct broker *b)
{
	for (uint32_t i = 0; i + 1 < b->options.n_events; i++) {
		if (b->options.events[i].use == SAMPLE_USE_PICKED)
			return &b->events[i];
	}
	return NULL;
}

/* ---- Is it a copy? ---- */

static bool is_overlay(int fd)
{
	struct statfs s;

	return fstatfs(fd, &s) == 0 && (uint64_t)s.f_type == OVERLAYFS_SUPER_MAGIC;
}

/*
 * A file of a lower layer is one file, to which the probe belongs, under the devices of all
 * overlays that have it. It has its own number there, and its own times.
 */
static bool is_same(const struct stat *a, const struct stat *b, bool overlay)
{
	if (!overlay)
		return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
	return a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static struct library_copy *find_copy(struct broker *b, const struct stat *st, bool overlay)
{
	for (uint32_t i = 0; i < b->n_copies; i++) {
		if (is_same(&b->copies[i].st, st, overlay || b->copies[i].overlay))
			return &b->copies[i];
	}
	return NULL;
}

/* 0; -ESTALE: they differ. */
static int compare_files(int ours, int other, size_t n)
{
	char a[4096], b[4096];

	for (size_t at = 0; at < n;) {
		size_t want = n - at < sizeof(a) ? n - at : sizeof(a);
		ssize_t got = pread(ours, a, want, (off_t)at);

		if (got <= 0)
			return got < 0 ? -errno : -ESTALE;
		if (pread(other, b, (size_t)got, (off_t)at) != got ||
		    memcmp(a, b, (size_t)got) != 0)
			return -ESTALE;
		at += (size_t)got;
	}
	return 0;
}

/* ---- Probes ---- */

static void drop(struct broker *b, struct library_copy *c)
{
	struct events *e = find_picked(b);

	if (e)
		events_remove_copy(&e[0], c->picked);
	if (e && c->ended)
		events_remove_copy(&e[1], c->ended);
	(void)uprobe_free_copy(c->picked);
	(void)uprobe_free_copy(c->ended);
	*c = b->copies[--b->n_copies];
}

static int attach(struct broker *b, const struct library_copy *c)
{
	struct events *e = find_picked(b);
	bool enable = broker_is_sampling(b);
	int r = e ? 0 : -ENOENT;

	/* Of tasks. */
	if (r == 0 && b->options.n_pids > 0 && e->cpus.n > 0) {
		r = sample_keep_probe(c->picked, e->cpus.items[0].events.cpu);
		if (r == 0 && c->ended)
			r = sample_keep_probe(c->ended, e->cpus.items[0].events.cpu);
	}
	if (r == 0 && c->ended)
		r = events_add_copy(&e[1], c->ended, enable);
	if (r == 0)
		r = events_add_copy(&e[0], c->picked, enable);
	return r;
}

/* Where the probes go; nothing of ended: none. */
struct copy_places {
	const char *what; /* for messages */
	const struct uprobe_site *picked, *ended;
	uint32_t n_picked, n_ended;
};

static int set_probes(struct library_copy *c, const struct events *e, int fd,
		      const struct copy_places *p, char *error, size_t n_error)
{
	int second = p->n_ended ? dup(fd) : -EBADF, r;

	if (p->n_ended && second < 0) {
		(void)close(fd);
		return -EMFILE;
	}
	r = uprobe_new_copy(&c->picked, e[0].sample.event.uprobe, fd, p->picked, p->n_picked, error,
			    n_error);
	if (r == 0 && p->n_ended)
		return uprobe_new_copy(&c->ended, e[1].sample.event.uprobe, second, p->ended,
				       p->n_ended, error, n_error);
	(void)close_fd(second);
	return r;
}

static int add(struct broker *b, const struct events *e, int fd, const struct library_copy *facts,
	       const struct copy_places *places)
{
	struct library_copy *c = &b->copies[b->n_copies];
	char error[512] = "";
	int r;

	*c = *facts;
	b->n_copies++;
	r = set_probes(c, e, fd, places, error, sizeof(error));
	if (r == 0)
		r = attach(b, c);
	if (r == 0) {
		log_info("%s is sampled, too (of process %u)", places->what, facts->pid);
		return 0;
	}
	log_warning("%s (of process %u) cannot be sampled: %s", places->what, facts->pid,
		    *error ? error : strerror(-r));
	drop(b, c);
	return r;
}

/* 1: it is sampled already; 0: it is not; -errno. */
static int identify(struct broker *b, uint32_t pid, int fd, struct library_copy *ret)
{
	struct library_copy *known;

	*ret = (struct library_copy){.pid = pid, .overlay = is_overlay(fd)};
	if (fstat(fd, &ret->st) < 0)
		return -errno;
	known = find_copy(b, &ret->st, ret->overlay);
	if (known)
		known->pid = pid;
	return known != NULL;
}

static int add_if_room(struct broker *b, const struct events *e, int fd,
		       const struct library_copy *facts, const struct copy_places *places)
{
	if (b->n_copies < EVENTS_MAX_COPIES)
		return add(b, e, fd, facts, places);
	(void)close(fd);
	if (log_ratelimit(&b->copies_full, TELL_SECONDS))
		log_warning("allocations of process %u are not sampled: %u other files are, the "
			    "most there may be; containers that share one file (a bind mount, or "
			    "the same image) count as one",
			    facts->pid, b->n_copies);
	return -E2BIG;
}

static int look_at(struct broker *b, const struct events *e, uint32_t pid, int owned_fd)
{
	const struct sample_uprobe *picked = e[0].sample.event.uprobe,
				   *ended = e[1].sample.event.uprobe;
	const struct copy_places places = {"a copy of the allocation library", picked->sites,
					   ended->sites, picked->n_sites, ended->n_sites};
	_cleanup_close_ int fd = owned_fd;
	struct library_copy facts;
	struct stat st;
	int r = identify(b, pid, fd, &facts);

	if (r != 0)
		return r < 0 ? r : 0;
	if (fstat(picked->fd, &st) < 0)
		return -errno;
	if (is_same(&st, &facts.st, facts.overlay))
		return 0;
	if (facts.st.st_size != st.st_size || st.st_size > MAX_LIBRARY_BYTES)
		return -ESTALE;
	r = compare_files(picked->fd, fd, (size_t)st.st_size);
	return r < 0 ? r : add_if_room(b, e, TAKE_FD(fd), &facts, &places);
}

/*
 * The mapped file that the profiler asks for. It is one of a local disk, so that neither we nor the
 * kernel, which reads it for a probe, wait for a server: the helper has made sure of that, and our
 * own reads need no deadline. They compare bytes, and give them no meaning.
 */
static int open_file(struct broker *b, const struct message *ask,
		     const struct mapped_file_name *name)
{
	struct file_identity id;

	if (b->state != BROKER_RUNNING)
		return -ENOENT;
	if (!message_text_ok(name->path, sizeof(name->path)))
		return -EBADMSG;
	return opener_helper_open(supervisor_opener(b->supervisor), ask, &id);
}

int broker_add_copy(struct broker *b, const struct message *ask)
{
	const struct events *e = b->options.n_pids > 0 ? NULL : find_picked(b);
	int fd = e ? open_file(b, ask, &ask->ask_file) : -ENOENT;

	return fd < 0 ? fd : look_at(b, e, ask->ask_file.pid, fd);
}

static int look_at_allocator(struct broker *b, const struct events *e, const struct message *ask,
			     int owned_fd)
{
	static const char *const whats[] = {
		[ALLOCATOR_JAVA] = "the allocator of a Java VM",
		[ALLOCATOR_GO] = "the allocator of a Go program",
	};
	struct uprobe_site picked[ARRAY_SIZE(ask->ask_allocator.picked)] = {0};
	struct uprobe_site ended = {.offset = ask->ask_allocator.ended};
	uint32_t n = ask->ask_allocator.n_picked, pid = ask->ask_allocator.file.pid;
	_cleanup_close_ int fd = owned_fd;
	enum allocator of = allocator_is_java(fd) ? ALLOCATOR_JAVA : ALLOCATOR_GO;
	const struct copy_places places = {whats[of], picked, &ended, n, ended.offset != 0};
	struct library_copy facts;
	int r = identify(b, pid, fd, &facts);

	if (r != 0)
		return r < 0 ? r : 0;
	if (n == 0 || n > ARRAY_SIZE(picked) ||
	    (places.n_ended && !allocator_may_begin(of, fd, ended.offset)))
		return -ESTALE;
	for (uint32_t i = 0; i < n; i++) {
		picked[i].offset = ask->ask_allocator.picked[i];
		picked[i].fetched = ask->ask_allocator.fetched;
		if (!allocator_may_begin(of, fd, picked[i].offset))
			return -ESTALE;
	}
	return add_if_room(b, e, TAKE_FD(fd), &facts, &places);
}

int broker_add_allocator(struct broker *b, const struct message *ask)
{
	const struct events *e = find_picked(b);
	int fd = e ? open_file(b, ask, &ask->ask_allocator.file) : -ENOENT;

	return fd < 0 ? fd : look_at_allocator(b, e, ask, fd);
}

void broker_look_after_copies(struct broker *b)
{
	for (uint32_t i = b->n_copies; i-- > 0;) {
		if (kill((pid_t)b->copies[i].pid, 0) < 0 && errno == ESRCH)
			drop(b, &b->copies[i]);
	}
}

void broker_forget_copies(struct broker *b)
{
	while (b->n_copies > 0)
		drop(b, &b->copies[b->n_copies - 1]);
}

void broker_attach_copies(struct broker *b)
{
	if (!find_picked(b))
		broker_forget_copies(b);
	for (uint32_t i = b->n_copies; i-- > 0;) {
		if (attach(b, &b->copies[i]) < 0)
			drop(b, &b->copies[i]);
	}
}
