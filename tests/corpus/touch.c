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
/* All are private mappings; libelf writes to its own. */
/* A page that is read so often (an inflate of it) is needed as a whole, and not watched further. */
#define OFTEN 48

static struct touch_range ranges[TOUCH_MAX_RANGES];
static size_t n_ranges;
static uint8_t *counts[TOUCH_MAX_RANGES]; /* reads of each page */
static size_t opened_range, opened_page;  /* two pages are accessible for one instruction */
static bool is_opened;
static struct sigaction old_segv, old_trap;

void touch_mark(const struct touch_range *r, uint64_t offset, uint64_t n)
{
	for (uint64_t at = offset / TOUCH_GRANULE; at * TOUCH_GRANULE < offset + n; at++) {
		if (at * TOUCH_GRANULE < r->n)
			r->bits[at / 8] |= (uint8_t)(1u << at % 8);
	}
}

void touch_clear(const struct touch_range *r, uint64_t offset, uint64_t n)
{
	uint64_t at = (offset + TOUCH_GRANULE - 1) / TOUCH_GRANULE;

	for (; (at + 1) * TOUCH_GRANULE <= offset + n; at++)
		r->bits[at / 8] &= (uint8_t) ~(1u << at % 8);
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

static void protect_page(size_t range, size_t page, int how)
{
	const struct touch_range *r = &ranges[range];

	if (page * PAGE < r->n && counts[range][page] < OFTEN)
		protect(r->start + page * PAGE, PAGE, how);
}

static void on_segv(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	const uint8_t *addr = info->si_addr;

	for (size_t i = 0; i < n_ranges; i++) {
		const struct touch_range *r = &ranges[i];

		size_t offset = (size_t)(addr - r->start), page = offset / PAGE;

		if (offset >= r->n)
			continue;
		touch_mark(r, offset, WIDEST);
		protect_page(i, page, PROT_READ | PROT_WRITE);
		protect_page(i, page + 1, PROT_READ | PROT_WRITE);
		if (++counts[i][page] == OFTEN)
			touch_mark(r, page * PAGE, PAGE);
		opened_range = i;
		opened_page = page;
		is_opened = true;
		uc->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
		return;
	}
	(void)sigaction(SIGSEGV, &old_segv, NULL); /* a real one: comes again */
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	uc->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	if (is_opened) {
		protect_page(opened_range, opened_page, PROT_NONE);
		protect_page(opened_range, opened_page + 1, PROT_NONE);
	}
	is_opened = false;
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
		counts[i] = calloc(r[i].n / PAGE + 2, 1);
		if (!counts[i])
			abort();
		protect(ranges[i].start, ranges[i].n, PROT_NONE);
	}
}

void touch_end(void)
{
	for (size_t i = 0; i < n_ranges; i++) {
		protect(ranges[i].start, ranges[i].n, PROT_READ | PROT_WRITE);
		free(counts[i]);
	}
	n_ranges = 0;
	(void)sigaction(SIGSEGV, &old_segv, NULL);
	(void)sigaction(SIGTRAP, &old_trap, NULL);
}
