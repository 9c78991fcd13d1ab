/* SPDX-License-Identifier: Apache-2.0 */
/* Set-ups for a child that reads them at once, slowly, or not at all. */
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/process/setup.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/fdmsg.h"

enum { MANY = 100000, SLOWLY_US = 20000, AT_ONCE_US = 0 };

static const struct timeval a_message = {.tv_sec = 5}; /* more than all together may take */

static struct {
	int sock;
	useconds_t pause_us;
	uint32_t n_messages, last_type;
} child;

static void *read_all(void *ctx)
{
	struct message m;
	int fds[2];

	while (message_recv(child.sock, &m, fds, 0) > 0) {
		(void)close_fd(fds[0]);
		(void)close_fd(fds[1]);
		child.n_messages++;
		child.last_type = m.type;
		if (child.pause_us)
			(void)usleep(child.pause_us);
	}
	return ctx;
}

/* Sends up to n messages, for so long; how many the child has read. */
static uint32_t set_up(uint32_t n, useconds_t pause_us, uint64_t time_ns, int *ret)
{
	const struct setup_common setup = {.log_level = 0};
	const struct message more = {.type = MESSAGE_CLIENT_GONE};
	struct setup_sender to;
	pthread_t thread;
	int pair[2];

	CHECK_INT(fdmsg_pair(pair, 0), ==, 0);
	CHECK_INT(setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &a_message, sizeof(a_message)), ==,
		  0);
	child.sock = pair[1];
	child.pause_us = pause_us;
	child.n_messages = 0;
	CHECK_INT(pthread_create(&thread, NULL, read_all, NULL), ==, 0);
	to = setup_begin(pair[0], &setup, sizeof(setup), -1);
	to.deadline_ns = clock_monotonic_ns() + time_ns;
	setup_put_text(&to, TEXT_TITLE, "title");
	(void)setup_finish(&to);
	for (uint32_t i = 0; i < n && setup_may_send(&to); i++)
		setup_put_message(&to, &more, NULL, 0);
	*ret = to.result;
	if (to.result < 0) {
		/* No more comes after a failure. */
		setup_put_text(&to, TEXT_TITLE, "title");
		CHECK_INT(setup_finish(&to), ==, *ret);
		child.pause_us = 0;
	}
	(void)close(pair[0]);
	CHECK_INT(pthread_join(thread, NULL), ==, 0);
	(void)close(pair[1]);
	return child.n_messages;
}

static void test_a_child_that_reads(void)
{
	int r;

	CHECK_INT(set_up(1000, AT_ONCE_US, 60 * NSEC_PER_SEC, &r), ==, 1003);
	CHECK_INT(r, ==, 0);
	CHECK_INT(child.last_type, ==, MESSAGE_CLIENT_GONE);
}

/* Each message waits for less than one may, and all of them for minutes. */
static void test_a_child_that_reads_slowly(void)
{
	uint32_t n;
	int r;

	n = set_up(MANY, SLOWLY_US, 200 * NSEC_PER_MSEC, &r);
	CHECK_INT(r, ==, -ETIMEDOUT);
	CHECK_INT(n, <, MANY);
}

int main(void)
{
	(void)alarm(600);
	RUN(test_a_child_that_reads);
	RUN(test_a_child_that_reads_slowly);
	return 0;
}
