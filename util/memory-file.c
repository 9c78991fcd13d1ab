/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/memory-file.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

static int new_unlinked(const char *name)
{
	static const char *const directories[] = {"/dev/shm", "/tmp"};
	int fd = -1;

	for (size_t i = 0; i < ARRAY_SIZE(directories) && fd < 0; i++) {
		char path[64];

		(void)snprintf(path, sizeof(path), "%s/%s-XXXXXX", directories[i], name);
		fd = mkostemp(path, O_CLOEXEC);
		if (fd >= 0)
			(void)unlink(path);
	}
	return fd < 0 ? -errno : fd;
}

int memory_file_new(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 && errno == ENOSYS)
		return new_unlinked(name);
	return fd < 0 ? -errno : fd;
}

dev_t memory_file_device(void)
{
	_cleanup_close_ int fd = memory_file_new("perfwalk-device");
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 ? st.st_dev : 0;
}

int memory_file_seal(int fd)
{
	/* Not a memfd (EPERM), or a kernel without seals (EINVAL), is no error. */
	return fcntl(fd, F_ADD_SEALS, SEALS) < 0 && errno != EINVAL && errno != EPERM ? -errno : 0;
}

bool memory_file_is_sealed(int fd)
{
	const int needed = F_SEAL_SHRINK | F_SEAL_WRITE;
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & needed) == needed;
}
