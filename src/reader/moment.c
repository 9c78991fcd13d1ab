/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/resource.h>

#include "src/reader/moment.h"
#include "util/clock.h"

/* Before the time: if it is taken off between both, a later sample is refused, not believed. */
struct moment moment_now(void)
{
	struct rusage usage = {0};
	struct moment m;

	(void)getrusage(RUSAGE_THREAD, &usage);
	m.n_switches = (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
	m.time_ns = clock_monotonic_ns();
	return m;
}
