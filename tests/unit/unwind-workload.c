/* SPDX-License-Identifier: Apache-2.0 */
/* Code to be stopped in, compiled with -O2 -fomit-frame-pointer. */
#include <alloca.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/unwind-workload.h"

static volatile int sink;

static __attribute__((noinline)) int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static __attribute__((noinline)) void use(char *p, size_t n)
{
	memset(p, 1, n);
	sink += p[n / 2];
}

static __attribute__((noinline)) int with_alloca(unsigned int n)
{
	char *p = alloca(n);

	use(p, n);
	return p[0] + sink;
}

static __attribute__((noinline)) int recurse(int depth)
{
	char pad[24];

	use(pad, sizeof(pad));
	if (depth == 0)
		return with_alloca(100);
	return recurse(depth - 1) + pad[3];
}

static __attribute__((noinline)) void on_signal(int sig)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "%d in a handler", sig);
	use(text, sizeof(text));
}

static __attribute__((noinline)) void signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal};
	int values[] = {5, 3, 1, 4};

	sigaction(SIGUSR1, &sa, NULL);
	raise(SIGUSR1);
	sa.sa_handler = SIG_DFL;
	qsort(values, 4, sizeof(values[0]), compare);
	sigaction(SIGUSR1, &sa, NULL);
}

static __attribute__((noinline)) void libc_calls(void)
{
	char text[200];
	int values[40];
	struct timespec ts;
	void *p, *q;

	for (int i = 0; i < 40; i++)
		values[i] = (i * 37) % 40;
	qsort(values, 40, sizeof(values[0]), compare);
	(void)snprintf(text, sizeof(text), "%d %s %.3f %lx", values[3], "text", 3.25 * values[7],
		       77L);
	p = malloc(100);
	q = malloc(100000);
	p = realloc(p, 5000);
	use(p, 5000);
	free(p);
	free(q);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	sink += (int)ts.tv_nsec + atoi("17") + (int)strtol("12", NULL, 10) + (int)strlen(text);
}

static __attribute__((noinline)) void loader(void)
{
	void *lib = dlopen("libm.so.6", RTLD_LAZY | RTLD_LOCAL);

	if (lib) {
		double (*f)(double) = (double (*)(double))dlsym(lib, "cos");

		if (f)
			sink += (int)(10 * f(0.5));
		dlclose(lib);
	}
}

static __attribute__((noinline)) void children(void)
{
	pid_t pid = vfork();

	if (pid == 0)
		_exit(0);
	(void)waitpid(pid, NULL, 0);
}

void unwind_workload(enum unwind_workload_part part)
{
	switch (part) {
	case WORKLOAD_LIBC:
		libc_calls();
		break;
	case WORKLOAD_SIGNAL:
		signals();
		break;
	case WORKLOAD_DEEP:
		sink += recurse(200);
		break;
	case WORKLOAD_LOADER:
		loader();
		break;
	case WORKLOAD_VFORK:
		children();
		break;
	default:
		break;
	}
	sink++;
}
