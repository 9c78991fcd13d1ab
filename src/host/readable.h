/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The memory of a process that can be read without waiting: anonymous memory, memory that processes
 * share without a file, and files on one filesystem that is known to answer. The process's maps say
 * where it is; they are read again if they lack an address, with back-off.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/array.h"

/* [start, end) */
struct readable_range {
	uint64_t start, end;
};

struct readable {
	/* Filled in by the caller. */
	int (*open_maps)(void *ctx); /* an owned descriptor or -errno, read from its beginning */
	void *ctx;
	uint32_t major, minor; /* of the filesystem */
	size_t max_bytes;      /* of the text of maps */
	/* The first back-off; longer if it took more than a twentieth of that, as CPU time, or a
	 * quarter, with all waiting, to read them. */
	uint64_t min_delay_ns;
	uint64_t max_delay_ns; /* the last one; 0: a minute */
	/* When the process began, or something in it that has memory of its own; 0: long ago. Until
	 * max_delay_ns is less, the last back-off is a twentieth of the time since
	 * (CLOCK_MONOTONIC). */
	uint64_t begun_ns;
	/* Starts as zeros. */
	uint64_t next_ns, delay_ns;
	dev_t shared;
	ARRAY(struct readable_range) known, constant;
};

void readable_deinit(struct readable *r);
/* Can these n bytes be read without waiting? */
bool readable_has(struct readable *r, uint64_t address, size_t n);
/* Are they bytes of a file that the process cannot write, by the maps as they were read last? */
bool readable_is_constant(const struct readable *r, uint64_t address, size_t n);
