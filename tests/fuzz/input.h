/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For fuzz targets: an input as a file, a place for files, and a look at all bytes of an output. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static volatile uint64_t input_sink;

/* A file of these bytes, read from its start; the caller's. */
static inline int input_fd(const void *data, size_t n)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || (n && pwrite(fd, data, n, 0) != (ssize_t)n))
		abort();
	return fd;
}

/* Reads them, so that a sanitizer sees whether they may be read. */
static inline void input_touch(const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < n; i++)
		input_sink += p[i];
}

static inline void input_touch_text(const char *text)
{
	if (text)
		input_touch(text, strlen(text));
}

/* A copy that ends in a 0; free(). */
static inline char *input_text(const uint8_t *data, size_t n)
{
	char *text = malloc(n + 1);

	if (!text)
		abort();
	if (n)
		memcpy(text, data, n);
	text[n] = '\0';
	return text;
}

/* A new directory, for the whole run; in memory where that can be: nothing waits for a disk. */
static inline const char *input_directory(void)
{
	static char in_memory[] = "/dev/shm/fuzz.XXXXXX", on_disk[] = "/tmp/fuzz.XXXXXX";
	const char *path = mkdtemp(in_memory);

	if (!path)
		path = mkdtemp(on_disk);
	if (!path)
		abort();
	return path;
}
