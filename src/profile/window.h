/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A closed window as bytes: a profile laid flat into a file in memory, handed from the profiler to
 * the symbolizer as a descriptor, sealed where the kernel can; what is not is read as a copy.
 *
 * Same machine, same binary: native byte order, the structs of profile.h as they are, and a header
 * that refuses another layout. But not the same trust: the profiler reads hostile bytes, so the
 * reader checks every count, row number and string id before it uses one. Frames of runtimes come
 * with their names; those of other modules have none yet.
 */
#include <stddef.h>
#include <stdint.h>

struct profile;

/* Writes p into a new file in memory. The descriptor (the caller's) or -errno. */
int window_write(const struct profile *p);

/*
 * Adds the window in fd to p: rows are interned anew, counters add up, each
 * type's its own, the time range grows; samples that do not fit are counted in
 * PROFILE_SAMPLES_DROPPED. module_uid_base is added to the uids from PROFILE_UID_FIRST_FILE on, so
 * that windows of a restarted profiler do not mix. 0; -EBADMSG: not a window of this layout or
 * contradicts itself; -errno. p has no sample of it then and has counted nothing, there are only
 * rows that nothing refers to.
 */
int window_read(struct profile *p, int fd, uint64_t module_uid_base);
