/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of perfwalk check share: what was tried, and how a cause is said. */
#include <stdbool.h>
#include <stdint.h>

#include "src/broker/events.h"
#include "src/sample/sample.h"

enum check_level { CHECK_OK, CHECK_NOTE, CHECK_BAD };

struct check {
	struct sample_circumstances circumstances;
	struct sample_options options;
	struct sample_features features;
	char host_error[1024], own_error[1024], ring_error[512];
	int host, own, rings; /* 0 or -errno of opening: all CPUs, ourselves, the rings */
	uint64_t ring_bytes;  /* the smallest that was given */
	int cpus[EVENTS_MAX_CPUS], n_cpus;
	char commands[1024]; /* what gets what is missing, a line each */
};

/* One line a cause. */
void check_say(enum check_level level, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Below it, what changes that. */
void check_say_fix(const char *text);
/* A command to copy, for the end. */
void check_add_command(struct check *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The command that sets a setting of the kernel, such as "kernel.kptr_restrict"; none if root
 * cannot, as in a container. */
void check_add_sysctl(struct check *c, const char *name, long value);
/* The number in a file of /proc/sys, or fallback. */
long check_read_number(const char *path, long fallback);

bool check_in_user_namespace(void);
/* Capabilities of a rootless container are of no use to perf events: they do not count. */
bool check_has_capability(const struct check *c, int capability);

/* What this user may, a line or more each (check-rights.c). */
void check_say_paranoid(struct check *c);
void check_say_capabilities(const struct check *c);
void check_say_seccomp(const struct check *c);
void check_say_sandbox(const struct check *c);
void check_say_users(struct check *c);
void check_say_limits(const struct check *c);
void check_say_lockdown(void);
void check_say_namespaces(const struct check *c);
void check_say_kernel_names(struct check *c);
