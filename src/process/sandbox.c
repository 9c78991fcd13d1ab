/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/process/sandbox-internal.h"
#include "src/process/sandbox.h"
#include "util/cleanup.h"
#include "util/log.h"

/* Linux 4.14; older kernels take its bits for SECCOMP_RET_KILL, which ends the thread. */
#ifndef SECCOMP_RET_KILL_PROCESS
#define SECCOMP_RET_KILL_PROCESS 0x80000000u
#endif
#ifndef SECCOMP_SET_MODE_FILTER
#define SECCOMP_SET_MODE_FILTER 1
#endif
#define MAX_INSTRUCTIONS 2048

static const char *const mode_names[SANDBOX_N_MODES] = {"no", "errno", "kill", "trap"};

const char *sandbox_mode_name(enum sandbox_mode mode)
{
	return mode_names[mode];
}

const char *sandbox_name(enum peer who)
{
	return (int)who == SANDBOX_JUDGE    ? "judge"
	       : (int)who == SANDBOX_OPENER ? "opener"
					    : peer_name(who);
}

enum sandbox_mode sandbox_choose_mode(enum sandbox_mode configured)
{
#ifdef WITH_SANITIZERS
	return SANDBOX_NO;
#else
	const char *wanted = secure_getenv("PERFWALK_SECCOMP");
	static bool warned;

	if (!wanted || !*wanted)
		return configured;
	for (int i = 0; i < SANDBOX_N_MODES; i++) {
		if (strcmp(wanted, mode_names[i]) == 0)
			return (enum sandbox_mode)i;
	}
	if (!warned)
		log_warning("PERFWALK_SECCOMP is \"%s\": expected errno, kill or no; it is ignored",
			    wanted);
	warned = true;
	return configured;
#endif
}

/* Before Linux 3.17 windows and payloads are files of /dev/shm, which these roles open by name. */
bool sandbox_makes_files(enum peer who)
{
	int fd;

	if (who != PEER_PROFILER && who != PEER_SYMBOLIZER)
		return false;
	fd = memfd_create("perfwalk-try", MFD_CLOEXEC);

	(void)close_fd(fd);
	return fd < 0 && errno == ENOSYS;
}

int sandbox_filter_calls(enum peer who, enum sandbox_mode mode)
{
	static const uint32_t refusals[SANDBOX_N_MODES] = {
		[SANDBOX_ERRNO] = SECCOMP_RET_ERRNO | EPERM,
		[SANDBOX_KILL] = SECCOMP_RET_KILL_PROCESS,
		[SANDBOX_TRAP] = SECCOMP_RET_TRAP,
	};
	struct sock_filter code[MAX_INSTRUCTIONS];
	size_t n_calls;
	const struct sandbox_call *calls = sandbox_calls(&n_calls);
	struct sock_fprog program = {.filter = code};
	int n;

	if (mode == SANDBOX_NO)
		return 0;
	if (sandbox_makes_files(who))
		return -ENOSYS;
	if (mode == SANDBOX_TRAP)
		sandbox_trap_calls();
	n = sandbox_program(calls, n_calls, who, refusals[mode], code, MAX_INSTRUCTIONS);
	if (n < 0)
		return n;
	program.len = (unsigned short)n;
	/* The call is from Linux 3.17, prctl() from 3.5; both do the same. */
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0)
		return 0;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0 ? -errno : 0;
}
