/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Looks at the newest sample of a ring without taking anything out of it: the records are somebody
 * else's. For whoever is woken by each sample.
 */
#include "src/sample/sample.h"

struct peek;

struct peek_sample {
	uint64_t time_ns;
	uint32_t pid, tid, cpu;
};

/* Maps the ring of a sample event with these options (fd stays open and the caller's), which is
 * mapped elsewhere with the same size. 0 or -errno. */
int peek_new(struct peek **ret, const struct sample_options *options,
	     const struct sample_features *features, int fd, uint64_t ring_bytes);
struct peek *peek_free(struct peek *p);

/*
 * The newest sample since the last call; false: there is none, or it cannot be read any more.
 * *ret_older: how many others came since the last call.
 */
bool peek_newest(struct peek *p, struct peek_sample *ret, uint32_t *ret_older);

/*
 * The whole sample that peek_newest() found last, until its next call; false: it contradicts
 * itself. Its pointers lead into the ring: what they lead to was there only if peek_is_there() is
 * true afterwards.
 */
bool peek_record(struct peek *p, struct record *ret);
bool peek_is_there(const struct peek *p);

/* A register of user code, by perf's number, as the sample has it; 0: it does not. */
uint64_t peek_register(const struct peek *p, const struct record *r, int number);
/* The thread's stack from its stack pointer on, as the sample has it: *ret_n bytes of it at
 * address *ret_start. NULL: the sample has none. */
const uint8_t *peek_stack(const struct peek *p, const struct record *r, uint64_t *ret_start,
			  uint64_t *ret_n);
