/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A second source of frames: the readers, one on each CPU, that read an interpreter's stack at the
 * moment of a sample. This finds the sample of their frames, by CPU, thread and time. The frames
 * are believed only in places that the native stack proves (chain-places.h).
 */
#include <stdbool.h>
#include <stdint.h>

#include "runtimes/go.h"
#include "runtimes/thread-context.h"
#include "runtimes/thread-variable.h"
#include "src/process/frame-record.h"
#include "src/process/message.h"
#include "src/profiler/frame-source.h"

struct host_process;
struct interpreter; /* in one process; readers_free_interpreter() */
struct loop;
struct readers;

/* Of a thread that blocks since time_ns, read until read_ns; n 0: it has none. */
struct blocked_context {
	uint64_t time_ns, read_ns;
	uint32_t pid, tid, n;
	const uint8_t *bytes;
};

struct readers_callbacks {
	/* A CPU has a reader from now on (joined), or none: with one, each sample wakes the
	 * processes that poll the ring. */
	void (*joined)(void *ctx, int cpu, bool joined);
	/* The answer to readers_ask_blocked(), if it could be read; until the call returns. It may
	 * come from a reader that was taken over: pid, tid and time_ns may be of no question. */
	void (*context)(void *ctx, const struct blocked_context *context);
	void *ctx;
};

/* loop: borrowed; callbacks: copied. 0 or -errno. */
int readers_new(struct readers **ret, struct loop *loop, const struct readers_callbacks *callbacks);
struct readers *readers_free(struct readers *r);
/* A socket to the reader of a CPU, new after its restart. */
void readers_join(struct readers *r, uint32_t cpu, int owned_sock);

enum { READERS_MAX_INTERPRETERS = 256 };
/*
 * Reports a process to the broker, whose interpreters' files have their first bytes at images and
 * are on that device. images NULL: it has no interpreter, but its threads have contexts. If there
 * are too many, one that has ended, or the one without a sample for the longest time, a minute at
 * least, is put out to make room. NULL: there is none. time_ns: of the sample that wants it, on the
 * clock of samples.
 */
struct interpreter *readers_add_interpreter(struct readers *r, const struct host_process *p,
					    const uint64_t images[CLIENT_MAX_IMAGES],
					    uint32_t major, uint32_t minor, uint64_t time_ns);
struct interpreter *readers_free_interpreter(struct readers *r, struct interpreter *i);
/* Its process has ended; some last samples may still come. */
void interpreter_set_ended(struct interpreter *i);
/* The variable with the contexts of its threads, which the readers then read, too. */
void interpreter_set_context(struct interpreter *i, const struct thread_variable *v);
/* Lets the readers read the labels of its goroutines; for a program without contexts. go_cycle:
 * where it counts the cycles of its garbage collector; 0: not known. library: glibc_bytes and cpu
 * of a program that is linked with glibc, else all 0. */
void interpreter_set_goroutines(struct interpreter *i, uint32_t go_version, uint64_t go_cycle,
				const struct thread_variable *library);
/* The context or labels of a sample's thread at that moment: *ret_n bytes of them in ret, 0 unless
 * FRAME_RECORD_SPAN_READ; *ret_read_ns: when they, or that there is none (FRAME_RECORD_SPAN_NONE),
 * were read (CLOCK_MONOTONIC), for a thread that blocks. Call it before readers_ask(). */
enum frame_record_span readers_context(struct readers *r, const struct interpreter *i,
				       const struct frame_key *key,
				       uint8_t ret[THREAD_CONTEXT_MAX_BYTES], uint32_t *ret_n,
				       uint64_t *ret_read_ns);
/* Asks the reader of a CPU for the context of a thread that has been blocked there since time_ns.
 * false: there is no reader, or it has enough to do. */
bool readers_ask_blocked(struct readers *r, uint32_t pid, uint32_t tid, uint32_t cpu,
			 uint64_t time_ns);
/* Takes the answers that have come by now. */
void readers_take_answers(struct readers *r);
/* As given to readers_add_interpreter(), 0 for NULL; and whether all of them are these. */
const uint64_t *interpreter_images(const struct interpreter *i);
bool interpreter_has_images(const struct interpreter *i, const uint64_t images[CLIENT_MAX_IMAGES]);
/* Call it at each sample of its process. false: it was put out; free it, and add it anew. */
bool interpreter_is_in(struct interpreter *i, uint64_t time_ns);
/* The broker says that the readers cannot read the process. */
void readers_refuse(struct readers *r, uint32_t pid);
/* They may try again. */
void readers_ask_again(struct readers *r, uint32_t pid);

/* The frames of a sample in that process, as frame_source.ask. */
enum frame_source_answer readers_ask(struct readers *r, const struct interpreter *i,
				     const struct frame_source_sample *sample,
				     struct runtime_frames *ret);
