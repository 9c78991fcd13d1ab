/* SPDX-License-Identifier: Apache-2.0 */
/* Built as a shared object; host.c opens it with dlopen() and links libtiny.c in the usual way. */
#include "common.h"

typedef int (*callback)(int);

KNOWN __attribute__((visibility("default"))) int plugin_call(callback back, int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += back(i);
	return sum;
}
