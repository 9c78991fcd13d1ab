/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads stand still while the child reads their stacks, and go on when this process has
 * ended, however it ends.
 */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/cmd/cmd.h"
#include "src/cmd/debug-runtime.h"
#include "src/cmd/view.h"
#include "src/opener/opener.h"
#include "util/log.h"
#include "util/memory-file.h"
#include "util/runtime-files.h"
#include "util/text.h"

enum { MAX_THREADS = 256, MAX_IMAGES = 1024 };

static int refuse(uint32_t pid, int error)
{
	if (error == -ENOENT || error == -ESRCH)
		log_error("there is no process %u", pid);
	else if (error == -EACCES || error == -EPERM)
		log_error("process %u: its memory may not be read: run as root, or as its user "
			  "where the kernel lets a user look into processes (kernel.yama."
			  "ptrace_scope)",
			  pid);
	else
		log_error("process %u: its memory cannot be read: %s", pid, strerror(-error));
	return error == -EACCES || error == -EPERM ? EXIT_CODE_NOT_PERMITTED : EXIT_CODE_FAILURE;
}

/* Where the first byte of a mapped file is. */
struct image {
	uint64_t address;
	int rank; /* 0: its name says nothing */
};

static int by_rank(const void *a, const void *b)
{
	const struct image *x = a, *y = b;

	return x->rank != y->rank ? y->rank - x->rank
				  : (x->address > y->address) - (x->address < y->address);
}

/* The files that begin in memory, in the order of maps. */
static size_t read_images(FILE *maps, struct image *ret, size_t max)
{
	_cleanup_free_ char *line = NULL;
	unsigned long long start, offset, inode;
	size_t size = 0, n = 0;

	while (n < max && getline(&line, &size, maps) > 0) {
		if (sscanf(line, "%llx-%*x %*s %llx %*s %llu", &start, &offset, &inode) != 3 ||
		    inode == 0 || offset != 0)
			continue;
		ret[n].address = start;
		ret[n++].rank = runtime_file_rank(line, strcspn(line, "\n"), RUNTIME_ANY);
	}
	return n;
}

/* A file of these addresses, those first that are named like a runtime; or -errno. */
static int find_images(uint32_t pid, uint64_t *ret_n_named)
{
	_cleanup_free_ struct image *images = calloc(MAX_IMAGES, sizeof(*images));
	_cleanup_close_ int fd = memory_file_new("perfwalk-images"), maps = opener_maps(pid, false);
	FILE *f = maps >= 0 ? fdopen(maps, "re") : NULL;
	size_t n = 0;

	if (f) {
		maps = -EBADF;
		n = images ? read_images(f, images, MAX_IMAGES) : 0;
		(void)fclose(f);
		qsort(images, n, sizeof(*images), by_rank);
	}
	*ret_n_named = 0;
	for (size_t i = 0; i < n && fd >= 0; i++) {
		*ret_n_named += images[i].rank > 0;
		(void)!write(fd, &images[i].address, sizeof(images[i].address));
	}
	return TAKE_FD(fd);
}

/* The number of a thread in the pid namespace of its process, which its runtime knows it by. Before
 * Linux 4.1 the kernel does not say it. */
static uint32_t own_number(uint32_t pid, pid_t tid)
{
	char path[64], line[256], *last;
	uint32_t number = (uint32_t)tid;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%u/task/%d/status", pid, (int)tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "NSpid:", 6) == 0 && (last = strrchr(line, '\t')))
			number = (uint32_t)strtoul(last, NULL, 10);
	}
	if (f)
		(void)fclose(f);
	return number;
}

/* Stops a thread and appends its registers. */
static void stop(uint32_t pid, pid_t tid, int threads)
{
	uint8_t row[STOPPED_BYTES] = {0};
	struct iovec regs = {row + STOPPED_HEAD, sizeof(row) - STOPPED_HEAD};
	uint32_t head[3] = {(uint32_t)tid, own_number(pid, tid), 0};
	int status;

	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0 ||
	    ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 || waitpid(tid, &status, __WALL) != tid ||
	    ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)NT_PRSTATUS, &regs) < 0)
		return;
	head[2] = (uint32_t)regs.iov_len;
	memcpy(row, head, sizeof(head));
	(void)!write(threads, row, sizeof(row));
}

/* A file of their registers, or -errno. */
static int stop_threads(uint32_t pid)
{
	_cleanup_close_ int fd = memory_file_new("perfwalk-threads");
	char path[64];
	DIR *d;
	int n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%u/task", pid);
	d = fd >= 0 ? opendir(path) : NULL;
	for (struct dirent *e; d && n < MAX_THREADS && (e = readdir(d));) {
		if (e->d_name[0] == '.')
			continue;
		stop(pid, (pid_t)atoi(e->d_name), fd);
		n++;
	}
	if (d)
		(void)closedir(d);
	return TAKE_FD(fd);
}

static void add_input(struct view *v, const char *name, int owned_fd)
{
	v->inputs[v->n_inputs] = name;
	v->input_fds[v->n_inputs++] = owned_fd;
}

int debug_runtime(struct view *v, const char *text)
{
	uint64_t number;
	uint32_t pid;
	int fd;

	if (text_parse_u64(text, 1, INT32_MAX, &number) < 0) {
		(void)options_refuse(v->command,
				     "expected a process id: %s; see perfwalk debug "
				     "--help",
				     text);
		return EXIT_CODE_USAGE;
	}
	pid = (uint32_t)number;
	fd = opener_named_memory(pid);
	if (fd < 0)
		return refuse(pid, fd);
	v->setup.view = VIEW_DEBUG_RUNTIME;
	v->inputs_are_open = true;
	add_input(v, text, fd);
	fd = find_images(pid, &v->setup.which);
	if (fd < 0)
		return refuse(pid, fd);
	add_input(v, "images", fd);
	fd = stop_threads(pid);
	if (fd >= 0)
		add_input(v, "threads", fd);
	return view_run(v);
}
