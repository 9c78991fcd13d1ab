/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Files of tests/data that tests of recorded processes read, gzipped or not. */
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "tests/unit/test.h"

#define RECORDED_MAX_FILE (4 << 20)

/* All of the file tests/data/<prefix><version>.<suffix>, and a zero byte behind it; free(). */
static inline char *recorded_file_load(const char *prefix, const char *version, const char *suffix,
				       size_t *ret_n)
{
	const char *top = getenv("srcdir");
	char path[4096], *text = calloc(1, RECORDED_MAX_FILE);
	gzFile f;
	int n;

	(void)snprintf(path, sizeof(path), "%s/tests/data/%s%s.%s", top ? top : ".", prefix,
		       version, suffix);
	f = gzopen(path, "rb");
	CHECK(f && text);
	n = gzread(f, text, RECORDED_MAX_FILE - 1);
	CHECK_INT(n, >, 0);
	(void)gzclose(f);
	*ret_n = (size_t)n;
	return text;
}
