/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two caches. One has, for each process, the functions of its jitdump file with the bytes that say
 * how to unwind them; the process that was walked the longest time ago goes first. The other has
 * modules made of these bytes, for functions that walks really reach. Modules are small and made in
 * microseconds; when there are many, all are freed between two walks. A module belongs to an
 * .eh_frame, not only to a place in memory: new code at an old place has another record, so it gets
 * another module.
 *
 * All this happens while the rings fill. So a walk reads at most 1 MiB of a file (a later walk
 * continues), and makes modules of at most MAX_WALK_BYTES: further functions have none.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/profiler/code-unwinding.h"
#include "symbolize/symbolize.h"
#include "util/cleanup.h"
#include "util/hash.h"

#define MAX_PROCESSES	  64
#define MAX_PROCESS_BYTES (UINT64_C(8) << 20)
#define MAX_BYTES	  (UINT64_C(24) << 20)
#define MAX_MODULES	  1024
#define MAX_WALK_BYTES	  (UINT64_C(256) << 10)
#define MODULE_BYTES	  1024 /* what making one costs beside reading it, in bytes read */

struct jit_process {
	uint32_t pid;
	uint64_t start_time_unix_ns, used;
	uint64_t number;  /* no other table has had it */
	uint64_t read_ns; /* the file was read up to this time */
	struct jitdump *dump;
};

struct code_module {
	struct module_key {
		uint64_t process, serial, address;
	} key;
	struct unwind_module *module;
};

struct code_unwinding {
	struct unwinder *unwinder;
	uint64_t turn, walk_bytes, last_number;
	struct jit_process processes[MAX_PROCESSES];
	uint32_t n;
	struct code_module modules[MAX_MODULES];
	uint32_t n_modules;
	struct hash_index index; /* of the modules */
	struct code_unwinding_stats stats;
};

int code_unwinding_new(struct code_unwinding **ret, struct unwinder *unwinder)
{
	struct code_unwinding *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->unwinder = unwinder;
	*ret = c;
	return 0;
}

static void forget_modules(struct code_unwinding *c)
{
	for (uint32_t i = 0; i < c->n_modules; i++)
		unwind_module_free(c->modules[i].module);
	c->n_modules = 0;
	hash_index_clear(&c->index);
}

struct code_unwinding *code_unwinding_free(struct code_unwinding *c)
{
	if (!c)
		return NULL;
	forget_modules(c);
	hash_index_deinit(&c->index);
	for (uint32_t i = 0; i < c->n; i++)
		jitdump_free(c->processes[i].dump);
	free(c);
	return NULL;
}

/* ---- Processes ---- */

static struct jit_process *coldest(struct code_unwinding *c)
{
	struct jit_process *p = &c->processes[0];

	for (uint32_t i = 1; i < c->n; i++) {
		if (c->processes[i].used < p->used)
			p = &c->processes[i];
	}
	return p;
}

static void forget_process(struct code_unwinding *c, struct jit_process *p)
{
	jitdump_free(p->dump);
	*p = c->processes[--c->n];
}

static struct jit_process *find_process(struct code_unwinding *c, uint32_t pid,
					uint64_t start_time_unix_ns)
{
	for (uint32_t i = 0; i < c->n; i++) {
		struct jit_process *p = &c->processes[i];

		if (p->pid == pid && p->start_time_unix_ns == start_time_unix_ns)
			return p;
	}
	return NULL;
}

static struct jit_process *get_process(struct code_unwinding *c, uint32_t pid,
				       uint64_t start_time_unix_ns)
{
	const struct symbol_limits limits = {.max_table_bytes = MAX_PROCESS_BYTES};
	struct jit_process *p = find_process(c, pid, start_time_unix_ns);

	if (p)
		return p;
	if (c->n == MAX_PROCESSES)
		forget_process(c, coldest(c));
	p = &c->processes[c->n];
	*p = (struct jit_process){
		.pid = pid, .start_time_unix_ns = start_time_unix_ns, .number = ++c->last_number};
	if (jitdump_new(&p->dump, &limits, JITDUMP_UNWINDING) < 0)
		return NULL;
	c->n++;
	return p;
}

static uint64_t tables_bytes(const struct code_unwinding *c)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < c->n; i++)
		bytes += jitdump_bytes(c->processes[i].dump);
	return bytes;
}

void code_unwinding_begin(struct code_unwinding *c)
{
	c->turn++;
	c->walk_bytes = 0;
	if (c->n_modules > MAX_MODULES / 2)
		forget_modules(c);
	while (c->n > 1 && tables_bytes(c) > MAX_BYTES)
		forget_process(c, coldest(c));
}

void code_unwinding_forget(struct code_unwinding *c, uint32_t pid, uint64_t start_time_unix_ns)
{
	struct jit_process *p = find_process(c, pid, start_time_unix_ns);

	if (p)
		forget_process(c, p);
}

/* Once a walk. That the file cannot be used is the symbolizer's to tell. */
static void read_on(struct code_unwinding *c, struct jit_process *p, int fd, uint64_t time_ns)
{
	if (p->used == c->turn && time_ns <= p->read_ns)
		return;
	p->used = c->turn;
	p->read_ns = time_ns;
	unwinder_tell_reading(c->unwinder, NULL, true);
	(void)jitdump_update(p->dump, fd, time_ns);
	unwinder_tell_reading(c->unwinder, NULL, false);
}

/* ---- Modules ---- */

static bool keys_equal(const struct module_key *a, const struct module_key *b)
{
	return a->process == b->process && a->serial == b->serial && a->address == b->address;
}

static uint64_t key_hash(const struct module_key *k)
{
	return hash_combine(hash_combine(k->process, k->serial), k->address);
}

/* NULL: not in this walk any more. */
static struct unwind_module *make_module(struct code_unwinding *c, const struct module_key *key,
					 const struct jitdump_unwinding *u)
{
	struct code_module *m = &c->modules[c->n_modules];

	c->walk_bytes += u->n_eh_frame + MODULE_BYTES;
	if (c->n_modules == MAX_MODULES || c->walk_bytes > MAX_WALK_BYTES ||
	    unwind_module_new_eh_frame(&m->module, c->unwinder, u->eh_frame, u->n_eh_frame,
				       u->address, "[jit]") < 0) {
		c->stats.modules_refused++;
		return NULL;
	}
	m->key = *key;
	if (hash_index_add(&c->index, key_hash(key), c->n_modules) < 0) {
		unwind_module_free(m->module);
		return NULL;
	}
	c->n_modules++;
	c->stats.modules_made++;
	return m->module;
}

static struct unwind_module *get_module(struct code_unwinding *c, const struct jit_process *p,
					const struct jitdump_unwinding *u)
{
	const struct module_key key = {p->number, u->serial, u->address};
	uint64_t hash = key_hash(&key);
	uint32_t slot = hash_index_first(&c->index, hash), row;

	while ((row = hash_index_row(&c->index, slot)) != HASH_INDEX_NONE) {
		if (hash_index_match(&c->index, slot, hash) &&
		    keys_equal(&c->modules[row].key, &key))
			return c->modules[row].module;
		slot = hash_index_next(&c->index, slot);
	}
	return make_module(c, &key, u);
}

void code_unwinding_find(struct code_unwinding *c, uint32_t pid, uint64_t start_time_unix_ns,
			 int fd, uint64_t time_ns, uint64_t address, struct unwind_mapping *mapping)
{
	struct jit_process *p = get_process(c, pid, start_time_unix_ns);
	struct jitdump_unwinding u;

	if (!p)
		return;
	read_on(c, p, fd, time_ns);
	if (!jitdump_has_unwinding(p->dump))
		return;
	if (jitdump_lookup_unwinding(p->dump, address, &u) == 0) {
		mapping->module = get_module(c, p, &u);
		mapping->start = u.start > mapping->start ? u.start : mapping->start;
		mapping->end = u.end < mapping->end ? u.end : mapping->end;
	} else {
		mapping->start = address;
		mapping->end = address + 1;
	}
}

void code_unwinding_stats(const struct code_unwinding *c, struct code_unwinding_stats *ret)
{
	*ret = c->stats;
	ret->bytes = tables_bytes(c);
	ret->refused = 0;
	for (uint32_t i = 0; i < c->n; i++)
		ret->refused += jitdump_refused(c->processes[i].dump);
}
