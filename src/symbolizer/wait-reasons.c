/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The function that a thread blocks in has had many names, and what is between it and schedule()
 * changes from kernel to kernel. So each is searched for from the leaf on, by how its name begins;
 * the first one that is known decides. Disks come first: their waits are inside everything else.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/symbolizer/wait-reasons.h"
#include "util/cleanup.h"

#define MAX_KERNEL 24 /* frames that are looked at */
#define MAX_USER   8
#define MAX_DISK   7 /* from the leaf on */

#define FUTEX PROFILE_N_MARKERS /* of several reasons */

struct wait_rule {
	const char *prefix;
	uint32_t reason;
};

static const struct wait_rule rules[] = {
	{"futex_", FUTEX},
	{"__futex_", FUTEX},
	{"do_futex", FUTEX},
	{"do_nanosleep", PROFILE_MARKER_WAIT_SLEEP},
	{"hrtimer_nanosleep", PROFILE_MARKER_WAIT_SLEEP},
	{"do_epoll_wait", PROFILE_MARKER_WAIT_POLL},
	{"ep_poll", PROFILE_MARKER_WAIT_POLL},
	{"poll_schedule_timeout", PROFILE_MARKER_WAIT_POLL},
	{"do_sys_poll", PROFILE_MARKER_WAIT_POLL},
	{"do_poll", PROFILE_MARKER_WAIT_POLL},
	{"do_select", PROFILE_MARKER_WAIT_POLL},
	{"io_cqring_wait", PROFILE_MARKER_WAIT_POLL},
	{"sk_wait_data", PROFILE_MARKER_WAIT_NETWORK},
	{"sk_stream_wait", PROFILE_MARKER_WAIT_NETWORK},
	{"tcp_", PROFILE_MARKER_WAIT_NETWORK},
	{"udp_", PROFILE_MARKER_WAIT_NETWORK},
	{"udpv6_", PROFILE_MARKER_WAIT_NETWORK},
	{"inet_", PROFILE_MARKER_WAIT_NETWORK},
	{"inet6_", PROFILE_MARKER_WAIT_NETWORK},
	{"unix_", PROFILE_MARKER_WAIT_NETWORK},
	{"vsock_", PROFILE_MARKER_WAIT_NETWORK},
	{"netlink_", PROFILE_MARKER_WAIT_NETWORK},
	{"packet_", PROFILE_MARKER_WAIT_NETWORK},
	{"__skb_", PROFILE_MARKER_WAIT_NETWORK},
	{"skb_", PROFILE_MARKER_WAIT_NETWORK},
	{"sock_", PROFILE_MARKER_WAIT_NETWORK},
	{"rpc_", PROFILE_MARKER_WAIT_NETWORK},
	{"anon_pipe_", PROFILE_MARKER_WAIT_PIPE},
	{"pipe_", PROFILE_MARKER_WAIT_PIPE},
	{"fifo_open", PROFILE_MARKER_WAIT_PIPE},
	{"wait_for_partner", PROFILE_MARKER_WAIT_PIPE},
	{"do_msgrcv", PROFILE_MARKER_WAIT_PIPE},
	{"do_msgsnd", PROFILE_MARKER_WAIT_PIPE},
	{"wq_sleep", PROFILE_MARKER_WAIT_PIPE},
	{"do_wait", PROFILE_MARKER_WAIT_CHILD},
	{"kernel_wait4", PROFILE_MARKER_WAIT_CHILD},
	{"kernel_clone", PROFILE_MARKER_WAIT_CHILD},
	{"_do_fork", PROFILE_MARKER_WAIT_CHILD},
	{"do_fork", PROFILE_MARKER_WAIT_CHILD},
	{"wait_for_vfork_done", PROFILE_MARKER_WAIT_CHILD},
	{"do_sigtimedwait", PROFILE_MARKER_WAIT_SIGNAL},
	{"sigsuspend", PROFILE_MARKER_WAIT_SIGNAL},
	{"signalfd_", PROFILE_MARKER_WAIT_SIGNAL},
	{"__x64_sys_pause", PROFILE_MARKER_WAIT_SIGNAL},
	{"__do_sys_pause", PROFILE_MARKER_WAIT_SIGNAL},
	{"sys_pause", PROFILE_MARKER_WAIT_SIGNAL},
	{"locks_lock_inode_wait", PROFILE_MARKER_WAIT_FILE_LOCK},
	{"flock_lock_", PROFILE_MARKER_WAIT_FILE_LOCK},
	{"posix_lock_", PROFILE_MARKER_WAIT_FILE_LOCK},
	{"do_lock_file_wait", PROFILE_MARKER_WAIT_FILE_LOCK},
	{"fcntl_setlk", PROFILE_MARKER_WAIT_FILE_LOCK},
	{"__break_lease", PROFILE_MARKER_WAIT_FILE_LOCK},
	{"do_semtimedop", PROFILE_MARKER_WAIT_LOCK},
	{"__mutex_lock", PROFILE_MARKER_WAIT_KERNEL_LOCK},
	{"mutex_lock", PROFILE_MARKER_WAIT_KERNEL_LOCK},
	{"rwsem_down_", PROFILE_MARKER_WAIT_KERNEL_LOCK},
	{"down_", PROFILE_MARKER_WAIT_KERNEL_LOCK},
	{"__down", PROFILE_MARKER_WAIT_KERNEL_LOCK},
	{"percpu_rwsem_wait", PROFILE_MARKER_WAIT_KERNEL_LOCK},
	{"synchronize_", PROFILE_MARKER_WAIT_KERNEL_LOCK},
	{"handle_userfault", PROFILE_MARKER_WAIT_PAGE_FAULT},
	{"__refrigerator", PROFILE_MARKER_WAIT_FREEZER},
	{"do_freezer_trap", PROFILE_MARKER_WAIT_FREEZER},
	{"do_coredump", PROFILE_MARKER_WAIT},
	{"vfs_coredump", PROFILE_MARKER_WAIT},
	{"get_signal", PROFILE_MARKER_WAIT_FREEZER}, /* its trap is part of it */
};

/* Waits for a device, wherever in the kernel they are. */
static const char *const disk[] = {
	"io_schedule",
	"folio_wait_bit",
	"folio_wait_writeback",
	"wait_on_page_",
	"__lock_page",
	"__folio_lock",
	"bit_wait_io",
	"blk_mq_get_tag",
	"rq_qos_wait",
	"submit_bio_wait",
	"wait_for_completion_io",
	"__iomap_dio_rw",
	"iomap_dio_",
	"jbd2_",
	"do_get_write_access",
	"read_events",
	"blkdev_issue_flush",
	"xlog_wait",
	"__wait_on_buffer",
};

static const char *const page_faults[] = {
	"handle_mm_fault", "asm_exc_page_fault", "exc_page_fault", "do_user_addr_fault",
	"__do_page_fault", "do_page_fault",	 "page_fault",	   "do_mem_abort",
};

/* Of the program, next to the system call. */
static const struct {
	const char *part;
	enum profile_marker reason;
} user_parts[] = {
	{"cond_", PROFILE_MARKER_WAIT_CONDITION},
	{"Condvar", PROFILE_MARKER_WAIT_CONDITION},
	{"condition_variable", PROFILE_MARKER_WAIT_CONDITION},
	{"notesleep", PROFILE_MARKER_WAIT_CONDITION},
	{"notetsleep", PROFILE_MARKER_WAIT_CONDITION},
	{"mutex_lock", PROFILE_MARKER_WAIT_LOCK},
	{"mutex_timedlock", PROFILE_MARKER_WAIT_LOCK},
	{"lll_lock", PROFILE_MARKER_WAIT_LOCK},
	{"lock_contended", PROFILE_MARKER_WAIT_LOCK},
	{"PyThread_acquire_lock", PROFILE_MARKER_WAIT_LOCK},
	{"rwlock", PROFILE_MARKER_WAIT_LOCK},
};

static bool begins(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool begins_any(const char *name, const char *const *prefixes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (begins(name, prefixes[i]))
			return true;
	}
	return false;
}

static bool any_begins(const char *const *names, size_t n_names, const char *const *prefixes,
		       size_t n)
{
	for (size_t i = 0; i < n_names; i++) {
		if (names[i] && begins_any(names[i], prefixes, n))
			return true;
	}
	return false;
}

/* Does a word of the name begin so? second_worker() has no condition. */
static bool has_word(const char *name, const char *part)
{
	for (const char *at = strstr(name, part); at; at = strstr(at + 1, part)) {
		if (at == name || !isalpha((unsigned char)at[-1]))
			return true;
	}
	return false;
}

/* A futex is a lock, or what other waits are made of. */
static enum profile_marker futex_reason(const char *const *user, size_t n_user,
					enum profile_marker guess)
{
	/* Python's global lock is made of a condition. */
	for (size_t i = 0; i < n_user; i++) {
		if (user[i] && begins(user[i], "take_gil"))
			return PROFILE_MARKER_WAIT_LOCK;
	}
	for (size_t i = 0; i < n_user; i++) {
		for (size_t k = 0; user[i] && k < ARRAY_SIZE(user_parts); k++) {
			if (has_word(user[i], user_parts[k].part))
				return user_parts[k].reason;
		}
	}
	return guess == PROFILE_MARKER_WAIT_CONDITION ? guess : PROFILE_MARKER_WAIT_LOCK;
}

enum profile_marker wait_reason_find(const char *const *kernel, size_t n_kernel,
				     const char *const *user, size_t n_user,
				     enum profile_marker guess)
{
	if (any_begins(kernel, n_kernel < MAX_DISK ? n_kernel : MAX_DISK, disk, ARRAY_SIZE(disk)))
		return any_begins(kernel, n_kernel, page_faults, ARRAY_SIZE(page_faults))
			       ? PROFILE_MARKER_WAIT_PAGE_FAULT
			       : PROFILE_MARKER_WAIT_DISK;
	for (size_t i = 0; i < n_kernel; i++) {
		for (size_t k = 0; kernel[i] && k < ARRAY_SIZE(rules); k++) {
			if (!begins(kernel[i], rules[k].prefix))
				continue;
			return rules[k].reason == FUTEX ? futex_reason(user, n_user, guess)
							: (enum profile_marker)rules[k].reason;
		}
	}
	return PROFILE_MARKER_WAIT;
}

enum profile_marker wait_reason_of_call(const char *const *user, size_t n_user,
					enum profile_marker reason)
{
	bool futex = reason == PROFILE_MARKER_WAIT_LOCK || reason == PROFILE_MARKER_WAIT_CONDITION;

	return futex ? futex_reason(user, n_user, reason) : reason;
}

/* ---- Of a profile ---- */

static const char *frame_name(const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = &p->frames.items[frame];
	uint32_t function;

	if (!f->n_lines)
		return NULL;
	/* The last line is of the function that the address is in; those before are inlined. */
	function = p->lines.items[f->first_line + f->n_lines - 1].function;
	return profile_text(p, p->functions.items[function].name);
}

static bool is_data(const struct profile *p, uint32_t frame)
{
	return p->modules.items[p->frames.items[frame].module].kind == PROFILE_MODULE_DATA;
}

/* Of a stack whose outermost frame is the guess: the same with the reason in its place. */
static uint32_t with_reason(struct profile *p, uint32_t stack)
{
	uint32_t n, n_kernel = p->stacks.items[stack].n_kernel, at;
	const uint32_t *rows = profile_stack_frames(p, stack, &n);
	const char *kernel[MAX_KERNEL], *user[MAX_USER];
	_cleanup_free_ uint32_t *frames = NULL;
	enum profile_marker guess, reason;
	size_t k = 0, u = 0;

	if (n == 0 || !profile_is_wait(p, rows[n - 1]))
		return stack;
	guess = (enum profile_marker)p->frames.items[rows[n - 1]].address;
	for (uint32_t i = 0; i < n_kernel && k < MAX_KERNEL; i++)
		kernel[k++] = frame_name(p, rows[i]);
	for (uint32_t i = n_kernel; i + 1 < n && u < MAX_USER; i++) {
		if (!profile_is_marked(p, rows[i]))
			user[u++] = frame_name(p, rows[i]);
	}
	/* A stack that was read late has none of the kernel's: its system call said it. */
	reason = n_kernel ? wait_reason_find(kernel, k, user, u, guess)
			  : wait_reason_of_call(user, u, guess);
	frames = malloc(n * sizeof(*frames));
	if (!frames)
		return stack;
	memcpy(frames, rows, n * sizeof(*frames));
	at = profile_add_frame(p, p->frames.items[rows[n - 1]].module, reason);
	if (at == PROFILE_NONE)
		return stack;
	/* Only waits for locks name what they waited for. */
	if (n > 1 && reason != PROFILE_MARKER_WAIT_LOCK && is_data(p, rows[n - 2]))
		n--;
	frames[n - 1] = at;
	at = profile_add_stack(p, frames, n, n_kernel);
	return at == PROFILE_NONE ? stack : at;
}

void wait_reasons_put(struct profile *p, uint32_t type, uint32_t first_sample)
{
	for (uint32_t i = first_sample; i < p->types[type].samples.n; i++) {
		struct profile_sample *s = &p->types[type].samples.items[i];

		s->stack = with_reason(p, s->stack);
	}
}
