/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spool by itself: what is written is read back, limits, damage of every kind, a process killed
 * at any moment, and disks that are full or cannot be written.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/exporter/spool-file.h"
#include "src/exporter/spool.h"
#include "tests/unit/test.h"
#include "util/clock.h"
#include "util/log.h"

static char top[] = "/tmp/test-spool.XXXXXX";
static char dir[64];
static unsigned int n_dirs;

static void new_dir(void)
{
	(void)snprintf(dir, sizeof(dir), "%s/%u", top, ++n_dirs);
	CHECK_INT(mkdir(dir, 0700), ==, 0);
}

static int run(const char *format, const char *name)
{
	char command[512];
	int n = snprintf(command, sizeof(command), "cd %s && ", dir);

	_Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wformat-nonliteral\"");
	(void)snprintf(command + n, sizeof(command) - (size_t)n, format, name);
	_Pragma("GCC diagnostic pop");
	return system(command);
}

static int count_files(const char *pattern)
{
	char command[256];
	int n = -1;
	FILE *f;

	(void)snprintf(command, sizeof(command), "ls %s | grep -c '%s'", dir, pattern);
	f = popen(command, "r");
	CHECK(f && fscanf(f, "%d", &n) == 1);
	(void)pclose(f);
	return n;
}

/* --- what is lost --------------------------------------------------------------------------- */

static unsigned int n_lost[3];
static uint64_t last_lost_seq, lost_samples;

static void on_lost(void *ctx, const struct spool_file *f, enum spool_loss why)
{
	CHECK(ctx == &n_lost);
	n_lost[why]++;
	last_lost_seq = f->seq;
	lost_samples += f->n_samples;
}

static struct spool *open_with(uint64_t max_bytes, uint64_t max_age_ns, uint32_t max_files)
{
	const struct spool_limits limits = {max_bytes, max_age_ns, max_files};
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct spool *s = NULL;

	memset(n_lost, 0, sizeof(n_lost));
	lost_samples = 0;
	CHECK_INT(fd, >=, 0);
	CHECK_INT(spool_open(&s, fd, dir, &limits, on_lost, &n_lost), ==, 0);
	return s;
}

static struct spool *open_any(void)
{
	return open_with(UINT64_C(1) << 30, 0, 0);
}

/* --- payloads that tell what they are ------------------------------------------------------- */

/* Of any size, every byte a function of id. */
static void fill(uint8_t *to, size_t n, uint64_t id)
{
	uint64_t x = id * UINT64_C(0x9e3779b97f4a7c15) + 1;

	for (size_t i = 0; i < n; i++) {
		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
		to[i] = (uint8_t)(x >> 56);
	}
}

typedef int (*put_fn)(struct spool *s, uint64_t seq, const struct spool_item *item, void *owner,
		      struct spool_file **ret);

/* Writes one payload, and makes it safe. */
static int put_one(struct spool *s, uint64_t seq, const struct spool_item *item, void *owner,
		   struct spool_file **ret)
{
	struct spool_file *f;
	int r = spool_write(s, seq, item, owner, &f);

	if (r == 0)
		r = spool_commit(s);
	if (r < 0)
		return r;
	spool_keep_limits(s, f);
	*ret = f;
	return 0;
}

static int put_by(put_fn fn, struct spool *s, uint64_t id, size_t n, uint64_t time_unix_ns,
		  struct spool_file **ret)
{
	uint8_t *body = malloc(n);
	struct spool_item item = {
		.destination = id % 2 ? "odd" : "even",
		.id = id,
		.n_samples = id + 1,
		.time_unix_ns = time_unix_ns,
		.n_halvings = (uint32_t)(id % 7),
		.encoding = id % N_ENCODINGS,
		.body = body,
		.n_body = n,
	};
	int r;

	fill(body, n, id);
	r = fn(s, spool_take_seq(s), &item, NULL, ret);
	free(body);
	return r;
}

static int put_at(struct spool *s, uint64_t id, size_t n, uint64_t time_unix_ns,
		  struct spool_file **ret)
{
	return put_by(put_one, s, id, n, time_unix_ns, ret);
}

static int write_down(struct spool *s, uint64_t id, size_t n, struct spool_file **ret)
{
	return put_by(spool_write, s, id, n, clock_realtime_ns(), ret);
}

static int put(struct spool *s, uint64_t id, size_t n, struct spool_file **ret)
{
	return put_at(s, id, n, clock_realtime_ns(), ret);
}

static void check_file(struct spool *s, struct spool_file *f)
{
	uint8_t *body = NULL, *want = malloc(f->n_body);

	CHECK_INT(f->n_halvings, ==, f->id % 7);
	CHECK_INT(spool_get(s, f, &body), ==, 0);
	fill(want, f->n_body, f->id);
	CHECK_INT(memcmp(body, want, f->n_body), ==, 0);
	CHECK_INT(f->n_samples, ==, f->id + 1);
	CHECK_INT(f->encoding, ==, f->id % N_ENCODINGS);
	CHECK_STR(spool_destination(s, f), f->id % 2 ? "odd" : "even");
	free(body);
	free(want);
}

static uint32_t count(const struct spool *s)
{
	uint32_t n = 0;

	for (const struct spool_file *f = spool_next(s, NULL); f; f = spool_next(s, f))
		n++;
	return n;
}

static uint64_t sum_bytes(const struct spool *s)
{
	uint64_t n = 0;

	for (const struct spool_file *f = spool_next(s, NULL); f; f = spool_next(s, f))
		n += f->bytes;
	return n;
}

/* --- as it should be ------------------------------------------------------------------------ */

static void test_round_trip(void)
{
	struct spool_file *f = NULL;
	struct spool *s;
	uint64_t bytes = 0, seq = 0;
	struct stat st;

	new_dir();
	s = open_any();
	CHECK(!spool_next(s, NULL));
	for (uint64_t id = 0; id < 20; id++) {
		CHECK_INT(put(s, id, 1 + id * id * 100, &f), ==, 0);
		bytes += f->bytes;
		check_file(s, f);
	}
	CHECK_INT(sum_bytes(s), ==, bytes);
	s = spool_free(s);
	CHECK_INT(count_files("otlp$"), ==, 20);
	CHECK_INT(run("test $(stat -c %%a 00000000000000000001.otlp) = 600", ""), ==, 0);
	CHECK_INT(run("stat -c %%s 00000000000000000003.otlp > ../size", ""), ==, 0);

	s = open_any();
	CHECK_INT(count(s), ==, 20);
	CHECK_INT(sum_bytes(s), ==, bytes);
	for (f = spool_next(s, NULL); f; f = spool_next(s, f)) {
		CHECK_INT(f->seq, >, seq);
		seq = f->seq;
		CHECK_INT(f->id, ==, seq - 1);
		check_file(s, f);
	}
	CHECK_INT(spool_take_seq(s), ==, 21);
	while ((f = spool_next(s, NULL)))
		spool_remove(s, f);
	CHECK_INT(sum_bytes(s), ==, 0);
	spool_free(s);
	CHECK_INT(count_files("."), ==, 0);
	CHECK_INT(fstatat(AT_FDCWD, dir, &st, 0), ==, 0);
	CHECK_INT(n_lost[0] + n_lost[1] + n_lost[2], ==, 0);
}

/* Places are taken when payloads come; when they are written is another matter. */
static void test_order(void)
{
	struct spool_file *f = NULL;
	uint64_t first, second, seq = 0;
	struct spool *s;

	new_dir();
	s = open_any();
	first = spool_take_seq(s);
	second = spool_take_seq(s);
	for (int i = 0; i < 2; i++) {
		const struct spool_item item = {
			.destination = "x", .id = 7, .body = (const uint8_t *)"body", .n_body = 4};

		CHECK_INT(put_one(s, i ? first : second, &item, NULL, &f), ==, 0);
	}
	for (int i = 0; i < 2; i++) {
		unsigned int n = 0;

		for (f = spool_next(s, NULL), seq = 0; f; f = spool_next(s, f), n++) {
			CHECK_INT(f->seq, >, seq);
			seq = f->seq;
		}
		CHECK_INT(n, ==, 2);
		spool_free(s);
		s = open_any();
	}
	spool_free(s);
}

/* --- limits --------------------------------------------------------------------------------- */

static void test_limits(void)
{
	struct spool_file *f = NULL, *busy;
	struct spool *s;

	new_dir();
	s = open_with(100000, 0, 0);
	for (uint64_t id = 0; id < 50; id++) {
		CHECK_INT(put(s, id, 10000, &f), ==, 0);
		CHECK_INT(sum_bytes(s), <=, 100000);
	}
	CHECK_INT(count(s), ==, 9);
	CHECK_INT(n_lost[SPOOL_LOSS_FULL], ==, 41);
	CHECK_INT(last_lost_seq, ==, 41);
	CHECK_INT(lost_samples, ==, 41 * 42 / 2);
	CHECK_INT(spool_next(s, NULL)->id, ==, 41);
	CHECK_INT(put(s, 50, 100001, &f), ==, -EFBIG);
	CHECK_INT(count(s), ==, 9);

	/* What is being sent stays. */
	busy = spool_next(s, NULL);
	busy->busy = true;
	for (uint64_t id = 51; id < 60; id++)
		CHECK_INT(put(s, id, 10000, &f), ==, 0);
	CHECK(spool_next(s, NULL) == busy);
	check_file(s, busy);
	spool_free(s);

	/* By number, also for what was there before. */
	s = open_with(UINT64_C(1) << 30, 0, 4);
	CHECK_INT(count(s), ==, 9);
	spool_trim(s, clock_monotonic_ns());
	CHECK_INT(count(s), ==, 4);
	CHECK_INT(n_lost[SPOOL_LOSS_FULL], ==, 5);
	spool_free(s);
	CHECK_INT(count_files("otlp$"), ==, 4);
}

/* Of what is not safe yet nothing is given up, nor anything for it; without a flush none of it
 * stays. */
static void test_batch(void)
{
	struct spool_file *f[4], *g;
	struct spool *s;
	int fd;

	new_dir();
	s = open_with(UINT64_C(1) << 30, 0, 3);
	CHECK_INT(put(s, 0, 10, &f[0]), ==, 0);
	for (uint64_t i = 1; i < 4; i++) {
		CHECK(spool_fits(s));
		CHECK_INT(write_down(s, i, 10, &f[i]), ==, 0);
		CHECK(f[i]->busy);
	}
	CHECK(!spool_fits(s));
	CHECK_INT(count_files("otlp$"), ==, 4);
	CHECK_INT(spool_commit(s), ==, 0);
	CHECK(!f[1]->busy && !f[3]->busy);
	CHECK_INT(n_lost[SPOOL_LOSS_FULL], ==, 0);
	spool_keep_limits(s, f[3]);
	CHECK_INT(n_lost[SPOOL_LOSS_FULL], ==, 1);
	CHECK(spool_next(s, NULL) == f[1]);
	spool_free(s);

	new_dir();
	CHECK_INT(fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC), >=, 0); /* cannot be flushed */
	CHECK_INT(spool_open(&s, fd, dir, &(struct spool_limits){1 << 20, 0, 0}, on_lost, &n_lost),
		  ==, 0);
	CHECK_INT(write_down(s, 1, 10, &g), ==, 0);
	CHECK_INT(write_down(s, 2, 10, &g), ==, 0);
	CHECK_INT(count_files("otlp$"), ==, 2);
	CHECK_INT(spool_commit(s), ==, -EBADF);
	CHECK_INT(count_files("."), ==, 0);
	CHECK_INT(count(s), ==, 0);
	CHECK_INT(put(s, 3, 10, &g), ==, -EBADF);
	CHECK_INT(count_files("."), ==, 0);
	CHECK(!spool_usable(s, clock_monotonic_ns()));
	spool_free(s);
}

static void test_age(void)
{
	uint64_t wall = clock_realtime_ns(), hour = 3600 * NSEC_PER_SEC;
	struct spool_file *f = NULL;
	struct spool *s;

	new_dir();
	s = open_with(1 << 20, 0, 0);
	CHECK_INT(put_at(s, 0, 10, wall - 3 * hour, &f), ==, 0);
	CHECK_INT(put_at(s, 1, 10, wall - hour, &f), ==, 0);
	/* Written under a clock that was ahead: as if it were of now. */
	CHECK_INT(put_at(s, 2, 10, wall + 100 * hour, &f), ==, 0);
	CHECK_INT(spool_deadline(s), ==, UINT64_MAX);
	spool_free(s);

	s = open_with(1 << 20, 2 * hour, 0);
	CHECK_INT(count(s), ==, 3);
	CHECK_INT(spool_deadline(s), <=, clock_monotonic_ns());
	spool_trim(s, clock_monotonic_ns());
	CHECK_INT(n_lost[SPOOL_LOSS_AGE], ==, 1);
	CHECK_INT(count(s), ==, 2);
	spool_trim(s, clock_monotonic_ns() + hour + NSEC_PER_SEC);
	CHECK_INT(n_lost[SPOOL_LOSS_AGE], ==, 2);
	CHECK_INT(spool_next(s, NULL)->id, ==, 2);
	CHECK_INT(spool_deadline(s), >, clock_monotonic_ns() + hour);
	spool_free(s);
	CHECK_INT(count_files("otlp$"), ==, 1);
}

/* --- damage --------------------------------------------------------------------------------- */

/* One byte of a file, wherever it is, is noticed: in the header at the start, else when it is read.
 */
static ssize_t read_at(int dir_fd, const char *name, uint8_t *to, size_t n)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	ssize_t r = read(fd, to, n);

	(void)close(fd);
	return r;
}

static void write_at(int dir_fd, const char *name, const uint8_t *bytes, size_t n)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK_INT(write(fd, bytes, n), ==, n);
	(void)close(fd);
}

static void test_flips(void)
{
	struct spool_file *f = NULL;
	uint8_t whole[256], byte;
	size_t n;
	int fd;

	new_dir();
	spool_free(({
		struct spool *s = open_any();
		CHECK_INT(put(s, 3, 100, &f), ==, 0);
		n = f->bytes;
		s;
	}));
	for (size_t at = 0; at < n; at++) {
		struct spool *s;
		uint8_t *body;

		(void)run("rm -f *.bad%s", "");
		fd = openat(AT_FDCWD, dir, O_DIRECTORY | O_RDONLY);
		if (at == 0)
			CHECK_INT(read_at(fd, "00000000000000000001.otlp", whole, sizeof(whole)),
				  ==, n);
		byte = whole[at];
		whole[at] ^= (uint8_t)(1u << (at % 8));
		write_at(fd, "00000000000000000001.otlp", whole, n);
		whole[at] = byte;
		(void)close(fd);
		s = open_any();
		f = spool_next(s, NULL);
		CHECK_INT(f ? spool_get(s, f, &body) : -EBADMSG, ==, -EBADMSG);
		CHECK(!spool_next(s, NULL));
		CHECK_INT(n_lost[SPOOL_LOSS_CORRUPT], ==, f ? 1 : 0);
		spool_free(s);
		CHECK_INT(count_files("bad$"), ==, 1);
		CHECK_INT(count_files("otlp$"), ==, 0);
	}
}

/* What a disk keeps of a file when the power goes: a part of it, and zeros or old bytes behind. */
static void test_torn(void)
{
	static const char *const name = "00000000000000000001.otlp";
	uint8_t whole[256], torn[256];
	struct spool_file *f = NULL;
	struct spool *s;
	size_t n;
	int fd;

	new_dir();
	s = open_any();
	CHECK_INT(put(s, 3, 100, &f), ==, 0);
	n = f->bytes;
	spool_free(s);
	fd = open(dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	CHECK_INT(read_at(fd, name, whole, sizeof(whole)), ==, n);
	for (size_t i = 0; i < 3 * n; i++) {
		size_t kept = i / 3;
		uint8_t *body;

		fill(torn, n, i);
		if (i % 3 == 1)
			memset(torn, 0, n);
		memcpy(torn, whole, kept);
		if (i % 32 == 0)
			(void)run("rm -f *.bad%s", "");
		write_at(fd, name, torn, i % 3 ? n : kept);
		s = open_any();
		f = spool_next(s, NULL);
		/* A last byte that happens to be the right one. */
		if (memcmp(torn, whole, n) == 0 && i % 3) {
			CHECK(f && spool_get(s, f, &body) == 0);
			free(body);
		} else {
			CHECK_INT(f ? spool_get(s, f, &body) : -EBADMSG, ==, -EBADMSG);
			CHECK(!spool_next(s, NULL));
		}
		/* It goes on. */
		CHECK_INT(put(s, 5, 100, &f), ==, 0);
		check_file(s, f);
		spool_remove(s, f);
		spool_free(s);
	}
	(void)close(fd);
}

static void test_damage(void)
{
	static const char *const damages[] = {
		": > %s",
		"truncate -s 20 %s",
		"truncate -s 99 %s",
		"truncate -s +1 %s",
		"head -c 5000 /dev/urandom > %s",
		"rm %s && mkdir %s.x && mv %s.x %s",
		"rm %s && ln -s /etc/passwd %s",
		"rm %s && mkfifo %s",
		"ln %s hardlink",
	};
	struct spool_file *f = NULL;
	struct spool *s;
	uint8_t *body;

	new_dir();
	s = open_any();
	for (uint64_t id = 0; id < 2 + ARRAY_SIZE(damages); id++)
		CHECK_INT(put(s, id, 100, &f), ==, 0);
	spool_free(s);
	for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
		char name[SPOOL_NAME_MAX], command[512];

		spool_file_name(name, i + 2, SPOOL_SUFFIX);
		(void)snprintf(command, sizeof(command), "f=%s; ", name);
		for (const char *p = damages[i]; *p; p++) {
			size_t at = strlen(command);

			if (p[0] == '%' && p[1] == 's') {
				strcat(command, "$f");
				p++;
			} else {
				command[at] = *p;
				command[at + 1] = '\0';
			}
		}
		CHECK_INT(run("%s", command), ==, 0);
	}
	CHECK_INT(run("touch 00000000000000000077.tmp 99999999999999999999.otlp README "
		      "1.otlp 0000000000000000007x.otlp %s",
		      "00000000000000000099.tmp"),
		  ==, 0);

	s = open_any();
	CHECK_INT(count(s), ==, 2);
	/* A number that was given is not given again. */
	CHECK_INT(spool_take_seq(s), ==, 100);
	for (f = spool_next(s, NULL); f; f = spool_next(s, f))
		check_file(s, f);
	CHECK_INT(count_files("bad$"), ==, 4);
	CHECK_INT(count_files("tmp$"), ==, 0);
	CHECK_INT(count_files("README"), ==, 1);

	/* One that disappears, one that is exchanged while we run. */
	f = spool_next(s, NULL);
	CHECK_INT(run("rm 00000000000000000001.otlp%s", ""), ==, 0);
	CHECK_INT(spool_get(s, f, &body), ==, -EBADMSG);
	CHECK_INT(n_lost[SPOOL_LOSS_CORRUPT], ==, 1);
	f = spool_next(s, NULL);
	CHECK_INT(run("echo > 00000000000000000011.otlp%s", ""), ==, 0);
	CHECK_INT(spool_get(s, f, &body), ==, -EBADMSG);
	CHECK_INT(n_lost[SPOOL_LOSS_CORRUPT], ==, 2);
	CHECK(!spool_next(s, NULL));
	spool_free(s);
}

/* Ten thousand names of which none is right: the start takes no time to speak of. */
static void test_many(void)
{
	uint64_t begin;
	struct spool *s;

	new_dir();
	CHECK_INT(run("seq -f %%020.0f.otlp 1 10000 | xargs touch%s", ""), ==, 0);
	begin = clock_monotonic_ns();
	s = open_any();
	CHECK_INT(clock_monotonic_ns() - begin, <, 20 * NSEC_PER_SEC);
	CHECK_INT(count(s), ==, 0);
	spool_free(s);
	CHECK_INT(count_files("."), ==, 4);
}

/* --- crashes -------------------------------------------------------------------------------- */

struct ledger {
	uint64_t next;	       /* id to be put */
	uint64_t acknowledged; /* ids below are safe */
	uint64_t sent;	       /* ids below have been sent and removed */
	uint64_t removing;     /* being removed right now: may be there or not */
};

#define BATCH 3

/* Puts and removes for ever, as the exporter does: one, or some at a time. */
static void work(struct ledger *l)
{
	struct spool *s = open_any();
	struct spool_file *f = NULL;

	for (;;) {
		uint64_t n = l->next % 2 ? BATCH : 1;

		for (uint64_t i = l->next; i < l->next + n; i++) {
			if (write_down(s, i, 1 + (i * 7919) % 30000, &f) < 0)
				_exit(1);
		}
		if (spool_commit(s) < 0)
			_exit(1);
		l->next += n;
		__atomic_store_n(&l->acknowledged, l->next, __ATOMIC_SEQ_CST);
		/* Removes a little more slowly than it puts. */
		f = spool_next(s, NULL);
		if (l->next % 4 && f) {
			l->removing = f->id + 1;
			__atomic_store_n(&l->sent, f->id + 1, __ATOMIC_SEQ_CST);
			spool_remove(s, f);
		}
	}
}

static void check_after_crash(struct ledger *l)
{
	struct spool *s = open_any();
	uint64_t expected = l->sent;
	struct spool_file *f;

	CHECK_INT(count_files("bad$"), ==, 0);
	for (f = spool_next(s, NULL); f; f = spool_next(s, f)) {
		if (f->id < l->sent) {
			CHECK_INT(f->id + 1, ==,
				  l->removing); /* not gone yet: sent twice at worst */
			continue;
		}
		CHECK_INT(f->id, ==, expected);
		check_file(s, f);
		expected++;
	}
	/* All that was acknowledged, and perhaps those that were about to be. */
	CHECK_INT(expected, >=, l->acknowledged);
	CHECK_INT(expected, <=, l->acknowledged + BATCH);
	l->next = expected;
	l->acknowledged = expected;
	spool_free(s);
	CHECK_INT(count_files("tmp$"), ==, 0);
}

/* Lets a child work for so many entries to and returns from system calls, and kills it there. */
static bool work_until(struct ledger *l, unsigned int n_stops)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(77);
		(void)raise(SIGSTOP);
		work(l);
	}
	CHECK_INT(waitpid(pid, &status, 0), ==, pid);
	for (unsigned int i = 0; i < n_stops && WIFSTOPPED(status); i++) {
		CHECK_INT(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), ==, 0);
		CHECK_INT(waitpid(pid, &status, 0), ==, pid);
	}
	if (WIFSTOPPED(status)) {
		(void)kill(pid, SIGKILL);
		CHECK_INT(waitpid(pid, &status, 0), ==, pid);
		return true;
	}
	CHECK_INT(WEXITSTATUS(status), ==, 77);
	return false;
}

/* Before and after each system call of a few puts and removals, none left out. */
static void test_crash_at_each_call(void)
{
	struct ledger *l =
		mmap(NULL, sizeof(*l), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int n = 0;

	CHECK(l != MAP_FAILED);
	do {
		CHECK_INT(n, <, 2000);
		new_dir();
		memset(l, 0, sizeof(*l));
		if (!work_until(l, ++n)) {
			fprintf(stderr, "  left out: no process may be traced here\n");
			break;
		}
		check_after_crash(l);
	} while (l->acknowledged < 5 || l->sent < 4);
	fprintf(stderr, "  killed at %u places, %" PRIu64 " puts, %" PRIu64 " sent\n", n,
		l->acknowledged, l->sent);
	(void)munmap(l, sizeof(*l));
}

static void test_crashes(void)
{
	struct ledger *l =
		mmap(NULL, sizeof(*l), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const char *wanted = getenv("SPOOL_KILLS");
	int n_kills = wanted ? atoi(wanted) : 100;
	unsigned int n_puts = 0;

	CHECK(l != MAP_FAILED);
	CHECK_INT(n_kills, >, 0);
	new_dir();
	srand(1);
	/* More rounds where the child hardly ever gets to run in its time. */
	for (int i = 0; i < n_kills || (i < 10000 && (n_puts <= 10 || l->sent <= 5)); i++) {
		uint64_t before = l->acknowledged;
		pid_t pid = fork();
		int status;

		if (pid == 0)
			work(l);
		(void)usleep(500 + (unsigned int)rand() % 20000);
		(void)kill(pid, SIGKILL);
		CHECK_INT(waitpid(pid, &status, 0), ==, pid);
		CHECK(WIFSIGNALED(status));
		n_puts += (unsigned int)(l->acknowledged - before);
		check_after_crash(l);
	}
	fprintf(stderr, "  %u puts, %" PRIu64 " sent\n", n_puts, l->sent);
	CHECK_INT(n_puts, >, 10);
	CHECK_INT(l->sent, >, 5);
	(void)munmap(l, sizeof(*l));
}

/* --- disks ---------------------------------------------------------------------------------- */

static void test_full_disk(void)
{
	struct spool_file *f = NULL;
	struct spool *s;
	unsigned int n = 0;
	int r;

	new_dir();
	if (mount("tmpfs", dir, "tmpfs", 0, "size=512k,mode=0700") < 0) {
		fprintf(stderr, "  left out: no tmpfs can be mounted here\n");
		return;
	}
	s = open_any();
	while ((r = put(s, n, 30000, &f)) == 0)
		n++;
	CHECK_INT(r, ==, -ENOSPC);
	CHECK_INT(n, >=, 10);
	CHECK_INT(n, <, 17);
	CHECK_INT(count(s), ==, n);
	CHECK(!spool_usable(s, clock_monotonic_ns()));
	CHECK(spool_usable(s, clock_monotonic_ns() + 11 * NSEC_PER_SEC));
	CHECK_INT(spool_retry_ns(s), >, clock_monotonic_ns());
	spool_retry_now(s);
	CHECK(spool_usable(s, clock_monotonic_ns()));

	/* Of two at once only the first fits. */
	CHECK_INT(put(s, n, 1000, &f), ==, 0);
	CHECK_INT(write_down(s, n, 1000, &f), ==, 0);
	CHECK_INT(write_down(s, n + 1, 60000, &f), ==, -ENOSPC);
	CHECK_INT(spool_commit(s), ==, 0);
	CHECK(!spool_usable(s, clock_monotonic_ns()));
	while (count(s) > n)
		spool_remove(s, spool_next(s, NULL));

	/* Full to the last page, so that the write itself fails; then there is room again. */
	CHECK_INT(run("dd if=/dev/zero of=filler bs=4k 2>/dev/null; test -s filler%s", ""), ==, 0);
	CHECK_INT(put(s, n, 30000, &f), ==, -ENOSPC);
	CHECK_INT(run("rm filler%s", ""), ==, 0);
	spool_remove(s, spool_next(s, NULL));
	spool_remove(s, spool_next(s, NULL));
	CHECK_INT(put(s, n + 1, 30000, &f), ==, 0);
	CHECK(spool_usable(s, clock_monotonic_ns()));
	CHECK_INT(n_lost[SPOOL_LOSS_FULL], ==, 0);

	/* Read-only: nothing on it is given up for what cannot be written. */
	CHECK_INT(mount(NULL, dir, NULL, MS_REMOUNT | MS_RDONLY, NULL), ==, 0);
	CHECK_INT(put(s, n + 2, 30000, &f), ==, -EROFS);
	CHECK_INT(count(s), ==, n - 1);
	spool_free(s);
	s = open_any();
	CHECK_INT(count(s), ==, n - 1);
	check_file(s, spool_next(s, NULL));
	spool_free(s);
	CHECK_INT(umount2(dir, MNT_DETACH), ==, 0);
}

static void test_no_directory(void)
{
	struct spool *s = NULL;
	const struct spool_limits limits = {1 << 20, 0, 0};
	struct spool_file *f = NULL;

	CHECK_INT(spool_open(&s, open("/dev/null", O_RDONLY | O_CLOEXEC), "/dev/null", &limits,
			     on_lost, &n_lost),
		  ==, -ENOTDIR);
	CHECK_INT(spool_open(&s, -1, "none", &limits, on_lost, &n_lost), ==, -EBADF);
	new_dir();
	s = open_any();
	CHECK_INT(run("cd .. && rmdir %s", dir), ==, 0);
	CHECK_INT(put(s, 1, 10, &f), ==, -ENOENT);
	CHECK_INT(put(s, 1, 10, &f), ==, -ENOENT);
	spool_free(s);
}

int main(void)
{
	test_make_directory(top);
	log_set_level(LOG_LEVEL_ERROR);
	RUN(test_round_trip);
	RUN(test_order);
	RUN(test_limits);
	RUN(test_batch);
	RUN(test_age);
	RUN(test_flips);
	RUN(test_torn);
	RUN(test_damage);
	RUN(test_many);
	RUN(test_crash_at_each_call);
	RUN(test_crashes);
	RUN(test_full_disk);
	RUN(test_no_directory);
	return 0;
}
