/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the first bytes of a file before a child gets it. A compromised child can ask for any
 * path. The kinds of files that a profiler reads hold no secrets, and their first bytes distinguish
 * them from others.
 */
#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/opener/internal.h"
#include "util/cleanup.h"

/* A core file is an ELF file, too, but contains the memory of a process. */
static bool is_elf(const unsigned char *head, size_t n)
{
	const unsigned char *type = head + EI_NIDENT;

	return n >= EI_NIDENT + sizeof(Elf64_Half) && memcmp(head, ELFMAG, SELFMAG) == 0 &&
	       type[0] + type[1] != ET_CORE;
}

static bool is_jitdump(const unsigned char *head, size_t n)
{
	/* In the byte order of the writer; the reader reports a wrong byte order. */
	return n >= 4 && (memcmp(head, "JiTD", 4) == 0 || memcmp(head, "DTiJ", 4) == 0);
}

/* Writers of jitdump files fill a buffer before they write the first byte. So an empty file counts
 * if its real name, without links, is that of a jitdump file. */
static bool is_named_jitdump(int fd)
{
	char link[32], path[PROTOCOL_PATH_MAX];
	int end = -1;
	ssize_t n;
	char *name;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	name = strrchr(path, '/');
	/* The name of a deleted file ends with " (deleted)". */
	return name && sscanf(name, "/jit-%*[0-9].dump%n", &end) == 0 && end > 0 &&
	       (name[end] == '\0' || name[end] == ' ');
}

/* Lines that begin with an address: a perf map, a copy of kallsyms. It may still be empty. */
static bool is_addresses(const unsigned char *head, size_t n)
{
	return n == 0 || isxdigit(head[0]) != 0;
}

int opener_check_contents(int owned_fd, unsigned int allowed, uint32_t pid)
{
	_cleanup_close_ int fd = owned_fd;
	unsigned char head[EI_NIDENT + sizeof(Elf64_Half)];
	ssize_t n;

	if (fd < 0)
		return TAKE_FD(fd);
	if (!(allowed & OPENER_ANYWHERE) && opener_may_hang(fd, pid))
		return -ENOTSUP;
	n = pread(fd, head, sizeof(head), 0);
	if (n < 0)
		return -errno;
	if (((allowed & OPENER_ELF) && is_elf(head, (size_t)n)) ||
	    ((allowed & OPENER_JITDUMP) &&
	     (n == 0 ? is_named_jitdump(fd) : is_jitdump(head, (size_t)n))) ||
	    ((allowed & OPENER_ADDRESSES) && is_addresses(head, (size_t)n)))
		return TAKE_FD(fd);
	return -ENOEXEC;
}

bool opener_leads_up(const char *path)
{
	for (const char *at = path; (at = strstr(at, "..")); at += 2) {
		if ((at == path || at[-1] == '/') && (at[2] == '/' || at[2] == '\0'))
			return true;
	}
	return false;
}
