/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judge: says of one file whether it holds a runtime, and exits. The process that wants the
 * memory of a program with such a file may have been taken over, so its word is not enough; and the
 * opener, which has privileges, parses no files. A file that takes over its judge can make it say
 * yes: that opens the memory of the programs that have this file mapped as code, and of no others.
 *
 * So it lives for one file alone, and has nothing but that file and the socket for its answer.
 */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtimes/marks.h"
#include "src/process/judging.h"
#include "src/process/privileges.h"
#include "src/process/role.h"
#include "util/cleanup.h"
#include "util/log.h"

/* Takes the one message of its set-up, with the file. */
static int take_setup(struct setup_common *ret, int *ret_file)
{
	struct message m;
	int fds[2], r = message_recv(PROTOCOL_CONTROL_FD, &m, fds, 0);

	if (r <= 0)
		return r == 0 ? -ECONNRESET : r;
	(void)close_fd(fds[1]);
	if (m.type != MESSAGE_SETUP || m.setup.n != sizeof(*ret) || fds[0] < 0)
		return -EBADMSG;
	memcpy(ret, m.setup.bytes, sizeof(*ret));
	*ret_file = fds[0];
	return 0;
}

/* As role_start() and role_confine() do it. A kernel without filters or Landlock is no reason to
 * judge nothing: the log of the other children says so. */
static int confine(const struct setup_common *setup)
{
	const struct rlimit cpu = {JUDGING_CPU_SECONDS, JUDGING_CPU_SECONDS};
	_cleanup_close_ int rules = -EBADF;
	int r = setrlimit(RLIMIT_CPU, &cpu) < 0 ? -errno : privileges_drop(&setup->privileges);

	if (r < 0)
		return r;
	if (setup->landlock) {
		rules = sandbox_files_new(SANDBOX_JUDGE);
		(void)sandbox_files_enforce(rules);
	}
	r = sandbox_filter_calls(SANDBOX_JUDGE, setup->seccomp < SANDBOX_N_MODES
							? (enum sandbox_mode)setup->seccomp
							: SANDBOX_ERRNO);
	if (r < 0)
		log_debug("no seccomp filter: %s", strerror(-r));
	return 0;
}

int judge_main(void)
{
	struct setup_common setup;
	int file = -1, r;
	uint8_t verdict;

	log_open(JUDGING_NAME);
	(void)prctl(PR_SET_NAME, "pw-" JUDGING_NAME);
	privileges_hide_memory();
	role_ignore_signals();
	r = take_setup(&setup, &file);
	if (r == 0) {
		log_set_level((enum log_level)setup.log_level);
		r = confine(&setup);
	}
	if (r < 0) {
		log_error("cannot start: %s", strerror(-r));
		return 1;
	}
	verdict = (runtime_marks_of(file) & RUNTIME_ANY) ? JUDGING_YES : JUDGING_NO;
	return write(PROTOCOL_CONTROL_FD, &verdict, sizeof(verdict)) != sizeof(verdict);
}
