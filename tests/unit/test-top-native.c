/* SPDX-License-Identifier: Apache-2.0 */
/* A live view's sum without the native functions of interpreters, against stacks one by one. */
#include <stdio.h>
#include <stdlib.h>

#include "src/screen/native.h"
#include "tests/unit/test.h"

enum { N_NAMES = 3, N_MODULES = 6, N_STACKS = 400, MAX_DEPTH = 9 };

/* Three files, two runtimes, and code in no file. */
static enum top_code code_of(int module)
{
	return module < 3 ? TOP_CODE_FILE : module < 5 ? TOP_CODE_RUNTIME : TOP_CODE_OTHER;
}

static uint64_t want_self[N_NAMES * N_MODULES], want_total[N_NAMES * N_MODULES];
static struct top_table sum, out;

/* functions: from the process on; each is a name and a module. */
static void put_stack(const int *functions, int n, uint64_t weight)
{
	struct top_row key = {.pid = 7, .comm = strtab_put(&sum.strings, "python3")};
	uint32_t node = TOP_NO_NODE;
	char text[16];

	for (int i = -1; i < n; i++) {
		const struct top_row *row;

		if (i >= 0) {
			(void)snprintf(text, sizeof(text), "f%d", functions[i]);
			key.function = strtab_put(&sum.strings, text);
			(void)snprintf(text, sizeof(text), "m%d", functions[i] % N_MODULES);
			key.module = strtab_put(&sum.strings, text);
			key.code = code_of(functions[i] % N_MODULES);
		}
		row = top_table_row(&sum, &key);
		node = top_table_node(&sum, node, (uint32_t)(row - sum.rows.items));
		sum.nodes.items[node].total += weight;
		sum.nodes.items[node].self += i + 1 == n ? weight : 0;
	}
	sum.counts.whole += weight;
}

static void expect_stack(const int *functions, int n, uint64_t weight)
{
	bool hidden[N_MODULES] = {false}, seen[N_NAMES * N_MODULES] = {false};
	int last = -1;

	for (int i = 0; i + 1 < n; i++) {
		int module = functions[i] % N_MODULES;

		hidden[module] |= code_of(module) == TOP_CODE_FILE &&
				  code_of(functions[i + 1] % N_MODULES) == TOP_CODE_RUNTIME;
	}
	for (int i = 0; i < n; i++) {
		if (hidden[functions[i] % N_MODULES])
			continue;
		last = functions[i];
		want_total[last] += seen[last] ? 0 : weight;
		seen[last] = true;
	}
	if (last >= 0)
		want_self[last] += weight;
}

static void check_rows(void)
{
	uint64_t in_nodes = 0;
	int n = 0;

	for (uint32_t i = 0; i < out.rows.n; i++) {
		const struct top_row *r = &out.rows.items[i];
		const char *name = strtab_get(&out.strings, r->function);

		if (!*name)
			continue;
		CHECK_INT(r->self, ==, want_self[atoi(name + 1)]);
		CHECK_INT(r->total, ==, want_total[atoi(name + 1)]);
		n++;
	}
	for (int i = 0; i < N_NAMES * N_MODULES; i++)
		n -= want_total[i] > 0;
	CHECK_INT(n, ==, 0);
	for (uint32_t i = 0; i < out.nodes.n; i++)
		in_nodes += out.nodes.items[i].self;
	CHECK_INT(in_nodes, ==, sum.counts.whole);
	CHECK_INT(out.counts.whole, ==, sum.counts.whole);
}

static void test_random_stacks(void)
{
	int functions[MAX_DEPTH];

	srand(5);
	for (int k = 0; k < N_STACKS; k++) {
		int n = rand() % MAX_DEPTH + 1;
		uint64_t weight = (uint64_t)rand() % 5 + 1;

		for (int i = 0; i < n; i++)
			functions[i] = rand() % (N_NAMES * N_MODULES);
		put_stack(functions, n, weight);
		expect_stack(functions, n, weight);
	}
	top_hide_native(&sum, &out);
	CHECK_INT(out.nodes.n, <, sum.nodes.n);
	check_rows();
}

int main(void)
{
	top_table_init(&sum);
	top_table_init(&out);
	RUN(test_random_stacks);
	top_table_deinit(&sum);
	top_table_deinit(&out);
	return 0;
}
