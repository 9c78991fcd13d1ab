/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Off-CPU time has a cost at each context switch, and the programs of the host decide how many
 * there are. If there are too many, they are followed in turns: a tenth of a second out of two, out
 * of four ... The profiler learns from the ledger when the events stood still, and reports that
 * time as unknown.
 *
 * The cost is estimated, because the kernel's part of it is time of the programs that switch. In a
 * daemon it may use half of [limits] cpu. A capture of the host is somebody's wish, so it may use
 * more; one of processes is bounded by what these do.
 */
#include "config.h"

#include <stdio.h>

#include "src/broker/internal.h"
#include "src/sample/ledger.h"
#include "util/log.h"
#include "util/loop.h"

#define TURN_NS	       (100 * NSEC_PER_MSEC)
#define GRANT_NS       (250 * NSEC_PER_MSEC)
#define KNOWN_GRANT_NS (1000 * NSEC_PER_MSEC) /* where nearly all places are known */
#define COST_OF_SWITCH 650 /* ns: 350 in the kernel, the rest to read and pair it */
#define NO_LIMIT       1000000
#define CAPTURE_PPM    50000 /* of all CPUs: 77,000 switches a second of each */

static struct events *find_switches(struct broker *b)
{
	for (uint32_t i = 0; i < b->options.n_events; i++) {
		if (b->options.events[i].use == SAMPLE_USE_SWITCHES)
			return &b->events[i];
	}
	return NULL;
}

/* Both events of off-CPU time. */
static void enable_all(struct broker *b, bool enable)
{
	for (uint32_t i = 0; i < b->options.n_events; i++) {
		if (sample_use_is_switches(b->options.events[i].use))
			(void)events_enable(&b->events[i], enable);
	}
}

static void change(struct broker *b, bool off)
{
	struct switch_turns *t = &b->turns;
	uint64_t now;

	if (off == t->off)
		return;
	if (off)
		enable_all(b, false);
	now = clock_monotonic_ns();
	if (off) {
		ledger_begin_gap(b->ledger, now);
		t->counted_ns += now - t->changed_ns;
	} else {
		ledger_end_gap(b->ledger, now);
		enable_all(b, true);
	}
	t->off = off;
	t->changed_ns = now;
}

static void on_turn(void *ctx)
{
	struct broker *b = ctx;
	struct switch_turns *t = &b->turns;
	uint64_t others = (UINT64_C(1) << t->halving.times) - 1;

	if (!broker_is_sampling(b) || !find_switches(b))
		return;
	change(b, !t->off && others > 0);
	if (t->off || others > 0)
		loop_set_timer(b->loop, t->timer, t->off ? others * TURN_NS : TURN_NS);
}

static bool is_granted(enum sample_use use)
{
	return use == SAMPLE_USE_BLOCKS || use == SAMPLE_USE_WAKEUPS;
}

/* Those of whole CPUs have a budget that the kernel keeps. */
void broker_rest_event(struct broker *b, const struct message *m)
{
	uint32_t index = m->cpu.index;

	if (index < b->options.n_events && is_granted(b->options.events[index].use) &&
	    broker_is_sampling(b) && !b->turns.off)
		events_rest(&b->events[index], m->cpu.cpu);
}

/* A grant stops the CPUs for a moment, and a stack is copied for each block of it. */
static uint64_t grant_ns(const struct broker *b)
{
	return b->turns.known ? KNOWN_GRANT_NS : GRANT_NS;
}

/* Places that are new should not wait: the grant that was put off is due. */
void broker_know_places(struct broker *b, bool known)
{
	struct switch_turns *t = &b->turns;
	uint64_t since = clock_monotonic_ns() - t->granted_ns;

	t->known = known;
	loop_set_timer(b->loop, t->grant_timer, since < grant_ns(b) ? grant_ns(b) - since : 0);
}

/* Some more blocks may be sampled. */
static void on_grant(void *ctx)
{
	struct broker *b = ctx;

	if (!find_switches(b))
		return;
	b->turns.granted_ns = clock_monotonic_ns();
	for (uint32_t i = 0; i < b->options.n_events; i++) {
		if (is_granted(b->options.events[i].use) && broker_is_sampling(b) && !b->turns.off)
			events_refill(&b->events[i]);
	}
	loop_set_timer(b->loop, b->turns.grant_timer, grant_ns(b));
}

/* Plain switches have records that are no samples, and are counted by nobody but the kernel. 0: it
 * does not say. */
static uint64_t count_of_host(void)
{
	FILE *f = fopen("/proc/stat", "re");
	_cleanup_free_ char *line = NULL;
	unsigned long long n = 0;
	size_t size = 0;

	while (f && getline(&line, &size, f) > 0) {
		if (sscanf(line, "ctxt %llu", &n) == 1)
			break;
	}
	if (f)
		(void)fclose(f);
	return n;
}

static struct sample_tally count_records(const struct broker *b, const struct events *e)
{
	return e->sample.switch_fields.plain ? (struct sample_tally){.samples = count_of_host()}
					     : ledger_sum(b->ledger, e->sample.index);
}

void broker_begin_turns(struct broker *b)
{
	struct switch_turns *t = &b->turns;
	const struct events *e = find_switches(b);
	struct sample_tally n;

	if (!e)
		return;
	if (t->off)
		ledger_end_gap(b->ledger, clock_monotonic_ns());
	t->off = false;
	t->counted_ns = 0;
	n = count_records(b, e);
	t->changed_ns = clock_monotonic_ns();
	record_rate_begin(&t->rate, n.samples, n.lost, t->changed_ns);
	if (t->halving.times > 0)
		loop_set_timer(b->loop, t->timer, TURN_NS);
	loop_set_timer(b->loop, t->grant_timer, grant_ns(b));
}

static bool is_daemon(const struct broker *b)
{
	return !b->options.capture && !b->options.screen;
}

/* Of all CPUs, in millionths. */
static uint32_t limit_ppm(const struct broker *b)
{
	return is_daemon(b) ? b->options.config->cpu_ppm / 2 : CAPTURE_PPM;
}

static void tell(struct broker *b, uint64_t per_second)
{
	uint32_t bits = (1u << b->turns.halving.times) - 1;
	uint32_t before = b->budget.reduced & REDUCED_SWITCHES_BITS;

	b->budget.reduced = (b->budget.reduced & ~REDUCED_SWITCHES_BITS) | bits << REDUCED_SWITCHES;
	if (bits << REDUCED_SWITCHES > before)
		log_warning("quality goes down: off-CPU time is measured 1/%u of the time: there "
			    "are %llu context switches a second, which may cost %.4g%% of the "
			    "CPUs%s",
			    bits + 1, (unsigned long long)per_second, limit_ppm(b) / 1e4,
			    is_daemon(b) ? ", half of [limits] cpu" : "");
	else
		log_info("quality goes up: off-CPU time is measured %s%u of the time again, at "
			 "%llu context switches a second",
			 bits ? "1/" : "", bits + 1, (unsigned long long)per_second);
	if (is_daemon(b))
		broker_tell_symbolizer_config(b);
}

void broker_look_at_switches(struct broker *b)
{
	struct switch_turns *t = &b->turns;
	const struct events *e = find_switches(b);
	uint64_t now = clock_monotonic_ns(), counted, per_second, limit;
	struct sample_tally n;
	uint32_t before = t->halving.times;

	/* The ledger's gaps have times of the records' clock, which must be one we chose. */
	if (!e || b->options.n_pids > 0 || !broker_is_sampling(b) || !e->features.clockid)
		return;
	if (!t->changed_ns)
		broker_begin_turns(b);
	counted = t->counted_ns + (t->off ? 0 : now - t->changed_ns);
	if (now - t->rate.looked_ns < BROKER_LOOK_NS / 2 || counted < TURN_NS / 2)
		return;
	n = count_records(b, e);
	/* The kernel counts in the turns that are left out, too. */
	per_second =
		record_rate_look(&t->rate, n.samples, n.lost, now,
				 e->sample.switch_fields.plain ? now - t->rate.looked_ns : counted);
	t->counted_ns = 0;
	t->changed_ns = t->off ? t->changed_ns : now;
	limit = (uint64_t)e->cpus.n * limit_ppm(b) * 1000; /* ns a second */
	if (is_daemon(b) && b->options.config->cpu_ppm == NO_LIMIT)
		limit = UINT64_MAX;
	if (halving_decide(&t->halving, per_second * COST_OF_SWITCH, limit, REDUCED_MAX_HALVINGS) ==
	    before)
		return;
	tell(b, per_second);
	if (before == 0)
		loop_set_timer(b->loop, t->timer, TURN_NS);
}

int broker_add_turns(struct broker *b)
{
	int r;

	if ((r = b->turns.timer = loop_add_timer(b->loop, UINT64_MAX, 0, on_turn, b)) < 0 ||
	    (r = b->turns.grant_timer = loop_add_timer(b->loop, GRANT_NS, 0, on_grant, b)) < 0)
		return r;
	return 0;
}
