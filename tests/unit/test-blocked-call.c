/* SPDX-License-Identifier: Apache-2.0 */
/* What threads wait for, by their system calls. */
#include <sys/syscall.h>
#include <linux/futex.h>

#include "src/profiler/blocked-call.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"

static void test_calls(void)
{
	static const struct {
		int64_t call;
		uint64_t operation;
		const char *wchan;
		enum profile_marker reason;
	} rows[] = {
		{SYS_futex, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, "futex_do_wait",
		 PROFILE_MARKER_WAIT_LOCK},
		{SYS_futex, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME, "",
		 PROFILE_MARKER_WAIT_CONDITION},
		{SYS_futex, FUTEX_WAKE, "", PROFILE_MARKER_WAIT},
		{SYS_clock_nanosleep, 0, "hrtimer_nanosleep", PROFILE_MARKER_WAIT_SLEEP},
		{SYS_ppoll, 0, "", PROFILE_MARKER_WAIT_POLL},
		{SYS_wait4, 0, "do_wait", PROFILE_MARKER_WAIT_CHILD},
		{SYS_read, 0, "anon_pipe_read", PROFILE_MARKER_WAIT_PIPE},
		{SYS_read, 0, "pipe_wait", PROFILE_MARKER_WAIT_PIPE},
		{SYS_read, 0, "sk_wait_data", PROFILE_MARKER_WAIT_NETWORK},
		{SYS_write, 0, "io_schedule", PROFILE_MARKER_WAIT_DISK},
		{SYS_read, 0, "", PROFILE_MARKER_WAIT},
		{-1, 0, "folio_wait_bit_common", PROFILE_MARKER_WAIT_PAGE_FAULT},
		{SYS_clock_nanosleep, 0, "do_freezer_trap", PROFILE_MARKER_WAIT_FREEZER},
		{-1, 0, "__refrigerator", PROFILE_MARKER_WAIT_FREEZER},
		{-1, 0, "", PROFILE_MARKER_WAIT},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const uint64_t args[6] = {0, rows[i].operation};

		CHECK_INT(blocked_call_reason(rows[i].call, args, rows[i].wchan), ==,
			  rows[i].reason);
	}
}

int main(void)
{
	RUN(test_calls);
	return 0;
}
