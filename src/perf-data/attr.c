/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of a perf.data file. A record does not describe its own layout: its event does. An id
 * in the record names the event, but its place depends on the event's layout. perf solves this by
 * giving several events one place for the id (SAMPLE_IDENTIFIER: first in a sample, last in all
 * other records) or one layout.
 */
#include <errno.h>
#include <stdio.h>

#include "src/perf-data/internal.h"
#include "util/bisect.h"
#include "util/clock.h"

#define GROUP_READ (PERF_FORMAT_GROUP | PERF_FORMAT_ID)

/* Does the event take samples with an address? The dummy event only carries the side band. */
static bool is_sampling(const struct perf_event_attr *a)
{
	return !(a->type == PERF_TYPE_SOFTWARE && a->config == PERF_COUNT_SW_DUMMY) &&
	       a->sample_type & PERF_SAMPLE_IP;
}

int perf_data_add_attr(struct perf_data *d, const uint8_t *bytes, size_t n, const uint8_t *ids,
		       uint64_t n_ids)
{
	struct perf_data_attr *a;

	if (n < PERF_ATTR_SIZE_VER0)
		return -EBADMSG;
	a = array_push(&d->attrs);
	if (!a)
		return d->attrs.n == d->attrs.max ? -E2BIG : -ENOMEM;
	/*
	 * An attr of a newer perf is longer, but the additional fields do not change what we read.
	 */
	memcpy(&a->attr, bytes, n < sizeof(a->attr) ? n : sizeof(a->attr));
	a->layout = (struct record_layout){
		.sample_type = a->attr.sample_type,
		.read_format = a->attr.read_format,
		.branch_type = a->attr.branch_sample_type,
		.regs_mask = a->attr.sample_regs_user,
		.kernel_regs_valid = UINT64_MAX,
		.sample_id_all = a->attr.sample_id_all,
	};
	perf_data_name_attr(&a->attr, a->name, sizeof(a->name));
	for (uint64_t i = 0; i < n_ids; i++) {
		struct perf_data_id *id = array_push(&d->ids);

		if (!id)
			return d->ids.n == d->ids.max ? -E2BIG : -ENOMEM;
		memcpy(&id->id, ids + 8 * i, sizeof(id->id));
		id->attr = d->attrs.n - 1;
	}
	return 0;
}

static int compare_ids(const void *x, const void *y)
{
	const struct perf_data_id *a = x, *b = y;

	return a->id < b->id ? -1 : a->id > b->id;
}

/* Finds the place of the id, if all events agree on it. */
static bool place_ids(struct perf_data *d)
{
	const uint64_t type = d->attrs.items[0].attr.sample_type;
	bool identifier = true, same = true;
	size_t at = sizeof(struct perf_event_header), from_end = 8;

	for (uint32_t i = 0; i < d->attrs.n; i++) {
		const struct perf_event_attr *a = &d->attrs.items[i].attr;

		identifier &= (a->sample_type & PERF_SAMPLE_IDENTIFIER) != 0;
		same &= a->sample_type == type &&
			a->sample_id_all == d->attrs.items[0].attr.sample_id_all;
	}
	if (identifier) {
		d->id_offset = at;
		d->id_from_end = d->attrs.items[0].attr.sample_id_all ? from_end : 0;
		return true;
	}
	if (!same || !(type & PERF_SAMPLE_ID))
		return false;
	at += type & PERF_SAMPLE_IP ? 8 : 0;
	at += type & PERF_SAMPLE_TID ? 8 : 0;
	at += type & PERF_SAMPLE_TIME ? 8 : 0;
	at += type & PERF_SAMPLE_ADDR ? 8 : 0;
	d->id_offset = at;
	from_end += type & PERF_SAMPLE_STREAM_ID ? 8 : 0;
	from_end += type & PERF_SAMPLE_CPU ? 8 : 0;
	d->id_from_end = d->attrs.items[0].attr.sample_id_all ? from_end : 0;
	return true;
}

uint32_t perf_data_find_id(const struct perf_data *d, uint64_t id)
{
	uint32_t at = bisect(d->ids.n, i, d->ids.items[i].id < id);

	return at < d->ids.n && d->ids.items[at].id == id ? d->ids.items[at].attr : UINT32_MAX;
}

uint32_t perf_data_attr_of(const struct perf_data *d, const uint8_t *record, size_t n,
			   uint32_t type)
{
	uint64_t id;
	size_t at;

	if (!d->by_id)
		return 0;
	if (type == PERF_RECORD_SAMPLE)
		at = d->id_offset;
	else if (d->id_from_end && n >= sizeof(struct perf_event_header) + d->id_from_end)
		at = n - d->id_from_end;
	else
		return 0;
	if (at + sizeof(id) > n)
		return UINT32_MAX;
	memcpy(&id, record + at, sizeof(id));
	/* Records that perf synthesized (mappings of earlier processes) have no id. */
	return id ? perf_data_find_id(d, id) : type == PERF_RECORD_SAMPLE ? UINT32_MAX : 0;
}

/* Is this an event that only counts, and is read at the samples of another? */
static bool is_read(const struct perf_event_attr *a)
{
	return a->sample_type & PERF_SAMPLE_READ && !a->sample_period &&
	       (a->read_format & GROUP_READ) == GROUP_READ;
}

static bool counts_time(const struct perf_event_attr *a)
{
	return a->type == PERF_TYPE_SOFTWARE &&
	       (a->config == PERF_COUNT_SW_CPU_CLOCK || a->config == PERF_COUNT_SW_TASK_CLOCK);
}

static bool is_cycles(const struct perf_event_attr *a)
{
	return a->type == PERF_TYPE_HARDWARE && a->config == PERF_COUNT_HW_CPU_CYCLES;
}

static void describe(struct perf_data *d)
{
	const struct perf_data_attr *a = &d->attrs.items[d->chosen];
	struct perf_data_event *e = &d->event;
	uint64_t n = a->attr.sample_freq; /* or sample_period, the same word */

	memcpy(e->name, a->name, sizeof(e->name));
	e->regs_mask = a->attr.sample_type & PERF_SAMPLE_REGS_USER ? a->attr.sample_regs_user : 0;
	e->stacks = e->regs_mask && a->attr.sample_type & PERF_SAMPLE_STACK_USER;
	e->callchains = (a->attr.sample_type & PERF_SAMPLE_CALLCHAIN) != 0;
	d->by_read = is_read(&a->attr);
	if (d->by_read) {
		e->weighted = true;
		e->period_events = 1;
		return;
	}
	/* As in our own captures: cycles at a rate are a way to sample time. */
	if (a->attr.freq && n && n <= NSEC_PER_SEC) {
		e->rate_hz = (uint32_t)n;
		if (counts_time(&a->attr) || is_cycles(&a->attr)) {
			e->period_ns = NSEC_PER_SEC / n;
			return;
		}
		e->weighted = (a->attr.sample_type & PERF_SAMPLE_PERIOD) != 0;
	} else if (!a->attr.freq && counts_time(&a->attr) && n && n <= NSEC_PER_SEC) {
		e->rate_hz = (uint32_t)(NSEC_PER_SEC / n);
		e->period_ns = n;
		return;
	}
	e->period_events = a->attr.freq || !n ? 1 : n;
}

/* "cycles" is "cycles:P" and "cycles/period=1/" too; a tracepoint has its colon in its name. */
static bool is_named(const struct perf_data_attr *a, const char *name)
{
	size_t n = strlen(name);

	return strncmp(a->name, name, n) == 0 &&
	       (!a->name[n] || a->name[n] == ':' || a->name[n] == '/');
}

/* No event has the wanted name. */
static int refuse_name(const struct perf_data *d, char *error, size_t n_error)
{
	int at = snprintf(error, n_error, "it has no samples of an event \"%s\"; there are",
			  d->wanted_event);

	for (uint32_t i = 0; i < d->attrs.n && at >= 0 && (size_t)at < n_error; i++) {
		const struct perf_data_attr *a = &d->attrs.items[i];

		if (is_sampling(&a->attr))
			at += snprintf(error + at, n_error - (size_t)at, " %s", a->name);
	}
	return -EBADMSG;
}

#define EXACT_NAME 2 /* counts more than having stacks */

int perf_data_choose(struct perf_data *d, char *error, size_t n_error)
{
	uint32_t best = UINT32_MAX, n_sampling = 0;
	int best_rank = -1;

	for (uint32_t i = 0; i < d->attrs.n; i++) {
		const struct perf_event_attr *a = &d->attrs.items[i].attr;
		int rank = a->sample_type & PERF_SAMPLE_STACK_USER  ? 2
			   : a->sample_type & PERF_SAMPLE_CALLCHAIN ? 2
								    : 1;

		if (!is_sampling(a))
			continue;
		n_sampling++;
		if (d->wanted_event && !is_named(&d->attrs.items[i], d->wanted_event))
			continue;
		if (d->wanted_event && strcmp(d->attrs.items[i].name, d->wanted_event) == 0)
			rank += EXACT_NAME;
		if (rank > best_rank) {
			best_rank = rank;
			best = i;
		}
	}
	if (best == UINT32_MAX && n_sampling && d->wanted_event)
		return refuse_name(d, error, n_error);
	if (best == UINT32_MAX) {
		(void)snprintf(error, n_error,
			       "none of its %u events has samples with an address: record with "
			       "perf record --call-graph dwarf",
			       d->attrs.n);
		return -EBADMSG;
	}
	if (d->ids.n)
		qsort(d->ids.items, d->ids.n, sizeof(*d->ids.items), compare_ids);
	if (d->attrs.n > 1) {
		d->by_id = place_ids(d);
		if (!d->by_id) {
			(void)snprintf(error, n_error,
				       "its %u events have records of different layout, and no "
				       "id in a record tells them apart: record one event (-e)",
				       d->attrs.n);
			return -EOPNOTSUPP;
		}
	}
	d->chosen = best;
	d->event.n_others = n_sampling - 1;
	describe(d);
	return 0;
}
