/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What differs between processors in frames, code and threads. One arch-*.c is compiled in. */
#include "runtimes/hotspot-internal.h"

/* The versions of HotSpot whose frames were walked on this processor, and 0; none: we cannot. */
extern const uint8_t arch_hotspot_tried[];

/* The shape of a frame of fixed size at a pc. code: the n bytes from pc on, after the n_before
 * bytes from the function's entry to pc. complete: pc is not in the prologue. */
enum frame_shape arch_frame_shape(const uint8_t *code, size_t n_before, size_t n, bool complete);
/* What the code from `at` to `end` does next with the stack, if that can be told on this processor.
 */
extern const bool arch_looks_ahead;
void arch_look_ahead(struct memory *m, uint64_t at, uint64_t end, struct code_ahead *ret);
/* Is the instruction before a return address a call? before: points at the return address. */
bool arch_is_call(const uint8_t *before, size_t n);

/*
 * How the frame stands at a place in one of CPython's trampolines (trampoline.h): SHAPE_NONE,
 * SHAPE_PUSHED, or SHAPE_NOT_SAVED, of two words. code: points at n_before bytes in front of the
 * place and n behind it. false: it is in none that is known.
 */
bool arch_trampoline_shape(const uint8_t *code, size_t n_before, size_t n, enum frame_shape *ret);

/* Reads the interpreter's frame at fp; false: the stack copy lacks a part of it. */
bool arch_interpreted(const struct hotspot *h, const struct runtime_stack *stack, uint64_t fp,
		      struct interpreted *ret);
/* The frame-to-be of a method that has just been entered, from the registers. false: not even the
 * return address is known. */
bool arch_entering(const struct hotspot *h, const struct runtime_stack *stack,
		   const struct runtime_regs *regs, struct interpreted *ret);
/* Where the caller's stack ended before an adapter put arguments there; 0: unknown. Unproven. */
uint64_t arch_sender_sp(const struct hotspot *h, const struct runtime_regs *regs);
/* The address of the current bytecode, in the interpreter's innermost frame. */
uint64_t arch_bcp(const struct runtime_regs *regs);
/* Sets the pc, sp and fp of the caller of a frame that saved its caller's fp at address `at`. */
bool arch_fp_frame(const struct runtime_stack *stack, uint64_t at, struct interpreted *ret);
/* Likewise of a frame of so many words (1 or more), as it stands; false: the stack copy lacks a
 * part of it. */
bool arch_framed(const struct runtime_stack *stack, const struct runtime_regs *regs, uint32_t words,
		 enum frame_shape shape, struct interpreted *ret);
/* Likewise of code without a frame. */
bool arch_return(const struct runtime_stack *stack, const struct runtime_regs *regs,
		 struct interpreted *ret);

/*
 * The number of the thread whose pthread_self() is `thread`, from the struct of glibc or of musl;
 * false: it cannot be read, or is neither of the two.
 */
bool arch_thread_number(struct memory *m, uint64_t thread, uint32_t *ret);
/* The address of the variable that a function returns, if it does nothing else; else 0. */
uint64_t arch_returned_variable(struct memory *m, uint64_t function);
/* The address of the i-th variable of 8 bytes that the beginning of a function seems to load: bytes
 * in the middle of an instruction may look like a load. 0: there are fewer. */
uint64_t arch_loaded_variable(struct memory *m, uint64_t function, size_t i);
/* Bytes of glibc's pthread_mutex_t, which Ruby has in its structs; 0: Ruby is not tried here. */
extern const uint32_t arch_lock_bytes;
/* What the loader writes at a relocation for a thread-local variable. */
enum arch_thread_relocation {
	ARCH_THREAD_NONE,
	ARCH_THREAD_OFFSET,	/* its distance from the thread pointer */
	ARCH_THREAD_MODULE,	/* the number of its module */
	ARCH_THREAD_DESCRIPTOR, /* a function and its argument (TLSDESC) */
};
enum arch_thread_relocation arch_thread_relocation(uint32_t type);
/* Can a variable be at this offset from the thread pointer? */
bool arch_is_thread_offset(int64_t offset);
/* The offset from the thread pointer of a variable of the program itself, which is at value in its
 * TLS block of so many bytes. */
int64_t arch_program_offset(uint64_t bytes, uint64_t align, uint64_t value);
/* The thread pointer of a glibc thread, from the address of its robust list and the size of its
 * struct in bytes (0: unknown). 0: unknown. */
uint64_t arch_thread_of_list(uint64_t robust_list, uint32_t bytes);
/* Where the address of the vector of TLS blocks (dtv) is, in bytes from the thread pointer. */
extern const uint64_t arch_thread_vector;
/* Offsets in musl's struct of a thread, which begins with its own address. */
struct arch_musl {
	int32_t previous, next; /* pointers of the ring of all threads */
	int32_t number;
	uint32_t pointer; /* where the thread pointer points to: the beginning or the end */
	int32_t vector;	  /* from the thread pointer: the address of the vector of TLS blocks */
};
extern const struct arch_musl arch_musl;
/* The register in which Go's code keeps its goroutine, by perf's number. */
extern const int arch_go_register;
/* A thread of Go keeps its goroutine also in one of so many words from this offset on (in bytes,
 * from the C library's thread pointer). */
enum { ARCH_GO_NEAR_WORDS = 8 };
extern const int arch_go_near;
/*
 * The target of the jump at code + at, as an offset from code; n: bytes of code. false: no jump, or
 * one without a distance of 4 bytes. `at` may be in the middle of an instruction, so some jumps are
 * not real.
 */
bool arch_jump(const uint8_t *code, size_t n, size_t at, int64_t *ret);
/*
 * The variable of 4 bytes that the instruction at code + at loads, as an offset from code; n: bytes
 * of code. false: it loads none from a place that it knows. `at` may be in the middle of an
 * instruction.
 */
bool arch_load(const uint8_t *code, size_t n, size_t at, int64_t *ret);
