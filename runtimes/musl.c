/* SPDX-License-Identifier: Apache-2.0 */
/* The structs are those of src/internal/pthread_impl.h. */
#include "runtimes/musl.h"
#include "runtimes/arch.h"

enum { MAX_THREADS = 32768, MAX_MODULES = 65536, HEAD_BYTES = 56, WORD = 8 };

static bool is_struct(uint64_t address)
{
	return address >= 4096 && address % WORD == 0;
}

bool musl_thread_read(struct memory *m, uint64_t address, struct musl_thread *ret)
{
	uint8_t head[HEAD_BYTES];

	if (!is_struct(address) || !memory_read(m, address, head, sizeof(head)) ||
	    memory_u64_of(head, 0) != address)
		return false;
	ret->pointer = address + arch_musl.pointer;
	ret->next = memory_u64_of(head, arch_musl.next);
	ret->number = memory_u32_of(head, arch_musl.number);
	return ret->number != 0 && is_struct(ret->next);
}

uint64_t musl_thread_block(struct memory *m, uint64_t pointer, uint64_t module)
{
	uint64_t vector = memory_u64(m, pointer + (uint64_t)(int64_t)arch_musl.vector);
	uint64_t n = is_struct(vector) ? memory_u64(m, vector) : 0;

	return module <= n && n < MAX_MODULES ? memory_u64(m, vector + module * WORD) : 0;
}

/* Much else begins with its own address: an empty list does. */
static bool is_thread(struct memory *m, uint64_t address)
{
	struct musl_thread t;
	uint64_t previous, vector;

	if (!musl_thread_read(m, address, &t))
		return false;
	previous = memory_u64(m, address + (uint64_t)arch_musl.previous);
	vector = memory_u64(m, t.pointer + (uint64_t)(int64_t)arch_musl.vector);
	return is_struct(previous) && is_struct(vector) && memory_u64(m, t.next) == t.next &&
	       memory_u64(m, previous) == previous &&
	       memory_u64(m, t.next + (uint64_t)arch_musl.previous) == address &&
	       memory_u64(m, previous + (uint64_t)arch_musl.next) == address &&
	       memory_u64(m, vector) < MAX_MODULES;
}

uint64_t musl_thread_find(struct memory *m, uint64_t address, const uint8_t *bytes, size_t n)
{
	for (size_t at = 0; n - at >= WORD; at += WORD) {
		uint64_t word;

		memcpy(&word, bytes + at, sizeof(word));
		if (word == address + at && is_thread(m, word))
			return word;
	}
	return 0;
}

uint64_t musl_thread_find_first(struct memory *m, uint64_t address, uint32_t number)
{
	struct musl_thread t = {.next = address};
	uint64_t found = 0, at;
	uint32_t lowest = UINT32_MAX;

	for (uint32_t i = 0; i < MAX_THREADS && (i == 0 || t.next != address); i++) {
		at = t.next;
		if (!musl_thread_read(m, at, &t))
			break;
		if (t.number == number)
			return at;
		if (t.number < lowest) {
			lowest = t.number;
			found = at;
		}
	}
	return found;
}
