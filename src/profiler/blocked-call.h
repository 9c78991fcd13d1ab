/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a thread waits for, by the system call that it is in. */
#include <stdint.h>

#include "src/profile/profile.h"

/* For futex(2), by its operation: what programs use it for. PROFILE_MARKER_WAIT: unknown. */
enum profile_marker futex_call_reason(uint64_t operation);
/* call: its number; -1: none, as at a page fault. wchan: the kernel's function; "": unknown. */
enum profile_marker blocked_call_reason(int64_t call, const uint64_t args[6], const char *wchan);
