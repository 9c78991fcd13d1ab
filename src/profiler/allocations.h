/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Allocations of the attribution: blocks that the allocation library picked (alloc/), as bytes and
 * objects that were allocated, and of those that nobody freed, as bytes and objects in use. A
 * capture tells what is in use when a process ends, or the capture does; the daemon what is in use
 * at the end of each window.
 */
#include <stdbool.h>
#include <stdint.h>

struct allocations;
struct attribution;
struct record;

/* The types behind those of the events: objects allocated, objects in use. */
#define ALLOCATIONS_MORE_TYPES 2

/* For attributions whose events are those of allocations; else *ret is NULL. 0 or -ENOMEM. */
int allocations_new(struct allocations **ret, struct attribution *a);
struct allocations *allocations_free(struct allocations *l);
/* Of a window that begins, behind the types of all events. */
void allocations_put_types(struct allocations *l);

struct host_file_key;
struct host_process;
#define ALLOCATIONS_LIBRARY "libperfwalk-alloc.so"
/* Is that the name of the library? */
bool allocations_is_library(const char *path);
/* A process has a file of that name mapped: one that is a copy of the library is sampled, too. */
void allocations_mapped(struct allocations *l, uint32_t pid, uint64_t start, uint64_t end,
			const struct host_file_key *key, const char *path);
/* The same of all that a process has mapped, at a sample of it. */
void allocations_look(struct allocations *l, const struct host_process *p);

/* A block that was picked or ends, and what ends a process; others are ignored. */
void allocations_record(struct allocations *l, const struct record *r);
/* Ends of blocks were not seen. At the end of the window the library's own table tells which blocks
 * are in use; the same if records were lost. */
void allocations_miss_ends(struct allocations *l);
/* The window ends: the daemon tells what is in use then (perf clock). */
void allocations_close(struct allocations *l, uint64_t time_ns);
/* The capture ends, with the window that is closed next: that tells what is in use then. */
void allocations_end(struct allocations *l);
