/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Short constants in the file of a program, such as the keys of labels: each is read once. */
#include <stddef.h>
#include <stdint.h>

#include "runtimes/go.h"

/* Values that are read at once are kept at once. */
enum { CONSTANTS = 64, CONSTANT_BYTES = GO_TEXTS_BYTES };

/* Starts as zeros. */
struct constants {
	struct constant {
		uint64_t address; /* 0: none */
		size_t n;
		uint8_t bytes[CONSTANT_BYTES];
	} items[CONSTANTS];
};

/* The n bytes at an address, borrowed until the next put; NULL: unknown. */
const uint8_t *constants_find(const struct constants *c, uint64_t address, size_t n);
/* Copies n bytes; does nothing if there are too many. */
void constants_put(struct constants *c, uint64_t address, const void *bytes, size_t n);
