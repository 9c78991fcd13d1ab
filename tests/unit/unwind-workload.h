/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

enum unwind_workload_part {
	WORKLOAD_LIBC,
	WORKLOAD_SIGNAL,
	WORKLOAD_DEEP,
	WORKLOAD_LOADER,
	WORKLOAD_VFORK,
	WORKLOAD_N_PARTS
};
void unwind_workload(enum unwind_workload_part part);
