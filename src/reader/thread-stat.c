/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/reader/thread-stat.h"

enum { CPU_FIELD = 39, STATE_FIELD = 3, MAX_BYTES = 1024 };

uint32_t thread_stat_cpu(int fd)
{
	char text[MAX_BYTES], *at, *end;
	ssize_t n = fd < 0 ? 0 : pread(fd, text, sizeof(text) - 1, 0);
	unsigned long cpu;

	if (n <= 0)
		return THREAD_STAT_NO_CPU;
	text[n] = '\0';
	/* Its name is the second field, in brackets, and may have brackets and blanks. */
	at = strrchr(text, ')');
	for (int field = STATE_FIELD; at && field <= CPU_FIELD; field++) {
		at = strchr(at + 1, ' ');
	}
	if (!at)
		return THREAD_STAT_NO_CPU;
	cpu = strtoul(at + 1, &end, 10);
	return end != at + 1 && cpu < THREAD_STAT_NO_CPU ? (uint32_t)cpu : THREAD_STAT_NO_CPU;
}
