/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What is known of single blocks, such as the span that the thread was in: some bytes each, in a
 * pool without a use of memory for each block. */
#include <stdint.h>

#include "util/array.h"

#define BLOCK_NOTES_NONE      UINT32_MAX
#define BLOCK_NOTES_EMPTY     (UINT32_MAX - 1) /* of 0 bytes; it takes no room */
#define BLOCK_NOTES_MAX_BYTES 640

struct block_note {
	uint32_t n, next_free;
	uint8_t bytes[BLOCK_NOTES_MAX_BYTES];
};

struct block_notes {
	ARRAY(struct block_note) items;
	uint32_t first_free;
};

void block_notes_init(struct block_notes *p, uint32_t max);
void block_notes_deinit(struct block_notes *p);
/* Copies n bytes, at most BLOCK_NOTES_MAX_BYTES. BLOCK_NOTES_NONE: there is no room. */
uint32_t block_notes_put(struct block_notes *p, const uint8_t *bytes, uint32_t n);
/* Valid until the next block_notes_put() or block_notes_drop(). */
const uint8_t *block_notes_get(const struct block_notes *p, uint32_t note, uint32_t *ret_n);
/* BLOCK_NOTES_NONE, BLOCK_NOTES_EMPTY: does nothing. */
void block_notes_drop(struct block_notes *p, uint32_t note);
