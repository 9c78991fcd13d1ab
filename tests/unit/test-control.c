/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of the control socket that speak in time, too late, and not at all. */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/broker/control.h"
#include "tests/unit/test.h"
#include "util/clock.h"
#include "util/loop.h"

enum { LATE_MS = 2100 }; /* longer than a client may take to speak */

static struct {
	char directory[32];
	struct sockaddr_un address;
	struct loop *loop;
	struct control *control;
} world;

static int on_command(void *ctx, const char *name, bool *begun, FILE *answer, char *error,
		      size_t n_error)
{
	(void)fprintf(answer, "command %s\n", name);
	return 0;
}

static void begin(void)
{
	const struct control_callbacks callbacks = {.command = on_command};
	char error[200] = "";

	memset(&world, 0, sizeof(world));
	(void)snprintf(world.directory, sizeof(world.directory), "/tmp/test-control-XXXXXX");
	CHECK(mkdtemp(world.directory) != NULL);
	world.address.sun_family = AF_UNIX;
	(void)snprintf(world.address.sun_path, sizeof(world.address.sun_path), "%s/socket",
		       world.directory);
	CHECK_INT(loop_new(&world.loop), ==, 0);
	CHECK_INT(control_new(&world.control, world.loop, world.address.sun_path, (uid_t)-1,
			      (gid_t)-1, &callbacks, error, sizeof(error)),
		  ==, 0);
	(void)alarm(600);
}

static void end(void)
{
	control_free(world.control);
	loop_free(world.loop);
	CHECK_INT(rmdir(world.directory), ==, 0);
}

static int client(const char *line)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK_INT(connect(fd, (const struct sockaddr *)&world.address, sizeof(world.address)), ==,
		  0);
	CHECK_INT(write(fd, line, strlen(line)), ==, (int64_t)strlen(line));
	return fd;
}

static void on_end(void *ctx)
{
	loop_exit(world.loop, 0);
}

static void run(uint64_t ms)
{
	CHECK_INT(loop_add_timer(world.loop, ms * NSEC_PER_MSEC, 0, on_end, NULL), >=, 0);
	CHECK_INT(loop_run(world.loop), ==, 0);
}

/* "": it was disconnected without one. */
static void check_answer(int fd, const char *expected)
{
	char text[200];
	size_t n = 0;
	ssize_t got;

	while ((got = recv(fd, text + n, sizeof(text) - 1 - n, MSG_DONTWAIT)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	CHECK_INT(got, ==, 0);
	CHECK_STR(text, expected);
	(void)close(fd);
}

static void test_clients(void)
{
	int speaks, says_half, silent;

	begin();
	speaks = client("status\n");
	says_half = client("sta");
	silent = client("");
	run(LATE_MS);
	check_answer(speaks, "command status\nok\n");
	check_answer(says_half, "");
	check_answer(silent, "");
	end();
}

/* Other work, which comes between a connection and what is said there. */
static void on_work(void *ctx, int fd, uint32_t events)
{
	(void)usleep(LATE_MS * 1000);
	loop_remove_fd(world.loop, fd);
}

static void test_a_busy_broker(void)
{
	int work, speaks;

	begin();
	work = eventfd(0, EFD_CLOEXEC);
	CHECK_INT(loop_add_fd(world.loop, work, EPOLLIN, on_work, NULL), ==, 0);
	speaks = client("status\n");
	CHECK_INT(eventfd_write(work, 1), ==, 0);
	run(LATE_MS + 100);
	check_answer(speaks, "command status\nok\n");
	(void)close(work);
	end();
}

int main(void)
{
	RUN(test_clients);
	RUN(test_a_busy_broker);
	return 0;
}
