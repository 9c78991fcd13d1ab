/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lacking COMMAND...: runs it on a kernel that has no more than Linux 3.10, as far as a filter of
 * system calls can take it away (x86_64). The filter alone refuses those that came later, and what
 * their arguments ask for. What perf_event_open() is asked for is in memory, where a process of its
 * own looks at it (seccomp_unotify(2)); the kernel does what is not refused.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

enum {
	LAST_CALL = 313,	/* finit_module */
	LAST_ATTR_BIT = 22,	/* exclude_callchain_user; mmap2 is the next */
	SAMPLE_TYPES = 1 << 16, /* up to PERF_SAMPLE_DATA_SRC */
	READ_FORMATS = 1 << 4,	/* up to PERF_FORMAT_GROUP */
	SOFTWARE_EVENTS = 9,	/* PERF_COUNT_SW_DUMMY is the next */
	OPEN_FLAGS = 7,		/* no PERF_FLAG_FD_CLOEXEC */
	TMPFILE = O_TMPFILE & ~O_DIRECTORY,
};

#define LOAD(field)   BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ARGUMENT(i)   BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[i]))
#define RETURN(what)  BPF_STMT(BPF_RET | BPF_K, what)
#define REFUSE(error) RETURN(SECCOMP_RET_ERRNO | (error))
/* The next n instructions are for that value alone. */
#define ONLY(value, n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, n)

static struct sock_filter code[] = {
	LOAD(nr),
	BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, LAST_CALL, 0, 1),
	REFUSE(ENOSYS),
	ONLY(SYS_perf_event_open, 1),
	RETURN(SECCOMP_RET_USER_NOTIF),
	ONLY(SYS_openat, 4),
	ARGUMENT(2),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, TMPFILE, 0, 1),
	REFUSE(EISDIR),
	RETURN(SECCOMP_RET_ALLOW),
	ONLY(SYS_ioctl, 6),
	ARGUMENT(1),
	ONLY((uint32_t)PERF_EVENT_IOC_ID, 1),
	REFUSE(ENOTTY),
	ONLY((uint32_t)PERF_EVENT_IOC_PAUSE_OUTPUT, 1),
	REFUSE(ENOTTY),
	RETURN(SECCOMP_RET_ALLOW),
	ONLY(SYS_fcntl, 6),
	ARGUMENT(1),
	ONLY(F_ADD_SEALS, 1),
	REFUSE(EINVAL),
	ONLY(F_GET_SEALS, 1),
	REFUSE(EINVAL),
	RETURN(SECCOMP_RET_ALLOW),
	ONLY(SYS_prctl, 3),
	ARGUMENT(0),
	ONLY(PR_CAP_AMBIENT, 1),
	REFUSE(EINVAL),
	RETURN(SECCOMP_RET_ALLOW),
};

/* What Linux 3.10 says of an event; 0: that it depends on the rest. */
static int judge(const struct perf_event_attr *attr, uint64_t flags)
{
	static const uint8_t zeros[sizeof(*attr)];
	uint64_t bits;

	/* They begin behind read_format. */
	memcpy(&bits, (const char *)attr + offsetof(struct perf_event_attr, read_format) + 8, 8);
	if (attr->size > PERF_ATTR_SIZE_VER3 &&
	    memcmp((const char *)attr + PERF_ATTR_SIZE_VER3, zeros,
		   sizeof(*attr) - PERF_ATTR_SIZE_VER3) != 0)
		return -E2BIG;
	if (bits >> (LAST_ATTR_BIT + 1) || attr->sample_type >= SAMPLE_TYPES ||
	    attr->read_format >= READ_FORMATS || flags & ~(uint64_t)OPEN_FLAGS)
		return -EINVAL;
	if (attr->type == PERF_TYPE_SOFTWARE && attr->config >= SOFTWARE_EVENTS)
		return -ENOENT;
	return 0;
}

static int judge_request(const struct seccomp_notif *request)
{
	struct perf_event_attr attr = {0};
	void *from = (void *)(uintptr_t)request->data.args[0]; // NOLINT(performance-no-int-to-ptr)
	struct iovec here = {&attr, PERF_ATTR_SIZE_VER0}, there = {from, PERF_ATTR_SIZE_VER0};

	if (process_vm_readv((pid_t)request->pid, &here, 1, &there, 1, 0) != (ssize_t)here.iov_len)
		return -EFAULT;
	if (attr.size <= sizeof(attr)) {
		here.iov_len = there.iov_len = attr.size;
		(void)process_vm_readv((pid_t)request->pid, &here, 1, &there, 1, 0);
	}
	return judge(&attr, request->data.args[4]);
}

/* Until the last that has the filter is gone. */
static void supervise(int listener)
{
	struct pollfd p = {.fd = listener, .events = POLLIN};

	while (poll(&p, 1, -1) > 0 && !(p.revents & POLLHUP)) {
		struct seccomp_notif request = {0};
		struct seccomp_notif_resp answer = {0};

		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0)
			continue;
		answer.id = request.id;
		answer.error = judge_request(&request);
		if (!answer.error)
			answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
}

/* One byte with a descriptor. */
union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static int pass(int sock, int fd)
{
	union control control = {{0}};
	char byte = 0;
	struct iovec data = {&byte, 1};
	struct msghdr m = {.msg_iov = &data,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};

	control.header = (struct cmsghdr){CMSG_LEN(sizeof(fd)), SOL_SOCKET, SCM_RIGHTS};
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	return sendmsg(sock, &m, 0) == 1 ? 0 : -1;
}

static int take(int sock)
{
	union control control;
	char byte;
	struct iovec data = {&byte, 1};
	struct msghdr m = {.msg_iov = &data,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	int fd = -1;

	if (recvmsg(sock, &m, 0) == 1 && m.msg_controllen >= CMSG_LEN(sizeof(fd)))
		memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
	return fd;
}

/* Nobody's child, so that the command has none that it does not know. Returns its socket. */
static int start_supervisor(void)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return -1;
	pid = fork();
	if (pid < 0)
		return -1;
	if (pid == 0) {
		if (fork() == 0) {
			(void)close(pair[0]);
			for (int fd = 0; fd < 3; fd++)
				(void)close(fd);
			supervise(take(pair[1]));
		}
		_exit(0);
	}
	(void)waitpid(pid, NULL, 0);
	(void)close(pair[1]);
	return pair[0];
}

int main(int argc, char **argv)
{
	struct sock_fprog filter = {.len = ARRAY_SIZE(code), .filter = code};
	int sock, listener;

	if (argc < 2)
		return 125;
	sock = start_supervisor();
	if (sock < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return 125;
	listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
	if (listener < 0 || pass(sock, listener) != 0) {
		perror("seccomp");
		return 125;
	}
	(void)close(listener);
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 125;
}
