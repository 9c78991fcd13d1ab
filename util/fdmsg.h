/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One message with up to FDMSG_MAX_FDS descriptors over an AF_UNIX SOCK_SEQPACKET socket: message
 * boundaries are kept, a short or oversized message is noticed, and end of file means that the peer
 * is gone.
 */
#include <stddef.h>
#include <sys/types.h>

#define FDMSG_MAX_FDS 64 /* the kernel's own limit is 253 (SCM_MAX_FD) */

/*
 * Sends one message; the descriptors stay the caller's. 0, -EAGAIN when the socket is full (with
 * MSG_DONTWAIT in flags or on a non-blocking socket), or another -errno; -EPIPE/-ECONNRESET: the
 * peer is gone.
 */
int fdmsg_send(int sock, const void *data, size_t n, const int *fds, size_t n_fds, int flags);

/*
 * Receives one message into data. Returns its length, 0 at end of file, -EAGAIN, -EMSGSIZE if it
 * did not fit (then it is lost, and its descriptors are closed), or another -errno. On success
 * fds[0.. *ret_n_fds) are owned by the caller and close-on-exec. flags: MSG_DONTWAIT or 0.
 */
ssize_t fdmsg_recv(int sock, void *data, size_t size, int fds[FDMSG_MAX_FDS], size_t *ret_n_fds,
		   int flags);

/* A connected pair, close-on-exec, non-blocking if asked. 0 or -errno. */
int fdmsg_pair(int ret_fds[2], int nonblock);
