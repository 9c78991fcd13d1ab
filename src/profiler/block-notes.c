/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "src/profiler/block-notes.h"

void block_notes_init(struct block_notes *p, uint32_t max)
{
	*p = (struct block_notes){.first_free = BLOCK_NOTES_NONE};
	p->items.max = max;
}

void block_notes_deinit(struct block_notes *p)
{
	array_deinit(&p->items);
}

uint32_t block_notes_put(struct block_notes *p, const uint8_t *bytes, uint32_t n)
{
	uint32_t note = p->first_free;

	if (n == 0)
		return BLOCK_NOTES_EMPTY;
	if (n > BLOCK_NOTES_MAX_BYTES)
		return BLOCK_NOTES_NONE;
	if (note != BLOCK_NOTES_NONE)
		p->first_free = p->items.items[note].next_free;
	else
		note = array_push(&p->items) ? p->items.n - 1 : BLOCK_NOTES_NONE;
	if (note == BLOCK_NOTES_NONE)
		return BLOCK_NOTES_NONE;
	p->items.items[note].n = n;
	memcpy(p->items.items[note].bytes, bytes, n);
	return note;
}

const uint8_t *block_notes_get(const struct block_notes *p, uint32_t note, uint32_t *ret_n)
{
	*ret_n = note == BLOCK_NOTES_EMPTY ? 0 : p->items.items[note].n;
	if (*ret_n == 0)
		return NULL;
	return p->items.items[note].bytes;
}

void block_notes_drop(struct block_notes *p, uint32_t note)
{
	if (note == BLOCK_NOTES_NONE || note == BLOCK_NOTES_EMPTY)
		return;
	p->items.items[note].next_free = p->first_free;
	p->first_free = note;
}
