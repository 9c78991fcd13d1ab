/* SPDX-License-Identifier: Apache-2.0 */
/* Live blocks against a plain list of them. */
#include <stdlib.h>
#include <string.h>

#include "src/profiler/live-blocks.h"
#include "src/profiler/switches.h"
#include "tests/unit/test.h"

#define N_PIDS	    4
#define N_ADDRESSES 64
#define N_STACKS    3
#define BLOCK	    1000.0

/* The model: who has what at an address; stack 0: nothing. */
static struct model {
	uint32_t stack, tid;
	uint64_t time_ns;
} model[N_PIDS][N_ADDRESSES];

static uint32_t draw(uint32_t n)
{
	static uint64_t x = 88172645463325252u;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (uint32_t)((x >> 20) % n);
}

static struct switch_stack *stack_of(uint32_t number)
{
	static union {
		struct switch_stack s;
		char room[sizeof(struct switch_stack) + 8 * sizeof(uint64_t)];
	} u;

	u.s = (struct switch_stack){.n_user = number + 1, .marker = 7};
	for (uint32_t i = 0; i < u.s.n_user; i++)
		u.s.addresses[i] = 0x1000 * number + i;
	return &u.s;
}

static bool add(struct live_blocks *b, uint32_t pid, uint32_t tid, uint64_t address, uint32_t stack,
		uint64_t time_ns)
{
	const struct live_block_facts f = {.address = address,
					   .time_ns = time_ns,
					   .bytes = BLOCK,
					   .objects = 1,
					   .pid = pid,
					   .tid = tid};

	return live_blocks_add(b, &f, stack_of(stack));
}

struct sums {
	double bytes[N_PIDS][2][N_STACKS + 1], objects;
	uint32_t n;
};

static void add_place(void *ctx, const struct live_place *place)
{
	struct sums *s = ctx;

	s->bytes[place->pid][place->tid][place->stack->n_user - 1] += place->bytes;
	s->objects += place->objects;
	s->n += place->n;
}

static void check_all(const struct live_blocks *b)
{
	struct sums got = {0}, want = {0};

	for (uint32_t pid = 0; pid < N_PIDS; pid++) {
		for (uint32_t i = 0; i < N_ADDRESSES; i++) {
			const struct model *m = &model[pid][i];

			want.objects += m->stack > 0;
			want.n += m->stack > 0;
			want.bytes[pid][m->tid][m->stack] += m->stack ? BLOCK : 0;
		}
	}
	live_blocks_each(b, add_place, &got);
	CHECK(memcmp(&got, &want, sizeof(got)) == 0);
	CHECK_INT(live_blocks_count(b), ==, (uint32_t)want.objects);
}

static bool is_even(void *ctx, uint64_t address)
{
	return address % 2 == 0;
}

static void prune(struct live_blocks *b, uint32_t pid, uint64_t time_ns)
{
	uint32_t n = 0;

	for (uint32_t i = 1; i < N_ADDRESSES; i += 2) {
		struct model *m = &model[pid][i];

		n += m->stack && m->time_ns < time_ns;
		if (m->time_ns < time_ns)
			*m = (struct model){0};
	}
	CHECK_INT(live_blocks_prune(b, pid, time_ns, is_even, NULL), ==, n);
}

static void one_step(struct live_blocks *b, uint64_t time_ns)
{
	uint32_t pid = draw(N_PIDS), address = draw(N_ADDRESSES), tid = draw(2);
	struct model *m = &model[pid][address], before = *m;

	switch (draw(100)) {
	case 0:
		live_blocks_end_process(b, pid);
		memset(model[pid], 0, sizeof(model[pid]));
		break;
	case 1:
		prune(b, pid, time_ns - draw(50));
		break;
	case 2 ... 20:
		live_blocks_end(b, pid, tid, address);
		live_blocks_undo_end(b, pid, tid, address);
		live_blocks_undo_end(b, pid, tid, address);
		CHECK(memcmp(m, &before, sizeof(before)) == 0);
		break;
	case 21 ... 60:
		live_blocks_end(b, pid, tid, address);
		*m = (struct model){0};
		break;
	default:
		*m = (struct model){1 + draw(N_STACKS), tid, time_ns};
		CHECK(add(b, pid, m->tid, address, m->stack, time_ns));
	}
}

static void like_the_model(void)
{
	struct live_blocks *b = NULL;

	CHECK_INT(live_blocks_new(&b, 100000, 1 << 20), ==, 0);
	for (uint32_t i = 0; i < 200000; i++) {
		one_step(b, 1000 + i);
		if (i % 100 == 0)
			check_all(b);
	}
	check_all(b);
	live_blocks_free(b);
}

/* The end of another block in between, of a block that is there again, by another thread. */
static void undone_no_more(void)
{
	struct live_blocks *b = NULL;

	CHECK_INT(live_blocks_new(&b, 100, 1 << 20), ==, 0);
	CHECK(add(b, 1, 1, 10, 1, 1) && add(b, 1, 1, 11, 1, 1));
	live_blocks_end(b, 1, 1, 10);
	live_blocks_end(b, 1, 1, 11);
	live_blocks_undo_end(b, 1, 1, 10);
	CHECK_INT(live_blocks_count(b), ==, 0u);
	live_blocks_undo_end(b, 1, 2, 11);
	CHECK_INT(live_blocks_count(b), ==, 0u);
	CHECK(add(b, 1, 1, 11, 2, 1));
	live_blocks_undo_end(b, 1, 1, 11);
	CHECK_INT(live_blocks_count(b), ==, 1u);
	live_blocks_free(b);
}

static void bounded(void)
{
	struct live_blocks *b = NULL;

	CHECK_INT(live_blocks_new(&b, 2, 1 << 20), ==, 0);
	CHECK(add(b, 1, 1, 10, 1, 1) && add(b, 1, 1, 11, 1, 1) && !add(b, 1, 1, 12, 1, 1));
	CHECK(add(b, 1, 1, 10, 2, 1)); /* in the place of one */
	CHECK_INT(live_blocks_count(b), ==, 2u);
	live_blocks_free(b);
	CHECK_INT(live_blocks_new(&b, 100, 200), ==, 0);
	CHECK(add(b, 1, 1, 10, 1, 1) && add(b, 1, 1, 11, 1, 1) && !add(b, 1, 1, 12, 2, 1));
	live_blocks_end_process(b, 1);
	CHECK(add(b, 1, 1, 12, 2, 1));
	live_blocks_free(b);
}

int main(void)
{
	RUN(like_the_model);
	RUN(undone_no_more);
	RUN(bounded);
	return 0;
}
