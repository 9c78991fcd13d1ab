/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a process with mounts of its own: many, and such as never answer. */
#include "tests/unit/fuse-file.h"
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
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

/* What a child with mounts of its own has, in memory that it shares with us. */
struct shared {
	struct message on_tmpfs, on_disk, on_fuse; /* files that it has mapped */
	bool has_disk;
	struct fuse_file away;
	pid_t server, file_server;
	pid_t others[OPENER_MAX_STUCK]; /* processes with its mounts */
	int order[2], done[2];		/* pipes: a letter of what to do, and that it is done */
};

static char dir[] = "/tmp/perfwalk-mounts.XXXXXX";
static struct shared *shared;

#define FILE_BYTES 4096

/* Maps a file, and describes the mapping as the profiler would ask for it. */
static void map_open_file(int fd, const char *path, struct message *ret)
{
	void *map = mmap(NULL, FILE_BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
	struct stat st;

	CHECK(map != MAP_FAILED);
	CHECK_INT(fstat(fd, &st), ==, 0);
	(void)close(fd);
	*ret = (struct message){.type = MESSAGE_ASK_FILE};
	ret->ask_file.pid = (uint32_t)getpid();
	ret->ask_file.start = (uintptr_t)map;
	ret->ask_file.end = ret->ask_file.start + FILE_BYTES;
	ret->ask_file.major = major(st.st_dev);
	ret->ask_file.minor = minor(st.st_dev);
	ret->ask_file.inode = st.st_ino;
	message_set_text(ret->ask_file.path, sizeof(ret->ask_file.path), path);
}

/* The same with an ELF file of that path, which is made. */
static void map_file(const char *path, struct message *ret)
{
	int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0700);
	char begin[FILE_BYTES] = "\177ELF\2\1\1";

	begin[16] = 3; /* ET_DYN */
	CHECK_INT(fd, >=, 0);
	CHECK_INT(write(fd, begin, sizeof(begin)), ==, sizeof(begin));
	map_open_file(fd, path, ret);
}

/* More than 256 KiB of mount table. */
static void mount_many(const char *tmpfs)
{
	char from[700], name[201];

	memset(name, 'n', 200);
	name[200] = '\0';
	(void)snprintf(from, sizeof(from), "%s/%s", tmpfs, name);
	CHECK_INT(mkdir(from, 0700), ==, 0);
	for (int i = 0; i < 1500; i++)
		CHECK_INT(mount(from, from, NULL, MS_BIND, NULL), ==, 0);
}

/* Answers the greeting, takes all that is asked, and says no more. */
__attribute__((noreturn)) static void serve_silently(int fd, void *ctx)
{
	static char request[1 << 17];
	const struct fuse_in_header *in = (const void *)request;
	struct {
		struct fuse_out_header header;
		struct fuse_init_out init;
	} out = {.header = {.len = sizeof(out)},
		 .init = {.major = 7, .minor = 23, .max_write = 4096}};

	(void)ctx;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(fd, request, sizeof(request)) > 0) {
		out.header.unique = in->unique;
		if (in->opcode == FUSE_INIT)
			(void)!write(fd, &out, sizeof(out));
	}
	_exit(0);
}

static bool mount_silent(const char *point)
{
	pid_t server = fuse_mount(point, serve_silently, NULL);

	shared->server = server;
	return server > 0;
}

/* A file that is mapped from where nothing is mounted any more, and whose server is silent. */
static bool map_and_unmount(const char *point)
{
	char path[600];
	pid_t server;
	int fd;

	shared->away.fd = -EBADF;
	shared->away.size = FILE_BYTES;
	server = fuse_mount(point, fuse_serve_file, &shared->away);
	shared->file_server = server;
	if (!server)
		return false;
	(void)snprintf(path, sizeof(path), "%s/file", point);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK_INT(fd, >=, 0);
	map_open_file(fd, path, &shared->on_fuse);
	CHECK_INT(umount2(point, MNT_DETACH), ==, 0);
	__atomic_store_n(&shared->away.is_silent, true, __ATOMIC_SEQ_CST);
	return true;
}

/* The kernel asks this process what to mount on an access, and waits for the answer. */
static bool mount_autofs(const char *point)
{
	char options[128];
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0 || mkdir(point, 0700) < 0 || setpgid(0, 0) < 0)
		return false;
	(void)snprintf(options, sizeof(options), "fd=%d,pgrp=%d,minproto=5,maxproto=5,indirect",
		       ends[1], (int)getpgrp());
	return mount("automount", point, "autofs", 0, options) == 0;
}

static void start_others(void)
{
	for (int i = 0; i < OPENER_MAX_STUCK; i++) {
		pid_t pid = fork();

		CHECK_INT(pid, >=, 0);
		if (pid == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				(void)pause();
		}
		shared->others[i] = pid;
	}
}

static void in_the_child(void)
{
	char path[512], tmpfs[256], order, done = 'n';

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)close(shared->order[1]);
	(void)snprintf(path, sizeof(path), "%s/disk", dir);
	(void)snprintf(tmpfs, sizeof(tmpfs), "%s/tmpfs", dir);
	if (mkdir(tmpfs, 0700) == 0 && unshare(CLONE_NEWNS) == 0 &&
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	    mount("tmpfs", tmpfs, "tmpfs", 0, NULL) == 0) {
		map_file(path, &shared->on_disk);
		shared->has_disk = shared->on_disk.ask_file.major != 0;
		(void)snprintf(path, sizeof(path), "%s/file", tmpfs);
		map_file(path, &shared->on_tmpfs);
		done = 'y';
	}
	CHECK_INT(write(shared->done[1], &done, 1), ==, 1);
	while (read(shared->order[0], &order, 1) == 1) {
		(void)snprintf(path, sizeof(path), "%s/%s", tmpfs,
			       order == 'f'   ? "silent fs"
			       : order == 'a' ? "auto"
					      : "away");
		done = 'y';
		if (order == 'f')
			done = mount_silent(path) ? 'y' : 'n';
		else if (order == 'a')
			done = mount_autofs(path) ? 'y' : 'n';
		else if (order == 'l')
			done = map_and_unmount(path) ? 'y' : 'n';
		else if (order == 'o')
			start_others();
		else
			mount_many(tmpfs);
		CHECK_INT(write(shared->done[1], &done, 1), ==, 1);
	}
	_exit(0);
}

static bool told(char order)
{
	char done;

	if (order)
		CHECK_INT(write(shared->order[1], &order, 1), ==, 1);
	CHECK_INT(read(shared->done[0], &done, 1), ==, 1);
	return done == 'y';
}

static void remove_all(void)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/disk", dir);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/own", dir);
	(void)unlink(path);
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

/* What one gets once who tries it is stuck there. On a busy host one can be late before it gets
 * there: killed, it goes, and the next one tries. */
static void get_stuck(struct opener_helper *h, const struct message *ask)
{
	int r;

	for (int n = 0; n < 20; n = r == -ENOTSUP ? n + 1 : 0) {
		r = opener_helper_open(h, ask);
		CHECK(r == -ETIMEDOUT || r == -ENOTSUP);
		short_sleep();
	}
}

/* One that this host has no time for is asked again. */
static void check_opens(struct opener_helper *h, const struct message *ask)
{
	int r;

	while ((r = opener_helper_open(h, ask)) == -ETIMEDOUT || r == -ENOTSUP)
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
	static int exe_fd = -1;
	struct opener_helper *h = NULL;

	if (exe_fd < 0)
		exe_fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	CHECK_INT(exe_fd, >=, 0);
	CHECK_INT(opener_helper_new(&h, exe_fd, sandbox_choose_mode(SANDBOX_ERRNO)), ==, 0);
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
	check_opens(h, &own);
	CHECK_INT(opener_helper_open(h, &ask), ==, -ENOTSUP);
	opener_helper_free(h);
}

static void test_as_many_as_may_be_stuck(void)
{
	struct message asks[OPENER_MAX_STUCK], own;
	struct opener_helper *h;
	int r;

	if (shared->server <= 0)
		return;
	h = new_helper();
	map_own(&own);
	CHECK(told('o'));
	for (uint32_t i = 0; i < OPENER_MAX_STUCK; i++) {
		check_opens(h, &own);
		asks[i] = silent_file(shared->others[i], 2 + i);
		get_stuck(h, &asks[i]);
	}
	/* Nothing is opened any more, for nobody. */
	for (int i = 0; i < 20; i++)
		CHECK_INT(opener_helper_open(h, &own), ==, -ENOTSUP);
	CHECK_INT(opener_helper_pid(h), ==, 0);

	/* With the server the wait of all ends. */
	CHECK_INT(kill(shared->server, SIGKILL), ==, 0);
	for (uint32_t i = 0; i < OPENER_MAX_STUCK; i++) {
		while ((r = opener_helper_open(h, &asks[i])) == -ENOTSUP || r == -ETIMEDOUT)
			short_sleep();
		CHECK_INT(r, <, 0);
	}
	check_opens(h, &own);
	opener_helper_free(h);
}

/* Not in any mount table any more. */
static void test_unmounted_lazily(void)
{
	struct message own;
	struct opener_helper *h;
	int r;

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
	while ((r = opener_helper_open(h, &shared->on_fuse)) == -ENOTSUP || r == -ETIMEDOUT)
		short_sleep();
	CHECK_INT(r, <, 0);
	opener_helper_free(h);
}

/* Waits until an automounter answers. SIGKILL ends that wait, so nobody stays behind. */
static void test_automounter_that_is_silent(void)
{
	struct message ask = silent_file((pid_t)shared->on_disk.ask_file.pid, 9), own;
	struct opener_helper *h;

	if (!told('a')) {
		fprintf(stderr, "SKIPPED: no autofs here\n");
		return;
	}
	h = new_helper();
	map_own(&own);
	(void)snprintf(ask.ask_file.path, sizeof(ask.ask_file.path), "%s/tmpfs/auto/host/x", dir);
	for (int i = 0; i < 3; i++) {
		int r;

		while ((r = opener_helper_open(h, &ask)) == -ENOTSUP)
			short_sleep();
		/* -ENOENT: this kernel asks nobody for that. */
		CHECK(r == -ETIMEDOUT || r == -ENOENT);
		check_opens(h, &own);
	}
	opener_helper_free(h);
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
	RUN(test_as_many_as_may_be_stuck);
	RUN(test_unmounted_lazily);
	RUN(test_automounter_that_is_silent);
	RUN(test_too_many_mounts);
	(void)close(shared->order[1]);
	CHECK_INT(waitpid(child, NULL, 0), ==, child);
	return 0;
}
