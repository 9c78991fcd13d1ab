/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/opener/internal.h"
#include "util/cleanup.h"
#include "util/clock.h"
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

/* The file of a mapping of code, whose first byte is, or would be, at image. */
struct wanted_image {
	uint64_t image;
	bool known; /* by a mapping in front of the code: its file is set in ask */
	struct message ask;
};

static bool is_code_of_image(const char *line, size_t n, void *ctx)
{
	struct wanted_image *w = ctx;
	struct mapped_file_name *f = &w->ask.ask_file;
	unsigned long long start, end, offset, inode;
	unsigned int major, minor;
	char text[4096], permissions[5];
	int path = 0;

	(void)snprintf(text, sizeof(text), "%.*s", (int)(n < sizeof(text) ? n : sizeof(text)),
		       line);
	if (sscanf(text, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, permissions, &offset,
		   &major, &minor, &inode, &path) < 7 ||
	    inode == 0 || path == 0)
		return false;
	if (!w->known && start - offset == w->image) {
		w->known = true;
		f->major = major;
		f->minor = minor;
		f->inode = inode;
	}
	if (!w->known || f->major != major || f->minor != minor || f->inode != inode ||
	    permissions[2] != 'x')
		return false;
	f->start = start;
	f->end = end;
	message_set_text(f->path, sizeof(f->path), text + path);
	return true;
}

/* dir: the process's. Since it is still the same process after the file was opened, the file is
 * its. */
static int open_code(uint32_t pid, int dir, uint64_t image, struct file_identity *ret)
{
	struct wanted_image w = {.image = image, .ask.type = MESSAGE_ASK_FILE};
	_cleanup_close_ int maps = openat(dir, "maps", O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int file = -EBADF, there = -EBADF;
	struct stat st = {0};
	int r;

	if (maps < 0)
		return -errno;
	r = opener_find_line(maps, is_code_of_image, &w);
	if (r < 0)
		return r;
	w.ask.ask_file.pid = pid;
	file = opener_mapped_file(&w.ask, ret);
	if (file >= 0 && (r = opener_stat_cached(file, &st)) < 0)
		return r;
	ret->mtime_ns = (uint64_t)st.st_ctim.tv_sec * NSEC_PER_SEC + (uint64_t)st.st_ctim.tv_nsec;
	there = openat(dir, "stat", O_RDONLY | O_CLOEXEC);
	return file < 0 ? file : there < 0 ? -ESRCH : TAKE_FD(file);
}

/* The directory stays that of this process, even if its pid is reused. If it executes another
 * program in between, the memory is that of the first one, which is gone. */
static int open_memory(uint32_t pid, uint64_t table, uint64_t image, int *ret_file,
		       struct file_identity *ret)
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
	if (r == -ENOENT && image) {
		r = open_code(pid, dir, image, ret);
		*ret_file = r;
	}
	return r < 0 ? r : TAKE_FD(memory);
}

int opener_memory(uint32_t pid, uint64_t image, int *ret_file, struct file_identity *ret)
{
	*ret_file = -EBADF;
	return open_memory(pid, 0, image, ret_file, ret);
}

int opener_named_memory(uint32_t pid)
{
	return opener_open_proc(pid, "mem", O_RDONLY);
}

int opener_library_table(uint32_t pid, uint64_t address)
{
	_cleanup_close_ int memory = address ? open_memory(pid, address, 0, NULL, NULL) : -EINVAL,
			    fd = -EBADF;
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
