/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where CPython keeps what: offsets of fields and sizes. Up to 3.12 they are those of the release
 * (they changed with minor versions only, and are the same on all 64-bit processors); since 3.13
 * the interpreter publishes them at the beginning of _PyRuntime (pycore_debug_offsets.h).
 */
#include <stdbool.h>
#include <stdint.h>

#include "runtimes/image.h"

enum cpython_value {
	PY_INTERPRETERS, /* from _PyRuntime; 3.6: from the variable interp_head */
	PY_INTERP_NEXT,
	PY_INTERP_THREADS,
	PY_THREAD_PREVIOUS,
	PY_THREAD_NEXT,
	PY_THREAD_INTERP,
	PY_THREAD_FRAME, /* in 3.11 and 3.12 in its C frame */
	PY_THREAD_CFRAME,
	PY_THREAD_ID,
	PY_THREAD_NATIVE_ID,
	PY_THREAD_CHUNK,
	PY_CFRAME_FRAME,
	PY_FRAME_PREVIOUS,
	PY_FRAME_CODE,
	PY_FRAME_PLACE, /* of the last instruction: its number, since 3.11 its address */
	PY_FRAME_IS_ENTRY,
	PY_FRAME_OWNER,
	PY_FRAME_COPY, /* which of the bytecode's copies is executed */
	PY_CODE_FILE,
	PY_CODE_NAME, /* since 3.11 qualified */
	PY_CODE_FIRST_LINE,
	PY_CODE_LINES,
	PY_CODE_BYTECODE,
	PY_CODE_COPIES,
	PY_OBJECT_TYPE,
	PY_OBJECT_SIZE,
	PY_BYTES_DATA,
	PY_TEXT_LENGTH,
	PY_TEXT_STATE,
	PY_TEXT_ASCII, /* where its characters are, */
	PY_TEXT_OTHER, /* if some are not ASCII */
	PY_N_VALUES
};

enum {
	/* All fields that are read of one are within so many bytes. */
	PYTHON_THREAD_BYTES = 1024,
	PYTHON_FRAME_BYTES = 160,
	PYTHON_CODE_BYTES = 320,
	PYTHON_OBJECT_BYTES = 96,
};

struct cpython_tables {
	int32_t value[PY_N_VALUES]; /* -1: not in this version */
	uint32_t version;	    /* 0x030b07f0: 3.11.7; up to 3.10 the last two bytes are 0 */
	uint32_t minor;
	bool published, free_threaded;
	uint64_t interpreters; /* address of the pointer to the first */
};

/*
 * 0; -ENOENT: the image has no CPython in it; -ENOTSUP: one that is not understood (*ret_why, a
 * literal).
 */
int cpython_tables_read(struct cpython_tables *ret, const struct image *image,
			const char **ret_why);
/* "code.co_filename" ...: what CPython calls it. */
const char *cpython_value_name(enum cpython_value value);
