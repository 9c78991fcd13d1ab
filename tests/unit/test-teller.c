/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a teller says to a profiler that reads slowly: whatever stack arrives, its numbers are those
 * of the texts that were meant, and each text came once.
 */
#include <errno.h>

#include "src/process/frame-ring.h"
#include "src/reader/teller.h"
#include "tests/unit/test.h"

enum {
	N_STACKS = 20000,
	MAX_FRAMES = 8,
	N_TEXTS = 1500, /* more than a teller remembers */
	MAX_LENGTH = FRAME_RECORD_MAX_TEXT + 100,
};

static char texts[N_TEXTS][MAX_LENGTH + 1];
static struct teller *teller;
static struct frame_ring *ring; /* the profiler's side */
static uint64_t seed = 11;

/* The profiler's: text number i + 1 is texts[known[i]]. */
static uint32_t known[N_TEXTS], n_known, n_forgotten, n_got, n_missing;
static bool has[N_TEXTS];

/* By stack: which texts its frames are to have. */
static uint16_t meant[N_STACKS][MAX_FRAMES];

static uint32_t chance(uint32_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((seed >> 33) % below);
}

static void begin(void)
{
	int fd = teller_new(&teller);

	if (fd == -ENOTSUP)
		SKIP("this kernel has no seals");
	CHECK_INT(fd, >=, 0);
	CHECK_INT(frame_ring_map(&ring, fd), ==, 0);
	(void)close(fd);
	n_known = n_forgotten = n_got = n_missing = 0;
	memset(has, 0, sizeof(has));
}

static void end(void)
{
	teller = teller_free(teller);
	ring = frame_ring_free(ring);
}

/* Distinct ones: the number of a text is in it. */
static void make_texts(void)
{
	for (uint32_t i = 0; i < N_TEXTS; i++) {
		size_t n = i % 50 == 0 ? MAX_LENGTH : 8 + chance(3000);

		memset(texts[i], 'a' + (int)(i % 26), n);
		(void)snprintf(texts[i], n, "%u", i);
		texts[i][strlen(texts[i])] = '.';
	}
}

static void get_text(const struct frame_record_text *r, int n)
{
	uint32_t i;

	CHECK_INT(n, ==, offsetof(struct frame_record_text, text) + r->n);
	i = (uint32_t)atoi(r->text);
	CHECK_INT(i, <, N_TEXTS);
	CHECK_INT(r->n, ==, strnlen(texts[i], FRAME_RECORD_MAX_TEXT));
	CHECK(memcmp(r->text, texts[i], r->n) == 0);
	CHECK(!has[i]);
	has[i] = true;
	known[n_known++] = i;
}

static void get_stack(const struct frame_record_stack *s, int n)
{
	const uint16_t *want = meant[s->time_ns];

	CHECK_INT(n, ==, offsetof(struct frame_record_stack, frames) + s->n * sizeof(s->frames[0]));
	CHECK_INT(s->n, ==, MAX_FRAMES);
	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t number = s->frames[i].function;

		CHECK_INT(number, <=, n_known);
		if (number)
			CHECK_INT(known[number - 1], ==, want[i]);
		n_missing += number == 0;
	}
	n_got++;
}

/* The oldest record; false: there is none. */
static bool get(void)
{
	static union {
		uint32_t type;
		struct frame_record_text text;
		struct frame_record_stack stack;
		uint8_t bytes[FRAME_RING_MAX_RECORD];
	} r;
	int n = frame_ring_peek(ring, &r);

	CHECK_INT(n, >=, 0);
	if (n == 0)
		return false;
	if (r.type == FRAME_RECORD_TEXT) {
		get_text(&r.text, n);
	} else if (r.type == FRAME_RECORD_STACK) {
		get_stack(&r.stack, n);
	} else {
		CHECK_INT(r.type, ==, FRAME_RECORD_FORGET);
		n_known = 0;
		memset(has, 0, sizeof(has));
		n_forgotten++;
	}
	frame_ring_drop(ring);
	return true;
}

static bool put(uint32_t id, uint32_t n_texts)
{
	static struct frame_record_stack s;

	s = (struct frame_record_stack){.type = FRAME_RECORD_STACK, .time_ns = id, .n = MAX_FRAMES};
	teller_begin(teller);
	for (uint32_t i = 0; i < MAX_FRAMES; i++) {
		meant[id][i] = (uint16_t)chance(n_texts);
		s.frames[i].function = teller_text(teller, texts[meant[id][i]]);
	}
	return teller_stack(teller, &s);
}

/* While there is room nothing is missing, and what is known is not told again. */
static void test_room(void)
{
	begin();
	for (uint32_t i = 0; i < 1000; i++) {
		CHECK(put(i, 100));
		while (get())
			;
	}
	CHECK_INT(n_got, ==, 1000);
	CHECK_INT(n_missing, ==, 0);
	CHECK_INT(n_forgotten, ==, 0);
	CHECK_INT(n_known, ==, 100);
	end();
}

/* More texts than either side remembers, and a ring that is full at times. */
static void test_full(void)
{
	uint32_t n_put = 0;

	begin();
	for (uint32_t i = 0; i < N_STACKS; i++) {
		n_put += put(i, N_TEXTS);
		for (uint32_t k = i / 1000 % 2 ? chance(30) : 0; k > 0 && get(); k--)
			;
	}
	while (get())
		;
	CHECK_INT(n_put, <, N_STACKS);
	CHECK_INT(n_got, ==, n_put);
	CHECK_INT(n_missing, >, 0);
	CHECK_INT(n_forgotten, >, 1);
	/* With room it recovers. */
	n_missing = 0;
	CHECK(put(0, N_TEXTS));
	while (get())
		;
	CHECK_INT(n_missing, ==, 0);
	end();
}

static void test_empty(void)
{
	begin();
	CHECK_INT(teller_text(teller, ""), ==, 0);
	CHECK(!get());
	end();
}

int main(void)
{
	make_texts();
	RUN(test_room);
	RUN(test_full);
	RUN(test_empty);
	return 0;
}
