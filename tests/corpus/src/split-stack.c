/* SPDX-License-Identifier: Apache-2.0 */
/* -fsplit-stack: libgcc's __morestack, in assembler, between a function and its caller. */
#include <string.h>

#include "mark.h"

volatile int sink;

static NOINLINE int grow(int depth)
{
	char frame[20000];

	memset(frame, depth, sizeof(frame));
	if (depth == 0)
		return frame[sink & 7];
	return grow(depth - 1) + frame[100];
}

int main(void)
{
	sink += grow(1);
	MARK();
	sink += grow(4);
	MARK();
	return 0;
}
