/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A descriptor of statm stays with its process: it never reads a later process with the same pid,
 * and reading fails once the process is gone. A process that has ended, but whose parent has not
 * waited for it yet, reads as having no memory. So does one whose first thread has ended before the
 * others: its memory is unknown.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/profiler/attribute-internal.h"
#include "src/profiler/kills.h"
#include "src/profiler/outside.h"
#include "src/profiler/residents.h"
#include "src/profiler/victims.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define READ_NS	       NSEC_PER_SEC
#define DAEMON_READ_NS (10 * NSEC_PER_SEC)
#define AGAIN_NS       NSEC_PER_SEC /* between looks at one that is sampled */
#define MAX_OPENED     32	    /* between two reads: each asks the broker */
#define STATM_BYTES    128

struct resident {
	uint32_t pid;
	uint64_t start_time_ns; /* of the host's process */
	int fd;
	uint64_t bytes;	 /* as told last */
	uint64_t window; /* in which it was told */
};

struct residents {
	struct attribution *a;
	uint64_t read_ns; /* CLOCK_MONOTONIC */
	uint32_t n, n_opened;
	struct kill_counter kills;
	struct victims victims;
	bool unnamed; /* at the look before, some of those killed were */
	/* Rows of those that have ended since the look before. */
	uint32_t n_ended, ended[RESIDENTS_MAX];
	struct resident items[RESIDENTS_MAX];
};

int residents_new(struct residents **ret, struct attribution *a)
{
	bool wanted = false;

	for (uint32_t i = 0; i < a->setup->n_events; i++)
		wanted |= a->setup->events[i].options.event.bytes;
	if (!wanted || a->replay || !(a->setup->capture || a->setup->keeps))
		return 0;
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->a = a;
	(*ret)->kills.fd = -EBADF;
	return 0;
}

struct residents *residents_free(struct residents *r)
{
	for (uint32_t i = 0; r && i < r->n; i++)
		(void)close(r->items[i].fd);
	if (r)
		kills_close(&r->kills);
	free(r);
	return NULL;
}

/* Bytes in memory; 0: the process is gone. */
static uint64_t read_bytes(const struct residents *r, int fd)
{
	char text[STATM_BYTES], *end;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	uint64_t pages;

	if (n <= 0)
		return n < 0 && errno == ESRCH ? 0 : PROFILE_RESIDENT_UNKNOWN;
	text[n] = '\0';
	(void)strtoull(text, &end, 10);
	pages = strtoull(end, NULL, 10);
	return pages ? pages * r->a->page_bytes : PROFILE_RESIDENT_UNKNOWN;
}

/* Says it in the window, unless that is known. false: nobody knows the process any more. */
static bool tell(struct residents *r, struct resident *item, uint64_t bytes, uint64_t now_unix_ns)
{
	struct host_process *p = host_process_peek(r->a->host, item->pid);
	struct profile_resident told = {.time_unix_ns = now_unix_ns, .bytes = bytes};

	if (!p || p->start_time_ns != item->start_time_ns)
		return false;
	if (item->window == r->a->window && item->bytes == bytes)
		return true;
	told.process = attribution_process_row(r->a, p);
	if (told.process != PROFILE_NONE && profile_add_resident(&r->a->profile, &told)) {
		item->bytes = bytes;
		item->window = r->a->window;
		if (bytes == 0)
			r->ended[r->n_ended++] = told.process;
	}
	return true;
}

static void drop(struct residents *r, struct resident *item)
{
	(void)close(item->fd);
	*item = r->items[--r->n];
}

/* The process of that name; if nobody knows it, no more than these. */
static uint32_t victim_row(struct attribution *a, const struct victim *v)
{
	struct host_process *p = host_process_peek(a->host, v->pid);
	struct profile_process bare = {.pid = v->pid};

	if (p && strcmp(p->comm, v->comm) == 0)
		return attribution_process_row(a, p);
	bare.comm = strtab_put(&a->profile.strings, v->comm);
	return profile_add_process(&a->profile, &bare);
}

static void tell_victim(struct residents *r, uint32_t row, bool certain, uint64_t now_unix_ns)
{
	const struct profile_victim v = {now_unix_ns, row, certain};

	if (row != PROFILE_NONE)
		(void)profile_add_victim(&r->a->profile, &v);
}

/* Where the log is not for us, those that ended are all that is known: some end a while after they
 * were killed, and counted. */
static void read_kills(struct residents *r, uint64_t now_unix_ns)
{
	struct victim victims[VICTIMS_MAX];
	uint64_t n = kills_read(&r->kills, &r->a->outside, &r->a->profile, now_unix_ns);
	int found;

	if (!r->victims.tried) {
		victims_begin(&r->victims, &r->a->outside);
		return;
	}
	found = victims_read(&r->victims, &r->a->outside, n, victims);
	for (int i = 0; i < found; i++)
		tell_victim(r, victim_row(r->a, &victims[i]), true, now_unix_ns);
	for (uint32_t i = 0; (found < 0 || r->unnamed) && i < r->n_ended; i++)
		tell_victim(r, r->ended[i], false, now_unix_ns);
	r->unnamed = n > 0 && found < 0;
}

void residents_read(struct residents *r, uint64_t now_unix_ns, bool closes)
{
	uint64_t now = clock_monotonic_ns();

	if (!closes && now - r->read_ns < (r->a->setup->capture ? READ_NS : DAEMON_READ_NS))
		return;
	r->read_ns = now;
	r->n_opened = r->n_ended = 0;
	for (uint32_t i = r->n; i > 0; i--) {
		struct resident *item = &r->items[i - 1];
		uint64_t bytes = read_bytes(r, item->fd);

		if (!tell(r, item, bytes, now_unix_ns) || bytes == 0)
			drop(r, item);
	}
	read_kills(r, now_unix_ns);
}

static bool has(const struct residents *r, const struct host_process *p)
{
	for (uint32_t i = 0; i < r->n; i++) {
		if (r->items[i].pid == p->pid && r->items[i].start_time_ns == p->start_time_ns)
			return true;
	}
	return false;
}

static uint64_t known_bytes(const struct resident *item)
{
	return item->bytes == PROFILE_RESIDENT_UNKNOWN ? 0 : item->bytes;
}

/* A free place, or that of a smaller one, about which no more is told; NULL: all are larger. */
static struct resident *place_for(struct residents *r, uint64_t bytes, uint64_t now_unix_ns)
{
	struct resident *least = &r->items[0];

	if (r->n < RESIDENTS_MAX)
		return &r->items[r->n++];
	for (uint32_t i = 1; i < r->n; i++) {
		if (known_bytes(&r->items[i]) < known_bytes(least))
			least = &r->items[i];
	}
	if (known_bytes(least) >= bytes)
		return NULL;
	(void)tell(r, least, PROFILE_RESIDENT_UNKNOWN, now_unix_ns);
	(void)close(least->fd);
	return least;
}

void residents_see(struct residents *r, struct host_process *p)
{
	struct process_state *s = attribution_process_state(p);
	_cleanup_close_ int fd = -EBADF;
	struct resident *place;
	uint64_t bytes, now_unix_ns;

	if (!s || p->is_kernel || p->exited || r->a->time_ns < s->resident_ns ||
	    r->n_opened >= MAX_OPENED)
		return;
	s->resident_ns = r->a->time_ns + AGAIN_NS;
	if (has(r, p))
		return;
	r->n_opened++;
	fd = outside_open_resident(&r->a->outside, p->pid);
	bytes = fd < 0 ? 0 : read_bytes(r, fd);
	now_unix_ns = clock_realtime_ns();
	if (bytes == 0 || bytes == PROFILE_RESIDENT_UNKNOWN)
		return;
	place = place_for(r, bytes, now_unix_ns);
	if (!place)
		return;
	*place = (struct resident){p->pid, p->start_time_ns, TAKE_FD(fd), 0, UINT64_MAX};
	(void)tell(r, place, bytes, now_unix_ns);
}
