/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open addressing with linear probing at a load of at most 2/3; removal shifts the cluster back, so
 * there are no tombstones, and a table does not get slower over months.
 */
#include <errno.h>
#include <stdlib.h>

#include "util/hash.h"

uint64_t hash_bytes(const void *data, size_t n, uint64_t seed)
{
	const unsigned char *p = data;
	uint64_t h = hash_u64(seed ^ n ^ UINT64_C(0x9e3779b97f4a7c15)), w;

	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&w, p, 8);
		h = (h ^ w) * UINT64_C(0x9fb21c651e98df25);
		h ^= h >> 35;
	}
	w = 0;
	if (n) /* the address of an empty array may be NULL */
		memcpy(&w, p, n);
	return hash_u64(h ^ w);
}

void hash_index_deinit(struct hash_index *ix)
{
	free(ix->slots);
	*ix = (struct hash_index)HASH_INDEX_INIT;
}

void hash_index_clear(struct hash_index *ix)
{
	if (ix->slots)
		memset(ix->slots, 0xff, ((size_t)ix->mask + 1) * sizeof(*ix->slots));
	ix->n = 0;
}

static void put(struct hash_index *ix, struct hash_index_slot s)
{
	uint32_t i = s.hash & ix->mask;

	while (ix->slots[i].row != HASH_INDEX_NONE)
		i = (i + 1) & ix->mask;
	ix->slots[i] = s;
}

static int grow(struct hash_index *ix)
{
	size_t n_slots = ix->slots ? ((size_t)ix->mask + 1) * 2 : 16;
	struct hash_index bigger = {.mask = (uint32_t)(n_slots - 1), .n = ix->n};

	if (n_slots > UINT32_MAX / 2)
		return -ENOMEM;
	bigger.slots = malloc(n_slots * sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	memset(bigger.slots, 0xff, n_slots * sizeof(*bigger.slots));
	for (size_t i = 0; ix->slots && i <= ix->mask; i++) {
		if (ix->slots[i].row != HASH_INDEX_NONE)
			put(&bigger, ix->slots[i]);
	}
	free(ix->slots);
	*ix = bigger;
	return 0;
}

int hash_index_add(struct hash_index *ix, uint64_t hash, uint32_t row)
{
	if (!ix->slots || ((uint64_t)ix->n + 1) * 3 > ((uint64_t)ix->mask + 1) * 2) {
		int r = grow(ix);

		if (r < 0)
			return r;
	}
	put(ix, (struct hash_index_slot){hash_fold(hash), row});
	ix->n++;
	return 0;
}

bool hash_index_remove(struct hash_index *ix, uint64_t hash, uint32_t row)
{
	uint32_t i, hole;

	if (!ix->slots)
		return false;
	for (i = hash_index_first(ix, hash); ix->slots[i].row != row; i = hash_index_next(ix, i)) {
		if (ix->slots[i].row == HASH_INDEX_NONE)
			return false;
	}

	/* Move every later entry of the cluster back unless its home is after the hole. */
	hole = i;
	for (;;) {
		uint32_t home;

		i = hash_index_next(ix, i);
		if (ix->slots[i].row == HASH_INDEX_NONE)
			break;
		home = ix->slots[i].hash & ix->mask;
		if (((i - home) & ix->mask) >= ((i - hole) & ix->mask)) {
			ix->slots[hole] = ix->slots[i];
			hole = i;
		}
	}
	ix->slots[hole].row = HASH_INDEX_NONE;
	ix->n--;
	return true;
}

size_t hash_index_bytes(const struct hash_index *ix)
{
	return ix->slots ? ((size_t)ix->mask + 1) * sizeof(*ix->slots) : 0;
}
