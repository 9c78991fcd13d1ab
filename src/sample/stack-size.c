/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A larger copy takes room in the ring and time in every sample, even if its stack does not need
 * it; a smaller one cuts stacks. There are four sizes and these rules, applied once in each period
 * of some hundred user stacks:
 *
 * - grow if 2% of the stacks are cut by the end of the copy, and grow further until that has saved
 *   a quarter of those;
 * - go back if no size saves so many (an endless recursion), and try again only when half as many
 *   more are cut as then;
 * - shrink if for some periods in a row less than one in 200 needed more than the next smaller
 *   size.
 *
 * Between 2% and 0.5% nothing changes. A shrink that has to be undone doubles the number of calm
 * periods that the next one needs, so that a load that comes and goes does not change the events
 * over and over: shrinks become rarer, with at most three growths between two of them.
 *
 * The rings must hold a quarter of a second of a busy CPU: they are read every 200 ms, and when
 * they are half full.
 */
#include "src/sample/stack-size.h"
#include "util/cleanup.h"
#include "util/clock.h"

enum {
	MIN_STACKS = 256,
	FIRST_CALM = 4, /* periods */
	MAX_CALM = 1 << 20,
	RECORD_BYTES = 1024, /* of a sample without its stack, roughly */
	MIN_RECORDS = 16,    /* of a ring, at least */
};
#define MIN_PERIOD_NS (1 * NSEC_PER_SEC)
#define GROW_SHARE    0.02
#define SHRINK_SHARE  0.005

/* The kernel copies no more than the largest. */
static const uint32_t sizes[] = {8 << 10, STACK_SIZE_FIRST, 32 << 10, STACK_SIZE_LARGEST};

static unsigned int index_of(uint32_t bytes)
{
	unsigned int i = 0;

	while (i + 1 < ARRAY_SIZE(sizes) && sizes[i] < bytes)
		i++;
	return i;
}

uint32_t stack_size_max(uint64_t ring_bytes, uint32_t rate_hz)
{
	unsigned int i = ARRAY_SIZE(sizes) - 1;

	for (; i > 0; i--) {
		uint64_t record = (uint64_t)sizes[i] + RECORD_BYTES;
		uint64_t n = sizes[i] > STACK_SIZE_FIRST ? rate_hz / 4 : 0;

		if (record * (n > MIN_RECORDS ? n : MIN_RECORDS) <= ring_bytes)
			break;
	}
	return sizes[i];
}

static void begin_period(struct stack_size *s, uint64_t now_ns)
{
	s->begin_ns = now_ns;
	s->n = s->cut = s->beyond = 0;
}

void stack_size_init(struct stack_size *s, uint32_t bytes, uint64_t ring_bytes, uint32_t rate_hz)
{
	*s = (struct stack_size){
		.bytes = bytes,
		.max_bytes = stack_size_max(ring_bytes, rate_hz),
		.calm_wanted = FIRST_CALM,
	};
}

static uint32_t smaller(const struct stack_size *s)
{
	unsigned int i = index_of(s->bytes);

	return i > 0 && s->bytes > STACK_SIZE_FIRST ? sizes[i - 1] : 0;
}

static uint32_t larger(const struct stack_size *s)
{
	unsigned int i = index_of(s->bytes) + 1;

	return i < ARRAY_SIZE(sizes) && sizes[i] <= s->max_bytes ? sizes[i] : 0;
}

void stack_size_count(struct stack_size *s, uint64_t max_stack, uint64_t depth_bytes, bool cut)
{
	/* The rings still hold samples of the previous size. */
	if (max_stack > s->bytes || max_stack <= s->bytes / 4 * 3)
		return;
	s->n++;
	s->cut += cut;
	s->beyond += cut || depth_bytes >= smaller(s);
}

static uint32_t ask(struct stack_size *s, uint32_t bytes)
{
	s->asked = bytes;
	s->calm = 0;
	return bytes;
}

/*
 * Judges a trial of larger copies. true: they do not pay yet; *ret: the next size, or the old one.
 */
static bool judge_trial(struct stack_size *s, double cut, uint32_t *ret)
{
	uint32_t from = s->trial_from;

	if (cut <= s->trial_cut * 3 / 4) {
		s->trial_from = 0;
		return false;
	}
	if (larger(s)) {
		*ret = ask(s, larger(s));
		return true;
	}
	s->trial_from = 0;
	s->refused_from = from;
	s->refused_cut = s->trial_cut;
	*ret = ask(s, from);
	return true;
}

static bool is_refused(const struct stack_size *s, double cut)
{
	return s->refused_from && s->bytes >= s->refused_from && cut < s->refused_cut * 3 / 2;
}

static uint32_t decide(struct stack_size *s, double cut, double beyond)
{
	uint32_t more = larger(s), less = smaller(s), next;

	if (s->trial_from && judge_trial(s, cut, &next))
		return next;
	if (cut >= GROW_SHARE && more && !is_refused(s, cut)) {
		if (s->shrunk && s->calm_wanted < MAX_CALM)
			s->calm_wanted *= 2;
		s->shrunk = false;
		s->trial_from = s->bytes;
		s->trial_cut = cut;
		return ask(s, more);
	}
	s->calm = less && beyond < SHRINK_SHARE ? s->calm + 1 : 0;
	if (s->calm < s->calm_wanted)
		return 0;
	s->shrunk = true;
	return ask(s, less);
}

uint32_t stack_size_decide(struct stack_size *s, uint64_t now_ns)
{
	uint32_t wanted;

	if (!s->begin_ns)
		s->begin_ns = now_ns;
	if (s->asked || s->n < MIN_STACKS || now_ns - s->begin_ns < MIN_PERIOD_NS)
		return 0;
	wanted = decide(s, (double)s->cut / (double)s->n, (double)s->beyond / (double)s->n);
	begin_period(s, now_ns);
	return wanted;
}

void stack_size_set(struct stack_size *s, uint32_t bytes)
{
	/* Refused: the trial is over. */
	if (bytes != s->asked)
		s->trial_from = 0;
	s->asked = 0;
	s->bytes = bytes;
	begin_period(s, 0);
}
