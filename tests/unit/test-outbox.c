/* SPDX-License-Identifier: Apache-2.0 */
/* Entries on their way to a receiver that is slow, ends, or never comes: what is sent, in which
 * order, and what makes room. */
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/process/outbox.h"
#include "tests/unit/test.h"
#include "util/clock.h"
#include "util/fdmsg.h"
#include "util/loop.h"

#define N_MANY 600 /* more messages than a socket holds */
#define N_TURN 50  /* fewer than that: each is answered */

static struct {
	struct loop *loop;
	struct outbox *outbox;
	int sock; /* the receiver's */
	uint64_t n_received, last_id, n_dropped, n_forgotten, n_turns_idle;
	uint64_t settle_until; /* of the entries received */
} world;

static int on_send(void *ctx, int sock, struct outbox_entry *e)
{
	struct message m = {.type = MESSAGE_PAYLOAD};

	m.item.id = e->id;
	return message_send(sock, &m, &e->fd, 1);
}

static void on_forget(void *ctx, struct outbox_entry *e)
{
	world.n_forgotten++;
}

static void on_dropped(void *ctx, const struct outbox_entry *e)
{
	world.n_dropped += e->n_samples;
}

static void receive(void)
{
	struct message m;
	int fds[2];

	for (int i = 0; i < N_TURN && message_recv(world.sock, &m, fds, MSG_DONTWAIT) > 0; i++) {
		CHECK_INT(m.type, ==, MESSAGE_PAYLOAD);
		(void)close(fds[0]);
		if (world.n_received++ > 0)
			CHECK_INT(m.item.id, ==, world.last_id + 1);
		world.last_id = m.item.id;
		if (world.n_received > world.settle_until)
			continue;
		m.type = MESSAGE_PAYLOAD_DONE;
		CHECK_INT(message_send(world.sock, &m, NULL, 0), ==, 0);
	}
}

static void begin(uint32_t max_entries, uint64_t max_bytes)
{
	const struct outbox_callbacks callbacks = {.send = on_send,
						   .forget = on_forget,
						   .dropped = on_dropped,
						   .done = MESSAGE_PAYLOAD_DONE};

	memset(&world, 0, sizeof(world));
	world.settle_until = UINT64_MAX;
	CHECK_INT(loop_new(&world.loop), ==, 0);
	CHECK_INT(outbox_new(&world.outbox, world.loop, &callbacks, max_entries, max_bytes), ==, 0);
	(void)alarm(600);
}

static void connect_receiver(void)
{
	int pair[2];

	CHECK_INT(fdmsg_pair(pair, 1), ==, 0);
	world.sock = pair[1];
	world.n_received = 0;
	outbox_connect(world.outbox, pair[0]);
}

static void push(uint64_t bytes, uint64_t n_samples)
{
	int fd = memfd_create("entry", MFD_CLOEXEC);

	CHECK(outbox_push(world.outbox, fd, bytes, n_samples, NULL) != NULL);
}

static void end(void)
{
	outbox_free(world.outbox);
	(void)close(world.sock);
	loop_free(world.loop);
}

static void on_turn(void *ctx)
{
	uint64_t before = world.n_received;

	receive();
	world.n_turns_idle += world.n_received == before;
	if (world.n_forgotten == N_MANY)
		loop_exit(world.loop, 0);
}

/* The socket is full again and again: all come, each once, in order, as they are settled. */
static void test_slow_receiver(void)
{
	begin(N_MANY, UINT64_MAX);
	connect_receiver();
	for (int i = 0; i < N_MANY; i++)
		push(1, 1);
	CHECK(!outbox_all_sent(world.outbox));
	CHECK_INT(loop_add_timer(world.loop, 0, NSEC_PER_MSEC, on_turn, NULL), >=, 0);
	CHECK_INT(loop_run(world.loop), ==, 0);
	CHECK_INT(world.n_received, ==, N_MANY);
	CHECK_INT(world.n_dropped, ==, 0);
	CHECK_INT(world.n_turns_idle, <, 10);
	CHECK(outbox_all_settled(world.outbox));
	end();
}

/* Without a receiver the oldest make room, by number and by bytes. */
static void test_room(void)
{
	begin(3, 100);
	for (uint64_t n = 1; n <= 1000; n *= 10)
		push(10, n);
	CHECK_INT(world.n_dropped, ==, 1);
	push(85, 0);
	CHECK_INT(world.n_dropped, ==, 111);
	push(16, 0);
	CHECK_INT(world.n_dropped, ==, 1111);
	connect_receiver();
	receive();
	CHECK_INT(world.n_received, ==, 1);
	end();
}

/* What the one did not settle comes to the next. */
static void test_next_receiver(void)
{
	begin(10, 100);
	world.settle_until = 0;
	connect_receiver();
	push(1, 1);
	push(1, 1);
	receive();
	CHECK_INT(world.n_received, ==, 2);
	CHECK(outbox_all_sent(world.outbox) && !outbox_all_settled(world.outbox));
	(void)close(world.sock);
	connect_receiver();
	receive();
	CHECK_INT(world.n_received, ==, 2);
	end();
	CHECK_INT(world.n_forgotten, ==, 2);
}

int main(void)
{
	RUN(test_slow_receiver);
	RUN(test_room);
	RUN(test_next_receiver);
	return 0;
}
