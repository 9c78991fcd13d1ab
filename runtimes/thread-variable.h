/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The address of an exported thread-local variable (TLS), as the loader has laid it out: at an
 * offset from the thread pointer, or in a module's block, which the thread's vector lists.
 */
#include "runtimes/image.h"

struct thread_variable {
	uint64_t module;      /* its number; 0: none, it is at offset from the thread pointer */
	int64_t offset;	      /* bytes; in the module's block, if any */
	uint32_t glibc_bytes; /* size of glibc's struct of a thread; 0: unknown */
	/* Offset from the thread pointer of the place where the kernel writes the CPU's number
	 * (rseq(2)); 0: unknown. */
	int32_t cpu;
	/* The struct of one of musl's threads (musl.h); 0: they are glibc's. */
	uint64_t musl_thread;
	bool node; /* it is a struct node_variable (node-context.h) */
};

/* Finds a variable by its name. 1; 0: the image has no such variable; -EAGAIN: the loader has not
 * placed it yet. */
int thread_variable_find(const struct image *image, const char *name, struct thread_variable *ret);
/* The variable at offset value in the TLS block of the program itself, which has so many bytes and
 * that alignment. */
struct thread_variable thread_variable_of_program(uint64_t bytes, uint64_t align, uint64_t value);
/* The variable's address in the thread of glibc with that number in its own pid namespace, by the
 * address of its robust list; *ret 0: it has none yet. false: the list is not where glibc has it,
 * or the thread's struct cannot be read. */
bool thread_variable_address(struct memory *m, const struct thread_variable *v,
			     uint64_t robust_list, uint32_t own_tid, uint64_t *ret);
/* The same in the thread of musl with that thread pointer. */
bool thread_variable_musl_address(struct memory *m, const struct thread_variable *v,
				  uint64_t thread, uint64_t *ret);

/* The size of glibc's struct of a thread, if this is glibc's image; else 0. */
uint32_t thread_struct_bytes(const struct image *image);
/* The value for thread_variable.cpu, if this is the image of glibc's loader (2.35 and later); else
 * 0, also if rseq is switched off. */
int32_t thread_struct_cpu(const struct image *image);
/*
 * The thread pointer of the thread with that number in its own pid namespace, from the address of
 * its robust list, and glibc_bytes; 0: the list is not where glibc has it.
 */
uint64_t thread_pointer_of(struct memory *m, uint64_t robust_list, uint32_t own_tid,
			   uint32_t glibc_bytes);

enum { THREAD_VARIABLE_MAX_WORDS = 4 };
/* The results of one read of a thread's struct. */
struct thread_near {
	uint64_t address;			   /* of the variable */
	uint64_t words[THREAD_VARIABLE_MAX_WORDS]; /* of the variable, n_words of them */
	/* The last CPU on which it ran in user mode; THREAD_NO_CPU: unknown, or too far. */
	uint32_t cpu;
};
#define THREAD_NO_CPU UINT32_MAX
/*
 * Reads the variable, the thread's number and the CPU's in one read, from a thread of glibc: that
 * is possible if the variable lies beside the thread's struct, as in programs and libraries loaded
 * at the start. false: they are too far from each other, or it is another thread.
 */
bool thread_variable_read_near(struct memory *m, const struct thread_variable *v,
			       uint64_t robust_list, uint32_t own_tid, size_t n_words,
			       struct thread_near *ret);
/* Reads only the CPU, as above. */
uint32_t thread_cpu(struct memory *m, const struct thread_variable *v, uint64_t robust_list,
		    uint32_t own_tid);
