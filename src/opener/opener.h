/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The broker's short closed list of things it opens for others, and how: only verified regular
 * files, never a blocking open, never a path that a container chose outside its own root.
 *
 * Every function gives an owned, read-only, close-on-exec descriptor or -errno. What a child chose
 * the path of is given only when it begins as the kind of file that it should be (an ELF file that
 * is no core file, a jitdump file, a perf map): else -ENOEXEC. No such path has "..": -EINVAL.
 */
#include <stddef.h>
#include <stdint.h>

#include "src/process/message.h"

/* What is left to be read from fd, in a memory file; -EFBIG: more than max_bytes. */
int opener_copy(int fd, uint64_t max_bytes);
/* /proc/PID/maps. copy: what it says now, for who may not read the file itself: before Linux 3.18
 * it is not the opener of maps but each reader who must be allowed to. */
int opener_maps(uint32_t pid, bool copy);
int opener_cgroup(uint32_t tid);

/*
 * The file behind a mapping: /proc/PID/map_files, then the path under /proc/PID/root, under the
 * alternate process's root and under our own. By path only when inode and device are the mapping's
 * (an overlay hides the device: there the inode decides, but not under our own root). -EINVAL:
 * process 0. -ESTALE: there is a file, but another one. -ENOTSUP: on a filesystem that can block
 * for ever (FUSE), or that of a container with too many mounts to tell. *ret: identity of what was
 * opened.
 */
int opener_mapped_file(const struct message *ask, struct file_identity *ret);

/* /tmp/perf-NSPID.map in the process's root; of one in a pid namespace of its own else
 * /tmp/perf-PID.map there, else in ours. No link; owned by the process's user, or by root
 * (-EACCES), and then not mounted there by a process with mounts of its own. -ENOTSUP: on FUSE. */
int opener_perf_map(uint32_t pid);

/*
 * /proc/PID/mem, to be read only, of a process that has executed code of a Java runtime's library
 * mapped (libjvm.so): no other's memory is for anybody to see. -ENOENT: it has none. -EACCES,
 * -EPERM: who is not root may look into processes of its own only, and not into all.
 */
int opener_memory(uint32_t pid);

/*
 * Separate debug file by build id (/usr/lib/debug/.build-id; n 0: none), else by its path below
 * /usr/lib/debug, out of which no link leads (path "": none); an absolute one that
 * ends in .debug also as it is, and in .debug of its directory. In the root of a process (0: none)
 * first, where that differs from ours.
 */
int opener_debug_file(uint32_t pid, const uint8_t *build_id, size_t n, const char *path);

/*
 * A file of the fetcher's cache, which is that process's to fill: the regular file BUILDID.debug
 * in dir itself, of the user whose dir is, no link. -EINVAL: no build id.
 */
int opener_cached_debug_file(int dir, const uint8_t *build_id, size_t n);

/*
 * Split debug file of the host, in the place a program names or beside it. The place is a
 * stranger's word, so nothing but a regular file whose own name ends in .dwo or .dwp is opened, and
 * no part of the path may be a link or "..": whatever else root can read stays out of reach.
 * -EINVAL: another name; -ENOTSUP: on a filesystem that can block for ever (FUSE).
 */
int opener_split_file(const char *path);

/*
 * A file that was mapped at another time, by a process that is gone: in the place asked for, never
 * through /proc/PID, whose number may be another process's by now. By build id the caller has to
 * check what it gets; by path without a build id only when inode and device are those recorded.
 * A perf map: /tmp/perf-PID.map itself, no link. -ESTALE, -ENOTSUP and *ret as above.
 */
int opener_recorded_file(const struct message *ask, struct file_identity *ret);

/*
 * What its engine wrote down of a container, of which host_parse_container_state() reads the name:
 * docker's or the OCI bundle's config, or the command line of its conmon. id: digits only.
 */
int opener_container_state(const char *id);

/* A regular file of the host, opened as all are here: for paths that are our own. */
int opener_regular_file(const char *path);

/* The regular file of a path that the user chose, as process pid sees it (0: as we do); links are
 * followed, but never out of the root of a process. */
int opener_file_of_process(uint32_t pid, const char *path);

/* Facts of /proc/PID/stat and /proc/PID/exe into an answer. 0 or -errno. */
int opener_process(uint32_t pid, struct message *answer);
/* Effective user of a process. 0 or -errno. */
int opener_user(uint32_t pid, uint32_t *ret_uid);

/* Path of a cgroup by id, from any mounted hierarchy whose ids samples carry. 0 or -errno. */
int opener_cgroup_path(uint64_t id, char *path, size_t size);
