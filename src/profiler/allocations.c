/* SPDX-License-Identifier: Apache-2.0 */
#include "src/profiler/allocations.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/profiler/attribute-internal.h"
#include "src/profiler/switches.h"
#include "util/log.h"

#define LIBRARY	     "libperfwalk-alloc.so"
#define N_CHAINS     65536
#define MAX_LIVE     262144
#define MAX_BYTES    (UINT64_C(1) << 48) /* of a block: who calls the marker may say anything */
#define MIN_MEAN     (UINT64_C(1) << 12)
#define MAX_MEAN     (UINT64_C(1) << 30)
#define TELL_SECONDS 60

/* A block that was picked, and has not ended. */
struct live_block {
	struct live_block *next;
	uint64_t address, time_ns;
	double bytes, objects; /* for how many it stands */
	uint32_t pid, tid, cpu;
	struct switch_stack *stack;
};

struct allocations {
	struct attribution *a;
	uint32_t picked, ended; /* indexes of the events, and of their types */
	uint32_t objects;	/* of the types behind */
	struct live_block *chains[N_CHAINS];
	uint32_t n_live;
	uint64_t random;
	struct log_ratelimit full;
};

int allocations_new(struct allocations **ret, struct attribution *a)
{
	uint32_t picked = UINT32_MAX;
	struct allocations *l;

	*ret = NULL;
	for (uint32_t i = 0; i < a->setup->n_events; i++) {
		if (a->setup->events[i].options.use == SAMPLE_USE_PICKED)
			picked = i;
	}
	if (picked == UINT32_MAX)
		return 0;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->a = a;
	l->picked = picked;
	l->ended = picked + 1;
	l->objects = a->setup->n_events;
	l->random = UINT64_C(0x9e3779b97f4a7c15);
	*ret = l;
	return 0;
}

static void forget(struct allocations *l, struct live_block **place)
{
	struct live_block *e = *place;

	*place = e->next;
	free(e->stack);
	free(e);
	l->n_live--;
}

struct allocations *allocations_free(struct allocations *l)
{
	for (uint32_t i = 0; l && i < N_CHAINS; i++) {
		while (l->chains[i])
			forget(l, &l->chains[i]);
	}
	free(l);
	return NULL;
}

void allocations_put_types(struct allocations *l)
{
	static const char *const names[ALLOCATIONS_MORE_TYPES] = {"alloc_objects", "inuse_objects"};

	for (uint32_t i = 0; i < ALLOCATIONS_MORE_TYPES; i++) {
		const struct profile_type t = {
			.period_events = 1,
			.event = strtab_put(&l->a->profile.strings, names[i]),
			.unit = strtab_put(&l->a->profile.strings, ""),
			.weighted = true,
		};

		(void)profile_add_type(&l->a->profile, &t);
	}
}

/* ---- Samples ---- */

/* The part behind the point decides how likely it is the next number: sums stay right. */
static int64_t round_by_chance(struct allocations *l, double v)
{
	double whole = floor(v);

	l->random ^= l->random << 13;
	l->random ^= l->random >> 7;
	l->random ^= l->random << 17;
	return (int64_t)whole + ((double)(l->random >> 11) * 0x1p-53 < v - whole);
}

/* Bytes into the type of an event, objects into the one that belongs to it. */
static void add(struct allocations *l, uint32_t event, const struct live_block *e, uint64_t time_ns,
		uint32_t thread, uint32_t stack)
{
	struct profile *p = &l->a->profile;
	struct profile_sample s = {
		.time_unix_ns = time_ns, .thread = thread, .stack = stack, .cpu = e->cpu, .n = 1};

	if (thread == PROFILE_NONE || stack == PROFILE_NONE) {
		p->types[event].counters[PROFILE_SAMPLES_DROPPED]++;
		return;
	}
	s.value = (int64_t)(e->bytes + 0.5);
	(void)profile_add_sample_of(p, event, &s);
	s.value = round_by_chance(l, e->objects);
	if (s.value > 0)
		(void)profile_add_sample_of(p, l->objects + (event == l->ended), &s);
}

static void tell_live(struct allocations *l, const struct live_block *e, uint64_t time_ns)
{
	struct attribution *a = l->a;
	const struct record r = {.pid = e->pid, .tid = e->tid, .time_ns = time_ns};

	a->counters = a->profile.types[l->ended].counters;
	a->process = host_process_get(a->host, e->pid, e->tid, time_ns);
	a->time_ns = time_ns;
	add(l, l->ended, e, time_ns, attribution_thread_row(a, &r, a->process),
	    attribution_known_stack(a, e->stack));
}

/* ---- Blocks ---- */

static struct live_block **chain_of(struct allocations *l, uint32_t pid, uint64_t address)
{
	uint64_t key = (address ^ (uint64_t)pid << 48) * UINT64_C(0x9e3779b97f4a7c15);

	return &l->chains[key >> 48];
}

/* One that ended, or that begins where another's end was lost. */
static void end_block(struct allocations *l, uint32_t pid, uint64_t address)
{
	for (struct live_block **p = chain_of(l, pid, address); *p; p = &(*p)->next) {
		if ((*p)->address == address && (*p)->pid == pid) {
			forget(l, p);
			return;
		}
	}
}

/* The process ends, or another program takes its place. tell: with what it has. */
static void end_process(struct allocations *l, const struct record *r, bool tell)
{
	for (uint32_t i = 0; i < N_CHAINS && l->n_live; i++) {
		for (struct live_block **p = &l->chains[i]; *p;) {
			if ((*p)->pid != r->pid) {
				p = &(*p)->next;
				continue;
			}
			if (tell)
				tell_live(l, *p, r->time_ns);
			forget(l, p);
		}
	}
}

/* What a walk left in the attribution, but for the library's own frames, as addresses that outlive
 * the window. */
static struct switch_stack *keep_stack(const struct attribution *a, uint32_t skip, uint32_t n)
{
	uint32_t n_user = a->n_walked - skip;
	struct switch_stack *s = malloc(sizeof(*s) + n_user * sizeof(*s->addresses));

	if (!s)
		return NULL;
	*s = (struct switch_stack){.n_user = n_user,
				   .reason = PROFILE_N_MARKERS,
				   .marker = attribution_last_marker(a, n)};
	for (uint32_t i = 0; i < n_user; i++)
		s->addresses[i] = a->walked[skip + i].address;
	return s;
}

static void keep_block(struct allocations *l, const struct live_block *block, uint32_t skip,
		       uint32_t n)
{
	struct live_block **chain = chain_of(l, block->pid, block->address), *e = NULL;

	if (l->n_live < MAX_LIVE)
		e = malloc(sizeof(*e));
	if (e) {
		*e = *block;
		e->stack = keep_stack(l->a, skip, n);
		e->next = *chain;
	}
	if (!e || !e->stack) {
		free(e);
		if (log_ratelimit(&l->full, TELL_SECONDS))
			log_warning("%u sampled blocks are in use: further ones are counted as "
				    "allocated, not as in use",
				    l->n_live);
		return;
	}
	*chain = e;
	l->n_live++;
}

static bool is_library(const struct attribution *a, uint32_t frame)
{
	const struct profile *p = &a->profile;
	const char *path, *slash;

	if (frame == PROFILE_NONE)
		return false;
	path = profile_text(p, p->modules.items[p->frames.items[frame].module].path);
	slash = strrchr(path, '/');
	return strcmp(slash ? slash + 1 : path, LIBRARY) == 0;
}

static void on_picked(struct allocations *l, const struct record *r, const uint64_t args[4])
{
	struct live_block block = {.address = args[0],
				   .time_ns = r->time_ns,
				   .pid = r->pid,
				   .tid = r->tid,
				   .cpu = r->cpu};
	uint64_t bytes = args[1], mean = args[2];
	struct attribution *a = l->a;
	uint32_t skip = 0, thread, stack = PROFILE_NONE, n;

	if (!bytes || bytes > MAX_BYTES || mean < MIN_MEAN || mean > MAX_MEAN) {
		a->profile.counters[PROFILE_RECORDS_BAD]++;
		return;
	}
	/* As likely as it was to be picked. */
	block.objects = 1 / -expm1(-(double)bytes / (double)mean);
	block.bytes = (double)bytes * block.objects;
	a->process = host_process_get(a->host, r->pid, r->tid, r->time_ns);
	a->time_ns = r->time_ns;
	if (!attribution_wants(a, r, a->process)) {
		a->counters[PROFILE_SAMPLES_FILTERED]++;
		return;
	}
	thread = attribution_thread_row(a, r, a->process);
	n = attribution_walk(a, r);
	while (skip < a->n_walked && skip + 1 < n && is_library(a, a->frames[skip]))
		skip++;
	if (n > skip)
		stack = profile_add_stack(&a->profile, a->frames + skip, n - skip, 0);
	add(l, l->picked, &block, r->time_ns, thread, stack);
	end_block(l, r->pid, args[0]);
	if (args[3])
		keep_block(l, &block, skip, n);
}

static void on_sample(struct allocations *l, const struct record *r)
{
	struct attribution *a = l->a;
	uint64_t args[SAMPLE_N_ARGUMENTS];

	a->counters[PROFILE_SAMPLES]++;
	if (!sample_arguments(&a->setup->events[r->index].options, r, args))
		a->profile.counters[PROFILE_RECORDS_BAD]++;
	else if (r->index == l->picked)
		on_picked(l, r, args);
	else
		end_block(l, r->pid, args[0]);
}

void allocations_record(struct allocations *l, const struct record *r)
{
	switch (r->type) {
	case RECORD_SAMPLE:
		if (r->index == l->picked || r->index == l->ended)
			on_sample(l, r);
		break;
	case RECORD_EXIT:
		if (r->pid == r->tid)
			end_process(l, r, true);
		break;
	case RECORD_COMM:
		if (r->comm.exec)
			end_process(l, r, false);
		break;
	default:
		break;
	}
}

void allocations_end(struct allocations *l, uint64_t time_ns)
{
	for (uint32_t i = 0; i < N_CHAINS && l->n_live; i++) {
		while (l->chains[i]) {
			tell_live(l, l->chains[i], time_ns);
			forget(l, &l->chains[i]);
		}
	}
}
