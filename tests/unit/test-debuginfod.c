/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Downloads from an HTTP server of this host (debug-server.py), whose answers are good, late by a
 * redirect, cut short, too large, another's, or none. cmp says whether the cache has the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/fetcher/debuginfod.h"
#include "symbolize/symbolize.h"
#include "tests/unit/compile.h"
#include "tests/unit/test.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"

#define MIB (UINT64_C(1) << 20)

static char dir[] = "/tmp/test-debuginfod.XXXXXX";

/* ---- The server ---- */

static struct server_process {
	pid_t pid;
	FILE *said; /* what it was asked */
	char url[64];
} one, two;

static void start_server(struct server_process *s, const char *files)
{
	const char *top = getenv("srcdir");
	char script[4096], line[64];
	int pipes[2];

	(void)snprintf(script, sizeof(script), "%s/tests/unit/debug-server.py", top ? top : ".");
	CHECK_INT(pipe(pipes), ==, 0);
	s->pid = fork();
	CHECK_INT(s->pid, >=, 0);
	if (s->pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)dup2(pipes[1], STDOUT_FILENO);
		(void)close(pipes[0]);
		(void)close(pipes[1]);
		(void)execlp("python3", "python3", script, files, (char *)NULL);
		_exit(127);
	}
	(void)close(pipes[1]);
	s->said = fdopen(pipes[0], "r");
	CHECK(s->said != NULL);
	if (!fgets(line, sizeof(line), s->said))
		SKIP("no HTTP server: python3 does not start");
	(void)snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%d", atoi(line));
}

static void stop_server(struct server_process *s)
{
	CHECK_INT(kill(s->pid, SIGKILL), ==, 0);
	CHECK_INT(waitpid(s->pid, NULL, 0), ==, s->pid);
	(void)fclose(s->said);
}

/* How often it was asked since the last call, and only for paths with this in it. A request whose
 * answer has come was said before. */
static int n_asked(struct server_process *s, const char *hex)
{
	char line[256], wanted[128];
	int n = 0;

	(void)snprintf(wanted, sizeof(wanted), "/%s", hex);
	CHECK_INT(fcntl(fileno(s->said), F_SETFL, O_NONBLOCK), ==, 0);
	clearerr(s->said);
	while (fgets(line, sizeof(line), s->said)) {
		CHECK(strstr(line, wanted) != NULL);
		n++;
	}
	return n;
}

/* ---- The client ---- */

static struct loop *loop;
static struct debuginfod *client;
static int cache_fd = -1;
static int n_cache;
static char cache[128];

static struct script {
	const char *ids[8]; /* asked for one after the other, or all at once */
	int n, n_done, timer;
	bool at_once, found[8];
} script;

static struct debug_id id_of(const char *hex)
{
	struct debug_id id = {.n = (uint32_t)strlen(hex) / 2};

	for (uint32_t i = 0; i < id.n; i++) {
		unsigned int byte;

		CHECK_INT(sscanf(hex + 2 * i, "%2x", &byte), ==, 1);
		id.bytes[i] = (uint8_t)byte;
	}
	return id;
}

static void request_next(void *ctx)
{
	const struct debug_id id = id_of(script.ids[script.n_done]);
	int before = script.n_done;

	debuginfod_request(client, &id);
	CHECK_INT(script.n_done, ==, before);
}

static bool belongs(int fd, const struct debug_id *id)
{
	uint8_t found[64];
	size_t n;

	return symbol_file_build_id(fd, found, &n) == 0 && n == id->n &&
	       memcmp(found, id->bytes, n) == 0;
}

static void done(void *ctx, const struct debug_id *id, bool found)
{
	CHECK_INT(script.n_done, <, script.n);
	script.found[script.n_done++] = found;
	if (script.n_done == script.n)
		loop_exit(loop, 0);
	else if (!script.at_once)
		loop_set_timer(loop, script.timer, 0);
}

static void too_late(void *ctx)
{
	CHECK(!"there is an answer within a minute");
}

/* With an empty cache. */
static void open_client(uint64_t max_file_bytes, const char *url, const char *next_url)
{
	const char *const urls[] = {url, next_url};
	const struct debuginfod_options options = {.urls = urls,
						   .n_urls = next_url ? 2 : 1,
						   .cache_path = cache,
						   .max_cache_bytes = 64 * MIB,
						   .max_file_bytes = max_file_bytes,
						   .timeout_ns = 30 * NSEC_PER_SEC,
						   .belongs = belongs,
						   .done = done};
	struct debuginfod_options o = options;
	char error[256];
	int r;

	(void)snprintf(cache, sizeof(cache), "%s/cache%d", dir, n_cache++);
	CHECK_INT(mkdir(cache, 0700), ==, 0);
	cache_fd = open(cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(cache_fd, >=, 0);
	o.cache_fd = cache_fd;
	CHECK_INT(loop_new(&loop), ==, 0);
	r = debuginfod_new(&client, loop, &o, "test", error, sizeof(error));
	if (r == -ENOENT)
		SKIP("%s", error);
	CHECK_INT(r, ==, 0);
	CHECK_INT(loop_add_timer(loop, 60 * NSEC_PER_SEC, 0, too_late, NULL), >=, 0);
	script = (struct script){.timer = loop_add_timer(loop, UINT64_MAX, 0, request_next, NULL)};
	CHECK_INT(script.timer, >=, 0);
}

static void close_client(void)
{
	client = debuginfod_free(client);
	loop = loop_free(loop);
	(void)close(cache_fd);
}

/* Asks for one file, then for another, once for each client. Are they in the cache? */
static bool fetch(const char *first, const char *second)
{
	script.ids[script.n++] = first;
	script.ids[script.n++] = second;
	request_next(NULL);
	CHECK_INT(loop_run(loop), ==, 0);
	CHECK_INT(script.n_done, ==, 2);
	CHECK_INT(script.found[0], ==, script.found[1]);
	return script.found[0];
}

static bool same_in_cache(const char *hex)
{
	char command[512];

	(void)snprintf(command, sizeof(command), "cmp %s/files/%s.elf %s/%s.debug", dir, hex, cache,
		       hex);
	return system(command) == 0;
}

static uint64_t file_bytes(const char *hex)
{
	char path[256];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/files/%s.elf", dir, hex);
	CHECK_INT(stat(path, &st), ==, 0);
	return (uint64_t)st.st_size;
}

/* Nothing of it is left, neither whole nor in part. */
static bool nothing_in_cache(const char *hex)
{
	char command[512];

	(void)snprintf(command, sizeof(command), "! ls %s | grep -E '^%s.*(debug|part)'", cache,
		       hex);
	return system(command) == 0;
}

static void check_stats(uint64_t fetched, uint64_t bytes, uint64_t missing, uint64_t failures)
{
	const struct debuginfod_stats *s = debuginfod_stats(client);

	CHECK_INT(s->fetched, ==, fetched);
	CHECK_INT(s->bytes, ==, bytes);
	CHECK_INT(s->missing, ==, missing);
	CHECK_INT(s->failures, ==, failures);
}

/* ---- Good answers ---- */

static void check_fetched(const char *hex, int n_requests)
{
	open_client(16 * MIB, one.url, NULL);
	CHECK(fetch(hex, hex)); /* at last from the cache */
	CHECK(same_in_cache(hex));
	check_stats(1, file_bytes(hex), 0, 0);
	CHECK_INT(n_asked(&one, hex), ==, n_requests);
	close_client();
}

static void test_fetched(void)
{
	check_fetched("aa01", 1);
	check_fetched("ab01", 1); /* without a length */
	check_fetched("ac01", 2); /* a redirect */
}

static void test_slash_after_the_url(void)
{
	char url[80];

	(void)snprintf(url, sizeof(url), "%s//", one.url);
	open_client(16 * MIB, url, NULL);
	CHECK(fetch("aa01", "aa01"));
	CHECK_INT(n_asked(&one, "buildid/aa01/debuginfo"), ==, 1);
	close_client();
}

static void test_several_at_once(void)
{
	static const char *const ids[] = {"aa01", "ab01", "ac01", "cc01", "aa01", "bc01"};
	int n_found = 0;

	open_client(16 * MIB, one.url, NULL);
	script.at_once = true;
	script.n = 5; /* one is asked for twice */
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
		const struct debug_id id = id_of(ids[i]);

		debuginfod_request(client, &id);
	}
	CHECK_INT(loop_run(loop), ==, 0);
	for (int i = 0; i < 5; i++)
		n_found += script.found[i];
	CHECK_INT(n_found, ==, 3);
	CHECK_INT(n_asked(&one, ""), ==, 6);
	CHECK(same_in_cache("aa01") && same_in_cache("ab01") && same_in_cache("ac01"));
	close_client();
}

/* ---- No such file ---- */

static void test_missing(void)
{
	open_client(16 * MIB, one.url, two.url);
	CHECK(!fetch("cc01", "cc01")); /* that it is missing is remembered */
	check_stats(0, 0, 1, 0);
	CHECK_INT(n_asked(&one, "cc01"), ==, 1);
	CHECK_INT(n_asked(&two, "cc01"), ==, 1);
	close_client();
}

/* The second server has what the first has not. */
static void test_order(void)
{
	open_client(16 * MIB, two.url, one.url);
	CHECK(fetch("aa01", "aa01"));
	CHECK(same_in_cache("aa01"));
	CHECK_INT(n_asked(&two, "aa01"), ==, 1);
	CHECK_INT(n_asked(&one, "aa01"), ==, 1);
	check_stats(1, file_bytes("aa01"), 0, 0);
	close_client();
}

static void test_not_the_file(void)
{
	open_client(16 * MIB, one.url, NULL);
	CHECK(!fetch("bb01", "bc01")); /* another's, and an empty one */
	CHECK(nothing_in_cache("bb01") && nothing_in_cache("bc01"));
	check_stats(0, file_bytes("aa01"), 2, 0);
	CHECK_INT(n_asked(&one, ""), ==, 2);
	close_client();
}

static void test_too_large(void)
{
	open_client(file_bytes("aa01") - 1, one.url, NULL);
	CHECK(!fetch("aa01", "ab01")); /* the second does not say how large it is */
	CHECK(nothing_in_cache("aa01") && nothing_in_cache("ab01"));
	check_stats(0, 0, 2, 0);
	CHECK_INT(n_asked(&one, ""), ==, 2);
	close_client();
	open_client(file_bytes("aa01"), one.url, NULL);
	CHECK(fetch("aa01", "ab01"));
	CHECK_INT(n_asked(&one, ""), ==, 2);
	close_client();
}

/* ---- Servers that fail ---- */

/* The server failed: it is not asked again for a while, and the file may still come. */
static void check_failure(const char *hex, int n_requests)
{
	open_client(16 * MIB, one.url, NULL);
	CHECK(!fetch(hex, "aa01"));
	CHECK(nothing_in_cache(hex) && nothing_in_cache("aa01"));
	check_stats(0, 0, 0, 1);
	CHECK_INT(n_asked(&one, hex), ==, n_requests);
	close_client();
}

static void test_failures(void)
{
	check_failure("ba01", 1); /* 500 */
	check_failure("af01", 1); /* half of it */
	check_failure("ad01", 4); /* redirects without end */
	check_failure("ae01", 1); /* a redirect to a link-local address */
}

static void test_next_server_helps(void)
{
	struct server_process dead;

	start_server(&dead, dir);
	stop_server(&dead);
	open_client(16 * MIB, dead.url, one.url);
	CHECK(fetch("aa01", "ab01")); /* the first server is down, and not asked again */
	CHECK(same_in_cache("aa01") && same_in_cache("ab01"));
	check_stats(2, file_bytes("aa01") + file_bytes("ab01"), 0, 1);
	CHECK_INT(n_asked(&one, ""), ==, 2);
	close_client();
}

static void test_too_many(void)
{
	open_client(16 * MIB, one.url, NULL);
	for (uint8_t i = 0; i < 64; i++) {
		for (uint8_t k = 0; k < 9; k++) {
			const struct debug_id id = {.n = 3, .bytes = {0xcc, i, k}};

			debuginfod_request(client, &id);
		}
	}
	CHECK_INT(debuginfod_stats(client)->refused, ==, 64 * 9 - 512);
	close_client();
}

/* Programs with these build ids; the second server has none of them. */
static void make_files(void)
{
	static const char command[] = "echo 'int main(void) { return 0; }' > x.c && "
				      "for id in aa01 ab01 ac01 af01; do "
				      "${CC:-cc} -Wl,--build-id=0x$id -o $id.elf x.c || exit; done";
	char files[300];

	(void)snprintf(files, sizeof(files), "%s/files", dir);
	CHECK_INT(mkdir(files, 0700), ==, 0);
	if (test_compile(files, "aa01.elf ab01.elf ac01.elf af01.elf", "%s", command) != 0)
		SKIP("no compiler that takes a build id");
	start_server(&one, files);
	start_server(&two, dir);
}

int main(void)
{
	log_set_level(LOG_LEVEL_ERROR);
	test_make_directory(dir);
	make_files();
	RUN(test_fetched);
	RUN(test_slash_after_the_url);
	RUN(test_several_at_once);
	RUN(test_missing);
	RUN(test_order);
	RUN(test_not_the_file);
	RUN(test_too_large);
	RUN(test_failures);
	RUN(test_next_server_helps);
	RUN(test_too_many);
	stop_server(&one);
	stop_server(&two);
	return 0;
}
