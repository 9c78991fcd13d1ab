/* SPDX-License-Identifier: Apache-2.0 */
#include "util/clock.h"
#include "util/time-share.h"

#define SAVE_NS		(10 * NSEC_PER_SEC)
#define WAITING_DIVISOR 8
#define DEBT_MAX_NS	(5 * NSEC_PER_SEC)

bool time_share_begin(struct time_share *s, uint64_t now_ns)
{
	uint64_t passed = now_ns - s->last_ns;
	uint64_t max = (s->save_ns ? s->save_ns : SAVE_NS) / 100 * s->percent;
	uint64_t earned = passed / 100 * s->percent;

	if (!s->last_ns || s->credit_ns + (int64_t)earned > (int64_t)max) {
		s->credit_ns = (int64_t)max;
		s->last_ns = now_ns;
	} else if (earned) {
		s->credit_ns += (int64_t)earned;
		s->last_ns = now_ns;
	}
	s->begin_wall_ns = now_ns;
	s->begin_cpu_ns = clock_get_ns(CLOCK_THREAD_CPUTIME_ID);
	return s->credit_ns > 0;
}

/* Waiting counts less than CPU time: on a busy host most of it has other causes. */
void time_share_end(struct time_share *s, uint64_t now_ns)
{
	time_share_end_with(s, now_ns, 0);
}

void time_share_end_with(struct time_share *s, uint64_t now_ns, uint64_t full_ns)
{
	uint64_t took = (now_ns - s->begin_wall_ns) / WAITING_DIVISOR;
	uint64_t cpu = clock_get_ns(CLOCK_THREAD_CPUTIME_ID) - s->begin_cpu_ns;

	if (s->only_cpu || took < cpu)
		took = cpu;
	if (took < full_ns)
		took = full_ns;
	/* Limited, because the whole host may have been suspended. */
	s->credit_ns -= took < DEBT_MAX_NS ? (int64_t)took : (int64_t)DEBT_MAX_NS;
}
