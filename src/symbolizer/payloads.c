/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/process/outbox.h"
#include "src/symbolizer/payloads.h"
#include "util/log.h"
#include "util/memory-file.h"

struct payloads {
	struct outbox *outbox;
	int mirror_sock;
	uint64_t dropped;
};

static int send_to(int sock, const struct outbox_entry *e)
{
	struct message m = {.type = MESSAGE_PAYLOAD};

	m.item.id = e->id;
	m.item.n_samples = e->n_samples;
	m.item.made_ns = e->made_ns;
	m.item.order = *(const uint64_t *)e->more;
	return message_send(sock, &m, &e->fd, 1);
}

static int on_send(void *ctx, int sock, struct outbox_entry *e)
{
	return send_to(sock, e);
}

static void on_forget(void *ctx, struct outbox_entry *e)
{
	free(e->more);
}

static void on_dropped(void *ctx, const struct outbox_entry *e)
{
	struct payloads *p = ctx;

	log_warning("the exporter is too far behind: a payload of %llu samples is dropped",
		    (unsigned long long)e->n_samples);
	p->dropped += e->n_samples;
}

int payloads_new(struct payloads **ret, struct loop *loop, uint32_t max)
{
	struct payloads *p = calloc(1, sizeof(*p));
	const struct outbox_callbacks callbacks = {
		.send = on_send,
		.forget = on_forget,
		.dropped = on_dropped,
		.done = MESSAGE_PAYLOAD_DONE,
		.ctx = p,
	};
	int r;

	if (!p)
		return -ENOMEM;
	p->mirror_sock = -EBADF;
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

void payloads_connect(struct payloads *p, int fd)
{
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

int payloads_push(struct payloads *p, const void *bytes, size_t n, uint64_t n_samples,
		  uint64_t order)
{
	_cleanup_free_ uint64_t *more = malloc(sizeof(*more));
	_cleanup_close_ int fd = seal(bytes, n);
	const struct outbox_entry *e;

	if (fd < 0)
		return fd;
	if (!more)
		return -ENOMEM;
	*more = order;
	e = outbox_push(p->outbox, fd, n, n_samples, more);
	if (!e)
		return -ENOMEM;
	(void)TAKE_FD(fd);
	(void)TAKE_PTR(more);
	if (p->mirror_sock >= 0 && send_to(p->mirror_sock, e) == -EPIPE)
		p->mirror_sock = close_fd(p->mirror_sock);
	return 0;
}

bool payloads_all_sent(const struct payloads *p)
{
	return outbox_all_sent(p->outbox);
}

uint64_t payloads_take_dropped(struct payloads *p)
{
	uint64_t n = p->dropped;

	p->dropped = 0;
	return n;
}
