/* SPDX-License-Identifier: Apache-2.0 */
/* 200 levels of recursion below main, nine tenths of the CPU burnt at the bottom. */
#include "common.h"

KNOWN int recurse_bottom(int x)
{
	SPIN_SHARE(90);
	return x;
}

KNOWN int recurse_down(int level)
{
	volatile int keep[4] = {level, level, level, level};
	int r = level == 1 ? recurse_bottom(level) : recurse_down(level - 1);

	KEEP_FRAME();
	return r + keep[level & 3];
}

int main(void)
{
	volatile int sink = 0;

	for (;;)
		sink += recurse_down(200);
	return sink;
}
