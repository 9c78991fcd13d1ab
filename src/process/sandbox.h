/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the kernel lets a child do once it is set up: a list of system calls for each role, enforced
 * by a seccomp filter that cannot be taken off again. Who takes a child over through a hostile file
 * or server has the descriptors that the child has, and can open, start and signal nothing.
 */
#include <stdint.h>

#include "src/process/message.h"

enum sandbox_mode {
	SANDBOX_NO,
	SANDBOX_ERRNO, /* a call that is not in the list fails with EPERM */
	SANDBOX_KILL,  /* and ends the process by SIGSYS */
	SANDBOX_TRAP,  /* for tests: the process names the call in the log and exits */
	SANDBOX_N_MODES
};
/* "no", "errno" ... */
const char *sandbox_mode_name(enum sandbox_mode mode);
/*
 * The mode that the children are to have: what PERFWALK_SECCOMP in the environment says, else what
 * is configured. A word that means nothing there is told and counts as none. SANDBOX_NO in a build
 * with sanitizers, whose run-time library calls what it likes.
 */
enum sandbox_mode sandbox_choose_mode(enum sandbox_mode configured);

/*
 * Puts the filter of that role on this thread and all that it starts; NO_NEW_PRIVS must be set.
 * 0; -ENOSYS or -EINVAL where the kernel has no seccomp filters, or another -errno: there is none.
 */
int sandbox_filter_calls(enum peer who, enum sandbox_mode mode);
