/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/process/kept-blocks.h"
#include "util/memory-file.h"

struct kept_blocks {
	uint32_t end, reserved;
	struct kept_block rows[KEPT_BLOCKS_MAX];
};

int kept_blocks_new(void)
{
	_cleanup_close_ int fd = memory_file_new("perfwalk-blocks");

	if (fd < 0)
		return fd;
	if (ftruncate(fd, sizeof(struct kept_blocks)) < 0)
		return -errno;
	/* If others could truncate it, a reader would get a SIGBUS. */
	(void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	return TAKE_FD(fd);
}

int kept_blocks_map(int fd, struct kept_blocks **ret)
{
	struct stat st;
	void *p;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size != sizeof(struct kept_blocks))
		return -EBADMSG;
	p = mmap(NULL, sizeof(struct kept_blocks), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	*ret = p;
	return 0;
}

struct kept_blocks *kept_blocks_unmap(struct kept_blocks *k)
{
	if (k)
		(void)munmap(k, sizeof(*k));
	return NULL;
}

void kept_blocks_put(struct kept_blocks *k, uint32_t row, const struct kept_block *block)
{
	struct kept_block *to = &k->rows[row];

	kept_blocks_remove(k, row);
	to->table = block->table;
	to->bytes = block->bytes;
	to->objects = block->objects;
	to->pid = block->pid;
	to->tid = block->tid;
	if (row >= k->end)
		k->end = row + 1;
	/* From here on it counts. */
	__atomic_store_n(&to->address, block->address, __ATOMIC_RELEASE);
}

void kept_blocks_remove(struct kept_blocks *k, uint32_t row)
{
	__atomic_store_n(&k->rows[row].address, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

bool kept_blocks_get(const struct kept_blocks *k, uint32_t row, struct kept_block *ret)
{
	*ret = k->rows[row];
	return ret->address && ret->pid && isfinite(ret->bytes) && ret->bytes > 0 &&
	       isfinite(ret->objects) && ret->objects >= 1;
}

uint32_t kept_blocks_end(const struct kept_blocks *k)
{
	return k->end < KEPT_BLOCKS_MAX ? k->end : KEPT_BLOCKS_MAX;
}
