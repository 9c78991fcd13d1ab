/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The sandbox of a child after its set-up: a list of system calls for each role, enforced by a
 * seccomp filter that cannot be removed. An attacker who controls a child through a hostile file or
 * server has the child's descriptors, but can open, start and signal nothing.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/message.h"

/* Used instead of a role: the process that opens files for the broker (src/opener/helper.h), and
 * one that judges a file (judging.h). */
#define SANDBOX_OPENER PEER_N
#define SANDBOX_JUDGE  (PEER_N + 1)
#define SANDBOX_N      (PEER_N + 2)

enum sandbox_mode {
	SANDBOX_NO,
	SANDBOX_ERRNO, /* a call outside of the list fails with EPERM */
	SANDBOX_KILL,  /* it kills the process by SIGSYS */
	SANDBOX_TRAP,  /* for tests: the process names the call in the log and exits */
	SANDBOX_N_MODES
};
/* "no", "errno" ... */
const char *sandbox_mode_name(enum sandbox_mode mode);
/*
 * The mode for the children: PERFWALK_SECCOMP from the environment, else the configured one. An
 * unknown value there is logged and ignored. SANDBOX_NO in a build with sanitizers, because their
 * run-time library needs other calls.
 */
enum sandbox_mode sandbox_choose_mode(enum sandbox_mode configured);

/*
 * Installs the filter of that role for this thread and all that it starts; NO_NEW_PRIVS must be
 * set. 0; -ENOSYS or -EINVAL: the kernel has no seccomp filters; or another -errno. Before Linux
 * 3.17 (no memfd_create) roles that create files in /dev/shm get no filter.
 */
int sandbox_filter_calls(enum peer who, enum sandbox_mode mode);
/* Does the role create such files on this kernel, so that it gets no filter? */
bool sandbox_makes_files(enum peer who);

/* "profiler" ..., "opener", "judge" */
const char *sandbox_name(enum peer who);

/* The two roles that talk to servers. */
static inline bool sandbox_uses_network(enum peer who)
{
	return who == PEER_EXPORTER || who == PEER_FETCHER;
}

/*
 * Files by name (Landlock). Make a set of rules, add to it, then enforce it for this thread and all
 * that it starts: then nothing else can be opened, created or removed, and no signal reaches other
 * processes. Open descriptors are not affected. The rules of the roles with the network begin with
 * the files of the resolver and the TLS library; those of the others are empty.
 */

/* The kernel's version of Landlock (Linux 5.13), 1 or more, or -errno; -ENOSYS, -EOPNOTSUPP: it has
 * none, or this is a build with sanitizers. */
int sandbox_files_version(void);
/* Makes the rules of a role: a descriptor, or -errno. */
int sandbox_files_new(enum peer who);
/* Allows reading a file, and a file that replaces it. With rules below 0 this and the next
 * functions do nothing. 0 or -errno. */
int sandbox_files_read(int rules, const char *path);
/* Allows files in an open directory. 0 or -errno. */
int sandbox_files_keep(int rules, int directory);
/*
 * Allows TCP connections to a port at any address. Landlock enforces that since version 4 (Linux
 * 6.7). The rules of the roles with the network begin with the resolver. No role may listen on a
 * port. 0 or -errno.
 */
int sandbox_files_connect(int rules, uint16_t port);
/* Allows connections to the proxies in the environment. */
void sandbox_files_use_proxies(int rules);
/* The port that libcurl connects to for a server's or a proxy's URL. */
uint16_t sandbox_server_port(const char *url);
uint16_t sandbox_proxy_port(const char *url);
/*
 * Enforces the rules. The version in force, or -errno (rules if < 0). The descriptor stays the
 * caller's.
 */
int sandbox_files_enforce(int rules);

/* The result of an attempt to escape. */
struct sandbox_tried {
	int32_t seccomp_error; /* 0, or -errno: no filter, and nothing was tried */
	int32_t landlock;      /* its version, or -errno */
	uint32_t passed;       /* 0: nothing succeeded; else see sandbox_tried_name() */
};

/*
 * Starts a process that enforces the filter and the rules of the role on itself, then tries to open
 * a file, connect, run a program, trace, signal, mount, load a BPF program and open a perf event. 0
 * or -errno.
 */
int sandbox_try(enum peer who, struct sandbox_tried *ret);
/* The name of one attempt that succeeded, static; NULL: none did. */
const char *sandbox_tried_name(uint32_t passed);
