/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "src/cmd/handover.h"
#include "src/cmd/role.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"

#define RETRY_NS (20 * NSEC_PER_MSEC)

struct window {
	uint64_t id, n_samples, bytes;
	int fd;
	struct handover_item *items;
	uint32_t n_items,
		next_item; /* items before next_item were dealt with for this symbolizer */
	bool sent, settled;
};

struct handover {
	struct loop *loop;
	struct handover_callbacks callbacks;
	int sock, timer;
	uint32_t generation; /* of the symbolizer */
	uint64_t last_id, bytes;
	uint64_t n_samples_there; /* settled and not kept: the symbolizer alone has them */
	struct window windows[HANDOVER_MAX_WINDOWS];
	uint32_t n;
};

static void on_retry(void *ctx);

int handover_new(struct handover **ret, struct loop *loop,
		 const struct handover_callbacks *callbacks)
{
	struct handover *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->loop = loop;
	h->callbacks = *callbacks;
	h->sock = -EBADF;
	h->timer = loop_add_timer(loop, UINT64_MAX, 0, on_retry, h);
	*ret = h;
	return 0;
}

static void remove_window(struct handover *h, uint32_t i)
{
	struct window *w = &h->windows[i];

	h->bytes -= w->bytes;
	(void)close_fd(w->fd);
	free(w->items);
	memmove(w, w + 1, (h->n - i - 1) * sizeof(*w));
	h->n--;
}

struct handover *handover_free(struct handover *h)
{
	if (h) {
		while (h->n > 0)
			remove_window(h, h->n - 1);
		loop_remove_fd(h->loop, h->sock);
		(void)close_fd(h->sock);
		free(h);
	}
	return NULL;
}

static void disconnect(struct handover *h)
{
	loop_remove_fd(h->loop, h->sock);
	h->sock = close_fd(h->sock);
}

/* 0: went out or need not; -errno: not now. */
static int send_item(struct handover *h, const struct handover_item *item)
{
	struct message m = {.type = item->type};
	int fd, r;

	if (h->callbacks.mark(h->callbacks.ctx, item, h->generation, false))
		return 0;
	fd = h->callbacks.descriptor(h->callbacks.ctx, item, &m);
	if (fd < 0)
		return 0;
	if (item->type == MESSAGE_MODULE) {
		m.module.uid = item->id;
	} else if (item->type != MESSAGE_KALLSYMS) {
		m.perf_map.pid = item->pid;
		m.perf_map.start_time_unix_ns = item->id;
	}
	r = message_send(h->sock, &m, &fd, 1);
	if (r == 0)
		(void)h->callbacks.mark(h->callbacks.ctx, item, h->generation, true);
	return r;
}

static int send_window(struct handover *h, struct window *w)
{
	struct message m = {.type = MESSAGE_WINDOW};
	int r;

	for (; w->next_item < w->n_items; w->next_item++) {
		r = send_item(h, &w->items[w->next_item]);
		if (r < 0)
			return r;
	}
	m.item.id = w->id;
	m.item.n_samples = w->n_samples;
	r = message_send(h->sock, &m, &w->fd, 1);
	if (r == 0)
		w->sent = true;
	return r;
}

static void pump(struct handover *h)
{
	for (uint32_t i = 0; h->sock >= 0 && i < h->n; i++) {
		int r = h->windows[i].sent ? 0 : send_window(h, &h->windows[i]);

		if (r == 0)
			continue;
		/* A full socket, too many descriptors in flight, short memory: later. Of a reader
		 * that lives nobody would make a new connection. */
		if (r == -EPIPE || r == -ECONNRESET)
			disconnect(h);
		else
			loop_set_timer(h->loop, h->timer, RETRY_NS);
		return;
	}
}

static void on_retry(void *ctx)
{
	pump(ctx);
}

static void on_message(void *ctx, const struct message *m, int fds[2])
{
	struct handover *h = ctx;
	struct handover_item item = {.type = MESSAGE_MODULE};

	(void)close_fd(fds[0]);
	(void)close_fd(fds[1]);
	if (m->type == MESSAGE_MODULE_GONE) {
		item.id = m->item.id;
		(void)h->callbacks.mark(h->callbacks.ctx, &item, 0, true);
		return;
	}
	if (m->type != MESSAGE_WINDOW_DONE)
		return;
	for (uint32_t i = 0; i < h->n; i++) {
		if (h->windows[i].id != m->item.id)
			continue;
		if (h->callbacks.keep_settled)
			h->windows[i].settled = true;
		else
			remove_window(h, i);
		return;
	}
}

static void on_socket(void *ctx, int fd, uint32_t events)
{
	struct handover *h = ctx;

	if (role_drain_socket(fd, on_message, h) < 0)
		disconnect(h);
}

void handover_connect(struct handover *h, int fd)
{
	disconnect(h);
	if (h->n_samples_there > 0) {
		h->callbacks.dropped(h->callbacks.ctx, h->n_samples_there);
		log_warning("the symbolizer that ended had %llu samples that are kept nowhere else",
			    (unsigned long long)h->n_samples_there);
		h->n_samples_there = 0;
	}
	h->sock = fd;
	h->generation++;
	if (loop_add_fd(h->loop, fd, EPOLLIN, on_socket, h) < 0) {
		disconnect(h);
		return;
	}
	for (uint32_t i = 0; i < h->n; i++) {
		h->windows[i].sent = h->windows[i].settled = false;
		h->windows[i].next_item = 0;
	}
	pump(h);
}

int handover_push(struct handover *h, int fd, uint64_t n_samples, struct handover_item *items,
		  uint32_t n)
{
	struct stat st;
	uint64_t bytes = fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;

	while (h->n > 0 &&
	       (h->n == HANDOVER_MAX_WINDOWS || h->bytes + bytes > HANDOVER_MAX_BYTES)) {
		if (h->windows[0].settled) {
			h->n_samples_there += h->windows[0].n_samples;
		} else {
			h->callbacks.dropped(h->callbacks.ctx, h->windows[0].n_samples);
			log_warning("the symbolizer is too far behind: a window of %llu samples is "
				    "dropped",
				    (unsigned long long)h->windows[0].n_samples);
		}
		remove_window(h, 0);
	}
	h->windows[h->n++] = (struct window){
		.id = ++h->last_id,
		.n_samples = n_samples,
		.bytes = bytes,
		.fd = fd,
		.items = items,
		.n_items = n,
	};
	h->bytes += bytes;
	pump(h);
	return 0;
}

bool handover_settled(const struct handover *h)
{
	for (uint32_t i = 0; i < h->n; i++) {
		if (!h->windows[i].settled)
			return false;
	}
	return true;
}
