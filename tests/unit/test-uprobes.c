/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes of user code get their places: a child without privileges, which is this program as the
 * symbolizer, reads the file, and what it writes comes back as offsets or as an error for the user.
 * The targets are in this program, so the kernel says where they are.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/cmd/uprobes.h"
#include "src/opener/helper.h"
#include "src/process/role.h"
#include "src/sample/uprobe.h"
#include "tests/unit/probe-target.h"
#include "tests/unit/test.h"
#include "util/log.h"

static char dir[] = "/tmp/test-uprobes.XXXXXX";
static char own[512]; /* path of this program */
static char error[1024];

static struct sample_event parse(const char *kind, const char *path, const char *what)
{
	struct sample_event e;
	char text[1024];

	(void)snprintf(text, sizeof(text), "%s:%s:%s", kind, path, what);
	CHECK_INT(uprobe_parse(text, &e, error, sizeof(error)), ==, 0);
	return e;
}

static int place(const char *kind, const char *path, const char *what, pid_t pid,
		 const struct sample_uprobe **ret)
{
	const struct sample_event e = parse(kind, path, what);

	error[0] = '\0';
	*ret = e.uprobe;
	return uprobes_place(&e, pid, error, sizeof(error));
}

static void check_says(const char *what)
{
	if (strstr(error, what))
		return;
	fprintf(stderr, "\"%s\" does not say \"%s\"\n", error, what);
	exit(1);
}

/* Sets probes nowhere, but needs tracefs or the kernel's PMU for them. */
static const struct sample_uprobe *need_place(const char *kind, const char *what, pid_t pid)
{
	const struct sample_uprobe *u;
	int r = place(kind, own, what, pid, &u);

	if (r == -ENODEV || r == -ENOENT)
		SKIP("%s", error);
	CHECK_STR(error, "");
	CHECK_INT(r, ==, 0);
	CHECK(u->placed);
	return u;
}

/* ---- Places ---- */

static void test_function(void)
{
	const struct sample_uprobe *u = need_place("uprobe", "probe_target", 0);
	uint64_t offset = probe_offset_of((const void *)(uintptr_t)probe_target);

	CHECK_INT(u->n_sites, ==, 1);
	CHECK_INT(u->sites[0].offset, ==, offset);
	CHECK_INT(u->sites[0].counter, ==, 0);
	u = need_place("uprobe", "probe_target+0x2", 0);
	CHECK_INT(u->sites[0].offset, ==, offset + 2);
}

static void test_marker(void)
{
	const struct sample_uprobe *u = need_place("usdt", "unit:step", 0);

	CHECK_INT(u->n_sites, ==, 2);
	CHECK_INT(u->sites[0].offset, ==, probe_offset_of(probe_site_1));
	CHECK_INT(u->sites[0].counter, ==, 0);
	CHECK_INT(u->sites[1].offset, ==, probe_offset_of(probe_site_2));
	CHECK_INT(u->sites[1].counter, ==, probe_offset_of(&probe_watchers));
}

static void test_nothing_to_place(void)
{
	const struct sample_event e = {.name = "cpu-clock"};

	CHECK_INT(uprobes_place(&e, 0, error, sizeof(error)), ==, 0);
}

/* The caller's signals are as before, and no child is left. */
static void test_caller_is_not_disturbed(void)
{
	sigset_t before, after;

	CHECK_INT(sigprocmask(SIG_BLOCK, NULL, &before), ==, 0);
	(void)need_place("uprobe", "test_remove_directory", 0);
	CHECK_INT(sigprocmask(SIG_BLOCK, NULL, &after), ==, 0);
	for (int i = 1; i < NSIG; i++)
		CHECK_INT(sigismember(&before, i), ==, sigismember(&after, i));
	CHECK_INT(waitpid(-1, NULL, WNOHANG), ==, -1);
	CHECK_INT(errno, ==, ECHILD);
}

/* ---- Whose file it is ---- */

/* A process whose root is dir; 0: not permitted. */
static pid_t start_elsewhere(void)
{
	int pipes[2];
	pid_t pid;
	char c;

	CHECK_INT(pipe(pipes), ==, 0);
	pid = fork();
	CHECK_INT(pid, >=, 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a check may fail */
		(void)close(pipes[0]);
		if ((chroot(dir) < 0 && (unshare(CLONE_NEWUSER) < 0 || chroot(dir) < 0)) ||
		    write(pipes[1], "r", 1) != 1)
			_exit(1);
		(void)close(pipes[1]);
		for (;;)
			(void)pause();
	}
	(void)close(pipes[1]);
	if (read(pipes[0], &c, 1) != 1) {
		CHECK_INT(waitpid(pid, NULL, 0), ==, pid);
		pid = 0;
	}
	(void)close(pipes[0]);
	return pid;
}

static void test_file_of_a_process(void)
{
	const struct sample_uprobe *u;
	struct stat copy, placed;
	char command[1200], path[300];
	pid_t pid;

	(void)snprintf(path, sizeof(path), "%s/program", dir);
	(void)snprintf(command, sizeof(command), "cp %s %s", own, path);
	CHECK_INT(system(command), ==, 0);
	CHECK_INT(stat(path, &copy), ==, 0);
	CHECK_INT(chmod(dir, 0755), ==, 0);
	pid = start_elsewhere();
	if (!pid) {
		fprintf(stderr, "not tried: this user may not change roots\n");
		return;
	}
	CHECK_INT(place("uprobe", "/program", "probe_target", 0, &u), ==, -ENOENT);
	check_says("there is no such file: /program; that of a container is "
		   "/proc/PID/root/program");
	CHECK_INT(place("uprobe", "/program", "probe_target", pid, &u), ==, 0);
	CHECK_INT(fstat(u->fd, &placed), ==, 0);
	CHECK_INT(placed.st_ino, ==, copy.st_ino);
	CHECK_INT(u->sites[0].offset, ==, probe_offset_of((const void *)(uintptr_t)probe_target));
	CHECK_INT(place("uprobe", own, "probe_target", pid, &u), ==, -ENOENT);
	check_says("sees no such file");
	CHECK_INT(kill(pid, SIGKILL), ==, 0);
	CHECK_INT(waitpid(pid, NULL, 0), ==, pid);
	CHECK_INT(place("uprobe", "/program", "probe_target", pid, &u), ==, -ESRCH);
	check_says("it has ended or never existed");
}

/* ---- Errors ---- */

static void check_fails(const char *kind, const char *path, const char *what, const char *why)
{
	const struct sample_uprobe *u;
	char with_path[1024];

	CHECK_INT(place(kind, path, what, 0, &u), ==, -ENOENT);
	(void)snprintf(with_path, sizeof(with_path), "%s: ", path);
	CHECK(strncmp(error, with_path, strlen(with_path)) == 0);
	CHECK(strchr(error, '\n') == NULL);
	check_says(why);
	CHECK(!u->placed);
}

static void test_not_in_the_file(void)
{
	char text[300];
	FILE *f;

	check_fails("uprobe", own, "probe_tarket", "did you mean probe_target?");
	check_fails("uprobe", own, "probe_target+0x99999999", "no code at");
	check_fails("usdt", own, "unit:stop", "did you mean unit:step?");
	(void)snprintf(text, sizeof(text), "%s/text", dir);
	f = fopen(text, "w");
	CHECK(f && fputs("error: this is no program\n", f) >= 0 && fclose(f) == 0);
	check_fails("uprobe", text, "probe_target", "no ELF program");
	check_fails("usdt", text, "unit:step", "no ELF program");
}

static void test_no_file(void)
{
	const struct sample_uprobe *u;

	CHECK_INT(place("uprobe", dir, "probe_target", 0, &u), <, 0);
	check_says("cannot be opened");
	CHECK_INT(place("uprobe", "/nowhere/x", "probe_target", getpid(), &u), ==, -ENOENT);
	check_says("sees no such file: /nowhere/x");
}

static void test_parsing(void)
{
	static const char *const bad[] = {
		"uprobe:",	"uprobe:x:f",	 "uprobe:/x", "uprobe:/x:", "uprobe:/:f",
		"uprobe:/x/:f", "usdt:/x:begin", "usdt:/x:",  "usdt:x:a:b",
	};
	struct sample_event e, again;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		CHECK_INT(uprobe_parse(bad[i], &e, error, sizeof(error)), ==, -EINVAL);
		check_says(strncmp(bad[i], "usdt:", 5) == 0 ? "usdt:/PATH:PROVIDER:NAME"
							    : "uprobe:/PATH:FUNCTION");
	}
	e = parse("uprobe", "/usr/lib/libx.so", "ns::f(int, char)");
	CHECK_STR(e.uprobe->path, "/usr/lib/libx.so");
	CHECK_STR(e.uprobe->what, "ns::f(int, char)");
	CHECK_STR(e.name, "libx.so:ns::f(int, char)");
	CHECK(!e.uprobe->marker);
	again = parse("uprobe", "/usr/lib/libx.so", "ns::f(int, char)");
	CHECK(again.uprobe == e.uprobe);
	e = parse("usdt", "/usr/lib/libx.so", "x:begin");
	CHECK_STR(e.name, "x:begin");
	CHECK(e.uprobe->marker);
	CHECK(uprobe_prefix("usdt:/usr/lib/libx.so:x:begin") == strlen("usdt:/usr/lib/libx.so:"));
	CHECK_INT(uprobe_prefix("cycles"), ==, 0);
}

int main(int argc, char **argv)
{
	ssize_t n;

	if (strcmp(argv[0], "perfwalk: " OPENER_NAME) == 0)
		return opener_main();
	if (strcmp(argv[0], "perfwalk: symbolizer") == 0)
		return role_symbolizer_main();
	log_set_level(LOG_LEVEL_WARNING);
	n = readlink("/proc/self/exe", own, sizeof(own) - 1);
	CHECK(n > 0);
	test_make_directory(dir);
	RUN(test_parsing);
	RUN(test_nothing_to_place);
	RUN(test_no_file);
	RUN(test_not_in_the_file);
	RUN(test_function);
	RUN(test_marker);
	RUN(test_caller_is_not_disturbed);
	RUN(test_file_of_a_process);
	return 0;
}
