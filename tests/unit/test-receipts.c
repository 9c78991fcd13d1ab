/* SPDX-License-Identifier: Apache-2.0 */
/* Receipts for a sender that does not read for a while, ends, or is followed by another. */
#include <sys/socket.h>
#include <unistd.h>

#include "src/process/receipts.h"
#include "tests/unit/test.h"
#include "util/clock.h"
#include "util/fdmsg.h"
#include "util/loop.h"

#define N_MANY 2000 /* more messages than a socket holds */

static struct {
	struct loop *loop;
	struct receipts *receipts;
	int ours, theirs; /* ends of the pair; theirs is the sender's */
	uint64_t n_read;
} world;

static void connect_sender(void)
{
	int pair[2];

	CHECK_INT(fdmsg_pair(pair, 1), ==, 0);
	world.ours = pair[0];
	world.theirs = pair[1];
	world.n_read = 0;
	receipts_connect(world.receipts, world.ours);
}

static void begin(void)
{
	memset(&world, 0, sizeof(world));
	CHECK_INT(loop_new(&world.loop), ==, 0);
	CHECK_INT(receipts_new(&world.receipts, world.loop), ==, 0);
	(void)alarm(600);
}

static void end(void)
{
	receipts_free(world.receipts);
	(void)close(world.ours);
	(void)close(world.theirs);
	loop_free(world.loop);
}

static void say(uint64_t from, uint64_t n)
{
	for (uint64_t id = from; id < from + n; id++)
		receipts_say(world.receipts, id % 2 ? MESSAGE_WINDOW_DONE : MESSAGE_MODULE_GONE,
			     id);
}

/* Each comes once, in order, as what it was. */
static void read_some(uint64_t from, uint64_t max)
{
	struct message m;
	int fds[2];

	for (uint64_t i = 0; i < max && message_recv(world.theirs, &m, fds, MSG_DONTWAIT) > 0;
	     i++) {
		CHECK_INT(m.item.id, ==, from + world.n_read);
		CHECK_INT(m.type, ==, m.item.id % 2 ? MESSAGE_WINDOW_DONE : MESSAGE_MODULE_GONE);
		world.n_read++;
	}
}

static void on_turn(void *ctx)
{
	read_some(1, 50);
	if (world.n_read == N_MANY)
		loop_exit(world.loop, 0);
}

static void test_slow_sender(void)
{
	begin();
	connect_sender();
	say(1, N_MANY);
	CHECK_INT(loop_add_timer(world.loop, 0, NSEC_PER_MSEC, on_turn, NULL), >=, 0);
	CHECK_INT(loop_run(world.loop), ==, 0);
	CHECK_INT(world.n_read, ==, N_MANY);
	end();
}

static void on_end(void *ctx)
{
	loop_exit(world.loop, 0);
}

/* What one was to hear is none of the next one's business. */
static void test_next_sender(void)
{
	begin();
	say(1, 3);
	connect_sender();
	say(1, N_MANY);
	(void)close(world.ours);
	(void)close(world.theirs);
	connect_sender();
	say(7, 3);
	read_some(7, N_MANY);
	CHECK_INT(world.n_read, ==, 3);
	CHECK_INT(loop_add_timer(world.loop, 100 * NSEC_PER_MSEC, 0, on_end, NULL), >=, 0);
	CHECK_INT(loop_run(world.loop), ==, 0);
	read_some(7, N_MANY);
	CHECK_INT(world.n_read, ==, 3);
	end();
}

/* One that is gone with receipts on their way keeps nobody busy. */
static void test_gone_sender(void)
{
	begin();
	connect_sender();
	say(1, N_MANY);
	(void)close(world.theirs);
	say(N_MANY + 1, 1);
	CHECK_INT(loop_add_timer(world.loop, 100 * NSEC_PER_MSEC, 0, on_end, NULL), >=, 0);
	CHECK_INT(loop_run(world.loop), ==, 0);
	receipts_connect(world.receipts, -EBADF);
	say(1, 3);
	world.theirs = -EBADF;
	end();
}

int main(void)
{
	RUN(test_slow_sender);
	RUN(test_next_sender);
	RUN(test_gone_sender);
	return 0;
}
