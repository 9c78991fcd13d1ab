/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens files at untrusted paths, as root.
 *
 * A path of a profiled process may be a FIFO (open blocks), a device (open has side effects), a
 * symlink out of its container, or a file on a FUSE mount whose server never answers (open and even
 * fstat hang, unkillably). So we first use O_PATH, which opens nothing; statx of that must say
 * regular file, and the mount must not be FUSE; then we really open the same inode through
 * /proc/self/fd. Paths are resolved inside the process's own root (resolve.c). If an open blocks in
 * spite of that, it only blocks a helper process (helper.c).
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <linux/magic.h>
#include <linux/openat2.h>

#include "src/opener/internal.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file-identity.h"
#include "util/memory-file.h"
#include "util/text.h"

#define MAX_FILE_BYTES (INT64_C(4) << 30)
#define IN_ROOT	       (RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS)
#define MAX_MAPS_BYTES (UINT64_C(32) << 20)
#define MAX_LOG_BYTES  (256 << 10)
#define LOG_READ_ALL   3 /* SYSLOG_ACTION_READ_ALL */
#define KILL_WORDS     "Killed process "

int opener_copy(int fd, uint64_t max_bytes)
{
	_cleanup_close_ int copy = memory_file_new("perfwalk-copy");
	char buf[16384];
	uint64_t total = 0;
	ssize_t n;

	if (copy < 0)
		return copy;
	while ((n = read(fd, buf, sizeof(buf))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		total += (uint64_t)n;
		if (total > max_bytes)
			return -EFBIG;
		if (write(copy, buf, (size_t)n) != n)
			return -EIO;
	}
	return lseek(copy, 0, SEEK_SET) < 0 ? -errno : TAKE_FD(copy);
}

int opener_maps(uint32_t pid, bool copy)
{
	_cleanup_close_ int fd = opener_open_proc(pid, "maps", O_RDONLY);

	return copy && fd >= 0 ? opener_copy(fd, MAX_MAPS_BYTES) : TAKE_FD(fd);
}

int opener_cgroup(uint32_t tid)
{
	return opener_open_proc(tid, "cgroup", O_RDONLY);
}

int opener_kills(void)
{
	int fd = open("/proc/vmstat", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int write_kill_lines(int fd, char *text)
{
	char *line;

	while ((line = strsep(&text, "\n"))) {
		size_t n = strlen(line);

		line[n] = '\n'; /* in place of its 0: there is one more behind the last line */
		if (memmem(line, n, KILL_WORDS, strlen(KILL_WORDS)) &&
		    write(fd, line, n + 1) != (ssize_t)n + 1)
			return -EIO;
	}
	return 0;
}

int opener_kill_lines(void)
{
	_cleanup_free_ char *text = calloc(MAX_LOG_BYTES + 2, 1);
	_cleanup_close_ int fd = -EBADF;
	int r;

	if (!text)
		return -ENOMEM;
	if (klogctl(LOG_READ_ALL, text, MAX_LOG_BYTES) < 0)
		return -errno;
	fd = memory_file_new("perfwalk-kills");
	if (fd < 0)
		return fd;
	r = write_kill_lines(fd, text);
	return r < 0 ? r : TAKE_FD(fd);
}

int opener_resident(uint32_t pid)
{
	return opener_open_proc(pid, "statm", O_RDONLY);
}

int opener_reopen_regular(int path_fd, struct stat *ret_st)
{
	char link[32];
	int fd, r = opener_stat_cached(path_fd, ret_st);

	if (r < 0)
		return r;
	if (!S_ISREG(ret_st->st_mode))
		return -EINVAL;
	if (ret_st->st_size > MAX_FILE_BYTES)
		return -EFBIG;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	fd = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int opener_regular_file(const char *path)
{
	_cleanup_close_ int path_fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	return path_fd < 0 ? -errno : opener_reopen_regular(path_fd, &st);
}

int opener_file_of_process(uint32_t pid, const char *path)
{
	_cleanup_close_ int root = -EBADF, path_fd = -EBADF;
	struct stat st;

	if (!pid) {
		path_fd = open(path, O_PATH | O_CLOEXEC);
		return path_fd < 0 ? -errno : opener_reopen_regular(path_fd, &st);
	}
	root = opener_open_proc(pid, "root", O_PATH | O_DIRECTORY);
	if (root < 0)
		return root;
	path_fd = opener_resolve(root, path, IN_ROOT);
	return path_fd < 0 ? path_fd : opener_reopen_regular(path_fd, &st);
}

int opener_put_build_id(char *buf, size_t size, const uint8_t *id, size_t n)
{
	size_t at = 0;

	if (n < 2 || 2 * n + sizeof(".build-id/x/") > size)
		return -EINVAL;
	at += (size_t)sprintf(buf, ".build-id/%02x/", id[0]);
	for (size_t i = 1; i < n; i++)
		at += (size_t)sprintf(buf + at, "%02x", id[i]);
	return 0;
}

/* O_PATH descriptor: nothing has been opened yet. */
static int find_recorded(const struct message *ask)
{
	char name[64], path[PROTOCOL_PATH_MAX];
	const char *home = getenv("HOME");
	int fd, r;

	switch (ask->ask_recorded_file.place) {
	case RECORDED_CACHE:
	case RECORDED_KALLSYMS:
		if (ask->ask_recorded_file.n_build_id > sizeof(ask->ask_recorded_file.build_id))
			return -EBADMSG;
		r = opener_put_build_id(name, sizeof(name), ask->ask_recorded_file.build_id,
					ask->ask_recorded_file.n_build_id);
		if (r < 0 || !home || !*home)
			return r < 0 ? r : -ENOENT;
		r = snprintf(path, sizeof(path), "%s/.debug/%s/%s", home, name,
			     ask->ask_recorded_file.place == RECORDED_CACHE ? "elf" : "kallsyms");
		if (r >= (int)sizeof(path))
			return -ENAMETOOLONG;
		fd = open(path, O_PATH | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	case RECORDED_PATH:
		if (!message_text_ok(ask->ask_recorded_file.path,
				     sizeof(ask->ask_recorded_file.path)) ||
		    ask->ask_recorded_file.path[0] != '/')
			return -EBADMSG;
		if (opener_leads_up(ask->ask_recorded_file.path))
			return -EINVAL;
		if (opener_device_blocks((uint32_t)getpid(), ask->ask_recorded_file.major,
					 ask->ask_recorded_file.minor))
			return -ENOTSUP;
		fd = open(ask->ask_recorded_file.path, O_PATH | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	case RECORDED_PERF_MAP:
		(void)snprintf(path, sizeof(path), "/tmp/perf-%u.map", ask->ask_recorded_file.pid);
		/* Anybody can write to /tmp: do not follow a link there. */
		fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	default:
		return -EBADMSG;
	}
}

static unsigned int recorded_contents(uint32_t place)
{
	switch (place) {
	case RECORDED_KALLSYMS:
	case RECORDED_PERF_MAP:
		return OPENER_ADDRESSES | (place == RECORDED_KALLSYMS ? OPENER_ANYWHERE : 0);
	case RECORDED_PATH:
		return OPENER_ELF | OPENER_JITDUMP;
	default:
		return OPENER_ELF | OPENER_ANYWHERE;
	}
}

int opener_recorded_file(const struct message *ask, struct file_identity *ret)
{
	_cleanup_close_ int path_fd = find_recorded(ask), fd = -EBADF;
	struct stat st;
	int r;

	if (path_fd < 0)
		return path_fd;
	fd = opener_check_contents(opener_reopen_regular(path_fd, &st),
				   recorded_contents(ask->ask_recorded_file.place), 0);
	if (fd < 0)
		return fd;
	if (ask->ask_recorded_file.place == RECORDED_PATH && !ask->ask_recorded_file.n_build_id &&
	    (st.st_ino != ask->ask_recorded_file.inode ||
	     (st.st_dev != makedev(ask->ask_recorded_file.major, ask->ask_recorded_file.minor) &&
	      !opener_hides_device(fd))))
		return -ESTALE;
	r = file_identity_get(fd, ret);
	return r < 0 ? r : TAKE_FD(fd);
}

/*
 * The value of a line "Key:\t..." of /proc/PID/status, or its last word (NSpid lists all levels).
 */
static int status_value(uint32_t pid, const char *key, bool last_word, char *value, size_t size)
{
	_cleanup_close_ int fd = opener_open_proc(pid, "status", O_RDONLY);
	char text[4096], *at, *end;
	ssize_t n;

	if (fd < 0)
		return fd;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return -EIO;
	text[n] = '\0';
	at = strstr(text, key);
	if (!at)
		return -ENOENT;
	at += strlen(key);
	at += strspn(at, " \t");
	end = at + strcspn(at, "\n");
	*end = '\0';
	if (last_word) {
		char *word = strrchr(at, '\t');

		at = word ? word + 1 : at;
	} else {
		at[strcspn(at, " \t")] = '\0';
	}
	(void)snprintf(value, size, "%s", at);
	return 0;
}

/*
 * Opens the map in /tmp of the root of that process; 0: our own. Anybody can write there: so the
 * map must not be a link, and must belong to the process's user or to root, who often makes it for
 * others. If the process controls its mounts, it can mount any file of root over that name, or a
 * filesystem that never answers, to which links from /tmp would lead without showing in the mount
 * table.
 */
static int open_perf_map(uint32_t root_pid, const char *pid, uid_t owner)
{
	_cleanup_close_ int root =
		root_pid ? opener_open_proc(root_pid, "root", O_PATH | O_DIRECTORY)
			 : open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int dir = -EBADF, path_fd = -EBADF, fd = -EBADF;
	bool ours = !root_pid || opener_mounts_are_ours(root_pid), mounted_over;
	const uint64_t no_links = IN_ROOT | RESOLVE_NO_SYMLINKS;
	char path[64], *name = path + strlen("/tmp/");
	struct stat st;

	if (root < 0)
		return root;
	(void)snprintf(path, sizeof(path), "/tmp/perf-%s.map", pid);
	if (opener_path_blocks(root_pid, path))
		return -ENOTSUP;
	dir = opener_resolve(root, "/tmp", ours ? IN_ROOT : no_links);
	if (dir < 0)
		return dir;
	path_fd = opener_resolve(dir, name, no_links | RESOLVE_NO_XDEV);
	mounted_over = path_fd == -EXDEV; /* or unknown, before Linux 3.15 */
	if (mounted_over)
		path_fd = opener_resolve(dir, name, no_links);
	if (path_fd < 0)
		return path_fd;
	fd = opener_reopen_regular(path_fd, &st);
	if (fd < 0)
		return fd;
	if (st.st_uid != owner && (st.st_uid != 0 || st.st_nlink != 1 || (mounted_over && !ours)))
		return -EACCES;
	return opener_check_contents(TAKE_FD(fd), OPENER_ADDRESSES, root_pid);
}

int opener_own_pid(uint32_t pid, uint32_t *ret)
{
	char text[16];
	int r = status_value(pid, "\nNSpid:", true, text, sizeof(text));

	if (r < 0 && r != -ENOENT)
		return r;
	/* Before Linux 4.1 there is no such line. */
	*ret = r < 0 ? pid : (uint32_t)strtoul(text, NULL, 10);
	return 0;
}

int opener_perf_map(uint32_t pid)
{
	char ns_pid[16], our_pid[16], uid[16];
	uid_t owner;
	int fd;

	(void)snprintf(our_pid, sizeof(our_pid), "%u", pid);
	/* Before Linux 4.1 there is no NSpid line; then we assume that the process has the pid that
	 * we see. */
	if (status_value(pid, "\nNSpid:", true, ns_pid, sizeof(ns_pid)) < 0)
		(void)snprintf(ns_pid, sizeof(ns_pid), "%u", pid);
	if (status_value(pid, "\nUid:", false, uid, sizeof(uid)) < 0)
		return -ESRCH;
	owner = (uid_t)strtoul(uid, NULL, 10);
	fd = open_perf_map(pid, ns_pid, owner);
	if (fd >= 0 || strcmp(ns_pid, our_pid) == 0)
		return fd;
	/* An agent outside of the container uses the pid that we see. */
	fd = open_perf_map(pid, our_pid, owner);
	return fd >= 0 ? fd : open_perf_map(0, our_pid, owner);
}

int opener_split_file(const char *path)
{
	_cleanup_close_ int root = -EBADF, path_fd = -EBADF;
	size_t n = strlen(path);
	struct stat st;

	if (path[0] != '/' || n < 5 ||
	    (strcmp(path + n - 4, ".dwo") != 0 && strcmp(path + n - 4, ".dwp") != 0))
		return -EINVAL;
	/* The mount table that opener_path_blocks() searches has no "..". */
	if (strstr(path, "/../"))
		return -EXDEV;
	if (opener_path_blocks(0, path))
		return -ENOTSUP;
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	path_fd = opener_resolve(root, path, IN_ROOT | RESOLVE_NO_SYMLINKS);
	return path_fd < 0
		       ? path_fd
		       : opener_check_contents(opener_reopen_regular(path_fd, &st), OPENER_ELF, 0);
}

int opener_user(uint32_t pid, uint32_t *ret_uid)
{
	char text[4096], *line;
	int r = opener_read_proc(pid, "status", text, sizeof(text));

	if (r < 0)
		return r;
	/*
	 * The name before it has its line breaks escaped. First the real uid, then the effective
	 * one.
	 */
	line = strstr(text, "\nUid:");
	return line && sscanf(line, "\nUid: %*u %u", ret_uid) == 1 ? 0 : -EBADMSG;
}

int opener_process(uint32_t pid, struct message *answer)
{
	char text[1024], link[32], exe[PROTOCOL_PATH_MAX], *open_paren, *close_paren;
	unsigned long long start_ticks;
	unsigned long flags;
	uint32_t parent, n_threads;
	char state;
	ssize_t n;
	int r = opener_read_proc(pid, "stat", text, sizeof(text));

	if (r < 0)
		return r;
	/* The name may contain any byte, also ") R 1 ": the last parenthesis is the real one. */
	open_paren = strchr(text, '(');
	close_paren = strrchr(text, ')');
	if (!open_paren || !close_paren || close_paren < open_paren ||
	    sscanf(close_paren + 1,
		   " %c %u %*d %*d %*d %*d %lu %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %u %*d %llu",
		   &state, &parent, &flags, &n_threads, &start_ticks) != 5)
		return -EBADMSG;

	*close_paren = '\0';
	message_set_text(answer->answer_process.comm, sizeof(answer->answer_process.comm),
			 open_paren + 1);
	answer->answer_process.parent_pid = parent;
	answer->answer_process.is_kernel = (flags & 0x00200000) != 0; /* PF_KTHREAD */
	/* The main thread of one that goes on without it is a zombie, too. */
	answer->answer_process.has_ended = (state == 'Z' || state == 'X') && n_threads <= 1;
	answer->answer_process.start_time_ns =
		start_ticks * (NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));

	(void)snprintf(link, sizeof(link), "/proc/%u/exe", pid);
	n = readlink(link, exe, sizeof(exe) - 1);
	exe[n > 0 ? n : 0] = '\0';
	/* The name of a file on a mount that is gone is "/", which is no program. */
	if (n > 0 && exe[n - 1] == '/')
		exe[0] = '\0';
	if (n > 10 && strcmp(exe + n - 10, " (deleted)") == 0)
		exe[n - 10] = '\0';
	message_set_text(answer->answer_process.executable_path,
			 sizeof(answer->answer_process.executable_path), exe);
	return 0;
}

/*
 * A cgroup id is the file handle of its directory (kernfs, FILEID_KERNFS), so the kernel itself
 * turns it into a path: without a scan of the tree, and also for a process that is gone, as long as
 * the directory exists.
 */
static int path_by_handle(const char *mount, uint64_t id, char *path, size_t size)
{
	union {
		struct file_handle handle;
		char bytes[sizeof(struct file_handle) + sizeof(uint64_t)];
	} h = {.handle = {.handle_bytes = sizeof(uint64_t), .handle_type = 0xfe}};
	_cleanup_close_ int mount_fd = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -EBADF;
	char link[32], full[PROTOCOL_PATH_MAX];
	size_t n_mount = strlen(mount);
	ssize_t n;

	if (mount_fd < 0)
		return -errno;
	memcpy(h.handle.f_handle, &id, sizeof(id));
	fd = open_by_handle_at(mount_fd, &h.handle, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, full, sizeof(full) - 1);
	if (n < 0)
		return -errno;
	full[n] = '\0';
	if (strncmp(full, mount, n_mount) != 0)
		return -ENOENT;
	(void)snprintf(path, size, "%s", full[n_mount] ? full + n_mount : "/");
	return 0;
}

int opener_cgroup_path(uint64_t id, char *path, size_t size)
{
	/* The ids in samples belong to the perf_event hierarchy if it is mounted (v1), else to v2.
	 */
	static const char *const mounts[] = {
		"/sys/fs/cgroup/perf_event",
		"/sys/fs/cgroup",
		"/sys/fs/cgroup/unified",
	};
	int r = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++) {
		struct statfs fs;

		if (statfs(mounts[i], &fs) < 0 ||
		    (fs.f_type != CGROUP2_SUPER_MAGIC && fs.f_type != CGROUP_SUPER_MAGIC))
			continue;
		r = path_by_handle(mounts[i], id, path, size);
		if (r == 0)
			return 0;
	}
	return r;
}
