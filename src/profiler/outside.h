/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Asks the broker what the profiler cannot see by itself: the source of the host model. */
#include <stdbool.h>
#include <stdint.h>

#include "src/host/host.h"
#include "src/process/ask.h"
#include "symbolize/alloc-place.h"

struct outside {
	struct ask *ask; /* borrowed */
	/* Who can read /proc/PID/maps on this kernel, by the first attempt. Starts as 0. */
	enum outside_maps {
		OUTSIDE_MAPS_UNTRIED,
		OUTSIDE_MAPS_READABLE,
		OUTSIDE_MAPS_COPIED, /* only their opener can (before Linux 3.18) */
	} maps;
};

/* A source that asks through o, borrowed for its life. records_are_monotonic: record times are of
 * CLOCK_MONOTONIC. */
struct host_source outside_source(struct outside *o, bool records_are_monotonic);
/* The perf map of a process: an owned descriptor or -errno. */
int outside_open_perf_map(struct outside *o, uint32_t pid);
/* The stack of a blocked thread: the descriptor of opener_blocked(), or -errno. */
int outside_open_blocked(struct outside *o, uint32_t pid, uint32_t tid, uint64_t sp, uint64_t ip,
			 uint32_t n_bytes);
/* The effective user of a process. 0 or -errno. */
int outside_user(struct outside *o, uint32_t pid, uint32_t *ret_uid);
/* Have all threads of a process ended? false if the broker does not answer. */
bool outside_has_ended(struct outside *o, uint32_t pid);
/* What a process publishes of itself: the descriptor of opener_context(), or -errno. published_ns:
 * the time stamp of the known context, 0: none; environment: with its variables. */
int outside_open_context(struct outside *o, const struct host_process *p, uint64_t published_ns,
			 bool environment);
/* The next functions return an owned descriptor or -errno. */
/* The memory of a process with a runtime's library, and its /proc/PID/maps. */
int outside_open_memory(struct outside *o, uint32_t pid, uint64_t image);
int outside_open_maps(struct outside *o, uint32_t pid);
/* /proc/PID/statm: how much of the process is in memory. */
int outside_open_resident(struct outside *o, uint32_t pid);
/* /proc/vmstat: how many processes the kernel killed for want of memory. */
int outside_open_kills(struct outside *o);
/* The lines of the kernel's log that name them. */
int outside_open_kill_lines(struct outside *o);
/* The table of the allocation library in a process. */
int outside_open_table(struct outside *o, uint32_t pid, uint64_t address);
/* Asks to sample a file with the allocation library's name that is mapped there, if it is a copy of
 * the library. 0 or -errno. */
int outside_library_copy(struct outside *o, uint32_t pid, uint64_t start, uint64_t end,
			 const struct host_file_key *key, const char *path);
/* Asks to sample a runtime's own allocator in the file that is mapped there. 0 or -errno. */
int outside_allocator(struct outside *o, uint32_t pid, const struct host_mapping *mapping,
		      const struct alloc_places *places);
