/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the runtimes do differently on each processor. */
#include "runtimes/hotspot-internal.h"

/* Whether frames of HotSpot's code are known here. */
extern const bool arch_has_hotspot;

/* How a frame of fixed size stands at pc, behind which code has n bytes. Not complete: it may be in
 * the prologue, which is the n_before bytes in front of pc, from the entry on. */
enum frame_shape arch_frame_shape(const uint8_t *code, size_t n_before, size_t n, bool complete);
/* Whether the bytes in front of a return address are a call. */
bool arch_is_call(const uint8_t *before, size_t n);

/* The frame at fp; false: the stack copy has not all of it. */
bool arch_interpreted(const struct hotspot *h, const struct runtime_stack *stack, uint64_t fp,
		      struct interpreted *ret);
/* In a method's entry, before it has a frame: what its registers tell. false: not even a return
 * address. */
bool arch_entering(const struct hotspot *h, const struct runtime_stack *stack,
		   const struct runtime_regs *regs, struct interpreted *ret);
/* The interpreter's place in the bytecodes, in its innermost frame. */
uint64_t arch_bcp(const struct runtime_regs *regs);
/* The frame that saved its caller's fp at `at` and stands above it: {pc, sp, fp}. */
bool arch_fp_frame(const struct runtime_stack *stack, uint64_t at, struct interpreted *ret);
/* The return address on top of the stack, and the sp behind it. */
bool arch_return(const struct runtime_stack *stack, uint64_t sp, uint64_t *ret_pc,
		 uint64_t *ret_sp);

/*
 * The number of a thread whose pthread_self() is `thread`, by glibc's and by musl's struct; false:
 * it cannot be read, or there is none of the two.
 */
bool arch_thread_number(struct memory *m, uint64_t thread, uint32_t *ret);
/* The address of the variable that a function does nothing but return; 0: it does something else.
 */
uint64_t arch_returned_variable(struct memory *m, uint64_t function);
/* The address of the i-th variable of 8 bytes that the beginning of a function loads, as far as its
 * bytes tell: those in the middle of an instruction may look like one. 0: there are not that many.
 */
uint64_t arch_loaded_variable(struct memory *m, uint64_t function, size_t i);
/* Whether the size of libc's locks, which Ruby's structs hold, is known here. */
extern const bool arch_has_ruby;
/* What the loader writes for a variable of each thread. */
enum arch_thread_relocation {
	ARCH_THREAD_NONE,
	ARCH_THREAD_OFFSET,	/* its distance from the thread pointer */
	ARCH_THREAD_MODULE,	/* the number of its module */
	ARCH_THREAD_DESCRIPTOR, /* a function and its argument */
};
enum arch_thread_relocation arch_thread_relocation(uint32_t type);
/* Can it be the distance of a variable from the thread pointer? */
bool arch_is_thread_offset(int64_t offset);
/* That of a variable of the program itself, at value of its block. */
int64_t arch_program_offset(uint64_t bytes, uint64_t align, uint64_t value);
/* The thread pointer of the glibc thread with that list of robust locks, whose struct has so many
 * bytes (0: not known); 0: not known. */
uint64_t arch_thread_of_list(uint64_t robust_list, uint32_t bytes);
/* Behind the thread pointer: the address of the vector of blocks. */
extern const uint64_t arch_thread_vector;
/* Bytes in the struct of a thread of musl, which begins with its own address. */
struct arch_musl {
	int32_t previous, next; /* in the ring of all threads */
	int32_t number;
	uint32_t pointer; /* where the thread pointer points to: its beginning or its end */
	int32_t vector;	  /* behind the thread pointer: the address of the vector of blocks */
};
extern const struct arch_musl arch_musl;
/* The register in which Go's code has its goroutine, by perf's numbers. */
extern const int arch_go_register;
/* Near the thread pointer of the C library, where a thread of Go has its goroutine, too: so many
 * words from that distance on. */
enum { ARCH_GO_NEAR_WORDS = 8 };
extern const int arch_go_near;
/*
 * The distance from code to where the instruction at code + at jumps to, n bytes behind; false: it
 * is no jump, or one that is not written with a distance of 4 bytes. `at` may be in the middle of
 * an instruction, so that some jumps are not real.
 */
bool arch_jump(const uint8_t *code, size_t n, size_t at, int64_t *ret);
