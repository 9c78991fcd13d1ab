/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/opener/internal.h"
#include "util/cleanup.h"
#include "util/memory-file.h"
#include "util/runtime-files.h"

#define MAX_BSS_BYTES UINT64_C(0x200000) /* of the allocation library, behind its file */

/* A line of maps: "START-END r-xp OFFSET DEVICE INODE   PATH", whose path may have been deleted. */
static bool is_runtime(const char *line, size_t n)
{
	const char *permissions = memchr(line, ' ', n);

	return permissions && (size_t)(permissions - line) + 5 <= n && permissions[3] == 'x' &&
	       runtime_file_rank(line, n, RUNTIME_ANY) > 0;
}

/* The allocation library, with its table in it or close behind. */
static bool has_table(const char *line, size_t n, uint64_t table)
{
	static const char name[] = "/libperfwalk-alloc.so", deleted[] = " (deleted)";
	size_t n_name = sizeof(name) - 1, n_deleted = sizeof(deleted) - 1;
	uint64_t start, end;
	char *after;

	start = strtoull(line, &after, 16);
	end = *after == '-' ? strtoull(after + 1, NULL, 16) : 0;
	if (end < start || table < start ||
	    table - start + LIBRARY_TABLE_BYTES > end - start + MAX_BSS_BYTES)
		return false;
	if (n > n_deleted && memcmp(line + n - n_deleted, deleted, n_deleted) == 0)
		n -= n_deleted;
	return n > n_name && memcmp(line + n - n_name, name, n_name) == 0;
}

/* What is looked for: a runtime's library or a process context (table 0), or the allocation library
 * with its table. */
static bool is_library(const char *line, size_t n, void *ctx)
{
	const uint64_t *table = ctx;
	uint64_t address;

	return *table ? has_table(line, n, *table)
		      : is_runtime(line, n) || opener_is_context(line, n, &address);
}

/* Programs of Go have any name; the linker puts a note of its own type in front. */
static bool is_go_program(int dir)
{
	static const char note[] = {4, 0, 0, 0, 'G', 'o', 0, 0};
	_cleanup_close_ int fd = openat(dir, "exe", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char head[4096];
	ssize_t n = fd < 0 ? 0 : pread(fd, head, sizeof(head), 0);

	return n > 0 && memmem(head, (size_t)n, note, sizeof(note));
}

/* The directory stays that of this process, even if its pid is reused. If it executes another
 * program in between, the memory is that of the first one, which is gone. */
static int open_memory(uint32_t pid, uint64_t table)
{
	_cleanup_close_ int dir = opener_open_proc(pid, "", O_PATH | O_DIRECTORY);
	_cleanup_close_ int memory = -EBADF, maps = -EBADF;
	int r;

	if (dir < 0)
		return dir;
	memory = openat(dir, "mem", O_RDONLY | O_CLOEXEC);
	if (memory < 0)
		return -errno;
	maps = openat(dir, "maps", O_RDONLY | O_CLOEXEC);
	if (maps < 0)
		return -errno;
	r = opener_find_line(maps, is_library, &table);
	if (r == -ENOENT && !table && is_go_program(dir))
		r = 0;
	return r < 0 ? r : TAKE_FD(memory);
}

int opener_memory(uint32_t pid)
{
	return open_memory(pid, 0);
}

int opener_named_memory(uint32_t pid)
{
	return opener_open_proc(pid, "mem", O_RDONLY);
}

int opener_library_table(uint32_t pid, uint64_t address)
{
	_cleanup_close_ int memory = address ? open_memory(pid, address) : -EINVAL, fd = -EBADF;
	_cleanup_free_ uint8_t *table = malloc(LIBRARY_TABLE_BYTES);

	if (memory < 0 || !table)
		return memory < 0 ? memory : -ENOMEM;
	if (pread(memory, table, LIBRARY_TABLE_BYTES, (off_t)address) != LIBRARY_TABLE_BYTES)
		return -EFAULT;
	fd = memory_file_new("perfwalk-table");
	if (fd < 0)
		return fd;
	return write(fd, table, LIBRARY_TABLE_BYTES) == LIBRARY_TABLE_BYTES ? TAKE_FD(fd) : -EIO;
}
