/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "util/cleanup.h"
#include "util/fdmsg.h"

int fdmsg_send(int sock, const void *data, size_t n, const int *fds, size_t n_fds, int flags)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(FDMSG_MAX_FDS * sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = (void *)data, .iov_len = n};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t r;

	if (n_fds > FDMSG_MAX_FDS)
		return -EINVAL;
	if (n_fds > 0) {
		struct cmsghdr *c;

		memset(&control, 0, sizeof(control));
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	do {
		r = sendmsg(sock, &msg, flags | MSG_NOSIGNAL);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

ssize_t fdmsg_recv(int sock, void *data, size_t size, int fds[FDMSG_MAX_FDS], size_t *ret_n_fds,
		   int flags)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(FDMSG_MAX_FDS * sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = data, .iov_len = size};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	size_t n_fds = 0;
	ssize_t r;

	do {
		r = recvmsg(sock, &msg, flags | MSG_CMSG_CLOEXEC);
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		size_t bytes = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(fds + n_fds, CMSG_DATA(c), bytes);
		n_fds += bytes / sizeof(int);
	}
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		for (size_t i = 0; i < n_fds; i++)
			(void)close_fd(fds[i]);
		return -EMSGSIZE;
	}
	*ret_n_fds = n_fds;
	return r;
}

int fdmsg_pair(int ret_fds[2], int nonblock)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (nonblock ? SOCK_NONBLOCK : 0), 0,
		       ret_fds) < 0)
		return -errno;
	return 0;
}
