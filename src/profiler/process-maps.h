/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether a process has mapped a process context, by the names in its list of mappings: some reads,
 * and nobody is asked. What the context says, and whether it is one, the opener finds out.
 */
#include <stdbool.h>
#include <stdint.h>

struct outside;

/* {0} at first. */
struct process_maps {
	bool open;
	bool too_long;
	int fd;		  /* its maps: of its program, so an exec ends them */
	uint32_t n_bytes; /* of the list, when it was read last */
};

/* Opens the list by a question, unless it is open, too long, or of no use on this kernel. */
void process_maps_keep(struct process_maps *m, struct outside *o, uint32_t pid);
/* 1: a mapping has the name of a context; 0: none has. -errno: that is not known, because nothing
 * is open (-EBADF), the program is gone (-ESRCH) or the list is too long (-E2BIG); then ask. */
int process_maps_find_context(struct process_maps *m);
void process_maps_close(struct process_maps *m);
