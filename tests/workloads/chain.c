/* SPDX-License-Identifier: Apache-2.0 */
/* A chain of plain calls, each with locals of its own on the stack. Also built static and stripped.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common.h"

KNOWN int chain_leaf(int x)
{
	SPIN(SPIN_SHORT);
	return x + 1;
}

KNOWN int chain_five(const char *text)
{
	char copy[256];

	strncpy(copy, text, sizeof(copy) - 1);
	copy[255] = 0;
	int r = chain_leaf(copy[0]);
	KEEP_FRAME();
	return r + copy[1];
}

KNOWN int chain_four(int a, int b, int c)
{
	char text[64];

	snprintf(text, sizeof(text), "%d %d %d", a, b, c);
	int r = chain_five(text);
	KEEP_FRAME();
	return r + a;
}

KNOWN int chain_three(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += chain_four(i, n, sum);
	return sum;
}

KNOWN int chain_two(int n)
{
	volatile char big[3000];

	big[n] = 1;
	int r = chain_three(n + big[n]);
	KEEP_FRAME();
	return r + big[0];
}

KNOWN int chain_one(int n)
{
	int r = chain_two(n);
	KEEP_FRAME();
	return r + 1;
}

/* chain [PERCENT]: that much of a CPU, or all of one. */
int main(int argc, char **argv)
{
	const int percent = argc > 1 ? atoi(argv[1]) : 100;
	volatile int sink = 0;

	for (;;) {
		sink += chain_one(5);
		if (percent < 100)
			rest(percent);
	}
	return sink;
}
