/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "src/profile/profile.h"

/* The share of max_bytes that texts may take. */
#define STRINGS_SHARE 4

void profile_init(struct profile *p, uint64_t max_bytes)
{
	*p = (struct profile){.max_bytes = max_bytes};
	strtab_init(&p->strings, max_bytes / STRINGS_SHARE);
	/* The byte budget bounds the tables; row numbers must not reach PROFILE_NONE. */
	p->modules.max = p->processes.max = p->threads.max = p->frames.max = p->functions.max =
		p->lines.max = p->stacks.max = p->stack_frames.max = p->residents.max =
			p->kills.max = p->victims.max = PROFILE_NONE - 1;
	for (uint32_t i = 0; i < PROFILE_MAX_TYPES; i++)
		p->types[i].samples.max = PROFILE_NONE - 1;
	p->n_types = 1;
}

static void each_index(struct profile *p, void (*f)(struct hash_index *))
{
	f(&p->module_index);
	f(&p->process_index);
	f(&p->thread_index);
	f(&p->frame_index);
	f(&p->function_index);
	f(&p->stack_index);
}

void profile_deinit(struct profile *p)
{
	each_index(p, hash_index_deinit);
	strtab_deinit(&p->strings);
	array_deinit(&p->modules);
	array_deinit(&p->processes);
	array_deinit(&p->threads);
	array_deinit(&p->frames);
	array_deinit(&p->functions);
	array_deinit(&p->lines);
	array_deinit(&p->stacks);
	array_deinit(&p->stack_frames);
	array_deinit(&p->residents);
	array_deinit(&p->kills);
	array_deinit(&p->victims);
	for (uint32_t i = 0; i < PROFILE_MAX_TYPES; i++)
		array_deinit(&p->types[i].samples);
}

void profile_clear(struct profile *p)
{
	each_index(p, hash_index_clear);
	strtab_clear(&p->strings);
	array_clear(&p->modules);
	array_clear(&p->processes);
	array_clear(&p->threads);
	array_clear(&p->frames);
	array_clear(&p->functions);
	array_clear(&p->lines);
	array_clear(&p->stacks);
	array_clear(&p->stack_frames);
	profile_clear_samples(p);
	profile_clear_counters(p);
	p->start_unix_ns = p->end_unix_ns = p->gaps_ns = 0;
	p->host_name = p->kernel_release = STRID_EMPTY;
}

uint32_t profile_n_samples(const struct profile *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->n_types; i++)
		n += p->types[i].samples.n;
	return n;
}

uint64_t profile_bytes(const struct profile *p)
{
	size_t n_samples = profile_n_samples(p);

	return p->strings.n_bytes + p->strings.n * 12 + p->modules.n * sizeof(*p->modules.items) +
	       p->processes.n * sizeof(*p->processes.items) +
	       p->threads.n * (sizeof(*p->threads.items) + 12) +
	       p->frames.n * (sizeof(*p->frames.items) + 12) +
	       p->functions.n * (sizeof(*p->functions.items) + 12) +
	       p->lines.n * sizeof(*p->lines.items) +
	       p->stacks.n * (sizeof(*p->stacks.items) + 12) +
	       p->stack_frames.n * sizeof(*p->stack_frames.items) +
	       p->residents.n * sizeof(*p->residents.items) + p->kills.n * sizeof(*p->kills.items) +
	       p->victims.n * sizeof(*p->victims.items) + n_samples * sizeof(struct profile_sample);
}

bool profile_nearly_full(const struct profile *p)
{
	return profile_bytes(p) >= p->max_bytes / 8 * 7 ||
	       p->strings.n_bytes >= p->strings.max_bytes / 8 * 7;
}

bool profile_has_room(const struct profile *p, uint64_t max_bytes)
{
	return profile_bytes(p) + max_bytes <= p->max_bytes &&
	       p->strings.n_bytes + max_bytes / STRINGS_SHARE <= p->strings.max_bytes;
}

static bool full(const struct profile *p, size_t more)
{
	return profile_bytes(p) + more > p->max_bytes;
}

/*
 * One interning loop for all tables. `equal` is an expression over `row`; after the macro row is
 * PROFILE_NONE if nothing matched.
 */
#define FIND_ROW(ix, hash, row, equal)                                                             \
	for (uint32_t slot_ = hash_index_first(ix, hash);                                          \
	     ((row) = hash_index_row(ix, slot_)) != HASH_INDEX_NONE;                               \
	     slot_ = hash_index_next(ix, slot_)) {                                                 \
		if (hash_index_match(ix, slot_, hash) && (equal))                                  \
			break;                                                                     \
	}

/* Appends *value to an array and its index; PROFILE_NONE: full or no memory. */
#define ADD_ROW(p, array, ix, hash, value)                                                         \
	({                                                                                         \
		uint32_t row_ = PROFILE_NONE;                                                      \
		__typeof__((array)->items) item_ =                                                 \
			full(p, sizeof(*item_)) ? NULL : array_push(array);                        \
		if (item_ && hash_index_add(ix, hash, (array)->n - 1) < 0) {                       \
			(array)->n--;                                                              \
			item_ = NULL;                                                              \
		}                                                                                  \
		if (item_) {                                                                       \
			*item_ = *(value);                                                         \
			row_ = (array)->n - 1;                                                     \
		}                                                                                  \
		row_;                                                                              \
	})

static void take_string(strid *have, strid more)
{
	if (*have == STRID_EMPTY)
		*have = more;
}

uint32_t profile_add_module(struct profile *p, const struct profile_module *m)
{
	uint64_t hash = hash_u64(m->uid);
	uint32_t row;

	FIND_ROW(&p->module_index, hash, row, p->modules.items[row].uid == m->uid);
	if (row == PROFILE_NONE)
		return ADD_ROW(p, &p->modules, &p->module_index, hash, m);

	struct profile_module *have = &p->modules.items[row];
	take_string(&have->path, m->path);
	take_string(&have->go_build_id, m->go_build_id);
	take_string(&have->htlhash, m->htlhash);
	take_string(&have->language, m->language);
	if (have->n_build_id == 0) {
		have->n_build_id = m->n_build_id;
		memcpy(have->build_id, m->build_id, sizeof(have->build_id));
	}
	if (have->memory_limit == 0) {
		have->memory_start = m->memory_start;
		have->memory_limit = m->memory_limit;
		have->file_offset = m->file_offset;
	}
	return row;
}

uint32_t profile_add_runtime(struct profile *p, enum profile_runtime runtime)
{
	struct profile_module m = {
		.uid = PROFILE_UID_FIRST_RUNTIME + (uint64_t)runtime,
		.kind = PROFILE_MODULE_RUNTIME,
		.runtime = runtime,
		.process = PROFILE_NONE,
	};
	char path[16];

	(void)snprintf(path, sizeof(path), "[%s]", profile_runtime_name(runtime));
	m.path = strtab_put(&p->strings, path);
	return profile_add_module(p, &m);
}

/* A container has one name, which may be found later; without an id only the name identifies it. */
static bool same_container(const struct profile_process *a, const struct profile_process *b)
{
	return a->container_id == b->container_id &&
	       (a->container_name == b->container_name ||
		(a->container_id != STRID_EMPTY &&
		 (a->container_name == STRID_EMPTY || b->container_name == STRID_EMPTY)));
}

/* It may say who it is some time after its first sample. */
static bool same_attributes(const struct profile_process *a, const struct profile_process *b)
{
	return a->attributes == b->attributes || a->attributes == STRID_EMPTY ||
	       b->attributes == STRID_EMPTY;
}

static bool process_equal(const struct profile_process *a, const struct profile_process *b)
{
	return a->pid == b->pid && a->start_time_unix_ns == b->start_time_unix_ns &&
	       a->comm == b->comm && a->executable_path == b->executable_path &&
	       a->cgroup == b->cgroup && a->systemd_unit == b->systemd_unit &&
	       same_container(a, b) && same_attributes(a, b);
}

uint32_t profile_add_process(struct profile *p, const struct profile_process *proc)
{
	uint64_t hash = hash_combine(
		hash_combine(hash_combine(proc->pid, proc->start_time_unix_ns), proc->systemd_unit),
		hash_combine((uint64_t)proc->comm << 32 | proc->executable_path,
			     (uint64_t)proc->cgroup << 32 | proc->container_id));
	uint32_t row;

	FIND_ROW(&p->process_index, hash, row, process_equal(&p->processes.items[row], proc));
	if (row == PROFILE_NONE)
		return ADD_ROW(p, &p->processes, &p->process_index, hash, proc);
	/* The cgroup's path has the container's id; its name may be found later. */
	take_string(&p->processes.items[row].container_name, proc->container_name);
	take_string(&p->processes.items[row].attributes, proc->attributes);
	p->processes.items[row].is_program |= proc->is_program;
	return row;
}

uint32_t profile_add_labelled_thread(struct profile *p, const struct profile_thread *t)
{
	uint64_t hash = hash_combine((uint64_t)t->process << 32 | t->tid,
				     (uint64_t)t->labels << 32 | t->name);
	uint32_t row;

	FIND_ROW(&p->thread_index, hash, row,
		 p->threads.items[row].process == t->process &&
			 p->threads.items[row].tid == t->tid &&
			 p->threads.items[row].name == t->name &&
			 p->threads.items[row].labels == t->labels);
	return row != PROFILE_NONE ? row : ADD_ROW(p, &p->threads, &p->thread_index, hash, t);
}

uint32_t profile_add_thread(struct profile *p, uint32_t process, uint32_t tid, strid name)
{
	const struct profile_thread t = {.process = process, .tid = tid, .name = name};

	return profile_add_labelled_thread(p, &t);
}

uint32_t profile_add_frame(struct profile *p, uint32_t module, uint64_t address)
{
	struct profile_frame f = {.address = address, .module = module};
	uint64_t hash = hash_combine(address, module);
	uint32_t row;

	if (module == PROFILE_NONE)
		return PROFILE_NONE;
	FIND_ROW(&p->frame_index, hash, row,
		 p->frames.items[row].address == address && p->frames.items[row].module == module);
	return row != PROFILE_NONE ? row : ADD_ROW(p, &p->frames, &p->frame_index, hash, &f);
}

static bool lines_equal(const struct profile *p, const struct profile_frame *f,
			const struct profile_line *lines, uint32_t n)
{
	return f->n_lines == n &&
	       (n == 0 || memcmp(p->lines.items + f->first_line, lines, n * sizeof(*lines)) == 0);
}

uint32_t profile_add_named_frame(struct profile *p, uint32_t module, uint64_t address,
				 const struct profile_line *lines, uint32_t n)
{
	struct profile_frame f = {.address = address, .module = module};
	uint64_t hash = hash_combine(hash_combine(address, module),
				     n ? hash_bytes(lines, n * sizeof(*lines), n) : 0);
	uint32_t row;

	if (module == PROFILE_NONE)
		return PROFILE_NONE;
	FIND_ROW(&p->frame_index, hash, row,
		 p->frames.items[row].address == address && p->frames.items[row].module == module &&
			 lines_equal(p, &p->frames.items[row], lines, n));
	if (row != PROFILE_NONE)
		return row;
	if (full(p, sizeof(f) + n * sizeof(*lines)))
		return PROFILE_NONE;
	row = ADD_ROW(p, &p->frames, &p->frame_index, hash, &f);
	/* A frame whose lines did not fit is never returned; nothing refers to its row. */
	return row == PROFILE_NONE || n == 0 || profile_name_frame(p, row, lines, n) ? row
										     : PROFILE_NONE;
}

uint32_t profile_add_function(struct profile *p, const struct profile_function *f)
{
	uint64_t hash = hash_combine(hash_combine((uint64_t)f->name << 32 | f->system_name,
						  (uint64_t)f->file << 32 | f->start_line),
				     f->module_name);
	uint32_t row;

	FIND_ROW(&p->function_index, hash, row,
		 p->functions.items[row].name == f->name &&
			 p->functions.items[row].system_name == f->system_name &&
			 p->functions.items[row].file == f->file &&
			 p->functions.items[row].start_line == f->start_line &&
			 p->functions.items[row].module_name == f->module_name &&
			 p->functions.items[row].language == f->language);
	return row != PROFILE_NONE ? row : ADD_ROW(p, &p->functions, &p->function_index, hash, f);
}

static bool stack_equal(const struct profile *p, uint32_t row, const uint32_t *frames, uint32_t n,
			uint32_t n_kernel)
{
	const struct profile_stack *s = &p->stacks.items[row];

	return s->n == n && s->n_kernel == n_kernel &&
	       (n == 0 ||
		memcmp(p->stack_frames.items + s->first, frames, n * sizeof(*frames)) == 0);
}

uint32_t profile_add_stack(struct profile *p, const uint32_t *frames, uint32_t n, uint32_t n_kernel)
{
	struct profile_stack s = {.first = p->stack_frames.n, .n = n, .n_kernel = n_kernel};
	uint64_t hash = hash_bytes(frames, n * sizeof(*frames), n_kernel);
	uint32_t row;

	FIND_ROW(&p->stack_index, hash, row, stack_equal(p, row, frames, n, n_kernel));
	if (row != PROFILE_NONE)
		return row;

	if (full(p, sizeof(s) + n * sizeof(*frames)))
		return PROFILE_NONE;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t *f = array_push(&p->stack_frames);

		if (!f) {
			p->stack_frames.n = s.first;
			return PROFILE_NONE;
		}
		*f = frames[i];
	}
	row = ADD_ROW(p, &p->stacks, &p->stack_index, hash, &s);
	if (row == PROFILE_NONE)
		p->stack_frames.n = s.first;
	return row;
}

bool profile_add_sample_of(struct profile *p, uint32_t type, const struct profile_sample *s)
{
	struct profile_sample *have =
		full(p, sizeof(*s)) ? NULL : array_push(&p->types[type].samples);

	if (!have) {
		p->types[type].counters[PROFILE_SAMPLES_DROPPED]++;
		return false;
	}
	*have = *s;
	return true;
}

bool profile_add_resident(struct profile *p, const struct profile_resident *r)
{
	struct profile_resident *have = full(p, sizeof(*r)) ? NULL : array_push(&p->residents);

	if (have)
		*have = *r;
	return have != NULL;
}

bool profile_add_kills(struct profile *p, const struct profile_kills *k)
{
	struct profile_kills *have = full(p, sizeof(*k)) ? NULL : array_push(&p->kills);

	if (have)
		*have = *k;
	return have != NULL;
}

bool profile_add_victim(struct profile *p, const struct profile_victim *v)
{
	struct profile_victim *have = full(p, sizeof(*v)) ? NULL : array_push(&p->victims);

	if (have)
		*have = *v;
	return have != NULL;
}

bool profile_add_sample(struct profile *p, const struct profile_sample *s)
{
	return profile_add_sample_of(p, 0, s);
}

bool profile_name_frame(struct profile *p, uint32_t frame, const struct profile_line *lines,
			uint32_t n)
{
	struct profile_frame *f = &p->frames.items[frame];
	uint32_t first = p->lines.n;

	if (f->n_lines > 0 || n == 0 || full(p, n * sizeof(*lines)))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		struct profile_line *l = array_push(&p->lines);

		if (!l) {
			p->lines.n = first;
			return false;
		}
		*l = lines[i];
	}
	f->first_line = first;
	f->n_lines = n;
	return true;
}

void profile_forget_names(struct profile *p, uint32_t module)
{
	for (uint32_t i = 0; i < p->frames.n; i++) {
		if (p->frames.items[i].module == module)
			p->frames.items[i].n_lines = p->frames.items[i].first_line = 0;
	}
}

void profile_set_nameless(struct profile *p, uint32_t frame)
{
	if (p->frames.items[frame].n_lines == 0)
		p->frames.items[frame].first_line = PROFILE_NONE;
}

static bool is_in_memory(const struct profile_module *m)
{
	return m->kind == PROFILE_MODULE_KERNEL || m->kind == PROFILE_MODULE_JIT;
}

void profile_hide_addresses(struct profile *p)
{
	for (uint32_t i = 0; i < p->frames.n; i++) {
		struct profile_frame *f = &p->frames.items[i];
		const struct profile_module *m = &p->modules.items[f->module];

		if (!is_in_memory(m))
			continue;
		f->address = f->address >= m->memory_start && f->address < m->memory_limit
				     ? f->address - m->memory_start
				     : 0;
	}
	for (uint32_t i = 0; i < p->modules.n; i++) {
		struct profile_module *m = &p->modules.items[i];

		if (!is_in_memory(m))
			continue;
		m->memory_limit -=
			m->memory_start < m->memory_limit ? m->memory_start : m->memory_limit;
		m->memory_start = 0;
	}
}

bool profile_wants_name(const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = &p->frames.items[frame];

	return f->n_lines == 0 && f->first_line != PROFILE_NONE;
}

void profile_retry_nameless(struct profile *p)
{
	for (uint32_t i = 0; i < p->frames.n; i++) {
		if (p->frames.items[i].n_lines == 0)
			p->frames.items[i].first_line = 0;
	}
}

bool profile_is_marked(const struct profile *p, uint32_t frame)
{
	uint32_t kind = p->modules.items[p->frames.items[frame].module].kind;

	return kind == PROFILE_MODULE_MARKER || kind == PROFILE_MODULE_DATA;
}

bool profile_is_wait(const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = &p->frames.items[frame];

	return p->modules.items[f->module].kind == PROFILE_MODULE_MARKER &&
	       f->address >= PROFILE_MARKER_WAIT && f->address <= PROFILE_MARKER_WAIT_FREEZER;
}
