/* SPDX-License-Identifier: Apache-2.0 */
/* The main function of the helper. */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "src/opener/helper.h"
#include "src/opener/opener.h"
#include "src/process/privileges.h"
#include "src/process/role.h"
#include "src/process/setup.h"
#include "util/cleanup.h"
#include "util/log.h"

/*
 * No Landlock: it would forbid access to other processes, which the helper needs. If the kernel has
 * no filters, the log of the other children says so.
 */
static void confine(enum sandbox_mode seccomp, const struct privileges *limits)
{
	int r = privileges_keep_opening(), e;

	e = privileges_set_limits(limits);
	if (e < 0)
		log_warning("the process that opens files has no limits: %s", strerror(-e));
	if (r < 0)
		log_warning("the process that opens files keeps all privileges: %s", strerror(-r));
	r = sandbox_filter_calls(SANDBOX_OPENER, seccomp);
	if (r < 0)
		log_debug("no seccomp filter: %s", strerror(-r));
}

/* Takes the one message of its set-up. */
static int take_setup(struct setup_common *ret)
{
	struct message m;
	int fds[2], r = message_recv(PROTOCOL_CONTROL_FD, &m, fds, 0);

	if (r <= 0)
		return r == 0 ? -ECONNRESET : r;
	(void)close_fd(fds[0]);
	(void)close_fd(fds[1]);
	if (m.type != MESSAGE_SETUP || m.setup.n != sizeof(*ret))
		return -EBADMSG;
	memcpy(ret, m.setup.bytes, sizeof(*ret));
	return 0;
}

/* The helper must not outlive the broker. */
static int die_with(uint32_t parent_pid)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	return (uint32_t)getppid() == parent_pid ? 0 : -ESRCH;
}

/*
 * Keeps the files until the next request, when the broker has passed it on or closed it: some
 * servers are told about the last close, and who closes waits for their answer. That must not be
 * the broker.
 */
static void serve(uint32_t parent_pid)
{
	struct message ask, answer;
	int fds[2], kept[2] = {-EBADF, -EBADF};

	while ((uint32_t)getppid() == parent_pid &&
	       message_recv(PROTOCOL_CONTROL_FD, &ask, fds, 0) > 0) {
		(void)close_fd(fds[0]);
		(void)close_fd(fds[1]);
		(void)close_fd(kept[0]);
		(void)close_fd(kept[1]);
		answer = (struct message){.type = MESSAGE_OPENED, .seq = ask.seq};
		kept[0] = opener_asked_file(&ask, &answer.opened.file, &kept[1]);
		answer.opened.error = kept[0] < 0 ? kept[0] : 0;
		if (message_send(PROTOCOL_CONTROL_FD, &answer, kept,
				 kept[0] < 0   ? 0
				 : kept[1] < 0 ? 1
					       : 2) < 0)
			break;
	}
}

int opener_main(void)
{
	struct setup_common setup;
	int r;

	log_open(OPENER_NAME);
	(void)prctl(PR_SET_NAME, "pw-" OPENER_NAME);
	privileges_hide_memory();
	role_ignore_signals();
	r = take_setup(&setup);
	if (r == 0)
		r = die_with(setup.privileges.parent_pid);
	if (r < 0) {
		log_error("cannot start: %s", strerror(-r));
		return 1;
	}
	log_set_level((enum log_level)setup.log_level);
	confine(setup.seccomp < SANDBOX_N_MODES ? (enum sandbox_mode)setup.seccomp : SANDBOX_ERRNO,
		&setup.privileges);
	if (setup_send_start(PROTOCOL_CONTROL_FD) == 0)
		serve(setup.privileges.parent_pid);
	return 0;
}
