/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A supervisor over a table with a kind of which there are several: the order of starts and stops,
 * who is joined to whom, and one that dies alone. The children are this program; what a child says
 * of its neighbours comes from the neighbours themselves, through the sockets between them.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/broker/internal.h"
#include "src/process/statistics.h"
#include "tests/unit/child-loop.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"

#define N_READERS 3 /* of four that there may be */
#define READER	  PEER_PROFILER
#define LATE	  1 /* this one leaves at MESSAGE_FLUSH alone */
#define MAX_INDEX 4

/* ---- The child ---- */

/* Both ends say who they are; the first to come waits for the other. */
static void greet_neighbour(const char *me, int sock, const struct message *m)
{
	struct message told = {.type = MESSAGE_RESULT};
	struct pollfd readable = {.fd = sock, .events = POLLIN};
	char name[64] = "", other[64];

	(void)snprintf(other, sizeof(other),
		       m->peer.peer == READER ? "perfwalk: %s/%u" : "perfwalk: %s",
		       peer_name((enum peer)m->peer.peer), m->peer.index);
	(void)send(sock, me, strlen(me), MSG_NOSIGNAL);
	(void)poll(&readable, 1, -1); /* such sockets do not wait */
	if (recv(sock, name, sizeof(name) - 1, 0) <= 0 || strcmp(name, other) != 0)
		return;
	told.result.code = (int32_t)m->peer.peer;
	told.result.written = m->peer.index;
	(void)message_send(PROTOCOL_CONTROL_FD, &told, NULL, 0);
}

static int child_main(const char *me)
{
	bool stays = strstr(me, peer_name(PEER_FETCHER)) != NULL, late;
	char late_name[64];
	struct message m;
	int fds[2];

	(void)snprintf(late_name, sizeof(late_name), "perfwalk: %s/%d", peer_name(READER), LATE);
	late = strcmp(me, late_name) == 0;
	while (message_recv(PROTOCOL_CONTROL_FD, &m, fds, 0) > 0) {
		if (m.type == MESSAGE_PEER)
			greet_neighbour(me, fds[0], &m);
		if ((m.type == MESSAGE_STOP && !stays && !late) || m.type == MESSAGE_FLUSH)
			return 0;
	}
	return 1;
}

/* ---- The parent ---- */

static struct {
	struct loop *loop;
	struct supervisor *supervisor;
	const struct step *steps; /* ends with NULL */
	struct peer_id started[32], gone[32];
	unsigned int n_started, n_gone, n_wanted, n_left;
	uint32_t left;
	bool killed; /* all, on purpose */
	/* How often the first was told by a neighbour of the second. */
	unsigned int joined[PEER_N][MAX_INDEX][PEER_N][MAX_INDEX];
	pid_t pids[PEER_N][MAX_INDEX];
} world;

static void look(void)
{
	step_on(&world.steps, world.loop);
}

static struct peer_id reader(uint32_t index)
{
	return (struct peer_id){READER, index};
}

static uint32_t count_readers(const void *ctx)
{
	return world.n_wanted;
}

static int set_up(void *ctx, struct peer_id who, int control, int status_fd)
{
	struct message m = {.type = MESSAGE_START};

	CHECK_INT(world.n_started, <, ARRAY_SIZE(world.started));
	world.started[world.n_started++] = who;
	return message_send(control, &m, NULL, 0);
}

/* Started from the last to the first to be stopped, as the broker's are. */
static const struct peer_row rows[] = {
	{.kind = PEER_EXPORTER,
	 .max = 1,
	 .stops_after = PEER_BIT(PEER_SYMBOLIZER),
	 .set_up = set_up},
	{.kind = PEER_FETCHER, .max = 1, .is_optional = true, .set_up = set_up},
	{.kind = PEER_SYMBOLIZER,
	 .max = 1,
	 .feeds = PEER_BIT(PEER_EXPORTER),
	 .stops_after = PEER_BIT(READER),
	 .set_up = set_up},
	{.kind = READER,
	 .max = MAX_INDEX,
	 .count = count_readers,
	 .feeds = PEER_BIT(PEER_SYMBOLIZER),
	 .set_up = set_up},
};

static void on_message(void *ctx, struct peer_id who, const struct message *m)
{
	CHECK_INT(m->result.code, <, PEER_N);
	CHECK_INT(m->result.written, <, MAX_INDEX);
	world.joined[who.kind][who.index][m->result.code][m->result.written]++;
	look();
}

static void on_gone(void *ctx, struct peer_id who, bool clean)
{
	CHECK_INT(world.n_gone, <, ARRAY_SIZE(world.gone));
	CHECK(clean || world.killed);
	world.gone[world.n_gone++] = who;
	look();
}

static void on_left(void *ctx, uint32_t kinds)
{
	world.left = kinds;
	world.n_left++;
	look();
}

static void on_signal(void *ctx, int fd, uint32_t events)
{
	struct signalfd_siginfo info;

	while (read(fd, &info, sizeof(info)) > 0)
		supervisor_reap(world.supervisor);
	look();
}

static void on_watch_timer(void *ctx)
{
	look();
}

/* Runs through the steps, beginning with the start of all. */
static void run(const struct step *steps)
{
	const struct supervisor_callbacks callbacks = {
		.message = on_message, .gone = on_gone, .left = on_left};
	int fd;

	memset(&world, 0, sizeof(world));
	world.steps = steps;
	world.n_wanted = N_READERS;
	fd = child_loop_new(&world.loop, on_signal);
	CHECK_INT(loop_add_timer(world.loop, 10 * NSEC_PER_MSEC, 10 * NSEC_PER_MSEC, on_watch_timer,
				 NULL),
		  >=, 0);
	CHECK_INT(supervisor_new(&world.supervisor, world.loop, rows, ARRAY_SIZE(rows), &callbacks,
				 60 * NSEC_PER_SEC),
		  ==, 0);
	CHECK_INT(supervisor_start_kinds(world.supervisor, UINT32_MAX), ==, 0);
	CHECK_INT(loop_run(world.loop), ==, 0);
	world.supervisor = supervisor_free(world.supervisor);
	world.loop = loop_free(world.loop);
	(void)close(fd);
}

static bool is(struct peer_id who, enum peer kind, uint32_t index)
{
	return who.kind == kind && who.index == index;
}

/* As often as each side of a pair names the other. */
static unsigned int n_joined(enum peer a, uint32_t i, enum peer b, uint32_t j)
{
	unsigned int there = world.joined[a][i][b][j], back = world.joined[b][j][a][i];

	return there < back ? there : back;
}

static bool all_are_joined(void)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < N_READERS; i++)
		n += n_joined(READER, i, PEER_SYMBOLIZER, 0) == 1;
	return n == N_READERS && n_joined(PEER_SYMBOLIZER, 0, PEER_EXPORTER, 0) == 1;
}

static unsigned int n_joints(void)
{
	const unsigned int *all = &world.joined[0][0][0][0];
	unsigned int n = 0;

	for (size_t i = 0; i < sizeof(world.joined) / sizeof(*all); i++)
		n += all[i];
	return n;
}

/* ---- Starts ---- */

static void check_starts(void)
{
	struct supervisor *s = world.supervisor;
	char path[64], title[64] = "";
	FILE *f;

	CHECK_INT(world.n_started, ==, 3 + N_READERS);
	CHECK(is(world.started[0], PEER_EXPORTER, 0));
	CHECK(is(world.started[1], PEER_FETCHER, 0));
	CHECK(is(world.started[2], PEER_SYMBOLIZER, 0));
	for (uint32_t i = 0; i < N_READERS; i++)
		CHECK(is(world.started[3 + i], READER, i));
	/* Each pair was told once on either side, and nobody is joined to anybody else. */
	CHECK_INT(n_joints(), ==, 2 * (N_READERS + 1));
	CHECK_STR(supervisor_name(s, peer_only(PEER_EXPORTER)), "exporter");
	CHECK_STR(supervisor_name(s, reader(2)), "profiler/2");
	(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)supervisor_pid(s, reader(2)));
	f = fopen(path, "re");
	CHECK(f && fgets(title, sizeof(title), f));
	(void)fclose(f);
	CHECK_STR(title, "perfwalk: profiler/2");
	CHECK(supervisor_wanted(s, reader(2)) && !supervisor_wanted(s, reader(3)));
	CHECK(!supervisor_running(s, reader(3)));
	CHECK_INT(supervisor_start(s, reader(MAX_INDEX)), ==, -EINVAL);
	CHECK_INT(supervisor_start(s, peer_only(PEER_METRICS)), ==, -EINVAL);
}

static void want_one_more(void)
{
	check_starts();
	world.n_wanted++;
	CHECK_INT(supervisor_start_kinds(world.supervisor, PEER_BIT(READER)), ==, 0);
}

static bool the_fourth_is_joined(void)
{
	return n_joined(READER, 3, PEER_SYMBOLIZER, 0) == 1;
}

static void check_the_fourth(void)
{
	CHECK_INT(world.n_started, ==, 4 + N_READERS);
	CHECK(is(world.started[3 + N_READERS], READER, 3));
	CHECK_INT(n_joints(), ==, 2 * (N_READERS + 2));
}

static void test_starts_in_the_order_of_the_table(void)
{
	static const struct step steps[] = {
		{all_are_joined, want_one_more},
		{the_fourth_is_joined, check_the_fourth},
		{NULL, NULL},
	};

	run(steps);
}

/* ---- One dies alone ---- */

static void kill_one(void)
{
	struct peer_id who;

	for (uint32_t at = 0; supervisor_next(world.supervisor, &at, &who);)
		world.pids[who.kind][who.index] = supervisor_pid(world.supervisor, who);
	(void)kill(supervisor_pid(world.supervisor, reader(1)), SIGKILL);
}

static bool the_second_is_back(void)
{
	return n_joined(READER, 1, PEER_SYMBOLIZER, 0) == 2;
}

static void check_the_others(void)
{
	struct peer_id who;

	for (uint32_t at = 0; supervisor_next(world.supervisor, &at, &who);) {
		/* The new one may have the number of the old one. */
		if (!is(who, READER, 1))
			CHECK_INT(supervisor_pid(world.supervisor, who), ==,
				  world.pids[who.kind][who.index]);
		CHECK_INT(supervisor_starts(world.supervisor, who), ==,
			  is(who, READER, 3) ? 0 : 1 + is(who, READER, 1));
	}
	CHECK_INT(n_joints(), ==, 2 * (N_READERS + 2));
}

static void check_and_restart(void)
{
	check_the_others();
	supervisor_restart(world.supervisor, reader(2));
}

static bool the_third_is_back(void)
{
	return n_joined(READER, 2, PEER_SYMBOLIZER, 0) == 2;
}

static void check_the_third(void)
{
	CHECK_INT(supervisor_starts(world.supervisor, reader(0)), ==, 1);
	CHECK_INT(supervisor_starts(world.supervisor, reader(1)), ==, 2);
	CHECK_INT(supervisor_starts(world.supervisor, reader(2)), ==, 2);
	CHECK_INT(world.n_gone, ==, 0);
}

static void test_one_index_dies_alone(void)
{
	static const struct step steps[] = {
		{all_are_joined, kill_one},
		{the_second_is_back, check_and_restart},
		{the_third_is_back, check_the_third},
		{NULL, NULL},
	};

	run(steps);
}

/* ---- Stops ---- */

static void leave(void)
{
	supervisor_leave(world.supervisor, UINT32_MAX);
}

static bool all_but_one_are_gone(void)
{
	return world.n_gone == N_READERS - 1;
}

/* While one is there nobody behind it is asked; and who dies before its turn is started again. */
static void kill_one_that_waits(void)
{
	struct supervisor *s = world.supervisor;

	for (uint32_t i = 0; i < world.n_gone; i++)
		CHECK(world.gone[i].kind == READER && world.gone[i].index != LATE);
	CHECK(supervisor_stopping(s, reader(LATE)));
	CHECK(!supervisor_stopping(s, peer_only(PEER_SYMBOLIZER)));
	CHECK(!supervisor_stopping(s, peer_only(PEER_EXPORTER)));
	CHECK(supervisor_stopping(s, peer_only(PEER_FETCHER)));
	(void)kill(supervisor_pid(s, peer_only(PEER_EXPORTER)), SIGKILL);
}

static bool it_is_back(void)
{
	return supervisor_starts(world.supervisor, peer_only(PEER_EXPORTER)) == 2;
}

static void let_the_late_one_go(void)
{
	const struct message m = {.type = MESSAGE_FLUSH};

	CHECK_INT(world.n_left, ==, 0);
	CHECK_INT(supervisor_send(world.supervisor, reader(LATE), &m, NULL, 0), ==, 0);
}

static bool all_have_left(void)
{
	return world.n_left > 0;
}

static void check_stops(void)
{
	CHECK_INT(world.n_gone, ==, N_READERS + 2);
	CHECK(is(world.gone[N_READERS - 1], READER, LATE));
	CHECK(is(world.gone[N_READERS], PEER_SYMBOLIZER, 0));
	CHECK(is(world.gone[N_READERS + 1], PEER_EXPORTER, 0));
	CHECK_INT(world.left, ==, UINT32_MAX);
	/* It does not listen, and nobody waits for it. */
	CHECK(supervisor_running(world.supervisor, peer_only(PEER_FETCHER)));
	/* Nobody comes back. */
	for (uint32_t i = 0; i < N_READERS; i++)
		CHECK_INT(supervisor_starts(world.supervisor, reader(i)), ==, 1);
}

static void test_stops_in_the_order_of_the_table(void)
{
	static const struct step steps[] = {
		{all_are_joined, leave},
		{all_but_one_are_gone, kill_one_that_waits},
		{it_is_back, let_the_late_one_go},
		{all_have_left, check_stops},
		{NULL, NULL},
	};

	run(steps);
}

static void leave_for_a_moment(void)
{
	const struct message m = {.type = MESSAGE_FLUSH};

	supervisor_leave(world.supervisor, PEER_BIT(READER));
	CHECK_INT(supervisor_send(world.supervisor, reader(LATE), &m, NULL, 0), ==, 0);
}

static void come_back(void)
{
	CHECK_INT(world.left, ==, PEER_BIT(READER));
	CHECK_INT(world.n_gone, ==, N_READERS);
	CHECK(supervisor_running(world.supervisor, peer_only(PEER_SYMBOLIZER)));
	CHECK_INT(supervisor_start_kinds(world.supervisor, world.left), ==, 0);
}

static bool all_are_joined_again(void)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < N_READERS; i++)
		n += n_joined(READER, i, PEER_SYMBOLIZER, 0) == 2;
	return n == N_READERS;
}

static void check_and_kill_all(void)
{
	CHECK_INT(supervisor_starts(world.supervisor, peer_only(PEER_SYMBOLIZER)), ==, 1);
	world.n_left = 0;
	world.killed = true;
	supervisor_kill_all(world.supervisor);
}

static void check_nobody(void)
{
	struct peer_id who;

	for (uint32_t at = 0; supervisor_next(world.supervisor, &at, &who);)
		CHECK(who.kind == PEER_FETCHER || !supervisor_running(world.supervisor, who));
}

/* As for a reload: one kind leaves and comes back. Then as for the second Ctrl-C. */
static void test_one_kind_leaves(void)
{
	static const struct step steps[] = {
		{all_are_joined, leave_for_a_moment},
		{all_have_left, come_back},
		{all_are_joined_again, check_and_kill_all},
		{all_have_left, check_nobody},
		{NULL, NULL},
	};

	run(steps);
}

/* ---- What the broker says of them ---- */

static void check_status(void)
{
	static struct broker broker;
	static struct config config;
	char *text = NULL, line[64];
	struct statistics s;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	broker.supervisor = world.supervisor;
	broker.options.config = &config;
	statistics_collect(&broker, &s);
	CHECK_INT(s.n_processes, ==, 3 + N_READERS + 1);
	for (uint32_t i = 0; i < N_READERS; i++) {
		(void)snprintf(line, sizeof(line), "profiler/%u", i);
		CHECK_STR(s.processes[i].name, line);
		CHECK_INT(s.processes[i].pid, ==, supervisor_pid(world.supervisor, reader(i)));
		CHECK(s.processes[i].wanted && s.processes[i].starts == 1);
	}
	CHECK_STR(s.processes[s.n_processes - 1].name, "broker");
	CHECK_INT(s.processes[s.n_processes - 1].pid, ==, getpid());
	broker_print_status(&broker, out);
	CHECK_INT(fclose(out), ==, 0);
	for (uint32_t i = 0; i < N_READERS; i++) {
		(void)snprintf(line, sizeof(line), "\nprofiler/%u.pid %d\n", i,
			       (int)supervisor_pid(world.supervisor, reader(i)));
		CHECK(strstr(text, line));
	}
	CHECK(strstr(text, "\nexporter.pid ") && !strstr(text, "\nexporter/"));
	free(text);
}

static void test_the_status_names_each(void)
{
	static const struct step steps[] = {
		{all_are_joined, check_status},
		{NULL, NULL},
	};

	run(steps);
}

static void test_too_many(void)
{
	const struct peer_row many = {
		.kind = READER, .max = SUPERVISOR_MAX_CHILDREN + 1, .set_up = set_up};
	const struct supervisor_callbacks callbacks = {.gone = on_gone};
	struct supervisor *s = NULL;
	struct loop *loop;

	CHECK_INT(loop_new(&loop), ==, 0);
	CHECK_INT(supervisor_new(&s, loop, &many, 1, &callbacks, 1), ==, -E2BIG);
	CHECK(!s);
	(void)loop_free(loop);
}

int main(int argc, char **argv)
{
	if (argc == 1 && strncmp(argv[0], "perfwalk: ", 10) == 0)
		return child_main(argv[0]);
	/* That one was killed is what is wanted. */
	log_set_level(LOG_LEVEL_ERROR);
	RUN(test_starts_in_the_order_of_the_table);
	RUN(test_one_index_dies_alone);
	RUN(test_stops_in_the_order_of_the_table);
	RUN(test_one_kind_leaves);
	RUN(test_the_status_names_each);
	RUN(test_too_many);
	return 0;
}
