/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a process with mounts of its own: many, and such as never answer. */
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

#include <linux/fuse.h>

#include "src/opener/helper.h"
#include "src/opener/internal.h"
#include "util/cleanup.h"
#include "util/clock.h"

/* What a child with mounts of its own has, in memory that it shares with us. */
struct shared {
	struct message on_tmpfs, on_disk; /* files that it has mapped */
	bool has_disk;
	pid_t server;
	int order[2], done[2]; /* pipes: a letter of what to do, and that it is done */
};

static char dir[] = "/tmp/perfwalk-mounts.XXXXXX";
static struct shared *shared;

/* Maps an ELF file of that path, and describes the mapping as the profiler would ask for it. */
static void map_file(const char *path, struct message *ret)
{
	int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0700);
	char begin[4096] = "\177ELF\2\1\1";
	struct stat st;
	void *map;

	begin[16] = 3; /* ET_DYN */
	CHECK_INT(fd, >=, 0);
	CHECK_INT(write(fd, begin, sizeof(begin)), ==, sizeof(begin));
	map = mmap(NULL, sizeof(begin), PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(map != MAP_FAILED);
	CHECK_INT(fstat(fd, &st), ==, 0);
	(void)close(fd);
	*ret = (struct message){.type = MESSAGE_ASK_FILE};
	ret->ask_file.pid = (uint32_t)getpid();
	ret->ask_file.start = (uintptr_t)map;
	ret->ask_file.end = ret->ask_file.start + sizeof(begin);
	ret->ask_file.major = major(st.st_dev);
	ret->ask_file.minor = minor(st.st_dev);
	ret->ask_file.inode = st.st_ino;
	message_set_text(ret->ask_file.path, sizeof(ret->ask_file.path), path);
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
__attribute__((noreturn)) static void serve_silently(int fd)
{
	static char request[1 << 17];
	const struct fuse_in_header *in = (const void *)request;
	struct {
		struct fuse_out_header header;
		struct fuse_init_out init;
	} out = {.header = {.len = sizeof(out)},
		 .init = {.major = 7, .minor = 23, .max_write = 4096}};

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
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[64];
	pid_t server;

	(void)snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (fd < 0 || mkdir(point, 0700) < 0 ||
	    mount("silent", point, "fuse", MS_NOSUID | MS_NODEV, options) < 0)
		return false;
	/* Both return from fork(), and share this memory: only the parent writes there. */
	server = fork();
	if (server == 0)
		serve_silently(fd);
	(void)close(fd);
	shared->server = server;
	return server > 0;
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
		(void)snprintf(path, sizeof(path), "%s/silent fs", tmpfs);
		if (order == 'f')
			done = mount_silent(path) ? 'y' : 'n';
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

/* Whoever opens a file there waits for ever, in a way that the mount table does not tell. */
static void test_a_helper_that_is_stuck(void)
{
	struct message ask = shared->on_disk, own;
	struct opener_helper *h = NULL;
	char path[256];
	int r;

	if (shared->server <= 0)
		return;
	/* A place where nothing is mapped, so the path is tried, and a device that is none of
	 * FUSE's. */
	ask.ask_file.start = 0x1000;
	ask.ask_file.end = 0x2000;
	ask.ask_file.major = 8;
	ask.ask_file.minor = 1;
	(void)snprintf(ask.ask_file.path, sizeof(ask.ask_file.path), "%s/tmpfs/silent fs/x", dir);
	(void)snprintf(path, sizeof(path), "%s/own", dir);
	map_file(path, &own);

	CHECK_INT(opener_helper_new(&h, sandbox_choose_mode(SANDBOX_ERRNO)), ==, 0);
	/* On a busy host one can be late before it gets there: killed, it goes, and the next one
	 * tries. One that is stuck there stays. */
	for (int n = 0; n < 20; n = r == -ENOTSUP ? n + 1 : 0) {
		r = opener_helper_open(h, &ask);
		CHECK(r == -ETIMEDOUT || r == -ENOTSUP);
		short_sleep();
	}
	/* Others go on; one that this host has no time for is asked again. */
	while ((r = opener_helper_open(h, &own)) == -ETIMEDOUT || r == -ENOTSUP)
		short_sleep();
	CHECK_INT(r, >=, 0);
	(void)close(r);
	CHECK_INT(opener_helper_open(h, &ask), ==, -ENOTSUP);

	/* With the server the wait ends: the same may be asked for again. */
	CHECK_INT(kill(shared->server, SIGKILL), ==, 0);
	while ((r = opener_helper_open(h, &ask)) == -ENOTSUP || r == -ETIMEDOUT)
		short_sleep();
	CHECK_INT(r, <, 0);
	opener_helper_free(h);
	CHECK_INT(unlink(path), ==, 0);
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

int main(void)
{
	pid_t child;

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
		SKIP("no mount namespace to be had");
	}
	RUN(test_ordinary_mounts);
	RUN(test_a_silent_server);
	RUN(test_a_helper_that_is_stuck);
	RUN(test_too_many_mounts);
	(void)close(shared->order[1]);
	CHECK_INT(waitpid(child, NULL, 0), ==, child);
	return 0;
}
