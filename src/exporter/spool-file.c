/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file:
 *
 *	0	"PWSPOOL" and the version, 1
 *	8	u32 sum of the header: of the bytes from 12 on, the name too
 *	12	u32 sum of the body
 *	16	u32 how the body is encoded: 0 not at all, 1 gzip, 2 zstd
 *	20	u32 length of the name
 *	24	u64 length of the body
 *	32	u64 samples, id, time (unix ns)
 *	56	the destination's name, then the body: exactly the bytes to send
 *
 * Little-endian; sums are CRC-32. The file's length has to be what its header says.
 *
 * It is written under a temporary name, flushed and renamed, so a file whose name ends in .otlp is
 * always complete. The spool flushes the directory, because a power cut may otherwise remove the
 * name: that flush takes most of the time, and one serves many files.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <zlib.h>

#include "src/exporter/payload.h"
#include "src/exporter/spool-file.h"
#include "util/cleanup.h"

#define MAGIC	     "PWSPOOL\1"
#define FIXED_BYTES  56
#define BODY_MAX     (PAYLOAD_MAX_BYTES + (PAYLOAD_MAX_BYTES >> 3)) /* incompressible data grows */
#define SUMMED_FROM  12
#define HEADER_BYTES (FIXED_BYTES + SPOOL_DESTINATION_MAX)
/* In the word of the encoding: files of earlier versions have zeros there. */
#define HALVINGS_SHIFT 16
#define MAX_HALVINGS   UINT16_MAX

const char *spool_file_name(char name[SPOOL_NAME_MAX], uint64_t seq, const char *suffix)
{
	(void)snprintf(name, SPOOL_NAME_MAX, "%020llu%s", (unsigned long long)seq, suffix);
	return name;
}

bool spool_file_parse_name(const char *name, const char *suffix, uint64_t *ret_seq)
{
	char *end;

	if (strspn(name, "0123456789") != 20 || strcmp(name + 20, suffix) != 0)
		return false;
	errno = 0;
	*ret_seq = strtoull(name, &end, 10);
	/* The last number is no one's: there has to be one to follow. */
	return errno == 0 && *ret_seq < UINT64_MAX;
}

uint64_t spool_file_bytes(const struct spool_header *h)
{
	return FIXED_BYTES + strlen(h->destination) + h->n_body;
}

uint32_t spool_file_crc(const uint8_t *body, size_t n)
{
	return (uint32_t)crc32(0, body, (uInt)n); /* n is below 4 GiB */
}

/* --- the header ---------------------------------------------------------------------------- */

static void put32(uint8_t *at, uint32_t v)
{
	v = htole32(v);
	memcpy(at, &v, sizeof(v));
}

static void put64(uint8_t *at, uint64_t v)
{
	v = htole64(v);
	memcpy(at, &v, sizeof(v));
}

static uint32_t get32(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return le32toh(v);
}

static uint64_t get64(const uint8_t *at)
{
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	return le64toh(v);
}

static size_t encode(const struct spool_header *h, uint8_t out[HEADER_BYTES])
{
	size_t n_name = strlen(h->destination), n = FIXED_BYTES + n_name;
	uint32_t halvings = h->n_halvings < MAX_HALVINGS ? h->n_halvings : MAX_HALVINGS;

	memcpy(out, MAGIC, 8);
	put32(out + 12, h->crc_body);
	put32(out + 16, h->encoding | halvings << HALVINGS_SHIFT);
	put32(out + 20, (uint32_t)n_name);
	put64(out + 24, h->n_body);
	put64(out + 32, h->n_samples);
	put64(out + 40, h->id);
	put64(out + 48, h->time_unix_ns);
	memcpy(out + FIXED_BYTES, h->destination, n_name);
	put32(out + 8, spool_file_crc(out + SUMMED_FROM, n - SUMMED_FROM));
	return n;
}

/* in: the first n bytes of a file of n_file. */
static int decode(struct spool_header *h, const uint8_t *in, size_t n, uint64_t n_file)
{
	uint32_t n_name, encoding;

	if (n < FIXED_BYTES || memcmp(in, MAGIC, 8) != 0)
		return -EBADMSG;
	encoding = get32(in + 16) & UINT16_MAX;
	n_name = get32(in + 20);
	if (n_name > SPOOL_DESTINATION_MAX || n_name > n - FIXED_BYTES ||
	    get32(in + 8) != spool_file_crc(in + SUMMED_FROM, FIXED_BYTES + n_name - SUMMED_FROM) ||
	    memchr(in + FIXED_BYTES, '\0', n_name))
		return -EBADMSG;
	*h = (struct spool_header){
		.crc_body = get32(in + 12),
		.n_halvings = get32(in + 16) >> HALVINGS_SHIFT,
		.encoding = encoding,
		.n_body = get64(in + 24),
		.n_samples = get64(in + 32),
		.id = get64(in + 40),
		.time_unix_ns = get64(in + 48),
	};
	memcpy(h->destination, in + FIXED_BYTES, n_name);
	return encoding < N_ENCODINGS && h->n_body > 0 && h->n_body <= BODY_MAX &&
			       spool_file_bytes(h) == n_file
		       ? 0
		       : -EBADMSG;
}

/* --- writing ------------------------------------------------------------------------------- */

static int write_fully(int fd, struct iovec *v, int n)
{
	while (n > 0) {
		ssize_t done = writev(fd, v, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		for (; n > 0 && (size_t)done >= v->iov_len; v++, n--)
			done -= (ssize_t)v->iov_len;
		if (n > 0) {
			v->iov_base = (uint8_t *)v->iov_base + done;
			v->iov_len -= (size_t)done;
		}
	}
	return 0;
}

static int write_temporary(int dir_fd, const char *name, const struct spool_header *h,
			   const uint8_t *body)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	_cleanup_close_ int fd = openat(dir_fd, name, flags, 0600);
	uint8_t header[HEADER_BYTES];
	struct iovec v[2] = {
		{header, encode(h, header)},
		{(void *)(uintptr_t)body, h->n_body},
	};
	int r;

	/* Left by a write that could not even take it back. */
	if (fd < 0 && errno == EEXIST && unlinkat(dir_fd, name, 0) == 0)
		fd = openat(dir_fd, name, flags, 0600);
	if (fd < 0)
		return -errno;
	r = write_fully(fd, v, 2);
	if (r == 0 && fdatasync(fd) < 0)
		r = -errno;
	/* Network file systems tell of a failed write as late as this. */
	if (close(TAKE_FD(fd)) < 0 && r == 0)
		r = -errno;
	return r;
}

int spool_file_write(int dir_fd, uint64_t seq, const struct spool_header *h, const uint8_t *body)
{
	char temporary[SPOOL_NAME_MAX], name[SPOOL_NAME_MAX];
	int r;

	spool_file_name(temporary, seq, SPOOL_SUFFIX_TEMPORARY);
	spool_file_name(name, seq, SPOOL_SUFFIX);
	r = write_temporary(dir_fd, temporary, h, body);
	if (r == 0 && renameat(dir_fd, temporary, dir_fd, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir_fd, temporary, 0);
	return r;
}

/* --- reading ------------------------------------------------------------------------------- */

static int read_fully(int fd, uint8_t *to, size_t n, uint64_t at)
{
	while (n > 0) {
		ssize_t got = pread(fd, to, n, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno == EIO ? -EBADMSG : -errno;
		if (got == 0)
			return -EBADMSG;
		to += got;
		at += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}

/* Whoever put something else than a plain file of ours there gets it set aside, not read. */
static int open_own(int dir_fd, const char *name, uint64_t *ret_bytes)
{
	_cleanup_close_ int fd =
		openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return errno == ELOOP || errno == ENXIO || errno == EACCES ? -EBADMSG : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1)
		return -EBADMSG;
	*ret_bytes = (uint64_t)st.st_size;
	return TAKE_FD(fd);
}

int spool_file_read(int dir_fd, uint64_t seq, struct spool_header *h, uint8_t **ret_body)
{
	_cleanup_free_ uint8_t *body = NULL;
	_cleanup_close_ int fd = -EBADF;
	uint8_t start[HEADER_BYTES];
	char name[SPOOL_NAME_MAX];
	uint64_t bytes = 0;
	size_t n;
	int r;

	fd = open_own(dir_fd, spool_file_name(name, seq, SPOOL_SUFFIX), &bytes);
	if (fd < 0)
		return fd;
	n = bytes < sizeof(start) ? (size_t)bytes : sizeof(start);
	r = read_fully(fd, start, n, 0);
	if (r == 0)
		r = decode(h, start, n, bytes);
	if (r < 0 || !ret_body)
		return r;
	body = malloc(h->n_body);
	if (!body)
		return -ENOMEM;
	r = read_fully(fd, body, h->n_body, bytes - h->n_body);
	if (r == 0 && spool_file_crc(body, h->n_body) != h->crc_body)
		r = -EBADMSG;
	if (r == 0)
		*ret_body = TAKE_PTR(body);
	return r;
}
