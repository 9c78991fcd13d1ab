/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks that were read behind the switch, against made-up blocks: one that lasted until its stack
 * was read has that stack, and each other one what was copied at the switch.
 */
#include "src/profiler/block-proofs.h"
#include "src/profiler/switches.h"
#include "tests/unit/test.h"
#include "util/hash.h"

enum { N_ROUNDS = 300, N_BLOCKS = 60, N_THREADS = 3, COPIED = 1, READ = 2 };

static uint64_t seed;

static uint64_t random_below(uint64_t n)
{
	seed = hash_u64(seed + UINT64_C(0x9e3779b97f4a7c15));
	return seed % n;
}

/* By thread and stack; 0: without one. */
struct told {
	uint64_t ns[N_THREADS][3];
};

static void on_wait(void *ctx, const struct switch_wait *w)
{
	struct told *t = ctx;

	t->ns[w->tid][w->stack ? w->stack->addresses[0] : 0] += w->ns;
}

static struct switch_stack *stack_of(uint64_t address)
{
	static union {
		struct switch_stack stack;
		uint64_t words[16];
	} s;

	s.stack = (struct switch_stack){.n_user = 1};
	s.stack.addresses[0] = address;
	return &s.stack;
}

struct round {
	struct switches *s;
	struct block_proofs *p;
	uint64_t now, n_refuted;
	struct told truth, told;
};

/* The sample may come before the switch or behind it. All threads' reads overlap. */
static void block(struct round *r, struct switch_out *o)
{
	bool before = random_below(2);

	o->time_ns = r->now += 1 + random_below(50);
	r->n_refuted += block_proofs_judge(r->p, r->now);
	if (!before)
		switches_out(r->s, o);
	switches_stack(r->s, o, stack_of(COPIED));
	if (before)
		switches_out(r->s, o);
}

static void go_on(struct round *r, const struct switch_out *o, uint64_t read_ns)
{
	uint64_t ns;

	r->now += 1 + random_below(50);
	ns = r->now - o->time_ns;
	r->n_refuted += block_proofs_judge(r->p, r->now);
	switches_in(r->s, o->id, 0, r->now);
	r->truth.ns[o->tid][read_ns < r->now ? READ : COPIED] += ns;
}

static void test_truth(void)
{
	static const struct switches_callbacks callbacks = {.tell = on_wait};
	static const struct switches_limits limits = {
		.threads = 10, .keys = 10, .stack_bytes = 1 << 20};
	uint64_t n_refuted = 0, n = 0;

	for (seed = 1; seed <= N_ROUNDS; seed++) {
		uint64_t keep = seed, expected = 0;
		struct round r = {.now = 1000};

		CHECK_INT(switches_new(&r.s, &limits, &callbacks, &r.told), ==, 0);
		CHECK_INT(block_proofs_new(&r.p, r.s), ==, 0);
		for (int i = 0; i < N_BLOCKS; i++) {
			struct switch_out o[N_THREADS];
			uint64_t read_ns[N_THREADS];

			for (uint32_t t = 0; t < N_THREADS; t++) {
				o[t] = (struct switch_out){
					.id = t + 1, .tid = t, .pid = 9, .sp = 5, .ip = 6};
				block(&r, &o[t]);
				read_ns[t] = r.now + random_below(150);
				CHECK(block_proofs_add(r.p, &o[t], read_ns[t], stack_of(READ)));
			}
			for (uint32_t t = 0; t < N_THREADS; t++) {
				go_on(&r, &o[t], read_ns[t]);
				expected += read_ns[t] >= r.now;
				n++;
			}
		}
		r.n_refuted += block_proofs_judge(r.p, UINT64_MAX);
		switches_close(r.s, r.now);
		for (uint32_t t = 0; t < N_THREADS; t++) {
			CHECK_INT(r.told.ns[t][0], ==, 0);
			CHECK_INT(r.told.ns[t][COPIED], ==, r.truth.ns[t][COPIED]);
			CHECK_INT(r.told.ns[t][READ], ==, r.truth.ns[t][READ]);
		}
		CHECK_INT(r.n_refuted, ==, expected);
		n_refuted += r.n_refuted;
		block_proofs_free(r.p);
		switches_free(r.s);
		seed = keep;
	}
	CHECK(n_refuted > n / 10 && n_refuted < n / 2);
}

/* What is known of a place is the stack of the block that lasts, and not the copy. */
static void test_first_block_lasts(void)
{
	static const struct switches_callbacks callbacks = {.tell = on_wait};
	static const struct switches_limits limits = {
		.threads = 10, .keys = 10, .stack_bytes = 1 << 20};
	struct switch_out o = {.id = 1, .pid = 9, .sp = 5, .ip = 6, .time_ns = 100};
	struct block_proofs *p = NULL;
	struct switches *s = NULL;
	struct told told = {{{0}}};

	CHECK_INT(switches_new(&s, &limits, &callbacks, &told), ==, 0);
	CHECK_INT(block_proofs_new(&p, s), ==, 0);
	switches_out(s, &o);
	switches_in(s, 1, 0, 200); /* not sampled */
	o.time_ns = 300;
	switches_out(s, &o);
	switches_stack(s, &o, stack_of(COPIED));
	CHECK(block_proofs_add(p, &o, 310, stack_of(READ)));
	CHECK_INT(block_proofs_judge(p, 310), ==, 0);
	CHECK_INT(block_proofs_judge(p, 311), ==, 0);
	switches_close(s, 1000);
	CHECK_INT(told.ns[0][READ], ==, 800);
	CHECK_INT(told.ns[0][COPIED], ==, 0);
	/* Full: refused, and not lost in silence. */
	for (int i = 0; i < 256; i++)
		CHECK(block_proofs_add(p, &o, 2000, stack_of(READ)));
	CHECK(!block_proofs_add(p, &o, 2000, stack_of(READ)));
	block_proofs_free(p);
	switches_free(s);
}

/* Blocks in places that nobody has seen, which are read while they last; or that is what their
 * reader takes them for. */
static void test_late(void)
{
	static const struct switches_callbacks callbacks = {.tell = on_wait};
	static const struct switches_limits limits = {
		.threads = 10, .keys = N_BLOCKS * N_THREADS, .stack_bytes = 1 << 20};
	uint64_t n_in_time = 0;

	for (uint32_t i = 1; i <= N_ROUNDS; i++) {
		struct round r = {.now = 1000};

		seed = i;
		CHECK_INT(switches_new(&r.s, &limits, &callbacks, &r.told), ==, 0);
		CHECK_INT(block_proofs_new(&r.p, r.s), ==, 0);
		for (uint64_t k = 0; k < N_BLOCKS * N_THREADS; k++) {
			struct switch_out offered, o = {.id = 1 + k % N_THREADS,
							.tid = k % N_THREADS,
							.pid = 9,
							.sp = 5 + k,
							.ip = 6};
			uint64_t began = r.now, read_ns;

			o.time_ns = began;
			(void)block_proofs_judge(r.p, r.now);
			switches_out(r.s, &o);
			/* Drained so far; the read ends a while later, and then or before the
			 * thread goes on. */
			r.now += random_below(50);
			CHECK_INT(switches_unseen(r.s, r.now, 0, &offered, 1), ==, 1);
			CHECK_INT(offered.sp, ==, o.sp);
			read_ns = r.now + 1 + random_below(100);
			CHECK(block_proofs_add_late(r.p, &offered, read_ns, stack_of(READ)));
			r.now += 1 + random_below(100);
			(void)block_proofs_judge(r.p, r.now);
			switches_in(r.s, o.id, 0, r.now);
			r.truth.ns[o.tid][read_ns < r.now ? READ : 0] += r.now - began;
			n_in_time += read_ns < r.now;
			r.now += random_below(200);
		}
		CHECK_INT(block_proofs_judge(r.p, UINT64_MAX), ==, 0);
		switches_close(r.s, r.now);
		for (uint32_t t = 0; t < N_THREADS; t++) {
			CHECK_INT(r.told.ns[t][0], ==, r.truth.ns[t][0]);
			CHECK_INT(r.told.ns[t][READ], ==, r.truth.ns[t][READ]);
		}
		block_proofs_free(r.p);
		switches_free(r.s);
	}
	CHECK(n_in_time > N_ROUNDS * N_BLOCKS * N_THREADS / 4 &&
	      n_in_time < N_ROUNDS * N_BLOCKS * N_THREADS * 3 / 4);
}

int main(void)
{
	RUN(test_truth);
	RUN(test_late);
	RUN(test_first_block_lasts);
	return 0;
}
