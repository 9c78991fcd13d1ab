/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "src/host/host.h"
#include "src/host/readable.h"
#include "util/bisect.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/memory-file.h"

enum {
	MAX_RANGES = 16384,
	CHUNK_BYTES = 65536,
	REST_TIMES = 20,
	/* For another process to open them, or because others have the CPU: that costs little. */
	REST_TIMES_OF_WAITING = 4,
};
#define MAX_DELAY_NS (60 * NSEC_PER_SEC)

void readable_deinit(struct readable *r)
{
	array_deinit(&r->known);
	array_deinit(&r->constant);
}

/* Of the runtime's filesystem, or memory that processes share. */
static bool answers(struct readable *r, const struct host_maps_line *l)
{
	if (l->major == r->major && l->minor == r->minor)
		return true;
	if (!r->shared)
		r->shared = memory_file_device();
	return r->shared && makedev(l->major, l->minor) == r->shared;
}

static void add_constant(struct readable *r, const struct host_maps_line *l)
{
	struct readable_range *range = array_push(&r->constant);

	if (range)
		*range = (struct readable_range){l->start, l->end};
}

static void add_range(struct readable *r, const struct host_maps_line *l)
{
	struct readable_range *last = r->known.n ? &r->known.items[r->known.n - 1] : NULL;

	if (l->inode != 0 && !answers(r, l))
		return;
	/* The kernel's own: devices have a name in brackets, which no memory of a program has. */
	if (l->inode == 0 && strcmp(l->path, "[vvar]") == 0)
		return;
	if (l->inode != 0 && !l->writable)
		add_constant(r, l);
	if (last && last->end == l->start) {
		last->end = l->end;
		return;
	}
	last = array_push(&r->known);
	if (last)
		*last = (struct readable_range){l->start, l->end};
}

/* Adds the whole lines of text; returns how many bytes of a cut-off last line are left. */
static size_t add_lines(struct readable *r, char *text, size_t n)
{
	char *line = text, *end = text + n, *newline;

	while ((newline = memchr(line, '\n', (size_t)(end - line)))) {
		struct host_maps_line l;

		if (host_parse_maps_line(line, (size_t)(newline - line), &l))
			add_range(r, &l);
		line = newline + 1;
	}
	memmove(text, line, (size_t)(end - line));
	return (size_t)(end - line);
}

static void read_maps(struct readable *r)
{
	_cleanup_close_ int fd = r->open_maps(r->ctx);
	_cleanup_free_ char *text = malloc(CHUNK_BYTES);
	size_t n = 0, total = 0;
	ssize_t got;

	array_clear(&r->known);
	array_clear(&r->constant);
	r->known.max = r->constant.max = MAX_RANGES;
	if (fd < 0 || !text)
		return;
	while (total < r->max_bytes && n < CHUNK_BYTES &&
	       (got = read(fd, text + n, CHUNK_BYTES - n)) > 0) {
		total += (size_t)got;
		n = add_lines(r, text, n + (size_t)got);
	}
}

static bool find_among(const struct readable_range *ranges, uint32_t n_ranges, uint64_t address,
		       size_t n)
{
	uint32_t at = bisect(n_ranges, i, ranges[i].end <= address);

	return at < n_ranges && address >= ranges[at].start && n <= ranges[at].end - address;
}

static bool find(const struct readable *r, uint64_t address, size_t n)
{
	return find_among(r->known.items, r->known.n, address, n);
}

bool readable_is_constant(const struct readable *r, uint64_t address, size_t n)
{
	return find_among(r->constant.items, r->constant.n, address, n);
}

static uint64_t max_delay_ns(const struct readable *r, uint64_t now)
{
	uint64_t most = r->max_delay_ns ? r->max_delay_ns : MAX_DELAY_NS;
	uint64_t of_life = (now - r->begun_ns) / REST_TIMES;

	return of_life < most ? of_life : most;
}

/* Reads them, and returns how long not to do so again. */
static uint64_t read_and_rest_ns(struct readable *r)
{
	uint64_t cpu_ns = clock_get_ns(CLOCK_THREAD_CPUTIME_ID), ns = clock_monotonic_ns();

	read_maps(r);
	cpu_ns = REST_TIMES * (clock_get_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns);
	ns = REST_TIMES_OF_WAITING * (clock_monotonic_ns() - ns);
	return cpu_ns > ns ? cpu_ns : ns;
}

bool readable_has(struct readable *r, uint64_t address, size_t n)
{
	uint64_t now, least, most;

	if (find(r, address, n))
		return true;
	now = clock_monotonic_ns();
	if (now < r->next_ns)
		return false;
	least = read_and_rest_ns(r);
	least = least > r->min_delay_ns ? least : r->min_delay_ns;
	most = max_delay_ns(r, now);
	r->delay_ns = find(r, address, n) ? 0 : 2 * r->delay_ns;
	r->delay_ns = r->delay_ns < most ? r->delay_ns : most;
	r->delay_ns = r->delay_ns > least ? r->delay_ns : least;
	r->next_ns = now + r->delay_ns;
	return find(r, address, n);
}
