/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where the locks of programs are: an address of a process -> a frame of the window, in the file
 * that holds the lock, or in memory of the process alone.
 */
#include <stdbool.h>
#include <stdint.h>

struct attribution;
struct host_process;
struct lock_places;

/* a: borrowed. 0 or -ENOMEM. */
int lock_places_new(struct lock_places **ret, struct attribution *a);
struct lock_places *lock_places_free(struct lock_places *l);

/* While the process lives: finds out what it has mapped there, once for each address. ip: of the
 * system call that waits for a lock there; 0: it waits for something else. */
void lock_places_see(struct lock_places *l, const struct host_process *p, uint64_t address,
		     uint64_t ip);
/* Whether that call, with that address, was seen to wait for a lock: then it always does. */
bool lock_places_knows(const struct lock_places *l, const struct host_process *p, uint64_t address,
		       uint64_t ip);
/* The frame in the current window, for a process that lives or has just ended; PROFILE_NONE: it
 * does not fit. */
uint32_t lock_places_frame(struct lock_places *l, struct host_process *p, uint64_t address);
