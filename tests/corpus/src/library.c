/* SPDX-License-Identifier: Apache-2.0 */
/* A shared library that calls back. */
#include <string.h>

#include "mark.h"

int library_call(int (*back)(int), int n);

NOINLINE int library_call(int (*back)(int), int n)
{
	char frame[150];

	memset(frame, n, sizeof(frame));
	return back(n + frame[3]) + frame[7];
}
