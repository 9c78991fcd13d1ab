/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/process/outbox.h"
#include "src/profiler/handover.h"
#include "src/profiler/setup.h"
#include "util/ensure.h"
#include "util/log.h"

/* What goes with a window, and ahead of it. */
struct handover_entry {
	struct sample_place begin, end;
	uint32_t switches;
	uint32_t n;
	struct handover_item *items;
};

struct handover {
	struct handover_callbacks callbacks;
	struct outbox *outbox;
	uint32_t generation; /* of the symbolizer */
	/* Samples, by event. */
	uint64_t
		n_there[STATUS_MAX_EVENTS]; /* settled and not kept: only the symbolizer has them */
	uint64_t n_dropped[STATUS_MAX_EVENTS]; /* given up */
};

/* Those wanted from begin to end, as the symbolizer counts what it misses. */
static void add_wanted(uint64_t *to, const struct sample_place *begin,
		       const struct sample_place *end)
{
	for (int i = 0; i < STATUS_MAX_EVENTS; i++) {
		const struct place_of_event *a = &begin->events[i], *b = &end->events[i];

		to[i] += (b->samples - a->samples) - (b->filtered - a->filtered);
	}
}

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
	const struct handover_entry *more = e->more;
	struct message m = {.type = MESSAGE_WINDOW};

	for (; e->n_out < more->n; e->n_out++) {
		int r = send_item(h, sock, &more->items[e->n_out]);

		if (r < 0)
			return r;
	}
	m.window.id = e->id;
	m.window.n_samples = e->n_samples;
	m.window.begin = more->begin;
	m.window.end = more->end;
	m.window.switches = more->switches;
	memcpy(m.window.n_dropped, h->n_dropped, sizeof(h->n_dropped));
	return message_send(sock, &m, &e->fd, 1);
}

static void on_forget(void *ctx, struct outbox_entry *e)
{
	struct handover_entry *more = e->more;

	free(more->items);
	free(more);
}

static void on_dropped(void *ctx, const struct outbox_entry *e)
{
	const struct handover_entry *more = e->more;
	struct handover *h = ctx;

	if (e->settled) {
		add_wanted(h->n_there, &more->begin, &more->end);
		return;
	}
	add_wanted(h->n_dropped, &more->begin, &more->end);
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
	uint64_t n = 0;

	for (int i = 0; i < STATUS_MAX_EVENTS; i++) {
		n += h->n_there[i];
		h->n_dropped[i] += h->n_there[i];
		h->n_there[i] = 0;
	}
	if (n > 0)
		log_warning("%llu samples are lost: only the symbolizer that ended had them",
			    (unsigned long long)n);
	h->generation++;
	outbox_connect(h->outbox, fd);
}

void handover_give_up(struct handover *h, const struct handover_window *w)
{
	add_wanted(h->n_dropped, &w->begin, &w->end);
}

void handover_push(struct handover *h, const struct handover_window *w, struct handover_item *items,
		   uint32_t n)
{
	struct handover_entry *more = malloc(sizeof(*more));
	struct stat st;
	uint64_t bytes = fstat(w->fd, &st) == 0 ? (uint64_t)st.st_size : 0;

	ensure(w->end.events[0].samples >= w->begin.events[0].samples);
	ensure(n == 0 || items);
	if (more)
		*more = (struct handover_entry){w->begin, w->end, w->switches, n, items};
	if (more && outbox_push(h->outbox, w->fd, bytes, w->n_samples, more))
		return;
	log_error("no memory to keep a window: its %llu samples are lost",
		  (unsigned long long)w->n_samples);
	handover_give_up(h, w);
	(void)close_fd(w->fd);
	free(items);
	free(more);
}

bool handover_settled(const struct handover *h)
{
	return outbox_all_settled(h->outbox);
}
