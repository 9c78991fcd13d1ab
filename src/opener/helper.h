/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Opening with a deadline. A file server that does not answer (FUSE, NFS, autofs) blocks an open
 * forever, and not even SIGKILL ends that. So a separate process opens files at untrusted paths:
 * another start of this binary, with nothing of the broker's memory. It keeps only the capabilities
 * to access other processes and to read, and its filter of system calls lets it open files only for
 * reading.
 *
 * A late helper is killed and replaced. For a minute, and until it has ended, requests for the same
 * process or device are refused. stuck.h says what happens if many have not ended.
 */
#include <stdbool.h>
#include <sys/types.h>

#include "src/process/message.h"
#include "src/process/sandbox.h"
#include "src/process/setup.h"

/* Added to its score: the kernel ends it before all others when memory is short, since the next
 * request starts another. */
#define OPENER_OOM_SCORE 700

struct opener_helper;

/* The process's name (src/process/spawn.h), and its main function, which returns its exit status.
 * */
#define OPENER_NAME "opener"
int opener_main(void);

/* exe_fd: the binary; it stays the caller's, and must stay open as long as the helper exists.
 * limits: of the process; its user and capabilities do not matter. judge: the set-up of judges of
 * files (judge.h), which have the same filter. 0 or -ENOMEM. */
int opener_helper_new(struct opener_helper **ret, int exe_fd, const struct privileges *limits,
		      const struct setup_common *judge);
/* Kills all helper processes. Returns NULL. */
struct opener_helper *opener_helper_free(struct opener_helper *h);

/* Starts the process without waiting for it, so that the first request need not start it. */
void opener_helper_prepare(struct opener_helper *h);
/*
 * Answers a request: the result of opener_asked_file(), whose descriptor is the caller's. Close it
 * before the next request: until then the helper has it open as well. *ret: its identity. Of a file
 * that is to be judged first: the memory; -ENOENT: it holds no runtime; -EAGAIN: there was no time
 * to judge it.
 * -ETIMEDOUT: no answer in time; -EBUSY: refused, because earlier ones had none; another -errno
 * (logged): no helper could be started.
 */
int opener_helper_open(struct opener_helper *h, const struct message *ask,
		       struct file_identity *ret);
/* The time that all requests took by now, without that in which the helper only waited for a CPU:
 * what strangers' filesystems cost. */
uint64_t opener_helper_cost_ns(const struct opener_helper *h);
/* How many requests were refused so, and because there was no time to judge a file. */
uint64_t opener_helper_n_refused(const struct opener_helper *h);
/* The process id of the current helper; 0: none. */
pid_t opener_helper_pid(const struct opener_helper *h);
/* The current helper's filter of system calls, according to the kernel. */
enum sandbox_mode opener_helper_seccomp(const struct opener_helper *h);
