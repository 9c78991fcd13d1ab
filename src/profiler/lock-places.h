/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where the locks of programs are: from an address in a process to a frame of the window, in the
 * file that holds the lock, or in the process's own memory.
 */
#include <stdbool.h>
#include <stdint.h>

struct attribution;
struct host_process;
struct lock_places;

/* a: borrowed. max_places: of the locks that it keeps; then a new one takes the place of the one
 * that nobody has asked for longest. 0 or -ENOMEM. */
int lock_places_new(struct lock_places **ret, struct attribution *a, uint32_t max_places);
struct lock_places *lock_places_free(struct lock_places *l);

/* Finds out what a living process has mapped at an address, if it is not known. ip: where the
 * program makes the system call that waits for a lock there; 0: the call waits for something
 * else. */
void lock_places_see(struct lock_places *l, const struct host_process *p, uint64_t address,
		     uint64_t ip);
/* Was that call, with that address, seen to wait for a lock? Then it always does. */
bool lock_places_knows(struct lock_places *l, const struct host_process *p, uint64_t address,
		       uint64_t ip);
/* The frame of a lock in the current window, for a process that lives or has just ended;
 * PROFILE_NONE: it does not fit. */
uint32_t lock_places_frame(struct lock_places *l, struct host_process *p, uint64_t address);
