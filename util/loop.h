/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The event loop of every process: one epoll descriptor, descriptors with callbacks, and a few
 * timers on the monotonic clock. No sleeps, no threads.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "util/cleanup.h"

struct loop;

/* events: EPOLLIN ... as epoll_wait(2) reports. */
typedef void (*loop_fd_fn)(void *ctx, int fd, uint32_t events);
typedef void (*loop_timer_fn)(void *ctx);

/* 0 or -errno. */
int loop_new(struct loop **ret);
struct loop *loop_free(struct loop *l);
DEFINE_CLEANUP(struct loop *, loop_free)

/* Watches fd (borrowed), which can be added only once. 0 or -errno. */
int loop_add_fd(struct loop *l, int fd, uint32_t events, loop_fd_fn fn, void *ctx);
/* Call before fd is closed. A pending callback for it will not run. */
void loop_remove_fd(struct loop *l, int fd);

/* Runs fn after delay_ns and then every interval_ns (0: only once). Returns an id >= 0 or -errno.
 */
int loop_add_timer(struct loop *l, uint64_t delay_ns, uint64_t interval_ns, loop_timer_fn fn,
		   void *ctx);
/* Sets when a timer is due next: in delay_ns; UINT64_MAX: not until it is set again. */
void loop_set_timer(struct loop *l, int id, uint64_t delay_ns);

/* Runs until loop_exit(). Returns its code, or -errno. */
int loop_run(struct loop *l);
/* Ends loop_run() after the current callback. */
void loop_exit(struct loop *l, int code);
/* Was loop_exit() called? */
bool loop_exiting(const struct loop *l);
