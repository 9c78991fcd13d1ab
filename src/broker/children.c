/* SPDX-License-Identifier: Apache-2.0 */
#include "src/broker/children.h"

#include <errno.h>
#include <stdlib.h>

#include "util/cleanup.h"
#include "util/fdmsg.h"

int children_make(struct children *c, const struct peer_row *rows, size_t n_rows, uint32_t max)
{
	uint32_t n = 0;

	for (size_t i = 0; i < n_rows; i++) {
		if (rows[i].max > max - n)
			return -E2BIG;
		n += rows[i].max;
	}
	c->items = calloc(n + 1, sizeof(*c->items));
	if (!c->items)
		return -ENOMEM;
	for (size_t i = 0; i < n_rows; i++) {
		for (uint32_t k = 0; k < rows[i].max; k++)
			child_init(&c->items[c->n++], &rows[i], k);
	}
	return 0;
}

struct child *children_find(const struct children *c, struct peer_id who)
{
	for (uint32_t i = 0; i < c->n; i++) {
		if (c->items[i].id.kind == who.kind && c->items[i].id.index == who.index)
			return &c->items[i];
	}
	return NULL;
}

struct child *children_with_fd(const struct children *c, int fd)
{
	for (uint32_t i = 0; i < c->n; i++) {
		if (c->items[i].control == fd || c->items[i].ask == fd)
			return &c->items[i];
	}
	return NULL;
}

bool children_any_there(const struct children *c, uint32_t kinds)
{
	for (uint32_t i = 0; i < c->n; i++) {
		const struct child *child = &c->items[i];

		if (child_is_there(child) && !child->row->is_optional &&
		    (kinds & PEER_BIT(child->id.kind)))
			return true;
	}
	return false;
}

static void join(struct child *a, struct child *b)
{
	struct message m = {.type = MESSAGE_PEER};
	int pair[2];

	if (fdmsg_pair(pair, 1) < 0)
		return;
	m.peer.peer = b->id.kind;
	m.peer.index = b->id.index;
	m.peer.start = b->n_starts;
	(void)child_send(a, &m, &pair[0], 1);
	m.peer.peer = a->id.kind;
	m.peer.index = a->id.index;
	m.peer.start = a->n_starts;
	(void)child_send(b, &m, &pair[1], 1);
	(void)close_fd(pair[0]);
	(void)close_fd(pair[1]);
}

void children_join(struct children *c, struct child *new)
{
	for (uint32_t i = 0; i < c->n; i++) {
		struct child *other = &c->items[i];

		/* Most are readers that are not there. */
		if (!other->pid || !new->pid)
			continue;
		if (other->row->feeds & PEER_BIT(new->id.kind))
			join(other, new);
		if (new->row->feeds & PEER_BIT(other->id.kind))
			join(new, other);
	}
}
