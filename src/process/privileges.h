/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the children may not do: user, capabilities, limits. Linux 3.10 and later. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct privileges {
	uint32_t uid, gid; /* (uint32_t)-1: stay who we are (perfwalk was not started as root) */
	uint64_t max_address_space; /* RLIMIT_AS in bytes; 0: none */
	uint64_t
		max_data; /* RLIMIT_DATA in bytes (heap; from 4.7 on all private memory); 0: none */
	uint32_t max_open_files; /* RLIMIT_NOFILE; never above what we were started with */
	uint64_t max_file_bytes; /* RLIMIT_FSIZE, of files in memory as well; 0: none */
	uint32_t parent_pid;	 /* leave when this process does */
	bool no_tasks;		 /* RLIMIT_NPROC 0: it starts neither processes nor threads */
};

/*
 * The user that the children run as: name, else "nobody" (*ret_name says which). -ENOENT when
 * neither exists.
 */
int privileges_find_user(const char *name, uint32_t *ret_uid, uint32_t *ret_gid,
			 const char **ret_name);

/*
 * Gives up everything, for good: user, groups, all capability sets, new privileges by exec, core
 * dumps (raw stacks hold secrets), and sets the limits. First thing in a child. 0 or -errno.
 */
int privileges_drop(const struct privileges *p);

/*
 * Keeps of the capabilities only what it takes to open files of all processes for reading, for
 * good; the user stays. 0 or -errno.
 */
int privileges_keep_opening(void);

/*
 * Moves this process into an empty network of its own; open sockets stay in the one they were made
 * in. Needs CAP_SYS_ADMIN, so it comes before the rest is given up. 0 or -errno.
 */
int privileges_leave_network(void);

/*
 * Whether /proc/kallsyms, opened by us, hides addresses from a reader without capabilities. Since
 * Linux 4.15 the one who opened it counts, before that the one who reads it (with kptr_restrict 1).
 */
bool privileges_kallsyms_need_them(int fd);

/* This process holds credentials and stacks: it leaves no core dump, and other processes of its
 * user cannot look into its memory. Processes it started before are not protected. */
void privileges_hide_memory(void);

/* Raises the soft limit of open files to the hard one; the broker's, at start. */
void privileges_raise_open_files(void);
/* RLIMIT_DATA of the broker's own, at start: children may still have more. */
void privileges_limit_data(uint64_t bytes);
