/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Files of runtimes with an allocator of their own, as far as one can tell without parsing them. */
#include <stdbool.h>
#include <stdint.h>

enum allocator { ALLOCATOR_NONE, ALLOCATOR_JAVA, ALLOCATOR_GO };

/* fd is a Java VM's library by its name, or the program of that process, which may be Go's. */
enum allocator allocator_of_file(int fd, uint32_t pid);
/* Whether a function may begin at that offset of it, by its first instruction: compilers of C++
 * begin at a multiple of 16 with a push, and those of Go by a look at the stack's limit. */
bool allocator_may_begin(enum allocator of, int fd, uint64_t offset);
