/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "util/clock.h"
#include "util/file-identity.h"

/* The statx() of what is cached, which waits for no server. */
static int get_cached(int fd, struct file_identity *ret)
{
	struct statx x;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &x) < 0)
		return -errno;
	*ret = (struct file_identity){
		.dev = makedev(x.stx_dev_major, x.stx_dev_minor),
		.ino = x.stx_ino,
		.size = x.stx_size,
		.mtime_ns = (uint64_t)x.stx_mtime.tv_sec * NSEC_PER_SEC + x.stx_mtime.tv_nsec,
	};
	return 0;
}

int file_identity_get(int fd, struct file_identity *ret)
{
	int r = get_cached(fd, ret);
	struct stat st;

	if (r == 0 || (r != -ENOSYS && r != -EINVAL && r != -EPERM))
		return r;
	/* Before Linux 4.11, where glibc tries fstatat(), which does not know the flag (EINVAL); or
	 * in a container that forbids the call. */
	if (fstat(fd, &st) < 0)
		return -errno;
	*ret = (struct file_identity){
		.dev = st.st_dev,
		.ino = st.st_ino,
		.size = (uint64_t)st.st_size,
		.mtime_ns =
			(uint64_t)st.st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec,
	};
	return 0;
}
