/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The services that run now, with the names that captures give them. */
#include <stdint.h>

#include "src/process/sandbox.h"
#include "util/array.h"

struct serving {
	uint32_t pid;
	char comm[32], service[128];
	/* The form of its threads' contexts, after "unknown:" if nothing here reads it; "": they
	 * publish none. */
	char spans[48];
};

struct serving_list {
	ARRAY(struct serving) items; /* sorted by service */
};

/* Fills an empty list. Gives up all privileges for good, as running_drop_privileges() does, before
 * it reads what the processes publish. 0 or -errno. */
int services_find(struct serving_list *ret, enum sandbox_mode seccomp);
void services_deinit(struct serving_list *list);
