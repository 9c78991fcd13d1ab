/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Threads of a process with musl (1.2.2 and later). The kernel tells where the struct of a thread
 * of glibc is, by its list of robust locks; musl has such a list only once it is needed. But all
 * structs are in a ring, and each begins with its own address: from one of them all are found.
 */
#include "runtimes/memory.h"

struct musl_thread {
	uint64_t pointer, next; /* its thread pointer; the struct of the thread behind it */
	uint32_t number;	/* in its own pid namespace */
};
/* false: no thread is at address (any more), or it cannot be read. */
bool musl_thread_read(struct memory *m, uint64_t address, struct musl_thread *ret);

/* The first struct of a thread in n bytes of the memory, read at address, which is one of whole
 * words; 0: there is none. */
uint64_t musl_thread_find(struct memory *m, uint64_t address, const uint8_t *bytes, size_t n);
/* The struct of the thread of that number, among all with the one at address; if there is none, of
 * the thread with the lowest number; 0: no thread is there. */
uint64_t musl_thread_find_first(struct memory *m, uint64_t address, uint32_t number);

/* The block of a module, from 1 on, in the thread with that thread pointer; 0: it has none (yet).
 */
uint64_t musl_thread_block(struct memory *m, uint64_t pointer, uint64_t module);
