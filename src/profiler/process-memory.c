/* SPDX-License-Identifier: Apache-2.0 */
#include "src/profiler/process-memory.h"

#include <errno.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/clock.h"

#define MAX_MAPS_BYTES (8u << 20)
/* Between attempts, and after one that was in vain for good. */
#define MIN_DELAY_NS  (10 * NSEC_PER_MSEC)
#define LEFT_DELAY_NS (100 * NSEC_PER_MSEC)
#define MAX_DELAY_NS  (60 * NSEC_PER_SEC)
#define DELAYS_OF_ALL 8 /* a runtime that is ready is met after at most this part of the wait */
/* A loader that takes longer is met by a later attempt. */
#define LOADED_NS (2 * NSEC_PER_SEC)
/* A program that begins has more memory all the time. */
#define MIN_MAPS_DELAY_NS (5 * NSEC_PER_MSEC)
/* A collector makes and leaves memory all the time. */
#define MAX_MAPS_DELAY_NS NSEC_PER_SEC

static int maps_of(void *ctx)
{
	const struct process_memory *m = ctx;

	return m->source->open_maps(m->source->ctx, m->pid);
}

void process_memory_init(struct process_memory *m, const struct memory_source *source, uint32_t pid,
			 uint64_t image, uint32_t major, uint32_t minor)
{
	*m = (struct process_memory){
		.source = source,
		.pid = pid,
		.image = image,
		.fd = -EBADF,
		.readable = {.open_maps = maps_of,
			     .ctx = m,
			     .major = major,
			     .minor = minor,
			     .max_bytes = MAX_MAPS_BYTES,
			     .min_delay_ns = MIN_MAPS_DELAY_NS,
			     .max_delay_ns = MAX_MAPS_DELAY_NS,
			     .begun_ns = clock_monotonic_ns()},
	};
}

void process_memory_deinit(struct process_memory *m)
{
	m->fd = close_fd(m->fd);
	readable_deinit(&m->readable);
}

static void wait_at_least(struct process_memory *m, uint64_t now, uint64_t delay_ns)
{
	if (!m->began_ns)
		m->began_ns = now;
	if (delay_ns < (now - m->began_ns) / DELAYS_OF_ALL)
		delay_ns = (now - m->began_ns) / DELAYS_OF_ALL;
	m->next_try_ns = now + (delay_ns < MAX_DELAY_NS ? delay_ns : MAX_DELAY_NS);
}

bool process_memory_try(struct process_memory *m)
{
	uint64_t now = clock_monotonic_ns();

	if (m->refused || now < m->next_try_ns)
		return false;
	wait_at_least(m, now, MIN_DELAY_NS);
	if (m->fd < 0)
		m->fd = m->source->open_memory(m->source->ctx, m->pid, m->image);
	m->refused = m->fd == -EPERM || m->fd == -EACCES;
	return m->fd >= 0;
}

void process_memory_grows(struct process_memory *m)
{
	m->readable.begun_ns = clock_monotonic_ns();
	m->readable.next_ns = 0;
}

bool process_memory_is_loaded(const struct process_memory *m)
{
	return m->began_ns && clock_monotonic_ns() - m->began_ns >= LOADED_NS;
}

void process_memory_keep(struct process_memory *m)
{
	m->began_ns = 0;
}

void process_memory_leave(struct process_memory *m)
{
	m->fd = close_fd(m->fd);
	m->readable.next_ns = 0;
	wait_at_least(m, clock_monotonic_ns(), LEFT_DELAY_NS);
}

bool process_memory_read(void *ctx, uint64_t address, void *ret, size_t n)
{
	struct process_memory *m = ctx;
	const struct memory_source *s = m->source;
	bool read;

	if (address > INT64_MAX || !readable_has(&m->readable, address, n))
		return false;
	s->reading(s->ctx, m->pid, true);
	read = pread(m->fd, ret, n, (off_t)address) == (ssize_t)n;
	s->reading(s->ctx, m->pid, false);
	return read;
}
