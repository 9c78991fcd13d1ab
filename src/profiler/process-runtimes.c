/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "src/profiler/attribute-internal.h"
#include "src/profiler/chains.h"
#include "src/profiler/module-rows.h"
#include "src/profiler/outside.h"
#include "src/profiler/process-memory.h"
#include "src/profiler/process-runtimes.h"
#include "util/clock.h"
#include "util/runtime-files.h"

#define LEFT_OUT_NS    (60 * NSEC_PER_SEC)
#define YOUNG_DRAIN_NS (10 * NSEC_PER_MSEC)
#define DRAINS_OF_LIFE 40
#define MARKED_RANK    2 /* what a file exports is as certain as a library's name */

static int rank_of(const char *path, enum runtime_use use)
{
	return runtime_file_rank(path, strlen(path), use);
}

static int rank_of_file(const struct host_file *file, enum runtime_use use)
{
	const struct file_state *s = file->user;

	return s && s->marks & use ? MARKED_RANK : rank_of(file->path, use);
}

/* Files of interpreters, each of another one: those that are read, or to be read. */
struct chosen {
	const struct host_file *files[CLIENT_MAX_IMAGES];
	uint32_t n;
};

/* Is it of one of these interpreters, perhaps another part of it, such as its program? */
static bool is_chosen(const struct chosen *c, const struct host_file *file)
{
	for (uint32_t i = 0; i < c->n; i++) {
		if (file == c->files[i] ||
		    runtime_files_are_alike(c->files[i]->path, file->path, RUNTIME_CHAINS))
			return true;
	}
	return false;
}

/* The mapped file that is the most telling one, of none that is chosen; NULL: none is mapped. */
static struct host_mapping *find_file(const struct host_process *p, enum runtime_use use,
				      const struct chosen *chosen)
{
	struct host_mapping *found = NULL;
	int rank = 0;

	for (uint32_t i = 0; i < p->n_mappings; i++) {
		struct host_mapping *m = &p->mappings[i];
		int its = m->kind == HOST_MAPPING_FILE ? rank_of_file(m->file, use) : 0;

		if (its > rank && !is_chosen(chosen, m->file)) {
			found = m;
			rank = its;
		}
	}
	return found;
}

static const struct chosen none_chosen;

static bool is_walked(const struct attribution *a, const struct host_mapping *m)
{
	for (uint32_t i = 0; i < a->n_walked; i++) {
		if (a->walked[i].address >= m->start && a->walked[i].address < m->end)
			return true;
	}
	return false;
}

bool attribution_passes_second(const struct attribution *a)
{
	const struct process_state *s = a->process ? a->process->user : NULL;
	struct chosen chosen = {.n = 0};
	const uint64_t *images;

	if (!s || !s->interpreter || !s->interpreter_second)
		return false;
	images = interpreter_images(s->interpreter);
	for (int k = 0; k < CLIENT_MAX_IMAGES && images[k]; k++) {
		chosen.files[chosen.n] = chains_file_at(a->process, images[k]);
		chosen.n += chosen.files[chosen.n] != NULL;
	}
	for (uint32_t i = 0; chosen.n > 0 && i < a->process->n_mappings; i++) {
		const struct host_mapping *m = &a->process->mappings[i];

		if (m->kind == HOST_MAPPING_FILE && is_walked(a, m) &&
		    rank_of_file(m->file, RUNTIME_CHAINS) > 0 && !is_chosen(&chosen, m->file))
			return true;
	}
	return false;
}

/* The file must be open: then the broker has checked that its filesystem answers. NULL: it is no
 * program that can be read. *ret_later: there was no time to open it. */
static const struct file_state *open_runtime(struct attribution *a, struct host_mapping *m,
					     bool *ret_later)
{
	const struct file_state *file = m ? attribution_open_file(a, m) : NULL;

	*ret_later = file && !file->tried && !m->file->tried;
	return file && file->module ? file : NULL;
}

static struct process_runtime *find_runtime(struct attribution *a, bool *ret_later)
{
	struct host_mapping *m = find_file(a->process, RUNTIME_STEPS, &none_chosen);

	if (!open_runtime(a, m, ret_later))
		return NULL;
	return runtimes_add_process(a->runtimes, a->process->pid, m->start - m->file_offset,
				    m->file->key.major, m->file->key.minor);
}

/* NULL: no memory. Another program may have its interpreter at the same place, but in memory of its
 * own. */
static struct process_state *state_of_program(struct attribution *a)
{
	struct process_state *s = attribution_process_state(a->process);

	if (!s || s->n_execs == a->process->n_execs)
		return s;
	s->n_execs = a->process->n_execs;
	s->interpreter_left_out = s->interpreter_hidden = s->interpreter_second = false;
	s->runtime = runtimes_free_process(a->runtimes, s->runtime);
	attribution_free_interpreter(a, s);
	s->n_runtime_mappings = s->n_interpreter_mappings = 0;
	return s;
}

/* Looked for only once a frame is in code of no file, and once more when there are new mappings or
 * marked files. */
static struct process_runtime *runtime_of(struct attribution *a)
{
	struct process_state *s = state_of_program(a);
	bool later;

	if (!s || s->runtime ||
	    (s->n_runtime_mappings == a->process->n_mappings && s->n_runtime_marked == a->n_marked))
		return s ? s->runtime : NULL;
	s->runtime = find_runtime(a, &later);
	if (!later) {
		s->n_runtime_mappings = a->process->n_mappings;
		s->n_runtime_marked = a->n_marked;
	}
	return s->runtime;
}

/* May there be another answer by now, though it has the same mappings? */
static bool is_to_be_asked_again(struct attribution *a, struct process_state *s)
{
	if (s->interpreter_left_out)
		return a->time_ns >= s->left_out_ns + LEFT_OUT_NS;
	if (!s->interpreter || interpreter_is_in(s->interpreter, a->time_ns))
		return s->n_interpreter_marked != a->n_marked;
	/* The contexts of its threads are found by a new look. */
	attribution_free_interpreter(a, s);
	attribution_free_span(a, s);
	return true;
}

static void add_interpreter(struct attribution *a, struct process_state *s,
			    const struct host_file_key *key,
			    const uint64_t images[CLIENT_MAX_IMAGES])
{
	attribution_free_interpreter(a, s);
	attribution_let_read(a, s, a->process, images, key);
	s->interpreter_left_out = !s->interpreter;
	s->left_out_ns = a->time_ns;
	if (a->blocked)
		s->blocked = blocked_chain_new(a->blocked, a->process->pid, images, key->major,
					       key->minor);
}

static struct process_state *state_with_interpreter(struct attribution *a, uint32_t pid,
						    uint32_t tid, uint64_t time_ns)
{
	struct host_process *p = a->readers ? host_process_get(a->host, pid, tid, time_ns) : NULL;
	struct process_state *s = p ? p->user : NULL;

	return s && s->interpreter ? s : NULL;
}

/* What a thread has of its own is gone at its end, and frames of it cannot be read late. */
static void see_thread(struct attribution *a, const struct record *r)
{
	const struct host_process *p = a->runtimes ? host_process_peek(a->host, r->pid) : NULL;
	const struct process_state *s = p ? p->user : NULL;

	if (s && s->runtime && runtimes_see_thread(s->runtime))
		a->newest_runtime_ns = clock_monotonic_ns();
}

void attribution_see_fork(struct attribution *a, const struct record *r)
{
	if (r->pid == r->task.parent_pid)
		see_thread(a, r);
	if (r->pid != r->task.parent_pid && a->n_forked < ARRAY_SIZE(a->forked) &&
	    state_with_interpreter(a, r->task.parent_pid, r->task.parent_tid, r->time_ns))
		a->forked[a->n_forked++] = r->pid;
}

void attribution_see_exit(struct attribution *a, const struct record *r)
{
	const struct host_process *p = r->pid == r->tid ? host_process_peek(a->host, r->pid) : NULL;
	const struct process_state *s = p ? p->user : NULL;

	if (s && s->interpreter)
		interpreter_set_ended(s->interpreter);
}

void attribution_look_at_forked(struct attribution *a, uint64_t time_ns)
{
	for (uint32_t i = 0; i < a->n_forked; i++) {
		struct host_process *p =
			host_process_get(a->host, a->forked[i], a->forked[i], time_ns);

		if (!p || p->n_execs > 0)
			continue;
		a->process = p;
		a->time_ns = time_ns;
		attribution_look_for_interpreter(a);
	}
	a->n_forked = 0;
}

/* The interpreters of a process. */
struct found_interpreters {
	uint64_t images[CLIENT_MAX_IMAGES]; /* that can be read, the most telling one first */
	const struct host_file_key *key;    /* of the first one's file: all are on its filesystem */
	bool any;			    /* there is one, perhaps none that can be read */
	bool others;			    /* one is left out beside those that can be read */
};

static bool is_beside(const struct found_interpreters *found, const struct host_file_key *key)
{
	return !found->key || (found->key->major == key->major && found->key->minor == key->minor);
}

/* false: there was no time to open all. */
static bool find_interpreters(struct attribution *a, struct found_interpreters *ret)
{
	struct chosen chosen = {.n = 0};
	struct host_mapping *m;
	bool later;

	*ret = (struct found_interpreters){.any = false};
	while ((m = find_file(a->process, RUNTIME_CHAINS, &chosen))) {
		bool is_open = open_runtime(a, m, &later) != NULL;

		if (later)
			return false;
		ret->any = true;
		if (!is_open || chosen.n == CLIENT_MAX_IMAGES || !is_beside(ret, &m->file->key)) {
			ret->others = chosen.n > 0;
			break;
		}
		ret->key = ret->key ? ret->key : &m->file->key;
		ret->images[chosen.n] = m->start - m->file_offset;
		chosen.files[chosen.n++] = m->file;
	}
	return true;
}

/* Looked for when there are new mappings, since a process that executes another program has others,
 * or new marked files. */
void attribution_look_for_interpreter(struct attribution *a)
{
	struct process_state *s = state_of_program(a);
	struct found_interpreters found;

	if (!s || a->process->exited ||
	    (!is_to_be_asked_again(a, s) && s->n_interpreter_mappings == a->process->n_mappings))
		return;
	if (!find_interpreters(a, &found))
		return;
	s->n_interpreter_mappings = a->process->n_mappings;
	s->n_interpreter_marked = a->n_marked;
	s->interpreter_second = found.others;
	s->interpreter_hidden = !found.any && find_file(a->process, RUNTIME_HIDDEN, &none_chosen);
	if (s->interpreter && !interpreter_has_images(s->interpreter, found.images)) {
		attribution_free_interpreter(a, s);
		/* It is told anew with the next one. */
		attribution_free_span(a, s);
	}
	if (found.key && !s->interpreter)
		add_interpreter(a, s, found.key, found.images);
}

void attribution_look_into_program(struct attribution *a)
{
	for (uint32_t i = 0; i < a->process->n_mappings; i++) {
		if (a->process->mappings[i].kind == HOST_MAPPING_FILE) {
			(void)attribution_open_file(a, &a->process->mappings[i]);
			return;
		}
	}
}

uint64_t attribution_drain_ns(const struct attribution *a)
{
	uint64_t ns = (clock_monotonic_ns() - a->newest_runtime_ns) / DRAINS_OF_LIFE;

	if (!a->newest_runtime_ns)
		return UINT64_MAX;
	return ns > YOUNG_DRAIN_NS ? ns : YOUNG_DRAIN_NS;
}

void attribution_see_mapping(struct attribution *a, const struct record *r)
{
	const struct record its = {.pid = r->pid, .tid = r->tid, .time_ns = r->time_ns};
	bool chains = rank_of(r->mmap.path, RUNTIME_CHAINS) > 0;

	/* Trampolines of an interpreter's frames need no memory. */
	if (a->runtimes && !chains && rank_of(r->mmap.path, RUNTIME_STEPS) > 0)
		a->newest_runtime_ns = clock_monotonic_ns();
	if (!a->readers || !chains)
		return;
	a->process = host_process_peek(a->host, r->pid);
	a->time_ns = r->time_ns;
	/* Of a process that is not known the first sample tells more. */
	if (a->process && a->process->mappings_known && attribution_wants(a, &its, a->process))
		attribution_look_for_interpreter(a);
}

static enum unwind_answer step_runtime(void *ctx, const struct unwind_foreign *frame,
				       struct unwind_regs *regs, enum unwind_outcome *ret_outcome,
				       uint64_t *ret_missing)
{
	struct attribution *a = ctx;
	struct process_runtime *runtime = runtime_of(a);

	return runtime ? runtimes_step(a->runtimes, runtime, frame, regs, ret_outcome, ret_missing)
		       : UNWIND_NOT_MINE;
}

static int open_memory(void *ctx, uint32_t pid, uint64_t image)
{
	return outside_open_memory(&((struct attribution *)ctx)->outside, pid, image);
}

static int open_maps(void *ctx, uint32_t pid)
{
	return outside_open_maps(&((struct attribution *)ctx)->outside, pid);
}

/* Each read is a job of its own: the process is to blame for one that does not end. */
static void on_reading_memory(void *ctx, uint32_t pid, bool begins)
{
	const struct attribution *a = ctx;

	a->role->status->process = begins ? pid : 0;
	role_job_begin(a->role);
}

static struct memory_source memory_of(struct attribution *a)
{
	return (struct memory_source){a, open_memory, open_maps, on_reading_memory};
}

int attribution_new_blocked_chains(struct attribution *a)
{
	const struct memory_source source = memory_of(a);

	return blocked_chains_new(&a->blocked, &source);
}

int attribution_new_runtimes(struct attribution *a)
{
	const struct memory_source source = memory_of(a);
	int r = runtimes_new(&a->runtimes, &source, a->setup->n_cpus);

	if (r == 0)
		unwinder_ask_foreign(a->unwinder, step_runtime, a);
	return r;
}
