/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/process/frame-ring.h"
#include "src/reader/teller.h"
#include "util/strtab.h"

#define MAX_TEXT_BYTES (UINT64_C(2) << 20)

struct teller {
	struct frame_ring *ring;
	struct strtab texts; /* those that the other side has */
	bool stale;	     /* it lacks one: it has to forget all */
};

int teller_new(struct teller **ret)
{
	struct teller *t = calloc(1, sizeof(*t));
	int fd = t ? frame_ring_new(&t->ring) : -ENOMEM;

	if (fd < 0) {
		free(t);
		return fd;
	}
	strtab_init(&t->texts, MAX_TEXT_BYTES);
	*ret = t;
	return fd;
}

struct teller *teller_free(struct teller *t)
{
	if (t) {
		frame_ring_free(t->ring);
		strtab_deinit(&t->texts);
	}
	free(t);
	return NULL;
}

void teller_begin(struct teller *t)
{
	const uint32_t forget = FRAME_RECORD_FORGET;

	if (!t->stale && t->texts.n_bytes < MAX_TEXT_BYTES / 2)
		return;
	if (frame_ring_put(t->ring, &forget, sizeof(forget))) {
		strtab_clear(&t->texts);
		t->stale = false;
	}
}

uint32_t teller_text(struct teller *t, const char *text)
{
	struct frame_record_text record;
	uint32_t n_known = t->texts.n;
	strid id;

	record.type = FRAME_RECORD_TEXT;
	record.n = (uint32_t)strnlen(text, sizeof(record.text));
	if (record.n == 0 || t->stale)
		return 0;
	id = strtab_put_n(&t->texts, text, record.n);
	if (id <= n_known)
		return id;
	memcpy(record.text, text, record.n);
	t->stale = !frame_ring_put(t->ring, &record,
				   offsetof(struct frame_record_text, text) + record.n);
	return t->stale ? 0 : id;
}

bool teller_stack(struct teller *t, const struct frame_record_stack *stack)
{
	return frame_ring_put(t->ring, stack,
			      offsetof(struct frame_record_stack, frames) +
				      stack->n * sizeof(stack->frames[0]));
}

bool teller_code(struct teller *t, const struct frame_record_code *code)
{
	return frame_ring_put(t->ring, code, sizeof(*code));
}

bool teller_context(struct teller *t, const struct frame_record_context *context)
{
	return frame_ring_put(t->ring, context,
			      offsetof(struct frame_record_context, bytes) + context->n);
}
