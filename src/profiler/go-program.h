/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether a file is a Go program whose goroutines may have labels, and what it takes to read them.
 */
#include <stdint.h>

struct go_program {
	uint32_t version; /* for go_layout_find(); 0: any other file, whose code sets no labels */
	/* The address, as linked, of the counter of the garbage collector's cycles (4 bytes); 0:
	 * not known. */
	uint64_t cycle;
	char unknown[32]; /* a version that sets labels and whose layout is not known; "" */
};

/* fd stays the caller's. */
struct go_program go_program_find(int fd);
