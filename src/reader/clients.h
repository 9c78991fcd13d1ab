/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The processes whose interpreters are read. The broker sends descriptors of their memory. What is
 * in it is untrusted, and reading it may never end: the broker watches that.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/frame-record.h"
#include "src/process/message.h"

struct clients;
struct own_thread;
struct reader_client;
struct teller;

struct clients_callbacks {
	/* Before and after a process's memory is read. */
	void (*reading)(void *ctx, uint32_t pid, bool begins);
	/* For clients_tell_thread(). */
	void (*ask_thread)(void *ctx, uint32_t tid, bool with_stat);
	void *ctx;
};

/* callbacks: copied. 0 or -ENOMEM. */
int clients_new(struct clients **ret, const struct clients_callbacks *callbacks);
struct clients *clients_free(struct clients *c);

/* Adds the process of a MESSAGE_CLIENT, or replaces one with the same pid. Takes both descriptors.
 * 0; -ENOSPC: there are too many. */
int clients_add(struct clients *c, const struct message *m, int owned_memory, int owned_maps);
void clients_remove(struct clients *c, uint32_t pid);
/* Borrowed. NULL: it is no client. */
struct reader_client *clients_find(const struct clients *c, uint32_t pid);
/* The broker's answer. Takes the stat file. */
void clients_tell_thread(struct clients *c, uint32_t tid, const struct own_thread *thread);
/* There is a new teller: everything is sent again. */
void clients_forget_told(struct clients *c);

/* A sample: a thread, its registers in any order, and the copy of its native stack from address
 * start on; n_stack 0: none. */
struct client_sample {
	uint32_t tid, cpu, n_registers;
	uint64_t time_ns; /* CLOCK_MONOTONIC; UINT64_MAX: unknown */
	const uint64_t *registers;
	uint64_t start, n_stack;
	const uint8_t *stack;
	uint64_t goroutine; /* the value of Go's register for it, in any program */
};

/* What there is to read of each of its samples: frames, and the span of the thread. */
bool client_has_interpreter(const struct reader_client *client);
bool client_tells_spans(const struct reader_client *client);
/* Reads the context of the thread, or the labels of its goroutine, now; fills ret except its time,
 * pid and tid. n 0: not FRAME_RECORD_SPAN_READ. */
enum frame_record_span client_read_context(struct reader_client *client,
					   const struct client_sample *sample,
					   struct frame_record_context *ret);
/* Reads the thread's stack of frames now; fills ret except its time, pid and tid, and sends its
 * texts. */
void client_read(struct reader_client *client, const struct client_sample *sample, struct teller *t,
		 struct frame_record_stack *ret);
