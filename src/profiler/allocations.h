/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Allocations of the attribution: blocks that the allocation library picked (alloc/), as bytes and
 * objects that were allocated, and, for those not yet freed, as bytes and objects in use. A capture
 * reports what is in use at the end of each process or of the capture; the daemon reports what is
 * in use at the end of each window.
 */
#include <stdbool.h>
#include <stdint.h>

struct allocations;
struct attribution;
struct kept_blocks;
struct record;

/* The types behind those of the events: objects allocated, objects in use. */
#define ALLOCATIONS_MORE_TYPES 2

/* Only if the attribution has events of allocations; else *ret is NULL. a: borrowed. 0 or
 * -ENOMEM. */
int allocations_new(struct allocations **ret, struct attribution *a);
struct allocations *allocations_free(struct allocations *l);
/* Takes over what another profiler has kept in k, and keeps its own blocks there, too; borrowed. */
void allocations_adopt(struct allocations *l, struct kept_blocks *k);
/* Adds these types to a window that begins, after the types of all events. */
void allocations_put_types(struct allocations *l);

#define ALLOCATIONS_LIBRARY "libperfwalk-alloc.so"
/* May a file of that name be a copy of the library, or a runtime with an allocator of its own? Then
 * call allocations_mapped() when it is mapped. */
bool allocations_may_matter(const struct allocations *l, const char *path);
/* a->process has mapped a file at that address: asks to sample it, too, if it is a copy of the
 * library, or such a runtime. */
void allocations_mapped(struct allocations *l, uint64_t address);
/* Does the same for all files that a->process has mapped; call it at a sample of the process. */
void allocations_look(struct allocations *l);

/* Takes a record of a block that was picked or ends, and records that end a process; ignores
 * others. */
void allocations_record(struct allocations *l, const struct record *r);
/* Ends of blocks were missed, or records were lost. At the end of the window the library's own
 * table shows which blocks are in use. */
void allocations_miss_ends(struct allocations *l);
/* The window ends: in a daemon, adds what is in use at time_ns (perf clock). */
void allocations_close(struct allocations *l, uint64_t time_ns);
/* The capture ends with the window that is closed next, which has what is in use then. */
void allocations_end(struct allocations *l);
