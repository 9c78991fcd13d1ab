/* SPDX-License-Identifier: Apache-2.0 */
#include "src/profiler/standing.h"
#include "tests/unit/test.h"

enum { MAX_TID = 64 };

static void add(struct standing *s, uint32_t tid)
{
	standing_add(s, &(struct message_stands){.pid = tid, .tid = tid, .ip = 1000 + tid});
}

/* Beside a list of them: those that came and did not end, in that order, each once. */
static void test_any_order(void)
{
	for (unsigned seed = 1; seed <= 50; seed++) {
		uint32_t model[1000], n = 0, first = 0;
		bool there[MAX_TID] = {false};
		struct message_stands found;
		struct standing s;

		srand(seed);
		standing_init(&s);
		for (int i = 0; i < 1000; i++) {
			uint32_t tid = 1 + (uint32_t)rand() % (MAX_TID - 1);

			if (rand() % 2) {
				if (!there[tid]) {
					add(&s, tid);
					model[n++] = tid;
				}
				there[tid] = true;
			} else if (rand() % 2) {
				standing_end(&s, tid);
				for (uint32_t k = first; k < n; k++)
					model[k] = model[k] == tid ? 0 : model[k];
				there[tid] = false;
			} else {
				while (first < n && model[first] == 0)
					first++;
				CHECK_INT(standing_next(&s, &found), ==, first < n);
				if (first == n)
					continue;
				CHECK_INT(found.tid, ==, model[first]);
				CHECK_INT(found.ip, ==, 1000 + model[first]);
				there[model[first++]] = false;
			}
		}
		for (uint32_t k = first; k < n; k++)
			first += model[k] == 0;
		CHECK_INT(standing_clear(&s), ==, n - first);
		CHECK(!standing_next(&s, &found));
		standing_deinit(&s);
	}
}

static void test_full(void)
{
	struct message_stands found;
	struct standing s;

	standing_init(&s);
	for (uint32_t i = 1; i <= STANDING_MAX + 10; i++)
		add(&s, i);
	CHECK_INT(standing_clear(&s), ==, STANDING_MAX);
	add(&s, 5);
	CHECK(standing_next(&s, &found));
	CHECK_INT(found.tid, ==, 5);
	CHECK(!standing_next(&s, &found));
	standing_deinit(&s);
}

int main(void)
{
	RUN(test_any_order);
	RUN(test_full);
	return 0;
}
