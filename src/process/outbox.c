/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/process/outbox.h"
#include "src/process/role.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/ensure.h"
#include "util/loop.h"

#define RETRY_NS (20 * NSEC_PER_MSEC)

struct outbox {
	struct loop *loop;
	struct outbox_callbacks callbacks;
	int sock, timer;
	uint64_t last_id, bytes, max_bytes;
	ARRAY(struct outbox_entry) entries; /* oldest first */
};

static void on_retry(void *ctx);

int outbox_new(struct outbox **ret, struct loop *loop, const struct outbox_callbacks *callbacks,
	       uint32_t max_entries, uint64_t max_bytes)
{
	struct outbox *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->loop = loop;
	o->callbacks = *callbacks;
	o->sock = -EBADF;
	o->entries.max = max_entries;
	o->max_bytes = max_bytes;
	/* Two senders must not send the same ids to one receiver. */
	o->last_id = clock_monotonic_ns();
	o->timer = loop_add_timer(loop, UINT64_MAX, 0, on_retry, o);
	if (o->timer < 0) {
		int r = o->timer;

		free(o);
		return r;
	}
	*ret = o;
	return 0;
}

static void remove_at(struct outbox *o, uint32_t i)
{
	struct outbox_entry *e = &o->entries.items[i];

	ensure(o->bytes >= e->bytes);
	o->bytes -= e->bytes;
	if (o->callbacks.forget)
		o->callbacks.forget(o->callbacks.ctx, e);
	(void)close_fd(e->fd);
	memmove(e, e + 1, (o->entries.n - i - 1) * sizeof(*e));
	o->entries.n--;
}

/* The receiver is gone, and all that it had not settled is unsent again. */
static void disconnect(struct outbox *o)
{
	loop_remove_fd(o->loop, o->sock);
	o->sock = close_fd(o->sock);
	for (uint32_t i = 0; i < o->entries.n; i++) {
		o->entries.items[i].sent = o->entries.items[i].settled = false;
		o->entries.items[i].n_out = 0;
	}
}

struct outbox *outbox_free(struct outbox *o)
{
	if (o) {
		while (o->entries.n > 0)
			remove_at(o, o->entries.n - 1);
		array_deinit(&o->entries);
		disconnect(o);
		free(o);
	}
	return NULL;
}

static void send_entries(struct outbox *o)
{
	for (uint32_t i = 0; o->sock >= 0 && i < o->entries.n; i++) {
		struct outbox_entry *e = &o->entries.items[i];
		int r = e->sent ? 0 : o->callbacks.send(o->callbacks.ctx, o->sock, e);

		if (r == 0) {
			e->sent = true;
			continue;
		}
		/* A full socket, too many descriptors in flight or short memory: retry later. The
		 * broker reconnects only to a restarted receiver, so nobody else retries. */
		if (r == -EPIPE || r == -ECONNRESET)
			disconnect(o);
		else
			loop_set_timer(o->loop, o->timer, RETRY_NS);
		return;
	}
}

static void pump(struct outbox *o)
{
	send_entries(o);
	if (o->callbacks.changed)
		o->callbacks.changed(o->callbacks.ctx);
}

static void on_retry(void *ctx)
{
	pump(ctx);
}

static void settle(struct outbox *o, uint64_t id)
{
	for (uint32_t i = 0; i < o->entries.n; i++) {
		if (o->entries.items[i].id != id)
			continue;
		if (o->callbacks.keep_settled)
			o->entries.items[i].settled = true;
		else
			remove_at(o, i);
		return;
	}
}

static void on_message(void *ctx, const struct message *m, int fds[2])
{
	struct outbox *o = ctx;

	(void)close_fd(fds[0]);
	(void)close_fd(fds[1]);
	if (m->type == o->callbacks.done)
		settle(o, m->item.id);
	else if (o->callbacks.message)
		o->callbacks.message(o->callbacks.ctx, m);
}

static void on_socket(void *ctx, int fd, uint32_t events)
{
	struct outbox *o = ctx;

	if (role_drain_socket(fd, on_message, o) < 0)
		disconnect(o);
	/* A peer that has settled some has read some: there is room for others. */
	pump(o);
}

void outbox_connect(struct outbox *o, int sock)
{
	disconnect(o);
	o->sock = sock;
	if (loop_add_fd(o->loop, sock, EPOLLIN, on_socket, o) < 0) {
		disconnect(o);
		return;
	}
	pump(o);
}

static void make_room(struct outbox *o, uint64_t bytes)
{
	while (o->entries.n > 0 &&
	       (o->entries.n == o->entries.max || o->bytes + bytes > o->max_bytes)) {
		o->callbacks.dropped(o->callbacks.ctx, &o->entries.items[0]);
		remove_at(o, 0);
	}
}

const struct outbox_entry *outbox_push(struct outbox *o, int fd, uint64_t bytes, uint64_t n_samples,
				       void *more)
{
	struct outbox_entry *e;

	make_room(o, bytes);
	e = array_push(&o->entries);
	if (!e)
		return NULL;
	*e = (struct outbox_entry){
		.id = ++o->last_id,
		.n_samples = n_samples,
		.bytes = bytes,
		.made_ns = clock_monotonic_ns(),
		.fd = fd,
		.more = more,
	};
	o->bytes += bytes;
	ensure(o->entries.n < 2 || e[-1].id < e->id);
	pump(o);
	return e;
}

const struct outbox_entry *outbox_at(const struct outbox *o, uint32_t i)
{
	return i < o->entries.n ? &o->entries.items[i] : NULL;
}

bool outbox_all_sent(const struct outbox *o)
{
	for (uint32_t i = 0; i < o->entries.n; i++) {
		if (!o->entries.items[i].sent)
			return false;
	}
	return true;
}

bool outbox_all_settled(const struct outbox *o)
{
	for (uint32_t i = 0; i < o->entries.n; i++) {
		if (!o->entries.items[i].settled)
			return false;
	}
	return true;
}
