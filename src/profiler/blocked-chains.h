/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Frames that interpreters keep of threads that are blocked. Such a thread stands still, so we read
 * them ourselves, beside its native stack; no reader has to be in time. Whether it was blocked all
 * the time, the caller has to find out.
 *
 * Bounded: a few processes are open at a time, and reads have a limited share of the time.
 */
#include <stdint.h>

#include "src/process/message.h"
#include "src/profiler/frame-source.h"

struct memory_source;
struct blocked_chains;
struct blocked_chain; /* of one process */

/* source: copied. 0 or -ENOMEM. */
int blocked_chains_new(struct blocked_chains **ret, const struct memory_source *source);
struct blocked_chains *blocked_chains_free(struct blocked_chains *c);

/* A process whose interpreters' files have their first bytes at images and are on that device. They
 * are opened when it is asked about. NULL: no memory. */
struct blocked_chain *blocked_chain_new(struct blocked_chains *c, uint32_t pid,
					const uint64_t images[CLIENT_MAX_IMAGES], uint32_t major,
					uint32_t minor);
struct blocked_chain *blocked_chain_free(struct blocked_chain *p);
/* As frame_source.ask, of a thread with that number in its own pid namespace. READY: *ret is
 * borrowed until the next call for any process; its read_ns is 0. */
enum frame_source_answer blocked_chain_ask(struct blocked_chain *p, uint32_t own_tid,
					   const struct frame_source_sample *sample,
					   struct runtime_frames *ret);
