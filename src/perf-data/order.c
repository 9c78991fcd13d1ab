/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records in the order of time. perf copies the rings of the CPUs one after another and writes a
 * mark after a round over all of them (FINISHED_ROUND). After a mark, no record to come is older
 * than the latest record before the previous mark. So records between two marks are noted (time and
 * place, not copied), sorted, and returned up to that time.
 *
 * A file without marks is one round. The number of waiting records is limited; at the limit the
 * older half is returned. A record that comes too late is returned at once, and counted.
 */
#include <errno.h>
#include <stdio.h>

#include "src/perf-data/internal.h"
#include "util/bisect.h"

#define MISC_FORK_SYNTHESIZED 0x2000 /* perf's PERF_RECORD_MISC_FORK_EXEC: mappings follow */

static void note_lost(struct perf_data *d, uint32_t type, const uint8_t *record, size_t n)
{
	struct cursor c = cursor_make(record, n);
	uint64_t lost;

	(void)cursor_take(&c, sizeof(struct perf_event_header));
	if (type == PERF_RECORD_LOST)
		(void)cursor_u64(&c);
	lost = cursor_u64(&c);
	/*
	 * LOST counts the records that found a ring full. LOST_SAMPLES is another count of the
	 * samples of one event among these (or of samples that the PMU dropped).
	 */
	if (type == PERF_RECORD_LOST)
		d->lost_records += lost;
	else
		d->lost_samples += lost;
	d->stats.lost = d->lost_records > d->lost_samples ? d->lost_records : d->lost_samples;
}

/* perf's own record for the kernel's text has its address: pid -1, "[kernel.kallsyms]_text". */
static bool note_kernel(struct perf_data *d, const uint8_t *record, size_t n)
{
	struct cursor c = cursor_make(record, n);
	const char *path;
	uint64_t start;
	uint32_t pid;

	(void)cursor_take(&c, sizeof(struct perf_event_header));
	pid = cursor_u32(&c);
	(void)cursor_u32(&c);
	start = cursor_u64(&c);
	(void)cursor_u64(&c);
	(void)cursor_u64(&c);
	if (!cursor_ok(&c) || pid != UINT32_MAX)
		return false;
	path = cursor_string(&c);
	if (path && strcmp(path, "[kernel.kallsyms]_text") == 0 && !d->host.kernel_text)
		d->host.kernel_text = start;
	return true;
}

/* Is the record needed? Counts those that are only counted. */
static bool is_wanted(struct perf_data *d, uint32_t type, const uint8_t *record, size_t n,
		      uint32_t attr)
{
	switch (type) {
	case PERF_RECORD_SAMPLE:
		if (d->by_read) {
			d->stats.other_samples++;
			return attr != UINT32_MAX &&
			       d->attrs.items[attr].attr.sample_type & PERF_SAMPLE_READ;
		}
		d->stats.samples += attr == d->chosen;
		d->stats.other_samples += attr != d->chosen;
		return attr == d->chosen;
	case PERF_RECORD_MMAP:
		return attr != UINT32_MAX && !note_kernel(d, record, n);
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_CGROUP:
	case PERF_RECORD_THROTTLE:
		return attr != UINT32_MAX;
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		note_lost(d, type, record, n);
		return false;
	default:
		return false;
	}
}

static int note_record(struct perf_data *d, uint32_t type, const uint8_t *record, size_t n)
{
	uint32_t attr = perf_data_attr_of(d, record, n, type);
	struct perf_data_pending *p;
	uint64_t time = 0;
	size_t at;

	if (!is_wanted(d, type, record, n, attr))
		return 0;
	at = record_time_offset(&d->attrs.items[attr].layout, type, n);
	if (at)
		memcpy(&time, record + at, sizeof(time));
	p = array_push(&d->pending);
	if (!p)
		return -ENOMEM;
	*p = (struct perf_data_pending){time, record, attr, 0};
	if (time > d->max_time_ns)
		d->max_time_ns = time;
	return 0;
}

static int compare_pending(const void *x, const void *y)
{
	const struct perf_data_pending *a = x, *b = y;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	/* At the same time: in the order of the file. */
	return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

/* Merges adjacent runs, two by two. Returns the new number of runs. */
static uint32_t merge_runs(const struct perf_data_pending *from, struct perf_data_pending *to,
			   uint32_t n)
{
	uint32_t n_runs = 0, at = 0;

	while (at < n) {
		uint32_t a = at, b = at + 1, end, b_end;

		while (b < n && compare_pending(&from[b - 1], &from[b]) <= 0)
			b++;
		end = b_end = b;
		while (b_end < n &&
		       (b_end == b || compare_pending(&from[b_end - 1], &from[b_end]) <= 0))
			b_end++;
		while (a < end && b < b_end)
			to[at++] = compare_pending(&from[a], &from[b]) <= 0 ? from[a++] : from[b++];
		while (a < end)
			to[at++] = from[a++];
		while (b < b_end)
			to[at++] = from[b++];
		n_runs++;
	}
	return n_runs;
}

/* The records of each CPU are in order: merging these few runs takes a tenth of the time of a sort.
 */
static void sort_pending(struct perf_data *d)
{
	uint32_t n = d->pending.n;
	_cleanup_free_ struct perf_data_pending *spare = malloc(((size_t)n + 1) * sizeof(*spare));
	struct perf_data_pending *from = d->pending.items, *to = spare;

	if (!spare) {
		if (n)
			qsort(from, n, sizeof(*from), compare_pending);
		return;
	}
	while (merge_runs(from, to, n) > 1) {
		struct perf_data_pending *swap = from;

		from = to;
		to = swap;
	}
	if (n && to == spare)
		memcpy(d->pending.items, spare, n * sizeof(*spare));
}

/* Drops the returned records and sorts those up to limit, which may be returned. */
static void make_ready(struct perf_data *d, uint64_t limit)
{
	sort_pending(d);
	d->n_ready = bisect(d->pending.n, i, d->pending.items[i].time_ns <= limit);
	d->next_ready = 0;
}

static void drop_told(struct perf_data *d)
{
	uint32_t left = d->pending.n - d->n_ready;

	if (!d->n_ready)
		return;
	memmove(d->pending.items, d->pending.items + d->n_ready, left * sizeof(*d->pending.items));
	d->pending.n = left;
	d->n_ready = d->next_ready = 0;
}

/* Notes records until some may be returned. 1; 0: no more records. */
static int fill(struct perf_data *d, char *error, size_t n_error)
{
	drop_told(d);
	while (!d->n_ready) {
		uint64_t step = perf_data_step(d, d->at), limit;
		struct perf_event_header h;
		int r = 0;

		if (!step) {
			/* A file that is cut ends within a record. */
			if (d->at < d->data_end && !d->stats.cut_bytes)
				d->stats.bad_at = d->at;
			d->data_end = d->at;
			make_ready(d, UINT64_MAX);
			return d->n_ready ? 1 : 0;
		}
		memcpy(&h, d->records + d->at, sizeof(h));
		if ((h.type == PERF_DATA_COMPRESSED || h.type == PERF_DATA_COMPRESSED2) &&
		    !d->inflated) {
			r = perf_data_inflate(d, error, n_error);
			if (r < 0)
				return r;
			continue;
		}
		d->stats.records++;
		if (h.type < PERF_DATA_FIRST_OWN_RECORD)
			r = note_record(d, h.type, d->records + d->at, h.size);
		if (r < 0)
			return r;
		d->at += step;
		if (h.type == PERF_DATA_FINISHED_ROUND) {
			limit = d->round_time_ns;
			d->round_time_ns = d->max_time_ns;
			make_ready(d, limit);
		} else if (d->pending.n == d->pending.max) {
			make_ready(d, UINT64_MAX);
			d->n_ready /= 2;
		}
	}
	return 1;
}

/* A sample of an event without stacks has at least its address. */
static void put_ip(struct record *r)
{
	if (r->sample.n_kernel || r->sample.n_user_chain)
		return;
	if (r->sample.in_kernel) {
		r->sample.kernel = &r->sample.ip;
		r->sample.n_kernel = 1;
	} else {
		r->sample.user_chain = &r->sample.ip;
		r->sample.n_user_chain = 1;
	}
}

/* false: not needed. */
static bool decode(struct perf_data *d, const struct perf_data_pending *p, struct record *ret)
{
	const uint8_t *bytes = p->bytes;
	struct perf_event_header h;

	memcpy(&h, bytes, sizeof(h));
	if ((uintptr_t)bytes & 7) {
		memcpy(d->copy, bytes, h.size);
		bytes = (const uint8_t *)d->copy;
	}
	if (!record_decode(&d->attrs.items[p->attr].layout, bytes, h.size, ret))
		return false;
	if (ret->type == RECORD_SAMPLE && d->by_read) {
		ret->sample.period = perf_data_read_period(d, ret);
		if (!ret->sample.period)
			return false;
		d->stats.samples++;
	}
	if (ret->type == RECORD_SAMPLE && !d->event.regs_mask)
		put_ip(ret);
	/* A process from before the recording: its own name and mappings follow. */
	if (ret->type == RECORD_FORK && ret->pid != ret->task.parent_pid &&
	    (h.misc & MISC_FORK_SYNTHESIZED || !p->time_ns))
		return false;
	return true;
}

int perf_data_next(struct perf_data *d, struct record *ret, char *error, size_t n_error)
{
	for (;;) {
		const struct perf_data_pending *p;

		if (d->next_ready == d->n_ready) {
			int r = fill(d, error, n_error);

			if (r <= 0)
				return r;
		}
		p = &d->pending.items[d->next_ready++];
		if (p->time_ns < d->told_time_ns)
			d->stats.late++;
		else
			d->told_time_ns = p->time_ns;
		if (decode(d, p, ret))
			return 1;
	}
}

const struct perf_data_stats *perf_data_stats(const struct perf_data *d)
{
	return &d->stats;
}
