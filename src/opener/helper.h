/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Opening with a deadline. A server that does not answer (FUSE, NFS, autofs) holds up whoever opens
 * a file of it, for ever, and not even SIGKILL ends that. So a process of its own opens what
 * strangers chose: another start of this binary, with nothing of what this process has in memory.
 * Of its capabilities it has those that it takes to look into other processes and to read, and its
 * filter of system calls lets it open nothing to be written.
 *
 * One that is late is killed, and another one takes its place. While it is not dead all requests
 * for the same process or device are refused; with OPENER_MAX_STUCK of them, all requests.
 */
#include <stdbool.h>
#include <sys/types.h>

#include "src/process/message.h"
#include "src/process/sandbox.h"

#define OPENER_MAX_STUCK 4

struct opener_helper;

/* The name of the process (src/process/spawn.h), and what it runs: its exit status. */
#define OPENER_NAME "opener"
int opener_main(void);

/* exe_fd: the binary; the caller's, for as long as the helper. */
int opener_helper_new(struct opener_helper **ret, int exe_fd, enum sandbox_mode seccomp);
/* Kills all. */
struct opener_helper *opener_helper_free(struct opener_helper *h);

/* Starts the process before the first request, which would otherwise, and does not wait for it. */
void opener_helper_prepare(struct opener_helper *h);
/*
 * What opener_mapped_file(), opener_recorded_file(), opener_perf_map(), opener_debug_file() or
 * opener_split_file() says to a request, by its type. -ETIMEDOUT: nothing so far; -ENOTSUP:
 * somebody is still stuck there; another -errno, logged: there is no helper to be had.
 */
int opener_helper_open(struct opener_helper *h, const struct message *ask);
/* The one that takes requests now; 0: there is none. */
pid_t opener_helper_pid(const struct opener_helper *h);
/* Its filter of system calls, by what the kernel says of it. */
enum sandbox_mode opener_helper_seccomp(const struct opener_helper *h);
