/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Notices soon that programs and processes begin, by the rings of the side band: each begins with a
 * record there. Without that, one would be known at the next drain only, which may be 200 ms later.
 * Threads that begin or end wake it, too. Where nothing does, nothing wakes up; where many do, a
 * look follows every 50 ms, and no ring wakes it in between. The last look that finds something has
 * one more behind it, for what came in between.
 */
#include <stdbool.h>

#include "util/cleanup.h"
#include "util/loop.h"

struct newcomers;

/* look: reads the rings, and says whether the side band had a record. Both pointers are borrowed. 0
 * or -errno. */
int newcomers_new(struct newcomers **ret, struct loop *loop, bool (*look)(void *ctx), void *ctx);
struct newcomers *newcomers_free(struct newcomers *n);
DEFINE_CLEANUP(struct newcomers *, newcomers_free)

/* The event whose ring has the side band of one more CPU. fd: borrowed until it is removed; one
 * that cannot be watched does without. */
void newcomers_add(struct newcomers *n, int fd);
void newcomers_remove(struct newcomers *n, int fd);
