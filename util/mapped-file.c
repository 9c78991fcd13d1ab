/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handler of SIGBUS puts pages of zeros in place of those that are gone and returns: what reads
 * them is made for bytes of strangers, and goes on to its end. A jump out of it instead would leave
 * behind what it holds, also in libraries that inflate. Every other SIGBUS is passed on.
 */
#include "util/mapped-file.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <unistd.h>

struct mapped_file {
	uint8_t *map;
	size_t n, skip; /* of the mapping; before the first byte that is wanted */
	LIST_ENTRY(mapped_file) link;
};

static LIST_HEAD(mapped_file_list, mapped_file) files;
static struct sigaction previous;
static volatile uint64_t n_short;

static bool put_zeros(uint8_t *at)
{
	const struct mapped_file *m;
	uint8_t *page;

	LIST_FOREACH(m, &files, link)
	{
		if (at < m->map || at >= m->map + m->n)
			continue;
		page = at - (uintptr_t)at % (uintptr_t)sysconf(_SC_PAGESIZE);
		n_short++;
		return mmap(page, (size_t)(m->map + m->n - page), PROT_READ,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
	}
	return false;
}

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	int e = errno;
	bool mended = info->si_code > 0 && put_zeros(info->si_addr);

	errno = e;
	if (mended)
		return;
	if (previous.sa_flags & SA_SIGINFO) {
		previous.sa_sigaction(sig, info, context);
	} else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
		previous.sa_handler(sig);
	} else {
		/* A fault comes again at once, and then takes the default action. */
		(void)signal(SIGBUS, SIG_DFL);
		if (info->si_code <= 0)
			(void)raise(SIGBUS);
	}
}

static int install(void)
{
	const struct sigaction sa = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO};
	static bool installed;

	if (!installed && sigaction(SIGBUS, &sa, &previous) < 0)
		return -errno;
	installed = true;
	return 0;
}

int mapped_file_new(struct mapped_file **ret, int fd, uint64_t offset, size_t n)
{
	struct mapped_file *m = calloc(1, sizeof(*m));
	int r = m ? install() : -ENOMEM;

	if (r == 0) {
		m->skip = offset % (uint64_t)sysconf(_SC_PAGESIZE);
		m->n = n + m->skip;
		m->map = mmap(NULL, m->n, PROT_READ, MAP_PRIVATE, fd, (off_t)(offset - m->skip));
		r = m->map == MAP_FAILED ? -errno : 0;
	}
	if (r < 0) {
		free(m);
		return r;
	}
	LIST_INSERT_HEAD(&files, m, link);
	*ret = m;
	return 0;
}

struct mapped_file *mapped_file_free(struct mapped_file *m)
{
	if (m) {
		LIST_REMOVE(m, link);
		(void)munmap(m->map, m->n);
		free(m);
	}
	return NULL;
}

const void *mapped_file_bytes(const struct mapped_file *m)
{
	return m->map + m->skip;
}

void mapped_file_populate(const struct mapped_file *m)
{
#ifdef MADV_POPULATE_READ
	(void)madvise(m->map, m->n, MADV_POPULATE_READ); /* 5.14; else faults do it */
#else
	(void)madvise(m->map, m->n, MADV_WILLNEED);
#endif
}

void mapped_file_forget(const struct mapped_file *m)
{
	(void)madvise(m->map, m->n, MADV_DONTNEED);
}

uint64_t mapped_file_n_short(void)
{
	return n_short;
}
