/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The processes that run now, with their containers and units, which follow from their control
 * groups, as for samples; no container engine is asked.
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
/* Finds the containers' names, and sorts the list by container. First it gives up all privileges
 * for good, and with a filter of system calls all except those to read open files and print. 0;
 * -errno: it cannot give them up. */
int running_name_containers(struct running_list *list, enum sandbox_mode seccomp);
/* Becomes a user without privileges, for good. 0 or -errno. */
int running_drop_privileges(enum sandbox_mode seccomp);
/* The id of its container, borrowed; "": it is in none. */
const char *running_container(const struct running *e);
/* Does a process that runs now pass the filters of a config? 1: yes; 0: no; -errno: unknown. A
 * child without privileges looks. */
int running_any(const struct config *c);
