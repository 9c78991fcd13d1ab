/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Files of runtimes with an allocator of their own, as far as their names and single instructions
 * tell (x86_64, aarch64): the root process parses none of them. */
#include <stdbool.h>
#include <stdint.h>

enum allocator { ALLOCATOR_NONE, ALLOCATOR_JAVA, ALLOCATOR_GO };

/* What fd (borrowed) is: a Java VM's library, by its name, or the program of process pid, which may
 * be Go's. The program's filesystem may keep the caller waiting. */
enum allocator allocator_of_file(int fd, uint32_t pid);
/* The first part of that, which waits for nobody. */
bool allocator_is_java(int fd);
/* Can a function begin at that offset of the file? Compilers of C++ begin with a push of the frame
 * pointer, Go's with a look at the stack's limit, and most at a multiple of 16. */
bool allocator_may_begin(enum allocator of, int fd, uint64_t offset);
