/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes are asked for what, with the real opener behind the questions. */
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/opener/opener.h"
#include "src/profiler/process-said.h"
#include "tests/unit/context-publisher.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"
#include "util/clock.h"

static volatile uint32_t wanted; /* by the last question */
static struct ask ask;
static pid_t silent;

static void *answer(void *ctx)
{
	const int *sock = ctx;
	struct message m, a;
	int fds[2];

	while (message_recv(*sock, &m, fds, 0) > 0) {
		int fd = opener_context(&m);

		wanted = m.ask_context.wanted;
		a = (struct message){.type = MESSAGE_ANSWER, .seq = m.seq};
		a.answer.error = fd < 0 ? fd : 0;
		(void)message_send(*sock, &a, &fd, fd >= 0);
		(void)close_fd(fd);
	}
	return NULL;
}

static pid_t start_silent(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)execlp("env", "env", "-i", "sleep", "1000", NULL);
		_exit(127);
	}
	return pid;
}

/* What is asked of a process that is as old as that; of unknown age: 0. */
static uint32_t look(struct sayings *of, struct process_said *s, pid_t pid, char *program,
		     uint64_t age_ns, uint64_t now_ns)
{
	struct host_process p = {.pid = (uint32_t)pid, .executable_path = program};

	if (age_ns)
		p.start_time_ns = clock_get_ns(CLOCK_BOOTTIME) - age_ns;
	wanted = 0;
	process_said_look(s, of, &p, false, now_ns);
	return wanted;
}

static void test_silent_programs(void)
{
	static char program[] = "/bin/silent", other[] = "/bin/other";
	const uint64_t age = 600 * NSEC_PER_MSEC, second = NSEC_PER_SEC;
	const uint32_t all = CONTEXT_WANTED | ENVIRONMENT_WANTED;
	struct sayings of = {.ask = &ask};
	struct process_said s = {.text = NULL};

	CHECK_INT(look(&of, &s, silent, program, age / 2, second), ==, 0);
	for (int i = 0; i < 8; i++) {
		s = (struct process_said){.text = NULL};
		CHECK_INT(look(&of, &s, silent, program, age, second), ==, all);
		CHECK_INT(look(&of, &s, silent, program, age, second), ==, 0);
	}
	/* What it says in its environment is not put off. */
	s = (struct process_said){.text = NULL};
	CHECK_INT(look(&of, &s, silent, program, age, second), ==, ENVIRONMENT_WANTED);
	CHECK_INT(look(&of, &s, silent, program, age + second, 2 * second), ==, 0);
	CHECK_INT(look(&of, &s, silent, program, age + 2 * second, 3 * second), ==, CONTEXT_WANTED);
	/* An old one is asked at once, and those of other programs. */
	s = (struct process_said){.text = NULL};
	CHECK_INT(look(&of, &s, silent, program, 3 * second, second), ==, all);
	s = (struct process_said){.text = NULL};
	CHECK_INT(look(&of, &s, silent, other, age, second), ==, all);
}

/* One that publishes speaks for those after it. */
static void test_a_program_that_speaks(void)
{
	static char program[] = "/bin/speaks";
	static const char payload[] = "";
	struct published_header *header = published_map(1);
	struct sayings of = {.ask = &ask};
	struct process_said s;

	CHECK(header);
	published_set(header, payload, 0, 77);
	for (int i = 0; i < 9; i++) {
		s = (struct process_said){.text = NULL};
		(void)look(&of, &s, silent, program, 600 * NSEC_PER_MSEC, NSEC_PER_SEC);
	}
	CHECK_INT(wanted, ==, ENVIRONMENT_WANTED);
	s = (struct process_said){.text = NULL};
	CHECK_INT(look(&of, &s, getpid(), program, 0, NSEC_PER_SEC), ==,
		  CONTEXT_WANTED | ENVIRONMENT_WANTED);
	CHECK_INT(s.published_ns, ==, 77);
	process_said_deinit(&s, &of);
	s = (struct process_said){.text = NULL};
	CHECK_INT(look(&of, &s, silent, program, 600 * NSEC_PER_MSEC, NSEC_PER_SEC), ==,
		  CONTEXT_WANTED | ENVIRONMENT_WANTED);
	CHECK_INT(munmap(header, PUBLISHED_BYTES), ==, 0);
}

int main(void)
{
	pthread_t thread;
	int ends[2];

	silent = start_silent();
	CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), ==, 0);
	CHECK_INT(pthread_create(&thread, NULL, answer, &ends[1]), ==, 0);
	ask.sock = ends[0];
	RUN(test_silent_programs);
	RUN(test_a_program_that_speaks);
	(void)close(ends[0]);
	CHECK_INT(pthread_join(thread, NULL), ==, 0);
	(void)close(ends[1]);
	(void)kill(silent, SIGKILL);
	CHECK_INT(waitpid(silent, NULL, 0), ==, silent);
	return 0;
}
