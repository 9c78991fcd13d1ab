/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the files of the opener, and only for them. */
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "src/opener/opener.h"

/* Opens a file of /proc/PID: a descriptor or -errno. */
int opener_open_proc(uint32_t pid, const char *name, int flags);
/* Reads the start of such a file as a string. 0 or -errno; -ESRCH also if it is empty. */
int opener_read_proc(uint32_t pid, const char *name, char *text, size_t size);
/*
 * Calls wanted() for each line of /proc/PID/maps (n characters, no newline) until it returns true:
 * 0; -ENOENT: it never did; another -errno. maps: stays the caller's.
 */
int opener_find_line(int maps, bool (*wanted)(const char *line, size_t n, void *ctx), void *ctx);
/* Is a line of maps (n characters) the mapping of a process context? ctx: uint64_t, set to its
 * address. */
bool opener_is_context(const char *line, size_t n, void *ctx);
/* Like fstat(), but with cached attributes: asks no server. 0 or -errno. */
int opener_stat_cached(int fd, struct stat *ret);
/* Opens the file of an O_PATH descriptor (borrowed) for reading, if it is a regular file, which
 * cannot block. Returns the descriptor or -errno. */
int opener_reopen_regular(int path_fd, struct stat *ret_st);
/* For opener_resolve(), besides the kernel's flags: -EACCES unless everybody may search all
 * directories on the way. */
#define OPENER_PUBLIC (UINT64_C(1) << 63)
/* Opens path inside root with O_PATH: a descriptor or -errno. resolve: flags of openat2(2), such as
 * RESOLVE_IN_ROOT, which may forbid links and other file systems. */
int opener_resolve(int root, const char *path, uint64_t resolve);
/* Does the same without openat2(2), which kernels before Linux 5.6 lack. */
int opener_resolve_by_hand(int root, const char *path, uint64_t resolve);
/*
 * Can an access to a mount of a process (0: ours) block forever? The mount is that of a device, of
 * a path without links, or of the root. Only devices without a major number are checked. Also true
 * if that is unknown: the mount table is too long, or (except for a device) the process has ended.
 */
bool opener_device_blocks(uint32_t pid, uint32_t major, uint32_t minor);
bool opener_path_blocks(uint32_t pid, const char *path);
bool opener_root_blocks(uint32_t pid);
/* Does a path of ours cross FUSE, a network filesystem (NFS and the like), or one that is mounted
 * on access (autofs)? */
bool opener_path_may_wait(const char *path);
/* Is a device a filesystem that a virtual machine gets from its host, as our mount table or init's
 * says? To the rest of the kernel it is FUSE. */
bool opener_is_virtiofs(uint32_t major, uint32_t minor);
/* Do fstat and the maps of processes have different devices for the files of its filesystem? Btrfs
 * has one for each subvolume; an overlay has its own, and another below. */
bool opener_hides_device(int fd);
/* The mount of a file, without asking a server; -1: unknown (before Linux 3.15). */
long opener_mount_id(int fd);
/* The device of a file's mount, as a process (0: we) sees it, which is that of its filesystem.
 * false: it does not see the mount. */
bool opener_mount_device(int fd, uint32_t pid, unsigned int *ret_major, unsigned int *ret_minor);
/*
 * Can the server of an open file (borrowed) keep waiting forever who has it open? True of FUSE, and
 * of an overlay that may have FUSE below; also if the kernel does not tell the kind of filesystem.
 * pid: a process that can see the file's mount; 0: we.
 */
bool opener_may_hang(int fd, uint32_t pid);
/* Has its filesystem any server, so that reading can wait? */
bool opener_has_server(int fd);
/* Does that process have our mounts? */
bool opener_mounts_are_ours(uint32_t pid);
/* Waits until sock has something from a process of ours, or has lost it. A process that only needs
 * a CPU is waited for longer. false: it is late. */
bool opener_wait(int sock, pid_t pid);
/* Forgets the cached mount tables, which are valid for a second. */
void opener_forget_mounts(void);

/* Writes .build-id/ab/cdef, the name of a build id in the stores of perf and of debug files.
 * 0; -EINVAL: it is too short or too long. */
int opener_put_build_id(char *buf, size_t size, const uint8_t *id, size_t n);

/* Kinds of files by their first bytes. */
enum {
	OPENER_ELF = 1,	      /* but not a core file */
	OPENER_JITDUMP = 2,   /* or an empty file with such a name */
	OPENER_ADDRESSES = 4, /* lines of an address first: perf maps, kallsyms; or empty */
	OPENER_ANYWHERE = 8,  /* in a directory that the operator chose, so on any filesystem */
};
/* Returns owned_fd (a descriptor, or -errno) if the file is of an allowed kind; else closes it and
 * returns -ENOEXEC, or -ENOTSUP if its server may keep others waiting. pid: as opener_may_hang() */
int opener_check_contents(int owned_fd, unsigned int allowed, uint32_t pid);
/* Is a component of the path ".."? Paths from the kernel never have one. */
bool opener_leads_up(const char *path);
