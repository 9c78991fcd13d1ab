/* SPDX-License-Identifier: Apache-2.0 */
/* Live blocks against a plain list of them. */
#include <stdlib.h>
#include <string.h>

#include "src/process/kept-blocks.h"
#include "src/profiler/live-blocks.h"
#include "src/profiler/switches.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"

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

/* ---- Blocks that outlive their profiler ---- */

static struct kept_blocks *new_kept(void)
{
	_cleanup_close_ int fd = kept_blocks_new();
	struct kept_blocks *k = NULL;

	CHECK_INT(fd, >=, 0);
	CHECK_INT(kept_blocks_map(fd, &k), ==, 0);
	return k;
}

static void add_to_sum(void *ctx, const struct live_place *place)
{
	double *bytes = ctx;

	bytes[place->pid * 2 + place->tid] += place->bytes;
}

static void compare_sums(const struct live_blocks *a, const struct live_blocks *b)
{
	double got[2 * N_PIDS] = {0}, want[2 * N_PIDS] = {0};

	live_blocks_each(a, add_to_sum, want);
	live_blocks_each(b, add_to_sum, got);
	CHECK(memcmp(got, want, sizeof(got)) == 0);
	CHECK_INT(live_blocks_count(a), ==, live_blocks_count(b));
}

/* A profiler follows another one, again and again, and the first one goes on as the model. */
static void adopted(void)
{
	struct live_blocks *all = NULL, *b = NULL;
	struct kept_blocks *k = new_kept();

	memset(model, 0, sizeof(model));
	CHECK_INT(live_blocks_new(&all, 100000, 1 << 20), ==, 0);
	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t pid = draw(N_PIDS), tid = draw(2), address = 1 + draw(N_ADDRESSES);
		uint32_t step = draw(100), n_known;

		if (i % 200 == 0) {
			live_blocks_free(b);
			CHECK_INT(live_blocks_new(&b, 1000, 1 << 20), ==, 0);
			n_known = live_blocks_adopt(b, k, stack_of(0));
			CHECK_INT(n_known, ==, live_blocks_count(all));
		}
		pid += !pid;
		for (int both = 0; both < 2; both++) {
			struct live_blocks *to = both ? b : all;

			if (step == 0)
				live_blocks_end_process(to, pid);
			else if (step < 10)
				(void)live_blocks_prune(to, pid, UINT64_MAX, is_even, NULL);
			else if (step < 50)
				live_blocks_end(to, pid, tid, address);
			else
				CHECK(add(to, pid, tid, address, 1 + draw(1), i));
		}
		compare_sums(all, b);
	}
	live_blocks_free(all);
	live_blocks_free(b);
	kept_blocks_unmap(k);
}

/* One that was killed while it adopted them has left some twice; and nonsense is not a block. */
static void adopted_twice(void)
{
	struct kept_block block = {
		.address = 16, .bytes = BLOCK, .objects = 1, .pid = 1, .table = 0x5000};
	struct kept_blocks *k = new_kept();
	struct live_blocks *b = NULL;

	kept_blocks_put(k, 1, &block);
	kept_blocks_put(k, 4, &block);
	block.address = 32;
	kept_blocks_put(k, 5, &block);
	block.bytes = -1;
	kept_blocks_put(k, 7, &block);
	for (int i = 0; i < 3; i++) {
		CHECK_INT(live_blocks_new(&b, 100, 1 << 20), ==, 0);
		CHECK_INT(live_blocks_adopt(b, k, stack_of(0)), ==, 2u);
		CHECK_INT(live_blocks_table(b, 1), ==, 0x5000);
		b = live_blocks_free(b);
	}
	kept_blocks_unmap(k);
}

int main(void)
{
	RUN(like_the_model);
	RUN(undone_no_more);
	RUN(bounded);
	RUN(adopted);
	RUN(adopted_twice);
	return 0;
}
