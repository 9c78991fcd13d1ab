/* SPDX-License-Identifier: Apache-2.0 */
#include "src/profiler/block-grants.h"

#include <stdlib.h>

#define MAX_CPUS 4096 /* those beyond share the counts of others */

struct block_grants {
	struct {
		uint64_t since_ns;
		uint32_t n;
	} cpus[MAX_CPUS];
};

struct block_grants *block_grants_new(void)
{
	return calloc(1, sizeof(struct block_grants));
}

bool block_grants_used_up(struct block_grants *g, uint32_t cpu, uint64_t time_ns, uint32_t enough)
{
	uint32_t i = cpu % MAX_CPUS;

	if (time_ns - g->cpus[i].since_ns >= BLOCK_GRANTS_QUARTER_NS) {
		g->cpus[i].since_ns = time_ns;
		g->cpus[i].n = 0;
	}
	if (++g->cpus[i].n < enough)
		return false;
	g->cpus[i].since_ns = time_ns;
	g->cpus[i].n = 0;
	return true;
}
