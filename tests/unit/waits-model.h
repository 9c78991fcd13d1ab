/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A profile of waits, wake-ups and wall time that bytes describe, and a model of the sums that are
 * made of it: the tables of locks, reasons and threads against additions in plain arrays. For the
 * unit test with bytes by chance, and for the fuzzer with any.
 */
#include <stdlib.h>
#include <string.h>

#include "src/render/waits.h"

#define MODEL_LOCKS	4
#define MODEL_PROCESSES 3
#define MODEL_THREADS	6
#define MODEL_CALLERS	4
#define MODEL_ROW	6 /* bytes of a sample */

#define MODEL_CHECK(expr)                                                                          \
	do {                                                                                       \
		if (!(expr))                                                                       \
			abort();                                                                   \
	} while (0)

struct waits_model {
	struct profile p;
	uint32_t threads[MODEL_THREADS], callers[MODEL_CALLERS], locks[MODEL_LOCKS];
	uint32_t reasons[PROFILE_N_MARKERS];
	/* By process and lock; of the samples of off-CPU time by marker; of wall time by thread. */
	int64_t lock_ns[MODEL_PROCESSES][MODEL_LOCKS], reason_ns[PROFILE_N_MARKERS];
	uint64_t lock_n[MODEL_PROCESSES][MODEL_LOCKS], releases[MODEL_PROCESSES][MODEL_LOCKS];
	int64_t wall_ns[MODEL_THREADS];
};

static inline void waits_model_tables(struct waits_model *m)
{
	struct profile *p = &m->p;
	const struct profile_module modules[] = {
		{.uid = 100, .process = PROFILE_NONE},
		{.uid = PROFILE_UID_MARKER, .kind = PROFILE_MODULE_MARKER, .process = PROFILE_NONE},
		{.uid = PROFILE_UID_DATA | 100,
		 .kind = PROFILE_MODULE_DATA,
		 .process = PROFILE_NONE}};
	uint32_t rows[3];

	for (int i = 0; i < 3; i++)
		rows[i] = profile_add_module(p, &modules[i]);
	for (uint32_t i = 0; i < MODEL_THREADS; i++) {
		const struct profile_process of = {.pid = 10 + i % MODEL_PROCESSES};

		m->threads[i] =
			profile_add_thread(p, profile_add_process(p, &of), 100 + i, STRID_EMPTY);
	}
	for (uint32_t i = 0; i < MODEL_CALLERS; i++)
		m->callers[i] = profile_add_frame(p, rows[0], 0x1000 + i);
	for (uint32_t i = 0; i < MODEL_LOCKS; i++)
		m->locks[i] = profile_add_frame(p, rows[2], 0x2000 + i);
	for (uint32_t i = 0; i < PROFILE_N_MARKERS; i++)
		m->reasons[i] = profile_add_frame(p, rows[1], i);
}

static inline void waits_model_types(struct waits_model *m)
{
	struct profile *p = &m->p;
	struct profile_type t = {.weighted = true,
				 .period_events = 1,
				 .event = strtab_put(&p->strings, PROFILE_OFF_CPU),
				 .unit = strtab_put(&p->strings, "nanoseconds")};

	profile_set_type(p, 0, &t);
	t.event = strtab_put(&p->strings, PROFILE_WALL);
	MODEL_CHECK(profile_add_type(p, &t) == 1);
	t = (struct profile_type){.period_events = 1,
				  .event = strtab_put(&p->strings, PROFILE_WAKEUPS)};
	MODEL_CHECK(profile_add_type(p, &t) == 2);
}

/* A row: type, thread, caller, lock (0: none), reason, value. */
static inline void waits_model_sample(struct waits_model *m, const uint8_t *row)
{
	static const enum profile_marker known[] = {
		PROFILE_MARKER_WAIT_LOCK, PROFILE_MARKER_WAIT_CONDITION, PROFILE_MARKER_NOT_SEEN,
		PROFILE_MARKER_ON_CPU,	  PROFILE_MARKER_RUNNABLE,	 PROFILE_MARKER_IDLE};
	uint32_t type = row[0] % 3, thread = row[1] % MODEL_THREADS, n = 0, frames[3];
	uint32_t lock = type == 1 ? 0 : row[3] % (MODEL_LOCKS + 1);
	uint32_t process = thread % MODEL_PROCESSES;
	enum profile_marker reason = lock ? PROFILE_MARKER_WAIT_LOCK : known[row[4] % 6];
	struct profile_sample s = {.value = type == 2 ? 1 : 1 + row[5],
				   .thread = m->threads[thread],
				   .n = type == 2 ? 0 : row[5] % 3};

	frames[n++] = m->callers[row[2] % MODEL_CALLERS];
	if (lock)
		frames[n++] = m->locks[lock - 1];
	frames[n++] = m->reasons[reason];
	s.stack = profile_add_stack(&m->p, frames, n, 0);
	MODEL_CHECK(profile_add_sample_of(&m->p, type, &s));
	if (type == 0)
		m->reason_ns[reason] += s.value;
	if (type == 1)
		m->wall_ns[thread] += s.value;
	if (lock && type == 0) {
		m->lock_ns[process][lock - 1] += s.value;
		m->lock_n[process][lock - 1] += s.n;
	} else if (lock && type == 2) {
		m->releases[process][lock - 1]++;
	}
}

static inline void waits_model_locks(struct waits_model *m)
{
	struct lock_sum *locks = NULL;
	uint32_t n = 0, wanted = 0, lock, process;

	MODEL_CHECK(waits_by_lock(&m->p, &locks, &n) == 0);
	for (uint32_t i = 0; i < MODEL_PROCESSES * MODEL_LOCKS; i++)
		wanted += m->lock_ns[i / MODEL_LOCKS][i % MODEL_LOCKS] > 0;
	MODEL_CHECK(n == wanted);
	for (uint32_t i = 0; i < n; i++) {
		const struct lock_sum *l = &locks[i];

		process = m->p.processes.items[l->process].pid - 10;
		for (lock = 0; m->locks[lock] != l->frame; lock++)
			MODEL_CHECK(lock < MODEL_LOCKS);
		MODEL_CHECK(l->ns == m->lock_ns[process][lock] && l->n == m->lock_n[process][lock]);
		MODEL_CHECK(l->n_releases == m->releases[process][lock]);
		MODEL_CHECK(l->longest_ns >= 0 && l->waiter.frame != PROFILE_NONE);
		MODEL_CHECK((l->releaser.frame == PROFILE_NONE) == (l->n_releases == 0));
		MODEL_CHECK(i == 0 || locks[i - 1].ns >= l->ns);
	}
	free(locks);
}

static inline void waits_model_reasons(const struct waits_model *m)
{
	struct wait_sum sums[WAITS_MAX_REASONS];
	struct profile view;
	uint32_t n, wanted = 0;

	profile_view(&m->p, 0, &view);
	n = waits_by_reason(&view, sums);
	for (uint32_t i = 0; i < PROFILE_N_MARKERS; i++)
		wanted += m->reason_ns[i] > 0;
	/* What is no reason counts as one that is not known. */
	MODEL_CHECK(n == wanted);
	for (uint32_t i = 0; i < n; i++)
		MODEL_CHECK(sums[i].ns == m->reason_ns[sums[i].marker]);
}

static inline void waits_model_threads(const struct waits_model *m)
{
	struct thread_sum *threads = NULL;
	struct profile view;
	uint32_t n = 0, wanted = 0;

	profile_view(&m->p, 1, &view);
	MODEL_CHECK(waits_by_thread(&view, &threads, &n) == 0);
	for (uint32_t i = 0; i < MODEL_THREADS; i++)
		wanted += m->wall_ns[i] > 0;
	MODEL_CHECK(n == wanted);
	for (uint32_t i = 0; i < n; i++) {
		const struct thread_sum *t = &threads[i];

		MODEL_CHECK(t->ns == m->wall_ns[m->p.threads.items[t->thread].tid - 100]);
		MODEL_CHECK(t->ns == t->running_ns + t->runnable_ns + t->blocked_ns);
	}
	free(threads);
}

/* Aborts where a table differs from the model. */
static inline void waits_model_run(const uint8_t *bytes, size_t n)
{
	struct waits_model *m = calloc(1, sizeof(*m));

	MODEL_CHECK(m);
	profile_init(&m->p, 64 << 20);
	waits_model_types(m);
	waits_model_tables(m);
	for (size_t i = 0; i + MODEL_ROW <= n; i += MODEL_ROW)
		waits_model_sample(m, bytes + i);
	waits_model_locks(m);
	waits_model_reasons(m);
	waits_model_threads(m);
	profile_deinit(&m->p);
	free(m);
}
