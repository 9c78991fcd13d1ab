/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A second source of frames: the readers, one on each CPU, that read an interpreter's stack at the
 * moment of a sample. Here their frames find their samples, by CPU, thread and time, and their
 * places in the native stack.
 *
 * A stack is believed only if the native one speaks for it: each native call of the interpreter's
 * evaluation function has on its stack, or in a register, the address of the frame that it
 * executes.
 */
#include <stdbool.h>
#include <stdint.h>

#include "runtimes/go.h"
#include "runtimes/thread-context.h"
#include "runtimes/thread-variable.h"
#include "src/profiler/frame-source.h"

struct host_process;
struct interpreter; /* in one process; readers_free_interpreter() */
struct loop;
struct message;
struct readers;

struct readers_callbacks {
	/* While a CPU has a reader (joined), each of its samples would wake who polls its ring. */
	void (*joined)(void *ctx, int cpu, bool joined);
	void *ctx;
};

int readers_new(struct readers **ret, struct loop *loop, const struct readers_callbacks *callbacks);
struct readers *readers_free(struct readers *r);
/* A socket to the reader of a CPU, new after its restart. */
void readers_join(struct readers *r, uint32_t cpu, int owned_sock);
/* For attribution_set_source(); lives as long as r. */
const struct frame_source *readers_source(const struct readers *r);

/* How telling the path of a mapped file is: of a process's files the one of the largest number is
 * its interpreter; 0: it is none that they can read. */
int readers_rank(const char *path);
/*
 * Tells the broker of a process whose interpreter's file has its first byte at image, and is on
 * that device. image 0: it has none, but contexts
 * of its threads. NULL: there are enough of them.
 */
struct interpreter *readers_add_interpreter(struct readers *r, uint32_t pid, uint64_t image,
					    uint32_t major, uint32_t minor);
struct interpreter *readers_free_interpreter(struct readers *r, struct interpreter *i);
/* Its threads have their contexts there; they are read, too. */
void interpreter_set_context(struct interpreter *i, const struct thread_variable *v);
/* The same of the labels of its goroutines, where there are no contexts. */
void interpreter_set_goroutines(struct interpreter *i, uint32_t go_version);
/* The context, or the labels, of the thread of a sample, as it was then: its bytes, 0: it had none,
 * or it was not read in time. To be asked before readers_ask(). */
uint32_t readers_context(struct readers *r, const struct interpreter *i,
			 const struct frame_key *key, uint8_t ret[THREAD_CONTEXT_MAX_BYTES]);
uint64_t interpreter_image(const struct interpreter *i);
/* The broker says that it cannot be read. */
void readers_refuse(struct readers *r, uint32_t pid);

/* The frames of a sample in that process. */
enum frame_source_answer readers_ask(struct readers *r, const struct interpreter *i,
				     const struct frame_source_sample *sample,
				     struct runtime_frames *ret);
