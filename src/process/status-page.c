/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/process/status-page.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/memory-file.h"

const uint64_t status_latency_bounds_ns[STATUS_LATENCY_BUCKETS - 1] = {
	5 * NSEC_PER_MSEC,    10 * NSEC_PER_MSEC,  25 * NSEC_PER_MSEC,	50 * NSEC_PER_MSEC,
	100 * NSEC_PER_MSEC,  250 * NSEC_PER_MSEC, 500 * NSEC_PER_MSEC, 1 * NSEC_PER_SEC,
	2500 * NSEC_PER_MSEC, 5 * NSEC_PER_SEC,	   10 * NSEC_PER_SEC,
};

const char *status_drop_name(enum status_drop why)
{
	static const char *const drop_names[STATUS_N_DROPS] = {
		[STATUS_DROP_QUEUE_FULL] = "queue_full", [STATUS_DROP_REFUSED] = "refused",
		[STATUS_DROP_EXPIRED] = "expired",	 [STATUS_DROP_SPOOL_FULL] = "spool_full",
		[STATUS_DROP_CORRUPT] = "corrupt",	 [STATUS_DROP_TOO_LARGE] = "too_large",
	};

	return drop_names[why];
}

void status_counts_add(struct status_counts *to, const struct status_counts *from)
{
	uint64_t *a = (uint64_t *)to;
	const uint64_t *b = (const uint64_t *)from;

	_Static_assert(sizeof(*to) % sizeof(*a) == 0, "nothing else is in it");
	for (size_t i = 0; i < sizeof(*to) / sizeof(*a); i++)
		a[i] += b[i];
}

int status_page_new(struct status_page **ret)
{
	_cleanup_close_ int fd = memory_file_new("perfwalk-status");
	void *p;

	if (fd < 0)
		return fd;
	if (ftruncate(fd, sizeof(struct status_page)) < 0)
		return -errno;
	/*
	 * If others could truncate the page, we would get a SIGBUS. EINVAL: a file in /dev/shm has
	 * no seals.
	 */
	(void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	p = mmap(NULL, sizeof(struct status_page), PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	*ret = p;
	return TAKE_FD(fd);
}

int status_page_map(int fd, struct status_page **ret)
{
	void *p = mmap(NULL, sizeof(struct status_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	*ret = p;
	return 0;
}
