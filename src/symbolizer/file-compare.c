/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/symbolizer/file-compare.h"
#include "util/cleanup.h"

#define PIECE (128u << 10)

/* -1: it cannot be read. Less than PIECE: its end. */
static ssize_t read_piece(int fd, uint8_t *buf, off_t at)
{
	size_t n = 0;

	while (n < PIECE) {
		ssize_t got = pread(fd, buf + n, PIECE - n, at + (off_t)n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	return (ssize_t)n;
}

bool file_bytes_equal(int a, int b)
{
	_cleanup_free_ uint8_t *buf = malloc(2 * PIECE);

	for (off_t at = 0; buf; at += PIECE) {
		ssize_t n = read_piece(a, buf, at), m = read_piece(b, buf + PIECE, at);

		if (n < 0 || n != m || memcmp(buf, buf + PIECE, (size_t)n) != 0)
			return false;
		if (n < PIECE)
			return true;
	}
	return false;
}
