/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The memory of a process that can be read without waiting: anonymous, or of a file on one
 * filesystem that is known to answer. It is found in the process's maps, which are read again when
 * an address is not in them, with back-off.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/array.h"

/* [start, end) */
struct readable_range {
	uint64_t start, end;
};

struct ranges {
	int maps; /* owned: /proc/PID/maps */
	uint32_t major, minor;
	uint64_t next_ns, delay_ns;
	ARRAY(struct readable_range) known;
};

void ranges_init(struct ranges *r, int owned_maps, uint32_t major, uint32_t minor);
void ranges_deinit(struct ranges *r);
bool ranges_have(struct ranges *r, uint64_t address, size_t n);
