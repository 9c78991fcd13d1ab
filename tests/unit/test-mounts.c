/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a process with mounts of its own: many, and such as never answer. */
#include "tests/unit/mounts-child.h"
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>

#include "src/opener/helper.h"
#include "src/opener/internal.h"
#include "util/cleanup.h"
#include "util/clock.h"

static void remove_all(void)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/disk", dir);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/own", dir);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/lower/file", dir);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/lower", dir);
	(void)rmdir(path);
	(void)snprintf(path, sizeof(path), "%s/host", dir);
	(void)umount2(path, MNT_DETACH);
	(void)rmdir(path);
	(void)snprintf(path, sizeof(path), "%s/tmpfs", dir);
	(void)rmdir(path);
	(void)rmdir(dir);
}

static int opened(const struct message *ask)
{
	struct file_identity id;
	int fd = opener_mapped_file(ask, &id);

	return fd < 0 ? fd : close(fd);
}

static uint64_t bytes_read(void)
{
	FILE *f = fopen("/proc/self/io", "re");
	unsigned long long n = 0;

	CHECK(f && fscanf(f, "rchar: %llu", &n) == 1);
	(void)fclose(f);
	return n;
}

/* The device of what is mounted there last, from the child's table. */
static void device_of(uint32_t pid, const char *point, unsigned int *ret_major,
		      unsigned int *ret_minor)
{
	char path[64], line[8192];
	bool found = false;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%u/mountinfo", pid);
	f = fopen(path, "re");
	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		if (strstr(line, point) && sscanf(line, "%*d %*d %u:%u", ret_major, ret_minor) == 2)
			found = true;
	}
	(void)fclose(f);
	CHECK(found);
}

static void test_ordinary_mounts(void)
{
	CHECK_INT(opened(&shared->on_disk), ==, 0);
	CHECK_INT(opened(&shared->on_tmpfs), ==, 0);
	CHECK(!opener_root_blocks(shared->on_disk.ask_file.pid));
}

static void test_a_silent_server(void)
{
	uint32_t pid = shared->on_tmpfs.ask_file.pid;
	unsigned int major, minor;
	char path[256];

	if (!told('f')) {
		fprintf(stderr, "SKIPPED: no FUSE here\n");
		return;
	}
	opener_forget_mounts();
	device_of(pid, "silent\\040fs", &major, &minor);
	CHECK(opener_device_blocks(pid, major, minor));
	CHECK(!opener_device_blocks((uint32_t)getpid(), major, minor));
	(void)snprintf(path, sizeof(path), "%s/tmpfs/silent fs/x", dir);
	CHECK(opener_path_blocks(pid, path));
	CHECK(!opener_path_blocks(0, path));
	path[strlen(path) - 3] = 'S';
	CHECK(!opener_path_blocks(pid, path));
	/* Others go on. */
	CHECK_INT(opened(&shared->on_tmpfs), ==, 0);
}

static void short_sleep(void)
{
	const struct timespec t = {.tv_nsec = 20 * NSEC_PER_MSEC};

	(void)nanosleep(&t, NULL);
}

static int open_by(struct opener_helper *h, const struct message *ask)
{
	struct file_identity id;

	return opener_helper_open(h, ask, &id);
}

/* Until it is refused, because one is late there. */
static void get_stuck(struct opener_helper *h, const struct message *ask)
{
	int r;

	while ((r = open_by(h, ask)) != -EBUSY) {
		CHECK_INT(r, ==, -ETIMEDOUT);
		short_sleep();
	}
}

/* One that this host has no time for is asked again. */
static void check_opens(struct opener_helper *h, const struct message *ask)
{
	int r;

	while ((r = open_by(h, ask)) == -ETIMEDOUT)
		short_sleep();
	CHECK_INT(r, >=, 0);
	(void)close(r);
}

/* A file of that process in the filesystem that does not answer, in a way that the mount table does
 * not tell: a place where nothing is mapped, so the path is tried, and a device that is none of
 * FUSE's. */
static struct message silent_file(pid_t pid, uint32_t minor)
{
	struct message ask = shared->on_disk;

	ask.type = MESSAGE_ASK_SEEN_FILE; /* to be looked for by its path */
	ask.ask_file.pid = (uint32_t)pid;
	ask.ask_file.start = 0x1000;
	ask.ask_file.end = 0x2000;
	ask.ask_file.major = 8;
	ask.ask_file.minor = minor;
	(void)snprintf(ask.ask_file.path, sizeof(ask.ask_file.path), "%s/tmpfs/silent fs/x%u", dir,
		       minor);
	return ask;
}

static void map_own(struct message *ret)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/own", dir);
	map_file(path, ret);
}

static struct opener_helper *new_helper(void)
{
	const struct privileges none = {.max_data = 0};
	static int exe_fd = -1;
	struct opener_helper *h = NULL;

	if (exe_fd < 0)
		exe_fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	CHECK_INT(exe_fd, >=, 0);
	CHECK_INT(opener_helper_new(
			  &h, exe_fd, &none,
			  &(struct setup_common){.seccomp = sandbox_choose_mode(SANDBOX_ERRNO)}),
		  ==, 0);
	return h;
}

/* The only one whose filesystem does not answer: others go on. */
static void test_a_helper_that_is_stuck(void)
{
	struct message ask = silent_file((pid_t)shared->on_disk.ask_file.pid, 1), own;
	struct opener_helper *h;

	if (shared->server <= 0)
		return;
	h = new_helper();
	map_own(&own);
	get_stuck(h, &ask);
	/* All of the wait is the filesystem's. */
	CHECK_INT(opener_helper_cost_ns(h), >=, 100 * NSEC_PER_MSEC);
	check_opens(h, &own);
	CHECK_INT(open_by(h, &ask), ==, -EBUSY);
	opener_helper_free(h);
}

/* Nearly as many helpers as may be are stuck, each for another process: others go on. */
static void test_many_are_stuck(void)
{
	struct message own;
	struct opener_helper *h;
	uint64_t before;

	if (shared->server <= 0)
		return;
	h = new_helper();
	map_own(&own);
	CHECK(told('o'));
	for (uint32_t i = 0; i < N_OTHERS; i++) {
		struct message ask = silent_file(shared->others[i], 2 + i);

		check_opens(h, &own);
		get_stuck(h, &ask);
		before = opener_helper_n_refused(h);
		CHECK_INT(open_by(h, &ask), ==, -EBUSY);
		CHECK_INT(opener_helper_n_refused(h), ==, before + 1);
	}
	check_opens(h, &own);
	CHECK_INT(kill(shared->server, SIGKILL), ==, 0);
	opener_helper_free(h);
}

/* Not in any mount table any more. */
static void test_unmounted_lazily(void)
{
	struct message own;
	struct opener_helper *h;

	if (!told('l')) {
		fprintf(stderr, "SKIPPED: no FUSE here\n");
		return;
	}
	opener_forget_mounts();
	CHECK(!opener_device_blocks(shared->on_fuse.ask_file.pid, shared->on_fuse.ask_file.major,
				    shared->on_fuse.ask_file.minor));
	h = new_helper();
	map_own(&own);
	get_stuck(h, &shared->on_fuse);
	check_opens(h, &own);
	CHECK_INT(kill(shared->file_server, SIGKILL), ==, 0);
	opener_helper_free(h);
}

/* In a process with the file open, which stays until the server is killed: its exit closes it. */
static int identify_while_silent(int fd)
{
	struct file_identity id;
	struct pollfd p = {.events = POLLIN};
	int ends[2], r = -ETIMEDOUT;
	pid_t pid;

	CHECK_INT(pipe2(ends, O_CLOEXEC), ==, 0);
	pid = fork();
	CHECK_INT(pid, >=, 0);
	if (pid == 0) {
		r = file_identity_get(fd, &id);
		if (r == 0 && id.size != FILE_BYTES)
			r = -ESTALE;
		(void)!write(ends[1], &r, sizeof(r));
		_exit(0);
	}
	p.fd = ends[0];
	for (int i = 0; i < 600 && poll(&p, 1, 100) == 0 &&
			!__atomic_load_n(&shared->away.n_not_answered, __ATOMIC_SEQ_CST);
	     i++)
		;
	if (p.revents)
		CHECK_INT(read(ends[0], &r, sizeof(r)), ==, sizeof(r));
	CHECK_INT(kill(shared->file_server, SIGKILL), ==, 0);
	CHECK_INT(waitpid(pid, NULL, 0), ==, pid);
	(void)close(ends[0]);
	(void)close(ends[1]);
	return r;
}

/*
 * As long as its server answers, the file can be opened: but who has it open is at the mercy of the
 * server from then on, so it must not leave the helper.
 */
static void test_unmounted_lazily_while_it_answers(void)
{
	struct opener_helper *h;
	struct message copy;
	struct file_identity id;
	char path[128];
	pid_t pid;
	int fd, r;

	if (!told('q')) {
		fprintf(stderr, "SKIPPED: no FUSE here\n");
		return;
	}
	opener_forget_mounts();
	h = new_helper();
	copy = shared->on_fuse;
	copy.type = MESSAGE_ASK_COPY;
	while ((r = opener_helper_open(h, &shared->on_fuse, &id)) == -ETIMEDOUT)
		short_sleep();
	CHECK_INT(r, ==, -ENOTSUP);
	/* It says so itself. */
	pid = opener_helper_pid(h);
	CHECK_INT(pid, >, 0);
	while ((r = opener_helper_open(h, &copy, &id)) == -ETIMEDOUT)
		short_sleep();
	CHECK_INT(r, ==, -ENOTSUP);
	check_opens(h, &shared->on_disk);
	opener_helper_free(h);

	(void)snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx",
		       shared->on_fuse.ask_file.pid,
		       (unsigned long long)shared->on_fuse.ask_file.start,
		       (unsigned long long)shared->on_fuse.ask_file.end);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK_INT(fd, >=, 0);
	__atomic_store_n(&shared->away.is_silent, true, __ATOMIC_SEQ_CST);
	CHECK_INT(identify_while_silent(fd), ==, 0);
	(void)close(fd);
	shared->away.n_not_answered = 0;
}

static int try(struct opener_helper *h, const struct message *ask)
{
	int r;

	while ((r = open_by(h, ask)) == -ETIMEDOUT)
		short_sleep();
	return r < 0 ? r : close(r);
}

/*
 * It hides the kind of what is below. Who may mount FUSE may mount an overlay over it: so one that
 * does not say that its file is on a disk must be the host's.
 */
static void test_overlays(void)
{
	struct opener_helper *h;

	if (!told('v')) {
		fprintf(stderr, "SKIPPED: no FUSE, or no overlays of it and of tmpfs\n");
		return;
	}
	opener_forget_mounts();
	h = new_helper();
	CHECK_INT(try(h, &shared->in_overlay[OVER_FUSE]), ==, -ENOTSUP);
	CHECK_INT(try(h, &shared->in_overlay[OVER_MEMORY]), ==, -ENOTSUP);
	if (shared->has_disk)
		CHECK_INT(try(h, &shared->in_overlay[OVER_DISK]), ==, 0);
	if (shared->in_overlay[OF_HOST].ask_file.pid)
		CHECK_INT(try(h, &shared->in_overlay[OF_HOST]), ==, 0);
	opener_helper_free(h);
	CHECK_INT(kill(shared->file_server, SIGKILL), ==, 0);
}

/* Of a table that only root may read; the broker does not wait for it. */
static void test_a_copy_of_maps(void)
{
	struct message ask = {.type = MESSAGE_ASK_MAPS};
	struct opener_helper *h = new_helper();
	char copy[64] = "", maps[64] = "";
	int r, fd;

	ask.ask_pid.pid = (uint32_t)getpid();
	ask.ask_pid.copy = 1;
	while ((r = open_by(h, &ask)) == -ETIMEDOUT)
		short_sleep();
	CHECK_INT(r, >=, 0);
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	CHECK_INT(read(r, copy, sizeof(copy) - 1), ==, sizeof(copy) - 1);
	CHECK_INT(read(fd, maps, sizeof(maps) - 1), ==, sizeof(maps) - 1);
	CHECK_STR(copy, maps);
	(void)close(fd);
	(void)close(r);
	opener_helper_free(h);
}

/* What the broker compares with the files that were set aside. */
static void test_the_helper_tells_the_identity(void)
{
	struct opener_helper *h = new_helper();
	struct file_identity id = {0};
	int r;

	while ((r = opener_helper_open(h, &shared->on_disk, &id)) == -ETIMEDOUT)
		short_sleep();
	CHECK_INT(r, >=, 0);
	CHECK_INT(id.ino, ==, shared->on_disk.ask_file.inode);
	CHECK_INT(id.size, ==, FILE_BYTES);
	CHECK_INT(id.mtime_ns, >, 0);
	(void)close(r);
	opener_helper_free(h);
}

/* Waits until an automounter answers. SIGKILL ends that wait, so nobody stays behind. */
static void test_automounter_that_is_silent(void)
{
	struct message ask = silent_file((pid_t)shared->on_disk.ask_file.pid, 9), own;

	if (!told('a')) {
		fprintf(stderr, "SKIPPED: no autofs here\n");
		return;
	}
	map_own(&own);
	(void)snprintf(ask.ask_file.path, sizeof(ask.ask_file.path), "%s/tmpfs/auto/host/x", dir);
	for (int i = 0; i < 3; i++) {
		struct opener_helper *h = new_helper();
		int r = open_by(h, &ask);

		/* -ENOENT: this kernel asks nobody for that. */
		CHECK(r == -ETIMEDOUT || r == -ENOENT);
		check_opens(h, &own);
		opener_helper_free(h);
	}
}

static void test_too_many_mounts(void)
{
	uint64_t before, begin, seconds;

	CHECK(told('m'));
	opener_forget_mounts();
	CHECK_INT(opened(&shared->on_tmpfs), ==, -ENOTSUP);
	CHECK(opener_root_blocks(shared->on_tmpfs.ask_file.pid));
	/* A disk has no server. */
	if (shared->has_disk)
		CHECK_INT(opened(&shared->on_disk), ==, 0);
	else
		fprintf(stderr, "SKIPPED: %s is not on a disk\n", dir);

	/* The table is read once a second at most, and not to its end. */
	before = bytes_read();
	begin = clock_monotonic_ns();
	for (int i = 0; i < 100; i++)
		CHECK_INT(opened(&shared->on_tmpfs), ==, -ENOTSUP);
	seconds = (clock_monotonic_ns() - begin) / NSEC_PER_SEC;
	CHECK_INT(bytes_read() - before, <=, (seconds + 2) * (320u << 10));
}

int main(int argc, char **argv)
{
	pid_t child;

	if (argc == 1 && strcmp(argv[0], "perfwalk: " OPENER_NAME) == 0)
		return opener_main();
	if (geteuid() != 0)
		SKIP("only root may have mounts of its own");
	CHECK(mkdtemp(dir));
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(shared != MAP_FAILED);
	CHECK_INT(pipe2(shared->order, O_CLOEXEC), ==, 0);
	CHECK_INT(pipe2(shared->done, O_CLOEXEC), ==, 0);
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		SKIP("no mount namespace can be made");
	if (!make_hosts_overlay())
		fprintf(stderr, "SKIPPED: no overlay of tmpfs here\n");
	child = fork();
	CHECK_INT(child, >=, 0);
	if (child == 0)
		in_the_child();
	(void)close(shared->order[0]);
	(void)close(shared->done[1]);
	(void)atexit(remove_all);
	if (!told(0)) {
		(void)kill(child, SIGKILL);
		SKIP("no mount namespace can be made");
	}
	RUN(test_ordinary_mounts);
	RUN(test_a_silent_server);
	RUN(test_a_helper_that_is_stuck);
	RUN(test_many_are_stuck);
	RUN(test_a_copy_of_maps);
	RUN(test_the_helper_tells_the_identity);
	RUN(test_unmounted_lazily_while_it_answers);
	RUN(test_overlays);
	RUN(test_unmounted_lazily);
	RUN(test_automounter_that_is_silent);
	RUN(test_too_many_mounts);
	(void)close(shared->order[1]);
	CHECK_INT(waitpid(child, NULL, 0), ==, child);
	return 0;
}
