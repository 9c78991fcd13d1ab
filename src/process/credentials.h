/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Credentials in the environment. The kernel puts a process's variables at the end of its stack,
 * and a sample of a process copies its stack: what a variable says would be in the samples of
 * ourselves, and so with the profiler.
 */
#include <stdbool.h>

/* Whether a variable, NAME=VALUE, may hold credentials: of destinations, servers or proxies. */
bool credentials_in_variable(const char *variable);
/* The same of a proxy's alone, which libcurl reads. */
bool credentials_of_proxy(const char *variable);
/*
 * Moves such variables to the heap, where getenv() finds them, and clears them on the stack. Call
 * it before there are threads, or pointers into the environment.
 */
void credentials_leave_stack(void);
