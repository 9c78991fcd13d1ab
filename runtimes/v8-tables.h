/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Offsets and numbers of one version of V8: what the image exports for debuggers ("v8dbg_" and a
 * name), else what is known of the version.
 */
#include "runtimes/image.h"

enum v8_value {
	/* Types of heap objects. */
	V8_TYPE_FUNCTION, /* the first one; there are more behind it */
	V8_TYPE_SHARED,
	V8_TYPE_SCRIPT,
	V8_TYPE_SCOPE,
	V8_TYPE_BYTECODE,
	V8_TYPE_CODE,
	V8_TYPE_STREAM, /* of instructions; V8_TYPE_CODE where they are one object */
	V8_TYPE_INTERPRETER_DATA,
	V8_TYPE_FIXED_ARRAY,
	V8_TYPE_NO_STRING, /* the first one; those before it are strings */
	/* Offsets in them, from their first byte. */
	V8_MAP_TYPE,
	V8_FUNCTION_SHARED,
	V8_SHARED_DATA,
	V8_SHARED_NAME,
	V8_SHARED_SCRIPT,
	V8_SCRIPT_NAME,
	V8_SCRIPT_SOURCE,
	V8_SCRIPT_LINE_ENDS,
	V8_SCRIPT_ID,
	V8_SCOPE_PLACE, /* of its place in the script; 0: behind the names */
	V8_BYTECODE_POSITIONS,
	V8_BYTECODE_DATA,
	V8_CODE_DEOPT, /* of baseline code: the bytecode array */
	V8_CODE_POSITIONS,
	V8_CODE_START, /* address of the instructions; inline ones: they themselves */
	V8_CODE_SIZE,
	V8_CODE_FLAGS,
	/* Indexes into an array of deoptimization data. */
	V8_DEOPT_LITERALS,
	V8_DEOPT_SHARED, /* or its wrapper */
	V8_DEOPT_INLININGS,
	/* Frames: offsets from fp. */
	V8_FRAME_CONTEXT,
	V8_FRAME_FUNCTION,
	V8_FRAME_BYTECODE,
	V8_FRAME_OFFSET,
	V8_FRAME_WASM,	  /* types of frames */
	V8_KIND_BASELINE, /* of code; larger: optimized */
	V8_N_VALUES
};

struct v8_tables {
	uint32_t version[3]; /* major, minor, build */
	int32_t value[V8_N_VALUES];
	bool exported[V8_N_VALUES];
	bool inline_code; /* code and its instructions are one object */
};

/* 0; -ENOENT: it is no V8; -ENOTSUP: *ret_why. */
int v8_tables_read(struct v8_tables *ret, const struct image *image, const char **ret_why);
const char *v8_value_name(enum v8_value value);
