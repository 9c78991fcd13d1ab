/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Privileges of the children: user, capabilities, limits. Linux 3.10 and later. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct privileges {
	uint32_t uid, gid; /* (uint32_t)-1: keep the user (perfwalk was not started as root) */
	uint64_t max_address_space; /* RLIMIT_AS in bytes; 0: none */
	/* RLIMIT_DATA in bytes: the heap; from Linux 4.7 on all private memory. 0: none. */
	uint64_t max_data;
	uint32_t max_open_files; /* RLIMIT_NOFILE; never above the limit at our start */
	uint64_t max_file_bytes; /* RLIMIT_FSIZE, of files in memory as well; 0: none */
	uint32_t parent_pid;	 /* exit when this process does */
	bool no_tasks;		 /* RLIMIT_NPROC 0: neither processes nor threads can be started */
};

/*
 * Finds the user that the children run as: name, or if it does not exist "nobody". *ret_name is the
 * one found: name, or static. 0; -ENOENT: neither exists.
 */
int privileges_find_user(const char *name, uint32_t *ret_uid, uint32_t *ret_gid,
			 const char **ret_name);

/*
 * Gives up all privileges, for good: user, groups, all capability sets, new privileges by exec
 * (NO_NEW_PRIVS), and core dumps (stacks hold secrets). Sets the limits. A child does this first. 0
 * or -errno.
 */
int privileges_drop(const struct privileges *p);

/*
 * Drops all capabilities, for good, except those needed to open files of all processes for reading;
 * the user stays. 0 or -errno.
 */
int privileges_keep_opening(void);

/*
 * Moves this process into an empty network namespace of its own; open sockets stay in theirs. Needs
 * CAP_SYS_ADMIN, so it comes before privileges_drop(). 0 or -errno.
 */
int privileges_leave_network(void);

/*
 * Does /proc/kallsyms, which we opened as fd, hide addresses from a reader without capabilities?
 * Since Linux 4.15 the opener's capabilities count, before that the reader's (with kptr_restrict
 * 1).
 */
bool privileges_kallsyms_need_them(int fd);

/* The limits of this process that are in force; UINT64_MAX: none. */
struct privileges_limits {
	uint64_t data_bytes, address_space_bytes, file_bytes; /* of one file */
	uint64_t open_files;
	uint64_t tasks; /* processes and threads of its user */
};
/* pid: another process of this user; 0: this one. 0 or -errno. */
int privileges_read_limits(pid_t pid, struct privileges_limits *ret);

/* Protects the credentials and stacks in this process: it makes no core dump, and other processes
 * of its user cannot read its memory. It does not protect processes that it started before. */
void privileges_hide_memory(void);

/* Sets the limits of this process, for good: memory, descriptors, the size of a file, tasks. 0 or
 * -errno. */
int privileges_set_limits(const struct privileges *p);

/* Raises the soft limit of open files to the hard one; the broker does so at start. */
void privileges_raise_open_files(void);
/* Sets the broker's own RLIMIT_DATA, at start: children may still have more. */
void privileges_limit_data(uint64_t bytes);
