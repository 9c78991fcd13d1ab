/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of mappings. A child that was taken over can ask for any path and inode, so the kernel
 * must say that the file is mapped: in map_files or in maps, of the process itself or of its
 * parent, whose mappings it may have inherited. Of a process that is gone, only the broker may know
 * that the kernel reported the mapping (MESSAGE_ASK_SEEN_FILE); else we open what everybody may
 * read anyway.
 *
 * The process's memory leads to its file whatever became of the name. Where the kernel does not let
 * us go that way, or the process is gone, the path leads there, if the file has the inode and
 * device of the mapping. An overlay hides the device from one of the two; then the path may only
 * lead through the root of the process that has the file mapped.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <linux/openat2.h>

#include "src/opener/internal.h"
#include "util/cleanup.h"

#define IN_ROOT (RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS)
/* CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH. */
#define READ_ALL_CAPABILITIES (UINT64_C(1) << 1 | UINT64_C(1) << 2)

/* Why a file may be opened by its path. */
enum reason {
	IS_PUBLIC, /* everybody may read it: to be checked */
	IS_MAPPED, /* the kernel says that some process had it mapped */
	IS_OWN,	   /* the process whose root is searched has it mapped, or we have no privileges */
};

/* A mapping of the wanted file. */
struct mapping {
	const struct mapped_file_name *file;
	unsigned long long start, end;
};

static bool is_mapping(const char *line, size_t n, void *ctx)
{
	struct mapping *m = ctx;
	unsigned long long start, end, inode;
	unsigned int major, minor;
	char text[128];

	(void)snprintf(text, sizeof(text), "%.*s", (int)(n < sizeof(text) ? n : sizeof(text)),
		       line);
	if (sscanf(text, "%llx-%llx %*s %*s %x:%x %llu", &start, &end, &major, &minor, &inode) !=
		    5 ||
	    inode != m->file->inode || major != m->file->major || minor != m->file->minor)
		return false;
	m->start = start;
	m->end = end;
	return true;
}

static int open_range(uint32_t pid, unsigned long long start, unsigned long long end,
		      struct stat *st)
{
	_cleanup_close_ int path_fd = -EBADF;
	char name[64];

	(void)snprintf(name, sizeof(name), "map_files/%llx-%llx", start, end);
	path_fd = opener_open_proc(pid, name, O_PATH);
	return path_fd < 0 ? path_fd : opener_reopen_regular(path_fd, st);
}

static bool find_mapping(uint32_t pid, const struct mapped_file_name *file, struct mapping *ret)
{
	_cleanup_close_ int maps = opener_open_proc(pid, "maps", O_RDONLY);

	ret->file = file;
	return file->inode && maps >= 0 && opener_find_line(maps, is_mapping, ret) == 0;
}

/* Then the kernel itself refuses what our user may not read. */
static bool is_unprivileged(void)
{
	char text[4096];
	const char *line;

	if (geteuid() == 0 ||
	    opener_read_proc((uint32_t)getpid(), "status", text, sizeof(text)) < 0)
		return false;
	line = strstr(text, "\nCapEff:");
	return line && !(strtoull(line + strlen("\nCapEff:"), NULL, 16) & READ_ALL_CAPABILITIES);
}

/* pid 0: our own root, which only the device leads from. */
static bool is_wanted(int fd, const struct stat *st, uint32_t pid,
		      const struct mapped_file_name *file, enum reason reason)
{
	unsigned int major, minor;

	if (st->st_ino != file->inode)
		return false;
	if (st->st_dev == makedev(file->major, file->minor))
		return true;
	/* Each subvolume of btrfs has a device, and so has the mount. */
	if (!opener_hides_device(fd))
		return false;
	if (opener_mount_device(fd, pid, &major, &minor) && major == file->major &&
	    minor == file->minor)
		return true;
	return pid && reason != IS_MAPPED;
}

static int open_in_root(uint32_t pid, const struct mapped_file_name *file, enum reason reason,
			struct stat *st)
{
	_cleanup_close_ int root = pid ? opener_open_proc(pid, "root", O_PATH | O_DIRECTORY)
				       : open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int path_fd = -EBADF, fd = -EBADF;

	if (root < 0)
		return root;
	path_fd = opener_resolve(root, file->path,
				 IN_ROOT | (reason == IS_PUBLIC ? OPENER_PUBLIC : 0));
	if (path_fd < 0)
		return path_fd;
	fd = opener_reopen_regular(path_fd, st);
	if (fd < 0)
		return fd;
	if (reason == IS_PUBLIC && !(st->st_mode & S_IROTH))
		return -EACCES;
	return is_wanted(fd, st, pid, file, reason) ? TAKE_FD(fd) : -ESTALE;
}

/* Through the memory of one of them: 0 and *ret_owner, or a descriptor, if it has the file. */
static int open_in_memory(const uint32_t pids[2], const struct mapped_file_name *file,
			  struct stat *st, uint32_t *ret_owner)
{
	struct mapping m;

	for (size_t i = 0; i < 2; i++) {
		if (!pids[i] || !find_mapping(pids[i], file, &m))
			continue;
		*ret_owner = pids[i];
		return open_range(pids[i], m.start, m.end, st);
	}
	return -EACCES;
}

/* By its path in the root of one of the processes, and then in ours: the process may be gone, and
 * its parent or we may have the same file there. *ret_seen_by: which it was. */
static int open_by_path(const uint32_t pids[2], const struct message *ask, uint32_t owner,
			struct stat *st, uint32_t *ret_seen_by)
{
	const struct mapped_file_name *file = &ask->ask_file;
	bool is_free = is_unprivileged(), seen = owner || ask->type == MESSAGE_ASK_SEEN_FILE;
	int r = -ENOENT, error = -ENOENT;

	for (size_t i = 0; i < 3 && r != -ESTALE; i++) {
		uint32_t pid = i < 2 ? pids[i] : 0;
		enum reason reason = is_free || (pid && pid == owner) ? IS_OWN
				     : seen			      ? IS_MAPPED
								      : IS_PUBLIC;

		/* In our root an untrusted path may mean another file, and lead to places that the
		 * process cannot see. */
		if (i < 2 ? !pid : opener_path_may_wait(file->path))
			continue;
		r = open_in_root(pid, file, reason, st);
		*ret_seen_by = pid;
		if (r >= 0)
			return r;
		error = error == -EACCES ? error : r;
	}
	return error;
}

int opener_mapped_file(const struct message *ask, struct file_identity *ret)
{
	const struct mapped_file_name *file = &ask->ask_file;
	const uint32_t pids[] = {file->pid, file->alternate_pid};
	uint32_t owner = 0, seen_by = file->pid;
	_cleanup_close_ int fd = -EBADF;
	struct stat st;
	int r;

	if (!message_text_ok(file->path, sizeof(file->path)))
		return -EBADMSG;
	if (!file->pid || opener_leads_up(file->path))
		return -EINVAL;
	if (opener_device_blocks(file->pid, file->major, file->minor))
		return -ENOTSUP;

	fd = open_range(file->pid, file->start, file->end, &st);
	if (fd < 0) {
		fd = open_in_memory(pids, file, &st, &owner);
		seen_by = owner ? owner : seen_by;
	}
	if (fd < 0 && file->path[0] == '/')
		fd = open_by_path(pids, ask, owner, &st, &seen_by);
	fd = opener_check_contents(fd, OPENER_ELF | OPENER_JITDUMP, seen_by);
	if (fd < 0)
		return fd;
	r = file_identity_get(fd, ret);
	return r < 0 ? r : TAKE_FD(fd);
}
