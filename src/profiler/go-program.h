/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether a file is a Go program whose goroutines may have labels. */
#include <stdint.h>

/* The version for go_layout_find(), if the program's code sets labels; 0: any other file. fd stays
 * the caller's. */
uint32_t go_program_labels(int fd);
