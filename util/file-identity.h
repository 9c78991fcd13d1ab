/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The identity of a file's contents: is it the same file, and was it written to since? */
#include <stdbool.h>
#include <stdint.h>

/* Identity of a file's content, from statx. A size of FILE_GROWS means a file that grows: equal to
 * any content of it. */
struct file_identity {
	uint64_t dev, ino, size, mtime_ns;
};
#define FILE_GROWS UINT64_MAX

static inline bool file_identity_equal(const struct file_identity *a, const struct file_identity *b)
{
	return a->dev == b->dev && a->ino == b->ino &&
	       (a->size == FILE_GROWS || b->size == FILE_GROWS ||
		(a->size == b->size && a->mtime_ns == b->mtime_ns));
}

/*
 * Do they differ only in the time of writing? Then the file may have other contents of the same
 * size, or just another time (touch); only its contents, such as a build id, can tell.
 */
static inline bool file_identity_may_be_touched(const struct file_identity *a,
						const struct file_identity *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->mtime_ns != b->mtime_ns;
}

/* The identity as the kernel knows it; since Linux 4.11 no server is asked. 0 or -errno. */
int file_identity_get(int fd, struct file_identity *ret);
