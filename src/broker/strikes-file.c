/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/broker/strikes-file.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/hash.h"

#define MAGIC "perfwalk strikes 1\n"

/* As it is on this machine. Times are since 1970: the monotonic clock begins anew at each boot. */
struct saved_strike {
	struct status_file file;
	uint32_t who, took_too_long, n, n_aside;
	uint64_t struck_unix_ns, until_unix_ns; /* 0: it is not set aside */
};

struct saved_strikes {
	char magic[24];
	uint64_t sum; /* of what follows */
	uint64_t n;
	struct saved_strike items[STRIKES_MAX];
};

static size_t used_bytes(uint64_t n)
{
	return offsetof(struct saved_strikes, items) + n * sizeof(struct saved_strike);
}

static uint64_t sum_of(const struct saved_strikes *saved)
{
	size_t from = offsetof(struct saved_strikes, n);

	return hash_bytes((const char *)saved + from, used_bytes(saved->n) - from, 0);
}

static int write_file(const char *path, const void *bytes, size_t n)
{
	_cleanup_close_ int fd = -EBADF;
	char part[PATH_MAX];
	int r = 0;

	if (snprintf(part, sizeof(part), "%s.new", path) >= (int)sizeof(part))
		return -ENAMETOOLONG;
	(void)unlink(part);
	fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, bytes, n) != (ssize_t)n)
		r = -EIO;
	if (r == 0 && (fsync(fd) < 0 || rename(part, path) < 0))
		r = -errno;
	if (r < 0)
		(void)unlink(part);
	return r;
}

int strikes_save(const struct strikes *s, const char *path, uint64_t now)
{
	_cleanup_free_ struct saved_strikes *saved = calloc(1, sizeof(*saved));
	uint64_t unix_ns = clock_realtime_ns();

	if (!saved)
		return -ENOMEM;
	(void)strcpy(saved->magic, MAGIC);
	/* From the oldest on, as they are in the ring. */
	for (uint32_t i = 0; i < s->n; i++) {
		const struct strike *k = &s->items[s->n < STRIKES_MAX ? i : (s->next + i) % s->n];

		saved->items[saved->n++] = (struct saved_strike){
			.file = k->file,
			.who = k->who,
			.took_too_long = k->took_too_long,
			.n = k->n,
			.n_aside = k->n_aside,
			.struck_unix_ns = unix_ns - (now - k->struck_ns),
			.until_unix_ns = k->until_ns > now ? unix_ns + (k->until_ns - now) : 0,
		};
	}
	saved->sum = sum_of(saved);
	return write_file(path, saved, used_bytes(saved->n));
}

static struct strike strike_of(const struct saved_strike *from, uint64_t now, uint64_t unix_ns,
			       uint64_t max_ns)
{
	uint64_t ago = unix_ns > from->struck_unix_ns ? unix_ns - from->struck_unix_ns : 0;
	uint64_t left = from->until_unix_ns > unix_ns ? from->until_unix_ns - unix_ns : 0;
	struct strike k = {.file = from->file,
			   .who = (enum peer)from->who,
			   .took_too_long = from->took_too_long != 0,
			   .n = from->n,
			   .n_aside = from->n_aside,
			   .struck_ns = now > ago ? now - ago : 0};

	/* A clock that was set back must not keep it aside for years. */
	if (left)
		k.until_ns = now + (left < max_ns ? left : max_ns);
	k.file.path[sizeof(k.file.path) - 1] = '\0';
	return k;
}

int strikes_load(struct strikes *s, const char *path, uint64_t now)
{
	_cleanup_free_ struct saved_strikes *saved = calloc(1, sizeof(*saved));
	_cleanup_close_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	ssize_t n;

	if (!saved)
		return -ENOMEM;
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022))
		return -EPERM;
	n = read(fd, saved, sizeof(*saved));
	if (n < (ssize_t)used_bytes(0) || strcmp(saved->magic, MAGIC) != 0 ||
	    saved->n > STRIKES_MAX || (size_t)n != used_bytes(saved->n) ||
	    saved->sum != sum_of(saved))
		return -EBADMSG;
	for (uint64_t i = 0; i < saved->n; i++) {
		if (saved->items[i].who < PEER_N)
			s->items[s->n++] = strike_of(&saved->items[i], now, clock_realtime_ns(),
						     s->period_ns << STRIKES_MAX_DOUBLINGS);
	}
	s->next = s->n % STRIKES_MAX;
	return 0;
}
