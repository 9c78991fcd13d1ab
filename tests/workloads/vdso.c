/* SPDX-License-Identifier: Apache-2.0 */
/* Most of the time in the vdso, an image that is in no file. */
#include <time.h>
#include "common.h"

KNOWN long vdso_ask(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	KEEP_FRAME();
	return ts.tv_nsec;
}

KNOWN long vdso_loop(void)
{
	long sum = 0;

	for (int i = 0; i < 1000; i++)
		sum += vdso_ask();
	return sum;
}

int main(void)
{
	volatile long sink = 0;

	for (;;)
		sink += vdso_loop();
	return (int)sink;
}
