/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The files that the broker opens for its children: only verified regular files, never with a
 * blocking open, and a path from a container only inside its own root.
 *
 * Every function returns an owned, read-only, close-on-exec descriptor or -errno. A file at a path
 * from a child must begin like the expected kind of file (an ELF file but not a core file, a
 * jitdump file, a perf map): else -ENOEXEC. A path with ".." is -EINVAL.
 */
#include <stddef.h>
#include <stdint.h>

#include "src/process/message.h"

/* Copies the rest of fd (borrowed) to a memory file; -EFBIG: more than max_bytes. */
int opener_copy(int fd, uint64_t max_bytes);
/* /proc/PID/maps. copy: a copy of its contents, for a child that may not read the file itself:
 * before Linux 3.18 each reader needs the permission, not the opener. */
int opener_maps(uint32_t pid, bool copy);
/* /proc/TID/cgroup. */
int opener_cgroup(uint32_t tid);
/* /proc/PID/statm, which any user may read. */
int opener_resident(uint32_t pid);
/* /proc/vmstat, which counts processes killed for want of memory. */
int opener_kills(void);
/* A copy of the last lines of the kernel's log that name such processes; a child may not see the
 * rest. -EPERM: this needs CAP_SYSLOG where kernel.dmesg_restrict is set. */
int opener_kill_lines(void);

/*
 * The file of a mapping: from the memory of the process, or of the alternate one, if that has the
 * same file mapped; else by the path under /proc/PID/root, under the alternate process's root and
 * under our own. By path only if inode and device are those of the mapping (an overlay hides the
 * device: there the inode decides, but not under our own root); and only if one of the processes
 * has the file mapped, if everybody may read it, or if the request is a MESSAGE_ASK_SEEN_FILE. A
 * file that only lacks the last: -EACCES. Without privileges the kernel alone decides what may be
 * read.
 * -EINVAL: process 0. -ESTALE: the path has another file. -ENOTSUP: on a filesystem that can block
 * forever (FUSE), or in a container with too many mounts. *ret: identity of the opened file.
 */
int opener_mapped_file(const struct message *ask, struct file_identity *ret);

/* /tmp/perf-NSPID.map in the process's root; for a process in its own pid namespace else
 * /tmp/perf-PID.map there, else in our root. It must not be a link, and must belong to the
 * process's user or to root (-EACCES); root's must not be mounted there by a process with its own
 * mounts. -ENOTSUP: on FUSE. */
int opener_perf_map(uint32_t pid);

/*
 * /proc/PID/mem, for reading only, of a process that has code of a runtime mapped, by the name of
 * its file (util/runtime-files.h), publishes a process context, or was linked by Go. Also of one
 * that has code of the file mapped whose first byte is, or would be, at image (0: none): then
 * *ret_file is that file, the caller's, and nobody may have the memory unless the file holds a
 * runtime (judge.h). *ret is its identity, in which the time of its last change stands for that of
 * writing, because the owner of a file cannot choose it. Else *ret_file is negative. The memory of
 * no other process is opened: -ENOENT. -EACCES, -EPERM: without root, perfwalk may only read its
 * own user's processes, and not all of them.
 */
int opener_memory(uint32_t pid, uint64_t image, int *ret_file, struct file_identity *ret);

/* The same of any process, for a person who has named it. */
int opener_named_memory(uint32_t pid);

/* The pid that a process has in its own pid namespace (NSpid, Linux 4.1). 0; -ESRCH: it has ended;
 * another -errno. */
int opener_own_pid(uint32_t pid, uint32_t *ret);
/* The stat file of a thread, which says its CPU. */
int opener_thread_stat(uint32_t tid);

/*
 * A copy of the allocation library's table (alloc/) at that address of a process, as a memory file
 * of LIBRARY_TABLE_BYTES: the blocks in use whose ends are sampled. -ENOENT: no file of the
 * library's name is mapped at the address, or shortly before it.
 */
int opener_library_table(uint32_t pid, uint64_t address);

/*
 * Separate debug file by build id (/usr/lib/debug/.build-id; n 0: none), else by its path below
 * /usr/lib/debug, without links that lead out of it (path "": none); an absolute path that ends
 * with .debug is also tried itself, and in .debug of its directory. First in the root of a process
 * (0: none) if that differs from ours.
 */
int opener_debug_file(uint32_t pid, const uint8_t *build_id, size_t n, const char *path);

/*
 * A file of the cache that the fetcher fills: the regular file BUILDID.debug in dir itself, not a
 * link, with the owner of dir. -EINVAL: no build id.
 */
int opener_cached_debug_file(int dir, const uint8_t *build_id, size_t n);

/*
 * Split debug file of the host, at the path in a program or next to the program. The path is
 * untrusted, so only a regular file with a name that ends with .dwo or .dwp is opened, and no part
 * of the path may be a link or "..": other files that root can read stay out of reach. -EINVAL:
 * another name; -ENOTSUP: on a filesystem that can block forever (FUSE).
 */
int opener_split_file(const char *path);

/*
 * A file that a process mapped during a recording: at the requested place, never through /proc/PID,
 * since another process may have the pid now. If the request has a build id, the caller checks it
 * in the file; without one, inode and device must be those recorded. A perf map: /tmp/perf-PID.map
 * itself, not a link. -ESTALE, -ENOTSUP and *ret as above.
 */
int opener_recorded_file(const struct message *ask, struct file_identity *ret);

/*
 * The engine's state file of a container, from which host_parse_container_state() reads the name:
 * docker's or the OCI bundle's config, or the command line of its conmon. id: digits only.
 */
int opener_container_state(const char *id);

/* A regular file of the host, with the same checks, for our own paths. */
int opener_regular_file(const char *path);

/* The regular file of a path that the user chose, as process pid sees it (0: as we do); links are
 * followed, but never out of the root of a process. */
int opener_file_of_process(uint32_t pid, const char *path);

/*
 * The stack of a thread that is blocked where the request says, from its stack pointer on: a memory
 * file that begins with a struct blocked_thread. -ESTALE: it stands elsewhere; -EAGAIN: it runs.
 */
int opener_blocked(const struct message *ask);

/*
 * What a process publishes of itself, as a memory file that begins with a struct context_file: some
 * variables of its environment, if the request wants them, and the payload of its process context
 * (OTEP 4719). -ESRCH: another process has the pid now; -ENOENT: it publishes nothing. Without the
 * environment also -EALREADY: the caller knows this context; -EAGAIN: the process was writing it;
 * -EBADMSG: it is damaged.
 */
int opener_context(const struct message *ask);

/*
 * Opens the file that a request is for, by its type: the result of opener_mapped_file() (for a
 * probe, in MESSAGE_ASK_COPY and _ALLOCATOR, -ENOTSUP on any filesystem with a server, and in the
 * latter -ESTALE if it is neither libjvm.so nor the program of the process),
 * opener_recorded_file(), opener_perf_map(), opener_memory(), opener_debug_file(),
 * opener_split_file(), opener_blocked() or opener_context(). -EOPNOTSUPP: a request of another
 * type. *ret: the identity of a mapped, recorded or debug file, or of *ret_file; else all 0.
 * *ret_file: as of opener_memory(); else negative.
 */
int opener_asked_file(const struct message *ask, struct file_identity *ret, int *ret_file);

/* Fills answer->answer_process from /proc/PID/stat and /proc/PID/exe. 0 or -errno. */
int opener_process(uint32_t pid, struct message *answer);
/* Is that the process with this start time, in ns since boot (0: any)? 0; -ESRCH: it is another
 * one; -ENOENT: it is a kernel thread; another -errno. */
int opener_check_start(uint32_t pid, uint64_t start_time_ns);
/* Effective user of a process. 0 or -errno. */
int opener_user(uint32_t pid, uint32_t *ret_uid);

/* Writes the path of a cgroup, by its id in samples, from any mounted hierarchy. 0 or -errno. */
int opener_cgroup_path(uint64_t id, char *path, size_t size);
