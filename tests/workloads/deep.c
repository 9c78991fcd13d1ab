/* SPDX-License-Identifier: Apache-2.0 */
/* deep LEVELS: so many frames of 2 KiB each below main, the CPU burnt at the bottom. */
#include <stdlib.h>

#include "common.h"

KNOWN int deep_bottom(int x)
{
	SPIN(SPIN_SHORT);
	return x;
}

KNOWN int deep_down(int level)
{
	volatile char room[2048];
	int r;

	room[0] = room[sizeof(room) - 1] = (char)level;
	r = level <= 1 ? deep_bottom(level) : deep_down(level - 1);
	KEEP_FRAME();
	return r + room[level & 7];
}

int main(int argc, char **argv)
{
	int levels = argc > 1 ? atoi(argv[1]) : 20;
	volatile int sink = 0;

	for (;;)
		sink += deep_down(levels);
	return sink;
}
