/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signal handler on top of a library call: SIGALRM arrives while qsort() sorts, and burns half of
 * the CPU. Below the handler stand the kernel's signal frame, the library's frames and main.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include "common.h"

#define N 4096
static int numbers[N];

KNOWN void handler_burn(void)
{
	SPIN_SHARE(50);
}

KNOWN void handler_entry(int sig)
{
	handler_burn();
	KEEP_FRAME();
}

KNOWN int handler_compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	SPIN(50);
	return x < y ? -1 : x > y;
}

KNOWN void handler_sort(unsigned int seed)
{
	for (int i = 0; i < N; i++)
		numbers[i] = rand_r(&seed);
	qsort(numbers, N, sizeof(numbers[0]), handler_compare);
	KEEP_FRAME();
}

int main(void)
{
	struct sigaction action = {.sa_handler = handler_entry, .sa_flags = SA_RESTART};
	struct itimerval every = {{0, 3000}, {0, 3000}};

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	for (unsigned int i = 1;; i++)
		handler_sort(i);
	return 0;
}
