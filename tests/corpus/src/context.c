/* SPDX-License-Identifier: Apache-2.0 */
/* Coroutines on stacks of their own, by makecontext. */
#include <string.h>
#include <ucontext.h>

#include "mark.h"

volatile int sink;
static ucontext_t main_context, contexts[2];
static char stacks[2][65536];

static NOINLINE void work(int which, int depth)
{
	char frame[100];

	memset(frame, which, sizeof(frame));
	sink += frame[depth];
	if (depth > 0)
		work(which, depth - 1);
	else
		swapcontext(&contexts[which], &contexts[1 - which]);
	sink += frame[depth + 1];
}

static void coroutine(int which)
{
	work(which, 3);
}

int main(void)
{
	for (int i = 0; i < 2; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_sp = stacks[i];
		contexts[i].uc_stack.ss_size = sizeof(stacks[i]);
		contexts[i].uc_link = &main_context;
		makecontext(&contexts[i], (void (*)(void))coroutine, 1, i);
	}
	MARK();
	swapcontext(&main_context, &contexts[0]);
	MARK();
	return 0;
}
