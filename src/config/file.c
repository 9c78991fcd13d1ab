/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/config/table.h"

/* What root obeys must be what root, or whoever root trusts with it, has written. */
static int check_file(int fd, size_t max, bool own, struct stat *st, char *error)
{
	if (fstat(fd, st) < 0) {
		(void)snprintf(error, CONFIG_ERROR_MAX, "%s", strerror(errno));
		return -errno;
	}
	if (!S_ISREG(st->st_mode)) {
		(void)snprintf(error, CONFIG_ERROR_MAX, "not a regular file");
		return -EINVAL;
	}
	if (geteuid() == 0 && (st->st_mode & (S_IWGRP | S_IWOTH))) {
		(void)snprintf(error, CONFIG_ERROR_MAX,
			       "users other than its owner can write this file (mode %04o); as "
			       "root perfwalk refuses it: chmod go-w it",
			       (unsigned int)(st->st_mode & 07777));
		return -EPERM;
	}
	if (geteuid() == 0 && own && st->st_uid != 0) {
		(void)snprintf(error, CONFIG_ERROR_MAX,
			       "user %u owns this file, and other users can write its directory "
			       "where it is not mounted read-only: chown root it",
			       (unsigned int)st->st_uid);
		return -EPERM;
	}
	if ((uint64_t)st->st_size > max) {
		(void)snprintf(error, CONFIG_ERROR_MAX, "larger than %zu KiB", max >> 10);
		return -EFBIG;
	}
	return 0;
}

int config_file_read(const char *path, size_t max, bool own, char **ret, size_t *ret_n, char *error)
{
	/* O_NONBLOCK: a FIFO in the file's place is refused instead of waited for. */
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	_cleanup_free_ char *text = NULL;
	struct stat st;
	size_t n = 0;
	int r;

	if (fd < 0) {
		r = -errno;
		(void)snprintf(error, CONFIG_ERROR_MAX, "cannot be opened: %s", strerror(-r));
		return r;
	}
	r = check_file(fd, max, own, &st, error);
	if (r < 0)
		return r;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	while (n < (size_t)st.st_size) {
		ssize_t got = read(fd, text + n, (size_t)st.st_size - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			r = -errno;
			(void)snprintf(error, CONFIG_ERROR_MAX, "cannot be read: %s", strerror(-r));
			return r;
		}
		if (got == 0)
			break;
		n += (size_t)got;
	}
	text[n] = '\0';
	*ret = TAKE_PTR(text);
	*ret_n = n;
	return 0;
}
