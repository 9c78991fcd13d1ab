/* SPDX-License-Identifier: Apache-2.0 */
/* A linked library of one tiny function: its caller spends much of its time in the PLT. */
#include "common.h"

KNOWN __attribute__((visibility("default"))) int tiny_add(int a, int b)
{
	return a + b;
}
