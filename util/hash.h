/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Hashing, and an index from a hash to a row of a table that the caller owns.
 *
 * The index holds no keys: the caller compares rows. Typical interning:
 *
 *	uint64_t h = hash_bytes(key, n, 0);
 *	uint32_t slot = hash_index_first(&ix, h), row;
 *	while ((row = hash_index_row(&ix, slot)) != HASH_INDEX_NONE) {
 *		if (hash_index_match(&ix, slot, h) && rows_equal(row, key))
 *			return row;
 *		slot = hash_index_next(&ix, slot);
 *	}
 *	... append a row ...; hash_index_add(&ix, h, new_row);
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t hash_u64(uint64_t x)
{
	/* The finaliser of splitmix64: every input bit reaches every output bit. */
	x ^= x >> 30;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64_C(0x94d049bb133111eb);
	x ^= x >> 31;
	return x;
}

static inline uint64_t hash_combine(uint64_t a, uint64_t b)
{
	return hash_u64(a + UINT64_C(0x9e3779b97f4a7c15) + (b ^ (a >> 29)));
}

/* Hashes any bytes. It does not resist an attacker who chooses keys; tables are bounded instead. */
uint64_t hash_bytes(const void *data, size_t n, uint64_t seed);

#define HASH_INDEX_NONE UINT32_MAX

struct hash_index {
	struct hash_index_slot {
		uint32_t hash; /* the key's hash, folded to 32 bits */
		uint32_t row;
	} * slots;
	uint32_t mask; /* number of slots - 1; 0: nothing allocated */
	uint32_t n;    /* rows in the index */
};

#define HASH_INDEX_INIT                                                                            \
	{                                                                                          \
		NULL, 0, 0                                                                         \
	}

void hash_index_deinit(struct hash_index *ix);
void hash_index_clear(struct hash_index *ix);
/* 0 or -ENOMEM. The caller knows that the index has no equal row. */
int hash_index_add(struct hash_index *ix, uint64_t hash, uint32_t row);
/* Removes the entry for (hash, row); false if there is none. */
bool hash_index_remove(struct hash_index *ix, uint64_t hash, uint32_t row);
size_t hash_index_bytes(const struct hash_index *ix);

static inline uint32_t hash_fold(uint64_t hash)
{
	return (uint32_t)(hash ^ (hash >> 32));
}

static inline uint32_t hash_index_first(const struct hash_index *ix, uint64_t hash)
{
	return hash_fold(hash) & ix->mask;
}

static inline uint32_t hash_index_next(const struct hash_index *ix, uint32_t slot)
{
	return (slot + 1) & ix->mask;
}

static inline uint32_t hash_index_row(const struct hash_index *ix, uint32_t slot)
{
	return ix->slots ? ix->slots[slot].row : HASH_INDEX_NONE;
}

static inline bool hash_index_match(const struct hash_index *ix, uint32_t slot, uint64_t hash)
{
	return ix->slots[slot].hash == hash_fold(hash);
}
