/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

/* Do both files have the same bytes now? false also if one cannot be read. The descriptors are
 * borrowed, and their offsets do not change. */
bool file_bytes_equal(int a, int b);
