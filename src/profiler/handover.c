/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "src/process/outbox.h"
#include "src/profiler/handover.h"
#include "src/profiler/setup.h"
#include "util/log.h"

/* What goes ahead of a window. */
struct handover_items {
	uint32_t n;
	struct handover_item *items;
};

struct handover {
	struct handover_callbacks callbacks;
	struct outbox *outbox;
	uint32_t generation;	  /* of the symbolizer */
	uint64_t n_samples_there; /* settled and not kept: the symbolizer alone has them */
};

/* 0: went out or need not; -errno: not now. */
static int send_item(struct handover *h, int sock, const struct handover_item *item)
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
	r = message_send(sock, &m, &fd, 1);
	if (r == 0)
		(void)h->callbacks.mark(h->callbacks.ctx, item, h->generation, true);
	return r;
}

static int on_send(void *ctx, int sock, struct outbox_entry *e)
{
	struct handover *h = ctx;
	const struct handover_items *items = e->more;
	struct message m = {.type = MESSAGE_WINDOW};

	for (; e->n_out < items->n; e->n_out++) {
		int r = send_item(h, sock, &items->items[e->n_out]);

		if (r < 0)
			return r;
	}
	m.item.id = e->id;
	m.item.n_samples = e->n_samples;
	return message_send(sock, &m, &e->fd, 1);
}

static void on_forget(void *ctx, struct outbox_entry *e)
{
	struct handover_items *items = e->more;

	free(items->items);
	free(items);
}

static void on_dropped(void *ctx, const struct outbox_entry *e)
{
	struct handover *h = ctx;

	if (e->settled) {
		h->n_samples_there += e->n_samples;
		return;
	}
	h->callbacks.dropped(h->callbacks.ctx, e->n_samples);
	log_warning("the symbolizer is too far behind: a window of %llu samples is dropped",
		    (unsigned long long)e->n_samples);
}

static void on_message(void *ctx, const struct message *m)
{
	struct handover *h = ctx;
	struct handover_item item = {.type = MESSAGE_MODULE, .id = m->item.id};

	if (m->type == MESSAGE_MODULE_GONE)
		(void)h->callbacks.mark(h->callbacks.ctx, &item, 0, true);
}

int handover_new(struct handover **ret, struct loop *loop,
		 const struct handover_callbacks *callbacks)
{
	struct handover *h = calloc(1, sizeof(*h));
	const struct outbox_callbacks outbox = {
		.send = on_send,
		.forget = on_forget,
		.dropped = on_dropped,
		.message = on_message,
		.done = MESSAGE_WINDOW_DONE,
		.keep_settled = callbacks->keep_settled,
		.ctx = h,
	};
	int r;

	if (!h)
		return -ENOMEM;
	h->callbacks = *callbacks;
	r = outbox_new(&h->outbox, loop, &outbox, HANDOVER_MAX_WINDOWS, HANDOVER_MAX_BYTES);
	if (r < 0) {
		free(h);
		return r;
	}
	*ret = h;
	return 0;
}

struct handover *handover_free(struct handover *h)
{
	if (h) {
		outbox_free(h->outbox);
		free(h);
	}
	return NULL;
}

void handover_connect(struct handover *h, int fd)
{
	if (h->n_samples_there > 0) {
		h->callbacks.dropped(h->callbacks.ctx, h->n_samples_there);
		log_warning("%llu samples are lost: only the symbolizer that ended had them",
			    (unsigned long long)h->n_samples_there);
		h->n_samples_there = 0;
	}
	h->generation++;
	outbox_connect(h->outbox, fd);
}

static void give_up(struct handover *h, int fd, uint64_t n_samples, struct handover_item *items)
{
	log_error("no memory to keep a window: its %llu samples are lost",
		  (unsigned long long)n_samples);
	h->callbacks.dropped(h->callbacks.ctx, n_samples);
	(void)close_fd(fd);
	free(items);
}

void handover_push(struct handover *h, int fd, uint64_t n_samples, struct handover_item *items,
		   uint32_t n)
{
	struct handover_items *more = malloc(sizeof(*more));
	struct stat st;
	uint64_t bytes = fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;

	if (more)
		*more = (struct handover_items){n, items};
	if (!more || !outbox_push(h->outbox, fd, bytes, n_samples, more)) {
		free(more);
		give_up(h, fd, n_samples, items);
	}
}

bool handover_settled(const struct handover *h)
{
	return outbox_all_settled(h->outbox);
}
