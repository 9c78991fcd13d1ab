/* SPDX-License-Identifier: Apache-2.0 */
#include "src/opener/allocators.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/file-identity.h"

bool allocator_is_java(int fd)
{
	static const char library[] = "/libjvm.so", deleted[] = " (deleted)";
	size_t n_library = sizeof(library) - 1, n_deleted = sizeof(deleted) - 1;
	char link[64], target[4096];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, target, sizeof(target));
	if (n > (ssize_t)n_deleted && memcmp(target + n - n_deleted, deleted, n_deleted) == 0)
		n -= (ssize_t)n_deleted;
	return n > (ssize_t)n_library && memcmp(target + n - n_library, library, n_library) == 0;
}

/* The program may be on a filesystem whose server does not answer: it is not opened, and its
 * identity is what is cached, where the kernel can tell that. */
static bool is_program(int fd, uint32_t pid)
{
	struct file_identity exe, ours;
	_cleanup_close_ int exe_fd = -EBADF;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	exe_fd = open(path, O_PATH | O_CLOEXEC);
	return exe_fd >= 0 && file_identity_get(exe_fd, &exe) == 0 &&
	       file_identity_get(fd, &ours) == 0 && exe.dev == ours.dev && exe.ino == ours.ino;
}

enum allocator allocator_of_file(int fd, uint32_t pid)
{
	return allocator_is_java(fd) ? ALLOCATOR_JAVA
	       : is_program(fd, pid) ? ALLOCATOR_GO
				     : ALLOCATOR_NONE;
}

bool allocator_may_begin(enum allocator of, int fd, uint64_t offset)
{
	static const struct {
		uint16_t machine;
		enum allocator of;
		uint8_t alignment, n, bytes[4];
	} beginnings[] = {
		{EM_X86_64, ALLOCATOR_JAVA, 16, 1, {0x55}},		      /* push %rbp */
		{EM_X86_64, ALLOCATOR_JAVA, 16, 4, {0xf3, 0x0f, 0x1e, 0xfa}}, /* endbr64 */
		/* cmp 0x10(%r14),%rsp */
		{EM_X86_64, ALLOCATOR_GO, 16, 4, {0x49, 0x3b, 0x66, 0x10}},
		/* lea -N(%rsp),%r12; the same, N large */
		{EM_X86_64, ALLOCATOR_GO, 16, 4, {0x4c, 0x8d, 0x64, 0x24}},
		{EM_X86_64, ALLOCATOR_GO, 16, 4, {0x4c, 0x8d, 0xa4, 0x24}},
		/* stp x29, x30, [sp, #-N]! */
		{EM_AARCH64, ALLOCATOR_JAVA, 4, 4, {0xfd, 0x7b, 0xa0, 0xa9}},
		/* ldr x16, [x28, #16] */
		{EM_AARCH64, ALLOCATOR_GO, 16, 4, {0x90, 0x0b, 0x40, 0xf9}},
	};
	uint8_t bytes[sizeof(beginnings[0].bytes)];
	uint16_t machine;

	if (pread(fd, &machine, sizeof(machine), offsetof(Elf64_Ehdr, e_machine)) !=
		    (ssize_t)sizeof(machine) ||
	    pread(fd, bytes, sizeof(bytes), (off_t)offset) != (ssize_t)sizeof(bytes))
		return false;
	/* How much it stores. */
	if (machine == EM_AARCH64 && of == ALLOCATOR_JAVA)
		bytes[2] &= 0xe0;
	for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++) {
		if (machine == beginnings[i].machine && of == beginnings[i].of &&
		    offset % beginnings[i].alignment == 0 &&
		    memcmp(bytes, beginnings[i].bytes, beginnings[i].n) == 0)
			return true;
	}
	return false;
}
