/* SPDX-License-Identifier: Apache-2.0 */
/* twice LIBRARY: the same file mapped twice at a time, both in one stack (two namespaces of ld.so).
 */
#include <dlfcn.h>
#include <stdio.h>

#include "mark.h"

volatile int sink;
typedef int call_fn(int (*back)(int), int n);
static call_fn *second;

static NOINLINE int last(int n)
{
	sink += n;
	return sink * 3;
}

static NOINLINE int between(int n)
{
	return second(last, n) + sink;
}

int main(int argc, char **argv)
{
	void *a = dlmopen(LM_ID_BASE, argv[argc - 1], RTLD_NOW);
	void *b = dlmopen(LM_ID_NEWLM, argv[argc - 1], RTLD_NOW);
	call_fn *first = a ? (call_fn *)dlsym(a, "library_call") : NULL;

	second = b ? (call_fn *)dlsym(b, "library_call") : NULL;
	if (!first || !second)
		return 1;
	MARK();
	sink += first(between, 1);
	MARK();
	return 0;
}
