/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A probe is in a file, whatever its name is and whoever runs it: that of the allocation library
 * sees each process that has this file mapped. Containers may have copies of it, which are other
 * files. The profiler sees them mapped and asks for them here.
 *
 * Nothing of such a file is parsed: it is sampled at the places of ours if it has the same bytes.
 * A container's files cannot be unmounted as long as a probe is in them, so one whose process is
 * gone is left; if others have it mapped, the profiler asks again.
 */
#include <errno.h>
#include <linux/magic.h>
#include <signal.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "src/broker/internal.h"
#include "src/opener/helper.h"
#include "src/sample/uprobe.h"
#include "util/log.h"

#define MAX_LIBRARY_BYTES (1 << 20)
#define TELL_SECONDS	  60

/* NULL: allocations are not sampled, or not those of all processes. */
static struct events *find_picked(struct broker *b)
{
	for (uint32_t i = 0; i + 1 < b->options.n_events && b->options.n_pids == 0; i++) {
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

	if (e) {
		events_remove_copy(&e[0], c->picked);
		events_remove_copy(&e[1], c->ended);
	}
	(void)uprobe_free_copy(c->picked);
	(void)uprobe_free_copy(c->ended);
	*c = b->copies[--b->n_copies];
}

static int attach(struct broker *b, const struct library_copy *c)
{
	struct events *e = find_picked(b);
	bool enable = broker_is_sampling(b);
	int r = e ? events_add_copy(&e[1], c->ended, enable) : -ENOENT;

	if (r == 0)
		r = events_add_copy(&e[0], c->picked, enable);
	return r;
}

static int add(struct broker *b, const struct events *e, int fd, const struct library_copy *facts)
{
	const struct sample_uprobe *picked = e[0].sample.event.uprobe,
				   *ended = e[1].sample.event.uprobe;
	struct library_copy *c = &b->copies[b->n_copies];
	char error[512] = "";
	int r, second = dup(fd);

	*c = *facts;
	if (second < 0) {
		r = -errno;
		(void)close(fd);
		return r;
	}
	b->n_copies++;
	r = uprobe_new_copy(&c->picked, picked, fd, picked->sites, picked->n_sites, error,
			    sizeof(error));
	if (r == 0)
		r = uprobe_new_copy(&c->ended, ended, second, ended->sites, ended->n_sites, error,
				    sizeof(error));
	else
		(void)close(second);
	if (r == 0)
		r = attach(b, c);
	if (r == 0) {
		log_info("a copy of the allocation library is sampled, too (of process %u)",
			 facts->pid);
		return 0;
	}
	log_warning("a copy of the allocation library (of process %u) cannot be sampled: %s",
		    facts->pid, *error ? error : strerror(-r));
	drop(b, c);
	return r;
}

static int look_at(struct broker *b, const struct events *e, uint32_t pid, int owned_fd)
{
	_cleanup_close_ int fd = owned_fd;
	struct library_copy facts = {.pid = pid, .overlay = is_overlay(fd)}, *known;
	int ours = e->sample.event.uprobe->fd, r;
	struct stat st;

	if (fstat(fd, &facts.st) < 0 || fstat(ours, &st) < 0)
		return -errno;
	if (is_same(&st, &facts.st, facts.overlay))
		return 0;
	known = find_copy(b, &facts.st, facts.overlay);
	if (known) {
		known->pid = pid;
		return 0;
	}
	if (facts.st.st_size != st.st_size || st.st_size > MAX_LIBRARY_BYTES)
		return -ESTALE;
	r = compare_files(ours, fd, (size_t)st.st_size);
	if (r == 0 && b->n_copies == EVENTS_MAX_COPIES) {
		if (log_ratelimit(&b->copies_full, TELL_SECONDS))
			log_warning("%u copies of the allocation library are sampled: that of "
				    "process %u is not; containers that share one file (a bind "
				    "mount, or the same image) need no more than one",
				    b->n_copies, pid);
		return -E2BIG;
	}
	return r < 0 ? r : add(b, e, TAKE_FD(fd), &facts);
}

int broker_add_copy(struct broker *b, const struct message *ask)
{
	const struct events *e = find_picked(b);
	struct message m = *ask;
	int fd;

	if (!e || b->state != BROKER_RUNNING)
		return -ENOENT;
	m.type = MESSAGE_ASK_FILE;
	if (!message_text_ok(m.ask_file.path, sizeof(m.ask_file.path)))
		return -EBADMSG;
	fd = opener_helper_open(supervisor_opener(b->supervisor), &m);
	return fd < 0 ? fd : look_at(b, e, m.ask_file.pid, fd);
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
