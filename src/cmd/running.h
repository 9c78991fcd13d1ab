/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The processes that run now, with their containers and units as control groups say, as for
 * samples; no container engine is asked.
 */
#include <stdint.h>

#include "src/config/config.h"
#include "src/host/host.h"
#include "src/process/sandbox.h"
#include "util/array.h"

struct running {
	uint32_t pid;
	char comm[32];
	char container[256]; /* its name; "": none known */
	struct host_cgroup cgroup;
};

struct running_list {
	ARRAY(struct running) items;
};

/* Fills an empty list. 0 or -errno. */
int running_find(struct running_list *ret);
void running_deinit(struct running_list *list);
/* Finds the containers' names, and leaves the list sorted by container. Gives up all privileges for
 * good first: 0, or -errno when it cannot; where seccomp says so, also all system calls but
 * those for reading open files and for printing. */
int running_name_containers(struct running_list *list, enum sandbox_mode seccomp);
/* Becomes a user without privileges, for good: 0 or -errno. */
int running_drop_privileges(enum sandbox_mode seccomp);
/* The id of its container; "": it is in none. */
const char *running_container(const struct running *e);
/* Does anything run now that the filters of a config pick out? 1: it does; 0: nothing does; -errno:
 * that is not known. A child without privileges looks. */
int running_any(const struct config *c);
