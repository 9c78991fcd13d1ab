/* SPDX-License-Identifier: Apache-2.0 */
/* Threads are found by the lists of the VM and its ractors, and by their numbers in libc. */
#include "runtimes/arch.h"
#include "runtimes/ruby-internal.h"

enum {
	MAX_RACTORS = 256,
	MAX_THREADS = 8192, /* of a ractor */
	BELIEVE = 32,	    /* that often: that a thread has the number that it had */
};

struct thread_search {
	struct ruby *p;
	uint64_t vm;
	uint32_t tid;
	uint64_t found, number, context;
};

/* Its number for libc, and its context; false: it is no thread of this VM. */
static bool read_thread(struct ruby *p, uint64_t vm, uint64_t at, uint64_t *ret_number,
			uint64_t *ret_context)
{
	uint8_t bytes[RUBY_THREAD_BYTES];

	if (at % 8 != 0 || !memory_read(&p->base.memory, at, bytes, sizeof(bytes)) ||
	    rb_u64(p, bytes, RB_THREAD_VM) != vm)
		return false;
	*ret_context = rb_u64(p, bytes, RB_THREAD_CONTEXT);
	*ret_number = rb(p, RB_THREAD_NATIVE) < 0
			      ? rb_u64(p, bytes, RB_THREAD_ID)
			      : memory_u64(&p->base.memory, rb_u64(p, bytes, RB_THREAD_NATIVE) +
								    (uint64_t)rb(p, RB_THREAD_ID));
	return true;
}

static bool is_of(struct ruby *p, uint64_t number, uint32_t tid)
{
	uint32_t its;

	return number && arch_thread_number(&p->base.memory, number, &its) && its == tid;
}

/* Calls look for each item of a list until it says true; node: where an item has its links. */
static bool for_each(struct thread_search *s, uint64_t list, uint64_t node, int max,
		     bool (*look)(struct thread_search *s, uint64_t item))
{
	uint64_t at = memory_u64(&s->p->base.memory, list);

	for (int i = 0; i < max && at && at != list; i++) {
		if (look(s, at - node))
			return true;
		at = memory_u64(&s->p->base.memory, at);
	}
	return false;
}

static bool look_at_thread(struct thread_search *s, uint64_t thread)
{
	if (!read_thread(s->p, s->vm, thread, &s->number, &s->context) ||
	    !is_of(s->p, s->number, s->tid))
		return false;
	s->found = thread;
	return true;
}

static bool look_at_ractor(struct thread_search *s, uint64_t ractor)
{
	return for_each(s, ractor + (uint64_t)rb(s->p, RB_RACTOR_THREADS),
			(uint64_t)rb(s->p, RB_THREAD_NODE), MAX_THREADS, look_at_thread);
}

static bool search(struct thread_search *s)
{
	if (rb(s->p, RB_VM_RACTORS) < 0)
		return for_each(s, s->vm + (uint64_t)rb(s->p, RB_VM_THREADS),
				(uint64_t)rb(s->p, RB_THREAD_NODE), MAX_THREADS, look_at_thread);
	return for_each(s, s->vm + (uint64_t)rb(s->p, RB_VM_RACTORS),
			(uint64_t)rb(s->p, RB_RACTOR_NODE), MAX_RACTORS, look_at_ractor);
}

static uint64_t find_vm(struct ruby *p)
{
	uint64_t vm;

	if (p->vm && trust_has(&p->vm_trust, &p->base.walks))
		return p->vm;
	vm = memory_u64(&p->base.memory, p->vm_variable);
	if (vm != p->vm)
		trust_end(&p->vm_trust, &p->base.walks);
	trust_prove(&p->vm_trust, &p->base.walks);
	p->vm = vm;
	return vm;
}

uint64_t ruby_find_context(struct ruby *p, uint32_t tid, bool anew)
{
	struct ruby_thread *t = &p->threads[tid % RUBY_N_THREADS];
	struct thread_search s = {.p = p, .vm = find_vm(p), .tid = tid};
	uint64_t number, context;

	if (!s.vm)
		return 0;
	if (!anew && t->tid == tid && t->at && read_thread(p, s.vm, t->at, &number, &context) &&
	    number == t->number && (t->n_believed > 0 || is_of(p, number, tid))) {
		t->n_believed = t->n_believed > 0 ? t->n_believed - 1 : BELIEVE;
		return context;
	}
	t->tid = 0;
	if (!search(&s))
		return 0;
	*t = (struct ruby_thread){tid, BELIEVE, s.found, s.number};
	return s.context;
}
