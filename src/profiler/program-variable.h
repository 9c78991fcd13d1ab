/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where a program has its own variable of each thread, by its file: the linker knew the distance
 * from the thread pointer, so no loader says it. A static program has no other table than this.
 */
#include "runtimes/thread-variable.h"

/* 1: *ret is where; 0: the file is no program, or has no such variable; -ENODATA: it is a static
 * program that was stripped, so nobody knows. The descriptor stays the caller's. */
int program_variable_find(int fd, const char *name, struct thread_variable *ret);
