/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "src/opener/internal.h"
#include "util/cleanup.h"

#define MAX_MAPS_BYTES (UINT64_C(32) << 20)

/* Whether a name is "PREFIX3.N", what stands for builds of another kind, and maybe ".so...". */
static bool is_python(const char *name, size_t n, const char *prefix, bool library)
{
	size_t n_prefix = strlen(prefix), at = n_prefix;

	if (n <= n_prefix || memcmp(name, prefix, n_prefix) != 0)
		return false;
	while (at < n && name[at] >= '0' && name[at] <= '9')
		at++;
	if (at == n_prefix)
		return false;
	while (at < n && name[at] >= 'a' && name[at] <= 'z')
		at++;
	return library ? n - at >= 3 && memcmp(name + at, ".so", 3) == 0 : at == n;
}

int opener_rank_runtime(const char *path, size_t n)
{
	static const char deleted[] = " (deleted)", java[] = "libjvm.so";
	size_t n_deleted = sizeof(deleted) - 1;
	const char *slash = memrchr(path, '/', n), *name = slash ? slash + 1 : path;

	n -= (size_t)(name - path);
	if (n > n_deleted && memcmp(name + n - n_deleted, deleted, n_deleted) == 0)
		n -= n_deleted;
	if (!slash)
		return 0;
	if (n == sizeof(java) - 1 && memcmp(name, java, n) == 0)
		return 3;
	return is_python(name, n, "libpython3.", true) ? 2 : is_python(name, n, "python3.", false);
}

/* A line of maps: "START-END r-xp OFFSET DEVICE INODE   PATH", whose path may have been deleted. */
static bool is_library(const char *line, size_t n)
{
	const char *permissions = memchr(line, ' ', n);

	return permissions && (size_t)(permissions - line) + 5 <= n && permissions[3] == 'x' &&
	       opener_rank_runtime(line, n) > 0;
}

/* In text of maps: whole lines of it; *left is what is left of it, and moved to its beginning. */
static bool find_library(char *text, size_t n, size_t *left)
{
	char *line = text, *end = text + n, *newline;

	while ((newline = memchr(line, '\n', (size_t)(end - line)))) {
		if (is_library(line, (size_t)(newline - line)))
			return true;
		line = newline + 1;
	}
	*left = (size_t)(end - line);
	memmove(text, line, *left);
	return false;
}

static int has_library(int maps)
{
	char text[16384];
	size_t n = 0;
	uint64_t total = 0;

	while (total < MAX_MAPS_BYTES && n < sizeof(text)) {
		ssize_t got = read(maps, text + n, sizeof(text) - n);

		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		total += (uint64_t)got;
		if (find_library(text, n + (size_t)got, &n))
			return 0;
	}
	return -ENOENT;
}

/* The directory stays that of this process, even if its pid is reused. If it executes another
 * program in between, the memory is that of the first one, which is gone. */
int opener_memory(uint32_t pid)
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
	r = has_library(maps);
	return r < 0 ? r : TAKE_FD(memory);
}
