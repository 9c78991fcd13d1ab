/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A file like /proc/PID/task/TID/stat, for tests: it says the CPU of a thread with an odd name. */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static inline int fake_stat_new(void)
{
	return memfd_create("stat", MFD_CLOEXEC);
}

static inline void fake_stat_set(int fd, uint32_t cpu)
{
	/* Before the CPU in field 39: pid, name, state, 35 numbers. */
	(void)!ftruncate(fd, 0);
	(void)dprintf(fd, "7 (a) b (c)) R");
	for (int i = 0; i < 35; i++)
		(void)dprintf(fd, " %d", 100 + i);
	(void)dprintf(fd, " %u 0 0\n", cpu);
	(void)lseek(fd, 0, SEEK_SET);
}
