/* SPDX-License-Identifier: Apache-2.0 */
/* Reasons of waits by the kernel's chains, as they were seen, leaf first. */
#include "src/symbolizer/wait-reasons.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"

#define LEAF "__schedule", "schedule"

static const struct {
	const char *kernel[12], *user[4];
	enum profile_marker guess, reason;
} chains[] = {
	/* Linux 6.18. */
	{{LEAF, "futex_do_wait", "__futex_wait", "futex_wait", "do_futex"},
	 {"__lll_lock_wait", "pthread_mutex_lock"},
	 PROFILE_MARKER_WAIT_LOCK,
	 PROFILE_MARKER_WAIT_LOCK},
	{{LEAF, "futex_do_wait", "__futex_wait", "futex_wait", "do_futex"},
	 {"__futex_abstimed_wait_common", "pthread_cond_wait"},
	 PROFILE_MARKER_WAIT_CONDITION,
	 PROFILE_MARKER_WAIT_CONDITION},
	/* Without the program's names, by its registers. */
	{{LEAF, "futex_do_wait"},
	 {NULL},
	 PROFILE_MARKER_WAIT_CONDITION,
	 PROFILE_MARKER_WAIT_CONDITION},
	{{LEAF, "futex_do_wait"}, {NULL}, PROFILE_MARKER_WAIT_LOCK, PROFILE_MARKER_WAIT_LOCK},
	/* Rust's locks wait as its conditions do, and Go's idle threads as locks. */
	{{LEAF, "futex_do_wait"},
	 {"syscall", "std::sys::sync::mutex::futex::Mutex::lock_contended"},
	 PROFILE_MARKER_WAIT_CONDITION,
	 PROFILE_MARKER_WAIT_LOCK},
	{{LEAF, "futex_do_wait"},
	 {"runtime.futex", "runtime.futexsleep", "runtime.notesleep"},
	 PROFILE_MARKER_WAIT_LOCK,
	 PROFILE_MARKER_WAIT_CONDITION},
	/* Names that only contain such words. */
	{{LEAF, "futex_do_wait"},
	 {"syscall", "second_worker", "wait_millisecond_ticks", "overwritemutex_lock"},
	 PROFILE_MARKER_WAIT,
	 PROFILE_MARKER_WAIT_LOCK},
	{{LEAF, "futex_do_wait"},
	 {"syscall", "second_worker", "g_cond_wait"},
	 PROFILE_MARKER_WAIT_LOCK,
	 PROFILE_MARKER_WAIT_CONDITION},
	{{LEAF, "futex_do_wait"},
	 {"syscall", "second_second_", "_ZNSt18condition_variable4waitE"},
	 PROFILE_MARKER_WAIT_LOCK,
	 PROFILE_MARKER_WAIT_CONDITION},
	{{LEAF, "do_nanosleep", "hrtimer_nanosleep", "common_nsleep"},
	 {NULL},
	 0,
	 PROFILE_MARKER_WAIT_SLEEP},
	{{LEAF, "schedule_hrtimeout_range_clock", "do_epoll_wait"},
	 {NULL},
	 0,
	 PROFILE_MARKER_WAIT_POLL},
	{{LEAF, "schedule_hrtimeout_range_clock", "poll_schedule_timeout.constprop.0",
	  "do_sys_poll"},
	 {NULL},
	 0,
	 PROFILE_MARKER_WAIT_POLL},
	{{LEAF, "schedule_timeout", "wait_woken", "sk_wait_data", "tcp_recvmsg_locked"},
	 {NULL},
	 0,
	 PROFILE_MARKER_WAIT_NETWORK},
	{{LEAF, "schedule_timeout", "unix_stream_read_generic", "unix_stream_recvmsg"},
	 {NULL},
	 0,
	 PROFILE_MARKER_WAIT_NETWORK},
	{{LEAF, "schedule_timeout", "inet_csk_accept", "inet_accept"},
	 {NULL},
	 0,
	 PROFILE_MARKER_WAIT_NETWORK},
	{{LEAF, "anon_pipe_read", "vfs_read", "ksys_read"}, {NULL}, 0, PROFILE_MARKER_WAIT_PIPE},
	{{LEAF, "io_schedule", "folio_wait_bit_common", "filemap_get_pages", "vfs_read"},
	 {NULL},
	 0,
	 PROFILE_MARKER_WAIT_DISK},
	{{LEAF, "io_schedule", "folio_wait_bit_common", "filemap_fault", "__do_fault",
	  "handle_mm_fault", "do_user_addr_fault", "exc_page_fault", "asm_exc_page_fault"},
	 {NULL},
	 0,
	 PROFILE_MARKER_WAIT_PAGE_FAULT},
	{{LEAF, "do_wait", "kernel_wait4"}, {NULL}, 0, PROFILE_MARKER_WAIT_CHILD},
	{{LEAF, "schedule_timeout", "wait_for_completion_state", "kernel_clone", "__x64_sys_vfork"},
	 {NULL},
	 0,
	 PROFILE_MARKER_WAIT_CHILD},
	{{LEAF, "do_sigtimedwait"}, {NULL}, 0, PROFILE_MARKER_WAIT_SIGNAL},
	{{LEAF, "locks_lock_inode_wait", "__do_sys_flock"},
	 {NULL},
	 0,
	 PROFILE_MARKER_WAIT_FILE_LOCK},
	{{LEAF, "schedule_preempt_disabled", "rwsem_down_write_slowpath", "down_write"},
	 {NULL},
	 0,
	 PROFILE_MARKER_WAIT_KERNEL_LOCK},
	{{LEAF, "do_freezer_trap", "get_signal", "arch_do_signal_or_restart"},
	 {NULL},
	 PROFILE_MARKER_WAIT_LOCK,
	 PROFILE_MARKER_WAIT_FREEZER},
	{{LEAF, "get_signal", "arch_do_signal_or_restart"}, {NULL}, 0, PROFILE_MARKER_WAIT_FREEZER},
	{{LEAF, "wait_for_completion_state", "do_coredump", "get_signal"},
	 {NULL},
	 0,
	 PROFILE_MARKER_WAIT},
	/* Older kernels. */
	{{LEAF, "futex_wait_queue_me", "futex_wait", "do_futex"},
	 {NULL},
	 PROFILE_MARKER_WAIT,
	 PROFILE_MARKER_WAIT_LOCK},
	{{LEAF, "schedule_hrtimeout_range", "ep_poll", "SyS_epoll_wait"},
	 {NULL},
	 0,
	 PROFILE_MARKER_WAIT_POLL},
	{{LEAF, "pipe_wait", "pipe_read", "__vfs_read"}, {NULL}, 0, PROFILE_MARKER_WAIT_PIPE},
	{{LEAF, "io_schedule", "wait_on_page_bit", "__filemap_fdatawait_range"},
	 {NULL},
	 0,
	 PROFILE_MARKER_WAIT_DISK},
	/* Nothing that is known. A guess about futexes says nothing of other system calls. */
	{{LEAF, "schedule_timeout", "some_driver_read", "vfs_read"},
	 {NULL},
	 PROFILE_MARKER_WAIT_LOCK,
	 PROFILE_MARKER_WAIT},
	{{NULL, NULL, NULL}, {NULL}, PROFILE_MARKER_WAIT_LOCK, PROFILE_MARKER_WAIT},
};

static size_t count(const char *const *names, size_t max)
{
	size_t n = 0;

	while (n < max && names[n])
		n++;
	return n;
}

static void test_chains(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(chains); i++) {
		enum profile_marker found =
			wait_reason_find(chains[i].kernel, count(chains[i].kernel, 12),
					 chains[i].user, count(chains[i].user, 4), chains[i].guess);

		fprintf(stderr, "%zu: %s\n", i, profile_marker_text(found));
		CHECK_STR(profile_marker_text(found), profile_marker_text(chains[i].reason));
	}
}

static uint32_t add_frame(struct profile *p, uint32_t module, uint64_t address, const char *name)
{
	const struct profile_function fn = {.name = strtab_put(&p->strings, name)};
	uint32_t frame = profile_add_frame(p, module, address);
	const struct profile_line l = {.function = profile_add_function(p, &fn)};

	CHECK(profile_name_frame(p, frame, &l, 1));
	return frame;
}

/* In a profile the guess gives way to the reason; other stacks stay. */
static void test_profile(void)
{
	const struct profile_module kernel = {.uid = PROFILE_UID_KERNEL,
					      .kind = PROFILE_MODULE_KERNEL,
					      .process = PROFILE_NONE},
				    marker = {.uid = PROFILE_UID_MARKER,
					      .kind = PROFILE_MODULE_MARKER,
					      .process = PROFILE_NONE};
	uint32_t frames[3], not_seen, n;
	struct profile_sample s = {.value = 5, .thread = 0};
	struct profile p;

	profile_init(&p, 1 << 20);
	frames[0] = add_frame(&p, profile_add_module(&p, &kernel), 0x10, "schedule");
	frames[1] = add_frame(&p, profile_add_module(&p, &kernel), 0x20, "do_nanosleep");
	frames[2] =
		profile_add_frame(&p, profile_add_module(&p, &marker), PROFILE_MARKER_WAIT_LOCK);
	not_seen = profile_add_frame(&p, profile_add_module(&p, &marker), PROFILE_MARKER_NOT_SEEN);
	s.stack = profile_add_stack(&p, frames, 3, 2);
	CHECK(profile_add_sample(&p, &s) && profile_add_sample(&p, &s));
	s.stack = profile_add_stack(&p, &not_seen, 1, 0);
	CHECK(profile_add_sample(&p, &s));
	wait_reasons_put(&p, 0, 1);
	for (uint32_t i = 0; i < 2; i++) {
		const uint32_t *rows =
			profile_stack_frames(&p, p.types[0].samples.items[i].stack, &n);

		CHECK_INT(n, ==, 3);
		CHECK_INT(p.frames.items[rows[2]].address, ==,
			  i == 0 ? PROFILE_MARKER_WAIT_LOCK : PROFILE_MARKER_WAIT_SLEEP);
	}
	CHECK_INT(p.types[0].samples.items[2].stack, ==, s.stack);
	profile_deinit(&p);
}

/* In a deep recursion, too. */
static void test_deep(void)
{
	enum { N = 20000 };
	const struct profile_module kernel = {.uid = PROFILE_UID_KERNEL,
					      .kind = PROFILE_MODULE_KERNEL,
					      .process = PROFILE_NONE},
				    file = {.uid = PROFILE_UID_FIRST_FILE,
					    .kind = PROFILE_MODULE_FILE,
					    .process = PROFILE_NONE},
				    marker = {.uid = PROFILE_UID_MARKER,
					      .kind = PROFILE_MODULE_MARKER,
					      .process = PROFILE_NONE};
	static uint32_t frames[N];
	struct profile_sample s = {.value = 5, .thread = 0};
	const uint32_t *rows;
	struct profile p;
	uint32_t n;

	profile_init(&p, 16 << 20);
	frames[0] = add_frame(&p, profile_add_module(&p, &kernel), 0x10, "schedule");
	frames[1] = add_frame(&p, profile_add_module(&p, &kernel), 0x20, "do_sys_poll");
	for (uint32_t i = 2; i < N; i++)
		frames[i] = profile_add_frame(&p, profile_add_module(&p, &file), i);
	frames[N - 1] =
		profile_add_frame(&p, profile_add_module(&p, &marker), PROFILE_MARKER_WAIT_LOCK);
	s.stack = profile_add_stack(&p, frames, N, 2);
	CHECK(profile_add_sample(&p, &s));
	wait_reasons_put(&p, 0, 0);
	rows = profile_stack_frames(&p, p.types[0].samples.items[0].stack, &n);
	CHECK_INT(n, ==, N);
	CHECK_INT(memcmp(rows, frames, (N - 1) * sizeof(*rows)), ==, 0);
	CHECK_INT(p.frames.items[rows[N - 1]].address, ==, PROFILE_MARKER_WAIT_POLL);
	profile_deinit(&p);
}

/* Without the kernel's names the call has said it, but for what a futex is part of. */
static void test_late(void)
{
	static const char *const user[] = {"syscall", "std::condition_variable::wait"};

	CHECK_INT(wait_reason_of_call(user, 2, PROFILE_MARKER_WAIT_LOCK), ==,
		  PROFILE_MARKER_WAIT_CONDITION);
	CHECK_INT(wait_reason_of_call(user, 1, PROFILE_MARKER_WAIT_LOCK), ==,
		  PROFILE_MARKER_WAIT_LOCK);
	CHECK_INT(wait_reason_of_call(user, 2, PROFILE_MARKER_WAIT_POLL), ==,
		  PROFILE_MARKER_WAIT_POLL);
	CHECK_INT(wait_reason_of_call(NULL, 0, PROFILE_MARKER_WAIT), ==, PROFILE_MARKER_WAIT);
}

int main(void)
{
	RUN(test_chains);
	RUN(test_profile);
	RUN(test_deep);
	RUN(test_late);
	return 0;
}
