/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Threads that were found standing when the off-CPU time of a capture began, and that nobody has
 * asked about yet: whose they are is a question to the broker for each process, and rings fill up
 * while many are asked. One that ends meanwhile is dropped, for another thread may get its number.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/message.h"
#include "util/array.h"
#include "util/hash.h"

#define STANDING_MAX 16384

struct standing {
	ARRAY(struct message_stands) threads; /* tid 0: it has ended */
	struct hash_index by_tid;
	uint32_t next;
};

void standing_init(struct standing *s);
void standing_deinit(struct standing *s);
/* One for which there is no room counts as asked about. */
void standing_add(struct standing *s, const struct message_stands *thread);
/* The next one, oldest first, which then is asked about. false: there is none. */
bool standing_next(struct standing *s, struct message_stands *ret);
void standing_end(struct standing *s, uint32_t tid);
/* Drops all; returns how many there were. */
uint32_t standing_clear(struct standing *s);
