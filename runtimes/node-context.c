/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects are those of V8 without compressed pointers: JSMap, its OrderedHashMap, and an object
 * with an internal field. Every address may be anything: what is no such object leads nowhere, or
 * to what is no record.
 */
#include "runtimes/node-context.h"

enum {
	TAG = 1,       /* of the address of an object */
	MAP_TABLE = 3, /* word of a map */
	MAP_WORDS,
	FIELDS = 24,	/* of an object of the embedder; 0 there: one word later */
	TABLE_HEAD = 5, /* words: map, length, elements, deleted ones, buckets */
	TABLE_BUCKETS = 4,
	ENTRY_WORDS = 3, /* key, value, the next one in the bucket */
	READ_WORDS = 64, /* at once: tables are small, and mostly lie behind their maps */
	MAX_BUCKETS = 1 << 16,
	MAX_CHAIN = 16,
	PAGE = 4096,
};

/* A small integer is in the upper half of a word. */
static int32_t small(uint64_t word)
{
	return (int32_t)(word >> 32);
}

static bool is_object(uint64_t word)
{
	return word > PAGE && word % 4 == TAG;
}

struct context_table {
	struct memory *memory;
	uint64_t at;
	uint64_t read[READ_WORDS];
	const uint64_t *words; /* the first ones, among those */
	uint32_t n;
};

/* An object of at least that many words, as far as its page goes. */
static bool read_object(struct context_table *t, uint64_t tagged, uint32_t least)
{
	uint64_t left;

	t->at = tagged - TAG;
	left = (PAGE - t->at % PAGE) / sizeof(t->read[0]);
	t->n = left < least ? least : left < READ_WORDS ? (uint32_t)left : READ_WORDS;
	t->words = t->read;
	return memory_read(t->memory, t->at, t->read, t->n * sizeof(t->read[0]));
}

/* That of a map. */
static bool read_table(struct context_table *t, uint64_t map)
{
	uint64_t table, first;

	if (!read_object(t, map, MAP_WORDS))
		return false;
	table = t->words[MAP_TABLE];
	if (!is_object(table))
		return false;
	first = (table - map) / sizeof(t->read[0]);
	if (table < map || (table - map) % sizeof(t->read[0]) || first + TABLE_HEAD > t->n)
		return read_object(t, table, TABLE_HEAD);
	t->at = table - TAG;
	t->words = t->read + first;
	t->n -= (uint32_t)first;
	return true;
}

static bool read_words(struct context_table *t, uint32_t first, uint32_t n, uint64_t *ret)
{
	if (first + n > t->n)
		return memory_read(t->memory, t->at + first * sizeof(*ret), ret, n * sizeof(*ret));
	memcpy(ret, &t->words[first], n * sizeof(*ret));
	return true;
}

/* The value of a key with that hash; 0: it is not there. */
static uint64_t find_value(struct context_table *t, uint64_t key, uint32_t hash)
{
	uint32_t n_buckets = (uint32_t)small(t->words[TABLE_BUCKETS]);
	uint64_t word, entry[ENTRY_WORDS];

	if (!n_buckets || n_buckets > MAX_BUCKETS || (n_buckets & (n_buckets - 1)) ||
	    !read_words(t, TABLE_HEAD + (hash & (n_buckets - 1)), 1, &word))
		return 0;
	for (int i = 0; i < MAX_CHAIN && small(word) >= 0 && small(word) < 2 * MAX_BUCKETS; i++) {
		if (!read_words(t, TABLE_HEAD + n_buckets + (uint32_t)small(word) * ENTRY_WORDS,
				ENTRY_WORDS, entry))
			return 0;
		if (entry[0] == key)
			return entry[1];
		word = entry[2];
	}
	return 0;
}

static uint64_t record_of(struct memory *m, uint64_t object)
{
	uint64_t fields[2];

	if (!memory_read(m, object - TAG + FIELDS, fields, sizeof(fields)))
		return 0;
	return fields[0] ? fields[0] : fields[1];
}

bool node_context_find(struct memory *m, const struct node_variable *v,
		       const struct node_context *last, struct node_context *ret)
{
	struct context_table t;
	uint64_t value;

	if (!v->slot || !v->storage)
		return false;
	*ret = (struct node_context){.slot = v->slot, .storage = v->storage};
	ret->map = memory_u64(m, v->slot);
	t.memory = m;
	if (!is_object(ret->map) || ret->map == v->undefined || !read_table(&t, ret->map))
		return false;
	ret->key = last->storage == v->storage ? last->key : 0;
	value = is_object(ret->key) ? find_value(&t, ret->key, v->hash) : 0;
	if (!value) {
		ret->key = memory_u64(m, v->storage);
		value = is_object(ret->key) ? find_value(&t, ret->key, v->hash) : 0;
	}
	if (!is_object(value) || value == v->undefined)
		return false;
	ret->record = record_of(m, value);
	return ret->record != 0;
}
