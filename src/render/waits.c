/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/render/frame.h"
#include "src/render/waits.h"
#include "util/array.h"
#include "util/cleanup.h"

static uint32_t module_kind(const struct profile *p, uint32_t frame)
{
	return p->modules.items[p->frames.items[frame].module].kind;
}

/* What the outermost frame of the stack says. */
static enum profile_marker reason_of(const struct profile *p, uint32_t stack)
{
	uint32_t n;
	const uint32_t *frames = profile_stack_frames(p, stack, &n);
	const struct profile_frame *f = n ? &p->frames.items[frames[n - 1]] : NULL;

	if (!f || module_kind(p, frames[n - 1]) != PROFILE_MODULE_MARKER ||
	    (!profile_is_wait(p, frames[n - 1]) && f->address != PROFILE_MARKER_NOT_SEEN &&
	     f->address != PROFILE_MARKER_IDLE && f->address != PROFILE_MARKER_ON_CPU &&
	     f->address != PROFILE_MARKER_RUNNABLE))
		return PROFILE_MARKER_WAIT;
	return (enum profile_marker)f->address;
}

/* Of the way to the scheduler: schedule, io_schedule_timeout ... */
static bool is_scheduler(const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = &p->frames.items[frame];
	uint32_t function =
		f->n_lines ? p->lines.items[f->first_line + f->n_lines - 1].function : 0;

	return f->n_lines && strstr(profile_text(p, p->functions.items[function].name), "schedule");
}

uint32_t waits_first_frame(const struct profile *p, uint32_t stack)
{
	uint32_t n, n_kernel = p->stacks.items[stack].n_kernel, i = 0;
	const uint32_t *frames = profile_stack_frames(p, stack, &n);

	if (reason_of(p, stack) == PROFILE_MARKER_ON_CPU)
		return 0;
	if (n_kernel < n && module_kind(p, frames[n_kernel]) != PROFILE_MODULE_MARKER)
		return n_kernel;
	while (i + 1 < n_kernel && is_scheduler(p, frames[i]))
		i++;
	return i;
}

static int compare_sums(const void *a, const void *b)
{
	const struct wait_sum *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return (x->marker > y->marker) - (x->marker < y->marker);
}

uint32_t waits_by_reason(const struct profile *p, struct wait_sum ret[WAITS_MAX_REASONS])
{
	const struct profile_type *t = &p->types[0];
	struct wait_sum sums[PROFILE_N_MARKERS] = {{0}};
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->samples.n; i++) {
		struct wait_sum *sum = &sums[reason_of(p, t->samples.items[i].stack)];

		sum->ns = profile_sum(sum->ns, t->samples.items[i].value);
		sum->n += t->samples.items[i].n;
	}
	for (uint32_t i = 0; i < PROFILE_N_MARKERS; i++) {
		sums[i].marker = (enum profile_marker)i;
		if (sums[i].ns)
			ret[n++] = sums[i];
	}
	qsort(ret, n, sizeof(*ret), compare_sums);
	return n;
}

/* ---- Locks ---- */

#define MAX_OPEN 4096

/* A wait, or a wake-up. */
struct lock_use {
	uint32_t process, frame;
	struct wait_caller caller;
	bool release;
	int64_t ns, longest_ns;
	uint64_t n;
};
typedef ARRAY(struct lock_use) lock_uses;

/* A wait that went on when its window ended. */
struct open_wait {
	uint32_t thread, frame;
	int64_t ns;
};
typedef ARRAY(struct open_wait) open_waits;

static bool begins_with_one_of(const char *text, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strncmp(text, words[i], strlen(words[i])) == 0)
			return true;
	return false;
}

/* Of the way from a program's own function to the futex. */
static bool is_lock_function(const char *name)
{
	static const char *const names[] = {
		"pthread_",	 "__pthread_",
		"___pthread_",	 "lll_",
		"__lll_",	 "futex",
		"__futex",	 "sem_",
		"__new_sem_",	 "__gthr",
		"std::",	 "<std::sync::",
		"<std::sys::",	 "core::ptr::drop_in_place<std::sync::",
		"sync.(",	 "runtime.",
		"PyThread_",	 "PyCOND_",
		"acquire_timed", "lock_PyThread_",
	};

	return begins_with_one_of(name, names, ARRAY_SIZE(names));
}

/* The function of the frame that is innermost outside of the lock's own code. The calls of a lock
 * are inlined into it as a rule: the frame's first line has the lock's code then. PROFILE_NONE: all
 * of the frame is the lock's, or it has no name. */
static uint32_t find_function(const struct profile *p, uint32_t frame)
{
	static const char *const modules[] = {"libc.so", "libc-", "libpthread", "ld-"};
	const struct profile_frame *f = &p->frames.items[frame];

	if (begins_with_one_of(frame_module_name(p, f->module), modules, ARRAY_SIZE(modules)))
		return PROFILE_NONE;
	for (uint32_t i = 0; i < f->n_lines; i++) {
		uint32_t function = p->lines.items[f->first_line + i].function;
		const char *name = profile_text(p, p->functions.items[function].name);

		if (*name && !is_lock_function(name))
			return function;
	}
	return PROFILE_NONE;
}

static struct wait_caller first_function(const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = &p->frames.items[frame];

	return (struct wait_caller){frame, f->n_lines ? p->lines.items[f->first_line].function
						      : PROFILE_NONE};
}

/* The interpreted function in which the interpreter called its own native function frames[at]; at:
 * there is none. An interpreted frame is followed by the native one that evaluates it. */
static uint32_t interpreted_caller(const struct profile *p, const uint32_t *frames, uint32_t n,
				   uint32_t at)
{
	uint32_t inner = at, outer;

	while (inner < n && module_kind(p, frames[inner]) != PROFILE_MODULE_RUNTIME)
		inner++;
	for (outer = inner; outer < n && module_kind(p, frames[outer]) == PROFILE_MODULE_RUNTIME;)
		outer++;
	return outer < n && p->frames.items[frames[outer]].module ==
				       p->frames.items[frames[at]].module
		       ? inner
		       : at;
}

/* The innermost function outside of the lock's and the interpreter's own code, else the innermost
 * of the program. */
static struct wait_caller find_caller(const struct profile *p, uint32_t stack)
{
	uint32_t n, first = p->stacks.items[stack].n_kernel;
	const uint32_t *frames = profile_stack_frames(p, stack, &n);

	for (uint32_t i = first; i < n && !profile_is_marked(p, frames[i]); i++) {
		uint32_t function = find_function(p, frames[i]);
		uint32_t outer = interpreted_caller(p, frames, n, i);

		if (function != PROFILE_NONE)
			return outer == i ? (struct wait_caller){frames[i], function}
					  : first_function(p, frames[outer]);
	}
	return first < n && !profile_is_marked(p, frames[first]) ? first_function(p, frames[first])
								 : WAIT_CALLER_NONE;
}

/* The frame of the lock, next to the reason; PROFILE_NONE: the stack is no wait for a lock. */
static uint32_t find_lock(const struct profile *p, uint32_t stack)
{
	uint32_t n;
	const uint32_t *frames = profile_stack_frames(p, stack, &n);

	return n < 2 || module_kind(p, frames[n - 2]) != PROFILE_MODULE_DATA ? PROFILE_NONE
									     : frames[n - 2];
}

/* How long the longest wait in the sample was, with what windows before have of it. */
static int64_t longest_of(open_waits *open, const struct profile_sample *s, uint32_t frame)
{
	int64_t ns = s->n == 1 ? s->value : 0;
	struct open_wait *w = NULL;

	for (uint32_t i = 0; i < open->n && !w; i++)
		if (open->items[i].thread == s->thread && open->items[i].frame == frame)
			w = &open->items[i];
	if (s->n > 0 && w) {
		ns = profile_sum(ns, w->ns);
		*w = open->items[--open->n];
	} else if (s->n == 0 && (w || (w = array_push(open)))) {
		ns = profile_sum(w->ns, s->value);
		*w = (struct open_wait){s->thread, frame, ns};
	}
	return ns;
}

static int add_uses(const struct profile *p, const struct profile_type *t, bool release,
		    lock_uses *uses)
{
	open_waits open = ARRAY_INIT(MAX_OPEN);

	for (uint32_t i = 0; i < t->samples.n; i++) {
		const struct profile_sample *s = &t->samples.items[i];
		uint32_t lock = find_lock(p, s->stack);
		struct lock_use *u = lock == PROFILE_NONE ? NULL : array_push(uses);

		if (lock == PROFILE_NONE)
			continue;
		if (!u) {
			array_deinit(&open);
			return -ENOMEM;
		}
		*u = (struct lock_use){.process = p->threads.items[s->thread].process,
				       .frame = lock,
				       .caller = find_caller(p, s->stack),
				       .release = release,
				       .ns = release ? 0 : s->value,
				       .longest_ns = release ? 0 : longest_of(&open, s, lock),
				       .n = release ? 1 : s->n};
	}
	array_deinit(&open);
	return 0;
}

static int compare_u32(uint32_t x, uint32_t y)
{
	return (x > y) - (x < y);
}

/* A process may have several rows, with other facts of it. */
static uint32_t pid_of(const struct profile *p, const struct lock_use *u)
{
	return p->processes.items[u->process].pid;
}

static int compare_uses(const void *a, const void *b, void *ctx)
{
	const struct profile *p = ctx;
	const struct lock_use *x = a, *y = b;
	int r = compare_u32(pid_of(p, x), pid_of(p, y));

	if (r == 0)
		r = compare_u32(x->frame, y->frame);
	if (r == 0)
		r = compare_u32(x->release, y->release);
	if (r == 0)
		r = compare_u32(x->caller.function, y->caller.function);
	/* Equal functions are one, wherever in them the calls are. */
	return r || x->caller.function != PROFILE_NONE
		       ? r
		       : compare_u32(x->caller.frame, y->caller.frame);
}

static bool same_caller(const struct profile *p, const struct lock_use *x, const struct lock_use *y)
{
	return compare_uses(x, y, (void *)(uintptr_t)p) == 0;
}

/* The uses from *at on that are of one lock. */
static struct lock_sum sum_lock(const struct profile *p, const lock_uses *uses, uint32_t *at)
{
	const struct lock_use *first = &uses->items[*at];
	struct lock_sum sum = {.process = first->process,
			       .frame = first->frame,
			       .waiter = WAIT_CALLER_NONE,
			       .releaser = WAIT_CALLER_NONE};
	int64_t most_ns = -1;
	uint64_t most_n = 0;

	while (*at < uses->n && pid_of(p, &uses->items[*at]) == pid_of(p, first) &&
	       uses->items[*at].frame == sum.frame) {
		const struct lock_use *caller = &uses->items[*at], *u;
		int64_t ns = 0;
		uint64_t n = 0;

		for (; *at < uses->n && same_caller(p, u = &uses->items[*at], caller); ++*at) {
			ns += u->ns;
			n += u->n;
			if (u->longest_ns > sum.longest_ns)
				sum.longest_ns = u->longest_ns;
		}
		if (caller->release && n > most_n) {
			most_n = n;
			sum.releaser = caller->caller;
		} else if (!caller->release && ns > most_ns &&
			   caller->caller.frame != PROFILE_NONE) {
			most_ns = ns;
			sum.waiter = caller->caller;
		}
		sum.ns += ns;
		*(caller->release ? &sum.n_releases : &sum.n) += n;
	}
	return sum;
}

static int compare_locks(const void *a, const void *b)
{
	const struct lock_sum *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return compare_u32(x->frame, y->frame);
}

int waits_by_lock(const struct profile *p, struct lock_sum **ret, uint32_t *ret_n)
{
	lock_uses uses = ARRAY_INIT(UINT32_MAX / 2);
	struct lock_sum *sums = NULL;
	uint32_t n = 0;
	int r = 0;

	for (uint32_t i = 0; i < p->n_types && r == 0; i++) {
		if (profile_is_off_cpu(p, i) || profile_is_wakeups(p, i))
			r = add_uses(p, &p->types[i], !profile_is_off_cpu(p, i), &uses);
	}
	if (r == 0 && uses.n > 0) {
		qsort_r(uses.items, uses.n, sizeof(*uses.items), compare_uses,
			(void *)(uintptr_t)p);
		sums = malloc(uses.n * sizeof(*sums));
		r = sums ? 0 : -ENOMEM;
	}
	for (uint32_t i = 0; r == 0 && i < uses.n;) {
		sums[n] = sum_lock(p, &uses, &i);
		n += sums[n].n > 0 || sums[n].ns > 0; /* else it was no lock, but a condition */
	}
	array_deinit(&uses);
	if (r < 0)
		return r;
	if (n > 0)
		qsort(sums, n, sizeof(*sums), compare_locks);
	*ret = sums;
	*ret_n = n;
	return 0;
}

const char *waits_caller_name(const struct profile *p, struct wait_caller caller, char *buf,
			      size_t size)
{
	if (caller.frame == PROFILE_NONE)
		(void)snprintf(buf, size, "-");
	else if (caller.function != PROFILE_NONE)
		(void)frame_function_name(p, caller.function, buf, size);
	else
		(void)frame_fallback_name(p, caller.frame, buf, size);
	return buf;
}

const char *waits_lock_name(const struct profile *p, const struct lock_sum *lock, char *buf,
			    size_t size)
{
	return waits_caller_name(p, first_function(p, lock->frame), buf, size);
}

/* ---- Threads ---- */

struct thread_use {
	uint32_t pid, tid, thread;
	enum profile_marker state;
	int64_t ns;
};

static int compare_thread_uses(const void *a, const void *b)
{
	const struct thread_use *x = a, *y = b;
	int r = compare_u32(x->pid, y->pid);

	if (r == 0)
		r = compare_u32(x->tid, y->tid);
	return r ? r : compare_u32(x->state, y->state);
}

/* The uses from *at on that are of one thread, which are sorted by state. */
static struct thread_sum sum_thread(const struct thread_use *uses, uint32_t n, uint32_t *at)
{
	const struct thread_use *first = &uses[*at];
	struct thread_sum sum = {.thread = first->thread, .reason = PROFILE_MARKER_WAIT};
	int64_t most = 0, ns;

	while (*at < n && uses[*at].pid == first->pid && uses[*at].tid == first->tid) {
		enum profile_marker state = uses[*at].state;

		for (ns = 0; *at < n && uses[*at].pid == first->pid &&
			     uses[*at].tid == first->tid && uses[*at].state == state;
		     ++*at)
			ns = profile_sum(ns, uses[*at].ns);
		sum.ns = profile_sum(sum.ns, ns);
		if (state == PROFILE_MARKER_ON_CPU) {
			sum.running_ns = ns;
		} else if (state == PROFILE_MARKER_RUNNABLE) {
			sum.runnable_ns = ns;
		} else {
			sum.blocked_ns = profile_sum(sum.blocked_ns, ns);
			sum.reason = ns > most ? state : sum.reason;
			most = ns > most ? ns : most;
		}
	}
	return sum;
}

static int compare_threads(const void *a, const void *b)
{
	const struct thread_sum *x = a, *y = b;

	if (x->running_ns != y->running_ns)
		return x->running_ns > y->running_ns ? -1 : 1;
	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return compare_u32(x->thread, y->thread);
}

int waits_by_thread(const struct profile *p, struct thread_sum **ret, uint32_t *ret_n)
{
	const struct profile_type *t = &p->types[0];
	_cleanup_free_ struct thread_use *uses = calloc((size_t)t->samples.n + 1, sizeof(*uses));
	struct thread_sum *sums = calloc((size_t)t->samples.n + 1, sizeof(*sums));
	uint32_t n = 0;

	if (!uses || !sums) {
		free(sums);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < t->samples.n; i++) {
		const struct profile_sample *s = &t->samples.items[i];
		const struct profile_thread *thread = &p->threads.items[s->thread];

		uses[i] = (struct thread_use){.pid = p->processes.items[thread->process].pid,
					      .tid = thread->tid,
					      .thread = s->thread,
					      .state = reason_of(p, s->stack),
					      .ns = s->value};
	}
	qsort(uses, t->samples.n, sizeof(*uses), compare_thread_uses);
	for (uint32_t i = 0; i < t->samples.n;)
		sums[n++] = sum_thread(uses, t->samples.n, &i);
	qsort(sums, n, sizeof(*sums), compare_threads);
	*ret = sums;
	*ret_n = n;
	return 0;
}
