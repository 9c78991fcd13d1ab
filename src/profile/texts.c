/* SPDX-License-Identifier: Apache-2.0 */
/* The fixed texts of profiles: of markers, runtimes and counters. */
#include <string.h>

#include "src/profile/profile.h"

static const char *const marker_texts[PROFILE_N_MARKERS] = {
	[PROFILE_MARKER_TRUNCATED] = "[truncated stack]",
	[PROFILE_MARKER_NO_MAPPING] = "[no mapping]",
	[PROFILE_MARKER_NO_FILE] = "[file not readable]",
	[PROFILE_MARKER_NO_CFI] = "[no unwind information]",
	[PROFILE_MARKER_BAD_CFI] = "[bad unwind information]",
	[PROFILE_MARKER_NO_PROGRESS] = "[broken stack]",
	[PROFILE_MARKER_TOO_DEEP] = "[too deep]",
	[PROFILE_MARKER_NO_USER_REGS] = "[no user registers]",
	[PROFILE_MARKER_32_BIT] = "[32-bit program]",
	[PROFILE_MARKER_RUNTIME_LATE] = "[interpreter not read in time]",
	[PROFILE_MARKER_RUNTIME_UNPROVEN] = "[runtime frames not proven]",
	[PROFILE_MARKER_RUNTIME_ELSEWHERE] = "[callers in a virtual thread's heap]",
	[PROFILE_MARKER_RUNTIME_UNREAD] = "[interpreter not read]",
	[PROFILE_MARKER_WAIT] = "[wait]",
	[PROFILE_MARKER_WAIT_LOCK] = "[wait: lock]",
	[PROFILE_MARKER_WAIT_CONDITION] = "[wait: condition]",
	[PROFILE_MARKER_WAIT_SLEEP] = "[wait: sleep]",
	[PROFILE_MARKER_WAIT_POLL] = "[wait: poll]",
	[PROFILE_MARKER_WAIT_NETWORK] = "[wait: network]",
	[PROFILE_MARKER_WAIT_PIPE] = "[wait: pipe]",
	[PROFILE_MARKER_WAIT_DISK] = "[wait: disk]",
	[PROFILE_MARKER_WAIT_PAGE_FAULT] = "[wait: page fault]",
	[PROFILE_MARKER_WAIT_CHILD] = "[wait: child]",
	[PROFILE_MARKER_WAIT_SIGNAL] = "[wait: signal]",
	[PROFILE_MARKER_WAIT_FILE_LOCK] = "[wait: file lock]",
	[PROFILE_MARKER_WAIT_KERNEL_LOCK] = "[wait: kernel lock]",
	[PROFILE_MARKER_WAIT_FREEZER] = "[wait: freezer]",
	[PROFILE_MARKER_ON_CPU] = "[on CPU]",
	[PROFILE_MARKER_RUNNABLE] = "[waiting for a CPU]",
	[PROFILE_MARKER_WOKEN] = "[woken]",
	[PROFILE_MARKER_IDLE] = "[idle]",
	[PROFILE_MARKER_NOT_SEEN] = "[not seen]",
};

static const char *const runtime_names[PROFILE_N_RUNTIMES] = {
	[PROFILE_RUNTIME_BEAM] = "beam",     [PROFILE_RUNTIME_CPYTHON] = "cpython",
	[PROFILE_RUNTIME_DOTNET] = "dotnet", [PROFILE_RUNTIME_HERMES] = "hermes",
	[PROFILE_RUNTIME_JVM] = "jvm",	     [PROFILE_RUNTIME_LUAJIT] = "luajit",
	[PROFILE_RUNTIME_PERL] = "perl",     [PROFILE_RUNTIME_PHP] = "php",
	[PROFILE_RUNTIME_RUBY] = "ruby",     [PROFILE_RUNTIME_V8JS] = "v8js",
};
_Static_assert(PROFILE_UID_FIRST_RUNTIME + PROFILE_N_RUNTIMES <= PROFILE_UID_FIRST_FILE,
	       "each has its uid");

static const char *const counter_names[PROFILE_N_COUNTERS] = {
	[PROFILE_SAMPLES] = "samples",
	[PROFILE_SAMPLES_LOST] = "samples_lost",
	[PROFILE_SAMPLES_THROTTLED] = "throttled",
	[PROFILE_SAMPLES_DROPPED] = "samples_dropped",
	[PROFILE_SAMPLES_DIED] = "samples_lost_with_process",
	[PROFILE_SAMPLES_FILTERED] = "samples_filtered",
	[PROFILE_RECORDS_BAD] = "records_bad",
	[PROFILE_SIDEBAND_LOST] = "sideband_lost",
	[PROFILE_USER_STACKS] = "user_stacks",
	[PROFILE_STACKS_TRUNCATED] = "stacks_truncated",
	[PROFILE_STACKS_LEFT] = "stacks_left",
	[PROFILE_STACKS_UNREADABLE] = "stacks_unreadable",
	[PROFILE_STACKS_NO_MAPPING] = "stacks_no_mapping",
	[PROFILE_STACKS_NO_FILE] = "stacks_no_file",
	[PROFILE_STACKS_NO_CFI] = "stacks_no_cfi",
	[PROFILE_STACKS_BAD_CFI] = "stacks_bad_cfi",
	[PROFILE_STACKS_NO_PROGRESS] = "stacks_no_progress",
	[PROFILE_STACKS_TOO_DEEP] = "stacks_too_deep",
	[PROFILE_STACKS_UNPROVEN] = "stacks_unproven",
	[PROFILE_STACKS_32_BIT] = "stacks_32_bit",
	[PROFILE_STACKS_NO_REGS] = "stacks_no_regs",
	[PROFILE_STACKS_CONTINUED] = "stacks_continued",
	[PROFILE_STACKS_RUNTIME_LATE] = "stacks_runtime_late",
	[PROFILE_STACKS_RUNTIME_UNREAD] = "stacks_runtime_unread",
	[PROFILE_STACKS_WITHIN_8K] = "stacks_within_8k",
	[PROFILE_STACKS_WITHIN_16K] = "stacks_within_16k",
	[PROFILE_STACKS_WITHIN_32K] = "stacks_within_32k",
	[PROFILE_STACKS_WITHIN_64K] = "stacks_within_64k",
	[PROFILE_STACKS_TO_8_FRAMES] = "stacks_to_8_frames",
	[PROFILE_STACKS_TO_16_FRAMES] = "stacks_to_16_frames",
	[PROFILE_STACKS_TO_32_FRAMES] = "stacks_to_32_frames",
	[PROFILE_STACKS_TO_64_FRAMES] = "stacks_to_64_frames",
	[PROFILE_STACKS_TO_128_FRAMES] = "stacks_to_128_frames",
	[PROFILE_STACKS_MORE_FRAMES] = "stacks_more_frames",
	[PROFILE_FRAMES_UNNAMED] = "frames_unnamed",
	[PROFILE_FRAMES_PUT_OFF] = "frames_put_off",
	[PROFILE_PAUSED_MS] = "paused_ms",
	[PROFILE_SWITCHES] = "switches",
	[PROFILE_SWITCHES_LOST] = "switches_lost",
	[PROFILE_SWITCHES_BROKEN] = "switches_broken",
	[PROFILE_RUNNING_US] = "threads_running_us",
	[PROFILE_WAITING_US] = "threads_waiting_us",
	[PROFILE_BLOCKED_US] = "threads_blocked_us",
	[PROFILE_STOPPED_US] = "threads_stopped_us",
	[PROFILE_UNKNOWN_US] = "threads_unknown_us",
	[PROFILE_NOT_SEEN_US] = "threads_not_seen_us",
	[PROFILE_IDLE_US] = "threads_idle_us",
	[PROFILE_SWITCHES_REFUSED] = "switches_refused",
	[PROFILE_BLOCKS_UNCOPIED] = "blocks_uncopied",
	[PROFILE_BEFORE_US] = "threads_before_us",
	[PROFILE_SPANS_LINKED] = "spans_linked",
	[PROFILE_SPANS_OUTSIDE] = "spans_outside",
	[PROFILE_SPANS_UNREAD] = "spans_unread",
	[PROFILE_SPANS_LATE] = "spans_late",
	[PROFILE_SPANS_MOVED] = "spans_moved",
	[PROFILE_SPANS_HALF] = "spans_half_written",
	[PROFILE_SPANS_UNREADABLE] = "spans_unreadable",
	[PROFILE_SPANS_BLOCKED_LINKED_US] = "spans_blocked_linked_us",
	[PROFILE_SPANS_BLOCKED_OUTSIDE_US] = "spans_blocked_outside_us",
	[PROFILE_SPANS_BLOCKED_UNPROVEN_US] = "spans_blocked_unproven_us",
};

const char *profile_marker_text(uint64_t marker)
{
	return marker < PROFILE_N_MARKERS ? marker_texts[marker] : "";
}

const char *profile_runtime_name(uint32_t runtime)
{
	return runtime < PROFILE_N_RUNTIMES ? runtime_names[runtime] : "";
}

enum profile_runtime profile_runtime_by_name(const char *name)
{
	uint32_t i = 0;

	while (i < PROFILE_N_RUNTIMES && strcmp(name, runtime_names[i]) != 0)
		i++;
	return (enum profile_runtime)i;
}

#define ROW(kind, ...) [RUNTIME_KIND_##kind] = PROFILE_RUNTIME_##kind,
static const enum profile_runtime runtimes_of_kinds[RUNTIME_N_KINDS] = {RUNTIME_ROWS(ROW)};
#undef ROW

enum profile_runtime profile_runtime_of(enum runtime_kind kind)
{
	return kind < RUNTIME_N_KINDS ? runtimes_of_kinds[kind] : PROFILE_N_RUNTIMES;
}

const char *profile_counter_name(enum profile_counter c)
{
	return c < PROFILE_N_COUNTERS ? counter_names[c] : "";
}
