/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/sample/ledger.h"
#include "src/sample/sample.h"
#include "util/cleanup.h"
#include "util/memory-file.h"

#define MAX_CPUS 4096
#define NOWHERE	 UINT64_MAX /* the tail of a slot while it is written */

#define MAX_GAPS 64

struct ledger {
	struct ledger_gap gaps[MAX_GAPS];
	uint64_t n_gaps;
	uint32_t n_cpus; /* later entries were never written and take no memory */
	struct ledger_entry entries[MAX_CPUS][SAMPLE_MAX_EVENTS + 1];
};

static int map(int fd, struct ledger **ret)
{
	void *p = mmap(NULL, sizeof(struct ledger), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	*ret = p;
	return 0;
}

int ledger_new(struct ledger **ret)
{
	_cleanup_close_ int fd = memory_file_new("perfwalk-ledger");
	int r;

	if (fd < 0)
		return fd;
	if (ftruncate(fd, sizeof(struct ledger)) < 0)
		return -errno;
	/* As for a status page: if others could truncate it, we would get a SIGBUS. */
	(void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	r = map(fd, ret);
	return r < 0 ? r : TAKE_FD(fd);
}

int ledger_map(int fd, struct ledger **ret)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_size == sizeof(struct ledger) ? map(fd, ret) : -EBADMSG;
}

struct ledger *ledger_unmap(struct ledger *l)
{
	if (l)
		(void)munmap(l, sizeof(*l));
	return NULL;
}

struct ledger_entry *ledger_entry(struct ledger *l, uint32_t index, int cpu)
{
	if (index > SAMPLE_MAX_EVENTS || cpu < 0 || cpu >= MAX_CPUS)
		return NULL;
	if ((uint32_t)cpu >= l->n_cpus)
		l->n_cpus = (uint32_t)cpu + 1;
	return &l->entries[cpu][index];
}

static const struct ledger_slot *latest(const struct ledger_entry *e)
{
	const struct ledger_slot *a = &e->slots[0], *b = &e->slots[1];

	if (a->tail == NOWHERE || b->tail == NOWHERE)
		return a->tail == NOWHERE ? b : a;
	return b->turn > a->turn ? b : a;
}

static const struct ledger_slot *at_tail(const struct ledger_entry *e, uint64_t tail)
{
	const struct ledger_slot *a = &e->slots[0], *b = &e->slots[1];

	if (a->tail == tail && b->tail == tail)
		return latest(e);
	return a->tail == tail ? a : b->tail == tail ? b : NULL;
}

void ledger_adopt(struct ledger_entry *e, uint64_t ring_id, uint64_t tail, struct ledger_slot *ret)
{
	const struct ledger_slot *s = e->ring_id == ring_id ? at_tail(e, tail) : NULL;

	if (s) {
		*ret = *s;
	} else {
		s = latest(e);
		*ret = (struct ledger_slot){.turn = s->turn, .tally = s->tally, .tail = tail};
	}
	/* An unfinished write of the reader before is void from here on. */
	ledger_write(e, ret);
	__atomic_store_n(&e->ring_id, ring_id, __ATOMIC_RELEASE);
}

void ledger_write(struct ledger_entry *e, struct ledger_slot *s)
{
	struct ledger_slot *to = &e->slots[++s->turn & 1];

	__atomic_store_n(&to->tail, NOWHERE, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	to->turn = s->turn;
	to->tally = s->tally;
	to->lost_recorded = s->lost_recorded;
	to->lost_reported = s->lost_reported;
	to->lost_earlier = s->lost_earlier;
	to->event_id = s->event_id;
	__atomic_store_n(&to->tail, s->tail, __ATOMIC_RELEASE);
}

/* The reader can write here, too, but harms only itself. */
void ledger_begin_gap(struct ledger *l, uint64_t time_ns)
{
	struct ledger_gap *g = &l->gaps[l->n_gaps % MAX_GAPS];

	__atomic_store_n(&g->end_ns, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&g->begin_ns, time_ns, __ATOMIC_RELEASE);
}

void ledger_end_gap(struct ledger *l, uint64_t time_ns)
{
	struct ledger_gap *g = &l->gaps[l->n_gaps % MAX_GAPS], *next;

	next = &l->gaps[(l->n_gaps + 1) % MAX_GAPS];
	__atomic_store_n(&next->begin_ns, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&g->end_ns, time_ns, __ATOMIC_RELEASE);
	__atomic_store_n(&l->n_gaps, l->n_gaps + 1, __ATOMIC_RELEASE);
}

uint64_t ledger_n_gaps(const struct ledger *l)
{
	return __atomic_load_n(&l->n_gaps, __ATOMIC_ACQUIRE);
}

bool ledger_has_gap(const struct ledger *l, uint64_t i)
{
	return ledger_n_gaps(l) > i ||
	       __atomic_load_n(&l->gaps[i % MAX_GAPS].begin_ns, __ATOMIC_ACQUIRE) != 0;
}

int ledger_gap(const struct ledger *l, uint64_t i, struct ledger_gap *ret)
{
	const struct ledger_gap *g = &l->gaps[i % MAX_GAPS];
	uint64_t n = ledger_n_gaps(l);

	if (n - i >= MAX_GAPS && n > i)
		return -ESTALE;
	ret->begin_ns = __atomic_load_n(&g->begin_ns, __ATOMIC_ACQUIRE);
	ret->end_ns = i < n ? __atomic_load_n(&g->end_ns, __ATOMIC_ACQUIRE) : 0;
	return i > n || ret->begin_ns == 0 ? -EAGAIN : 0;
}

struct sample_tally ledger_tally(const struct ledger_entry *e)
{
	return latest(e)->tally;
}

struct sample_tally ledger_sum(const struct ledger *l, uint32_t index)
{
	struct sample_tally sum = {0};

	for (uint32_t cpu = 0; cpu < l->n_cpus && cpu < MAX_CPUS; cpu++) {
		const struct sample_tally *t = &latest(&l->entries[cpu][index])->tally;

		sum.samples += t->samples;
		sum.filtered += t->filtered;
		sum.lost += t->lost;
	}
	return sum;
}
