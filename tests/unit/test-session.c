/* SPDX-License-Identifier: Apache-2.0 */
/* Signals reach a session's loop, those that arrived before it too, and its end has a result. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/cmd/session.h"
#include "tests/unit/test.h"
#include "util/clock.h"

enum { MAX_SIGNALS = 8 };

static struct session session;
static uint32_t seen[MAX_SIGNALS], n_seen, wanted;

static void on_signal(void *ctx, const struct signalfd_siginfo *s)
{
	CHECK(ctx == seen);
	CHECK_INT(n_seen, <, MAX_SIGNALS);
	CHECK_INT(s->ssi_pid, >, 0);
	seen[n_seen++] = s->ssi_signo;
	if (n_seen == wanted)
		session_end(&session, 42);
}

static void begin(const int *more, uint32_t n)
{
	session = (struct session)SESSION_INIT;
	n_seen = 0;
	wanted = n;
	(void)alarm(600);
	CHECK_INT(session_open(&session, more, on_signal, seen), ==, 0);
}

static bool was_seen(uint32_t number)
{
	for (uint32_t i = 0; i < n_seen; i++)
		if (seen[i] == number)
			return true;
	return false;
}

static void test_signals(void)
{
	static const int more[] = {SIGUSR1, SIGWINCH, 0};
	static const int all[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGWINCH};

	begin(more, 5);
	for (int i = 0; i < 5; i++)
		CHECK_INT(kill(getpid(), all[i]), ==, 0);
	CHECK_INT(session_run(&session), ==, 42);
	for (int i = 0; i < 5; i++)
		CHECK(was_seen((uint32_t)all[i]));
	session_close(&session);
}

static void test_child(void)
{
	int status;
	pid_t pid;

	begin(NULL, 1);
	pid = fork();
	if (pid == 0)
		_exit(3);
	CHECK_INT(session_run(&session), ==, 42);
	CHECK_INT(seen[0], ==, SIGCHLD);
	CHECK_INT(waitpid(pid, &status, 0), ==, pid);
	session_close(&session);
}

/* A pipe that nobody reads is an error of write(2), and ends nothing. */
static void test_broken_pipe(void)
{
	int pair[2];

	begin(NULL, 1);
	CHECK_INT(pipe(pair), ==, 0);
	(void)close(pair[0]);
	CHECK_INT(write(pair[1], "x", 1), ==, -1);
	CHECK_INT(errno, ==, EPIPE);
	(void)close(pair[1]);
	session_close(&session);
}

/* A command that is not in its loop takes them one by one. */
static void test_next_signal(void)
{
	struct signalfd_siginfo info;

	begin(NULL, 1);
	CHECK(!session_next_signal(&session, &info));
	CHECK_INT(kill(getpid(), SIGTERM), ==, 0);
	CHECK(session_next_signal(&session, &info));
	CHECK_INT(info.ssi_signo, ==, SIGTERM);
	CHECK(!session_next_signal(&session, &info));
	CHECK_INT(n_seen, ==, 0);
	session_close(&session);
	session_close(&session);
}

static void on_timer(void *ctx)
{
	session_end(&session, -ECANCELED);
	session_end(&session, -EPERM);
}

/* The last word counts: what fails while a session ends is what its exit code says. */
static void test_result(void)
{
	begin(NULL, 1);
	CHECK_INT(loop_add_timer(session.loop, NSEC_PER_MSEC, 0, on_timer, NULL), >=, 0);
	CHECK_INT(session_run(&session), ==, -EPERM);
	session_close(&session);
}

int main(void)
{
	RUN(test_signals);
	RUN(test_child);
	RUN(test_broken_pipe);
	RUN(test_next_signal);
	RUN(test_result);
	return 0;
}
