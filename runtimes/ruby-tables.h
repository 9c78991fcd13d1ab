/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where Ruby keeps what: offsets of fields, which are those of the release (they changed with minor
 * versions only). Some structs hold locks of libc, whose size is that of this processor.
 */
#include <stdbool.h>
#include <stdint.h>

#include "runtimes/image.h"

enum ruby_value {
	RB_VM_RACTORS, /* a list; before 3.0 there are none */
	RB_VM_THREADS, /* a list; since 3.0 each ractor has one */
	RB_RACTOR_NODE,
	RB_RACTOR_THREADS,
	RB_THREAD_NODE,
	RB_THREAD_VM,
	RB_THREAD_CONTEXT,
	RB_THREAD_NATIVE,
	RB_THREAD_ID, /* pthread_self(); since 3.2 in its native thread */
	RB_CONTEXT_STACK,
	RB_CONTEXT_SIZE, /* words */
	RB_CONTEXT_FRAME,
	RB_FRAME_PLACE,
	RB_FRAME_CODE,
	RB_FRAME_ENVIRONMENT,
	RB_FRAME_BYTES,
	RB_CODE_BODY,
	RB_BODY_TYPE,
	RB_BODY_SIZE, /* words */
	RB_BODY_ENCODED,
	RB_BODY_PATH,
	RB_BODY_LABEL,
	RB_BODY_FIRST_LINE,
	RB_BODY_LINES,
	RB_BODY_N_LINES,
	RB_BODY_INDEX,
	RB_BODY_PARENT, /* where it gives code of eval() its name */
	RB_LINE_BYTES,
	RB_METHOD_DEFINITION,
	RB_DEFINITION_NAME,
	RB_LAST_OPERATOR, /* the largest number of a method's name that is an operator's */
	RB_N_VALUES
};

enum {
	/* All fields that are read of one are within so many bytes. */
	RUBY_THREAD_BYTES = 104,
	RUBY_FRAME_MAX = 64,
	RUBY_BODY_BYTES = 152,
};

struct ruby_tables {
	int32_t value[RB_N_VALUES]; /* -1: not in this version */
	uint32_t major, minor, micro;
	bool int_lines;	     /* a first line is an int, and no object */
	bool length_in_text; /* of short strings, too */
	bool tried;	     /* on such a processor */
};

/* 0; -ENOENT: the image has no Ruby in it; -ENOTSUP: one that is not understood (*ret_why, a
 * literal). */
int ruby_tables_read(struct ruby_tables *ret, const struct image *image, const char **ret_why);
/* "iseq_body.location.label" ...: what Ruby calls it. */
const char *ruby_value_name(enum ruby_value value);
