/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Credentials in the environment. The kernel puts a process's variables at the end of its stack,
 * and a sample copies the stack: our own samples would show the variables to the profiler.
 */
#include <stdbool.h>

/* May a variable, NAME=VALUE, hold credentials of a destination, a server or a proxy? */
bool credentials_in_variable(const char *variable);
/* May it hold credentials of a proxy, which libcurl reads? */
bool credentials_of_proxy(const char *variable);
/*
 * Moves such variables to the heap, where getenv() finds them, and clears them on the stack. Call
 * it before there are threads, or pointers into the environment.
 */
void credentials_leave_stack(void);
