/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/profile/profile.h"
#include "src/profiler/kills.h"
#include "src/profiler/outside.h"
#include "util/cleanup.h"

#define MAX_TEXT 32768
#define KEY	 "\noom_kill "

/* false: the kernel does not count them. */
static bool read_counter(int fd, uint64_t *ret)
{
	char text[MAX_TEXT], *at;
	size_t n = 0;
	ssize_t got;

	/* A page at a time. */
	while (n < sizeof(text) - 1 &&
	       (got = pread(fd, text + n, sizeof(text) - 1 - n, (off_t)n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	at = strstr(text, KEY);
	if (!at)
		return false;
	*ret = strtoull(at + strlen(KEY), NULL, 10);
	return true;
}

uint64_t kills_read(struct kill_counter *c, struct outside *o, struct profile *p,
		    uint64_t now_unix_ns)
{
	bool first = !c->tried;
	struct profile_kills k = {.time_unix_ns = now_unix_ns};
	uint64_t n;

	if (first)
		c->fd = outside_open_kills(o);
	c->tried = true;
	if (c->fd < 0 || !read_counter(c->fd, &n)) {
		kills_close(c);
		return 0;
	}
	k.n = first ? 0 : n - c->n;
	if (k.n > 0 && !profile_add_kills(p, &k))
		return 0;
	c->n = n;
	return k.n;
}

void kills_close(struct kill_counter *c)
{
	c->fd = close_fd(c->fd);
}
