/* SPDX-License-Identifier: Apache-2.0 */
#include "src/render/summary-shares.h"
#include "util/cleanup.h"

#define MAX_EVEN_HZ 200 /* with readers */
#define MAX_MOMENTS 4	/* between two ticks, at which all samples fall */

#define OR_IS_ROW(kind, ...) || m->runtime == PROFILE_RUNTIME_##kind

/* Those of chains and spans, which read while the sampled thread stands still. */
static bool had_readers(const struct summary_page *pg)
{
	bool any = pg->counters[PROFILE_SPANS_LINKED] + pg->counters[PROFILE_SPANS_OUTSIDE] > 0;

	for (uint32_t i = 0; i < pg->p->modules.n && !any; i++) {
		const struct profile_module *m = &pg->p->modules.items[i];

		any = m->kind == PROFILE_MODULE_RUNTIME && (false RUNTIMES_WITH_CHAIN(OR_IS_ROW));
	}
	return any;
}

/* Do samples fall at a few moments only between the kernel's ticks, of which there are so many a
 * second? */
static bool is_in_step(uint32_t rate_hz)
{
	static const uint32_t ticks[] = {100, 250, 1000};

	for (size_t i = 0; i < ARRAY_SIZE(ticks); i++) {
		for (uint32_t n = 1; rate_hz > 0 && n <= MAX_MOMENTS; n++) {
			if (n * ticks[i] % rate_hz == 0)
				return true;
		}
	}
	return false;
}

/*
 * On CPUs with more work than they can do, the kernel chooses at its ticks who runs, and anew after
 * each sample for which a reader ran. Samples that come at the same time after such a choice again
 * and again see some threads too often (tests/bench/shares.py).
 */
void summary_put_uneven(const struct summary_page *pg, uint32_t n_cpus)
{
	const struct profile_type *t = &pg->p->types[0];
	uint64_t window_ns = pg->p->end_unix_ns - pg->p->start_unix_ns;
	double busy_ns = (double)pg->total * (double)t->period_ns;

	if (n_cpus == 0 || t->rate_hz == 0 || busy_ns < 0.9 * (double)window_ns * n_cpus)
		return;
	if (t->rate_hz > MAX_EVEN_HZ && had_readers(pg))
		summary_put_fact(pg, "  shares may be off", "up to 30%",
				 "readers at over 200 Hz: try -F 199");
	else if (is_in_step(t->rate_hz))
		summary_put_fact(pg, "  shares may be off", "up to 40%",
				 "in step with ticks: try -F 99, 199");
}
