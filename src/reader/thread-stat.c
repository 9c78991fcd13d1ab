/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "src/reader/thread-stat.h"

enum { CPU_FIELD = 39, NAME_FIELD = 2, MAX_BYTES = 1024, MAX_CPUS = 1 << 20 };

/* The number at *at, and a blank behind it: a text that ends there may be cut. */
static uint32_t number_at(const char *at, const char *end)
{
	uint32_t value = 0;
	const char *first = at;

	for (; at < end && *at >= '0' && *at <= '9' && value < MAX_CPUS; at++)
		value = value * 10 + (uint32_t)(*at - '0');
	return at > first && at < end && *at == ' ' ? value : THREAD_STAT_NO_CPU;
}

uint32_t thread_stat_cpu(int fd)
{
	char text[MAX_BYTES];
	ssize_t n = fd < 0 ? 0 : pread(fd, text, sizeof(text), 0);
	const char *at, *end;
	int field = NAME_FIELD;

	if (n <= 0)
		return THREAD_STAT_NO_CPU;
	end = text + n;
	/* Its name is the second field, in brackets, and may have brackets and blanks. */
	at = memrchr(text, ')', (size_t)n);
	/* Byte by byte: fields are so short that strchr() takes three times as long. */
	for (; at && at < end && field < CPU_FIELD; at++)
		field += *at == ' ';
	return at ? number_at(at, end) : THREAD_STAT_NO_CPU;
}
