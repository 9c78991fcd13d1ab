/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/syscall.h>
#include <linux/futex.h>

#include "src/profiler/blocked-call.h"
#include "util/cleanup.h"

/*
 * A futex serves every wait of a program for another of its threads, and so the operation says what
 * it is about: glibc locks with FUTEX_WAIT, and its conditions, semaphores and joins wait with
 * FUTEX_WAIT_BITSET.
 */
enum profile_marker futex_call_reason(uint64_t operation)
{
	switch (operation & ~(uint64_t)(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME)) {
	case FUTEX_WAIT:
	case FUTEX_LOCK_PI:
		return PROFILE_MARKER_WAIT_LOCK;
	case FUTEX_WAIT_BITSET:
		return PROFILE_MARKER_WAIT_CONDITION;
	default:
		return PROFILE_MARKER_WAIT;
	}
}

/* Calls that wait for one kind of thing only. Newer processors lack the older of them. */
static const struct {
	int64_t call;
	enum profile_marker reason;
} calls[] = {
	{SYS_nanosleep, PROFILE_MARKER_WAIT_SLEEP},
	{SYS_clock_nanosleep, PROFILE_MARKER_WAIT_SLEEP},
#ifdef SYS_poll
	{SYS_poll, PROFILE_MARKER_WAIT_POLL},
	{SYS_select, PROFILE_MARKER_WAIT_POLL},
	{SYS_epoll_wait, PROFILE_MARKER_WAIT_POLL},
	{SYS_pause, PROFILE_MARKER_WAIT_SIGNAL},
#endif
	{SYS_ppoll, PROFILE_MARKER_WAIT_POLL},
	{SYS_pselect6, PROFILE_MARKER_WAIT_POLL},
	{SYS_epoll_pwait, PROFILE_MARKER_WAIT_POLL},
	{SYS_accept, PROFILE_MARKER_WAIT_NETWORK},
	{SYS_accept4, PROFILE_MARKER_WAIT_NETWORK},
	{SYS_connect, PROFILE_MARKER_WAIT_NETWORK},
	{SYS_recvfrom, PROFILE_MARKER_WAIT_NETWORK},
	{SYS_recvmsg, PROFILE_MARKER_WAIT_NETWORK},
	{SYS_sendto, PROFILE_MARKER_WAIT_NETWORK},
	{SYS_sendmsg, PROFILE_MARKER_WAIT_NETWORK},
	{SYS_wait4, PROFILE_MARKER_WAIT_CHILD},
	{SYS_waitid, PROFILE_MARKER_WAIT_CHILD},
	{SYS_rt_sigtimedwait, PROFILE_MARKER_WAIT_SIGNAL},
	{SYS_rt_sigsuspend, PROFILE_MARKER_WAIT_SIGNAL},
	{SYS_flock, PROFILE_MARKER_WAIT_FILE_LOCK},
	{SYS_fcntl, PROFILE_MARKER_WAIT_FILE_LOCK},
	{SYS_fsync, PROFILE_MARKER_WAIT_DISK},
	{SYS_fdatasync, PROFILE_MARKER_WAIT_DISK},
	{SYS_sync, PROFILE_MARKER_WAIT_DISK},
	{SYS_io_getevents, PROFILE_MARKER_WAIT_DISK},
	{SYS_msgrcv, PROFILE_MARKER_WAIT_PIPE},
	{SYS_msgsnd, PROFILE_MARKER_WAIT_PIPE},
	{SYS_semtimedop, PROFILE_MARKER_WAIT_LOCK},
	{SYS_semop, PROFILE_MARKER_WAIT_LOCK},
};

/* Reading and writing wait for whatever the file is. */
static const struct {
	const char *part;
	enum profile_marker reason;
} places[] = {
	{"pipe", PROFILE_MARKER_WAIT_PIPE},
	{"unix_", PROFILE_MARKER_WAIT_NETWORK},
	{"sk_", PROFILE_MARKER_WAIT_NETWORK},
	{"skb_", PROFILE_MARKER_WAIT_NETWORK},
	{"tcp_", PROFILE_MARKER_WAIT_NETWORK},
	{"sock_", PROFILE_MARKER_WAIT_NETWORK},
	{"io_schedule", PROFILE_MARKER_WAIT_DISK},
	{"folio_wait", PROFILE_MARKER_WAIT_DISK},
	{"bit_wait_io", PROFILE_MARKER_WAIT_DISK},
	{"rwsem_down", PROFILE_MARKER_WAIT_KERNEL_LOCK},
	{"mutex_lock", PROFILE_MARKER_WAIT_KERNEL_LOCK},
	{"signalfd", PROFILE_MARKER_WAIT_SIGNAL},
	{"__refrigerator", PROFILE_MARKER_WAIT_FREEZER},
	{"do_freezer_trap", PROFILE_MARKER_WAIT_FREEZER},
	{"get_signal", PROFILE_MARKER_WAIT_FREEZER}, /* where the trap is part of it */
};

static enum profile_marker reason_of_place(const char *wchan)
{
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (strstr(wchan, places[i].part))
			return places[i].reason;
	}
	return PROFILE_MARKER_WAIT;
}

enum profile_marker blocked_call_reason(int64_t call, const uint64_t args[6], const char *wchan)
{
	enum profile_marker place = reason_of_place(wchan);

	/* It comes between a thread and its call. */
	if (place == PROFILE_MARKER_WAIT_FREEZER)
		return place;
	if (call < 0)
		return place == PROFILE_MARKER_WAIT_DISK ? PROFILE_MARKER_WAIT_PAGE_FAULT : place;
	if (call == SYS_futex)
		return futex_call_reason(args[1]);
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		if (calls[i].call == call)
			return calls[i].reason;
	}
	return place;
}
