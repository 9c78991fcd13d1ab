/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A child with mounts of its own: what it mounts and maps there on orders, for test-mounts. */
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

#include "src/opener/helper.h"

#define FILE_BYTES 4096
#define N_OTHERS   6 /* fewer than may be stuck, more than few */

enum { OVER_FUSE, OVER_DISK, OVER_MEMORY, OF_HOST, N_OVERLAYS };

/* What a child with mounts of its own has, in memory that it shares with us. */
struct shared {
	struct message on_tmpfs, on_disk, on_fuse; /* files that it has mapped */
	struct message in_overlay[N_OVERLAYS];
	bool has_disk;
	struct fuse_file away;
	pid_t server, file_server;
	pid_t others[N_OTHERS]; /* processes with its mounts */
	int order[2], done[2];	/* pipes: a letter of what to do, and that it is done */
};

static char dir[] = "/tmp/perfwalk-mounts.XXXXXX";
static struct shared *shared;

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

/* An ELF file that is mapped from where nothing is mounted any more. */
static bool map_and_unmount(const char *point, bool silent)
{
	char path[600];
	pid_t server;
	int fd;

	shared->away.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	shared->away.size = FILE_BYTES;
	shared->away.is_silent = false;
	server = fuse_mount(point, fuse_serve_file, &shared->away);
	shared->file_server = server;
	if (!server)
		return false;
	(void)snprintf(path, sizeof(path), "%s/file", point);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK_INT(fd, >=, 0);
	map_open_file(fd, path, &shared->on_fuse);
	CHECK_INT(umount2(point, MNT_DETACH), ==, 0);
	__atomic_store_n(&shared->away.is_silent, silent, __ATOMIC_SEQ_CST);
	return true;
}

/* Maps a file of an overlay; what is below it is at from. */
static bool map_in_overlay(const char *from, const char *tmpfs, const char *name,
			   struct message *ret)
{
	char parts[3][600], options[2000];
	static const char *const names[] = {"upper", "work", "merged"};
	int fd;

	for (size_t i = 0; i < 3; i++) {
		(void)snprintf(parts[i], sizeof(parts[i]), "%s/%s-%s", tmpfs, name, names[i]);
		if (mkdir(parts[i], 0700) < 0)
			return false;
	}
	(void)snprintf(options, sizeof(options), "lowerdir=%s,upperdir=%s,workdir=%s", from,
		       parts[0], parts[1]);
	if (mount("overlay", parts[2], "overlay", 0, options) < 0)
		return false;
	(void)strcat(parts[2], "/file");
	fd = open(parts[2], O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	map_open_file(fd, parts[2], ret);
	return true;
}

/* The same over a directory of another filesystem, with a file that is made. */
static bool map_over(const char *parent, const char *tmpfs, const char *name, struct message *ret)
{
	struct message below;
	char path[600];

	(void)snprintf(path, sizeof(path), "%s/lower", parent);
	if (mkdir(path, 0700) < 0)
		return false;
	(void)strcat(path, "/file");
	map_file(path, &below);
	*strrchr(path, '/') = '\0';
	return map_in_overlay(path, tmpfs, name, ret);
}

/* Over files of a server that still answers, over a disk, and over memory. */
static bool make_overlays(const char *tmpfs)
{
	char path[600];

	shared->away.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	shared->away.size = FILE_BYTES;
	shared->away.is_silent = false;
	(void)snprintf(path, sizeof(path), "%s/below", tmpfs);
	shared->file_server = fuse_mount(path, fuse_serve_file, &shared->away);
	return shared->file_server > 0 &&
	       map_in_overlay(path, tmpfs, "fuse", &shared->in_overlay[OVER_FUSE]) &&
	       map_over(dir, tmpfs, "disk", &shared->in_overlay[OVER_DISK]) &&
	       map_over(tmpfs, tmpfs, "own", &shared->in_overlay[OVER_MEMORY]);
}

/* One that our mount table shows, too: the child has a copy of it. */
static bool make_hosts_overlay(void)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/host", dir);
	return mkdir(path, 0700) == 0 && mount("tmpfs", path, "tmpfs", 0, NULL) == 0 &&
	       map_over(path, path, "host", &shared->in_overlay[OF_HOST]);
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
	for (int i = 0; i < N_OTHERS; i++) {
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

/* The file of the host's overlay, through the copy of that mount here. */
static void map_hosts(void)
{
	char path[256];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/host/host-merged/file", dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		map_open_file(fd, path, &shared->in_overlay[OF_HOST]);
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
		map_hosts();
		done = 'y';
	}
	CHECK_INT(write(shared->done[1], &done, 1), ==, 1);
	while (read(shared->order[0], &order, 1) == 1) {
		(void)snprintf(path, sizeof(path), "%s/%s", tmpfs,
			       order == 'f'   ? "silent fs"
			       : order == 'a' ? "auto"
			       : order == 'q' ? "talking"
					      : "away");
		done = 'y';
		if (order == 'f')
			done = mount_silent(path) ? 'y' : 'n';
		else if (order == 'a')
			done = mount_autofs(path) ? 'y' : 'n';
		else if (order == 'l' || order == 'q')
			done = map_and_unmount(path, order == 'l') ? 'y' : 'n';
		else if (order == 'v')
			done = make_overlays(tmpfs) ? 'y' : 'n';
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
