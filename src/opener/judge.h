/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Does a mapped file hold a runtime, whatever its name is? A process without privileges says so,
 * one for each file (src/judge/). What it said is kept.
 *
 * Bounded: the last 256 verdicts, one judge at a time, 1% of the wall clock for all of them. A
 * judge that dies or is late says no.
 */
#include "src/process/setup.h"
#include "util/file-identity.h"

#define JUDGE_MAX_DYING 2 /* killed, but still waiting for a disk */

struct judge;

/* exe_fd: the binary; it stays the caller's, and must stay open as long as this exists. setup: of
 * the judges. 0 or -ENOMEM. */
int judge_new(struct judge **ret, int exe_fd, const struct setup_common *setup);
/* Does not wait for those that were killed. Returns NULL. */
struct judge *judge_free(struct judge *j);
/* fd: the file, open for reading, and the caller's; id: its identity. 1: yes; 0: no; -EAGAIN: there
 * is no time for that now, which is counted; another -errno: a judge cannot be started. */
int judge_ask(struct judge *j, int fd, const struct file_identity *id);
/* How many files were not judged for want of time. */
uint64_t judge_n_put_off(const struct judge *j);
