/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes are asked for what, with the real opener behind the questions. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/opener/opener.h"
#include "src/process/ask.h"
#include "src/profiler/outside.h"
#include "src/profiler/process-said.h"
#include "tests/unit/context-publisher.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"
#include "util/clock.h"

enum question { NO_QUESTION, CONTEXT_ALONE, ALL_IT_SAYS };
static volatile enum question asked; /* last */
static volatile bool gives_maps;
static struct ask ask;
static struct outside outside = {.ask = &ask};
static pid_t silent;
/* When all is asked, a process begins to write it. NULL: none does. */
static struct published_header *volatile torn_at_all;
/* Does what a byte says, and answers. */
static struct {
	pid_t pid;
	int to, from;
} mapper;
enum order { MAP = 'm', UNMAP = 'u', MAP_MUCH = 'M', PUBLISH = 'p', TEAR = 't' };
static struct sayings of = {.outside = &outside};

static void *answer(void *ctx)
{
	const int *sock = ctx;
	struct message m, a;
	int fds[2];

	while (message_recv(*sock, &m, fds, 0) > 0) {
		int fd;

		if (torn_at_all && m.type == MESSAGE_ASK_CONTEXT && m.ask_context.environment)
			torn_at_all->published_ns = 0;
		if (m.type == MESSAGE_ASK_RESIDENT)
			fd = opener_resident(m.ask_pid.pid);
		else if (m.type == MESSAGE_ASK_MAPS)
			fd = gives_maps ? opener_maps(m.ask_pid.pid, false) : -EACCES;
		else
			fd = opener_context(&m);
		if (m.type == MESSAGE_ASK_CONTEXT)
			asked = m.ask_context.environment ? ALL_IT_SAYS : CONTEXT_ALONE;
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

static void obey(char c)
{
	static void *last;
	static struct published_header *h;

	if (c == UNMAP) {
		(void)munmap(last, 4096);
		return;
	}
	if (c == PUBLISH || c == TEAR) {
		h = h ? h : published_map(1);
		if (h)
			published_set(h, "", 0, c == TEAR ? 0 : 7);
		return;
	}
	/* Neighbours of other rights are mappings of their own. */
	for (int i = 0; i < (c == MAP_MUCH ? 8000 : 1); i++)
		last = mmap(NULL, 4096, i % 2 ? PROT_NONE : PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
}

static void start_mapper(void)
{
	int to[2], from[2];
	char c;

	CHECK_INT(pipe2(to, O_CLOEXEC), ==, 0);
	CHECK_INT(pipe2(from, O_CLOEXEC), ==, 0);
	mapper.pid = fork();
	while (mapper.pid == 0) {
		if (read(to[0], &c, 1) != 1)
			_exit(0);
		obey(c);
		(void)!write(from[1], &c, 1);
	}
	mapper.to = to[1];
	mapper.from = from[0];
	(void)close(to[0]);
	(void)close(from[1]);
}

static void end_mapper(void)
{
	(void)kill(mapper.pid, SIGKILL);
	CHECK_INT(waitpid(mapper.pid, NULL, 0), ==, mapper.pid);
	(void)close(mapper.to);
	(void)close(mapper.from);
}

static void order(char c)
{
	CHECK_INT(write(mapper.to, &c, 1), ==, 1);
	CHECK_INT(read(mapper.from, &c, 1), ==, 1);
}

static void map_a_page(void)
{
	order(MAP);
}

/* What is asked of a process with so many mappings that is as old as that; 0: nobody knows. */
static enum question look(struct process_said *s, pid_t pid, uint32_t n_mappings, uint64_t age_ns,
			  uint64_t now_ns)
{
	static char program[] = "/bin/program";
	struct host_process p = {
		.pid = (uint32_t)pid, .executable_path = program, .n_mappings = n_mappings};

	/* Of oneself the start must be right. */
	if (pid != getpid() && age_ns)
		p.start_time_ns = clock_get_ns(CLOCK_BOOTTIME) - age_ns;
	asked = NO_QUESTION;
	process_said_look(s, &of, &p, false, now_ns);
	return asked;
}

/* Less and less often, after 4, 8, 16 ... seconds, while it maps something. */
static void test_silent_process(void)
{
	const uint64_t second = NSEC_PER_SEC, age = 600 * NSEC_PER_MSEC;
	struct process_said s = {.text = NULL};
	uint64_t now = second;

	of.interval_ns = 5 * second;
	CHECK_INT(look(&s, mapper.pid, 1, age / 2, now), ==, NO_QUESTION);
	now += second;
	CHECK_INT(look(&s, mapper.pid, 1, age, now), ==, ALL_IT_SAYS);
	for (uint64_t delay = 4 * second; delay <= 32 * second; delay *= 2) {
		map_a_page();
		CHECK_INT(look(&s, mapper.pid, 1, age, now + delay - 1), ==, NO_QUESTION);
		now += delay;
		CHECK_INT(look(&s, mapper.pid, 1, age, now), ==, CONTEXT_ALONE);
	}
	process_said_deinit(&s, &of);
	of.interval_ns = 0;
}

/* A process whose size is the same is asked once a minute if samples pay, else after ten, and soon
 * when its size is another. */
static void test_process_that_stays(void)
{
	const uint64_t second = NSEC_PER_SEC, age = 600 * NSEC_PER_MSEC;
	struct process_said s = {.text = NULL};
	uint64_t now = second;

	of.interval_ns = 5 * second;
	CHECK_INT(look(&s, mapper.pid, 10, age, now), ==, ALL_IT_SAYS);
	CHECK_INT(look(&s, mapper.pid, 10, age, now += 4 * second), ==, CONTEXT_ALONE);
	CHECK_INT(of.n_sizes, ==, 0);
	CHECK_INT(look(&s, mapper.pid, 10, age, now += 8 * second), ==, CONTEXT_ALONE);
	CHECK_INT(of.n_sizes, ==, 1);
	for (int i = 1; i < 60; i++)
		CHECK_INT(look(&s, mapper.pid, 10, age, now + (uint64_t)i * second), ==,
			  NO_QUESTION);
	/* Nothing says that it has mapped something, so samples must pay: 128, and 4 for each
	 * mapping. */
	of.n_samples = 166;
	CHECK_INT(look(&s, mapper.pid, 10, age, now += 62 * second), ==, NO_QUESTION);
	CHECK_INT(look(&s, mapper.pid, 10, age, now + 5 * second - 1), ==, CONTEXT_ALONE);
	CHECK_INT(of.n_samples, ==, 0);
	now += 5 * second;
	CHECK_INT(look(&s, mapper.pid, 10, age, now += 540 * second), ==, NO_QUESTION);
	CHECK_INT(look(&s, mapper.pid, 10, age, now += 61 * second), ==, CONTEXT_ALONE);
	of.n_samples = 1000;
	CHECK_INT(look(&s, mapper.pid, 10, age, now += 5 * second), ==, NO_QUESTION);
	CHECK_INT(of.n_samples, ==, 1001);
	map_a_page();
	CHECK_INT(look(&s, mapper.pid, 10, age, now + 4 * second), ==, NO_QUESTION);
	CHECK_INT(look(&s, mapper.pid, 10, age, now + 5 * second), ==, CONTEXT_ALONE);
	process_said_deinit(&s, &of);
	CHECK_INT(of.n_sizes, ==, 0);
	of.interval_ns = 0;
	of.n_samples = 0;
}

/* Asked so often that its next turn is half a minute away; its size is kept. */
static uint64_t let_rest(struct process_said *s, uint64_t now_ns)
{
	const uint64_t second = NSEC_PER_SEC, age = 600 * NSEC_PER_MSEC;

	CHECK_INT(look(s, mapper.pid, 10, age, now_ns), ==, ALL_IT_SAYS);
	for (uint64_t delay = 4 * second; delay <= 16 * second; delay *= 2) {
		map_a_page();
		CHECK_INT(look(s, mapper.pid, 10, age, now_ns += delay), ==, CONTEXT_ALONE);
	}
	return now_ns;
}

/* No samples pay: one that has stood and maps something is asked, one that always does is not. */
static void test_size_that_stood(void)
{
	const uint64_t second = NSEC_PER_SEC, age = 600 * NSEC_PER_MSEC;
	struct process_said s = {.text = NULL}, busy = {.text = NULL};
	uint64_t now = let_rest(&s, second);

	(void)let_rest(&busy, second);
	of.interval_ns = 5 * second;
	of.next_free_ns = of.n_samples = 0;
	map_a_page();
	CHECK_INT(look(&s, mapper.pid, 10, age, now + 5 * second), ==, NO_QUESTION);
	map_a_page();
	CHECK_INT(look(&s, mapper.pid, 10, age, now + 10 * second), ==, NO_QUESTION);
	CHECK_INT(look(&busy, mapper.pid, 10, age, now + 10 * second), ==, NO_QUESTION);
	CHECK_INT(look(&s, mapper.pid, 10, age, now + 15 * second), ==, NO_QUESTION);
	map_a_page();
	CHECK_INT(look(&s, mapper.pid, 10, age, now + 20 * second - 1), ==, NO_QUESTION);
	CHECK_INT(look(&s, mapper.pid, 10, age, now + 20 * second), ==, CONTEXT_ALONE);
	CHECK_INT(look(&busy, mapper.pid, 10, age, now + 20 * second), ==, NO_QUESTION);
	map_a_page();
	CHECK_INT(look(&s, mapper.pid, 10, age, now + 25 * second), ==, NO_QUESTION);
	process_said_deinit(&s, &of);
	process_said_deinit(&busy, &of);
	of.interval_ns = 0;
	of.n_samples = 0;
}

/* Samples that would pay for others do so for it first. */
static void test_size_that_stood_is_paid(void)
{
	const uint64_t second = NSEC_PER_SEC, age = 600 * NSEC_PER_MSEC;
	struct process_said s = {.text = NULL};
	uint64_t now = let_rest(&s, second);

	of.interval_ns = 5 * second;
	of.next_free_ns = of.n_samples = 0;
	for (int i = 1; i <= 2; i++)
		CHECK_INT(look(&s, mapper.pid, 10, age, now + 5 * (uint64_t)i * second), ==,
			  NO_QUESTION);
	map_a_page();
	of.n_samples = 200;
	CHECK_INT(look(&s, mapper.pid, 10, age, now + 15 * second), ==, CONTEXT_ALONE);
	CHECK_INT(of.n_samples, ==, 201 - (128 + 4 * 10));
	CHECK_INT(of.next_free_ns, ==, 0);
	process_said_deinit(&s, &of);
	of.interval_ns = 0;
	of.n_samples = 0;
}

/* Of many that do so at once, five a second are asked; the others then. */
static void test_sizes_that_stood(void)
{
	const uint64_t second = NSEC_PER_SEC, age = 600 * NSEC_PER_MSEC;
	struct process_said s[4] = {{.text = NULL}};
	uint64_t now = 0;

	for (int i = 0; i < 4; i++)
		now = let_rest(&s[i], second);
	of.interval_ns = 5 * second;
	of.next_free_ns = of.n_samples = 0;
	for (int i = 0; i < 8; i++)
		CHECK_INT(look(&s[i % 4], mapper.pid, 10, age,
			       now + (uint64_t)(i < 4 ? 5 : 10) * second),
			  ==, NO_QUESTION);
	map_a_page();
	now += 15 * second;
	for (int i = 0; i < 4; i++, now += 200 * NSEC_PER_MSEC) {
		CHECK_INT(look(&s[i], mapper.pid, 10, age, now), ==, CONTEXT_ALONE);
		for (int k = i + 1; k < 4; k++)
			CHECK_INT(look(&s[k], mapper.pid, 10, age, now + 199 * NSEC_PER_MSEC), ==,
				  NO_QUESTION);
	}
	for (int i = 0; i < 4; i++)
		process_said_deinit(&s[i], &of);
	of.interval_ns = 0;
	of.n_samples = 0;
}

/* Its list of mappings stays open from its fourth look on, when its size is another again. */
static uint64_t let_maps_open(struct process_said *s, uint64_t now_ns)
{
	const uint64_t second = NSEC_PER_SEC, age = 600 * NSEC_PER_MSEC;

	CHECK_INT(look(s, mapper.pid, 10, age, now_ns), ==, ALL_IT_SAYS);
	for (uint64_t delay = 4 * second; delay <= 8 * second; delay *= 2) {
		map_a_page();
		CHECK_INT(look(s, mapper.pid, 10, age, now_ns += delay), ==, CONTEXT_ALONE);
		CHECK_INT(s->maps.open, ==, 0);
	}
	map_a_page();
	CHECK_INT(look(s, mapper.pid, 10, age, now_ns += 16 * second), ==, NO_QUESTION);
	CHECK_INT(s->asked_ns, ==, now_ns);
	CHECK_INT(s->maps.open, ==, 1);
	return now_ns;
}

/* One whose size changes is asked when its list has a context, and no more. Samples pay for such a
 * look, too: less. */
static void test_maps_instead_of_questions(void)
{
	const uint64_t second = NSEC_PER_SEC, age = 600 * NSEC_PER_MSEC;
	struct process_said s = {.text = NULL};
	uint64_t now, price;

	end_mapper();
	start_mapper();
	gives_maps = true;
	of.interval_ns = 5 * second;
	now = let_maps_open(&s, second);
	price = 16 + s.maps.n_bytes / 96;
	CHECK_INT(s.maps.n_bytes, >, 0);
	map_a_page();
	of.n_samples = price - 2;
	of.next_free_ns = now + 60 * second;
	CHECK_INT(look(&s, mapper.pid, 10, age, now + 5 * second), ==, NO_QUESTION);
	CHECK_INT(s.asked_ns, ==, now);
	CHECK_INT(look(&s, mapper.pid, 10, age, now += 6 * second), ==, NO_QUESTION);
	CHECK_INT(s.asked_ns, ==, now);
	CHECK_INT(of.n_samples, ==, 0);
	order(PUBLISH);
	of.n_samples = price;
	CHECK_INT(look(&s, mapper.pid, 10, 0, now += 5 * second), ==, ALL_IT_SAYS);
	CHECK_INT(s.published_ns, ==, 7);
	/* What it says now, the list does not show. */
	CHECK_INT(look(&s, mapper.pid, 10, 0, now + 5 * second), ==, CONTEXT_ALONE);
	process_said_deinit(&s, &of);
	CHECK_INT(s.maps.open, ==, 0);
	end_mapper();
	start_mapper();
	gives_maps = false;
	of.interval_ns = of.next_free_ns = of.n_samples = 0;
}

/* Samples pay later for looks that do not wait for them, up to a limit. */
static void test_looks_are_owed(void)
{
	const uint64_t second = NSEC_PER_SEC, age = 600 * NSEC_PER_MSEC;
	struct process_said s = {.text = NULL};
	uint64_t now;
	int64_t price, owed = 0;

	gives_maps = true;
	of.n_samples = 0;
	now = let_maps_open(&s, second);
	of.n_samples = 0;
	for (int i = 0; i < 40; i++) {
		price = 16 + s.maps.n_bytes / 96;
		map_a_page();
		CHECK_INT(look(&s, mapper.pid, 10, age, now += 64 * second), ==, NO_QUESTION);
		CHECK_INT(s.asked_ns, ==, now);
		owed = owed + price - 1 < 1024 ? owed + price - 1 : 1024;
		CHECK_INT(of.n_samples, ==, -owed);
	}
	CHECK_INT(owed, ==, 1024);
	process_said_deinit(&s, &of);
	gives_maps = false;
	of.n_samples = 0;
}

/* One that maps and unmaps the same all the time has stood still at these sizes. Another size is
 * looked at in the next interval, without samples that pay. */
static void test_size_that_comes_again(void)
{
	const uint64_t second = NSEC_PER_SEC, age = 600 * NSEC_PER_MSEC;
	struct process_said s = {.text = NULL};
	uint64_t now, asked_ns;

	gives_maps = true;
	of.interval_ns = 5 * second;
	now = let_maps_open(&s, second);
	order(MAP);
	CHECK_INT(look(&s, mapper.pid, 10, age, now += 64 * second), ==, NO_QUESTION);
	asked_ns = s.asked_ns;
	CHECK_INT(asked_ns, ==, now);
	of.n_samples = of.next_free_ns = 0;
	for (int i = 0; i < 10; i++) {
		order(i % 2 ? MAP : UNMAP);
		CHECK_INT(look(&s, mapper.pid, 10, age, now += 5 * second), ==, NO_QUESTION);
		CHECK_INT(s.asked_ns, ==, asked_ns);
	}
	of.n_samples = -1;
	order(MAP);
	order(PUBLISH);
	CHECK_INT(look(&s, mapper.pid, 10, 0, now += 5 * second), ==, ALL_IT_SAYS);
	process_said_deinit(&s, &of);
	gives_maps = false;
	of.interval_ns = of.next_free_ns = of.n_samples = 0;
	end_mapper();
	start_mapper();
}

/* A size at which a context was being written is not one without any. */
static void test_torn_context_at_a_size(void)
{
	const uint64_t second = NSEC_PER_SEC;
	struct process_said s = {.text = NULL};
	uint64_t now;

	gives_maps = true;
	now = let_maps_open(&s, second);
	order(TEAR);
	CHECK_INT(look(&s, mapper.pid, 10, 0, now += 64 * second), ==, CONTEXT_ALONE);
	order(PUBLISH);
	CHECK_INT(look(&s, mapper.pid, 10, 0, now += second), ==, ALL_IT_SAYS);
	CHECK_INT(s.published_ns, ==, 7);
	process_said_deinit(&s, &of);
	gives_maps = false;
	of.n_samples = 0;
	end_mapper();
	start_mapper();
}

/* Such a list costs more than the question. */
static void test_long_maps(void)
{
	const uint64_t second = NSEC_PER_SEC, age = 600 * NSEC_PER_MSEC;
	struct process_said s = {.text = NULL};
	uint64_t now;

	gives_maps = true;
	now = let_maps_open(&s, second);
	order(MAP_MUCH);
	for (int i = 1; i < 3; i++, now += 64 * second) {
		map_a_page();
		CHECK_INT(look(&s, mapper.pid, 10, age, now + 64 * second), ==, CONTEXT_ALONE);
		CHECK_INT(s.maps.open, ==, 0);
		CHECK_INT(s.maps.too_long, ==, 1);
	}
	process_said_deinit(&s, &of);
	gives_maps = false;
	end_mapper();
	start_mapper();
}

/* An exec ends it, and its list. */
static void test_maps_of_an_ended_program(void)
{
	struct process_maps m = {.open = false};

	outside.maps = OUTSIDE_MAPS_UNTRIED;
	gives_maps = true;
	process_maps_keep(&m, &outside, (uint32_t)mapper.pid);
	CHECK_INT(process_maps_find_context(&m), ==, 0);
	end_mapper();
	CHECK_INT(process_maps_find_context(&m), ==, -ESRCH);
	CHECK_INT(m.open, ==, 0);
	CHECK_INT(process_maps_find_context(&m), ==, -EBADF);
	start_mapper();
	gives_maps = false;
}

/* A list comes in pieces. */
static void test_name_in_two_pieces(void)
{
	char text[2 * 4096];

	for (size_t at = 4080; at <= 4100; at++) {
		struct process_maps m = {.open = true, .fd = memfd_create("maps", MFD_CLOEXEC)};

		memset(text, 'x', sizeof(text));
		memcpy(text + at, "OTEL_CTX", 8);
		CHECK_INT(write(m.fd, text, sizeof(text)), ==, (ssize_t)sizeof(text));
		CHECK_INT(process_maps_find_context(&m), ==, 1);
		CHECK_INT(pwrite(m.fd, "y", 1, (off_t)at), ==, 1);
		CHECK_INT(process_maps_find_context(&m), ==, 0);
		CHECK_INT(m.n_bytes, ==, sizeof(text));
		process_maps_close(&m);
	}
}

/* Processes that began at any time are looked at together from then on. */
static void test_looks_come_together(void)
{
	const uint64_t second = NSEC_PER_SEC, age = 600 * NSEC_PER_MSEC;

	for (uint64_t begin = 10 * second; begin < 11 * second; begin += second / 7) {
		struct process_said s = {.text = NULL};
		uint64_t due = begin == 10 * second ? 14 * second : 15 * second;

		CHECK_INT(look(&s, silent, 1, age, begin), ==, ALL_IT_SAYS);
		CHECK_INT(look(&s, silent, 1, age, due - 1), ==, NO_QUESTION);
		CHECK_INT(look(&s, silent, 1, age, due), ==, CONTEXT_ALONE);
	}
}

/* New code is a reason to look within a second, but not for ever. */
static void test_new_mappings(void)
{
	const uint64_t second = NSEC_PER_SEC, age = 600 * NSEC_PER_MSEC;
	struct process_said s = {.text = NULL};
	uint64_t now = second;
	uint32_t n_mappings = 1;
	int n_asked = 0;

	of.interval_ns = 5 * second;
	for (int i = 0; i < 7; now += 64 * second, i++) {
		map_a_page();
		CHECK_INT(look(&s, mapper.pid, n_mappings, age, now), !=, NO_QUESTION);
	}
	/* Its next turn is a minute away each time. */
	for (int i = 0; i < 20; now += 64 * second, i++) {
		(void)look(&s, mapper.pid, n_mappings, age, now);
		s.delay_ns = 32 * second;
		s.next_ns = now + 60 * second;
		map_a_page();
		CHECK_INT(look(&s, mapper.pid, ++n_mappings, age, now + second), ==, NO_QUESTION);
		n_asked += look(&s, mapper.pid, n_mappings, age, now + 2 * second) != NO_QUESTION;
	}
	CHECK_INT(n_asked, ==, 8);
	process_said_deinit(&s, &of);
	of.interval_ns = 0;
}

/* Many samples pay for a look at the next interval, whosever they are. */
static void test_many_samples(void)
{
	const uint64_t second = NSEC_PER_SEC, age = 600 * NSEC_PER_MSEC;
	struct process_said s = {.text = NULL}, busy = {.text = NULL};
	uint64_t now = second;
	int n = 0;

	of.interval_ns = second;
	of.next_free_ns = UINT64_MAX; /* of none */
	for (int i = 0; i < 7; now += 64 * second, i++) {
		map_a_page();
		CHECK_INT(look(&s, mapper.pid, 10, age, now), !=, NO_QUESTION);
		CHECK_INT(look(&busy, mapper.pid, 10, age, now), !=, NO_QUESTION);
	}
	now -= 64 * second;
	of.n_samples = 0;
	map_a_page();
	while (look(&s, mapper.pid, 10, age, now + second) == NO_QUESTION && n < 1000)
		n++;
	CHECK_INT(n + 1, ==, 128 + 4 * 10);
	/* Not before the interval has passed. */
	of.interval_ns = 5 * second;
	for (n = 0; n < 1000; n++)
		CHECK_INT(look(&busy, mapper.pid, 10, age, now + 4 * second), ==, NO_QUESTION);
	map_a_page();
	CHECK_INT(look(&s, mapper.pid, 10, age, now + 5 * second), ==, NO_QUESTION);
	CHECK_INT(look(&s, mapper.pid, 10, age, now + 6 * second), ==, CONTEXT_ALONE);
	/* A thousand pay for five: one of them was that one. */
	for (n = 0; look(&busy, mapper.pid, 10, age, now + (5 * (uint64_t)n + 6) * second) ==
		    CONTEXT_ALONE;
	     n++)
		map_a_page();
	CHECK_INT(n, ==, 4);
	process_said_deinit(&s, &of);
	process_said_deinit(&busy, &of);
	of.interval_ns = of.next_free_ns = 0;
}

static void test_process_that_publishes(void)
{
	static const char payload[] = "";
	struct published_header *header = published_map(1);
	struct process_said s = {.text = NULL};

	CHECK(header);
	published_set(header, payload, 0, 77);
	CHECK_INT(look(&s, getpid(), 1, 0, NSEC_PER_SEC), ==, ALL_IT_SAYS);
	CHECK_INT(s.published_ns, ==, 77);
	/* It is the one that is known. */
	CHECK_INT(look(&s, getpid(), 1, 0, 1000 * NSEC_PER_SEC), ==, CONTEXT_ALONE);
	published_set(header, payload, 0, 78);
	CHECK_INT(look(&s, getpid(), 1, 0, 2000 * NSEC_PER_SEC), ==, ALL_IT_SAYS);
	CHECK_INT(s.published_ns, ==, 78);
	CHECK_INT(munmap(header, PUBLISHED_BYTES), ==, 0);
}

/* Half of a context is neither another one nor none: what is known stays, and the next look comes
 * in a second. */
static void test_context_that_is_being_written(void)
{
	/* service.name = shop; threadlocal.schema_version = tls_v1; key map: [route] */
	static const char payload[] = "\x0a\x18\x0a\x16\x0a\x0cservice.name\x12\x06\x0a\x04shop"
				      "\x12\x26\x0a\x1athreadlocal.schema_version"
				      "\x12\x08\x0a\x06tls_v1"
				      "\x12\x2c\x0a\x1dthreadlocal.attribute_key_map"
				      "\x12\x0b\x2a\x09\x0a\x07\x0a\x05route";
	const uint64_t second = NSEC_PER_SEC;
	struct published_header *header = published_map(1);
	struct host_process p = {.pid = (uint32_t)getpid()};
	struct process_said s = {.text = NULL};
	uint64_t now = 10 * second;
	int n_asked = 0;

	CHECK(header);
	published_set(header, payload, sizeof(payload) - 1, 0);
	CHECK_INT(look(&s, getpid(), 1, 0, now), ==, ALL_IT_SAYS);
	CHECK_INT(look(&s, getpid(), 1, 0, now + second - 1), ==, NO_QUESTION);
	published_set(header, payload, sizeof(payload) - 1, 7);
	CHECK_INT(look(&s, getpid(), 1, 0, now += second), ==, ALL_IT_SAYS);
	CHECK_STR(process_said_service(&s, &p), "shop");
	CHECK(s.threads && s.n_keys == 1);
	CHECK_STR(s.keys[0], "route");
	for (int all = 0; all < 2; all++) {
		published_set(header, payload, sizeof(payload) - 1, all ? 8 : 0);
		torn_at_all = all ? header : NULL;
		CHECK_INT(look(&s, getpid(), 1, 0, now += 100 * second), ==,
			  all ? ALL_IT_SAYS : CONTEXT_ALONE);
		torn_at_all = NULL;
		CHECK_STR(process_said_service(&s, &p), "shop");
		CHECK(s.threads && s.n_keys == 1 && s.published_ns == 7);
		CHECK_INT(look(&s, getpid(), 1, 0, now += second), ==, CONTEXT_ALONE);
	}
	/* For ever: then it is asked no more often than others, and has withdrawn nothing. */
	of.interval_ns = 10 * second;
	for (int i = 0; i < 100; i++)
		n_asked += look(&s, getpid(), 1, 0, now += second) != NO_QUESTION;
	of.interval_ns = 0;
	CHECK_INT(n_asked, >=, 10);
	CHECK_INT(n_asked, <=, 8 + 10 + 1);
	CHECK(s.threads && s.published_ns == 7);
	published_set(header, payload, sizeof(payload) - 1, 9);
	CHECK_INT(look(&s, getpid(), 1, 0, now += 100 * second), ==, ALL_IT_SAYS);
	CHECK_INT(s.published_ns, ==, 9);
	process_said_deinit(&s, &of);
	CHECK_INT(munmap(header, PUBLISHED_BYTES), ==, 0);
}

/* A resource with an attribute of service.name and others whose values are too long. */
static uint32_t put_long(uint8_t *payload, const char *const *keys, size_t n)
{
	static uint8_t both[4096], inner[16384];
	static char text[2000];
	uint8_t *at = published_put_pair(inner, 1, "service.name", 1, "shop", 4, both);

	memset(text, 'x', sizeof(text));
	for (size_t i = 0; i < n; i++)
		at = published_put_pair(at, 1, keys[i], 1, text, sizeof(text), both);
	return (uint32_t)(published_put(payload, 1, inner, (size_t)(at - inner)) - payload);
}

/* What does not fit counts once for a process, not at each of its contexts. */
static void test_refused_once(void)
{
	static const char *const keys[] = {"a.long", "b.long", "c.long"};
	static uint8_t payload[16384];
	struct published_header *header = published_map(1);
	struct process_said s = {.text = NULL}, other = {.text = NULL};
	uint64_t before = of.n_refused, now = 10 * NSEC_PER_SEC;

	CHECK(header);
	published_set(header, payload, put_long(payload, keys, 2), 7);
	CHECK_INT(look(&s, getpid(), 1, 0, now), ==, ALL_IT_SAYS);
	CHECK_INT(of.n_refused - before, ==, 2);
	for (uint64_t stamp = 8; stamp < 12; stamp++) {
		published_set(header, payload, put_long(payload, keys, 2), stamp);
		CHECK_INT(look(&s, getpid(), 1, 0, now += 100 * NSEC_PER_SEC), ==, ALL_IT_SAYS);
	}
	CHECK_INT(s.published_ns, ==, 11);
	CHECK_INT(of.n_refused - before, ==, 2);
	/* Another one, and another process. */
	published_set(header, payload, put_long(payload, keys + 1, 2), 12);
	CHECK_INT(look(&s, getpid(), 1, 0, now += 100 * NSEC_PER_SEC), ==, ALL_IT_SAYS);
	CHECK_INT(of.n_refused - before, ==, 3);
	CHECK_INT(look(&other, getpid(), 1, 0, now), ==, ALL_IT_SAYS);
	CHECK_INT(of.n_refused - before, ==, 5);
	process_said_deinit(&s, &of);
	process_said_deinit(&other, &of);
	CHECK_INT(munmap(header, PUBLISHED_BYTES), ==, 0);
}

int main(void)
{
	pthread_t thread;
	int ends[2];

	silent = start_silent();
	start_mapper();
	CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), ==, 0);
	CHECK_INT(pthread_create(&thread, NULL, answer, &ends[1]), ==, 0);
	ask.sock = ends[0];
	RUN(test_silent_process);
	RUN(test_process_that_stays);
	RUN(test_size_that_stood);
	RUN(test_size_that_stood_is_paid);
	RUN(test_sizes_that_stood);
	RUN(test_maps_instead_of_questions);
	RUN(test_looks_are_owed);
	RUN(test_size_that_comes_again);
	RUN(test_torn_context_at_a_size);
	RUN(test_long_maps);
	RUN(test_maps_of_an_ended_program);
	RUN(test_name_in_two_pieces);
	RUN(test_looks_come_together);
	RUN(test_new_mappings);
	RUN(test_many_samples);
	RUN(test_process_that_publishes);
	RUN(test_context_that_is_being_written);
	RUN(test_refused_once);
	/* It has that end, too. */
	end_mapper();
	(void)close(ends[0]);
	CHECK_INT(pthread_join(thread, NULL), ==, 0);
	(void)close(ends[1]);
	(void)kill(silent, SIGKILL);
	CHECK_INT(waitpid(silent, NULL, 0), ==, silent);
	return 0;
}
