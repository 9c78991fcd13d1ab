/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Opening with a deadline. A server that does not answer (FUSE, NFS, autofs) holds up whoever opens
 * a file of it, for ever, and not even SIGKILL ends that. So a process of its own opens what
 * strangers chose: a copy of this one, made for the first request, without its descriptors.
 *
 * One that is late is killed, and another one takes its place. While it is not dead all requests
 * for the same process or device are refused; with OPENER_MAX_STUCK of them, all requests.
 */
#include <stdbool.h>

#include "src/process/message.h"

#define OPENER_MAX_STUCK 4

struct opener_helper;

int opener_helper_new(struct opener_helper **ret);
/* Kills all. */
struct opener_helper *opener_helper_free(struct opener_helper *h);

/*
 * What opener_mapped_file(), opener_recorded_file(), opener_perf_map(), opener_debug_file() or
 * opener_split_file() says to a request, by its type. -ETIMEDOUT: nothing so far; -ENOTSUP:
 * somebody is still stuck there.
 */
int opener_helper_open(struct opener_helper *h, const struct message *ask);
