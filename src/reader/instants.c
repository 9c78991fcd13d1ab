/* SPDX-License-Identifier: Apache-2.0 */
#include "src/reader/instants.h"
#include "src/sample/sample.h"

/* Of a block: the CPU hardly idled, and a second thread was seen. Plain ones may never find it
 * where there is one, so one of so many is random nevertheless. */
#define MIN_BUSY    (INSTANTS_BLOCK - INSTANTS_BLOCK / 8)
#define MIN_CHANGES 2
#define TRY_EACH    8
/*
 * A thread in front of the reader is sampled again and again at the period that was set for one
 * sample: too often, on the average, and SAMPLE_TIMER_PART times at most. One such sample in a
 * block does no harm. Where there are more, so many blocks are plain, and twice as many the next
 * time.
 */
#define MAX_SURPLUS	 16
#define PLAIN_BLOCKS	 16
#define MAX_PLAIN_BLOCKS 1024

void instants_init(struct instants *s, uint64_t period_ns, bool own_time, uint64_t seed)
{
	*s = (struct instants){
		.period_ns = period_ns, .own_ns = own_time ? period_ns : 0, .random = seed | 1};
}

void instants_forget(struct instants *s)
{
	s->set_ns = 0;
}

static uint64_t below(struct instants *s, uint64_t n)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return (uint64_t)((double)(s->random >> 11) * 0x1p-53 * (double)n);
}

static void draw(struct instants *s)
{
	s->next = 0;
	for (uint32_t i = 0; i < INSTANTS_BLOCK; i++) {
		uint64_t t = s->begin_ns + below(s, INSTANTS_BLOCK * s->period_ns);
		uint32_t k = i;

		for (; k > 0 && s->at[k - 1] > t; k--)
			s->at[k] = s->at[k - 1];
		s->at[k] = t;
	}
}

/* With nothing known of the time before. */
static void begin_anew(struct instants *s, uint64_t time_ns)
{
	s->begin_ns = time_ns - s->period_ns / 2;
	s->n = s->n_changes = 0;
	s->is_random = false;
}

/* In a plain block the first instant is half a period after its begin. */
static void begin_block(struct instants *s, uint64_t begin_ns)
{
	bool may_be_shared = s->n_changes >= MIN_CHANGES || ++s->n_alone % TRY_EACH == 0;

	s->is_random = s->n >= MIN_BUSY && may_be_shared && s->n_plain == 0;
	s->n_plain -= s->n_plain > 0;
	s->n_surplus -= s->n_surplus > 0;
	s->begin_ns = begin_ns;
	s->n = s->n_changes = 0;
	if (s->is_random)
		draw(s);
}

static uint64_t end_of(const struct instants *s)
{
	return s->begin_ns + INSTANTS_BLOCK * s->period_ns;
}

static void be_plain(struct instants *s, uint64_t time_ns)
{
	s->n_surplus = 0;
	s->n_plain = s->plain_blocks ? s->plain_blocks : PLAIN_BLOCKS;
	s->plain_blocks = s->n_plain < MAX_PLAIN_BLOCKS ? 2 * s->n_plain : s->n_plain;
	begin_anew(s, time_ns);
}

/* The block of the sample. */
static void find_block(struct instants *s, uint64_t time_ns, uint32_t n)
{
	if (s->set_ns && s->set_ns < s->period_ns)
		s->n_surplus += n - 1;
	if (s->n_surplus > MAX_SURPLUS)
		be_plain(s, time_ns);
	else if (s->begin_ns == 0 || time_ns >= end_of(s) + INSTANTS_BLOCK * s->period_ns)
		begin_anew(s, time_ns);
	else if (time_ns >= end_of(s))
		begin_block(s, end_of(s));
}

static void count(struct instants *s, uint32_t tid, uint32_t n)
{
	s->n += n;
	s->n_changes += tid != s->last_tid;
	s->last_tid = tid;
}

/* Of the block; 0: it has no more. Those before from_ns are owed. */
static uint64_t random_instant(struct instants *s, uint64_t from_ns, uint64_t now_ns)
{
	while (s->next < INSTANTS_BLOCK && s->at[s->next] >= from_ns && s->at[s->next] <= now_ns)
		s->next++;
	return s->next < INSTANTS_BLOCK ? s->at[s->next++] : 0;
}

/* The CPU idled until the sample: what was to come before then found nothing. */
static void pass_over(struct instants *s, uint64_t time_ns)
{
	while (s->next < INSTANTS_BLOCK && s->at[s->next] <= time_ns)
		s->next++;
}

/* Of a random block, or the first one behind it. */
static uint64_t find_instant(struct instants *s, uint64_t from_ns, uint64_t now_ns)
{
	uint64_t t = random_instant(s, from_ns, now_ns);

	if (t)
		return t;
	begin_block(s, end_of(s));
	return s->is_random ? random_instant(s, from_ns, now_ns) : s->begin_ns + s->period_ns / 2;
}

static uint64_t set(struct instants *s, uint64_t at_ns, uint64_t now_ns)
{
	/* An instant that is nearer has to wait. What runs when the reader sleeps again mostly runs
	 * that long. */
	uint64_t least = s->period_ns / SAMPLE_TIMER_PART;

	s->set_ns = at_ns > now_ns + least ? at_ns - now_ns : least;
	s->due_ns = now_ns + s->set_ns;
	return s->set_ns;
}

uint64_t instants_hold(struct instants *s, uint64_t now_ns)
{
	/* Nor does a timer with its own time go on, mostly. */
	if (s->set_ns == 0 || s->set_ns >= s->period_ns || s->own_ns)
		return 0;
	return set(s, now_ns + s->period_ns, now_ns);
}

static uint64_t next_after(struct instants *s, const struct instants_sample *sample,
			   uint64_t now_ns)
{
	find_block(s, sample->time_ns, sample->n);
	count(s, sample->tid, sample->n);
	if (s->is_random && sample->time_ns > s->due_ns + s->period_ns / SAMPLE_TIMER_PART)
		pass_over(s, sample->time_ns);
	if (!s->is_random && sample->time_ns + s->period_ns >= end_of(s)) {
		begin_block(s, end_of(s));
		/* The kernel keeps the instants of plain blocks by itself. */
		if (!s->is_random)
			s->begin_ns = sample->time_ns + s->period_ns / 2;
	}
	if (s->is_random)
		return set(s, find_instant(s, sample->seen_ns, now_ns), now_ns);
	return s->set_ns == s->period_ns ? 0 : set(s, now_ns + s->period_ns, now_ns);
}

uint64_t instants_next(struct instants *s, const struct instants_sample *sample, uint64_t now_ns)
{
	struct instants_sample own = *sample;

	if (!s->own_ns)
		return next_after(s, sample, now_ns);
	s->own_ns += sample->n * (s->set_ns ? s->set_ns : s->period_ns);
	own.time_ns = own.seen_ns = s->own_ns;
	return next_after(s, &own, s->own_ns);
}
