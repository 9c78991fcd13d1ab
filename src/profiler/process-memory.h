/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The memory of one process, which runs on while it is read, through a descriptor from the broker.
 * Only memory that cannot keep us waiting is read: anonymous memory, or a file on the file system
 * of the runtime's own library, which the broker checked when it opened that.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/host/readable.h"

/* Where the memory and maps of a process come from: an owned descriptor or -errno. */
struct memory_source {
	void *ctx;
	int (*open_memory)(void *ctx, uint32_t pid, uint64_t image);
	int (*open_maps)(void *ctx, uint32_t pid);
	/* Before and after each read of a process's memory. */
	void (*reading)(void *ctx, uint32_t pid, bool begins);
};

struct process_memory {
	const struct memory_source *source;
	uint32_t pid;
	uint64_t image;
	int fd;	      /* negative: not open */
	bool refused; /* it may not be read */
	uint64_t next_try_ns;
	uint64_t began_ns; /* the attempts that are going on; 0: none */
	struct readable readable;
};

/* A process that is not open yet, whose library has its first byte at image, and is on that device.
 * m stays where it is; source: borrowed for its life. */
void process_memory_init(struct process_memory *m, const struct memory_source *source, uint32_t pid,
			 uint64_t image, uint32_t major, uint32_t minor);
void process_memory_deinit(struct process_memory *m);
/* Opens it unless it is open. Call it before each attempt to understand what is in it: they get
 * ever rarer. false: not now. */
bool process_memory_try(struct process_memory *m);
/* Attempts have been going on for so long that what was not found is not about to be loaded: while
 * a loader maps a library, other bytes stand in its place. */
bool process_memory_is_loaded(const struct process_memory *m);
/* Something in it began that has memory of its own: for a while maps are read again soon. */
void process_memory_grows(struct process_memory *m);
/* It is what it was thought to be: attempts after this one start anew. */
void process_memory_keep(struct process_memory *m);
/* It is another program's by now: to be opened anew, after a while. */
void process_memory_leave(struct process_memory *m);
/* For struct memory; ctx: the struct process_memory. */
bool process_memory_read(void *ctx, uint64_t address, void *ret, size_t n);
