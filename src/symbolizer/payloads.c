/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/process/outbox.h"
#include "src/process/status-page.h"
#include "src/symbolizer/payloads.h"
#include "src/symbolizer/setup.h"
#include "util/log.h"
#include "util/memory-file.h"

struct payloads {
	struct outbox *outbox;
	int mirror_sock;
	uint64_t dropped;
	uint64_t settled_order; /* below: of settled windows */
	struct status_custody *custody;
};

struct payload_more {
	uint64_t order;
	int kept_fd; /* -EBADF: the store keeps no more than the payload */
};

static uint64_t order_of(const struct outbox_entry *e)
{
	return ((const struct payload_more *)e->more)->order;
}

/* What would be lost with us, and with the exporter. */
static void publish(void *ctx)
{
	struct payloads *p = ctx;
	const struct outbox_entry *e;
	uint64_t unsettled = 0, unsent = 0;

	for (uint32_t i = 0; (e = outbox_at(p->outbox, i)); i++) {
		uint64_t n = order_of(e) < p->settled_order ? e->n_samples : 0;

		unsettled += n;
		unsent += e->sent ? 0 : n;
	}
	p->custody->unsent = unsent;
	p->custody->unsettled = unsettled;
}

static int send_to(int sock, const struct outbox_entry *e, int kept_fd)
{
	const int fds[2] = {e->fd, kept_fd};
	struct message m = {.type = MESSAGE_PAYLOAD};

	m.item.id = e->id;
	m.item.n_samples = e->n_samples;
	m.item.made_ns = e->made_ns;
	m.item.order = order_of(e);
	return message_send(sock, &m, fds, kept_fd < 0 ? 1 : 2);
}

static int on_send(void *ctx, int sock, struct outbox_entry *e)
{
	struct payloads *p = ctx;
	int r = send_to(sock, e, ((const struct payload_more *)e->more)->kept_fd);

	if (r == 0 && order_of(e) < p->settled_order)
		p->custody->unsent -= e->n_samples;
	return r;
}

static void on_forget(void *ctx, struct outbox_entry *e)
{
	struct payload_more *more = e->more;

	(void)close_fd(more->kept_fd);
	free(more);
}

static void on_dropped(void *ctx, const struct outbox_entry *e)
{
	struct payloads *p = ctx;

	log_warning("the exporter is too far behind: a payload of %llu samples is dropped",
		    (unsigned long long)e->n_samples);
	p->dropped += e->n_samples;
}

int payloads_new(struct payloads **ret, struct loop *loop, uint32_t max,
		 struct status_custody *custody)
{
	struct payloads *p = calloc(1, sizeof(*p));
	const struct outbox_callbacks callbacks = {
		.send = on_send,
		.forget = on_forget,
		.dropped = on_dropped,
		.changed = publish,
		.done = MESSAGE_PAYLOAD_DONE,
		.ctx = p,
	};
	int r;

	if (!p)
		return -ENOMEM;
	p->mirror_sock = -EBADF;
	p->custody = custody;
	r = outbox_new(&p->outbox, loop, &callbacks, max, PAYLOADS_MAX_BYTES);
	if (r < 0) {
		free(p);
		return r;
	}
	*ret = p;
	return 0;
}

struct payloads *payloads_free(struct payloads *p)
{
	if (p) {
		outbox_free(p->outbox);
		(void)close_fd(p->mirror_sock);
		free(p);
	}
	return NULL;
}

void payloads_connect(struct payloads *p, int fd, uint64_t start)
{
	p->custody->unsent = p->custody->unsettled;
	p->custody->exporter = start;
	outbox_connect(p->outbox, fd);
}

void payloads_mirror(struct payloads *p, int fd)
{
	(void)close_fd(p->mirror_sock);
	p->mirror_sock = fd;
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

int payloads_push(struct payloads *p, const struct payload_bytes *b, uint64_t n_samples,
		  uint64_t order)
{
	_cleanup_free_ struct payload_more *more = malloc(sizeof(*more));
	_cleanup_close_ int fd = seal(b->bytes, b->n);
	_cleanup_close_ int kept_fd = b->n_kept ? seal(b->kept, b->n_kept) : -EBADF;
	const struct outbox_entry *e;

	if (fd < 0)
		return fd;
	if (!more)
		return -ENOMEM;
	*more = (struct payload_more){order, kept_fd};
	e = outbox_push(p->outbox, fd, b->n, n_samples, more);
	if (!e)
		return -ENOMEM;
	(void)TAKE_FD(fd);
	(void)TAKE_FD(kept_fd);
	(void)TAKE_PTR(more);
	if (p->mirror_sock >= 0 && send_to(p->mirror_sock, e, -EBADF) == -EPIPE)
		p->mirror_sock = close_fd(p->mirror_sock);
	return 0;
}

void payloads_settle_windows(struct payloads *p, uint64_t order)
{
	p->settled_order = order;
	publish(p);
}

bool payloads_all_sent(const struct payloads *p)
{
	return outbox_all_sent(p->outbox);
}

bool payloads_all_settled(const struct payloads *p)
{
	return outbox_all_settled(p->outbox);
}

uint64_t payloads_take_dropped(struct payloads *p)
{
	uint64_t n = p->dropped;

	p->dropped = 0;
	return n;
}
