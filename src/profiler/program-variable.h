/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where a program has a thread-local variable of its own, by its file: the linker fixed its
 * distance from the thread pointer, so the loader's tables do not have it. A static program has
 * only its symbols.
 */
#include "runtimes/thread-variable.h"

/* 1: found, and *ret says where (of a static program with glibc its glibc_bytes, too); 0: the file
 * is no program, or has no such variable; -ENODATA: it is a static program without symbols, so that
 * is unknown. fd stays the caller's. */
int program_variable_find(int fd, const char *name, struct thread_variable *ret);
