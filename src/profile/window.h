/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A window as bytes: a profile written flat into a file in memory. The profiler passes it to the
 * symbolizer as a descriptor, sealed if the kernel can do that; the reader copies an unsealed file.
 *
 * Both sides are the same binary on the same machine, so it has native byte order and the structs
 * of profile.h, with a header that refuses another layout. But the profiler reads hostile bytes, so
 * the reader checks every count, row number and string id before it uses one. Frames of runtimes
 * come with their names; those of other modules have none yet.
 */
#include <stddef.h>
#include <stdint.h>

struct profile;

/* Writes p into a new file in memory. The descriptor (the caller's) or -errno. */
int window_write(const struct profile *p);

/*
 * Adds the window in fd to p: interns the rows, adds up the counters of each type, extends the time
 * range, and counts samples that do not fit in PROFILE_SAMPLES_DROPPED. module_uid_base is added to
 * the uids from PROFILE_UID_FIRST_FILE on, so that windows of a restarted profiler do not mix. 0;
 * -EBADMSG: not a window of this layout, or it contradicts itself; -errno. On failure p has no
 * sample or count of it, only rows that nothing refers to, and error says why: "frame 7: module 9
 * of 4".
 */
int window_read(struct profile *p, int fd, uint64_t module_uid_base, char *error, size_t n_error);
