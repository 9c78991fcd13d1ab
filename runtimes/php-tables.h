/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where PHP keeps what: offsets of fields, which are those of the release (they changed with minor
 * versions only, and are the same on all 64-bit processors). Those of 7.4, 8.2 and 8.4 were
 * compared with what a compiler makes of their headers; recordings of these (tests/data/interp) are
 * walked by test-interp.
 */
#include <stdbool.h>
#include <stdint.h>

#include "runtimes/image.h"

enum php_value {
	PHP_CURRENT_FRAME, /* in executor_globals */
	PHP_FRAME_PLACE,   /* the last instruction that was begun, as far as the frame knows */
	PHP_FRAME_RETURN_VALUE,
	PHP_FRAME_FUNCTION,
	PHP_FRAME_THIS,
	PHP_FRAME_INFO,
	PHP_FRAME_PREVIOUS,
	PHP_FUNCTION_TYPE,
	PHP_FUNCTION_NAME,
	PHP_FUNCTION_CLASS,
	PHP_FUNCTION_N_OPCODES,
	PHP_FUNCTION_OPCODES,
	PHP_FUNCTION_FILE,
	PHP_FUNCTION_FIRST_LINE,
	PHP_CLASS_NAME,
	PHP_OPCODE_KIND,
	PHP_OPCODE_LINE,
	PHP_OPCODE_NUMBER,
	PHP_STRING_HASH,
	PHP_STRING_LENGTH,
	PHP_STRING_BYTES,
	PHP_GENERATOR_FRAME,
	PHP_GENERATOR_PARENT,
	PHP_N_VALUES
};

enum {
	/* All fields that are read of one are within so many bytes. */
	PHP_FRAME_BYTES = 56,
	PHP_FUNCTION_BYTES = 192,
	PHP_OPCODE_BYTES = 32, /* and no more: the next one is behind */
	PHP_STRING_HEAD = 24,
};

struct php_tables {
	int32_t value[PHP_N_VALUES];
	uint32_t major, minor, micro;
};

/* 0; -ENOENT: the image has no PHP in it; -ENOTSUP: one that is not understood (*ret_why, a
 * literal); -EAGAIN: it does not know its version yet. */
int php_tables_read(struct php_tables *ret, const struct image *image, const char **ret_why);
/* "op_array.filename" ...: what PHP calls it. */
const char *php_value_name(enum php_value value);
