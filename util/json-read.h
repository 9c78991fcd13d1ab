/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads untrusted JSON in one pass: each value that is not an object or array, with the keys of the
 * objects around it. It makes no tree and allocates nothing. Reading stops at anything deeper than
 * JSON_MAX_DEPTH. Text that is not JSON gives wrong values, but no more values than it has bytes.
 */
#include <stdbool.h>
#include <stddef.h>

#define JSON_MAX_DEPTH 32
#define JSON_MAX_KEYS  3   /* keys kept, of the outermost objects */
#define JSON_MAX_TEXT  256 /* longer keys and values are cut */

struct json_reader {
	const char *at, *end; /* set by json_reader_make() */
	/* The last value: its depth, and the key at each depth from 1 on ("" in an array). value:
	 * text with its escapes resolved (it may be invalid UTF-8), or a number or word
	 * unchanged. */
	unsigned int depth;
	char keys[JSON_MAX_KEYS + 1][JSON_MAX_TEXT];
	char value[JSON_MAX_TEXT];
	bool is_string;
	/* Private. */
	bool wants_key, is_object[JSON_MAX_DEPTH + 1];
};

/* The text stays the caller's, and must outlive the reader. */
static inline struct json_reader json_reader_make(const void *text, size_t n)
{
	return (struct json_reader){.at = text, .end = n ? (const char *)text + n : text};
}

/* false: no further value. */
bool json_reader_next(struct json_reader *j);
