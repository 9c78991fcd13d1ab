/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Cleanup attributes and ownership hand-over.
 *
 * A local that owns something is declared with one of these attributes and initialised at once
 * (NULL, or -EBADF for a descriptor); TAKE_PTR() and TAKE_FD() hand the ownership on.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

#define TAKE_GENERIC(var, type, none)                                                              \
	({                                                                                         \
		type *take_p_ = &(var);                                                            \
		type take_v_ = *take_p_;                                                           \
		*take_p_ = (none);                                                                 \
		take_v_;                                                                           \
	})
#define TAKE_PTR(p) TAKE_GENERIC(p, __typeof__(p), NULL)
#define TAKE_FD(fd) TAKE_GENERIC(fd, int, -EBADF)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

/*
 * Closes fd unless it is negative; does not change errno. Returns -EBADF, for the caller to assign.
 */
static inline int close_fd(int fd)
{
	if (fd >= 0) {
		int saved = errno;

		(void)close(fd);
		errno = saved;
	}
	return -EBADF;
}

static inline void cleanup_close(int *fd)
{
	(void)close_fd(*fd);
}

#define _cleanup_free_	_cleanup_(cleanup_free)
#define _cleanup_close_ _cleanup_(cleanup_close)

#define DEFINE_CLEANUP(type, func)                                                                 \
	static inline void func##p(type *p)                                                        \
	{                                                                                          \
		if (*p)                                                                            \
			func(*p);                                                                  \
	}
