/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: a config and, behind a 0 byte, a drop-in for it. What is understood is printed
 * again, and that text means the same.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "config.h"

#include "src/config/config.h"
#include "tests/fuzz/input.h"

static const char *home;
static char file[48], drop_ins[64], drop_in[96];

static void clean_up(void)
{
	(void)unlink(drop_in);
	(void)rmdir(drop_ins);
	(void)unlink(file);
	(void)rmdir(home);
}

static void make_directory(void)
{
	if (*file)
		return;
	home = input_directory();
	if (atexit(clean_up))
		abort();
	(void)snprintf(file, sizeof(file), "%s/x.conf", home);
	(void)snprintf(drop_ins, sizeof(drop_ins), "%s.d", file);
	(void)snprintf(drop_in, sizeof(drop_in), "%s/1.conf", drop_ins);
	if (mkdir(drop_ins, 0700) < 0)
		abort();
}

static void write_file(const char *name, const void *bytes, size_t n)
{
	int fd;

	/* What is cut off and written anew, ext4 brings to the disk at once. */
	(void)unlink(name);
	fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || (n && write(fd, bytes, n) != (ssize_t)n))
		abort();
	(void)close(fd);
}

static char *print(const struct config *c)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	if (!out)
		abort();
	config_print(c, out);
	(void)fclose(out);
	return text;
}

/* What is printed says the same when it is read. */
static void check_printed(const struct config *c)
{
	_cleanup_(config_freep) struct config *again = NULL;
	_cleanup_free_ char *text = print(c), *second = NULL;

	write_file(file, text, strlen(text));
	write_file(drop_in, NULL, 0);
	if (config_load(&again, file, false, stderr) < 0)
		abort();
	second = print(again);
	if (strcmp(text, second) != 0) {
		(void)fprintf(stderr, "%s\n---\n%s", text, second);
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_(config_freep) struct config *c = NULL;
	const uint8_t *end = n ? memchr(data, 0, n) : NULL;
	size_t n_first = end ? (size_t)(end - data) : n, n_told = 0;
	_cleanup_free_ char *told = NULL;
	FILE *errors = open_memstream(&told, &n_told);
	int r;

	if (!errors)
		abort();
	make_directory();
	write_file(file, data, n_first);
	write_file(drop_in, end ? end + 1 : data, end ? n - n_first - 1 : 0);
	r = config_load(&c, file, false, errors);
	(void)fclose(errors);
	if (r < 0 && n_told == 0)
		abort(); /* a refusal says why */
	if (r == 0)
		check_printed(c);
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	return replay_directory(FUZZ_REPLAY, 0, 64, 200);
}
#endif
