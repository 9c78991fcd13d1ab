/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Writes JSON strings to a stream, escaped and cleaned. Errors stay with the stream. */
#include <stdio.h>

/*
 * Writes a JSON string with its quotes. The text is untrusted: invalid UTF-8 becomes '?', and all
 * that HTML, JavaScript or a terminal could take for markup or control is escaped, so that the
 * string is safe inside a script element, too.
 */
void json_put_string(FILE *out, const char *text);
/* The same for n bytes of text, with no limit on n. */
void json_put_bytes(FILE *out, const char *text, size_t n);
