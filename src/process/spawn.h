/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

/*
 * A child is started by fork and exec of this very binary, so each has its own address-space
 * layout and a small heap. Its name on the command line is its role.
 */

/*
 * Of a process that has just been forked: becomes the child of that name. exe_fd: the binary.
 * network: it is one of those that use it (sandbox.h), so it gets the variables of proxies; no child
 * gets those from which the config takes credentials. oom_score: so much sooner than the broker the kernel kills it. control, ask: its ends of the two
 * sockets, which it gets as PROTOCOL_CONTROL_FD and PROTOCOL_ASK_FD; ask negative: it may not ask.
 * Exits with status 125 where that fails.
 */
void spawn_exec(int exe_fd, const char *name, bool network, int oom_score, int control, int ask)
	__attribute__((noreturn));
