/* SPDX-License-Identifier: Apache-2.0 */
/* V8's objects around the context of a thread of Node.js, made by hand: sound, and hostile. */
#include "runtimes/node-context.h"
#include "tests/unit/test.h"

enum { BUCKETS = 4, HASH = 0x1236, UNDEFINED = 0x5005, RECORD = 0x7000, KIND = 0x6001, HEAD = 5 };

static struct node_variable variable;
static uint64_t slot, storage;
/* A map, the object that V8 mostly puts in front of it, and the table behind it. */
static struct {
	uint64_t in_front[5], map[4], near[150], table[600];
} heap __attribute__((aligned(4096)));
static uint64_t key[4], far_value[6];
static uint64_t *const map = heap.map, *table = heap.table, *value = far_value;
static struct node_context last;
static int n_reads;
static bool was_read; /* what leads to the context */

static bool read_own(void *ctx, uint64_t address, void *ret, size_t n)
{
	n_reads++;
	/* Nothing is in front of the first page, or where no program has memory. */
	if (address < 0x8000 || address >> 47)
		return false;
	memcpy(ret, (const void *)(uintptr_t)address, n);
	return true;
}

static uint64_t tagged(const uint64_t *object)
{
	return (uintptr_t)object + 1;
}

static uint64_t small(int32_t n)
{
	return (uint64_t)(uint32_t)n << 32;
}

static void set_entry(uint32_t i, uint64_t entry_key, uint64_t entry_value, int32_t next)
{
	uint64_t *entry = &table[HEAD + BUCKETS + 3 * i];

	entry[0] = entry_key;
	entry[1] = entry_value;
	entry[2] = small(next);
}

static void begin(void)
{
	memset(&heap, 0, sizeof(heap));
	last = (struct node_context){0};
	variable.slot = (uintptr_t)&slot;
	variable.storage = (uintptr_t)&storage;
	variable.hash = HASH;
	variable.undefined = UNDEFINED;
	slot = tagged(map);
	storage = tagged(key);
	map[3] = tagged(table);
	table[4] = small(BUCKETS);
	for (int i = 0; i < BUCKETS; i++)
		table[HEAD + i] = small(-1);
	table[HEAD + (HASH & (BUCKETS - 1))] = small(1);
	set_entry(1, tagged(map), tagged(map), 0);
	set_entry(0, tagged(key), tagged(value), -1);
	value[0] = KIND;
	value[3] = 0;
	value[4] = RECORD;
}

static uint64_t find(void)
{
	struct memory m = {.read = read_own, .reads_left = 16, .bytes_left = 16384};
	struct node_context c = {0};

	n_reads = 0;
	was_read = node_context_find(&m, &variable, &last, &c);
	if (!was_read || !c.record)
		return 0;
	CHECK_INT(c.slot, ==, (uintptr_t)&slot);
	CHECK_INT(c.map, ==, slot);
	CHECK_INT(c.kind, ==, KIND);
	return c.record;
}

static void test_found(void)
{
	begin();
	CHECK_INT(find(), ==, RECORD);
	CHECK_INT(n_reads, ==, 5);
	/* Older versions have the field one word before. */
	value[3] = RECORD + 16;
	CHECK_INT(find(), ==, RECORD + 16);
	/* In a large table the entry is far. */
	table[HEAD + (HASH & (BUCKETS - 1))] = small(150);
	set_entry(0, 0, 0, -1);
	CHECK_INT(find(), ==, 0);
	set_entry(150, tagged(key), tagged(value), -1);
	CHECK_INT(find(), ==, RECORD + 16);
}

/* The table behind the map comes with it, and the storage's object is where it was. */
static void test_few_reads(void)
{
	table = heap.near;
	begin();
	CHECK_INT(find(), ==, RECORD);
	CHECK_INT(n_reads, ==, 4);
	last = (struct node_context){.storage = (uintptr_t)&storage, .key = tagged(key)};
	CHECK_INT(find(), ==, RECORD);
	CHECK_INT(n_reads, ==, 3);
	/* V8 has moved it. */
	last.key += 8;
	CHECK_INT(find(), ==, RECORD);
	CHECK_INT(n_reads, ==, 4);
	/* It is another storage's. */
	last.storage++;
	last.key = tagged(key);
	CHECK_INT(find(), ==, RECORD);
	CHECK_INT(n_reads, ==, 4);
	/* A table that only begins behind it is read apart. */
	table = heap.table;
	begin();
	map[3] = tagged(heap.near + 115);
	CHECK_INT(find(), ==, 0);
	CHECK_INT(n_reads, ==, 4);
}

/* A map's first object lies in front of it, and comes with it, too. */
static void test_object_in_front(void)
{
	table = heap.near;
	value = heap.in_front;
	begin();
	last = (struct node_context){.storage = (uintptr_t)&storage, .key = tagged(key)};
	CHECK_INT(find(), ==, RECORD);
	CHECK_INT(n_reads, ==, 2);
	/* It is read again where the table is read apart. */
	table = heap.table;
	begin();
	last = (struct node_context){.storage = (uintptr_t)&storage, .key = tagged(key)};
	CHECK_INT(find(), ==, RECORD);
	CHECK_INT(n_reads, ==, 4);
	value = far_value;
}

/* An address that no object of V8 has, close to the page's beginning and to its end. */
static void test_odd_places(void)
{
	static uint64_t pages[1024] __attribute__((aligned(4096)));

	for (int at = 0; at < 4096; at += 4) {
		begin();
		slot = (uintptr_t)pages + (uint64_t)at + 1;
		CHECK_INT(find(), ==, 0);
	}
}

static void test_none(void)
{
	begin();
	slot = UNDEFINED;
	CHECK(find() == 0 && was_read);
	begin();
	set_entry(0, tagged(key), UNDEFINED, -1);
	CHECK(find() == 0 && was_read);
	begin();
	set_entry(0, tagged(value), tagged(value), -1); /* another storage's */
	CHECK(find() == 0 && was_read);
	begin();
	variable.slot = 0; /* the isolate is gone */
	CHECK(find() == 0 && was_read);
	begin();
	value[4] = 0;
	CHECK(find() == 0 && was_read);
}

static void test_hostile(void)
{
	begin();
	set_entry(0, 0, 0, 1); /* a ring */
	CHECK_INT(find(), ==, 0);
	CHECK_INT(n_reads, <, 16);
	for (int32_t n = -2; n <= 3; n += n == -1 ? 4 : 1) {
		begin();
		table[4] = small(n == -2 ? INT32_MIN : n);
		CHECK_INT(find(), ==, 0);
	}
	begin();
	table[4] = small(1 << 20);
	CHECK_INT(find(), ==, 0);
	begin();
	table[HEAD + (HASH & (BUCKETS - 1))] = small(INT32_MAX);
	CHECK_INT(find(), ==, 0);
	begin();
	slot = UINT64_MAX - 2;
	CHECK(find() == 0 && !was_read);
	begin();
	map[3] = small(7);
	CHECK(find() == 0 && !was_read);
	begin();
	set_entry(0, tagged(key), UINT64_MAX - 2, -1);
	CHECK(find() == 0 && !was_read);
}

int main(void)
{
	RUN(test_found);
	RUN(test_few_reads);
	RUN(test_object_in_front);
	RUN(test_odd_places);
	RUN(test_none);
	RUN(test_hostile);
	return 0;
}
