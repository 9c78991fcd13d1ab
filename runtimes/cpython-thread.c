/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread's state is found in the lists of interpreters and of their threads, and remembered by
 * the thread's number while it is in the list and says so. New states come to the front of a list.
 */
#include "runtimes/arch.h"
#include "runtimes/cpython-internal.h"

enum {
	MAX_INTERPRETERS = 64,
	MAX_THREADS = 8192, /* of an interpreter */
	BELIEVE = 32,	    /* that often: that a thread has no state, or the same one */
	BELIEVE_DOUBLES = 5,
	NEAR_BYTES = 1 << 20, /* of a stack: where most threads are */
};

static uint64_t state_u64(const struct cpython *p, const struct python_state *s,
			  enum cpython_value v)
{
	return memory_u64_of(s->bytes, py(p, v));
}

static bool read_state(struct cpython *p, uint64_t at, uint64_t interp, struct python_state *ret)
{
	ret->at = at;
	return at % 8 == 0 && memory_read(&p->base.memory, at, ret->bytes, p->n_state) &&
	       state_u64(p, ret, PY_THREAD_INTERP) == interp;
}

/* Is this the state of that thread? ask: read the thread's number from libc's struct, too, if
 * CPython's is missing, or stale after a fork. On some processors libc's id of a thread is its
 * thread pointer. In each libc it is an address at the outer end of its stack, which is enough of a
 * sign where the frames are compared with that stack. */
static bool is_of_thread(struct cpython *p, const struct python_state *s, uint32_t tid, bool ask)
{
	uint32_t number;

	if (p->thread_stack)
		return state_u64(p, s, PY_THREAD_ID) - p->thread_stack < NEAR_BYTES;
	if (py_known(p, PY_THREAD_NATIVE_ID) && state_u64(p, s, PY_THREAD_NATIVE_ID) == tid)
		return true;
	if (p->thread_pointer && state_u64(p, s, PY_THREAD_ID) == p->thread_pointer)
		return true;
	return ask && arch_thread_number(&p->base.memory, state_u64(p, s, PY_THREAD_ID), &number) &&
	       number == tid;
}

/* Is a state that was read still in the list of its interpreter? */
static bool is_listed(struct cpython *p, const struct python_state *s, uint64_t interp)
{
	uint64_t previous = state_u64(p, s, PY_THREAD_PREVIOUS);

	if (previous)
		return memory_u64(&p->base.memory, previous + (uint64_t)py(p, PY_THREAD_NEXT)) ==
		       s->at;
	return memory_u64(&p->base.memory, interp + (uint64_t)py(p, PY_INTERP_THREADS)) == s->at;
}

static struct python_thread *remembered(struct cpython *p, uint32_t tid)
{
	return &p->threads[hash_u64(tid) % CPYTHON_N_THREADS];
}

static void remember(struct cpython *p, const struct python_state *s)
{
	uint64_t tid = py_known(p, PY_THREAD_NATIVE_ID) ? state_u64(p, s, PY_THREAD_NATIVE_ID) : 0;

	if (tid && tid <= INT32_MAX)
		*remembered(p, (uint32_t)tid) =
			(struct python_thread){.tid = (uint32_t)tid, .state = s->at};
}

/* Looks through the threads of an interpreter, from one of them on. */
static enum chain_result scan(struct cpython *p, uint64_t interp, uint64_t first, uint32_t tid,
			      bool ask, size_t *n)
{
	struct python_state *s = &p->states[*n];
	uint64_t at = first;

	for (int i = 0; i < MAX_THREADS && at; i++) {
		if (!read_state(p, at, interp, s)) {
			p->next_scan = cpython_is_spent(p) ? at : 0;
			return CHAIN_UNPROVEN;
		}
		remember(p, s);
		if (is_of_thread(p, s, tid, ask)) {
			if (tid)
				*remembered(p, tid) =
					(struct python_thread){.tid = tid, .state = at};
			(*n)++;
			return CHAIN_WHOLE;
		}
		at = state_u64(p, s, PY_THREAD_NEXT);
	}
	return CHAIN_NO_THREAD;
}

/* A thread that has just begun has a state, but does not say so yet: at first that is believed once
 * only. */
static void remember_none(struct cpython *p, uint32_t tid, uint64_t newest)
{
	struct python_thread *t = remembered(p, tid);
	uint32_t n = t->tid == tid && !t->state ? t->n_none : 0;

	*t = (struct python_thread){.tid = tid,
				    .n_believed = BELIEVE >> (BELIEVE_DOUBLES - n),
				    .n_none = n < BELIEVE_DOUBLES ? n + 1 : n,
				    .newest = newest};
}

/* Searches the list of one interpreter; a long list takes several walks. */
static enum chain_result scan_one(struct cpython *p, uint32_t tid, size_t *n)
{
	uint64_t newest =
		memory_u64(&p->base.memory, p->interp + (uint64_t)py(p, PY_INTERP_THREADS));
	bool says = py_known(p, PY_THREAD_NATIVE_ID);
	enum chain_result r = CHAIN_NO_THREAD;

	if (p->next_scan) {
		uint64_t from = p->next_scan;

		p->next_scan = 0;
		r = scan(p, p->interp, from, tid, !says, n);
		return r == CHAIN_UNPROVEN ? CHAIN_NO_THREAD : r;
	}
	r = scan(p, p->interp, newest, tid, !says, n);
	if (r == CHAIN_NO_THREAD && says)
		r = scan(p, p->interp, newest, tid, true, n);
	if (r == CHAIN_NO_THREAD && tid && !cpython_is_spent(p))
		remember_none(p, tid, newest);
	return r;
}

/* A thread may have a state in each: the newest interpreter is the first, and called by others. */
static enum chain_result scan_all(struct cpython *p, uint32_t tid, size_t *n)
{
	uint64_t interp = p->interp;

	for (int i = 0; i < MAX_INTERPRETERS && interp && *n < CPYTHON_MAX_STATES; i++) {
		uint64_t first =
			memory_u64(&p->base.memory, interp + (uint64_t)py(p, PY_INTERP_THREADS));
		enum chain_result r = scan(p, interp, first, tid, true, n);

		p->next_scan = 0;
		if (r == CHAIN_UNPROVEN)
			return r;
		interp = memory_u64(&p->base.memory, interp + (uint64_t)py(p, PY_INTERP_NEXT));
	}
	return *n ? CHAIN_WHOLE : CHAIN_NO_THREAD;
}

static enum chain_result find_remembered(struct cpython *p, uint32_t tid, size_t *n)
{
	struct python_thread *t = remembered(p, tid);
	struct python_state *s = &p->states[0];

	if (t->tid != tid)
		return CHAIN_UNPROVEN;
	if (t->state && read_state(p, t->state, p->interp, s) && is_of_thread(p, s, tid, true) &&
	    is_listed(p, s, p->interp)) {
		t->n_believed = BELIEVE;
		t->number = state_u64(p, s, PY_THREAD_ID);
		*n = 1;
		return CHAIN_WHOLE;
	}
	if (!t->state && t->n_believed > 0 &&
	    t->newest ==
		    memory_u64(&p->base.memory, p->interp + (uint64_t)py(p, PY_INTERP_THREADS))) {
		t->n_believed--;
		return CHAIN_NO_THREAD;
	}
	if (t->state)
		t->tid = 0;
	return CHAIN_UNPROVEN;
}

/*
 * A state that is no longer in use has no frame. If the thread has another state now, of a new
 * interpreter, the frames would not match the native stack, and the caller's comparison fails.
 */
bool cpython_believe_state(struct cpython *p, uint32_t tid)
{
	struct python_thread *t = remembered(p, tid);
	struct python_state *s = &p->states[0];

	if (!p->only_one || t->tid != tid || !t->state || t->n_believed == 0)
		return false;
	t->n_believed--;
	return read_state(p, t->state, p->interp, s) &&
	       state_u64(p, s, PY_THREAD_ID) == t->number &&
	       (!py_known(p, PY_THREAD_NATIVE_ID) || is_of_thread(p, s, tid, false));
}

/* Whether the first interpreter is the only one. New ones come to the front. */
static bool look_at_interpreters(struct cpython *p)
{
	uint64_t first, next;

	if (!memory_read(&p->base.memory, p->tables.interpreters, &first, sizeof(first)) || !first)
		return false;
	if (first == p->interp && p->only_one)
		return true;
	if (!memory_read(&p->base.memory, first + (uint64_t)py(p, PY_INTERP_NEXT), &next,
			 sizeof(next)))
		return false;
	if (first != p->interp || (next == 0) != p->only_one) {
		memset(p->threads, 0, sizeof(p->threads));
		p->next_scan = 0;
	}
	p->interp = first;
	p->only_one = next == 0;
	return true;
}

enum chain_result cpython_find_states(struct cpython *p, uint32_t tid, size_t *ret_n)
{
	enum chain_result r;

	*ret_n = 0;
	if (!look_at_interpreters(p))
		return CHAIN_NO_THREAD;
	if (!p->only_one)
		return scan_all(p, tid, ret_n);
	r = tid ? find_remembered(p, tid, ret_n) : CHAIN_UNPROVEN;
	return r == CHAIN_UNPROVEN ? scan_one(p, tid, ret_n) : r;
}
