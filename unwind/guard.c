/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owner of a mapped file can truncate it at any time; a read of the lost part then raises
 * SIGBUS. Copying whole sections first would cost their memory (the CFI of one browser is 30 MB, of
 * which 0.2% is ever read), and reading by pread() would keep a descriptor for every file. So the
 * few places that read mapped bytes run under a guard: the signal handler jumps back to it, and the
 * file is marked broken. libdw never runs under a guard: it sees only private copies.
 *
 * The handler is installed once for the whole process. It passes every SIGBUS that is not ours to
 * the previous handler (or to the default, which ends the process).
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>

#include "unwind/internal.h"

static __thread sigjmp_buf *guard_active;
static struct sigaction previous;
static bool installed;

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	sigjmp_buf *to = guard_active;

	if (to) {
		guard_active = NULL;
		siglongjmp(*to, 1);
	}
	if (previous.sa_flags & SA_SIGINFO) {
		previous.sa_sigaction(sig, info, context);
	} else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
		previous.sa_handler(sig);
	} else {
		/* A synchronous fault comes again at once, and then takes the default action. */
		signal(SIGBUS, SIG_DFL);
		if (info->si_code <= 0)
			raise(SIGBUS);
	}
}

int guard_install(void)
{
	/* NODEFER: the jump leaves the handler without restoring the signal mask. */
	struct sigaction sa = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_NODEFER};
	struct sigaction now;

	if (installed && sigaction(SIGBUS, NULL, &now) == 0 && now.sa_sigaction == on_sigbus)
		return 0;
	sigemptyset(&sa.sa_mask);
	if (sigaction(SIGBUS, &sa, &previous) < 0)
		return -errno;
	installed = true;
	return 0;
}

int guard_run(int (*fn)(void *arg), void *arg)
{
	sigjmp_buf here;
	int r;

	if (sigsetjmp(here, 0) != 0)
		return -EIO;
	guard_active = &here;
	r = fn(arg);
	guard_active = NULL;
	return r;
}
