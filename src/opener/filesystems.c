/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filesystems whose server can keep waiting whoever uses their files. A FUSE server is a program of
 * a stranger, and not even SIGKILL ends that wait: with such a file open, already fstat, fstatfs
 * and close can hang, because close flushes the file. So nobody but the helper may have one open.
 * The mount table of a process does not show all of them (it may be unmounted, or passed on from
 * another namespace), but the kernel tells the kind of any open file.
 *
 * It does not tell what is below an overlay, and everybody may mount one over a FUSE filesystem of
 * their own, in a user namespace. But an overlay passes on the question where on its disk a file
 * lies (FIEMAP), and no FUSE file has an answer. Some other filesystems have none either (ZFS,
 * tmpfs, squashfs): there an overlay must be one that was mounted for the host, which its or init's
 * mount table shows.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "src/opener/internal.h"
#include "src/opener/mount-line.h"
#include "util/cleanup.h"

/* Not in all headers. */
#define FUSE_MAGIC   0x65735546
#define CIFS_MAGIC   0xff534d42
#define SMB2_MAGIC   0xfe534d42
#define CEPH_MAGIC   0x00c36400
#define LUSTRE_MAGIC 0x0bd00bd0
#define AFS_MAGIC    0x6b414653
#define GPFS_MAGIC   0x47504653

int opener_stat_cached(int fd, struct stat *ret)
{
	struct statx x;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &x) < 0)
		return fstat(fd, ret) < 0 ? -errno : 0; /* before Linux 4.11 */
	*ret = (struct stat){.st_dev = makedev(x.stx_dev_major, x.stx_dev_minor),
			     .st_ino = x.stx_ino,
			     .st_mode = x.stx_mode,
			     .st_nlink = x.stx_nlink,
			     .st_uid = x.stx_uid,
			     .st_gid = x.stx_gid,
			     .st_size = (off_t)x.stx_size,
			     .st_ctim = {(time_t)x.stx_ctime.tv_sec, x.stx_ctime.tv_nsec}};
	return 0;
}

/* 0: unknown. */
static uint32_t kind_of(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) < 0 ? 0 : (uint32_t)fs.f_type;
}

bool opener_hides_device(int fd)
{
	uint32_t kind = kind_of(fd);

	return kind == OVERLAYFS_SUPER_MAGIC || kind == BTRFS_SUPER_MAGIC;
}

long opener_mount_id(int fd)
{
	char path[48], text[128];
	_cleanup_close_ int info = -EBADF;
	const char *id;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	n = info < 0 ? -1 : read(info, text, sizeof(text) - 1);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	id = strstr(text, "mnt_id:");
	return id ? strtol(id + strlen("mnt_id:"), NULL, 10) : -1;
}

static bool lies_on_disk(int fd)
{
	struct fiemap m = {.fm_length = 1};

	return ioctl(fd, FS_IOC_FIEMAP, &m) == 0;
}

/* A mount that is looked for by its id, or by its device. */
struct wanted_mount {
	long id;
	unsigned int major, minor;
};

static bool parse_line(const char *line, size_t n, struct mount_line *ret)
{
	char text[4096];

	/* What is looked at comes before the options, which an overlay can have many of. */
	(void)snprintf(text, sizeof(text), "%.*s", (int)n, line);
	return mount_line_parse(text, ret);
}

static bool has_id(const char *line, size_t n, void *ctx)
{
	struct wanted_mount *w = ctx;
	struct mount_line l;

	if (!parse_line(line, n, &l) || l.id != w->id)
		return false;
	w->major = l.major;
	w->minor = l.minor;
	return true;
}

static bool has_device(const char *line, size_t n, void *ctx)
{
	const struct wanted_mount *w = ctx;
	struct mount_line l;

	return parse_line(line, n, &l) && l.major == w->major && l.minor == w->minor;
}

static bool find_mount(uint32_t pid, bool (*wanted)(const char *, size_t, void *),
		       struct wanted_mount *w)
{
	_cleanup_close_ int table =
		opener_open_proc(pid ? pid : (uint32_t)getpid(), "mountinfo", O_RDONLY);

	return table >= 0 && opener_find_line(table, wanted, w) == 0;
}

bool opener_mount_device(int fd, uint32_t pid, unsigned int *ret_major, unsigned int *ret_minor)
{
	struct wanted_mount w = {.id = opener_mount_id(fd)};

	if (w.id < 0 || !find_mount(pid, has_id, &w))
		return false;
	*ret_major = w.major;
	*ret_minor = w.minor;
	return true;
}

/* Is it an overlay that was mounted for the host? The device of its files can be another than its
 * own, so the mount leads to that. */
static bool is_hosts_overlay(int fd, uint32_t pid)
{
	struct wanted_mount w;

	return opener_mount_device(fd, pid, &w.major, &w.minor) &&
	       (find_mount(0, has_device, &w) || find_mount(1, has_device, &w));
}

bool opener_may_hang(int fd, uint32_t pid)
{
	uint32_t kind = kind_of(fd);
	struct stat st;

	if (kind == OVERLAYFS_SUPER_MAGIC)
		return !lies_on_disk(fd) && !is_hosts_overlay(fd, pid);
	if (kind != FUSE_MAGIC)
		return kind == 0;
	/* The host of a virtual machine is no stranger to it. */
	return opener_stat_cached(fd, &st) < 0 ||
	       !opener_is_virtiofs(major(st.st_dev), minor(st.st_dev));
}

bool opener_has_server(int fd)
{
	static const uint32_t kinds[] = {
		0,	    FUSE_MAGIC,	  NFS_SUPER_MAGIC, SMB_SUPER_MAGIC,
		CIFS_MAGIC, SMB2_MAGIC,	  V9FS_MAGIC,	   CEPH_MAGIC,
		AFS_MAGIC,  LUSTRE_MAGIC, AFS_SUPER_MAGIC, CODA_SUPER_MAGIC,
		GPFS_MAGIC};
	uint32_t kind = kind_of(fd);

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (kind == kinds[i])
			return true;
	}
	return false;
}
