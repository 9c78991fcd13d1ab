/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "src/cmd/payloads.h"
#include "src/cmd/role.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"
#include "util/memory-file.h"

#define RETRY_NS (20 * NSEC_PER_MSEC)

struct payload {
	uint64_t id, n_samples, bytes, made_ns;
	int fd;
	bool sent;
};

struct payloads {
	struct loop *loop;
	int sock, mirror_sock, timer;
	uint64_t last_id, bytes, dropped;
	ARRAY(struct payload) queue; /* oldest first */
};

static void on_retry(void *ctx);

int payloads_new(struct payloads **ret, struct loop *loop, uint32_t max)
{
	struct payloads *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->loop = loop;
	p->sock = p->mirror_sock = -EBADF;
	p->queue.max = max;
	/* Ids of two symbolizers must not meet in one exporter. */
	p->last_id = clock_monotonic_ns();
	p->timer = loop_add_timer(loop, UINT64_MAX, 0, on_retry, p);
	*ret = p;
	return 0;
}

static void remove_at(struct payloads *p, uint32_t i)
{
	struct payload *q = &p->queue.items[i];

	p->bytes -= q->bytes;
	(void)close_fd(q->fd);
	memmove(q, q + 1, (p->queue.n - i - 1) * sizeof(*q));
	p->queue.n--;
}

struct payloads *payloads_free(struct payloads *p)
{
	if (p) {
		while (p->queue.n > 0)
			remove_at(p, p->queue.n - 1);
		array_deinit(&p->queue);
		loop_remove_fd(p->loop, p->sock);
		(void)close_fd(p->sock);
		(void)close_fd(p->mirror_sock);
		free(p);
	}
	return NULL;
}

static void disconnect(struct payloads *p)
{
	loop_remove_fd(p->loop, p->sock);
	p->sock = close_fd(p->sock);
}

static void pump(struct payloads *p)
{
	for (uint32_t i = 0; p->sock >= 0 && i < p->queue.n; i++) {
		struct payload *q = &p->queue.items[i];
		struct message m = {.type = MESSAGE_PAYLOAD};
		int r;

		if (q->sent)
			continue;
		m.item.id = q->id;
		m.item.n_samples = q->n_samples;
		m.item.made_ns = q->made_ns;
		r = message_send(p->sock, &m, &q->fd, 1);
		if (r == -EPIPE || r == -ECONNRESET) {
			disconnect(p);
			return;
		}
		/* As in handover.c: nobody joins two again that live. */
		if (r < 0) {
			loop_set_timer(p->loop, p->timer, RETRY_NS);
			return;
		}
		q->sent = true;
	}
}

static void on_retry(void *ctx)
{
	pump(ctx);
}

static void on_message(void *ctx, const struct message *m, int fds[2])
{
	struct payloads *p = ctx;

	(void)close_fd(fds[0]);
	(void)close_fd(fds[1]);
	if (m->type != MESSAGE_PAYLOAD_DONE)
		return;
	for (uint32_t i = 0; i < p->queue.n; i++) {
		if (p->queue.items[i].id == m->item.id) {
			remove_at(p, i);
			return;
		}
	}
}

static void on_socket(void *ctx, int fd, uint32_t events)
{
	struct payloads *p = ctx;

	if (role_drain_socket(fd, on_message, p) < 0)
		disconnect(p);
}

void payloads_connect(struct payloads *p, int fd)
{
	disconnect(p);
	p->sock = fd;
	if (loop_add_fd(p->loop, fd, EPOLLIN, on_socket, p) < 0) {
		disconnect(p);
		return;
	}
	for (uint32_t i = 0; i < p->queue.n; i++)
		p->queue.items[i].sent = false;
	pump(p);
}

void payloads_mirror(struct payloads *p, int fd)
{
	(void)close_fd(p->mirror_sock);
	p->mirror_sock = fd;
}

static void send_to_mirror(struct payloads *p, const struct payload *q)
{
	struct message m = {.type = MESSAGE_PAYLOAD};

	m.item.id = q->id;
	m.item.n_samples = q->n_samples;
	m.item.made_ns = q->made_ns;
	if (p->mirror_sock >= 0 && message_send(p->mirror_sock, &m, &q->fd, 1) == -EPIPE)
		p->mirror_sock = close_fd(p->mirror_sock);
}

static int seal(const void *bytes, size_t n)
{
	_cleanup_close_ int fd = memory_file_new("perfwalk-payload");
	size_t done = 0;
	int r;

	if (fd < 0)
		return fd;
	while (done < n) {
		ssize_t w = write(fd, (const char *)bytes + done, n - done);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return w < 0 ? -errno : -EIO;
		done += (size_t)w;
	}
	r = memory_file_seal(fd);
	return r < 0 ? r : TAKE_FD(fd);
}

int payloads_push(struct payloads *p, const void *bytes, size_t n, uint64_t n_samples)
{
	struct payload *q;
	int fd = seal(bytes, n);

	if (fd < 0)
		return fd;
	while (p->queue.n > 0 &&
	       (p->queue.n == p->queue.max || p->bytes + n > PAYLOADS_MAX_BYTES)) {
		log_warning("the exporter is too far behind: a payload of %llu samples is dropped",
			    (unsigned long long)p->queue.items[0].n_samples);
		p->dropped += p->queue.items[0].n_samples;
		remove_at(p, 0);
	}
	q = array_push(&p->queue);
	if (!q) {
		(void)close_fd(fd);
		return -ENOMEM;
	}
	*q = (struct payload){.id = ++p->last_id,
			      .n_samples = n_samples,
			      .bytes = n,
			      .made_ns = clock_monotonic_ns(),
			      .fd = fd};
	p->bytes += n;
	send_to_mirror(p, q);
	pump(p);
	return 0;
}

bool payloads_all_sent(const struct payloads *p)
{
	for (uint32_t i = 0; i < p->queue.n; i++) {
		if (!p->queue.items[i].sent)
			return false;
	}
	return true;
}

uint64_t payloads_take_dropped(struct payloads *p)
{
	uint64_t n = p->dropped;

	p->dropped = 0;
	return n;
}
