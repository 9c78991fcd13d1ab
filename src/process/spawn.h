/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A child is started by fork and exec of this very binary, so each has its own address-space
 * layout and a small heap. Its name on the command line is its role.
 */

/*
 * Call in a process that has just been forked: executes the child of that name. exe_fd: the binary.
 * It gets no variables with credentials: the kernel would put them on its stack. oom_score: added
 * to the broker's, so that the kernel kills the child first. control, ask: its ends of the two
 * sockets, which become PROTOCOL_CONTROL_FD and PROTOCOL_ASK_FD; ask negative: it may not ask. On
 * failure it exits with status 125.
 */
void spawn_exec(int exe_fd, const char *name, int oom_score, int control, int ask)
	__attribute__((noreturn));
