/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree under a supervisor whose children are this program: a child acts by what its set-up text
 * says, so crashes, hangs and kills at a file happen when they are wanted.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/broker/answer.h"
#include "src/broker/strikes-file.h"
#include "src/broker/supervisor.h"
#include "src/opener/helper.h"
#include "src/process/message.h"
#include "src/process/status-page.h"
#include "tests/unit/child-loop.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"
#include "util/time-share.h"

#define FILE_INO   4711
#define FILE_AGAIN 4712
#define LAST_WORDS 12

/* ---- The child ---- */

/* Asks for a file by its path alone, or whatever else; the error, or 1 for a descriptor. */
static int ask(uint32_t type)
{
	struct message m = {.type = type};
	int fds[2], r;

	if (type == MESSAGE_ASK_RECORDED_FILE) {
		m.ask_recorded_file.place = RECORDED_PATH;
		m.ask_recorded_file.n_build_id = 1;
		message_set_text(m.ask_recorded_file.path, sizeof(m.ask_recorded_file.path),
				 "/proc/self/exe");
	}
	m.ask_pid.pid = type == MESSAGE_ASK_MAPS ? (uint32_t)getpid() : m.ask_pid.pid;
	r = message_send(PROTOCOL_ASK_FD, &m, NULL, 0);
	if (r == 0)
		r = message_recv(PROTOCOL_ASK_FD, &m, fds, 0);
	if (r <= 0)
		return r;
	return m.type == MESSAGE_ANSWER && m.answer.error < 0 ? m.answer.error : fds[0] >= 0;
}

/* Asks on and on, and reads no answer; as one that was taken over may. */
static void ask_without_reading(void)
{
	struct message m = {.type = MESSAGE_ASK_PROCESS};

	m.ask_pid.pid = (uint32_t)getpid();
	while (message_send(PROTOCOL_ASK_FD, &m, NULL, 0) == 0)
		;
}

/* Never long at one. */
static void spin_from_file_to_file(struct status_page *status)
{
	for (;;) {
		uint64_t until = clock_monotonic_ns() + 20 * NSEC_PER_MSEC;

		while (clock_monotonic_ns() < until)
			;
		status->job += 2;
	}
}

static int child_main(void)
{
	struct status_page *status = NULL;
	struct message m;
	int fds[2];

	while (message_recv(PROTOCOL_CONTROL_FD, &m, fds, 0) > 0) {
		if (m.type == MESSAGE_SETUP) {
			CHECK_INT(status_page_map(fds[0], &status), ==, 0);
			status->file.identity = (struct file_identity){1, FILE_INO, 2, 3};
			message_set_text(status->file.path, sizeof(status->file.path), "/bad/file");
		} else if (m.type == MESSAGE_QUARANTINE) {
			/* Told back, for the test to see. */
			struct message told = {.type = MESSAGE_RESULT};

			told.result.code =
				(int32_t)(m.quarantine.lifted ? FILE_AGAIN : m.quarantine.file.ino);
			(void)message_send(PROTOCOL_CONTROL_FD, &told, NULL, 0);
		} else if (m.type == MESSAGE_STOP) {
			struct message last = {.type = MESSAGE_RESULT};

			last.result.code = LAST_WORDS;
			(void)message_send(PROTOCOL_CONTROL_FD, &last, NULL, 0);
			return 0;
		} else if (m.type == MESSAGE_TEXT) {
			status->job = strncmp(m.text.text, "idle", 4) != 0;
			status->reading = status->job && strncmp(m.text.text, "work", 4) != 0;
			if (strncmp(m.text.text, "idle ask ", 9) == 0) {
				struct message told = {.type = MESSAGE_RESULT};

				told.result.code = ask((uint32_t)atoi(m.text.text + 9));
				(void)message_send(PROTOCOL_CONTROL_FD, &told, NULL, 0);
			}
			(void)signal(SIGSEGV, SIG_DFL); /* a sanitizer has a handler of its own */
			if (strcmp(m.text.text, "crash") == 0)
				(void)raise(SIGSEGV);
			if (strcmp(m.text.text, "killed") == 0)
				(void)raise(SIGKILL);
			if (strcmp(m.text.text, "idle crash") == 0)
				(void)raise(SIGSEGV);
			if (strcmp(m.text.text, "deaf") == 0)
				ask_without_reading();
			if (strcmp(m.text.text, "spin") == 0 || strcmp(m.text.text, "work") == 0)
				for (;;)
					(void)getppid();
			if (strcmp(m.text.text, "stopped") == 0)
				(void)raise(SIGSTOP);
			if (strcmp(m.text.text, "files") == 0)
				spin_from_file_to_file(status);
		}
	}
	return 1;
}

/* ---- The parent ---- */

/* The broker's table, with children that are started with something else. */
static const struct peer_row *rows_with(int (*set_up)(void *, struct peer_id, int, int))
{
	static struct peer_row rows[PEER_N];

	CHECK_INT(n_peer_rows, ==, PEER_N);
	for (size_t i = 0; i < n_peer_rows; i++) {
		rows[i] = peer_rows[i];
		rows[i].set_up = set_up;
	}
	return rows;
}

static struct {
	struct loop *loop;
	struct supervisor *supervisor;
	const char *symbolizer_does; /* at its next start */
	unsigned int n_started[PEER_N], n_gone[PEER_N], n_quarantined, n_again;
	unsigned int until_started, until_quarantined, until_again; /* then the loop ends */
	uint64_t set_aside_ns;
	const char *strikes_path;
	bool restart_profiler;		   /* as a reload does, once it knows of a file */
	uint64_t started_ns[16], quiet_ns; /* quiet_ns: then the loop ends, too */
	bool clean, said_last_words;
} world;

static void leave_if_seen(void)
{
	if (world.n_started[PEER_SYMBOLIZER] >= world.until_started &&
	    world.n_quarantined >= world.until_quarantined && world.n_again >= world.until_again)
		loop_exit(world.loop, 0);
}

static int on_setup(void *ctx, struct peer_id who, int control, int status_fd)
{
	struct message m = {.type = MESSAGE_SETUP};
	int r = message_send(control, &m, &status_fd, 1);

	m.type = MESSAGE_TEXT;
	message_set_text(m.text.text, sizeof(m.text.text),
			 who.kind == PEER_SYMBOLIZER ? world.symbolizer_does : "idle");
	if (r == 0)
		r = message_send(control, &m, NULL, 0);
	if (who.kind == PEER_SYMBOLIZER)
		world.started_ns[world.n_started[who.kind] % 16] = clock_monotonic_ns();
	world.n_started[who.kind]++;
	leave_if_seen();
	return r;
}

static void on_restart_timer(void *ctx)
{
	supervisor_restart(world.supervisor, peer_only(PEER_PROFILER));
}

static void on_message(void *ctx, struct peer_id who, const struct message *m)
{
	if (who.kind == PEER_SYMBOLIZER && m->type == MESSAGE_RESULT &&
	    m->result.code == LAST_WORDS)
		world.said_last_words = true;
	if (who.kind == PEER_PROFILER && m->type == MESSAGE_RESULT && m->result.code == FILE_INO) {
		world.n_quarantined++;
		world.symbolizer_does = "idle";
		if (world.restart_profiler && world.n_quarantined == 1)
			(void)loop_add_timer(world.loop, 1, 0, on_restart_timer, NULL);
		leave_if_seen();
	}
	if (who.kind == PEER_PROFILER && m->type == MESSAGE_RESULT &&
	    m->result.code == FILE_AGAIN) {
		world.n_again++;
		leave_if_seen();
	}
}

static void on_gone(void *ctx, struct peer_id who, bool clean)
{
	world.n_gone[who.kind]++;
	world.clean = clean;
	loop_exit(world.loop, 0);
}

static void on_signal(void *ctx, int fd, uint32_t events)
{
	struct signalfd_siginfo info;

	while (read(fd, &info, sizeof(info)) > 0)
		supervisor_reap(world.supervisor);
}

static void set_max_files(rlim_t n)
{
	struct rlimit limit;

	CHECK_INT(getrlimit(RLIMIT_NOFILE, &limit), ==, 0);
	limit.rlim_cur = n < limit.rlim_max ? n : limit.rlim_max;
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
}

static void on_feed_timer(void *ctx)
{
	set_max_files(RLIM_INFINITY);
}

/* The one timer sets the other: on a busy host both may be due when we look. */
static void on_starve_timer(void *ctx)
{
	CHECK_INT(loop_add_timer(world.loop, 250 * NSEC_PER_MSEC, 0, on_feed_timer, NULL), >=, 0);
	set_max_files(0);
	supervisor_restart(world.supervisor, peer_only(PEER_SYMBOLIZER));
}

static void on_stop_timer(void *ctx)
{
	supervisor_stop(world.supervisor, peer_only(PEER_SYMBOLIZER));
}

static void on_enough(void *ctx)
{
	loop_exit(world.loop, 0);
}

/* Runs the tree until the symbolizer has started n times and n_quarantined files are reported. */
static void run_tree(const char *symbolizer_does, unsigned int n, unsigned int n_quarantined,
		     uint64_t file_timeout_ns)
{
	const struct supervisor_callbacks callbacks = {.message = on_message,
						       .gone = on_gone,
						       .strikes_path = world.strikes_path,
						       .set_aside_ns = world.set_aside_ns};
	unsigned int until_again = world.set_aside_ns != 0;
	bool restart_profiler = world.restart_profiler;
	uint64_t quiet_ns = world.quiet_ns;
	int fd;

	memset(&world, 0, sizeof(world));
	world.until_again = until_again;
	world.restart_profiler = restart_profiler;
	world.symbolizer_does = symbolizer_does;
	world.until_started = n;
	world.until_quarantined = n_quarantined;
	fd = child_loop_new(&world.loop, on_signal);
	if (strcmp(symbolizer_does, "idle starved") == 0)
		(void)loop_add_timer(world.loop, 50 * NSEC_PER_MSEC, 0, on_starve_timer, NULL);
	if (quiet_ns)
		(void)loop_add_timer(world.loop, quiet_ns, 0, on_enough, NULL);
	else if (n == UINT32_MAX)
		(void)loop_add_timer(world.loop, 300 * NSEC_PER_MSEC, 0, on_stop_timer, NULL);
	CHECK_INT(supervisor_new(&world.supervisor, world.loop, rows_with(on_setup), n_peer_rows,
				 &callbacks, file_timeout_ns),
		  ==, 0);
	CHECK_INT(supervisor_start(world.supervisor, peer_only(PEER_PROFILER)), ==, 0);
	CHECK_INT(supervisor_start(world.supervisor, peer_only(PEER_SYMBOLIZER)), ==, 0);
	CHECK_INT(loop_run(world.loop), ==, 0);
	world.restart_profiler = false; /* of one tree, as what memset() clears */
	(void)close(fd);
}

static void end_tree(void)
{
	world.supervisor = supervisor_free(world.supervisor);
	world.loop = loop_free(world.loop);
}

static void test_a_crash_sets_the_file_aside(void)
{
	run_tree("crash", 2, 1, 30 * NSEC_PER_SEC);
	CHECK_INT(world.n_quarantined, ==, 1);
	CHECK_INT(world.n_started[PEER_PROFILER], ==, 1);
	end_tree();
}

/* A disk may have stalled, whatever is read from it: that ends, too, but later, and only the second
 * time blames the file. */
static void test_a_hang_sets_the_file_aside(void)
{
	run_tree("hang", 2, 0, 300 * NSEC_PER_MSEC);
	CHECK_INT(world.n_quarantined, ==, 0);
	CHECK_INT(world.started_ns[1] - world.started_ns[0], >=, 1500 * NSEC_PER_MSEC);
	end_tree();
	run_tree("hang", 3, 1, 200 * NSEC_PER_MSEC);
	CHECK_INT(world.n_quarantined, ==, 1);
	CHECK_INT(world.started_ns[2] - world.started_ns[0], >=, 2000 * NSEC_PER_MSEC);
	end_tree();
}

static void test_spinning_sets_the_file_aside(void)
{
	run_tree("spin", 2, 1, 300 * NSEC_PER_MSEC);
	CHECK_INT(world.n_quarantined, ==, 1);
	end_tree();
}

/* What passes while it is paused, or goes from file to file, is no file's fault. */
static void test_time_that_is_not_the_files(void)
{
	static const char *const ways[] = {"stopped", "files", "work waiting"};

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		world.quiet_ns = 1500 * NSEC_PER_MSEC;
		run_tree(ways[i], UINT32_MAX, 0, 300 * NSEC_PER_MSEC);
		CHECK_INT(world.n_started[PEER_SYMBOLIZER], ==, 1);
		CHECK_INT(supervisor_n_set_aside(world.supervisor), ==, 0);
		end_tree();
	}
	/* Long work on no file ends, but nothing is set aside. */
	run_tree("work", 2, 0, 300 * NSEC_PER_MSEC);
	CHECK_INT(supervisor_n_set_aside(world.supervisor), ==, 0);
	end_tree();
}

/* A new profiler learns which files were set aside before it started, as after a reload. */
static void test_a_restart_forgets_nothing(void)
{
	world.restart_profiler = true;
	run_tree("crash", 2, 2, 30 * NSEC_PER_SEC);
	CHECK_INT(world.n_started[PEER_PROFILER], ==, 2);
	CHECK_INT(supervisor_n_set_aside(world.supervisor), ==, 1);
	/* Until somebody says that it is read again. */
	CHECK_INT(supervisor_forget_strikes(world.supervisor), ==, 1);
	CHECK_INT(supervisor_forget_strikes(world.supervisor), ==, 0);
	CHECK_INT(supervisor_n_set_aside(world.supervisor), ==, 0);
	end_tree();
}

static void test_the_time_of_a_file_ends(void)
{
	world.set_aside_ns = 400 * NSEC_PER_MSEC;
	run_tree("crash", 2, 1, 30 * NSEC_PER_SEC);
	CHECK_INT(world.n_again, ==, 1);
	CHECK_INT(supervisor_n_set_aside(world.supervisor), ==, 0);
	end_tree();
}

static void test_strikes_are_saved(void)
{
	static struct strikes loaded = {.period_ns = STRIKES_PERIOD_NS};
	char path[] = "/tmp/perfwalk-strikes.XXXXXX";
	int fd = mkstemp(path);

	CHECK_INT(fd, >=, 0);
	CHECK_INT(unlink(path), ==, 0);
	(void)close(fd);
	world.strikes_path = path;
	run_tree("crash", 2, 1, 30 * NSEC_PER_SEC);
	CHECK_INT(strikes_load(&loaded, path, clock_monotonic_ns()), ==, 0);
	CHECK_INT(loaded.n, ==, 1);
	CHECK_INT(loaded.items[0].who, ==, PEER_SYMBOLIZER);
	/* Cleared on demand, there, too. */
	CHECK_INT(supervisor_forget_strikes(world.supervisor), ==, 1);
	loaded.n = 0;
	CHECK_INT(strikes_load(&loaded, path, clock_monotonic_ns()), ==, 0);
	CHECK_INT(loaded.n, ==, 0);
	end_tree();
	CHECK_INT(unlink(path), ==, 0);
}

/* What one daemon has set aside, the next one does not read, until the same moment. */
static void test_strikes_outlive_a_restart(void)
{
	static struct strikes s, loaded;
	struct status_file file = {.identity = {1, 2, 3, 4}, .path = "/a"};
	char dir[] = "/tmp/perfwalk-test.XXXXXX", path[64];
	uint64_t now = 5 * NSEC_PER_SEC, left;
	const struct strike *k;
	FILE *f;

	test_make_directory(dir);
	(void)snprintf(path, sizeof(path), "%s/set-aside", dir);
	s = loaded = (struct strikes){.period_ns = 3600 * NSEC_PER_SEC};
	CHECK_INT(strikes_load(&loaded, path, now), ==, 0); /* none yet */
	for (uint64_t i = 0; i < STRIKES_MAX + 10; i++) {
		file.identity.ino = i;
		CHECK_INT(strikes_add(&s, PEER_SYMBOLIZER, &file, i != 20, true, now), ==,
			  i != 20 ? STRIKE_ASIDE : STRIKE_COUNTED);
	}
	CHECK_INT(strikes_save(&s, path, now), ==, 0);

	/* Another boot: its clock says another time. */
	now = 1000 * NSEC_PER_SEC;
	CHECK_INT(strikes_load(&loaded, path, now), ==, 0);
	CHECK_INT(loaded.n, ==, STRIKES_MAX);
	for (uint64_t i = 0; i < STRIKES_MAX + 10; i++) {
		file.identity.ino = i;
		k = strikes_find(&loaded, PEER_SYMBOLIZER, &file.identity);
		CHECK_INT(k != NULL, ==, i >= 10 && i != 20);
	}
	CHECK_STR(k->file.path, "/a");
	left = k->until_ns - now;
	CHECK_INT(left, <=, 3600 * NSEC_PER_SEC);
	CHECK_INT(left, >, 3000 * NSEC_PER_SEC);
	/* The oldest still goes first, and the second time is longer. */
	file.identity.ino = 1000;
	CHECK_INT(strikes_add(&loaded, PEER_PROFILER, &file, true, false, now), ==, STRIKE_ASIDE);
	file.identity.ino = 10;
	CHECK(!strikes_find(&loaded, PEER_SYMBOLIZER, &file.identity));
	while (strikes_take_back(&loaded, UINT64_MAX))
		;
	file.identity.ino = 11;
	CHECK_INT(strikes_add(&loaded, PEER_SYMBOLIZER, &file, true, true, now), ==, STRIKE_ASIDE);
	k = strikes_find(&loaded, PEER_SYMBOLIZER, &file.identity);
	CHECK_INT(k->until_ns - now, ==, 7200 * NSEC_PER_SEC);

	/* What is damaged, or somebody else can write to, is not taken. */
	loaded = (struct strikes){.period_ns = 100};
	CHECK_INT(chmod(path, 0666), ==, 0);
	CHECK_INT(strikes_load(&loaded, path, now), ==, -EPERM);
	CHECK_INT(chmod(path, 0600), ==, 0);
	f = fopen(path, "r+");
	CHECK(f && fseek(f, 100, SEEK_SET) == 0 && fputc('!', f) == '!' && fclose(f) == 0);
	CHECK_INT(strikes_load(&loaded, path, now), ==, -EBADMSG);
	CHECK_INT(truncate(path, 10), ==, 0);
	CHECK_INT(strikes_load(&loaded, path, now), ==, -EBADMSG);
	CHECK_INT(loaded.n, ==, 0);
}

static void test_how_long_a_file_is_set_aside(void)
{
	static struct strikes s;
	struct status_file file = {.identity = {1, 2, 3, 4}, .path = "/a"}, other = file;
	const struct strike *k;
	uint64_t now = 1000;
	uint32_t at = 0;

	s = (struct strikes){.period_ns = 100};
	/* Each time twice as long, up to 64 times. */
	for (uint64_t length = 100, i = 0; i < 10; i++) {
		CHECK(!strikes_find(&s, PEER_PROFILER, &file.identity));
		CHECK_INT(strikes_add(&s, PEER_PROFILER, &file, true, true, now), ==, STRIKE_ASIDE);
		CHECK_INT(strikes_add(&s, PEER_PROFILER, &file, true, true, now), ==,
			  STRIKE_BEFORE);
		k = strikes_find(&s, PEER_PROFILER, &file.identity);
		CHECK(k);
		CHECK_INT(k->until_ns, ==, now + length);
		CHECK(!strikes_find(&s, PEER_SYMBOLIZER, &file.identity));
		CHECK(!strikes_take_back(&s, now + length - 1));
		CHECK(strikes_take_back(&s, now + length) == k);
		CHECK(!strikes_take_back(&s, UINT64_MAX));
		now += length;
		length = i < 6 ? 2 * length : length;
	}
	/* Kills by others count when they follow each other. */
	other.identity.ino = 5;
	CHECK_INT(strikes_add(&s, PEER_SYMBOLIZER, &other, false, false, now), ==, STRIKE_COUNTED);
	now += 101;
	CHECK_INT(strikes_add(&s, PEER_SYMBOLIZER, &other, false, false, now), ==, STRIKE_COUNTED);
	now += 99;
	CHECK_INT(strikes_add(&s, PEER_SYMBOLIZER, &other, false, false, now), ==, STRIKE_ASIDE);
	k = strikes_next(&s, &at);
	CHECK(k && k->who == PEER_SYMBOLIZER);
	CHECK(!strikes_next(&s, &at));
	/* The table is full: the oldest makes room. */
	for (uint64_t i = 0; i < STRIKES_MAX; i++) {
		file.identity.ino = 100 + i;
		(void)strikes_add(&s, PEER_PROFILER, &file, true, false, now);
	}
	CHECK_INT(s.n, ==, STRIKES_MAX);
	CHECK(!strikes_find(&s, PEER_SYMBOLIZER, &other.identity));
}

/* The OOM killer, or an operator: the first time it may have been anything. */
static void test_the_second_kill_counts(void)
{
	run_tree("killed", 3, 1, 30 * NSEC_PER_SEC);
	CHECK_INT(world.n_quarantined, ==, 1);
	CHECK_INT(world.n_started[PEER_SYMBOLIZER], ==, 3);
	end_tree();
}

static int oom_score_of(pid_t pid)
{
	char path[64], text[16] = "";
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK_INT(read(fd, text, sizeof(text) - 1), >, 0);
	(void)close(fd);
	return atoi(text);
}

/* Each says it of itself, once it runs. */
static void check_oom_score(enum peer who, int score)
{
	pid_t pid = supervisor_pid(world.supervisor, peer_only(who));

	for (int i = 0; i < 6000 && oom_score_of(pid) != score; i++)
		(void)usleep(10000);
	CHECK_INT(oom_score_of(pid), ==, score);
}

/* When memory is short, the child that reads strangers' files goes first, and this process last. */
static void test_whom_the_kernel_kills(void)
{
	int ours = oom_score_of(getpid());

	if (ours > 400)
		return;
	run_tree("idle", 1, 0, 30 * NSEC_PER_SEC);
	check_oom_score(PEER_PROFILER, ours + 100);
	check_oom_score(PEER_SYMBOLIZER, ours + 500);
	end_tree();
}

/* Dead without a file to blame: nobody is, and the starts become rarer. */
static void test_back_off(void)
{
	run_tree("idle crash", 5, 0, 30 * NSEC_PER_SEC);
	CHECK_INT(world.n_quarantined, ==, 0);
	CHECK_INT(world.started_ns[4] - world.started_ns[3], >=, 380 * NSEC_PER_MSEC);
	end_tree();
}

/* Answers to it would fill its socket, and then hold up everybody else. */
static void test_who_does_not_read_is_killed(void)
{
	uint64_t since = clock_monotonic_ns();

	run_tree("deaf", 3, 0, 30 * NSEC_PER_SEC);
	/* Not for the time that it may spend on a file. */
	CHECK_INT(clock_monotonic_ns() - since, <, 30 * NSEC_PER_SEC);
	CHECK_INT(supervisor_n_set_aside(world.supervisor), ==, 0);
	end_tree();
}

/* Each interpreter on the host is a message to each reader: the broker waits for none. */
static void test_nobody_waits_for_who_does_not_read(void)
{
	struct message m = {.type = MESSAGE_TEXT};
	uint64_t since;
	siginfo_t died;
	pid_t pid;
	int r;

	run_tree("stopped", 1, 0, 300 * NSEC_PER_SEC);
	pid = supervisor_pid(world.supervisor, peer_only(PEER_SYMBOLIZER));
	message_set_text(m.text.text, sizeof(m.text.text), "idle");
	since = clock_monotonic_ns();
	while ((r = supervisor_send_now(world.supervisor, peer_only(PEER_SYMBOLIZER), &m, NULL,
					0)) == 0)
		;
	CHECK_INT(r, ==, -EAGAIN);
	/* A socket that is waited for is given up after 5 s. */
	CHECK_INT(clock_monotonic_ns() - since, <, 4 * NSEC_PER_SEC);
	CHECK_INT(waitid(P_PID, (id_t)pid, &died, WEXITED | WNOWAIT), ==, 0);
	CHECK_INT(died.si_status, ==, SIGKILL);
	/* And then no more: it waits for nothing. */
	CHECK_INT(supervisor_send_now(world.supervisor, peer_only(PEER_SYMBOLIZER), &m, NULL, 0),
		  ==, -ENOTCONN);
	end_tree();
}

/* No descriptor is free for a moment, in which one is to be started anew. */
static void test_a_failed_start_is_tried_again(void)
{
	run_tree("idle starved", 2, 0, 30 * NSEC_PER_SEC);
	CHECK_INT(world.started_ns[1] - world.started_ns[0], >=, 200 * NSEC_PER_MSEC);
	end_tree();
}

/* What is half made is taken down, and nothing else: no descriptor is 0 by chance. */
static void test_no_descriptors_to_begin_with(void)
{
	const struct supervisor_callbacks callbacks = {.gone = on_gone};
	struct supervisor *supervisor = NULL;

	CHECK_INT(loop_new(&world.loop), ==, 0);
	/* The error is what is wanted. */
	set_max_files(0);
	CHECK_INT(supervisor_new(&supervisor, world.loop, rows_with(on_setup), n_peer_rows,
				 &callbacks, 1),
		  ==, -EMFILE);
	set_max_files(RLIM_INFINITY);
	CHECK(!supervisor);
	CHECK_INT(fcntl(STDIN_FILENO, F_GETFD), >=, 0);
	world.loop = loop_free(world.loop);
}

static void test_stop(void)
{
	run_tree("idle", UINT32_MAX, 0, 30 * NSEC_PER_SEC);
	CHECK_INT(world.n_started[PEER_SYMBOLIZER], ==, 1);
	CHECK_INT(world.n_gone[PEER_SYMBOLIZER], ==, 1);
	CHECK(world.clean);
	CHECK(!supervisor_running(world.supervisor, peer_only(PEER_SYMBOLIZER)));
	CHECK(supervisor_running(world.supervisor, peer_only(PEER_PROFILER)));
	end_tree();
}

/* A child that says how it went and leaves: its death may be seen before its message. */
static void test_last_words(void)
{
	siginfo_t info;

	run_tree("idle", 1, 0, 30 * NSEC_PER_SEC);
	supervisor_stop(world.supervisor, peer_only(PEER_SYMBOLIZER));
	CHECK_INT(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), ==, 0);
	supervisor_reap(world.supervisor);
	CHECK_INT(world.n_gone[PEER_SYMBOLIZER], ==, 1);
	CHECK(world.clean);
	CHECK(world.said_last_words);
	end_tree();
}

static void reap_until_gone(unsigned int n)
{
	for (int i = 0; i < 6000 && world.n_gone[PEER_SYMBOLIZER] < n; i++) {
		(void)usleep(10000);
		supervisor_reap(world.supervisor);
	}
	CHECK_INT(world.n_gone[PEER_SYMBOLIZER], ==, n);
}

/* A reload, and the end before the old one was reaped. */
static void test_stop_behind_a_restart(void)
{
	run_tree("idle", 1, 0, 30 * NSEC_PER_SEC);
	supervisor_restart(world.supervisor, peer_only(PEER_SYMBOLIZER));
	supervisor_stop(world.supervisor, peer_only(PEER_SYMBOLIZER));
	reap_until_gone(1);
	CHECK_INT(world.n_started[PEER_SYMBOLIZER], ==, 2);
	CHECK(world.clean);
	CHECK_INT(supervisor_start(world.supervisor, peer_only(PEER_SYMBOLIZER)), ==, 0);
	supervisor_restart(world.supervisor, peer_only(PEER_SYMBOLIZER));
	supervisor_kill(world.supervisor, peer_only(PEER_SYMBOLIZER));
	reap_until_gone(2);
	CHECK_INT(world.n_started[PEER_SYMBOLIZER], ==, 3);
	end_tree();
}

/* ---- Which child may ask for what ---- */

static struct {
	struct loop *loop;
	uint32_t type;
	int answer;
} question;

static int on_asking_setup(void *ctx, struct peer_id who, int control, int status_fd)
{
	struct message m = {.type = MESSAGE_SETUP};
	int r = message_send(control, &m, &status_fd, 1);

	m.type = MESSAGE_TEXT;
	(void)snprintf(m.text.text, sizeof(m.text.text), "idle ask %u", question.type);
	return r < 0 ? r : message_send(control, &m, NULL, 0);
}

static void on_answer(void *ctx, struct peer_id who, const struct message *m)
{
	question.answer = m->result.code;
	loop_exit(question.loop, 0);
}

static int on_other_ask(void *ctx, struct peer_id who, const struct message *a, struct message *ret)
{
	return 0;
}

static int answer_to(enum peer who, uint32_t type, bool recording)
{
	const struct supervisor_callbacks callbacks = {
		.message = on_answer, .answer = on_other_ask, .recording = recording};
	struct supervisor *supervisor;

	question.type = type;
	CHECK_INT(loop_new(&question.loop), ==, 0);
	CHECK_INT(loop_add_timer(question.loop, 60 * NSEC_PER_SEC, 0, child_loop_fail, NULL), >=,
		  0);
	CHECK_INT(supervisor_new(&supervisor, question.loop, rows_with(on_asking_setup),
				 n_peer_rows, &callbacks, NSEC_PER_SEC),
		  ==, 0);
	CHECK_INT(supervisor_start(supervisor, peer_only(who)), ==, 0);
	CHECK_INT(loop_run(question.loop), ==, 0);
	(void)supervisor_free(supervisor);
	(void)loop_free(question.loop);
	return question.answer;
}

static void test_who_may_ask_for_what(void)
{
	static const enum peer without[] = {PEER_EXPORTER, PEER_SCREEN, PEER_FETCHER};

	/* The warnings are what is wanted. */
	log_set_level(LOG_LEVEL_ERROR);
	/* Any file of the host: only where a recording names files, and only for its reader. */
	CHECK_INT(answer_to(PEER_PROFILER, MESSAGE_ASK_RECORDED_FILE, true), ==, 1);
	CHECK_INT(answer_to(PEER_PROFILER, MESSAGE_ASK_RECORDED_FILE, false), ==, -EPERM);
	CHECK_INT(answer_to(PEER_SYMBOLIZER, MESSAGE_ASK_RECORDED_FILE, true), ==, -EPERM);
	CHECK_INT(answer_to(PEER_METRICS, MESSAGE_ASK_RECORDED_FILE, true), ==, -EPERM);
	CHECK_INT(answer_to(PEER_PROFILER, MESSAGE_ASK_MAPS, false), ==, 1);
	CHECK_INT(answer_to(PEER_SYMBOLIZER, MESSAGE_ASK_MAPS, false), ==, -EPERM);
	CHECK_INT(answer_to(PEER_SYMBOLIZER, MESSAGE_ASK_DEBUG_FILE, false), ==, -EINVAL);
	CHECK_INT(answer_to(PEER_METRICS, MESSAGE_ASK_DEBUG_FILE, false), ==, -EPERM);
	CHECK_INT(answer_to(PEER_METRICS, MESSAGE_ASK_FLUSH, false), ==, 0);
	CHECK_INT(answer_to(PEER_PROFILER, MESSAGE_ASK_FLUSH, false), ==, -EPERM);
	/* What is none of a child's requests. */
	CHECK_INT(answer_to(PEER_PROFILER, MESSAGE_STOP, false), ==, -EPERM);
	for (size_t i = 0; i < ARRAY_SIZE(without); i++)
		CHECK_INT(answer_to(without[i], MESSAGE_ASK_FLUSH, false), <, 0);
	log_set_level(LOG_LEVEL_WARNING);
}

/* One request, as a child that may make these makes it: the error of its answer. */
static int error_of(const struct answer_sources *sources, uint32_t type, struct message ask)
{
	struct peer_row row = {.kind = PEER_PROFILER,
			       .may_ask = ASK_BIT(MESSAGE_ASK_FILE) |
					  ASK_BIT(MESSAGE_ASK_PERF_MAP) |
					  ASK_BIT(MESSAGE_ASK_MAPS)};
	struct asker asker = {.row = &row, .id = peer_only(PEER_PROFILER), .name = "profiler"};
	struct message answer;
	int ends[2], fds[2] = {-EBADF, -EBADF};

	ask.type = type;
	CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), ==, 0);
	CHECK_INT(message_try_send(ends[0], &ask, NULL, 0), ==, 0);
	CHECK_INT(answer_ask(sources, &asker, ends[1]), ==, 0);
	CHECK_INT(message_recv(ends[0], &answer, fds, 0), >, 0);
	for (int i = 0; i < 2; i++) {
		(void)close_fd(fds[i]);
		(void)close_fd(ends[i]);
	}
	return answer.answer.error;
}

/* Files of strangers that took too long to open are put off; what is short is not. */
static void test_files_have_a_share_of_the_time(void)
{
	struct time_share share = {.percent = 10,
				   .last_ns = clock_monotonic_ns(),
				   .credit_ns = -(int64_t)(1000000 * NSEC_PER_SEC)};
	const struct answer_sources sources = {.share = &share};
	struct message ask = {.type = MESSAGE_ASK_FILE};

	ask.ask_file.pid = (uint32_t)getpid();
	CHECK_INT(error_of(&sources, MESSAGE_ASK_FILE, ask), ==, -EAGAIN);
	CHECK_INT(error_of(&sources, MESSAGE_ASK_PERF_MAP, ask), ==, -EAGAIN);
	ask = (struct message){.type = MESSAGE_ASK_MAPS};
	ask.ask_pid.pid = (uint32_t)getpid();
	CHECK_INT(error_of(&sources, MESSAGE_ASK_MAPS, ask), ==, 0);
}

int main(int argc, char **argv)
{
	if (strcmp(argv[0], "perfwalk: " OPENER_NAME) == 0)
		return opener_main();
	if (argc == 1 && strncmp(argv[0], "perfwalk: ", 10) == 0)
		return child_main();
	log_set_level(LOG_LEVEL_WARNING);
	RUN(test_a_crash_sets_the_file_aside);
	RUN(test_a_hang_sets_the_file_aside);
	RUN(test_spinning_sets_the_file_aside);
	RUN(test_time_that_is_not_the_files);
	RUN(test_a_restart_forgets_nothing);
	RUN(test_the_time_of_a_file_ends);
	RUN(test_strikes_are_saved);
	RUN(test_strikes_outlive_a_restart);
	RUN(test_how_long_a_file_is_set_aside);
	RUN(test_the_second_kill_counts);
	RUN(test_whom_the_kernel_kills);
	RUN(test_back_off);
	RUN(test_who_does_not_read_is_killed);
	RUN(test_nobody_waits_for_who_does_not_read);
	RUN(test_a_failed_start_is_tried_again);
	RUN(test_no_descriptors_to_begin_with);
	RUN(test_stop);
	RUN(test_last_words);
	RUN(test_stop_behind_a_restart);
	RUN(test_who_may_ask_for_what);
	RUN(test_files_have_a_share_of_the_time);
	return 0;
}
