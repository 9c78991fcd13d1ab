/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/corpus/touch.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define TRAP_FLAG 0x100
/* An access is at its fault's address and this long at the most. */
#define WIDEST 64
#define PAGE   4096

static struct touch_range ranges[TOUCH_MAX_RANGES];
static size_t n_ranges;
static uint8_t *opened; /* the pages that are accessible for one instruction; NULL: none */
static size_t n_opened;
static struct sigaction old_segv, old_trap;

void touch_mark(const struct touch_range *r, uint64_t offset, uint64_t n)
{
	for (uint64_t at = offset / TOUCH_GRANULE; at * TOUCH_GRANULE < offset + n; at++) {
		if (at * TOUCH_GRANULE < r->n)
			r->bits[at / 8] |= (uint8_t)(1u << at % 8);
	}
}

bool touch_is_marked(const struct touch_range *r, uint64_t offset)
{
	uint64_t at = offset / TOUCH_GRANULE;

	return r->bits[at / 8] >> at % 8 & 1;
}

static void protect(uint8_t *start, size_t n, int how)
{
	if (mprotect(start, n, how) < 0)
		abort();
}

static void on_segv(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	const uint8_t *addr = info->si_addr;

	for (size_t i = 0; i < n_ranges; i++) {
		const struct touch_range *r = &ranges[i];

		if ((size_t)(addr - r->start) < r->n) {
			touch_mark(r, (uint64_t)(addr - r->start), WIDEST);
			opened = r->start + (size_t)(addr - r->start) / PAGE * PAGE;
			n_opened = r->n - (size_t)(opened - r->start);
			if (n_opened > 2 * PAGE)
				n_opened = 2 * PAGE;
			protect(opened, n_opened, PROT_READ);
			uc->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
			return;
		}
	}
	(void)sigaction(SIGSEGV, &old_segv, NULL); /* a real one: comes again */
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	uc->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	if (opened)
		protect(opened, n_opened, PROT_NONE);
	opened = NULL;
}

void touch_begin(const struct touch_range *r, size_t n)
{
	struct sigaction segv = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
	struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};

	if (n > TOUCH_MAX_RANGES)
		abort();
	n_ranges = n;
	(void)sigaction(SIGSEGV, &segv, &old_segv);
	(void)sigaction(SIGTRAP, &trap, &old_trap);
	for (size_t i = 0; i < n; i++) {
		ranges[i] = r[i];
		protect(ranges[i].start, ranges[i].n, PROT_NONE);
	}
}

void touch_end(void)
{
	for (size_t i = 0; i < n_ranges; i++)
		protect(ranges[i].start, ranges[i].n, PROT_READ);
	n_ranges = 0;
	(void)sigaction(SIGSEGV, &old_segv, NULL);
	(void)sigaction(SIGTRAP, &old_trap, NULL);
}
