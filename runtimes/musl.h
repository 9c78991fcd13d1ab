/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Threads of a process with musl (1.2.2 and later). With glibc, a thread's robust list, which the
 * kernel knows, shows where the thread's struct is; with musl a thread has that list only once it
 * needs one. But musl's structs form a ring and each begins with its own address, so one of them
 * leads to all.
 */
#include "runtimes/memory.h"

struct musl_thread {
	uint64_t pointer, next; /* its thread pointer; the struct of the next thread */
	uint32_t number;	/* in its own pid namespace */
};
/* Reads the struct at address. false: it is not a thread (any more), or cannot be read. */
bool musl_thread_read(struct memory *m, uint64_t address, struct musl_thread *ret);

/* The address of the first struct of a thread in n bytes that were read at address, a multiple of
 * 8. 0: there is none. */
uint64_t musl_thread_find(struct memory *m, uint64_t address, const uint8_t *bytes, size_t n);
/* The struct of the thread with that number in the ring that address belongs to; else that of the
 * thread with the lowest number. 0: there is no thread at address. */
uint64_t musl_thread_find_first(struct memory *m, uint64_t address, uint32_t number);

/* The TLS block of a module (its number, from 1 on) in the thread with that thread pointer; 0: none
 * (yet). */
uint64_t musl_thread_block(struct memory *m, uint64_t pointer, uint64_t module);
