/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes by a function and a marker (USDT) a known number of times, in threads and in a child, and
 * says how often: "work N marker N watched N". The marker is made by hand, as sys/sdt.h does, in
 * two places; at the second it is passed by only while its counter says that somebody watches. With
 * "wait" as argument it begins at a line on its standard input.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define CALLS	250
#define EVERY	5 /* calls for one pass of a marker */

volatile uint16_t watchers __attribute__((section(".probes"), used));

#define MARKER(counter)                                                                            \
	__asm__ volatile(                                                                          \
		"990: nop\n"                                                                       \
		".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n"                            \
		".4byte 8, 992f - 991f, 3\n.asciz \"stapsdt\"\n"                                   \
		"991: .8byte 990b, _.stapsdt.base, " counter                                       \
		"\n.asciz \"marked\"\n.asciz \"pass\"\n.asciz \"\"\n992:\n.balign 4\n"             \
		".popsection\n"                                                                    \
		".ifndef _.stapsdt.base\n"                                                         \
		".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"            \
		".weak _.stapsdt.base\n.hidden _.stapsdt.base\n"                                   \
		"_.stapsdt.base: .space 1\n.size _.stapsdt.base, 1\n.popsection\n.endif\n")

static uint64_t n_watched;

__attribute__((noinline)) void work(int i);
__attribute__((noinline)) void work(int i)
{
	if (i % EVERY == 0)
		MARKER("0");
	if (i % EVERY == 1 && watchers) {
		MARKER("watchers");
		__atomic_add_fetch(&n_watched, 1, __ATOMIC_RELAXED);
	}
}

__attribute__((noinline)) static void *caller(void *arg)
{
	for (int i = 0; i < CALLS; i++)
		work(i);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	char line[8];
	int calls = (THREADS + 2) * CALLS, status;

	(void)argv;
	if (argc > 1 && !fgets(line, sizeof(line), stdin))
		return 1;
	for (int i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, caller, NULL) != 0)
			return 1;
	}
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	/* Others have ended in the meantime. */
	caller(NULL);
	if (fork() == 0) {
		caller(NULL);
		_exit(n_watched == (THREADS + 2) * CALLS / EVERY ? 0 : n_watched == 0 ? 1 : 2);
	}
	(void)wait(&status);
	/* The child's are known by how it ended. */
	if (WEXITSTATUS(status) == 0)
		n_watched += CALLS / EVERY;
	printf("work %d marker %d watched %llu\n", calls, calls / EVERY,
	       (unsigned long long)n_watched);
	return WEXITSTATUS(status) == 2;
}
