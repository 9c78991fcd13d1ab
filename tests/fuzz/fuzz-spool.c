/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: a file of the spool. Its sums are made right first, so that what they cover is
 * looked at; its body is decoded, and its first bytes are also tried as names of files.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "src/exporter/encoding.h"
#include "src/exporter/spool-file.h"
#include "src/store/name.h"
#include "tests/fuzz/input.h"
#include "util/cleanup.h"

/* As spool-file.c has it. */
enum { SUM = 8, BODY_SUM = 12, N_NAME = 20, FIXED = 56 };

static const char *home;

static void clean_up(void)
{
	char file[64];

	(void)snprintf(file, sizeof(file), "%s/%020d" SPOOL_SUFFIX, home, 1);
	(void)unlink(file);
	(void)rmdir(home);
}

static int open_directory(void)
{
	home = input_directory();
	if (atexit(clean_up))
		abort();
	return open(home, O_DIRECTORY | O_CLOEXEC);
}

static void put_sums(uint8_t *bytes, size_t n)
{
	uint32_t n_name, sum;

	if (n < FIXED)
		return;
	memcpy(&n_name, bytes + N_NAME, sizeof(n_name));
	if (n_name > n - FIXED)
		return;
	sum = spool_file_crc(bytes + FIXED + n_name, n - FIXED - n_name);
	memcpy(bytes + BODY_SUM, &sum, sizeof(sum));
	sum = spool_file_crc(bytes + BODY_SUM, FIXED + n_name - BODY_SUM);
	memcpy(bytes + SUM, &sum, sizeof(sum));
}

static void write_file(int dir_fd, const uint8_t *bytes, size_t n)
{
	char name[SPOOL_NAME_MAX];
	int fd;

	/* What is cut off and written anew, ext4 brings to the disk at once. */
	(void)unlinkat(dir_fd, spool_file_name(name, 1, SPOOL_SUFFIX), 0);
	fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, bytes, n) != (ssize_t)n)
		abort();
	(void)close(fd);
}

static void read_names(const char *text)
{
	char name[STORE_NAME_MAX];
	uint64_t number;
	uint32_t sum;

	if (store_parse_name(text, &number, &sum) &&
	    strcmp(store_format_name(name, number, sum), text) != 0)
		abort();
	if (spool_file_parse_name(text, SPOOL_SUFFIX, &number) &&
	    strcmp(spool_file_name(name, number, SPOOL_SUFFIX), text) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static int dir_fd = -1;
	_cleanup_free_ uint8_t *bytes = (uint8_t *)input_text(data, n), *body = NULL, *raw = NULL;
	struct spool_header h;
	size_t n_raw;

	if (dir_fd < 0)
		dir_fd = open_directory();
	read_names((const char *)bytes);
	put_sums(bytes, n);
	write_file(dir_fd, bytes, n);
	if (spool_file_read(dir_fd, 1, &h, &body) < 0)
		return 0;
	if (spool_file_bytes(&h) != n)
		abort();
	input_touch_text(h.destination);
	input_touch(body, h.n_body);
	input_sink += encoding_size(h.encoding, body, h.n_body);
	if (encoding_decode(h.encoding, body, h.n_body, 1 << 20, &raw, &n_raw) == 0)
		input_touch(raw, n_raw);
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	return replay_directory(FUZZ_REPLAY, 0, 64, 200);
}
#endif
