/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The start of a child, by fork and exec of this very binary: so each has its own address-space
 * layout and a small heap. argv[0] is its role.
 */
#include <sys/types.h>

/*
 * Executes exe_fd as the child of that name, in a process that has just been forked. The child gets
 * no variables with credentials, because the kernel would put them on its stack. oom_score is added
 * to the broker's, so that the kernel kills the child first. control, ask: the child's ends of the
 * two sockets, which become PROTOCOL_CONTROL_FD and PROTOCOL_ASK_FD; ask negative: it may not ask.
 * On failure it exits with status 125.
 */
void spawn_exec(int exe_fd, const char *name, int oom_score, int control, int ask)
	__attribute__((noreturn));
/* Forks a process that does so, without a socket to ask. *ret_pid: it; *ret_sock: our end of its
 * control socket, the caller's. 0 or -errno. */
int spawn_process(int exe_fd, const char *name, int oom_score, pid_t *ret_pid, int *ret_sock);
