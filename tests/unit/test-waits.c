/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of locks, reasons and threads against a model of the same samples. */
#include "tests/unit/test.h"
#include "tests/unit/waits-model.h"
#include "util/hash.h"

static void test_by_chance(void)
{
	uint8_t bytes[600];
	uint64_t seed = 1;

	for (size_t n = 0; n < 500; n++) {
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)(seed = hash_u64(seed + 1));
		waits_model_run(bytes, n % (sizeof(bytes) + 1));
	}
}

/* A block that goes on over windows is one: its parts add up to the longest. */
static void test_longest(void)
{
	static const uint8_t rows[][MODEL_ROW] = {
		{0, 0, 0, 1, 0, 99}, {0, 1, 0, 1, 0, 9}, {0, 0, 0, 1, 0, 30}, {0, 0, 0, 1, 0, 4}};
	struct waits_model *m = calloc(1, sizeof(*m));
	struct lock_sum *locks = NULL;
	uint32_t n;

	CHECK(m);
	profile_init(&m->p, 1 << 20);
	waits_model_types(m);
	waits_model_tables(m);
	for (int i = 0; i < 4; i++)
		waits_model_sample(m, rows[i]);
	/* Thread 0: 100 so far and 31 more, then it ends with 5; thread 1: its own 10. */
	m->p.types[0].samples.items[0].n = m->p.types[0].samples.items[2].n = 0;
	m->p.types[0].samples.items[1].n = m->p.types[0].samples.items[3].n = 1;
	CHECK_INT(waits_by_lock(&m->p, &locks, &n), ==, 0);
	CHECK_INT(n, ==, 2);
	CHECK_INT(locks[0].longest_ns, ==, 136);
	CHECK_INT(locks[0].n, ==, 1);
	CHECK_INT(locks[1].longest_ns, ==, 10);
	free(locks);
	profile_deinit(&m->p);
	free(m);
}

int main(void)
{
	RUN(test_by_chance);
	RUN(test_longest);
	return 0;
}
