/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads in a ring as musl has it, sound, changing and broken. Programs with musl itself are those
 * of tests/system/spans.py.
 */
#include "runtimes/arch.h"
#include "src/reader/musl-threads.h"
#include "tests/unit/test.h"

enum { N = 6, STRUCT = 512, VECTOR = 400 /* behind a struct */ };

static uint8_t arena[N * STRUCT] __attribute__((aligned(STRUCT)));
static uint32_t n_reads;

static bool read_arena(void *ctx, uint64_t address, void *ret, size_t n)
{
	uint64_t at = address - (uintptr_t)arena;

	n_reads++;
	if (at > sizeof(arena) || n > sizeof(arena) - at)
		return false;
	memcpy(ret, arena + at, n);
	return true;
}

static struct memory arena_memory(void)
{
	return (struct memory){.read = read_arena, .reads_left = 1000, .bytes_left = 1 << 20};
}

static uint64_t address_of(int thread)
{
	return (uintptr_t)arena + (uint64_t)thread * STRUCT;
}

static void put(uint64_t address, uint64_t value)
{
	memcpy(arena + (address - (uintptr_t)arena), &value, sizeof(value));
}

static void link_to(int thread, int next)
{
	put(address_of(thread) + (uint64_t)arch_musl.next, address_of(next));
	put(address_of(next) + (uint64_t)arch_musl.previous, address_of(thread));
}

/* Of the number 100 + thread; with two modules, the second at its own address + 7. */
static void add(int thread, int next)
{
	uint64_t address = address_of(thread), vector = address + VECTOR;

	put(address, address);
	put(address + arch_musl.pointer + (uint64_t)(int64_t)arch_musl.vector, vector);
	put(vector, 2);
	put(vector + 16, address + 7);
	link_to(thread, next);
	put(address + (uint64_t)arch_musl.number, 100 + (uint32_t)thread);
}

/* 1 -> 3 -> 2 -> 1 */
static void make_ring(void)
{
	memset(arena, 0, sizeof(arena));
	add(1, 3);
	add(3, 2);
	add(2, 1);
}

static uint64_t pointer_to(int thread)
{
	return address_of(thread) + arch_musl.pointer;
}

static void test_find(void)
{
	struct memory m = arena_memory();

	make_ring();
	/* An empty list begins with its own address, too, and so does one of two. */
	put(address_of(0), address_of(0));
	put(address_of(0) + 8, address_of(0));
	put(address_of(0) + 64, address_of(0) + 64);
	CHECK_INT(musl_thread_find(&m, address_of(0), arena, sizeof(arena)), ==, address_of(1));
	CHECK_INT(musl_thread_find(&m, address_of(0), arena, STRUCT + 7), ==, 0);
	CHECK_INT(musl_thread_find(&m, address_of(2), arena + (size_t)2 * STRUCT, STRUCT), ==,
		  address_of(2));
	/* What the ring does not lead back to is no thread of it. */
	add(5, 1);
	put(address_of(1) + (uint64_t)arch_musl.previous, address_of(2));
	put(address_of(5) + (uint64_t)arch_musl.previous, address_of(2));
	CHECK_INT(musl_thread_find(&m, address_of(5), arena + (size_t)5 * STRUCT, STRUCT), ==, 0);
	CHECK_INT(musl_thread_find_first(&m, address_of(2), 103), ==, address_of(3));
	/* The number of another namespace. */
	CHECK_INT(musl_thread_find_first(&m, address_of(2), 4711), ==, address_of(1));
	CHECK_INT(musl_thread_find_first(&m, address_of(0), 101), ==, 0);
}

static void test_blocks(void)
{
	struct memory m = arena_memory();

	make_ring();
	CHECK_INT(musl_thread_block(&m, pointer_to(1), 1), ==, 0);
	CHECK_INT(musl_thread_block(&m, pointer_to(1), 2), ==, address_of(1) + 7);
	CHECK_INT(musl_thread_block(&m, pointer_to(1), 3), ==, 0);
	CHECK_INT(musl_thread_block(&m, 8, 1), ==, 0);
}

static uint64_t find(struct musl_threads *t, uint32_t number, uint64_t now_ns)
{
	struct memory m = arena_memory();

	return musl_threads_pointer(t, &m, number, now_ns);
}

static void test_ring(void)
{
	struct musl_threads *t;

	make_ring();
	t = musl_threads_new(address_of(1));
	CHECK_INT(find(t, 102, 1), ==, pointer_to(2));
	n_reads = 0;
	CHECK_INT(find(t, 103, 1), ==, pointer_to(3));
	CHECK_INT(n_reads, ==, 1);
	CHECK_INT(find(t, 104, 1), ==, 0);
	/* A new one; after a search without a result there is a pause. */
	link_to(1, 4);
	add(4, 3);
	CHECK_INT(find(t, 104, 2), ==, 0);
	CHECK_INT(find(t, 104, UINT64_C(1000000000)), ==, pointer_to(4));
	/* One has ended, and another has its place. */
	put(address_of(4) + (uint64_t)arch_musl.number, 105);
	CHECK_INT(find(t, 104, UINT64_C(2000000000)), ==, 0);
	CHECK_INT(find(t, 105, UINT64_C(3000000000)), ==, pointer_to(4));
	/* Its stack is no longer there. */
	put(address_of(4), 0);
	CHECK_INT(find(t, 105, UINT64_C(4000000000)), ==, 0);
	free(t);
}

static void test_broken_rings(void)
{
	struct musl_threads *t;

	make_ring();
	t = musl_threads_new(address_of(1));
	link_to(2, 3); /* never back to the first */
	n_reads = 0;
	CHECK_INT(find(t, 104, UINT64_C(1000000000)), ==, 0);
	CHECK_INT(n_reads, ==, 1000);
	put(address_of(3) + (uint64_t)arch_musl.next, UINT64_MAX - 7);
	CHECK_INT(find(t, 104, UINT64_C(2000000000)), ==, 0);
	put(address_of(3) + (uint64_t)arch_musl.next, 12345);
	CHECK_INT(find(t, 104, UINT64_C(3000000000)), ==, 0);
	free(t);
	t = musl_threads_new(8);
	CHECK_INT(find(t, 101, 1), ==, 0);
	free(t);
}

int main(void)
{
	RUN(test_find);
	RUN(test_blocks);
	RUN(test_ring);
	RUN(test_broken_rings);
	return 0;
}
