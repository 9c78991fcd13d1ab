/* SPDX-License-Identifier: Apache-2.0 */
#include "src/screen/model.h"

#include <errno.h>

#include "tests/unit/test.h"

static struct top_model m;

static int add(struct top_table *t, const char *function, const char *module, const char *comm,
	       uint32_t pid, uint64_t self, uint64_t total)
{
	return top_table_add(t,
			     &(struct top_key){function, module, comm, "unit", pid, TOP_CODE_FILE},
			     self, total);
}

static const char *name(const struct top_table *t, uint32_t i)
{
	CHECK_INT(i, <, t->rows.n);
	return strtab_get(&t->strings, t->rows.items[i].function);
}

static void test_sum_and_sort(void)
{
	const struct top_table *s;
	struct top_table *t;

	top_model_init(&m);
	t = top_model_begin(&m, 0, 10);
	t->counts.n_samples = t->counts.whole = 9;
	t->counts.n_lost = 1;
	CHECK_INT(add(t, "spin", "a", "w", 1, 4, 4), ==, 0);
	CHECK_INT(add(t, "main", "a", "w", 1, 0, 9), ==, 0);
	t = top_model_begin(&m, 10, 20);
	t->counts.n_samples = t->counts.whole = 5;
	CHECK_INT(add(t, "spin", "a", "w", 1, 3, 3), ==, 0);
	CHECK_INT(add(t, "spin", "a", "w", 2, 2, 2), ==, 0);
	s = top_model_slide(&m, 20, 100);
	top_table_sort(&m.sum, TOP_SORT_SELF);
	CHECK_INT(s->rows.n, ==, 3);
	CHECK_STR(name(s, 0), "spin");
	CHECK_INT(s->rows.items[0].self, ==, 7);
	CHECK_INT(s->rows.items[1].pid, ==, 2);
	CHECK_INT(s->counts.n_samples, ==, 14);
	CHECK_INT(s->counts.n_lost, ==, 1);
	CHECK_INT(s->end_ns - s->start_ns, ==, 20);
	s = top_model_slide(&m, 20, 100);
	top_table_sort(&m.sum, TOP_SORT_TOTAL);
	CHECK_STR(name(s, 0), "main");
	top_model_deinit(&m);
}

static void add_call(struct top_table *t, const char *caller, const char *callee, uint64_t n)
{
	struct top_row key = {.function = strtab_put(&t->strings, callee)};
	uint32_t node;

	CHECK_INT(add(t, caller, "a", "w", 1, 0, n), ==, 0);
	node = top_table_node(t, TOP_NO_NODE, 0);
	CHECK(top_table_row(t, &key));
	node = top_table_node(t, node, t->rows.n - 1);
	t->nodes.items[node].total += n;
}

static void test_nodes_of_intervals_add_up(void)
{
	const struct top_table *s;

	top_model_init(&m);
	add_call(top_model_begin(&m, 0, 10), "main", "f", 2);
	add_call(top_model_begin(&m, 10, 20), "main", "g", 3);
	add_call(top_model_begin(&m, 20, 30), "main", "f", 4);
	s = top_model_slide(&m, 30, 100);
	CHECK_INT(s->nodes.n, ==, 3);
	CHECK_INT(s->nodes.items[1].total, ==, 6);
	CHECK_INT(s->nodes.items[2].total, ==, 3);
	CHECK_INT(s->nodes.items[2].parent, ==, 0);
	CHECK_STR(name(s, s->nodes.items[2].row), "g");
	top_model_deinit(&m);
}

static void test_window_slides(void)
{
	const struct top_table *s;

	top_model_init(&m);
	for (uint32_t i = 0; i < 3 * TOP_MAX_INTERVALS; i++)
		(void)add(top_model_begin(&m, i * 10, i * 10 + 10), "f", "a", "w", 1, 1, 1);
	CHECK_INT(m.n, ==, TOP_MAX_INTERVALS);
	s = top_model_slide(&m, 30 * TOP_MAX_INTERVALS, 50);
	CHECK_INT(s->rows.n, ==, 1);
	CHECK_INT(s->rows.items[0].self, ==, 5);
	s = top_model_slide(&m, 30 * TOP_MAX_INTERVALS + 50, 50);
	CHECK_INT(s->rows.n, ==, 0);
	top_model_deinit(&m);
}

static void test_full_table_counts_what_it_refuses(void)
{
	struct top_table *t;

	top_model_init(&m);
	t = top_model_begin(&m, 0, 10);
	for (uint32_t i = 0; i < TOP_MAX_ROWS; i++)
		CHECK_INT(add(t, "f", "a", "w", i, 1, 1), ==, 0);
	CHECK_INT(add(t, "f", "a", "w", TOP_MAX_ROWS, 1, 1), ==, -ENOSPC);
	CHECK_INT(add(t, "f", "a", "w", 7, 1, 1), ==, 0);
	CHECK_INT(top_model_slide(&m, 10, 10)->n_refused, ==, 1);
	top_model_deinit(&m);
}

/* Of what is in use the newest interval has all of it, and nothing may be left of others. */
static void test_in_use_does_not_add_up(void)
{
	const struct top_table *s;

	top_model_init(&m);
	for (uint32_t i = 1; i <= 3; i++) {
		struct top_table *t = top_model_begin(&m, i * 10 - 10, i * 10);

		t->in_use = true;
		t->unit = TOP_UNIT_BYTES;
		t->counts.n_samples = i;
		t->counts.whole = 100 * i;
		t->variance = i;
		add_call(t, "main", i < 3 ? "f" : "g", 100 * i);
	}
	s = top_model_slide(&m, 30, 100);
	CHECK(s->in_use);
	CHECK_INT(s->counts.whole, ==, 300);
	CHECK_INT(s->counts.n_samples, ==, 3);
	CHECK(s->variance == 3);
	CHECK_INT(s->rows.n, ==, 2);
	CHECK_INT(s->rows.items[0].total, ==, 300);
	CHECK_STR(name(s, 1), "g");
	CHECK_INT(s->nodes.n, ==, 2);
	CHECK_INT(s->nodes.items[1].total, ==, 300);
	CHECK_INT(s->start_ns, ==, 20);
	CHECK_INT(s->end_ns, ==, 30);
	/* All of it has ended. */
	top_model_begin(&m, 30, 40)->in_use = true;
	s = top_model_slide(&m, 40, 100);
	CHECK_INT(s->counts.whole, ==, 0);
	CHECK_INT(s->rows.n, ==, 0);
	top_model_deinit(&m);
}

static void test_variances_add_up(void)
{
	top_model_init(&m);
	top_model_begin(&m, 0, 10)->variance = 2;
	top_model_begin(&m, 10, 20)->variance = 3;
	CHECK(top_model_slide(&m, 20, 100)->variance == 5);
	top_model_deinit(&m);
}

int main(void)
{
	RUN(test_sum_and_sort);
	RUN(test_nodes_of_intervals_add_up);
	RUN(test_window_slides);
	RUN(test_full_table_counts_what_it_refuses);
	RUN(test_in_use_does_not_add_up);
	RUN(test_variances_add_up);
	return 0;
}
