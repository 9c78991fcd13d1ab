/* SPDX-License-Identifier: Apache-2.0 */
/* Windows on their way to a symbolizer that may end: what comes again, and what is counted. */
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/profiler/handover.h"
#include "src/profiler/setup.h"
#include "tests/unit/test.h"
#include "util/clock.h"
#include "util/fdmsg.h"
#include "util/loop.h"

#define N_WINDOWS     4 /* of 1, 10, 100 and 1000 samples */
#define N_SYMBOLIZERS 3

static struct {
	struct loop *loop;
	struct handover *handover;
	int sock; /* of the symbolizer */
	uint32_t n_pushed, n_symbolizers;
	uint64_t n_taken[N_SYMBOLIZERS], n_dropped[N_SYMBOLIZERS]; /* samples; as they were told */
	struct sample_place place;
	bool later; /* the first symbolizer starts when all windows are there */
} world;

static int no_descriptor(void *ctx, const struct handover_item *item, struct message *m)
{
	return -1;
}

static bool no_mark(void *ctx, const struct handover_item *item, uint32_t generation, bool sent)
{
	return false;
}

/* The symbolizer settles whatever comes. */
static void on_window(void *ctx, int fd, uint32_t events)
{
	struct message m;
	int fds[2];

	while (message_recv(fd, &m, fds, MSG_DONTWAIT) > 0) {
		CHECK_INT(m.type, ==, MESSAGE_WINDOW);
		(void)close(fds[0]);
		world.n_taken[world.n_symbolizers - 1] += m.window.n_samples;
		world.n_dropped[world.n_symbolizers - 1] = m.window.n_dropped[0];
		CHECK_INT(m.window.end.events[0].samples - m.window.begin.events[0].samples, ==,
			  m.window.n_samples);
		m.type = MESSAGE_WINDOW_DONE;
		CHECK_INT(message_send(fd, &m, NULL, 0), ==, 0);
	}
}

static void end_symbolizer(void)
{
	if (world.n_symbolizers == 0)
		return;
	loop_remove_fd(world.loop, world.sock);
	(void)close(world.sock);
}

static void start_symbolizer(void)
{
	int pair[2];

	world.n_symbolizers++;
	CHECK_INT(fdmsg_pair(pair, 1), ==, 0);
	world.sock = pair[1];
	CHECK_INT(loop_add_fd(world.loop, world.sock, EPOLLIN, on_window, NULL), ==, 0);
	handover_connect(world.handover, pair[0]);
}

/* Two are kept. */
static void push(void)
{
	struct handover_window w = {
		.fd = memfd_create("window", MFD_CLOEXEC), .n_samples = 1, .begin = world.place};

	for (uint32_t i = world.n_pushed++; i > 0; i--)
		w.n_samples *= 10;
	world.place.events[0].samples += w.n_samples;
	w.end = world.place;
	CHECK_INT(ftruncate(w.fd, HANDOVER_MAX_BYTES / 2), ==, 0);
	handover_push(world.handover, &w, NULL, 0);
}

/* One step after the other, each when all is settled. */
static void on_turn(void *ctx)
{
	bool waits = world.later && world.n_symbolizers == 0;

	if (!waits && !handover_settled(world.handover))
		return;
	if (!waits && world.n_symbolizers == 0) {
		start_symbolizer();
	} else if (world.n_pushed < N_WINDOWS) {
		push();
	} else {
		end_symbolizer();
		if (world.n_symbolizers < N_SYMBOLIZERS)
			start_symbolizer();
		else
			loop_exit(world.loop, 0);
	}
}

static void run_world(bool keep_settled, bool later)
{
	const struct handover_callbacks callbacks = {
		.descriptor = no_descriptor, .mark = no_mark, .keep_settled = keep_settled};

	memset(&world, 0, sizeof(world));
	world.later = later;
	CHECK_INT(loop_new(&world.loop), ==, 0);
	CHECK_INT(handover_new(&world.handover, world.loop, &callbacks), ==, 0);
	CHECK_INT(loop_add_timer(world.loop, 0, NSEC_PER_MSEC, on_turn, NULL), >=, 0);
	(void)alarm(600);
	CHECK_INT(loop_run(world.loop), ==, 0);
	handover_free(world.handover);
	loop_free(world.loop);
}

static void test_settled_is_done_with(void)
{
	run_world(false, false);
	CHECK_INT(world.n_taken[0], ==, 1111);
	CHECK_INT(world.n_taken[1], ==, 0);
	CHECK_INT(world.n_dropped[2], ==, 0);
}

/* Not in a capture: what was kept comes again; the rest is lost when its symbolizer ends. */
static void test_settled_of_a_capture(void)
{
	run_world(true, false);
	CHECK_INT(world.n_taken[0], ==, 1111);
	CHECK_INT(world.n_dropped[0], ==, 0);
	CHECK_INT(world.n_taken[1], ==, 1100);
	CHECK_INT(world.n_dropped[1], ==, 11); /* once */
	CHECK_INT(world.n_taken[2], ==, 1100);
	CHECK_INT(world.n_dropped[2], ==, 11);
}

/* Nobody takes them: the oldest go, and are counted. */
static void test_not_settled(void)
{
	run_world(false, true);
	CHECK_INT(world.n_taken[0], ==, 1100);
	CHECK_INT(world.n_dropped[0], ==, 11);
	CHECK_INT(world.n_taken[2], ==, 0);
}

int main(void)
{
	RUN(test_settled_is_done_with);
	RUN(test_settled_of_a_capture);
	RUN(test_not_settled);
	return 0;
}
