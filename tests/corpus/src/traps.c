/* SPDX-License-Identifier: Apache-2.0 */
/* traps PART: what make.sh records, between marks, one part at a time. */
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "mark.h"

volatile int sink;

static NOINLINE void use(void *p, size_t n)
{
	memset(p, 1, n);
	sink += ((volatile char *)p)[n / 2];
}

/* Saves every call-saved register, has a frame, and calls. */
static NOINLINE int busy(int a, int b, int c, int d, int e, int f)
{
	char frame[200];

	use(frame, sizeof(frame));
	sink += a * b;
	use(frame, (size_t)(c & 31) + 1);
	return a + b + c + d + e + f + frame[d & 63];
}

static NOINLINE int leaf(int a)
{
	return a * 3 + sink;
}

static NOINLINE int with_alloca(unsigned int n)
{
	char *p = alloca(n);

	use(p, n);
	return p[0] + sink;
}

static void prologue(void)
{
	MARK();
	sink += busy(1, 2, 3, 4, 5, 6);
	sink += leaf(7) + with_alloca(300);
	MARK();
}

/* The call at the end of each is a jump. */
static NOINLINE int tail_c(int n)
{
	char frame[64];

	use(frame, sizeof(frame));
	return frame[n & 7] + n;
}

static NOINLINE int tail_b(int n)
{
	char frame[32];

	use(frame, sizeof(frame));
	return tail_c(n + frame[1]);
}

static NOINLINE int tail_a(int n)
{
	return tail_b(n + 1);
}

static void tail(void)
{
	int (*volatile call)(int) = tail_a;

	MARK();
	sink += call(1);
	MARK();
}

/* Library functions not called before: each goes through the procedure linkage table and ld.so. */
static void plt(void)
{
	char text[64];

	MARK();
	sink += atoi("17");
	(void)snprintf(text, sizeof(text), "%d", sink);
	sink += atoi(text);
	MARK();
}

/* Functions of libc in assembler. */
static void assembler(void)
{
	static char a[8192], b[8192];
	volatile size_t n = 0;

	memset(a, 'x', sizeof(a) - 1);
	n = strlen(a);
	MARK();
	memcpy(b, a, n);
	memmove(b + 1, b, n - 10);
	sink += memcmp(a, b, n) + strcmp(a, b);
	sink += (int)strlen(b) + (strchr(a, 'y') != NULL) + (memchr(a, 'z', n) != NULL);
	memset(b, 0, n);
	MARK();
}

static NOINLINE void on_signal(int signo)
{
	char frame[100];

	use(frame, sizeof(frame));
	sink += signo;
}

static NOINLINE void raise_here(int value)
{
	char frame[48];

	use(frame, sizeof(frame));
	if (value)
		kill(getpid(), SIGUSR1);
	use(frame, sizeof(frame));
}

static void signals(int flags)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = flags};

	sigaction(SIGUSR1, &sa, NULL);
	MARK();
	raise_here(1);
	MARK();
}

static void alternate(void)
{
	static char stack[65536];
	stack_t ss = {.ss_sp = stack, .ss_size = sizeof(stack)};

	sigaltstack(&ss, NULL);
	signals(SA_ONSTACK);
}

/* A fault: the interrupted address is exact, and may be the first of a function. */
static NOINLINE int fault(volatile int *p)
{
	return *p;
}

static sigjmp_buf after;

static NOINLINE void on_fault(int signo)
{
	char frame[40];

	use(frame, sizeof(frame));
	siglongjmp(after, signo);
}

static void faults(void)
{
	struct sigaction sa = {.sa_handler = on_fault};

	sigaction(SIGSEGV, &sa, NULL);
	MARK();
	if (sigsetjmp(after, 1) == 0)
		sink += fault(NULL);
	MARK();
}

static jmp_buf jump;

static NOINLINE void jump_from(int depth)
{
	char frame[80];

	use(frame, sizeof(frame));
	if (depth == 0)
		longjmp(jump, 1);
	jump_from(depth - 1);
	use(frame, sizeof(frame));
}

static void jumps(void)
{
	MARK();
	if (setjmp(jump) == 0)
		jump_from(3);
	sink++;
	MARK();
}

static void vdso(void)
{
	struct timespec ts;
	struct timeval tv;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	MARK();
	clock_gettime(CLOCK_MONOTONIC, &ts);
	gettimeofday(&tv, NULL);
	sink += (int)(ts.tv_nsec + tv.tv_usec + time(NULL));
	MARK();
}

/* One page of this program's code under other rights, for a while: the mapping is split in three.
 */
static void split(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *code = (void *)((size_t)(void *)split & ~(page - 1));

	if (mprotect(code, page, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
		exit(1);
	prologue();
}

/* A stack that goes on beyond what was copied of it. */
static NOINLINE int deep(int depth)
{
	char frame[6000];

	use(frame, sizeof(frame));
	if (depth == 0) {
		prologue();
		return 0;
	}
	return deep(depth - 1) + frame[10];
}

static void truncated(void)
{
	sink += deep(20);
}

static const struct {
	const char *name;
	void (*run)(void);
} parts[] = {
	{"prologue", prologue},	  {"tail", tail},	    {"plt", plt},
	{"assembler", assembler}, {"alternate", alternate}, {"faults", faults},
	{"jumps", jumps},	  {"vdso", vdso},	    {"split", split},
	{"truncated", truncated},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (strcmp(parts[i].name, argv[1]) == 0) {
			parts[i].run();
			return 0;
		}
	}
	if (argc > 1 && strcmp(argv[1], "signals") == 0) {
		signals(0);
		return 0;
	}
	return 2;
}
