/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is handed out only because a file holds a runtime: what the opener opens, and whom it
 * believes. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/opener/helper.h"
#include "src/opener/judge.h"
#include "src/opener/opener.h"
#include "src/process/judging.h"
#include "src/process/role.h"
#include "tests/unit/compile.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"
#include "util/fdmsg.h"

/* Exports what PHP does, or keeps that for itself, and only tells by a section what it holds: that
 * is no reason to read its memory. Maps a file to read, and waits. */
static const char program[] =
	"#include <fcntl.h>\n#include <stdio.h>\n#include <sys/mman.h>\n#include <unistd.h>\n"
	"__attribute__((section(\".PyRuntime\"))) int state = 1;\n"
	"int executor_globals[99]; void execute_ex(void) {}\n"
	"const char *get_zend_version(void) { return \"Zend Engine v4.2.31\"; }\n"
	"int main(int argc, char **argv) {\n"
	"	int fd = argc > 1 ? open(argv[1], O_RDONLY) : -1;\n"
	"	if (argc > 1 && mmap(0, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED) return "
	"1;\n"
	"	puts(\"ready\"); fflush(stdout); pause(); return executor_globals[0]; }\n";

static char directory[] = "/tmp/test-judge-XXXXXX";

static void path_of(char path[64], const char *name)
{
	(void)snprintf(path, 64, "%s/%s", directory, name);
}

static int open_made(const char *name, struct file_identity *ret)
{
	char path[64];
	int fd;

	path_of(path, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK_INT(fd, >=, 0);
	CHECK_INT(file_identity_get(fd, ret), ==, 0);
	return fd;
}

static void make_files(void)
{
	char path[64];
	FILE *f;

	path_of(path, "program.c");
	f = fopen(path, "w");
	CHECK(f && fputs(program, f) >= 0 && fclose(f) == 0);
	CHECK_INT(test_compile(directory, "marked plain",
			       "${CC:-gcc} -rdynamic -o marked program.c && "
			       "${CC:-gcc} -o plain program.c"),
		  ==, 0);
}

static struct setup_common set_up(void)
{
	struct setup_common s = {.seccomp = sandbox_choose_mode(SANDBOX_KILL), .landlock = true};

	(void)setup_choose_user(&s.privileges, NULL);
	return s;
}

static int own_exe(void)
{
	int fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);

	CHECK_INT(fd, >=, 0);
	return fd;
}

static struct judge *new_judge(int exe_fd, const char *kind)
{
	const struct setup_common s = set_up();
	struct judge *j = NULL;

	CHECK_INT(setenv("TEST_JUDGE", kind, 1), ==, 0);
	CHECK_INT(judge_new(&j, exe_fd, &s), ==, 0);
	return j;
}

/* ---- Judges ---- */

static void test_verdicts(void)
{
	_cleanup_close_ int exe = own_exe(), marked = -EBADF, plain = -EBADF;
	struct judge *j = new_judge(exe, "real");
	struct file_identity is_marked, is_plain;

	marked = open_made("marked", &is_marked);
	plain = open_made("plain", &is_plain);
	CHECK_INT(judge_ask(j, marked, &is_marked), ==, 1);
	CHECK_INT(judge_ask(j, plain, &is_plain), ==, 0);
	/* Nobody is asked again. */
	CHECK_INT(setenv("TEST_JUDGE", "dies", 1), ==, 0);
	CHECK_INT(judge_ask(j, marked, &is_marked), ==, 1);
	/* Of a file that was written to since. */
	is_marked.mtime_ns++;
	CHECK_INT(judge_ask(j, marked, &is_marked), ==, 0);
	CHECK_INT(judge_n_put_off(j), ==, 0);
	judge_free(j);
}

/* Each says no, whatever becomes of the judge. */
static void test_bad_judges(void)
{
	static const char *const kinds[] = {"dies", "silent", "unclear", "spins"};
	_cleanup_close_ int exe = own_exe(), marked = -EBADF;
	struct file_identity id;

	marked = open_made("marked", &id);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct judge *j = new_judge(exe, kinds[i]);

		CHECK_INT(judge_ask(j, marked, &id), ==, 0);
		/* It is not asked for again, and nobody is left. */
		CHECK_INT(setenv("TEST_JUDGE", "real", 1), ==, 0);
		CHECK_INT(judge_ask(j, marked, &id), ==, 0);
		judge_free(j);
		while (waitpid(-1, NULL, 0) > 0)
			;
	}
}

/* Files that keep their judges busy are put off, and counted. */
static void test_share(void)
{
	_cleanup_close_ int exe = own_exe(), marked = -EBADF;
	struct judge *j = new_judge(exe, "spins");
	struct file_identity id;
	int r = 0, n = 0;

	marked = open_made("marked", &id);
	for (; r == 0 && n < 20; n++) {
		id.mtime_ns++;
		r = judge_ask(j, marked, &id);
	}
	CHECK_INT(r, ==, -EAGAIN);
	CHECK_INT(n, >, 1);
	CHECK_INT(judge_n_put_off(j), ==, 1);
	judge_free(j);
}

/* ---- Memory ---- */

struct running {
	pid_t pid;
	uint64_t own, other; /* where its own file and the one that it reads begin */
};

static uint64_t find_image(pid_t pid, const char *path)
{
	char maps[64], line[512];
	uint64_t image = 0;
	FILE *f;

	(void)snprintf(maps, sizeof(maps), "/proc/%d/maps", (int)pid);
	f = fopen(maps, "r");
	CHECK(f != NULL);
	while (!image && fgets(line, sizeof(line), f)) {
		if (strstr(line, path))
			image = strtoull(line, NULL, 16);
	}
	(void)fclose(f);
	CHECK(image != 0);
	return image;
}

static struct running run(const char *name, const char *reads)
{
	char path[64], other[64], ready[8];
	struct running p;
	int out[2];

	path_of(path, name);
	path_of(other, reads);
	CHECK_INT(pipe(out), ==, 0);
	p.pid = fork();
	CHECK_INT(p.pid, >=, 0);
	if (p.pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)dup2(out[1], 1);
		(void)execl(path, path, other, NULL);
		_exit(125);
	}
	(void)close(out[1]);
	CHECK_INT(read(out[0], ready, sizeof(ready)), >, 0);
	(void)close(out[0]);
	p.own = find_image(p.pid, path);
	p.other = find_image(p.pid, other);
	return p;
}

static void end(const struct running *p)
{
	CHECK_INT(kill(p->pid, SIGKILL), ==, 0);
	CHECK_INT(waitpid(p->pid, NULL, 0), ==, p->pid);
}

static int open_memory(struct opener_helper *h, const struct running *p, uint64_t image)
{
	struct message ask = {.type = MESSAGE_ASK_MEMORY};
	struct file_identity id;

	ask.ask_pid.pid = (uint32_t)p->pid;
	ask.ask_pid.image = image;
	return opener_helper_open(h, &ask, &id);
}

/* Can the head of an ELF file be read there? */
static void check_memory(int owned_fd, uint64_t image)
{
	_cleanup_close_ int fd = owned_fd;
	char head[4];

	CHECK_INT(fd, >=, 0);
	CHECK_INT(pread(fd, head, sizeof(head), (off_t)image), ==, sizeof(head));
	CHECK(memcmp(head, "\177ELF", 4) == 0);
}

static void test_memory(void)
{
	_cleanup_close_ int exe = own_exe();
	const struct setup_common s = set_up();
	struct running marked = run("marked", "plain"), plain = run("plain", "marked");
	const struct privileges none = {.max_data = 0};
	struct opener_helper *h = NULL;
	struct stat st;
	char path[64];

	CHECK_INT(setenv("TEST_JUDGE", "real", 1), ==, 0);
	CHECK_INT(opener_helper_new(&h, exe, &none, &s), ==, 0);
	check_memory(open_memory(h, &marked, marked.own), marked.own);
	/* Nobody has said where a runtime may be, or not in its code. */
	CHECK_INT(open_memory(h, &marked, 0), ==, -ENOENT);
	CHECK_INT(open_memory(h, &marked, marked.own + 4096), ==, -ENOENT);
	CHECK_INT(open_memory(h, &marked, marked.other), ==, -ENOENT);
	/* What another program only reads is not what it runs. */
	CHECK_INT(open_memory(h, &plain, plain.own), ==, -ENOENT);
	CHECK_INT(open_memory(h, &plain, plain.other), ==, -ENOENT);
	/* The answer counts as long as the file stays as it is, whatever time of writing its owner
	 * gives it. */
	CHECK_INT(setenv("TEST_JUDGE", "dies", 1), ==, 0);
	check_memory(open_memory(h, &marked, marked.own), marked.own);
	path_of(path, "marked");
	CHECK_INT(stat(path, &st), ==, 0);
	CHECK_INT(utimensat(AT_FDCWD, path, (const struct timespec[]){st.st_atim, st.st_mtim}, 0),
		  ==, 0);
	CHECK_INT(open_memory(h, &marked, marked.own), ==, -ENOENT);
	CHECK_INT(opener_helper_n_refused(h), ==, 0);
	opener_helper_free(h);
	end(&marked);
	end(&plain);
}

/* A start that takes longer than a request waits for it: it goes on, and a later request finds it
 * done. */
static void test_slow_start(void)
{
	_cleanup_close_ int exe = own_exe();
	const struct setup_common s = set_up();
	struct running marked = run("marked", "plain");
	const struct privileges none = {.max_data = 0};
	struct opener_helper *h = NULL;
	pid_t first;
	char path[64];
	int fd;

	CHECK_INT(setenv("TEST_JUDGE", "real", 1), ==, 0);
	path_of(path, "slow");
	CHECK_INT(setenv("TEST_OPENER", path, 1), ==, 0);
	CHECK_INT(mkfifo(path, 0600), ==, 0);
	CHECK_INT(opener_helper_new(&h, exe, &none, &s), ==, 0);
	opener_helper_prepare(h);
	first = opener_helper_pid(h);
	CHECK_INT(open_memory(h, &marked, marked.own), ==, -ETIMEDOUT);
	CHECK_INT(open_memory(h, &marked, marked.own), ==, -ETIMEDOUT);
	CHECK_INT(opener_helper_pid(h), ==, first);
	(void)close(open(path, O_WRONLY)); /* it goes on */
	while ((fd = open_memory(h, &marked, marked.own)) == -ETIMEDOUT)
		(void)usleep(10000);
	check_memory(fd, marked.own);
	CHECK_INT(opener_helper_pid(h), ==, first);
	CHECK_INT(unsetenv("TEST_OPENER"), ==, 0);
	opener_helper_free(h);
	end(&marked);
}

/* What a judge does here. */
static int judge_as(const char *kind)
{
	uint8_t what = '?';
	struct message m;
	int fds[2];

	if (strcmp(kind, "real") == 0)
		return judge_main();
	if (message_recv(PROTOCOL_CONTROL_FD, &m, fds, 0) <= 0)
		return 1;
	if (strcmp(kind, "unclear") == 0)
		return write(PROTOCOL_CONTROL_FD, &what, 1) != 1;
	while (strcmp(kind, "spins") == 0)
		;
	if (strcmp(kind, "silent") == 0)
		(void)pause();
	return 1;
}

/* Once somebody writes to that FIFO. */
static int open_slowly(void)
{
	const char *fifo = getenv("TEST_OPENER");

	if (fifo)
		(void)close(open(fifo, O_RDONLY));
	return opener_main();
}

int main(int argc, char **argv)
{
	const char *kind = getenv("TEST_JUDGE");
	char command[64];

	if (strcmp(argv[0], "perfwalk: " JUDGING_NAME) == 0)
		return judge_as(kind ? kind : "");
	if (strcmp(argv[0], "perfwalk: " OPENER_NAME) == 0)
		return open_slowly();
	CHECK(mkdtemp(directory) != NULL);
	make_files();
	RUN(test_verdicts);
	RUN(test_bad_judges);
	RUN(test_share);
	RUN(test_memory);
	RUN(test_slow_start);
	(void)snprintf(command, sizeof(command), "rm -r %s", directory);
	CHECK_INT(system(command), ==, 0);
	return 0;
}
