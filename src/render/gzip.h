/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A stream that compresses what is written to it. */
#include <stdio.h>

/*
 * NULL without memory. fclose() of it ends the gzip member and fails when out did; it does not
 * close out, which is the caller's and must live longer.
 */
FILE *gzip_open(FILE *out);
