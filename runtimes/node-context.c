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
	OBJECT_FIELD = 3, /* word of an object of the embedder; 0 there: the next one */
	OBJECT_WORDS = 5,
	TABLE_HEAD = 5, /* words: map, length, elements, deleted ones, buckets */
	TABLE_BUCKETS = 4,
	ENTRY_WORDS = 3, /* key, value, the next one in the bucket */
	/* At once: tables are small and mostly lie behind their maps; the object with a record lies
	 * in front of the first map that has it. */
	READ_WORDS = 128,
	BEFORE = 64, /* bytes */
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
	/* What lies around the object that was read last. */
	uint64_t read_at, read[READ_WORDS];
	uint32_t n_read; /* words */
};

/* An object of at least that many words, and what lies around it in its page. */
static bool read_around(struct context_table *t, uint64_t at, uint32_t least)
{
	uint64_t in_page = at % PAGE, word = sizeof(t->read[0]);
	uint64_t before = in_page < BEFORE ? in_page - in_page % word : BEFORE;
	uint64_t n = (PAGE - in_page + before) / word;

	if (PAGE - in_page < least * word) {
		before = 0;
		n = least;
	}
	t->read_at = at - before;
	t->n_read = n < READ_WORDS ? (uint32_t)n : READ_WORDS;
	return memory_read(t->memory, t->read_at, t->read, t->n_read * word);
}

/* Those of the n words at an address that were read; NULL: not all were. */
static const uint64_t *find_words(const struct context_table *t, uint64_t at, uint32_t n)
{
	uint64_t first = (at - t->read_at) / sizeof(t->read[0]);

	return at >= t->read_at && (at - t->read_at) % sizeof(t->read[0]) == 0 &&
			       first < t->n_read && n <= t->n_read - first
		       ? &t->read[first]
		       : NULL;
}

static bool read_words(struct context_table *t, uint64_t at, uint32_t n, uint64_t *ret)
{
	const uint64_t *words = find_words(t, at, n);

	if (!words)
		return memory_read(t->memory, at, ret, n * sizeof(*ret));
	memcpy(ret, words, n * sizeof(*ret));
	return true;
}

/* That of a map. */
static bool read_table(struct context_table *t, uint64_t map)
{
	uint64_t table;

	if (!read_around(t, map - TAG, MAP_WORDS))
		return false;
	table = find_words(t, map - TAG, MAP_WORDS)[MAP_TABLE];
	if (!is_object(table))
		return false;
	t->at = table - TAG;
	return find_words(t, t->at, TABLE_HEAD) || read_around(t, t->at, TABLE_HEAD);
}

/* Of the table. */
static bool read_part(struct context_table *t, uint32_t first, uint32_t n, uint64_t *ret)
{
	return read_words(t, t->at + first * sizeof(*ret), n, ret);
}

/* The value of a key with that hash; 0: it is not there. */
static uint64_t find_value(struct context_table *t, uint64_t key, uint32_t hash)
{
	uint32_t n_buckets = (uint32_t)small(find_words(t, t->at, TABLE_HEAD)[TABLE_BUCKETS]);
	uint64_t word, entry[ENTRY_WORDS];

	if (!n_buckets || n_buckets > MAX_BUCKETS || (n_buckets & (n_buckets - 1)) ||
	    !read_part(t, TABLE_HEAD + (hash & (n_buckets - 1)), 1, &word))
		return 0;
	for (int i = 0; i < MAX_CHAIN && small(word) >= 0 && small(word) < 2 * MAX_BUCKETS; i++) {
		if (!read_part(t, TABLE_HEAD + n_buckets + (uint32_t)small(word) * ENTRY_WORDS,
			       ENTRY_WORDS, entry))
			return 0;
		if (entry[0] == key)
			return entry[1];
		word = entry[2];
	}
	return 0;
}

/* Of an object that has one. */
static bool read_record(struct context_table *t, uint64_t object, struct node_context *ret)
{
	uint64_t words[OBJECT_WORDS];

	if (!read_words(t, object - TAG, OBJECT_WORDS, words))
		return false;
	ret->kind = words[0];
	ret->record = words[OBJECT_FIELD] ? words[OBJECT_FIELD] : words[OBJECT_FIELD + 1];
	return true;
}

bool node_context_find(struct memory *m, const struct node_variable *v,
		       const struct node_context *last, struct node_context *ret)
{
	struct context_table t;
	uint64_t value;

	*ret = (struct node_context){.slot = v->slot, .storage = v->storage};
	if (!v->slot || !v->storage)
		return true;
	ret->map = memory_u64(m, v->slot);
	t.memory = m;
	if (ret->map == v->undefined)
		return true;
	if (!is_object(ret->map) || !read_table(&t, ret->map))
		return false;
	ret->key = last->storage == v->storage ? last->key : 0;
	value = is_object(ret->key) ? find_value(&t, ret->key, v->hash) : 0;
	if (!value) {
		ret->key = memory_u64(m, v->storage);
		value = is_object(ret->key) ? find_value(&t, ret->key, v->hash) : 0;
	}
	if (!value || value == v->undefined)
		return true;
	return is_object(value) && read_record(&t, value, ret);
}
