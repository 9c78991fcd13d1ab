/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of a broker that is slow, refuses or is gone. */
#include <errno.h>
#include <sys/wait.h>

#include "src/process/ask.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"
#include "util/fdmsg.h"

/* A broker that answers a request after so long. */
static pid_t start_broker(int sock, useconds_t after_us, int32_t error)
{
	pid_t pid = fork();
	struct message m;
	int fds[2];

	CHECK(pid >= 0);
	if (pid)
		return pid;
	if (message_recv(sock, &m, fds, 0) != 1)
		_exit(1);
	(void)usleep(after_us);
	m = (struct message){.type = MESSAGE_ANSWER, .seq = m.seq, .answer.error = error};
	_exit(message_send(sock, &m, &sock, error ? 0 : 1) != 0);
}

static int ask_once(useconds_t after_us, int32_t error, struct ask *a)
{
	struct message m = {.type = MESSAGE_ASK_PERF_MAP, .ask_pid.pid = 1};
	int pair[2], status, r;
	pid_t broker;

	CHECK_INT(fdmsg_pair(pair, 0), ==, 0);
	broker = start_broker(pair[1], after_us, error);
	(void)close_fd(pair[1]);
	*a = (struct ask){.sock = pair[0]};
	r = ask_descriptor(a, &m);
	(void)close_fd(pair[0]);
	CHECK_INT(waitpid(broker, &status, 0), ==, broker);
	CHECK_INT(status, ==, 0);
	return r;
}

/* A machine that gives a broker no CPU for a second has answers nevertheless. */
static void test_a_slow_broker(void)
{
	struct ask a;
	int fd = ask_once(1000 * 1000, 0, &a);

	CHECK_INT(fd, >=, 0);
	(void)close_fd(fd);
	CHECK_INT(a.n_asked, ==, 1);
	CHECK_INT(a.n_timeouts, ==, 0);
}

static void test_a_refusal(void)
{
	struct ask a;

	CHECK_INT(ask_once(0, -ENOENT, &a), ==, -ENOENT);
	CHECK_INT(a.n_timeouts, ==, 0);
}

static void test_a_broker_that_is_gone(void)
{
	struct message m = {.type = MESSAGE_ASK_PERF_MAP, .ask_pid.pid = 1};
	int pair[2];
	struct ask a;

	CHECK_INT(fdmsg_pair(pair, 0), ==, 0);
	a = (struct ask){.sock = pair[0]};
	(void)close_fd(pair[1]);
	CHECK_INT(ask_descriptor(&a, &m), <, 0);
	CHECK_INT(a.n_timeouts, ==, 0);
	(void)close_fd(pair[0]);
}

int main(void)
{
	RUN(test_a_slow_broker);
	RUN(test_a_refusal);
	RUN(test_a_broker_that_is_gone);
	return 0;
}
