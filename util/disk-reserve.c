/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/statvfs.h>

#include "util/disk-reserve.h"

#define RESERVE_PART  20
#define RESERVE_BYTES (UINT64_C(1) << 30)

int disk_reserve_check(int fd, uint64_t bytes)
{
	struct statvfs v;
	uint64_t reserve, available;

	if (fstatvfs(fd, &v) < 0 || v.f_blocks == 0)
		return 0; /* the write will fail if the disk is full */
	reserve = (uint64_t)v.f_blocks * v.f_frsize / RESERVE_PART;
	if (reserve > RESERVE_BYTES)
		reserve = RESERVE_BYTES;
	available = (uint64_t)v.f_bavail * v.f_frsize;
	return available >= reserve && available - reserve >= bytes ? 0 : -ENOSPC;
}
