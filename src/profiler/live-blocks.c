/* SPDX-License-Identifier: Apache-2.0 */
#include "src/profiler/live-blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/process/kept-blocks.h"
#include "src/profiler/switches.h"
#include "util/ensure.h"
#include "util/hash.h"

#define N_BLOCK_CHAINS	 65536
#define N_PLACE_CHAINS	 16384
#define N_PROCESS_CHAINS 1024
#define N_ENDED		 256

struct live_block {
	struct live_block *next, **link;		   /* of its chain */
	struct live_block *next_of_place, **link_of_place; /* NULL: it has ended */
	struct block_place *place;
	uint64_t address, time_ns;
	double bytes, objects;
	uint32_t row; /* of the blocks that are kept */
};

struct block_place {
	struct live_place pub; /* first, and its stack is the one below */
	struct block_place *next, **link;
	struct block_place *next_of_process, **link_of_process;
	struct live_process *process;
	struct live_block *blocks;
	uint64_t hash;
	uint32_t n_refs; /* its blocks, with those that ended last */
	struct switch_stack stack;
};

struct live_process {
	struct live_process *next, **link;
	struct block_place *places;
	uint64_t table, exit_ns;
	uint32_t pid;
};

struct live_blocks {
	struct live_block *blocks[N_BLOCK_CHAINS];
	struct block_place *places[N_PLACE_CHAINS];
	struct live_process *processes[N_PROCESS_CHAINS];
	/* By thread: the block that ended last, as long as its end may be undone. */
	struct ended_block {
		struct live_block *block;
		uint32_t pid, tid;
	} ended[N_ENDED];
	uint32_t n_live, n, max; /* n: with those that ended last */
	uint64_t stack_bytes, max_stack_bytes;
	struct kept_blocks *kept; /* NULL: nobody else needs them */
	uint32_t *free_rows;	  /* of it, that were used before */
	uint32_t n_free_rows, end_row;
};

/* Lists whose items know what points to them. */
#define PUSH(head, item, next, link)                                                               \
	do {                                                                                       \
		(item)->next = (head);                                                             \
		(item)->link = &(head);                                                            \
		if (head)                                                                          \
			(head)->link = &(item)->next;                                              \
		(head) = (item);                                                                   \
	} while (0)
#define REMOVE(item, next, link)                                                                   \
	do {                                                                                       \
		*(item)->link = (item)->next;                                                      \
		if ((item)->next)                                                                  \
			(item)->next->link = (item)->link;                                         \
		(item)->link = NULL;                                                               \
	} while (0)

int live_blocks_new(struct live_blocks **ret, uint32_t max_blocks, uint64_t max_stack_bytes)
{
	struct live_blocks *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->max = max_blocks;
	b->max_stack_bytes = max_stack_bytes;
	*ret = b;
	return 0;
}

/* ---- Processes and places ---- */

static struct live_process **process_chain(const struct live_blocks *b, uint32_t pid)
{
	return (struct live_process **)&b->processes[hash_u64(pid) % N_PROCESS_CHAINS];
}

static struct live_process *find_process(const struct live_blocks *b, uint32_t pid)
{
	struct live_process *p = *process_chain(b, pid);

	while (p && p->pid != pid)
		p = p->next;
	return p;
}

static struct live_process *get_process(struct live_blocks *b, uint32_t pid)
{
	struct live_process *p = find_process(b, pid), **chain = process_chain(b, pid);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pid = pid;
	PUSH(*chain, p, next, link);
	return p;
}

static void drop_process_if_empty(struct live_process *p)
{
	if (p->places)
		return;
	REMOVE(p, next, link);
	free(p);
}

static size_t bytes_of(const struct switch_stack *s)
{
	return s->n_user * sizeof(*s->addresses);
}

static uint64_t hash_place(uint32_t pid, uint32_t tid, const struct switch_stack *s)
{
	return hash_bytes(s->addresses, bytes_of(s), hash_combine(pid, tid) + s->marker);
}

static struct block_place *find_place(const struct live_blocks *b, uint64_t hash,
				      const struct live_block_facts *f,
				      const struct switch_stack *s)
{
	struct block_place *p = b->places[hash % N_PLACE_CHAINS];

	while (p && (p->hash != hash || p->pub.pid != f->pid || p->pub.tid != f->tid ||
		     p->stack.n_user != s->n_user || p->stack.marker != s->marker ||
		     memcmp(p->stack.addresses, s->addresses, bytes_of(s)) != 0))
		p = p->next;
	return p;
}

static struct block_place *new_place(struct live_blocks *b, uint64_t hash,
				     const struct live_block_facts *f, const struct switch_stack *s)
{
	size_t n = bytes_of(s);
	struct block_place *p = NULL;

	if (b->stack_bytes + sizeof(*p) + n <= b->max_stack_bytes)
		p = malloc(sizeof(*p) + n);
	if (!p)
		return NULL;
	memset(p, 0, sizeof(*p));
	p->process = get_process(b, f->pid);
	if (!p->process) {
		free(p);
		return NULL;
	}
	p->stack = *s;
	memcpy(p->stack.addresses, s->addresses, n);
	p->pub = (struct live_place){
		.pid = f->pid, .tid = f->tid, .cpu = f->cpu, .stack = &p->stack};
	p->hash = hash;
	PUSH(b->places[hash % N_PLACE_CHAINS], p, next, link);
	PUSH(p->process->places, p, next_of_process, link_of_process);
	b->stack_bytes += sizeof(*p) + n;
	return p;
}

static void unref_place(struct live_blocks *b, struct block_place *p)
{
	if (--p->n_refs > 0)
		return;
	REMOVE(p, next, link);
	REMOVE(p, next_of_process, link_of_process);
	drop_process_if_empty(p->process);
	b->stack_bytes -= sizeof(*p) + bytes_of(&p->stack);
	free(p);
}

/* ---- Blocks ---- */

static struct live_block **block_chain(const struct live_blocks *b, uint32_t pid, uint64_t address)
{
	return (struct live_block **)&b->blocks[hash_combine(address, pid) % N_BLOCK_CHAINS];
}

static struct live_block *find_block(const struct live_blocks *b, uint32_t pid, uint64_t address)
{
	struct live_block *e = *block_chain(b, pid, address);

	while (e && (e->address != address || e->place->pub.pid != pid))
		e = e->next;
	return e;
}

static void add_to_place(struct live_place *p, const struct live_block *e, int sign)
{
	p->n += (uint32_t)sign;
	p->bytes += sign * e->bytes;
	p->objects += sign * e->objects;
	p->bytes_variance += sign * live_block_bytes_variance(e->bytes, e->objects);
	p->objects_variance += sign * live_block_objects_variance(e->objects);
}

static void keep(struct live_blocks *b, struct live_block *e)
{
	const struct live_place *p = &e->place->pub;
	const struct kept_block k = {
		.address = e->address,
		.table = e->place->process->table,
		.bytes = e->bytes,
		.objects = e->objects,
		.pid = p->pid,
		.tid = p->tid,
	};

	e->row = b->n_free_rows ? b->free_rows[--b->n_free_rows] : b->end_row++;
	kept_blocks_put(b->kept, e->row, &k);
}

static void keep_no_more(struct live_blocks *b, const struct live_block *e)
{
	kept_blocks_remove(b->kept, e->row);
	b->free_rows[b->n_free_rows++] = e->row;
}

static void begin(struct live_blocks *b, struct live_block *e)
{
	struct live_block **chain = block_chain(b, e->place->pub.pid, e->address);

	b->n_live++;
	PUSH(*chain, e, next, link);
	PUSH(e->place->blocks, e, next_of_place, link_of_place);
	add_to_place(&e->place->pub, e, 1);
	if (b->kept)
		keep(b, e);
}

static void end(struct live_blocks *b, struct live_block *e)
{
	b->n_live--;
	REMOVE(e, next, link);
	REMOVE(e, next_of_place, link_of_place);
	add_to_place(&e->place->pub, e, -1);
	if (b->kept)
		keep_no_more(b, e);
}

static void drop(struct live_blocks *b, struct live_block *e)
{
	struct block_place *place = e->place;

	free(e);
	b->n--;
	unref_place(b, place);
}

static void drop_ended(struct live_blocks *b, struct ended_block *slot)
{
	if (slot->block)
		drop(b, slot->block);
	slot->block = NULL;
}

static struct ended_block *ended_of(struct live_blocks *b, uint32_t tid)
{
	return &b->ended[tid % N_ENDED];
}

bool live_blocks_add(struct live_blocks *b, const struct live_block_facts *f,
		     const struct switch_stack *stack)
{
	uint64_t hash = hash_place(f->pid, f->tid, stack);
	struct live_block *e = find_block(b, f->pid, f->address);
	struct block_place *place;

	if (e) {
		end(b, e);
		drop(b, e);
	}
	if (b->n == b->max)
		return false;
	place = find_place(b, hash, f, stack);
	if (!place)
		place = new_place(b, hash, f, stack);
	if (!place)
		return false;
	place->n_refs++;
	e = calloc(1, sizeof(*e));
	if (!e) {
		unref_place(b, place);
		return false;
	}
	if (f->table)
		place->process->table = f->table;
	e->place = place;
	e->address = f->address;
	e->time_ns = f->time_ns;
	e->bytes = f->bytes;
	e->objects = f->objects;
	b->n++;
	begin(b, e);
	return true;
}

void live_blocks_end(struct live_blocks *b, uint32_t pid, uint32_t tid, uint64_t address)
{
	struct live_block *e = find_block(b, pid, address);
	struct ended_block *slot = ended_of(b, tid);

	drop_ended(b, slot);
	if (!e)
		return;
	end(b, e);
	*slot = (struct ended_block){e, pid, tid};
}

void live_blocks_undo_end(struct live_blocks *b, uint32_t pid, uint32_t tid, uint64_t address)
{
	struct ended_block *slot = ended_of(b, tid);
	struct live_block *e = slot->block;

	if (!e || slot->pid != pid || slot->tid != tid || e->address != address ||
	    e->place->pub.pid != pid || find_block(b, pid, address))
		return;
	slot->block = NULL;
	begin(b, e);
}

/* ---- Processes as a whole ---- */

static void drop_ended_of(struct live_blocks *b, uint32_t pid)
{
	for (uint32_t i = 0; i < N_ENDED; i++) {
		if (b->ended[i].block && b->ended[i].block->place->pub.pid == pid)
			drop_ended(b, &b->ended[i]);
	}
}

/* Its last block takes the place with it. */
static void prune_place(struct live_blocks *b, struct block_place *p, uint64_t time_ns,
			bool (*is_live)(void *ctx, uint64_t address), void *ctx, uint32_t *n)
{
	struct live_block *next;

	p->n_refs++;
	for (struct live_block *e = p->blocks; e; e = next) {
		next = e->next_of_place;
		if (e->time_ns >= time_ns || (is_live && is_live(ctx, e->address)))
			continue;
		end(b, e);
		drop(b, e);
		(*n)++;
	}
	unref_place(b, p);
}

uint32_t live_blocks_prune(struct live_blocks *b, uint32_t pid, uint64_t time_ns,
			   bool (*is_live)(void *ctx, uint64_t address), void *ctx)
{
	const struct live_process *process;
	struct block_place *next;
	uint32_t n = 0;

	drop_ended_of(b, pid);
	process = find_process(b, pid);
	for (struct block_place *p = process ? process->places : NULL; p; p = next) {
		next = p->next_of_process;
		prune_place(b, p, time_ns, is_live, ctx, &n);
	}
	return n;
}

void live_blocks_end_process(struct live_blocks *b, uint32_t pid)
{
	if (find_process(b, pid))
		(void)live_blocks_prune(b, pid, UINT64_MAX, NULL, NULL);
}

uint64_t live_blocks_table(const struct live_blocks *b, uint32_t pid)
{
	const struct live_process *p = find_process(b, pid);

	return p ? p->table : 0;
}

void live_blocks_set_exit(struct live_blocks *b, uint32_t pid, uint64_t time_ns)
{
	struct live_process *p = find_process(b, pid);

	if (p)
		p->exit_ns = time_ns;
}

uint64_t live_blocks_exit(const struct live_blocks *b, uint32_t pid)
{
	const struct live_process *p = find_process(b, pid);

	return p ? p->exit_ns : 0;
}

struct live_blocks *live_blocks_free(struct live_blocks *b)
{
	if (!b)
		return NULL;
	b->kept = NULL;
	free(b->free_rows);
	for (uint32_t i = 0; i < N_PROCESS_CHAINS; i++) {
		while (b->processes[i])
			live_blocks_end_process(b, b->processes[i]->pid);
	}
	free(b);
	return NULL;
}

uint32_t live_blocks_adopt(struct live_blocks *b, struct kept_blocks *k,
			   const struct switch_stack *stack)
{
	uint32_t end = kept_blocks_end(k);

	ensure(b->n == 0 && b->max <= KEPT_BLOCKS_MAX);
	b->free_rows = malloc(b->max * sizeof(*b->free_rows));
	if (!b->free_rows)
		return 0;
	b->kept = k;
	/* Rows before i have room. Whoever is killed here leaves a block in two rows, at worst. */
	for (uint32_t i = 0; i < end; i++) {
		struct kept_block found;

		if (kept_blocks_get(k, i, &found))
			(void)live_blocks_add(b,
					      &(struct live_block_facts){.address = found.address,
									 .table = found.table,
									 .bytes = found.bytes,
									 .objects = found.objects,
									 .pid = found.pid,
									 .tid = found.tid},
					      stack);
		if (i >= b->end_row)
			kept_blocks_remove(k, i);
	}
	return b->n_live;
}

static void each_of(const struct live_process *process,
		    void (*fn)(void *ctx, const struct live_place *place), void *ctx)
{
	for (const struct block_place *p = process ? process->places : NULL; p;
	     p = p->next_of_process) {
		if (p->blocks)
			fn(ctx, &p->pub);
	}
}

void live_blocks_each_of(const struct live_blocks *b, uint32_t pid,
			 void (*fn)(void *ctx, const struct live_place *place), void *ctx)
{
	each_of(find_process(b, pid), fn, ctx);
}

void live_blocks_each(const struct live_blocks *b,
		      void (*fn)(void *ctx, const struct live_place *place), void *ctx)
{
	for (uint32_t i = 0; i < N_PROCESS_CHAINS; i++) {
		for (const struct live_process *p = b->processes[i]; p; p = p->next)
			each_of(p, fn, ctx);
	}
}

uint32_t live_blocks_count(const struct live_blocks *b)
{
	return b->n_live;
}

uint32_t live_blocks_next_process(const struct live_blocks *b, uint32_t pid)
{
	const struct live_process *p = pid != UINT32_MAX ? find_process(b, pid) : NULL;
	uint32_t i = pid != UINT32_MAX ? (uint32_t)(hash_u64(pid) % N_PROCESS_CHAINS) + 1 : 0;

	p = p ? p->next : NULL;
	while (!p && i < N_PROCESS_CHAINS)
		p = b->processes[i++];
	return p ? p->pid : UINT32_MAX;
}
