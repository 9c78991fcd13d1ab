/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

/* Whether both files have the same bytes, now. False also when they cannot be read. The offsets of
 * the descriptors stay where they are. */
bool file_bytes_equal(int a, int b);
