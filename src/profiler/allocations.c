/* SPDX-License-Identifier: Apache-2.0 */
#include "src/profiler/allocations.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/process/kept-blocks.h"
#include "src/profiler/allocators.h"
#include "src/profiler/attribute-internal.h"
#include "src/profiler/known-stacks.h"
#include "src/profiler/live-blocks.h"
#include "src/profiler/module-rows.h"
#include "src/profiler/outside.h"
#include "src/profiler/switches.h"
#include "src/profiler/walk.h"
#include "util/log.h"

#define MAX_STACK_BYTES (UINT64_C(24) << 20)
#define MAX_COPIES	64
#define N_TOLD		256
#define TELL_SECONDS	60

struct allocations {
	struct attribution *a;
	uint32_t picked, ended; /* indexes of the events, and of their types */
	uint32_t objects;	/* of the types behind */
	struct live_blocks *blocks;
	struct switch_stack *stack; /* of the block that is taken; room for max_frames */
	uint64_t random, time_ns;   /* time_ns: at which what is in use is told */
	uint64_t closed_ns;	    /* the end of the last window */
	uint64_t kept_from_ns;	    /* blocks from before are not in use; 0: not known yet */
	bool last;		    /* window of a capture */
	bool ends_missing;
	struct log_ratelimit full;
	struct told_block { /* by thread: the last one */
		uint32_t pid, tid;
		uint64_t address;
	} told[N_TOLD];
	/* Files of the library's name, or of runtimes, that were asked for in this window. */
	struct asked_copy {
		struct host_file_key key;
		uint64_t window;
	} asked[MAX_COPIES];
};

int allocations_new(struct allocations **ret, struct attribution *a)
{
	uint32_t picked = UINT32_MAX;
	struct allocations *l;
	int r;

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
	l->random = UINT64_C(0x9e3779b97f4a7c15);
	l->stack =
		malloc(sizeof(*l->stack) + ATTRIBUTION_MAX_KEPT(a) * sizeof(*l->stack->addresses));
	r = l->stack ? live_blocks_new(&l->blocks, KEPT_BLOCKS_MAX, MAX_STACK_BYTES) : -ENOMEM;
	if (r < 0) {
		allocations_free(l);
		return r;
	}
	*ret = l;
	return 0;
}

struct allocations *allocations_free(struct allocations *l)
{
	if (l) {
		live_blocks_free(l->blocks);
		free(l->stack);
		free(l);
	}
	return NULL;
}

void allocations_adopt(struct allocations *l, struct kept_blocks *k)
{
	static const struct switch_stack not_seen = {.marker = PROFILE_MARKER_NOT_SEEN,
						     .reason = PROFILE_N_MARKERS};
	uint32_t n = live_blocks_adopt(l->blocks, k, &not_seen);

	if (n == 0)
		return;
	log_info("%u sampled blocks in use are those of the profiler before this one: where they "
		 "were allocated is not known",
		 n);
	l->ends_missing = true;
}

void allocations_put_types(struct allocations *l)
{
	static const char *const names[ALLOCATIONS_MORE_TYPES] = {"alloc_objects", "inuse_objects"};

	l->objects = l->a->profile.n_types;
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

/* The fraction is the probability of the next number, so that sums stay right. */
static int64_t round_by_chance(struct allocations *l, double v)
{
	double whole = floor(v);

	l->random ^= l->random << 13;
	l->random ^= l->random >> 7;
	l->random ^= l->random << 17;
	return (int64_t)whole + ((double)(l->random >> 11) * 0x1p-53 < v - whole);
}

/* Bytes into the type of an event, objects into the one that belongs to it. what: their sums, of
 * how many blocks, and how far these may be off. */
static void add(struct allocations *l, uint32_t event, const struct profile_sample *where,
		const struct live_place *what)
{
	uint32_t type_of_objects = l->objects + (event == l->ended);
	struct profile *p = &l->a->profile;
	struct profile_sample s = *where;

	s.n = what->n;
	if (s.thread == PROFILE_NONE || s.stack == PROFILE_NONE) {
		p->types[event].counters[PROFILE_SAMPLES_DROPPED]++;
		return;
	}
	s.value = (int64_t)(what->bytes + 0.5);
	if (s.value > 0 && profile_add_sample_of(p, event, &s))
		p->types[event].variance += what->bytes_variance;
	s.value = round_by_chance(l, what->objects);
	if (s.value > 0 && profile_add_sample_of(p, type_of_objects, &s))
		p->types[type_of_objects].variance += what->objects_variance;
}

static void add_block(struct allocations *l, const struct profile_sample *where,
		      const struct live_block_facts *block)
{
	const struct live_place what = {
		.n = 1,
		.bytes = block->bytes,
		.objects = block->objects,
		.bytes_variance = live_block_bytes_variance(block->bytes, block->objects),
		.objects_variance = live_block_objects_variance(block->objects),
	};

	add(l, l->picked, where, &what);
}

/* ---- In use ---- */

static void tell_place(void *ctx, const struct live_place *place)
{
	struct allocations *l = ctx;
	struct attribution *a = l->a;
	const struct record r = {.pid = place->pid, .tid = place->tid, .time_ns = l->time_ns};
	struct profile_sample s = {.time_unix_ns = l->time_ns, .cpu = place->cpu};

	a->counters = a->profile.types[l->ended].counters;
	a->process = host_process_get(a->host, place->pid, place->tid, l->time_ns);
	a->time_ns = l->time_ns;
	s.thread = attribution_thread_row(a, &r, a->process);
	s.stack = attribution_known_stack(a, place->stack);
	add(l, l->ended, &s, place);
}

/* The process ends, or another program takes its place. tell: with what it has. */
static void end_process(struct allocations *l, uint32_t pid, uint64_t time_ns, bool tell)
{
	l->time_ns = time_ns;
	if (tell)
		live_blocks_each_of(l->blocks, pid, tell_place, l);
	live_blocks_end_process(l->blocks, pid);
}

/* Of processes whose main thread has ended those that have no other thread. */
static void end_gone(struct allocations *l, uint64_t time_ns)
{
	uint32_t pid, next = live_blocks_next_process(l->blocks, UINT32_MAX);

	while ((pid = next) != UINT32_MAX) {
		uint64_t exit_ns = live_blocks_exit(l->blocks, pid);

		next = live_blocks_next_process(l->blocks, pid);
		if (!exit_ns)
			continue;
		if (outside_has_ended(&l->a->outside, pid))
			end_process(l, pid, exit_ns > l->closed_ns ? exit_ns : time_ns,
				    l->a->setup->capture);
		else /* so that its code stays known */
			(void)host_process_get(l->a->host, pid, pid, time_ns);
	}
	l->closed_ns = time_ns;
}

void allocations_end(struct allocations *l)
{
	l->last = true;
}

/* ---- Ends that no record reports ---- */

void allocations_miss_ends(struct allocations *l)
{
	l->ends_missing = true;
}

static int compare_addresses(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

struct library_table {
	uint64_t *addresses; /* sorted */
	size_t n;
};

static bool is_in_table(void *ctx, uint64_t address)
{
	const struct library_table *t = ctx;

	return bsearch(&address, t->addresses, t->n, sizeof(address), compare_addresses) != NULL;
}

/* The library puts a block into the table before it reports it, so a known block that is not there
 * has ended. 0 or -errno. */
static int look_into_table(struct allocations *l, uint32_t pid, uint64_t *addresses)
{
	uint64_t table = live_blocks_table(l->blocks, pid);
	_cleanup_close_ int fd = table ? outside_open_table(&l->a->outside, pid, table) : -ENOENT;
	struct library_table t = {.addresses = addresses};
	uint32_t n;

	if (fd < 0)
		return fd;
	if (pread(fd, addresses, LIBRARY_TABLE_BYTES, 0) != (ssize_t)LIBRARY_TABLE_BYTES)
		return -EIO;
	for (size_t i = 0; i < LIBRARY_TABLE_BYTES / sizeof(*addresses); i++) {
		if (addresses[i])
			addresses[t.n++] = addresses[i];
	}
	qsort(addresses, t.n, sizeof(*addresses), compare_addresses);
	n = live_blocks_prune(l->blocks, pid, UINT64_MAX, is_in_table, &t);
	log_debug("process %u: %u blocks had ended unseen", pid, n);
	return 0;
}

static void find_ended(struct allocations *l, uint64_t time_ns)
{
	_cleanup_free_ uint64_t *addresses = malloc(LIBRARY_TABLE_BYTES);
	uint32_t pid = UINT32_MAX, next = live_blocks_next_process(l->blocks, pid);

	l->ends_missing = false;
	while (addresses && next != UINT32_MAX) {
		int r;

		pid = next;
		next = live_blocks_next_process(l->blocks, pid);
		r = look_into_table(l, pid, addresses);
		/* Put off until the next window? */
		l->ends_missing |= r == -EAGAIN;
		if ((r == -ENOENT || r == -ESRCH) && outside_has_ended(&l->a->outside, pid))
			end_process(l, pid, time_ns, l->a->setup->capture);
	}
}

void allocations_close(struct allocations *l, uint64_t time_ns)
{
	end_gone(l, time_ns);
	/* Also in a window of a capture that is not its last: a process may end before that. */
	if (l->ends_missing || l->a->profile.types[l->ended].counters[PROFILE_SAMPLES_LOST])
		find_ended(l, time_ns);
	if (l->a->setup->capture && !l->last)
		return;
	l->time_ns = time_ns;
	live_blocks_each(l->blocks, tell_place, l);
}

/* ---- Blocks ---- */

/* Copies the stack of the last walk, without the library's own frames, as addresses that outlive
 * the window. */
static void keep_block(struct allocations *l, const struct live_block_facts *block, uint32_t skip,
		       uint32_t n)
{
	const struct attribution *a = l->a;
	struct switch_stack *s = l->stack;

	*s = (struct switch_stack){.n_user = a->n_kept - skip,
				   .reason = PROFILE_N_MARKERS,
				   .marker = attribution_last_marker(a, n)};
	for (uint32_t i = 0; i < s->n_user; i++)
		s->addresses[i] = a->kept[skip + i];
	if (live_blocks_add(l->blocks, block, s))
		return;
	l->a->profile.types[l->ended].counters[PROFILE_SAMPLES_DROPPED]++;
	if (log_ratelimit(&l->full, TELL_SECONDS))
		log_warning("%u sampled blocks are in use: further ones are counted as allocated, "
			    "not as in use",
			    live_blocks_count(l->blocks));
}

/* Of frames that come with their names; else "". */
static const char *runtime_name(const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = &p->frames.items[frame];

	if (p->modules.items[f->module].kind != PROFILE_MODULE_RUNTIME || !f->n_lines)
		return "";
	return profile_text(p, p->functions.items[p->lines.items[f->first_line].function].name);
}

static bool is_library(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strcmp(slash ? slash + 1 : path, ALLOCATIONS_LIBRARY) == 0;
}

/* A frame of who allocates, below the program's own. */
static bool is_allocator(const struct attribution *a, const struct picked_block *b, uint32_t i)
{
	const struct profile *p = &a->profile;
	uint32_t frame = a->frames[i];

	if (b->places)
		return allocator_has(b, a->walked[i].address) ||
		       (frame != PROFILE_NONE && allocator_is_stub(runtime_name(p, frame)));
	return frame != PROFILE_NONE &&
	       is_library(profile_text(p, p->modules.items[p->frames.items[frame].module].path));
}

/* Of n frames; what is the runtime's own altogether stays as it is. */
static uint32_t count_allocator(const struct attribution *a, const struct picked_block *b,
				uint32_t n)
{
	uint32_t skip = 0;

	while (skip < a->n_walked && skip + 1 < n && is_allocator(a, b, skip))
		skip++;
	return b->places && skip == a->n_walked ? 0 : skip;
}

static bool is_told_again(struct allocations *l, const struct record *r,
			  const struct picked_block *b)
{
	struct told_block *last = &l->told[r->tid % N_TOLD];
	bool again = b->maybe_again && last->pid == r->pid && last->tid == r->tid &&
		     last->address == b->address;

	*last = (struct told_block){r->pid, r->tid, b->address};
	return again;
}

static void on_picked(struct allocations *l, const struct record *r)
{
	struct live_block_facts block = {
		.time_ns = r->time_ns, .pid = r->pid, .tid = r->tid, .cpu = r->cpu};
	struct profile_sample s = {
		.time_unix_ns = r->time_ns, .stack = PROFILE_NONE, .cpu = r->cpu};
	struct attribution *a = l->a;
	struct picked_block b;
	uint32_t skip, n;

	a->process = host_process_get(a->host, r->pid, r->tid, r->time_ns);
	a->time_ns = r->time_ns;
	if (!attribution_wants(a, r, a->process)) {
		a->counters[PROFILE_SAMPLES_FILTERED]++;
		return;
	}
	if (!allocator_read_picked(a, r, &b)) {
		a->profile.counters[PROFILE_RECORDS_BAD]++;
		return;
	}
	if (is_told_again(l, r, &b))
		return;
	block.address = b.address;
	block.table = b.table;
	block.bytes = b.bytes;
	block.objects = b.objects;
	s.thread = attribution_thread_row(a, r, a->process);
	n = attribution_walk_to_keep(a, r);
	skip = count_allocator(a, &b, n);
	if (n > skip)
		s.stack = profile_add_stack(&a->profile, a->frames + skip, n - skip, 0);
	add_block(l, &s, &block);
	if (b.ends && r->time_ns >= l->kept_from_ns)
		keep_block(l, &block, skip, n);
	else
		live_blocks_end(l->blocks, r->pid, r->tid, block.address);
}

static void on_ended(struct allocations *l, const struct record *r)
{
	struct attribution *a = l->a;
	uint64_t address;
	bool undone;

	a->process = host_process_get(a->host, r->pid, r->tid, r->time_ns);
	if (!allocator_read_ended(a, r, &address, &undone))
		a->profile.counters[PROFILE_RECORDS_BAD]++;
	else if (undone)
		live_blocks_undo_end(l->blocks, r->pid, r->tid, address);
	else
		live_blocks_end(l->blocks, r->pid, r->tid, address);
}

static void on_sample(struct allocations *l, const struct record *r)
{
	l->a->counters[PROFILE_SAMPLES]++;
	if (r->index == l->picked)
		on_picked(l, r);
	else
		on_ended(l, r);
}

void allocations_record(struct allocations *l, const struct record *r)
{
	if (!l->kept_from_ns)
		l->kept_from_ns =
			r->time_ns + l->a->setup->events[l->picked].options.grown_after_ns;
	switch (r->type) {
	case RECORD_SAMPLE:
		if (r->index == l->picked || r->index == l->ended)
			on_sample(l, r);
		break;
	case RECORD_EXIT:
		/* Others may go on without the main thread. */
		if (r->pid == r->tid)
			live_blocks_set_exit(l->blocks, r->pid, r->time_ns);
		break;
	case RECORD_FORK:
		/* The number goes to another process. */
		if (r->pid != r->task.parent_pid)
			end_process(l, r->pid, r->time_ns, l->a->setup->capture);
		break;
	case RECORD_COMM:
		if (r->comm.exec)
			end_process(l, r->pid, r->time_ns, false);
		break;
	default:
		break;
	}
}

/* ---- Copies of the library, and other allocators ---- */

/* Once a window: the process that it was asked for by may be gone. So many files at most. */
static bool is_to_be_asked(struct allocations *l, const struct host_file_key *key)
{
	struct asked_copy *place = NULL;

	for (uint32_t i = 0; i < MAX_COPIES; i++) {
		struct asked_copy *c = &l->asked[i];

		if (c->window != l->a->window)
			place = c;
		else if (c->key.inode == key->inode && c->key.major == key->major &&
			 c->key.minor == key->minor)
			return false;
	}
	if (place)
		*place = (struct asked_copy){*key, l->a->window};
	return place != NULL;
}

static void look_at_mapping(struct allocations *l, struct host_mapping *m)
{
	uint32_t pid = l->a->process->pid;
	const struct alloc_places *places;

	if (m->kind != HOST_MAPPING_FILE || !m->file)
		return;
	if (is_library(m->file->path)) {
		if (is_to_be_asked(l, &m->file->key))
			(void)outside_library_copy(&l->a->outside, pid, m->start, m->end,
						   &m->file->key, m->file->path);
		return;
	}
	places = allocator_is_likely(m->file->path) ? allocator_look(l->a, m) : NULL;
	if (places && is_to_be_asked(l, &m->file->key))
		(void)outside_allocator(&l->a->outside, pid, m, places);
}

void allocations_look(struct allocations *l)
{
	struct host_process *p = l->a->process;

	for (uint32_t i = 0; i < p->n_mappings; i++)
		look_at_mapping(l, &p->mappings[i]);
}

bool allocations_may_matter(const struct allocations *l, const char *path)
{
	/* A program that the daemon sees start it sees run. */
	return is_library(path) ||
	       ((l->a->setup->capture || l->a->setup->live) && allocator_is_likely(path));
}

void allocations_mapped(struct allocations *l, uint64_t address)
{
	struct attribution *a = l->a;
	struct host_mapping *m =
		a->process ? host_mapping_find(a->host, a->process, address, a->time_ns) : NULL;

	if (m)
		look_at_mapping(l, m);
}
