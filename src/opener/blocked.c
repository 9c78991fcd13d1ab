/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of a thread that stands still. A child can read in this way what a sample would have
 * shown, too: memory above the stack pointer of a blocked thread, as far as a copy of the stack
 * goes. The child says where the thread stands, and gets nothing if that is wrong. Without root it
 * need not say that, since it can only read memory of our own user.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/opener/internal.h"
#include "util/cleanup.h"
#include "util/memory-file.h"

/* "running", "-1 SP PC" outside of system calls, or "CALL ARG0 .. ARG5 SP PC". */
static int parse_call(const char *text, struct blocked_thread *t)
{
	unsigned long long v[8];
	long long call;
	int n = sscanf(text, "%lld %llx %llx %llx %llx %llx %llx %llx %llx", &call, &v[0], &v[1],
		       &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]);

	if (n != 3 && n != 9)
		return -EAGAIN;
	t->call = n == 9 ? call : -1;
	for (int i = 0; i < 6 && n == 9; i++)
		t->args[i] = v[i];
	t->sp = n == 9 ? v[6] : v[0];
	t->ip = n == 9 ? v[7] : v[1];
	return 0;
}

static int check_place(const struct message *ask, struct blocked_thread *t)
{
	char name[32], text[256];
	int r;

	(void)snprintf(name, sizeof(name), "task/%u/syscall", ask->ask_blocked.tid);
	r = opener_read_proc(ask->ask_blocked.pid, name, text, sizeof(text));
	if (r == 0)
		r = parse_call(text, t);
	if (r < 0)
		return r;
	/* Plain switches do not say where: it is where /proc shows it. Of a thread that can be
	 * sampled the profiler gets such copies from the kernel as well. */
	if (!ask->ask_blocked.sp && !ask->ask_blocked.ip)
		return 0;
	return t->sp == ask->ask_blocked.sp && t->ip == ask->ask_blocked.ip ? 0 : -ESTALE;
}

/* The kernel's function that it stands in; "" where that cannot be told. */
static void read_place_in_kernel(const struct message *ask, struct blocked_thread *t)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "task/%u/wchan", ask->ask_blocked.tid);
	if (opener_read_proc(ask->ask_blocked.pid, name, t->wchan, sizeof(t->wchan)) < 0 ||
	    t->wchan[0] == '0')
		t->wchan[0] = '\0';
}

int opener_blocked(const struct message *ask)
{
	uint32_t n = ask->ask_blocked.n_bytes;
	_cleanup_free_ uint8_t *stack = n <= BLOCKED_MAX_BYTES ? malloc(n) : NULL;
	_cleanup_close_ int memory = -EBADF, fd = -EBADF;
	struct blocked_thread t = {.call = -1};
	ssize_t got;
	int r = stack ? check_place(ask, &t) : -EINVAL;

	if (r == 0)
		r = opener_own_pid(ask->ask_blocked.tid, &t.own_tid);
	if (r < 0)
		return r;
	read_place_in_kernel(ask, &t);
	memory = opener_open_proc(ask->ask_blocked.pid, "mem", O_RDONLY);
	if (memory < 0)
		return memory;
	got = pread(memory, stack, n, (off_t)t.sp);
	if (got <= 0)
		return got < 0 ? -errno : -ESRCH;
	t.n_bytes = (uint64_t)got;
	fd = memory_file_new("perfwalk-blocked");
	if (fd < 0)
		return fd;
	if (write(fd, &t, sizeof(t)) != sizeof(t) || write(fd, stack, (size_t)got) != got)
		return -EIO;
	return TAKE_FD(fd);
}
