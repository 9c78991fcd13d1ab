/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* JSON text onto a stream: what has to be escaped or cleaned. Errors are the stream's. */
#include <stdio.h>

/*
 * A JSON string with its quotes. text is from strangers: bytes that are no UTF-8 become '?', and
 * what HTML, JavaScript or a terminal could take for markup or control is escaped, so that the
 * string is also safe inside a script element.
 */
void json_put_string(FILE *out, const char *text);
/* The same for n bytes of text, of any length. */
void json_put_bytes(FILE *out, const char *text, size_t n);
