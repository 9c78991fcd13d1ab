/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Looks at the newest samples of a ring without taking them out: another process reads the ring.
 * For a process that each sample wakes.
 */
#include "src/sample/sample.h"

struct peek;

struct peek_sample {
	uint64_t time_ns;
	uint32_t pid, tid, cpu;
};

/* Maps the ring of a sample event with these options, which is mapped elsewhere with the same size.
 * fd stays the caller's, and must stay open. 0 or -errno. */
int peek_new(struct peek **ret, const struct sample_options *options,
	     const struct sample_features *features, int fd, uint64_t ring_bytes);
struct peek *peek_free(struct peek *p);

#define PEEK_MAX 4
/* Looks for the newest samples since the last call, up to n of them, at most PEEK_MAX. Returns how
 * many it passed over, since they are older. */
uint32_t peek_look(struct peek *p, uint32_t n);
/* The oldest of them that was not returned yet; false: there is none, or the kernel has overwritten
 * it. */
bool peek_next(struct peek *p, struct peek_sample *ret);

/*
 * The whole sample of the last peek_next(), valid until its next call; false: it contradicts
 * itself. Its pointers lead into the ring: use what you read there only if peek_is_there() is true
 * afterwards.
 */
bool peek_record(struct peek *p, struct record *ret);
bool peek_is_there(const struct peek *p);

/* The value of a user register in the sample, by perf's number; 0: the sample lacks it. */
uint64_t peek_register(const struct peek *p, const struct record *r, int number);
/* The sample's copy of the thread's stack: *ret_n bytes from address *ret_start, the stack pointer,
 * on. NULL: the sample has none. */
const uint8_t *peek_stack(const struct peek *p, const struct record *r, uint64_t *ret_start,
			  uint64_t *ret_n);
