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

#define ALLOCATIONS_LIBRARY "libperfwalk-alloc.so"
/* Whether a file of that name may be a copy of the library, or a runtime with an allocator of its
 * own, and is to be looked at when it is mapped. */
bool allocations_may_matter(const struct allocations *l, const char *path);
/* a->process has a file mapped at that address: a copy of the library, or such a runtime, is
 * sampled, too. */
void allocations_mapped(struct allocations *l, uint64_t address);
/* The same of all that it has mapped, at a sample of it. */
void allocations_look(struct allocations *l);

/* A block that was picked or ends, and what ends a process; others are ignored. */
void allocations_record(struct allocations *l, const struct record *r);
/* Ends of blocks were not seen. At the end of the window the library's own table tells which blocks
 * are in use; the same if records were lost. */
void allocations_miss_ends(struct allocations *l);
/* The window ends: the daemon tells what is in use then (perf clock). */
void allocations_close(struct allocations *l, uint64_t time_ns);
/* The capture ends, with the window that is closed next: that tells what is in use then. */
void allocations_end(struct allocations *l);
