/* SPDX-License-Identifier: Apache-2.0 */
/* -fsplit-stack: libgcc's __morestack, in assembler, between a function and its caller. */
#include "mark.h"

volatile int sink;

static NOINLINE void use(volatile char *p, int n)
{
	p[n] = (char)n;
	sink += p[n];
}

static NOINLINE int grow(int depth)
{
	volatile char frame[20000];

	use(frame, depth);
	if (depth > 0)
		sink += grow(depth - 1);
	use(frame, depth + 1);
	return frame[depth];
}

int main(void)
{
	sink += grow(1);
	MARK();
	sink += grow(4);
	MARK();
	return 0;
}
