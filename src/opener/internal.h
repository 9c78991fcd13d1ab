/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of the opener share; for them alone. */
#include <stdbool.h>
#include <sys/stat.h>

#include "src/opener/opener.h"

/* A file of /proc/PID: a descriptor or -errno. */
int opener_open_proc(uint32_t pid, const char *name, int flags);
/* The beginning of one, as a string. 0 or -errno; -ESRCH also when it is empty. */
int opener_read_proc(uint32_t pid, const char *name, char *text, size_t size);
/* The real open of what an O_PATH descriptor names, once it is known to be harmless. */
int opener_reopen_regular(int path_fd, struct stat *ret_st);
/* O_PATH descriptor of path inside root, or -errno. resolve: RESOLVE_IN_ROOT and others of
 * openat2(2) (links, and other filesystems, may be forbidden). */
int opener_resolve(int root, const char *path, uint64_t resolve);
/* The same where the kernel does not have that call. */
int opener_resolve_by_hand(int root, const char *path, uint64_t resolve);
/*
 * Whether what a process has mounted (0: we) can block for ever: a device, a path without links,
 * the root. Only devices without a major number are looked for. True also where nobody can tell:
 * when the table is too long, and, but for a device, when the process is gone.
 */
bool opener_device_blocks(uint32_t pid, uint32_t major, uint32_t minor);
bool opener_path_blocks(uint32_t pid, const char *path);
bool opener_root_blocks(uint32_t pid);
/* Whether a path of ours leads over FUSE, or over a filesystem whose server may be away (NFS and
 * its kin), or that is mounted when somebody looks at it (autofs). */
bool opener_path_may_wait(const char *path);
/* Whether that process has the mounts that we have. */
bool opener_mounts_are_ours(uint32_t pid);
/* What is known of mount tables, for a second at most, is not known any more. */
void opener_forget_mounts(void);

/* .build-id/ab/cdef: how the stores of perf and of debug files name what has a build id. */
int opener_put_build_id(char *buf, size_t size, const uint8_t *id, size_t n);

/* Kinds of file by what they begin with. */
enum {
	OPENER_ELF = 1,	      /* but no core file */
	OPENER_JITDUMP = 2,   /* or an empty file with the name of one */
	OPENER_ADDRESSES = 4, /* lines of an address first: perf maps, kallsyms; or empty */
};
/* The descriptor (or error) itself when the file is of one of these kinds; else it is closed:
 * -ENOEXEC. */
int opener_check_contents(int owned_fd, unsigned int allowed);
/* Whether a component of the path is "..": the kernel never names a file so. */
bool opener_leads_up(const char *path);
