/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "src/process/receipts.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/loop.h"

#define RETRY_NS (20 * NSEC_PER_MSEC)
/* A sender holds fewer items. One that sends more without reading is no longer ours. */
#define MAX_WAITING 65536

struct receipt {
	enum message_type type;
	uint64_t id;
};

struct receipts {
	struct loop *loop;
	int sock, timer;
	ARRAY(struct receipt) waiting;
};

static int send_one(const struct receipts *r, const struct receipt *what)
{
	struct message m = {.type = what->type};

	m.item.id = what->id;
	return message_send(r->sock, &m, NULL, 0);
}

/* The sender ends, and whoever watches the socket learns it from there. */
static bool is_gone(int error)
{
	return error == -EPIPE || error == -ECONNRESET;
}

static void on_retry(void *ctx)
{
	struct receipts *r = ctx;
	uint32_t n = 0;
	int e = 0;

	while (n < r->waiting.n && (e = send_one(r, &r->waiting.items[n])) == 0)
		n++;
	if (is_gone(e))
		n = r->waiting.n;
	if (n > 0)
		memmove(r->waiting.items, r->waiting.items + n,
			(r->waiting.n - n) * sizeof(*r->waiting.items));
	r->waiting.n -= n;
	if (r->waiting.n > 0)
		loop_set_timer(r->loop, r->timer, RETRY_NS);
}

int receipts_new(struct receipts **ret, struct loop *loop)
{
	_cleanup_(receipts_freep) struct receipts *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->loop = loop;
	r->sock = -EBADF;
	r->waiting.max = MAX_WAITING;
	r->timer = loop_add_timer(loop, UINT64_MAX, 0, on_retry, r);
	if (r->timer < 0)
		return r->timer;
	*ret = TAKE_PTR(r);
	return 0;
}

struct receipts *receipts_free(struct receipts *r)
{
	if (r) {
		array_deinit(&r->waiting);
		free(r);
	}
	return NULL;
}

void receipts_connect(struct receipts *r, int sock)
{
	array_clear(&r->waiting);
	loop_set_timer(r->loop, r->timer, UINT64_MAX);
	r->sock = sock;
}

void receipts_say(struct receipts *r, enum message_type type, uint64_t id)
{
	const struct receipt what = {type, id};
	struct receipt *later;
	int e;

	if (r->sock < 0)
		return;
	e = r->waiting.n > 0 ? -EAGAIN : send_one(r, &what);
	if (e == 0 || is_gone(e))
		return;
	later = array_push(&r->waiting);
	if (later)
		*later = what;
	loop_set_timer(r->loop, r->timer, RETRY_NS);
}
