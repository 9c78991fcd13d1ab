/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * JSON that a stranger wrote, read in one pass: each value that is no object or array, with the
 * keys of the objects it lies in. No tree is made, nothing is allocated; what is deeper than
 * JSON_MAX_DEPTH ends the reading. Text that is not JSON gives wrong values, but never more than
 * there are bytes.
 */
#include <stdbool.h>
#include <stddef.h>

#define JSON_MAX_DEPTH 32
#define JSON_MAX_KEYS  3   /* of the outermost objects are kept */
#define JSON_MAX_TEXT  256 /* longer keys and values are cut */

struct json_reader {
	const char *at, *end; /* set by json_reader_make() */
	/* Of the value read last: how deep it lies, and the key at each depth from 1 on ("" in an
	 * array). value: text with its escapes resolved (not checked to be UTF-8), or a number or
	 * word as it stands. */
	unsigned int depth;
	char keys[JSON_MAX_KEYS + 1][JSON_MAX_TEXT];
	char value[JSON_MAX_TEXT];
	bool is_string;
	/* Inside. */
	bool wants_key, is_object[JSON_MAX_DEPTH + 1];
};

/* The text stays the caller's, and must outlive the reader. */
static inline struct json_reader json_reader_make(const void *text, size_t n)
{
	return (struct json_reader){.at = text, .end = n ? (const char *)text + n : text};
}

/* false: there is no further value. */
bool json_reader_next(struct json_reader *j);
