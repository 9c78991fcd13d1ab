/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames whose size the compiler does not know: alloca (CFA on the frame pointer), an over-aligned
 * local (the CFA is an expression that reads the stack) and a variable-length array below both.
 */
#include <alloca.h>
#include <string.h>
#include "common.h"

KNOWN int frames_leaf(volatile char *buffer, int n)
{
	SPIN(SPIN_SHORT);
	return buffer[n - 1];
}

KNOWN int frames_array(int n)
{
	volatile char array[n];

	array[n - 1] = 1;
	int r = frames_leaf(array, n);
	KEEP_FRAME();
	return r + array[0];
}

KNOWN int frames_aligned(int n)
{
	volatile char wide[256] __attribute__((aligned(128)));
	volatile char *more = alloca(n);

	wide[0] = 1;
	more[0] = 2;
	int r = frames_array(n);
	KEEP_FRAME();
	return r + wide[0] + more[0];
}

KNOWN int frames_alloca(int n)
{
	char *buffer = alloca(n);

	memset(buffer, n, n);
	KEEP_FRAME();
	int r = frames_aligned(n);
	KEEP_FRAME();
	return r + buffer[n / 2];
}

int main(void)
{
	volatile int sink = 0;

	for (int i = 0;; i++)
		sink += frames_alloca(64 + i % 2000);
	return sink;
}
