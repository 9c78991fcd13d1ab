/* SPDX-License-Identifier: Apache-2.0 */
/* A live view's sum without the native functions of interpreters, against stacks one by one. */
#include <stdio.h>
#include <stdlib.h>

#include "src/screen/native.h"
#include "tests/unit/test.h"

enum { N_NAMES = 3, N_MODULES = 7, N_STACKS = 400, MAX_DEPTH = 9 };

/* Three files, two runtimes, code in no file, and compiled code. */
static enum top_code code_of(int module)
{
	static const enum top_code codes[N_MODULES] = {
		TOP_CODE_FILE,	  TOP_CODE_FILE,  TOP_CODE_FILE,     TOP_CODE_RUNTIME,
		TOP_CODE_RUNTIME, TOP_CODE_OTHER, TOP_CODE_COMPILED,
	};

	return codes[module];
}

/* functions: from the process on; each is a name and a module. */
static bool is_of(const int *functions, int n, int i, enum top_code code)
{
	return i >= 0 && i < n && code_of(functions[i] % N_MODULES) == code;
}

/* Whether i calls a runtime's, and whether that is not the innermost one. */
static bool calls_runtime(const int *functions, int n, int i, bool sure)
{
	return is_of(functions, n, i, TOP_CODE_FILE) &&
	       is_of(functions, n, i + 1, TOP_CODE_RUNTIME) &&
	       (!sure || is_of(functions, n, i + 2, TOP_CODE_FILE) ||
		is_of(functions, n, i + 2, TOP_CODE_RUNTIME));
}

static uint64_t want_self[N_NAMES * N_MODULES], want_total[N_NAMES * N_MODULES];
static struct top_table sum, out;

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

/* Runs of compiled code are hidden if a runtime's function is at an end. */
static bool is_compiled(const int *functions, int n, int i)
{
	int first = i, last = i;

	while (is_of(functions, n, first - 1, TOP_CODE_COMPILED))
		first--;
	while (is_of(functions, n, last + 1, TOP_CODE_COMPILED))
		last++;
	return is_of(functions, n, i, TOP_CODE_COMPILED) &&
	       (is_of(functions, n, first - 1, TOP_CODE_RUNTIME) ||
		is_of(functions, n, last + 1, TOP_CODE_RUNTIME));
}

/* Files 0 and 1 surely call runtimes' functions. */
static void expect_stack(const int *functions, int n, uint64_t weight)
{
	bool hidden[N_MODULES] = {true, true}, seen[N_NAMES * N_MODULES] = {false}, any = false;
	int last = -1;

	for (int i = 0; i < n; i++) {
		hidden[functions[i] % N_MODULES] |= calls_runtime(functions, n, i, false);
		any |= is_of(functions, n, i, TOP_CODE_RUNTIME);
	}
	for (int i = 0; i < n; i++) {
		if (any && (hidden[functions[i] % N_MODULES] || is_compiled(functions, n, i)))
			continue;
		last = functions[i];
		want_total[last] += seen[last] ? 0 : weight;
		seen[last] = true;
	}
	if (last >= 0)
		want_self[last] += weight;
}

static bool suits(const int *functions, int n)
{
	for (int i = 0; i < n; i++) {
		if (functions[i] % N_MODULES == 2 && calls_runtime(functions, n, i, true))
			return false;
	}
	return true;
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
		if (!suits(functions, n))
			continue;
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
