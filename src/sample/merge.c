/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A few rings per CPU (one of samples for each event, one side band), each in time order by itself,
 * read as one sequence: a heap of rings, keyed by the time of the record at their tail.
 *
 * Why the order is right. A drain reads the rings as they were at its start. It takes the heads of
 * the sample rings before those of the side band, so all records that a sample in view may need
 * (mappings made before it) are in view, too. On the other hand, a side-band record (an exec, an
 * unmap) must not come before an older sample that another CPU is still writing: so records later
 * than the latest in view, less a guard, wait for the next drain, unless they are so old that no
 * other is on its way. If no ring moved since the last drain, a whole poll interval has passed, and
 * nothing waits. Nearly full sample rings are read to their end: a sample out of order is better
 * than a lost one.
 *
 * A record stays in the ring while the caller uses it. The space of those before goes back to the
 * kernel in parts, and all of it at the end of a drain. A record that wraps is copied.
 */
#include <errno.h>
#include <string.h>

#include "src/sample/event.h"
#include "src/sample/merge.h"
#include "src/sample/source.h"
#include "util/array.h"
#include "util/ensure.h"

#define MAX_RINGS	 65536 /* for 8192 CPUs, the most a kernel can be built for */
#define MAX_RECORD_BYTES 65536 /* the size is 16 bits wide */
#define URGENT_PERCENT	 75

struct merger {
	struct sample_options options[SAMPLE_MAX_EVENTS];
	uint32_t n_events;
	bool read_lost;
	struct record_layout sideband_layout, layouts[SAMPLE_MAX_EVENTS];
	ARRAY(struct source) sources;
	uint32_t *heap; /* of sources with records left, oldest first */
	uint32_t n_heap, cap_heap;
	uint64_t rival_ns; /* the time of the oldest record in the others than the first */
	uint64_t limit;	   /* later records wait */
	bool may_raise;	   /* the limit: nobody has looked for the latest record in view yet */
	/* The ring whose record the caller has; NULL: it has none. */
	struct source *held;
	uint64_t held_tail;
	struct ledger *ledger; /* NULL: not wanted */
	struct sample_tally start[SAMPLE_MAX_EVENTS];
	uint64_t wrapped[MAX_RECORD_BYTES / sizeof(uint64_t)];
};

/* ---- The heap ---- */

/* At the same time, the side band comes before samples. */
static bool source_before(const struct merger *m, uint32_t a, uint32_t b)
{
	const struct source *x = &m->sources.items[a], *y = &m->sources.items[b];

	if (x->next_time != y->next_time)
		return x->next_time < y->next_time;
	if (x->sideband != y->sideband)
		return x->sideband;
	return a < b;
}

static void heap_sift_down(struct merger *m, uint32_t i)
{
	uint32_t moved = m->heap[i], child;

	for (; (child = 2 * i + 1) < m->n_heap; i = child) {
		if (child + 1 < m->n_heap && source_before(m, m->heap[child + 1], m->heap[child]))
			child++;
		if (!source_before(m, m->heap[child], moved))
			break;
		m->heap[i] = m->heap[child];
	}
	m->heap[i] = moved;
}

static void find_rival(struct merger *m)
{
	m->rival_ns = UINT64_MAX;
	for (uint32_t i = 1; i <= 2 && i < m->n_heap; i++) {
		uint64_t time_ns = m->sources.items[m->heap[i]].next_time;

		m->rival_ns = time_ns < m->rival_ns ? time_ns : m->rival_ns;
	}
}

/* The first ring has gone on to its next record. Most often it stays the first. */
static void heap_go_on(struct merger *m, const struct source *first, bool has_next)
{
	if (has_next && first->next_time < m->rival_ns)
		return;
	if (!has_next)
		m->heap[0] = m->heap[--m->n_heap];
	if (m->n_heap)
		heap_sift_down(m, 0);
	find_rival(m);
}

static void heap_build(struct merger *m)
{
	m->n_heap = 0;
	for (uint32_t i = 0; i < m->sources.n; i++) {
		struct source *s = &m->sources.items[i];

		if (source_peek(s, s->ring.tail))
			m->heap[m->n_heap++] = i;
	}
	for (uint32_t i = m->n_heap / 2; i > 0; i--)
		heap_sift_down(m, i - 1);
	find_rival(m);
}

/* ---- The merger ---- */

int merger_new(struct merger **ret, const struct sample_options *options,
	       const struct sample_features *features)
{
	struct merger *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->read_lost = features->read_lost;
	m->sources.max = MAX_RINGS;
	event_layout(options, features, true, &m->sideband_layout);
	(void)merger_add_event(m, options, features);
	*ret = m;
	return 0;
}

int merger_add_event(struct merger *m, const struct sample_options *options,
		     const struct sample_features *features)
{
	if (m->n_events == SAMPLE_MAX_EVENTS)
		return -E2BIG;
	m->options[m->n_events] = *options;
	event_layout(options, features, false, &m->layouts[m->n_events++]);
	return 0;
}

struct merger *merger_free(struct merger *m)
{
	if (!m)
		return NULL;
	for (uint32_t i = 0; i < m->sources.n; i++)
		ring_unmap(&m->sources.items[i].ring);
	array_deinit(&m->sources);
	free(m->heap);
	free(m);
	return NULL;
}

void merger_keep_ledger(struct merger *m, struct ledger *ledger)
{
	m->ledger = ledger;
	for (uint32_t i = 0; i < SAMPLE_MAX_EVENTS; i++)
		m->start[i] = ledger_sum(ledger, i);
}

static struct sample_tally difference(struct sample_tally a, const struct sample_tally *b)
{
	a.samples -= b->samples;
	a.filtered -= b->filtered;
	a.lost -= b->lost;
	return a;
}

static void tally_add(struct sample_tally *to, const struct sample_tally *from)
{
	to->samples += from->samples;
	to->filtered += from->filtered;
	to->lost += from->lost;
}

static void release_held(struct merger *m)
{
	if (m->held)
		source_move_tail(m->held, m->held_tail);
	m->held = NULL;
}

/* Adds the ledger's counts of each ring to the start, so that it is exact to the sample. */
static void begin_source(struct merger *m, struct source *s)
{
	uint32_t index = s->sideband ? SAMPLE_MAX_EVENTS : s->index;
	struct sample_tally before = {0}, change;

	s->entry = m->ledger ? ledger_entry(m->ledger, index, s->cpu) : NULL;
	if (s->entry)
		before = ledger_tally(s->entry);
	source_begin(s);
	change = difference(s->now.tally, &before);
	if (!s->sideband)
		tally_add(&m->start[s->index], &change);
}

struct sample_tally merger_start(const struct merger *m, uint32_t index)
{
	return m->start[index];
}

int merger_add_ring(struct merger *m, int cpu, uint32_t index, const struct ring *ring)
{
	struct source *s;

	release_held(m);
	if (m->sources.n == m->cap_heap) {
		uint32_t cap = m->cap_heap ? m->cap_heap * 2 : 16;
		uint32_t *heap = realloc(m->heap, cap * sizeof(*heap));

		if (!heap)
			return -ENOMEM;
		m->heap = heap;
		m->cap_heap = cap;
	}
	s = array_push(&m->sources);
	if (!s)
		return m->sources.n == MAX_RINGS ? -E2BIG : -ENOMEM;
	s->ring = *ring;
	s->cpu = cpu;
	s->sideband = index == MERGE_SIDEBAND;
	s->index = s->sideband ? 0 : index;
	s->head = s->head_read = ring->tail;
	s->layout = s->sideband ? &m->sideband_layout : &m->layouts[s->index];
	s->sample_time_at = record_time_offset(s->layout, PERF_RECORD_SAMPLE, SIZE_MAX);
	begin_source(m, s);
	return 0;
}

static int map_and_add(struct merger *m, int cpu, uint32_t index, int fd, uint64_t bytes,
		       uint64_t default_bytes)
{
	bool is_mapped = bytes != 0;
	struct ring ring;
	int r;

	if (!is_mapped)
		bytes = default_bytes;
	r = ring_map(&ring, fd, &bytes, !is_mapped);
	if (r < 0)
		return r;
	r = merger_add_ring(m, cpu, index, &ring);
	if (r < 0)
		ring_unmap(&ring);
	return r;
}

void merger_replace_event(struct merger *m, int cpu, uint32_t index, int event_fd)
{
	for (uint32_t i = 0; i < m->sources.n; i++) {
		struct source *s = &m->sources.items[i];

		if (s->cpu == cpu && !s->sideband && s->index == index)
			source_replace_event(s, event_fd, m->read_lost);
	}
}

static void drop_rings(struct merger *m, int cpu, uint32_t from)
{
	uint32_t kept = from;

	for (uint32_t i = from; i < m->sources.n; i++) {
		if (m->sources.items[i].cpu == cpu)
			ring_unmap(&m->sources.items[i].ring);
		else
			m->sources.items[kept++] = m->sources.items[i];
	}
	m->sources.n = kept;
}

int merger_add_cpu(struct merger *m, const struct sample_cpu *c)
{
	const struct sample_options *o;
	uint32_t before = m->sources.n;
	int r;

	if (c->index >= m->n_events)
		return -EINVAL;
	o = &m->options[c->index];
	r = map_and_add(m, c->cpu, c->index, c->sample_fd, c->sample_ring_bytes, o->ring_bytes);
	if (r < 0 || c->sideband_fd < 0)
		return r;
	r = map_and_add(m, c->cpu, MERGE_SIDEBAND, c->sideband_fd, c->sideband_ring_bytes,
			o->sideband_bytes ? o->sideband_bytes : EVENT_SIDEBAND_BYTES);
	if (r < 0)
		drop_rings(m, c->cpu, before);
	return r;
}

static void release_all(struct merger *m)
{
	release_held(m);
	for (uint32_t i = 0; i < m->sources.n; i++) {
		if (m->sources.items[i].released != m->sources.items[i].ring.tail)
			source_release(&m->sources.items[i]);
	}
}

uint64_t merger_limit(const struct merger *m)
{
	return m->limit;
}

void merger_filter(struct merger *m)
{
	ensure(m->held && !m->held->sideband);
	m->held->now.tally.filtered++;
}

void merger_pass_over(struct merger *m)
{
	ensure(m->held && !m->held->sideband);
	m->held->now.tally.samples--;
}

void merger_remove_cpu(struct merger *m, int cpu)
{
	release_all(m);
	drop_rings(m, cpu, 0);
	heap_build(m);
}

static bool take_heads(struct merger *m, bool sideband)
{
	bool moved = false;

	for (uint32_t i = 0; i < m->sources.n; i++) {
		struct source *s = &m->sources.items[i];

		if (s->sideband != sideband)
			continue;
		s->head = source_load_head(s);
		moved |= s->head != s->head_read;
		s->head_read = s->head;
	}
	return moved;
}

static unsigned int fullest_percent(const struct merger *m)
{
	unsigned int fullest = 0;

	for (uint32_t i = 0; i < m->sources.n; i++) {
		const struct source *s = &m->sources.items[i];
		uint64_t used = s->head - s->ring.tail;
		unsigned int percent = (unsigned int)(used * 100 / s->ring.data_bytes);

		if (!s->sideband && percent > fullest)
			fullest = percent;
	}
	return fullest;
}

void merger_begin(struct merger *m, uint64_t settled_ns)
{
	bool moved;

	release_held(m);
	moved = take_heads(m, false);
	moved |= take_heads(m, true);
	m->may_raise = moved && settled_ns != UINT64_MAX && fullest_percent(m) < URGENT_PERCENT;
	m->limit = m->may_raise ? settled_ns : UINT64_MAX;
	heap_build(m);
}

/* To the latest record in view, less the guard. Those up to the limit are read by now; to look at
 * them, too, would be to fetch them twice. */
static void raise_limit(struct merger *m)
{
	uint64_t youngest = 0, limit;

	for (uint32_t i = 0; i < m->sources.n; i++) {
		uint64_t t = source_youngest(&m->sources.items[i]);

		youngest = t > youngest ? t : youngest;
	}
	limit = youngest > MERGE_GUARD_NS ? youngest - MERGE_GUARD_NS : 0;
	m->limit = limit > m->limit ? limit : m->limit;
	m->may_raise = false;
}

/* The ring with the oldest record; NULL: there is none, or it must wait. */
static struct source *next_source(struct merger *m)
{
	struct source *s;

	if (!m->n_heap)
		return NULL;
	s = &m->sources.items[m->heap[0]];
	if (s->next_time > m->limit && m->may_raise)
		raise_limit(m);
	return s->next_time <= m->limit ? s : NULL;
}

/* The ledger has it once the kernel has the record's space back. */
static inline void count(struct source *s, const struct record *r)
{
	if (r->type == RECORD_SAMPLE || r->type == RECORD_SWITCH)
		s->now.tally.samples++;
	else if (r->type == RECORD_LOST)
		s->now.tally.lost += r->lost;
}

/* What its bytes do not say. */
static inline void complete(struct source *s, struct record *r)
{
	r->from_sideband = s->sideband;
	r->index = s->index;
	if (!(s->layout->sample_type & PERF_SAMPLE_CPU))
		r->cpu = (uint32_t)s->cpu;
	if (r->type == RECORD_BAD)
		r->time_ns = s->next_time;
	/* LOST_SAMPLES counts samples that never reached the ring; read(2) does not count them. */
	if (r->type == RECORD_LOST && s->next.type == PERF_RECORD_LOST) {
		s->now.lost_recorded += r->lost;
		r->lost = source_lost_news(s);
	}
	if (!s->sideband)
		count(s, r);
}

/* The record at the source's tail. false: nobody wants it. */
static bool decode_next(struct merger *m, struct source *s, struct record *ret)
{
	if (!s->next.size) {
		*ret = (struct record){.type = RECORD_BAD};
		m->held_tail = s->head;
	} else {
		m->held_tail = s->ring.tail + s->next.size;
		if (!record_decode(s->layout, source_bytes(s, m->wrapped), s->next.size, ret))
			return false;
	}
	complete(s, ret);
	return true;
}

bool merger_next(struct merger *m, struct record *ret)
{
	bool wanted;

	do {
		struct source *s;

		release_held(m);
		s = next_source(m);
		if (!s) {
			release_all(m);
			return false;
		}
		ensure(m->n_heap < 2 || !source_before(m, m->heap[1], m->heap[0]));
		ensure(m->n_heap < 3 || !source_before(m, m->heap[2], m->heap[0]));
		wanted = decode_next(m, s, ret);
		m->held = s;
		/* The heap looks beyond the held record. */
		heap_go_on(m, s, source_peek(s, m->held_tail));
	} while (!wanted);
	return true;
}

uint64_t merger_read_count(const struct merger *m, uint32_t index)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < m->sources.n; i++) {
		const struct source *s = &m->sources.items[i];

		if (!s->sideband && s->index == index)
			sum += source_read_count(s);
	}
	return sum;
}

struct sample_losses merger_read_lost(struct merger *m)
{
	struct sample_losses sum = {0};

	release_all(m);
	for (uint32_t i = 0; i < m->sources.n && m->read_lost; i++) {
		struct source *s = &m->sources.items[i];
		uint64_t news;

		source_read_lost(s);
		news = source_lost_news(s);
		*(s->sideband ? &sum.sideband : &sum.samples[s->index]) += news;
		if (!news)
			continue;
		s->now.tally.lost += s->sideband ? 0 : news;
		source_release(s);
	}
	return sum;
}
