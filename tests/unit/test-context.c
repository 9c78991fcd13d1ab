/* SPDX-License-Identifier: Apache-2.0 */
/* What the opener takes of a process: named variables and a published context, and nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "src/opener/opener.h"
#include "tests/unit/context-publisher.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"

static struct published_header *header;
static char *payload; /* not in the program's file, which an overlay or a tmpfs may hold */

static struct message ask_of(pid_t pid, uint64_t known_ns, bool environment)
{
	struct message ask = {.type = MESSAGE_ASK_CONTEXT};

	ask.ask_context.pid = (uint32_t)pid;
	ask.ask_context.published_ns = known_ns;
	ask.ask_context.environment = environment;
	return ask;
}

/* The outcome for this process; *ret where it is 0. */
static int read_own(uint64_t known_ns, struct context_file *ret, char *text, size_t size)
{
	struct message ask = ask_of(getpid(), known_ns, false);
	_cleanup_close_ int fd = opener_context(&ask);

	if (fd < 0)
		return fd;
	CHECK_INT(pread(fd, ret, sizeof(*ret), 0), ==, (long long)sizeof(*ret));
	CHECK(ret->n_payload < size);
	CHECK_INT(pread(fd, text, size, sizeof(*ret)), ==, (long long)ret->n_payload);
	return 0;
}

static void check_published(void)
{
	struct context_file f;
	char text[64];

	published_set(header, payload, 9, 77);
	CHECK_INT(read_own(0, &f, text, sizeof(text)), ==, 0);
	CHECK_INT(f.published_ns, ==, 77);
	CHECK_INT(f.n_environment, ==, 0);
	CHECK(f.n_payload == 9 && memcmp(text, "a payload", 9) == 0);
	CHECK_INT(read_own(77, &f, text, sizeof(text)), ==, -EALREADY);
	published_set(header, payload + 2, 7, 78);
	CHECK_INT(read_own(77, &f, text, sizeof(text)), ==, 0);
	CHECK(f.n_payload == 7 && memcmp(text, "payload", 7) == 0);
}

static void test_a_context_in_a_memory_file(void)
{
	struct context_file f;
	char text[64];

	CHECK_INT(read_own(0, &f, text, sizeof(text)), ==, -ENOENT);
	header = published_map(1);
	CHECK(header);
	check_published();
}

static void test_a_named_anonymous_context(void)
{
	CHECK_INT(munmap(header, PUBLISHED_BYTES), ==, 0);
	header = published_map(0);
	if (header) {
		check_published();
		return;
	}
	(void)fprintf(stderr, "this kernel does not name anonymous memory\n");
	header = published_map(1);
}

static void test_hostile_headers(void)
{
	static char empty[CONTEXT_MAX_PAYLOAD];
	struct context_file f;

	published_set(header, payload, CONTEXT_MAX_PAYLOAD + 1, 80);
	CHECK_INT(read_own(0, &f, empty, sizeof(empty)), ==, -EBADMSG);
	published_set(header, payload, 9, 0); /* for ever being written */
	CHECK_INT(read_own(0, &f, empty, sizeof(empty)), ==, -EAGAIN);
	published_set(header, (void *)8, 9, 81); /* nothing is there */
	CHECK_INT(read_own(0, &f, empty, sizeof(empty)), ==, -EAGAIN);
	published_set(header, payload, 9, 82);
	header->version = 3;
	CHECK_INT(read_own(0, &f, empty, sizeof(empty)), ==, -EBADMSG);
	header->version = 2;
	header->signature[7] = 'Y';
	CHECK_INT(read_own(0, &f, empty, sizeof(empty)), ==, -EBADMSG);
	published_set(header, payload, 9, 83);
	CHECK_INT(read_own(0, &f, empty, sizeof(empty)), ==, 0);
}

static pid_t start_sleeper(void)
{
	/* The command is what env(1) executes. */
	static const char *const argv[] = {
		"env",
		"-i",
		"SECRET=s3cret",
		"OTEL_SERVICE_NAME=shop",
		"XOTEL_SERVICE_NAME=no",
		"OTEL_RESOURCE_ATTRIBUTES=a=b",
		"OTEL_EXPORTER_OTLP_HEADERS=key=s3cret",
		"POD_NAME=web-0",
		"sleep",
		"1000",
		NULL,
	};
	pid_t pid = fork();

	if (pid == 0) {
		(void)execvp("env", (char *const *)argv);
		_exit(127);
	}
	return pid;
}

/* The variables of a process, once it has executed its program. */
static int read_variables(pid_t pid, char *text, size_t size)
{
	struct message ask = ask_of(pid, 0, true);
	struct context_file f = {0};

	for (int i = 0; i < 1000 && f.n_environment == 0; i++) {
		_cleanup_close_ int fd = opener_context(&ask);

		if (fd == -ENOENT) { /* not yet */
			(void)usleep(1000);
			continue;
		}
		if (fd < 0)
			return fd;
		CHECK_INT(pread(fd, &f, sizeof(f), 0), ==, (long long)sizeof(f));
		CHECK_INT(f.error, ==, -ENOENT);
		CHECK_INT(f.n_payload, ==, 0);
		CHECK(f.n_environment <= size);
		CHECK_INT(pread(fd, text, size, sizeof(f)), ==, f.n_environment);
	}
	return (int)f.n_environment;
}

static void test_only_named_variables(void)
{
	static const char expected[] =
		"OTEL_SERVICE_NAME=shop\0OTEL_RESOURCE_ATTRIBUTES=a=b\0POD_NAME=web-0";
	static char text[CONTEXT_MAX_ENVIRONMENT];
	struct message ask;
	pid_t pid = start_sleeper();
	int status, n = read_variables(pid, text, sizeof(text));

	CHECK_INT(n, ==, (long long)sizeof(expected));
	CHECK(memcmp(text, expected, sizeof(expected)) == 0);
	/* Of a process that started at another time, nothing. */
	ask = ask_of(pid, 0, true);
	ask.ask_context.start_time_ns = 1;
	CHECK_INT(opener_context(&ask), ==, -ESRCH);
	(void)kill(pid, SIGKILL);
	CHECK_INT(waitpid(pid, &status, 0), ==, pid);
	CHECK_INT(opener_context(&ask), <, 0);
}

int main(void)
{
	payload = calloc(1, CONTEXT_MAX_PAYLOAD + 1);
	CHECK(payload);
	(void)strcpy(payload, "a payload");
	RUN(test_a_context_in_a_memory_file);
	RUN(test_a_named_anonymous_context);
	RUN(test_hostile_headers);
	RUN(test_only_named_variables);
	return 0;
}
