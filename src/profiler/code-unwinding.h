/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How to unwind code that processes compile while they run, from their jitdump files; for the
 * profiler. Names for the same code are code-names.h's, in the symbolizer.
 */
#include <stdint.h>

#include "unwind/unwind.h"

struct code_unwinding;

/* The unwinder must outlive it. 0 or -ENOMEM. */
int code_unwinding_new(struct code_unwinding **ret, struct unwinder *unwinder);
struct code_unwinding *code_unwinding_free(struct code_unwinding *c);
/* Call it before each walk: modules that were found for earlier walks may be freed. */
void code_unwinding_begin(struct code_unwinding *c);
/* The process has ended. */
void code_unwinding_forget(struct code_unwinding *c, uint32_t pid, uint64_t start_time_unix_ns);
/*
 * Finds the function at an address, as it was at time_ns (CLOCK_MONOTONIC), in the jitdump file fd
 * (borrowed) of the process, and reads what was added to the file. mapping is the anonymous memory
 * around the address: it is cut down to the function and gets its module. If that function has no
 * module, but others may, it is cut down to the one address.
 */
void code_unwinding_find(struct code_unwinding *c, uint32_t pid, uint64_t start_time_unix_ns,
			 int fd, uint64_t time_ns, uint64_t address,
			 struct unwind_mapping *mapping);

struct code_unwinding_stats {
	uint64_t modules_made, modules_refused; /* refused: too many, or too large, for one walk */
	uint64_t refused; /* by the tables of the processes known now: see jitdump_refused() */
	uint64_t bytes;	  /* now, of these tables */
};
void code_unwinding_stats(const struct code_unwinding *c, struct code_unwinding_stats *ret);
