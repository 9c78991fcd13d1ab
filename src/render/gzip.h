/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A stream that compresses its data. */
#include <stdio.h>

/*
 * NULL: no memory. fclose() ends the gzip member and fails if out did. It does not close out, which
 * belongs to the caller and must live longer.
 */
FILE *gzip_open(FILE *out);
