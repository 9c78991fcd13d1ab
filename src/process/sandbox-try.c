/* SPDX-License-Identifier: Apache-2.0 */
/* Tests whether this host enforces the sandbox: a child process enters it and tries to get out. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/process/sandbox.h"
#include "util/cleanup.h"

#define NETWORK (1u << PEER_EXPORTER | 1u << PEER_FETCHER)

static long try_open(void)
{
	return syscall(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY, 0);
}

static long try_open_to_write(void)
{
	return syscall(SYS_openat, AT_FDCWD, "/proc/self/comm", O_WRONLY, 0);
}

static long try_connect(void)
{
	const struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(9)};
	long fd = syscall(SYS_socket, AF_INET, SOCK_DGRAM, 0);

	return fd < 0 ? -1 : syscall(SYS_connect, fd, &a, sizeof(a));
}

static long try_execve(void)
{
	return syscall(SYS_execve, "/proc/self/exe", NULL, NULL);
}

static long try_ptrace(void)
{
	return syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0);
}

static long try_kill(void)
{
	return syscall(SYS_kill, getppid(), 0);
}

static long try_mount(void)
{
	return syscall(SYS_mount, "none", "/", "tmpfs", MS_REMOUNT | MS_RDONLY, "size=x");
}

static long try_bpf(void)
{
	return syscall(SYS_bpf, 0, NULL, 0);
}

static long try_perf_event_open(void)
{
	return syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0);
}

/* Without a filter each of these has a result other than EPERM, or succeeds. */
static const struct {
	const char *name;
	long (*make)(void);
	uint32_t may; /* the roles that may do that */
} tries[] = {
	{"open", try_open, NETWORK | 1u << SANDBOX_OPENER},
	{"open to write", try_open_to_write, NETWORK},
	{"connect", try_connect, NETWORK},
	{"execve", try_execve, 0},
	{"ptrace", try_ptrace, 0},
	{"kill", try_kill, 0},
	{"mount", try_mount, 0},
	{"bpf", try_bpf, 0},
	{"perf_event_open", try_perf_event_open, 0},
};

static void try_all(enum peer who, enum sandbox_mode mode, struct sandbox_tried *t)
{
	int rules = who == SANDBOX_OPENER ? -ENOTSUP : sandbox_files_new(who);

	t->seccomp_error = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
	t->landlock = t->seccomp_error == 0 ? sandbox_files_enforce(rules) : t->seccomp_error;
	if (t->seccomp_error == 0)
		t->seccomp_error = sandbox_filter_calls(who, mode);
	for (size_t i = 0; i < ARRAY_SIZE(tries) && t->seccomp_error == 0; i++) {
		if (tries[i].may & (1u << who))
			continue;
		errno = 0;
		if (tries[i].make() >= 0 || errno != EPERM)
			t->passed |= 1u << i;
	}
}

int sandbox_try(enum peer who, struct sandbox_tried *ret)
{
	struct sandbox_tried t = {.seccomp_error = -ECHILD};
	int pair[2], status;
	ssize_t n = -1;
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		try_all(who, SANDBOX_ERRNO, &t);
		_exit(write(pair[1], &t, sizeof(t)) != sizeof(t));
	}
	(void)close(pair[1]);
	if (pid > 0) {
		n = read(pair[0], &t, sizeof(t));
		(void)waitpid(pid, &status, 0);
	}
	(void)close(pair[0]);
	if (n != sizeof(t))
		return -ECHILD;
	*ret = t;
	return 0;
}

const char *sandbox_tried_name(uint32_t passed)
{
	for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
		if (passed & (1u << i))
			return tries[i].name;
	}
	return NULL;
}
