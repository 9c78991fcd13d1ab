/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/stat.h>

#include "util/clock.h"
#include "util/file-identity.h"

int file_identity_get(int fd, struct file_identity *ret)
{
	struct stat st;

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
