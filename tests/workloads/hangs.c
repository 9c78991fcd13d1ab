/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that hang, each in a chain of functions of its own, with frame pointers. Prints the chain
 * of each, outermost first; with "? " before it if its frames cannot be computed without the frame
 * pointer: then all of it may be found, or nothing above the function that hangs. Before a thread
 * hangs, it leaves frames of other functions below its stack pointer, in which the locals of the
 * last ones will be.
 */
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define APART	__attribute__((noinline, noclone))
#define INSIDE	__attribute__((always_inline))
#define KEEP(x) __asm__ volatile("" : : "r"(x) : "memory") /* no tail call, and x is needed */

APART static void stale_inner(int n)
{
	char some[72];

	KEEP(some);
	if (n > 0)
		stale_inner(n - 1);
	KEEP(some);
}

APART static void stale_outer(int n)
{
	char some[40];

	KEEP(some);
	stale_inner(n);
	KEEP(some);
}

/* Hangs without the help of the C library, which has no frame pointers. */
#ifdef __aarch64__
#define SAVED "x19", "x20", "x21", "x22", "x23"

INSIDE static inline void hang(void)
{
	/* ppoll(NULL, 0, NULL, NULL, 0) */
	register long number __asm__("x8") = SYS_ppoll;
	register long first __asm__("x0"), second __asm__("x1"), third __asm__("x2"),
		fourth __asm__("x3"), fifth __asm__("x4");

	for (;;) {
		first = second = third = fourth = fifth = 0;
		__asm__ volatile("svc 0"
				 : "+r"(first)
				 : "r"(number), "r"(second), "r"(third), "r"(fourth), "r"(fifth)
				 : "memory");
	}
}
#else
#define SAVED "rbx", "r12", "r13", "r14", "r15"

INSIDE static inline void hang(void)
{
	long result;

	for (;;)
		__asm__ volatile("syscall"
				 : "=a"(result)
				 : "0"(SYS_pause)
				 : "rcx", "r11", "memory");
}
#endif

/* ---- Kinds of functions that hang ---- */

APART static void hang_small(void)
{
	char some[24];

	KEEP(some);
	hang();
}

APART static void hang_large(void)
{
	char some[3000];

	KEEP(some);
	hang();
}

APART static void hang_saving(int a, int b, int c)
{
	int d = a * b, e = b * c, f = c * a;
	char some[200];

	KEEP(some);
	__asm__ volatile("" : "+r"(d), "+r"(e), "+r"(f) : : SAVED);
	hang();
	KEEP(d + e + f);
}

APART static void hang_by_library(void)
{
	char some[500];

	KEEP(some);
	(void)pause();
	KEEP(some);
}

APART static void hang_in_alloca(int n)
{
	char *some = alloca((size_t)n);

	KEEP(some);
	hang();
}

APART static void many(long a, long b, long c, long d, long e, long f, long g, long h, long i)
{
	KEEP(a + b + c + d + e + f + g + h + i);
	hang_by_library();
	KEEP(a);
}

APART static void hang_with_arguments(int n)
{
	many(n, 2, 3, 4, 5, 6, 7, 8, 9);
	KEEP(n);
}

/* ---- Threads ---- */

static void call(int kind)
{
	switch (kind) {
	case 0:
		hang_small();
		break;
	case 1:
		hang_large();
		break;
	case 2:
		hang_saving(kind, 3, 4);
		break;
	case 3:
		hang_by_library();
		break;
	case 4:
		hang_with_arguments(kind);
		break;
	default:
		hang_in_alloca(100 * kind);
		break;
	}
}

APART static void middle(int kind)
{
	char some[100];

	KEEP(some);
	stale_outer(60);
	call(kind);
	KEEP(some);
}

APART static void *outer(void *ctx)
{
	middle((int)(long)ctx);
	KEEP(ctx);
	return NULL;
}

int main(void)
{
	static const char *const chains[] = {
		"outer;middle;hang_small",
		"outer;middle;hang_large",
		"outer;middle;hang_saving",
		"outer;middle;hang_by_library",
		"outer;middle;hang_with_arguments;many;hang_by_library",
		"? outer;middle;hang_in_alloca",
	};
	pthread_t thread;

	for (long i = 0; i < (long)(sizeof(chains) / sizeof(chains[0])); i++) {
		if (pthread_create(&thread, NULL, outer, (void *)i) != 0)
			abort();
		(void)puts(chains[i]);
	}
	(void)fflush(stdout);
	hang();
}
