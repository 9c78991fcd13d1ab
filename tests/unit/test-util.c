/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/test.h"
#include "util/clock.h"
#include "util/address.h"
#include "util/array.h"
#include "util/bisect.h"
#include "util/cursor.h"
#include "util/fdmsg.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/loop.h"
#include "util/memory-file.h"
#include "util/strtab.h"
#include "util/text.h"
#include "util/time-share.h"

static uint32_t find(const struct hash_index *ix, const uint64_t *keys, uint64_t key)
{
	uint64_t h = hash_u64(key);
	uint32_t slot = hash_index_first(ix, h), row;

	while ((row = hash_index_row(ix, slot)) != HASH_INDEX_NONE) {
		if (hash_index_match(ix, slot, h) && keys[row] == key)
			return row;
		slot = hash_index_next(ix, slot);
	}
	return HASH_INDEX_NONE;
}

/* Random adds and removes against a plain array of "is it in". */
static void test_hash_index_against_a_model(void)
{
	struct hash_index ix = HASH_INDEX_INIT;
	static uint64_t keys[5000];
	static bool in[5000];
	uint64_t seed = 1;

	for (uint32_t i = 0; i < 5000; i++)
		keys[i] = hash_u64(i) % 100000;
	for (uint32_t i = 0; i < 5000; i++) {
		for (uint32_t j = 0; j < i; j++) {
			if (keys[j] == keys[i])
				keys[i] = 200000 + i;
		}
	}
	for (int step = 0; step < 50000; step++) {
		uint32_t row = (uint32_t)(hash_u64(seed++) % 5000);

		if (!in[row])
			CHECK_INT(hash_index_add(&ix, hash_u64(keys[row]), row), ==, 0);
		else
			CHECK(hash_index_remove(&ix, hash_u64(keys[row]), row));
		in[row] = !in[row];
		if (step % 1000 == 0) {
			for (uint32_t i = 0; i < 5000; i++)
				CHECK_INT(find(&ix, keys, keys[i]), ==,
					  in[i] ? i : HASH_INDEX_NONE);
		}
	}
	CHECK(!hash_index_remove(&ix, hash_u64(UINT64_C(1) << 60), 4999 + 1));
	hash_index_deinit(&ix);
}

static void test_strtab(void)
{
	struct strtab t;
	char text[32];

	strtab_init(&t, 10000);
	CHECK_INT(strtab_put(&t, ""), ==, STRID_EMPTY);
	CHECK_INT(strtab_put(&t, "abc"), ==, strtab_put_n(&t, "abcdef", 3));
	CHECK_INT(strtab_put(&t, "ab"), !=, strtab_put(&t, "abc"));
	CHECK_STR(strtab_get(&t, strtab_put(&t, "abc")), "abc");
	CHECK_STR(strtab_get(&t, 12345), "");
	for (int i = 0; i < 2000; i++) {
		snprintf(text, sizeof(text), "string number %d", i);
		(void)strtab_put(&t, text);
	}
	CHECK_INT(t.n_refused, >, 0);
	CHECK_INT(t.n_bytes, <=, 10000);
	strtab_clear(&t);
	CHECK_STR(strtab_get(&t, strtab_put(&t, "again")), "again");
	strtab_deinit(&t);
}

static void test_array_keeps_its_limit(void)
{
	ARRAY(uint64_t) a = ARRAY_INIT(20);

	for (uint64_t i = 0; i < 20; i++) {
		uint64_t *v = array_push(&a);

		CHECK(v);
		*v = i;
	}
	CHECK(!array_push(&a));
	CHECK_INT(a.items[19], ==, 19);
	array_deinit(&a);
}

/* It finds each place in arrays of each size, with one look for each halving. */
static void test_bisect(void)
{
	uint64_t base = 1ULL << 40;

	for (uint32_t n = 0; n <= 70; n++) {
		for (uint32_t place = 0; place <= n; place++) {
			uint32_t n_looks = 0, n_outside = 0;

			CHECK_INT(bisect(n, i, (n_looks++, n_outside += i >= n, i < place)), ==,
				  place);
			CHECK_INT(n_outside, ==, 0);
			CHECK_INT(1U << n_looks, <=, 2 * n + 1);
		}
	}
	CHECK(bisect(2 * base, i, i < base + 3) == base + 3);
	CHECK_INT(bisect(UINT32_MAX, i, i < UINT32_MAX), ==, UINT32_MAX);
}

static void test_cursor_error_is_sticky(void)
{
	static const char bytes[] = "\1\2\3abc\0x";
	struct cursor c = cursor_make(bytes, sizeof(bytes) - 1);

	CHECK_INT(cursor_u8(&c), ==, 1);
	CHECK_INT(cursor_u16(&c), ==, 0x0302);
	CHECK_STR(cursor_string(&c), "abc");
	CHECK(cursor_ok(&c));
	CHECK(!cursor_string(&c));
	CHECK_INT(cursor_u8(&c), ==, 0);
	CHECK(!cursor_ok(&c));
	CHECK_INT(cursor_left(&c), ==, 0);
}

/* Names that differ in what is cut off stay apart; the others are as text_clean() has them. */
static void test_text_shorten(void)
{
	char a[64], b[64], first[200], second[200];

	CHECK_INT(text_shorten(a, sizeof(a), "short\n", NULL), ==, 6);
	CHECK_STR(a, "short?");
	memset(first, 'x', sizeof(first) - 1);
	first[sizeof(first) - 1] = '\0';
	memcpy(second, first, sizeof(first));
	second[198] = 'y';
	CHECK_INT(text_shorten(a, sizeof(a), first, NULL), ==, 63);
	CHECK_INT(text_shorten(b, sizeof(b), second, NULL), ==, 63);
	CHECK(strcmp(a, b) != 0);
	CHECK(strncmp(a, b, 64 - TEXT_CUT_BYTES) == 0 && strstr(a, "x...[") != NULL);
	CHECK_INT(text_shorten(b, sizeof(b), first, NULL), ==, 63);
	CHECK_STR(a, b);
	/* What names the same thing is the whole, where it is given. */
	(void)text_shorten(b, sizeof(b), first, "whole");
	CHECK(strcmp(a, b) != 0);
	/* No half character before the mark; 63 bytes fit. */
	memcpy(first + 41, "\xc3\xa9", 2);
	(void)text_shorten(a, sizeof(a), first, NULL);
	CHECK(strncmp(a + 41, "...[", 4) == 0);
	first[63] = '\0';
	CHECK_INT(text_shorten(a, sizeof(a), first, NULL), ==, 63);
	CHECK_STR(a, first);
}

static void test_text_clean(void)
{
	char out[32];

	CHECK_INT(text_clean(out, sizeof(out), "a\nb\x1b[1m\xff\xc3\xa9", 20), ==, 10);
	CHECK_STR(out, "a?b?[1m?\xc3\xa9");
	/* No half characters at the end of a short buffer; overlong and surrogates are bad. */
	(void)text_clean(out, 4, "ab\xc3\xa9", 4);
	CHECK_STR(out, "ab");
	(void)text_clean(out, sizeof(out), "\xc0\xaf\xed\xa0\x80\xf5", 6);
	CHECK_STR(out, "??????");
	(void)text_clean(out, sizeof(out), "\xc2\x9b", 2);
	CHECK_STR(out, "?");
}

/* A line of the log may hold what a stranger chose, and go to a terminal. */
static void test_log_lines_are_clean(void)
{
	int pair[2], saved = dup(STDERR_FILENO);
	char long_name[4000], got[4096];
	ssize_t n;

	CHECK_INT(pipe(pair), ==, 0);
	CHECK_INT(dup2(pair[1], STDERR_FILENO), ==, STDERR_FILENO);
	log_warning("%s", "a\x1b[1m\xc2\x9b\xff\xc3\xa9\n.");
	n = read(pair[0], got, sizeof(got) - 1);
	memset(long_name, 0xe9, sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	log_info("%s", long_name);
	(void)dup2(saved, STDERR_FILENO);
	got[n > 0 ? n : 0] = '\0';
	CHECK_STR(got, "perfwalk: warning: a?[1m??\xc3\xa9?.\n");
	n = read(pair[0], got, sizeof(got));
	CHECK_INT(n, ==, 2048);
	CHECK_INT(got[n - 1], ==, '\n');
	CHECK(!memchr(got, 0xe9, (size_t)n));
	(void)close(pair[0]);
	(void)close(pair[1]);
	(void)close(saved);
}

static void test_units(void)
{
	uint64_t v;
	char buf[32];
	bool b;

	CHECK(text_parse_duration_ns("250ms", &v) == 0 && v == 250 * NSEC_PER_MSEC);
	CHECK(text_parse_duration_ns("10", &v) == 0 && v == 10 * NSEC_PER_SEC);
	CHECK(text_parse_duration_ns("1.5h", &v) == 0 && v == 5400 * NSEC_PER_SEC);
	CHECK_INT(text_parse_duration_ns("5 parsecs", &v), ==, -EINVAL);
	CHECK_INT(text_parse_duration_ns("-1s", &v), ==, -EINVAL);
	CHECK_INT(text_parse_duration_ns("99999999999999999999s", &v), ==, -ERANGE);
	CHECK_INT(text_parse_duration_ns("9999999999999d", &v), ==, -ERANGE);
	CHECK(text_parse_bytes("32K", &v) == 0 && v == 32768);
	CHECK(text_parse_bytes("2 MiB", &v) == 0 && v == 2 << 20);
	CHECK_INT(text_parse_bytes("lots", &v), ==, -EINVAL);
	CHECK_INT(text_parse_u64("11", 1, 10, &v), ==, -ERANGE);
	CHECK_INT(text_parse_u64("1x", 1, 10, &v), ==, -EINVAL);
	CHECK(text_parse_bool("On", &b) == 0 && b);
	CHECK_INT(text_parse_bool("maybe", &b), ==, -EINVAL);
	text_format_hex(buf, (const uint8_t *)"\x00\x9a\xff", 3);
	CHECK_STR(buf, "009aff");
	CHECK_STR(text_format_bytes(buf, sizeof(buf), 1536), "1.5 KiB");
	CHECK_STR(text_format_duration(buf, sizeof(buf), 90 * NSEC_PER_SEC), "1m30s");
	CHECK_STR(text_format_duration(buf, sizeof(buf), 10 * NSEC_PER_SEC), "10s");
	CHECK_STR(text_format_duration(buf, sizeof(buf), 0), "0s");
}

static void test_reach_of_addresses(void)
{
	static const struct {
		const char *text;
		enum address_reach reach;
	} cases[] = {
		{"127.0.0.1:1", ADDRESS_HOST},
		{"127.255.255.255:1", ADDRESS_HOST},
		{"0.0.0.0:1", ADDRESS_HOST},
		{"[::1]:1", ADDRESS_HOST},
		{"[::]:1", ADDRESS_HOST},
		{"[::ffff:127.0.0.1]:1", ADDRESS_HOST},
		{"unix:/run/x", ADDRESS_HOST},
		{"169.254.169.254:80", ADDRESS_LINK},
		{"[::ffff:169.254.0.1]:1", ADDRESS_LINK},
		{"[fe80::1]:1", ADDRESS_LINK},
		{"[febf::1]:1", ADDRESS_LINK},
		{"169.253.255.255:1", ADDRESS_NETWORK},
		{"169.255.0.0:1", ADDRESS_NETWORK},
		{"128.0.0.1:1", ADDRESS_NETWORK},
		{"10.0.0.1:1", ADDRESS_NETWORK},
		{"[fec0::1]:1", ADDRESS_NETWORK},
		{"[2001:db8::1]:1", ADDRESS_NETWORK},
		{"[::ffff:8.8.8.8]:1", ADDRESS_NETWORK},
	};
	struct address a;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CHECK_INT(address_parse(cases[i].text, &a), ==, 0);
		CHECK_INT(address_reach((const struct sockaddr *)&a.sa), ==, cases[i].reach);
	}
}

static void test_ports_of_urls(void)
{
	static const struct {
		const char *url;
		uint16_t port;
	} cases[] = {
		{"http://collector:4318/v1development/profiles", 4318},
		{"https://[2001:db8::1]:443", 443},
		{"https://[2001:db8::1]", 0},
		{"https://collector/a:1", 0},
		{"https://collector", 0},
		{"http://user:1234@proxy", 0},
		{"http://user:1234@proxy:3128", 3128},
		{"http://a@b:1@proxy:2?x=y:3", 2},
		{"proxy.example:8080", 8080},
		{"http://collector:", 0},
		{"http://collector:0", 0},
		{"http://collector:65536", 0},
		{"http://collector:4318x", 0},
		{"http://collector:00000000000080", 0},
		{"", 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		CHECK_INT(text_url_port(cases[i].url), ==, cases[i].port);
}

static void test_ranges(void)
{
	static const char *const bad[] = {"",	 ",", "1,", ",1",   "1-",   "-1",
					  "2-1", "a", "1 ", "1--2", "1,,2", "0x1"};
	bool set[16] = {false};

	CHECK_INT(text_parse_ranges("0-2,5,14-15", set, 16), ==, 0);
	for (int i = 0; i < 16; i++)
		CHECK_INT(set[i], ==, i <= 2 || i == 5 || i >= 14);
	CHECK_INT(text_parse_ranges("16", set, 16), ==, -ERANGE);
	CHECK_INT(text_parse_ranges("3-99999999999999999999999", set, 16), ==, -ERANGE);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_INT(text_parse_ranges(bad[i], set, 16), ==, -EINVAL);
}

static void test_did_you_mean(void)
{
	static const char *const words[] = {"reporter_interval", "samples_per_second", "user"};

	CHECK_STR(text_nearest("reporter_intervall", words, 3), "reporter_interval");
	CHECK_STR(text_nearest("sample_per_second", words, 3), "samples_per_second");
	CHECK(!text_nearest("zzzzzz", words, 3));
}

static void test_text_copies(void)
{
	char text[] = "one", *copy = NULL;
	const char *constant = NULL;

	CHECK_INT(text_set(&copy, text), ==, 0);
	CHECK_INT(text_set(&constant, text), ==, 0);
	text[0] = 'x';
	CHECK_STR(copy, "one");
	CHECK_STR(constant, "one");
	CHECK_INT(text_set(&copy, "two"), ==, 0);
	CHECK_STR(copy, "two");

	CHECK(text_equal(NULL, NULL));
	CHECK(text_equal(constant, "one"));
	CHECK(!text_equal(copy, constant));
	CHECK(!text_equal(copy, NULL));
	CHECK(!text_equal(NULL, copy));
	free(copy);
	free((void *)constant);
}

static void test_addresses(void)
{
	static const struct {
		const char *text;
		int outcome; /* 1 local, 0 not, -1 none */
	} rows[] = {
		{"127.0.0.1:9464", 1},
		{"localhost:1", 1},
		{"127.9.9.9:65535", 1},
		{"[::1]:9464", 1},
		{"unix:/run/x", 1},
		{"0.0.0.0:9464", 0},
		{"[::]:9464", 0},
		{"192.0.2.1:80", 0},
		{"[::ffff:127.0.0.1]:1", 0},
		{"", -1},
		{":9464", -1},
		{"9464", -1},
		{"127.0.0.1", -1},
		{"127.0.0.1:", -1},
		{"127.0.0.1:0", -1},
		{"127.0.0.1:65536", -1},
		{"127.0.0.1:94x", -1},
		{"host.example:80", -1},
		{"::1:80", -1},
		{"[::1:80", -1},
		{"[::1]", -1},
		{"unix:", -1},
		{"unix:relative", -1},
		{"[]:80", -1},
		{"127.0.0.1:-1", -1},
		{"127.0.0.1: 80", -1},
	};
	char longest[200] = "unix:/";
	struct address a;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int r = address_parse(rows[i].text, &a);

		fprintf(stderr, "  %s\n", rows[i].text);
		CHECK_INT(r, ==, rows[i].outcome < 0 ? -EINVAL : 0);
		if (r == 0)
			CHECK_INT(address_is_local(&a), ==, rows[i].outcome);
	}
	memset(longest + 6, 'x', 190);
	CHECK_INT(address_parse(longest, &a), ==, -EINVAL);
}

static void test_descriptors_cross_a_socket(void)
{
	int pair[2], fds[FDMSG_MAX_FDS], pipefd[2];
	char buf[8], byte = 'x';
	size_t n_fds;

	CHECK_INT(fdmsg_pair(pair, 1), ==, 0);
	CHECK_INT(pipe2(pipefd, O_CLOEXEC), ==, 0);
	CHECK_INT(fdmsg_recv(pair[1], buf, sizeof(buf), fds, &n_fds, 0), ==, -EAGAIN);
	CHECK_INT(fdmsg_send(pair[0], "hello", 5, &pipefd[1], 1, 0), ==, 0);
	CHECK_INT(fdmsg_recv(pair[1], buf, sizeof(buf), fds, &n_fds, 0), ==, 5);
	CHECK_INT(n_fds, ==, 1);
	CHECK_INT(write(fds[0], &byte, 1), ==, 1);
	CHECK_INT(read(pipefd[0], buf, 1), ==, 1);
	close(fds[0]);
	/* Too large a message is an error, not a short one; its descriptor is closed. */
	CHECK_INT(fdmsg_send(pair[0], "0123456789", 10, &pipefd[1], 1, 0), ==, 0);
	CHECK_INT(fdmsg_recv(pair[1], buf, sizeof(buf), fds, &n_fds, 0), ==, -EMSGSIZE);
	close(pair[0]);
	CHECK_INT(fdmsg_recv(pair[1], buf, sizeof(buf), fds, &n_fds, 0), ==, 0);
	close(pair[1]);
	close(pipefd[0]);
	close(pipefd[1]);
}

struct ticks {
	struct loop *loop;
	int n, readable;
};

static void on_tick(void *ctx)
{
	struct ticks *t = ctx;

	if (++t->n == 3)
		loop_exit(t->loop, 42);
}

static void on_readable(void *ctx, int fd, uint32_t events)
{
	struct ticks *t = ctx;

	t->readable++;
	loop_remove_fd(t->loop, fd);
}

static void test_loop(void)
{
	enum { HIGH_FD = 9000 };
	struct ticks t = {0};
	struct rlimit files;
	int pipefd[2];

	CHECK_INT(loop_new(&t.loop), ==, 0);
	CHECK_INT(pipe2(pipefd, O_CLOEXEC), ==, 0);
	CHECK_INT(write(pipefd[1], "x", 1), ==, 1);
	/* A process that holds an event for each thread and CPU has high numbers for the rest. */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur > HIGH_FD) {
		CHECK_INT(dup3(pipefd[0], HIGH_FD, O_CLOEXEC), ==, HIGH_FD);
		(void)close(pipefd[0]);
		pipefd[0] = HIGH_FD;
	}
	CHECK_INT(loop_add_fd(t.loop, pipefd[0], EPOLLIN, on_readable, &t), ==, 0);
	CHECK_INT(loop_add_timer(t.loop, 0, NSEC_PER_MSEC, on_tick, &t), >=, 0);
	CHECK_INT(loop_run(t.loop), ==, 42);
	CHECK_INT(t.readable, ==, 1);
	CHECK_INT(t.n, ==, 3);
	loop_free(t.loop);
	close(pipefd[0]);
	close(pipefd[1]);
}

/* What kernels before 3.17 have of memfd_create(). */
static void forbid_memfd_create(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = {ARRAY_SIZE(code), code};

	CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), ==, 0);
	CHECK_INT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), ==, 0);
}

static void check_memory_file(bool seals)
{
	int fd = memory_file_new("perfwalk-test");
	struct stat st;

	CHECK_INT(fd, >=, 0);
	CHECK_INT(fcntl(fd, F_GETFD), ==, FD_CLOEXEC);
	CHECK_INT(write(fd, "x", 1), ==, 1);
	CHECK(!memory_file_is_sealed(fd));
	CHECK_INT(memory_file_seal(fd), ==, 0);
	CHECK_INT(memory_file_is_sealed(fd), ==, seals);
	CHECK_INT(ftruncate(fd, 0) == 0, ==, !seals);
	/* Nobody else finds it. */
	CHECK_INT(fstat(fd, &st), ==, 0);
	CHECK_INT(st.st_nlink, ==, 0);
	CHECK_INT(st.st_mode & 077, ==, seals ? 077 : 0);
	close(fd);
}

static void test_memory_files(void)
{
	int status;
	pid_t pid;

	check_memory_file(true);
	pid = fork();
	if (pid == 0) {
		forbid_memfd_create();
		check_memory_file(false);
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), ==, pid);
	CHECK_INT(status, ==, 0);
}

/* A tenth: the work is all waiting, which counts for an eighth. */
static void test_time_share(void)
{
	struct time_share share = {.percent = 10};
	uint64_t now = 5 * NSEC_PER_SEC, begin = now, worked = 0;
	uint32_t n = 0;

	CHECK(time_share_begin(&share, now)); /* a second is saved up */
	time_share_end(&share, now += 7900 * NSEC_PER_MSEC);
	CHECK(time_share_begin(&share, now)); /* credit that is left is enough for any work */
	time_share_end(&share, now + 400 * NSEC_PER_SEC);
	CHECK(!time_share_begin(&share, now));
	CHECK(!time_share_begin(&share, now + NSEC_PER_SEC));
	CHECK(!time_share_begin(&share, now + 41 * NSEC_PER_SEC));
	CHECK(time_share_begin(&share, now + 43 * NSEC_PER_SEC)); /* as for 5 s of work */
	share = (struct time_share){.percent = 10, .save_ns = 100 * NSEC_PER_SEC};
	for (int i = 0; i < 10; i++, now += 8 * NSEC_PER_SEC) {
		CHECK(time_share_begin(&share, begin));
		time_share_end(&share, begin + 8 * NSEC_PER_SEC);
	}
	CHECK(!time_share_begin(&share, begin));
	share = (struct time_share){.percent = 10, .only_cpu = true};
	CHECK(time_share_begin(&share, begin));
	time_share_end(&share, begin + 400 * NSEC_PER_SEC);
	CHECK(time_share_begin(&share, begin)); /* waiting alone was free */

	/* Over a long time no more than its part, and nearly that. */
	share = (struct time_share){.percent = 10};
	for (now = begin; now < begin + 1000 * NSEC_PER_SEC; now += 10 * NSEC_PER_MSEC) {
		if (!time_share_begin(&share, now))
			continue;
		now += 80 * NSEC_PER_MSEC;
		time_share_end(&share, now);
		worked += 10 * NSEC_PER_MSEC;
		n++;
	}
	CHECK_INT(worked, <=, 102 * NSEC_PER_SEC);
	CHECK_INT(worked, >=, 90 * NSEC_PER_SEC);
	CHECK_INT(n, >, 0);
}

/* A stranger's server answers just before it would be late. That holds up everybody, a tenth of the
 * time at most. */
static void test_time_share_of_others_waits(void)
{
	uint64_t begin = 5 * NSEC_PER_SEC, now, waited = 0;
	struct time_share share = {.percent = 10};

	for (now = begin; now < begin + 1000 * NSEC_PER_SEC; now += NSEC_PER_MSEC) {
		if (!time_share_begin(&share, now))
			continue;
		now += 199 * NSEC_PER_MSEC;
		time_share_end_with(&share, now, 199 * NSEC_PER_MSEC);
		waited += 199 * NSEC_PER_MSEC;
	}
	CHECK_INT(waited, <=, 102 * NSEC_PER_SEC);
	CHECK_INT(waited, >=, 90 * NSEC_PER_SEC);
}

int main(void)
{
	RUN(test_hash_index_against_a_model);
	RUN(test_strtab);
	RUN(test_array_keeps_its_limit);
	RUN(test_bisect);
	RUN(test_cursor_error_is_sticky);
	RUN(test_text_clean);
	RUN(test_text_shorten);
	RUN(test_log_lines_are_clean);
	RUN(test_units);
	RUN(test_ranges);
	RUN(test_ports_of_urls);
	RUN(test_did_you_mean);
	RUN(test_text_copies);
	RUN(test_addresses);
	RUN(test_reach_of_addresses);
	RUN(test_descriptors_cross_a_socket);
	RUN(test_memory_files);
	RUN(test_loop);
	RUN(test_time_share);
	RUN(test_time_share_of_others_waits);
	return 0;
}
