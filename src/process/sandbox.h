/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the kernel lets a child do once it is set up: a list of system calls for each role, enforced
 * by a seccomp filter that cannot be taken off again. An attacker who takes a child over through a
 * hostile file or server has the child's descriptors, and can open, start and signal nothing.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/message.h"

/* In the place of a role: who opens files for the broker (src/opener/helper.h). */
#define SANDBOX_OPENER PEER_N

enum sandbox_mode {
	SANDBOX_NO,
	SANDBOX_ERRNO, /* a call that is not in the list fails with EPERM */
	SANDBOX_KILL,  /* and ends the process by SIGSYS */
	SANDBOX_TRAP,  /* for tests: the process names the call in the log and exits */
	SANDBOX_N_MODES
};
/* "no", "errno" ... */
const char *sandbox_mode_name(enum sandbox_mode mode);
/*
 * The mode for the children: PERFWALK_SECCOMP from the environment, else the configured one. An
 * unknown word there is logged and ignored. SANDBOX_NO in a build with sanitizers, whose run-time
 * library calls what it likes.
 */
enum sandbox_mode sandbox_choose_mode(enum sandbox_mode configured);

/*
 * Puts the filter of that role on this thread and all that it starts; NO_NEW_PRIVS must be set.
 * 0; -ENOSYS or -EINVAL where the kernel has no seccomp filters, or another -errno: there is none.
 * Nor is there one before Linux 3.17 (no memfd_create) for those who then make files in /dev/shm.
 */
int sandbox_filter_calls(enum peer who, enum sandbox_mode mode);

/* "profiler" ..., "opener" */
const char *sandbox_name(enum peer who);

/* The two roles that talk to servers. */
static inline bool sandbox_uses_network(enum peer who)
{
	return who == PEER_EXPORTER || who == PEER_FETCHER;
}

/*
 * Files by name (Landlock). A set of rules is begun, grows, and is enforced on this thread and all
 * that it starts: then nothing else can be opened, made or removed, and no signal reaches a process
 * outside. Descriptors that are open stay as they are. What the roles with the network have from
 * the start is what the resolver and the TLS library read; the others have nothing.
 */

/* The version of Landlock that this kernel has, 1 ..., or -errno: -ENOSYS, -EOPNOTSUPP: none,
 * as for a build with sanitizers. */
int sandbox_files_version(void);
/* The rules of a role: a descriptor, or -errno. */
int sandbox_files_new(enum peer who);
/* Lets it read a file, and what takes its place there. rules < 0: there are none. 0 or -errno. */
int sandbox_files_read(int rules, const char *path);
/* Lets it keep files in a directory that it has open. 0 or -errno. */
int sandbox_files_keep(int rules, int directory);
/*
 * Lets it connect to a port by TCP, whatever the address. Landlock enforces that from version 4 on
 * (Linux 6.7). The roles with the network may reach the resolver, and the proxies that the
 * environment names, from the start. No role may listen on a port. 0 or -errno.
 */
int sandbox_files_connect(int rules, uint16_t port);
/* The port of a server's URL, and of a proxy's: which one libcurl connects to. */
uint16_t sandbox_server_port(const char *url);
uint16_t sandbox_proxy_port(const char *url);
/* The version in force, or -errno (rules < 0: that). The descriptor stays the caller's. */
int sandbox_files_enforce(int rules);

/* What came of an attempt to get out. */
struct sandbox_tried {
	int32_t seccomp_error; /* 0, or -errno: there is no filter, and nothing was tried */
	int32_t landlock;      /* its version, or -errno */
	uint32_t passed;       /* 0: nothing got through; else see sandbox_tried_name() */
};

/*
 * In a process of its own: takes on the filter and the rules of the role, then tries to open a
 * file, connect, run a program, trace, signal, mount, and to get a BPF program and a perf event. 0
 * or
 * -errno.
 */
int sandbox_try(enum peer who, struct sandbox_tried *ret);
/* One of those that got through; NULL: none did. */
const char *sandbox_tried_name(uint32_t passed);
