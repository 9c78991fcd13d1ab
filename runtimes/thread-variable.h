/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where a thread has an exported variable of its own (TLS), as the loader has laid it out: at a
 * distance from the thread pointer, or in the block of a module that the thread's vector has.
 */
#include "runtimes/image.h"

struct thread_variable {
	uint64_t module; /* 0: at offset from the thread pointer */
	int64_t offset;
	uint32_t glibc_bytes; /* of glibc's struct of a thread; 0: not known */
	/* From the thread pointer to where the kernel writes the number of the CPU (rseq(2));
	 * 0: not known. */
	int32_t cpu;
	/* The struct of one of musl's threads (musl.h); 0: they are glibc's. */
	uint64_t musl_thread;
	bool node; /* it leads to contexts of Node.js (node-context.h) */
};

/* 1: *ret is where; 0: the image has no such variable; -EAGAIN: the loader is not that far. */
int thread_variable_find(const struct image *image, const char *name, struct thread_variable *ret);
/* That of a program at value of its variables: these are so many bytes, aligned like that. */
struct thread_variable thread_variable_of_program(uint64_t bytes, uint64_t align, uint64_t value);
/* The variable's address in the thread with that thread pointer; 0: it has none (yet). */
uint64_t thread_variable_address(struct memory *m, const struct thread_variable *v,
				 uint64_t thread);

/* The bytes of glibc's struct of a thread, if that is its image; 0: it is not. */
uint32_t thread_struct_bytes(const struct image *image);
/* thread_variable.cpu, if that is the image of glibc's loader (2.35 and later); 0: it is not, or
 * programs do without. */
int32_t thread_struct_cpu(const struct image *image);
/*
 * The thread pointer of the thread of that number in its own pid namespace, from the address of its
 * list of robust locks, and glibc_bytes; 0: that is not where glibc has it.
 */
uint64_t thread_pointer_of(struct memory *m, uint64_t robust_list, uint32_t own_tid,
			   uint32_t glibc_bytes);

enum { THREAD_VARIABLE_MAX_WORDS = 4 };
/* What one read of a thread's struct tells. */
struct thread_near {
	uint64_t address;			   /* of the variable */
	uint64_t words[THREAD_VARIABLE_MAX_WORDS]; /* of it, as many as were wanted */
	/* The last one that it ran the program on, if that was wanted; THREAD_NO_CPU: not known. */
	uint32_t cpu;
};
#define THREAD_NO_CPU UINT32_MAX
/*
 * That of a thread of glibc, if one read has the variable, the thread's number and the CPU's: in
 * programs and libraries whose variables lie beside the thread's struct. false: they are not near
 * each other, or the thread is another one.
 */
bool thread_variable_read_near(struct memory *m, const struct thread_variable *v,
			       uint64_t robust_list, uint32_t own_tid, size_t n_words,
			       bool with_cpu, struct thread_near *ret);
/* The CPU alone, as above. */
uint32_t thread_cpu(struct memory *m, const struct thread_variable *v, uint64_t robust_list,
		    uint32_t own_tid);
