/* SPDX-License-Identifier: Apache-2.0 */
#include "src/profiler/every-nth.h"

double every_nth_end_window(struct every_nth *e, uint64_t period)
{
	double n = (double)e->n, variance = 0;

	if (e->n > 1 && period > 1)
		variance =
			n / (n - 1) * (e->squares - e->sum * e->sum / n) * (1 - 1 / (double)period);
	e->n = 0;
	e->sum = e->squares = 0;
	return variance > 0 ? variance : 0; /* not what rounding leaves of equal values */
}

uint64_t every_nth_missed(struct every_nth *e, uint64_t period, uint64_t counted)
{
	uint64_t stood_for, missed;

	if (e->filtered || __builtin_mul_overflow(e->taken, period, &stood_for) ||
	    __builtin_add_overflow(stood_for, e->told, &stood_for) || counted <= stood_for)
		return 0;
	missed = counted - stood_for;
	e->told += missed;
	return missed;
}
