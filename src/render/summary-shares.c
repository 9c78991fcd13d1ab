/* SPDX-License-Identifier: Apache-2.0 */
#include "src/render/summary-shares.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/ticks.h"

/* Of a kernel that is not known. A rate is beside its ticks, unless there is none. */
static bool is_in_step(const struct profile_type *t)
{
	static const uint32_t ticks[] = {100, 250, 1000};

	for (size_t i = 0; i < ARRAY_SIZE(ticks) && t->rate_hz < TICKS_LEAST_HZ; i++) {
		if (ticks_in_step(t->period_ns, NSEC_PER_SEC / ticks[i]))
			return true;
	}
	return false;
}

/*
 * On CPUs with more work than they can do, the kernel chooses at its ticks who runs. Samples that
 * come at the same time after such a choice again and again see some threads too often
 * (tests/bench/shares.py).
 */
void summary_put_uneven(const struct summary_page *pg, uint32_t n_cpus)
{
	const struct profile_type *t = &pg->p->types[0];
	uint64_t window_ns = pg->p->end_unix_ns - pg->p->start_unix_ns;
	double busy_ns = (double)pg->total * (double)t->period_ns;

	if (n_cpus > 0 && t->period_ns && busy_ns >= 0.9 * (double)window_ns * n_cpus &&
	    is_in_step(t))
		summary_put_fact(pg, "  shares may be off", "up to 40%",
				 "in step with ticks: try -F 99, 199");
}
