/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a file says of Go: whether its goroutines can have labels, and where these would be. */
#include <stdint.h>

/* The version for go_layout_find() of a program whose code sets labels; 0: of any other file. The
 * descriptor stays the caller's. */
uint32_t go_program_labels(int fd);
