/* SPDX-License-Identifier: Apache-2.0 */
/* The timers of samples, which readers set (src/reader/instants.h). */
#include "src/broker/internal.h"

uint64_t broker_timer_ns(const struct events *e)
{
	bool whole = e->targets.n_cgroups <= 1 && (e->targets.n_pids == 0 || e->sample.whole_cpus);
	uint64_t ns = whole && e->features.clockid ? sample_timer_ns(&e->sample, &e->features) : 0;

	return sample_may_set_timer(ns) ? ns : 0;
}

void broker_tell_reader(const struct broker *b, const struct cpu_events *c)
{
	const struct peer_id who = {PEER_READER, (uint32_t)c->events.cpu};
	const struct message m = {.type = MESSAGE_CPU_EVENT};
	int fd = sample_fd_in_use(&c->events);

	if (c->events.index == 0 && broker_timer_ns(&b->events[0]) &&
	    supervisor_running(b->supervisor, who))
		(void)supervisor_send_now(b->supervisor, who, &m, &fd, 1);
}

void broker_set_timer(const struct broker *b, uint32_t cpu)
{
	const struct events *e = &b->events[0];
	uint64_t period = broker_timer_ns(e);

	for (uint32_t i = 0; period && i < e->cpus.n; i++) {
		if (e->cpus.items[i].events.cpu == (int)cpu)
			(void)sample_set_timer(sample_fd_in_use(&e->cpus.items[i].events), period);
	}
}
