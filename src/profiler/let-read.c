/* SPDX-License-Identifier: Apache-2.0 */
#include "src/profiler/attribute-internal.h"
#include "util/clock.h"
#include "util/log.h"

#define SECONDS 600 /* between two warnings */

void attribution_let_read(struct attribution *a, struct process_state *s,
			  const struct host_process *p, const uint64_t images[CLIENT_MAX_IMAGES],
			  const struct host_file_key *key)
{
	s->interpreter =
		readers_add_interpreter(a->readers, p, images, key->major, key->minor, a->time_ns);
	/* A fork server has many, and its next ones are known sooner. */
	if (s->interpreter)
		a->newest_runtime_ns = clock_monotonic_ns();
	if (s->interpreter || s->not_read)
		return;
	s->not_read = true;
	a->n_not_read++;
	if (log_ratelimit(&a->not_read, SECONDS))
		log_warning("process %u lacks spans, and functions of an interpreter: perfwalk "
			    "reads at most %d such programs at a time",
			    p->pid, READERS_MAX_INTERPRETERS);
}
