/* SPDX-License-Identifier: Apache-2.0 */
/* The host model on records, with an outside that lives in this program's memory. */
#include "tests/unit/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/host/host.h"
#include "src/host/internal.h"
#include "util/cleanup.h"
#include "util/clock.h"

/* What the outside says, and how often it was asked. */
static struct {
	const char *maps; /* NULL: no such process */
	const char *cgroup;
	const char *cgroup_path;
	uint64_t start_ns, now;
	uint64_t wall, maps_take_ns;   /* a clock of our own, and what a maps read takes by it */
	const char *comm, *exe, *file; /* NULL: /dev/null */
	bool is_kernel, no_process, no_file, file_later;
	int file_error;
	uint32_t n_maps, n_infos, n_files, n_cgroups, n_freed, n_freed_processes;
	uint32_t file_pid;
	uint32_t gone_pid; /* of whom nothing is known any more */
} outside;

static int text_fd(const char *text)
{
	int fd = memfd_create("text", MFD_CLOEXEC);

	CHECK_INT(fd, >=, 0);
	CHECK_INT(write(fd, text, strlen(text)), ==, strlen(text));
	CHECK_INT(lseek(fd, 0, SEEK_SET), ==, 0);
	return fd;
}

static int open_maps(void *ctx, uint32_t pid)
{
	outside.n_maps++;
	outside.wall += outside.maps_take_ns;
	return outside.maps && pid != outside.gone_pid ? text_fd(outside.maps) : -ESRCH;
}

static int open_file(void *ctx, uint32_t pid, uint32_t alternate_pid, uint64_t start, uint64_t end,
		     const struct host_file_key *key, const char *path)
{
	outside.n_files++;
	outside.file_pid = pid;
	if (outside.file_later)
		return -EAGAIN;
	if (outside.file_error)
		return outside.file_error;
	return outside.no_file
		       ? -ENOENT
		       : open(outside.file ? outside.file : "/dev/null", O_RDONLY | O_CLOEXEC);
}

static int open_cgroup(void *ctx, uint32_t tid)
{
	outside.n_cgroups++;
	return outside.cgroup ? text_fd(outside.cgroup) : -ESRCH;
}

static int cgroup_path(void *ctx, uint64_t id, char *buf, size_t size)
{
	outside.n_cgroups++;
	if (!outside.cgroup_path)
		return -ENOENT;
	snprintf(buf, size, "%s", outside.cgroup_path);
	return 0;
}

static int process_info(void *ctx, uint32_t pid, uint64_t *ret_start_ns, uint32_t *ret_parent,
			char comm[17], char *exe, size_t n_exe, bool *ret_is_kernel)
{
	outside.n_infos++;
	if (outside.no_process || pid == outside.gone_pid)
		return -ESRCH;
	*ret_start_ns = outside.start_ns;
	*ret_parent = 1;
	snprintf(comm, 17, "%s", outside.comm ? outside.comm : "outside");
	snprintf(exe, n_exe, "%s", outside.exe ? outside.exe : "");
	*ret_is_kernel = outside.is_kernel;
	return 0;
}

static uint64_t now(void *ctx)
{
	return outside.now;
}

static uint64_t wall(void *ctx)
{
	return NSEC_PER_SEC + outside.wall;
}

static void free_user(void *ctx, struct host_file *file)
{
	outside.n_freed++;
}

static void free_process_user(void *ctx, struct host_process *process)
{
	outside.n_freed_processes++;
}

static struct host_source source = {NULL, open_maps,	open_file, open_cgroup, cgroup_path,
				    NULL, process_info, NULL,	   wall};
static struct host_limits limits = {.free_user = free_user, .free_process_user = free_process_user};

static struct host *new_host(void)
{
	struct host *h = NULL;

	memset(&outside, 0, sizeof(outside));
	CHECK_INT(host_new(&h, &source, &limits), ==, 0);
	return h;
}

static const struct host_file_key key_a = {8, 1, 100, 7}, key_b = {8, 1, 101, 7};

static const char *path_at(struct host *h, struct host_process *p, uint64_t pc, uint64_t t)
{
	struct host_mapping *m = host_mapping_find(h, p, pc, t);

	return !m ? "none" : m->kind == HOST_MAPPING_FILE ? m->file->path : "anonymous";
}

#define MAPS                                                                                       \
	"400000-402000 r-xp 00001000 08:01 100    /bin/a\n"                                        \
	"500000-501000 rw-p 00000000 08:01 100    /bin/a\n"                                        \
	"600000-601000 r-xp 00000000 00:00 0 \n"                                                   \
	"7ff000-800000 r-xp 00000000 00:00 0      [vdso]\n"

static void test_first_sight(void)
{
	_cleanup_(host_freep) struct host *h = new_host();
	struct host_process *p;

	outside.maps = MAPS;
	outside.start_ns = 5;
	outside.exe = "/bin/a";
	p = host_process_get(h, 10, 10, 1000);
	CHECK(p);
	CHECK_STR(p->comm, "outside");
	CHECK_STR(p->executable_path, "/bin/a");
	CHECK_INT(p->start_time_ns, ==, 5);
	CHECK_INT(p->parent_pid, ==, 1);
	CHECK_STR(path_at(h, p, 0x400000, 1000), "/bin/a");
	CHECK_INT(host_mapping_find(h, p, 0x401fff, 1000)->file_offset, ==, 0x1000);
	CHECK_STR(path_at(h, p, 0x600fff, 1000), "anonymous");
	CHECK_INT(host_mapping_find(h, p, 0x7ff000, 1000)->kind, ==, HOST_MAPPING_VDSO);
	CHECK_INT(outside.n_maps, ==, 1);
	CHECK_INT(outside.n_infos, ==, 2); /* once for the facts, once to see that maps are its */
	CHECK(host_process_get(h, 10, 10, 2000) == p);
	CHECK_INT(outside.n_infos, ==, 2);
	/* Nobody. */
	CHECK(!host_process_get(h, 0, 0, 2000));
	CHECK(!host_process_get(h, UINT32_MAX, UINT32_MAX, 2000));
}

static void test_miss_policy(void)
{
	_cleanup_(host_freep) struct host *h = new_host();
	struct host_process *p;
	uint64_t t = NSEC_PER_SEC, n;

	outside.maps = MAPS;
	p = host_process_get(h, 10, 10, t);
	CHECK_STR(path_at(h, p, 0x400000, t), "/bin/a");
	/* One read for many misses at once, then with growing delays. */
	for (int i = 0; i < 1000; i++)
		CHECK_STR(path_at(h, p, 0x900000, t + (uint64_t)i * NSEC_PER_MSEC), "none");
	n = outside.n_maps;
	CHECK_INT(n, >, 2);
	CHECK_INT(n, <, 7);
	for (int i = 0; i < 1000; i++)
		CHECK_STR(path_at(h, p, 0x900000, t + (uint64_t)(i + 1000) * NSEC_PER_MSEC),
			  "none");
	CHECK_INT(outside.n_maps, <=, n + 2);
	/* What appears is found at the next allowed read. */
	outside.maps = MAPS "900000-901000 r-xp 00000000 08:01 101 /lib/b\n";
	CHECK_STR(path_at(h, p, 0x900000, t + 200 * NSEC_PER_SEC), "/lib/b");
	/* That one was worth it: the next miss need not wait long. */
	outside.maps = MAPS;
	n = outside.n_maps;
	CHECK_STR(path_at(h, p, 0xa00000, t + 200 * NSEC_PER_SEC + 101 * NSEC_PER_MSEC), "none");
	CHECK_INT(outside.n_maps, ==, n + 1);
}

/* Reads that take long are few, however fast the records' clock goes; cheap ones are not. */
static void test_maps_have_a_share_of_the_time(void)
{
	_cleanup_(host_freep) struct host *h = new_host();
	uint32_t n, pid = 1;

	outside.maps = MAPS;
	for (; pid <= 200; pid++)
		CHECK_STR(path_at(h, host_process_get(h, pid, pid, NSEC_PER_SEC), 0x400000,
				  NSEC_PER_SEC),
			  "/bin/a");
	CHECK_INT(outside.n_maps, ==, 200);

	/* 80 ms each, most of it waiting; a second of wall clock in which a minute of records is
	 * read. */
	outside.maps_take_ns = 80 * NSEC_PER_MSEC;
	for (; pid <= 4000; pid++)
		(void)host_mapping_find(h, host_process_get(h, pid, pid, pid * NSEC_PER_SEC),
					0x400000, pid * NSEC_PER_SEC);
	n = outside.n_maps - 200;
	CHECK_INT(n, >, 5);
	CHECK_INT(n, <=, 20 * 2); /* saved up, and earned while waiting */
	CHECK_INT(host_stats(h)->deferred, >, 1000);

	/* Time passes by the wall clock: there is room again. */
	outside.wall += 60 * NSEC_PER_SEC;
	CHECK_STR(path_at(h, host_process_get(h, 3999, 3999, 4000 * NSEC_PER_SEC), 0x400000,
			  4000 * NSEC_PER_SEC),
		  "/bin/a");
}

/* A process with very many mappings, all told by records and looked at all the time. */
static void test_many_mappings_are_read_seldom(void)
{
	_cleanup_(host_freep) struct host *h = new_host();
	_cleanup_free_ char *text = malloc(5000 * 64);
	struct host_process *p;
	uint64_t t = NSEC_PER_SEC;
	size_t n = 0;

	CHECK(text);
	for (unsigned int i = 0; i < 5000; i++)
		n += (size_t)snprintf(text + n, 64, "%x-%x r-xp 00000000 00:00 0\n",
				      0x400000 + i * 0x2000, 0x401000 + i * 0x2000);
	outside.maps = text;
	p = host_process_get(h, 10, 10, t);
	CHECK_STR(path_at(h, p, 0x400000, t), "anonymous");
	for (unsigned int i = 0; i < 100; i++) {
		t += 200 * NSEC_PER_MSEC;
		outside.wall += 50 * NSEC_PER_MSEC;
		host_on_mmap(h, 10, 0x10000000 + i * 0x2000u, 0x1000, 0, &key_a, "/bin/a", t);
		CHECK_STR(path_at(h, p, 0x400000, t), "anonymous");
	}
	CHECK_INT(host_stats(h)->maps_reads, ==, 1);
	/* After 10 s of wall clock once more. */
	t += 600 * NSEC_PER_SEC;
	outside.wall += 6 * NSEC_PER_SEC;
	CHECK_STR(path_at(h, p, 0x400000, t), "anonymous");
	CHECK_STR(path_at(h, p, 0x999999, t + NSEC_PER_SEC), "none");
	CHECK_INT(host_stats(h)->maps_reads, ==, 2);
	/* A program of its own begins anew. */
	host_on_comm(h, 10, 10, "new", true, t + 2 * NSEC_PER_SEC);
	outside.maps = MAPS;
	CHECK_STR(path_at(h, p, 0x400000, t + 3 * NSEC_PER_SEC), "/bin/a");
}

static void test_fork_exec_exit(void)
{
	_cleanup_(host_freep) struct host *h = new_host();
	struct host_process *parent, *child;
	const struct host_mapping *shared;

	outside.maps = MAPS;
	parent = host_process_get(h, 10, 10, 1000);
	CHECK_STR(path_at(h, parent, 0x400000, 1000), "/bin/a");
	host_on_fork(h, 11, 11, 10, 10, 2000);
	outside.maps = NULL;
	outside.no_process = true;
	child = host_process_get(h, 11, 11, 2100);
	CHECK_INT(child->parent_pid, ==, 10);
	CHECK_STR(child->comm, "outside");
	CHECK_STR(path_at(h, child, 0x400000, 2100), "/bin/a");
	CHECK(child->mappings == parent->mappings); /* no copy */
	/* The child's own mapping is not the parent's. */
	host_on_mmap(h, 11, 0x900000, 0x1000, 0, &key_b, "/lib/b", 2200);
	CHECK_STR(path_at(h, child, 0x900000, 2300), "/lib/b");
	CHECK_STR(path_at(h, child, 0x400000, 2300), "/bin/a");
	CHECK_STR(path_at(h, parent, 0x900000, 2300), "none");
	shared = host_mapping_find(h, parent, 0x400000, 2300);
	CHECK_INT(shared->file->n_refs, ==, 2);
	/* exec: nothing of it holds. */
	host_on_comm(h, 11, 11, "prog", true, 3000);
	CHECK_INT(child->n_mappings, ==, 0);
	CHECK(child->mappings_known);
	CHECK_STR(child->comm, "prog");
	CHECK(!child->executable_path);
	CHECK_STR(path_at(h, child, 0x400000, 3050), "none");
	host_on_mmap(h, 11, 0x400000, 0x1000, 0, &key_b, "/lib/b (deleted)", 3100);
	host_on_mmap(h, 11, 0x700000, 0x1000, 0, &key_a, "/bin/a", 3100);
	CHECK_STR(path_at(h, child, 0x400000, 3200), "/lib/b");
	CHECK_STR(child->executable_path, "/lib/b");
	CHECK_STR(path_at(h, parent, 0x400000, 3200), "/bin/a");
	/* exit: still there for this window and the next collection, then gone. */
	child->user = h;
	host_on_exit(h, 11, 11, 4000);
	CHECK(child->exited);
	CHECK_STR(path_at(h, host_process_get(h, 11, 11, 3900), 0x400000, 3900), "/lib/b");
	CHECK_INT(host_stats(h)->processes, ==, 2);
	host_collect(h);
	CHECK_INT(host_stats(h)->processes, ==, 2);
	host_collect(h);
	CHECK_INT(host_stats(h)->processes, ==, 1);
	CHECK_INT(outside.n_freed_processes, ==, 1);
}

static void test_exec_of_an_unknown_process(void)
{
	_cleanup_(host_freep) struct host *h = new_host();
	struct host_process *p;

	outside.no_process = true;
	host_on_mmap(h, 20, 0x1000, 0x1000, 0, &key_a, "/ignored", 500);
	host_on_comm(h, 20, 20, "rename", false, 600);
	CHECK_INT(host_stats(h)->processes, ==, 0);
	host_on_comm(h, 20, 20, "prog", true, 1000);
	host_on_mmap(h, 20, 0x400000, 0x1000, 0, &key_a, "/bin/a", 1100);
	host_on_exit(h, 20, 20, 1300);
	p = host_process_get(h, 20, 20, 1200);
	CHECK_STR(p->comm, "prog");
	CHECK_STR(path_at(h, p, 0x400000, 1200), "/bin/a");
	CHECK_INT(outside.n_maps, ==, 0);
}

/* Forked by a process that was there before us, and gone before it could be asked. */
static void test_short_lived_child_of_an_unknown_parent(void)
{
	_cleanup_(host_freep) struct host *h = new_host();
	struct host_process *p;

	outside.maps = MAPS;
	outside.exe = "/bin/a";
	outside.gone_pid = 30;
	host_on_fork(h, 30, 30, 10, 10, 1000);
	p = host_process_get(h, 30, 30, 1100);
	CHECK_STR(p->comm, "outside");
	CHECK_STR(p->executable_path, "/bin/a");
	CHECK_STR(path_at(h, p, 0x400000, 1100), "/bin/a");
	/* What its own records say holds against what the parent could tell. */
	outside.gone_pid = 31;
	host_on_fork(h, 31, 31, 11, 11, 2000);
	host_on_comm(h, 31, 31, "prog", true, 2100);
	host_on_mmap(h, 31, 0x900000, 0x1000, 0, &key_b, "/bin/b", 2200);
	p = host_process_get(h, 31, 31, 2300);
	CHECK_STR(p->comm, "prog");
	CHECK_STR(path_at(h, p, 0x900000, 2300), "/bin/b");
	CHECK_STR(path_at(h, p, 0x400000, 2300), "none");
}

static void test_unmarked_exec(void)
{
	struct host *h;
	struct host_process *p;

	limits.exec_unmarked = true;
	h = new_host();
	limits.exec_unmarked = false;
	outside.maps = MAPS;
	p = host_process_get(h, 10, 10, 1000);
	CHECK_STR(path_at(h, p, 0x400000, 1000), "/bin/a");
	/* A thread's name means nothing; the main thread's may be an exec. */
	host_on_comm(h, 10, 12, "thread", false, 2000);
	CHECK_STR(path_at(h, p, 0x400000, NSEC_PER_SEC), "/bin/a");
	CHECK_INT(outside.n_maps, ==, 1);
	host_on_comm(h, 10, 10, "prog", false, NSEC_PER_SEC);
	outside.maps = "400000-402000 r-xp 00001000 08:01 101    /bin/b\n";
	CHECK_STR(path_at(h, p, 0x400000, 2 * NSEC_PER_SEC), "/bin/b");
	CHECK_INT(outside.n_maps, ==, 2);
	host_free(h);
}

static void test_stale_records_after_maps(void)
{
	struct host *h;
	struct host_process *p;

	source.now = now;
	h = new_host();
	source.now = NULL;
	outside.maps = MAPS;
	outside.now = 5000;
	p = host_process_get(h, 10, 10, 1000);
	CHECK_STR(path_at(h, p, 0x400000, 1000), "/bin/a");
	/* Made before the read, told after it. */
	host_on_mmap(h, 10, 0x400000, 0x1000, 0, &key_b, "/lib/old", 4000);
	CHECK_STR(path_at(h, p, 0x400000, 4100), "/bin/a");
	host_on_comm(h, 10, 10, "prog", true, 4500);
	CHECK_STR(path_at(h, p, 0x400000, 4600), "/bin/a");
	CHECK_STR(p->comm, "prog");
	host_on_mmap(h, 10, 0x400000, 0x1000, 0, &key_b, "/lib/new", 6000);
	CHECK_STR(path_at(h, p, 0x400000, 6100), "/lib/new");
	CHECK_STR(path_at(h, p, 0x401000, 6100), "/bin/a");
	CHECK_INT(host_mapping_find(h, p, 0x401000, 6100)->file_offset, ==, 0x2000);
	host_free(h);
}

/* A fork record and /proc tell the same start, which is then the same in Unix time. */
static void test_one_start(void)
{
	uint64_t time = clock_monotonic_ns(), unix_ns;
	struct host_process *p;
	struct host *h;

	source.now = now;
	h = new_host();
	source.now = NULL;
	outside.now = time;
	for (uint32_t pid = 20; pid < 40; pid++) {
		host_on_fork(h, pid, pid, 10, 10, time);
		p = host_process_peek(h, pid);
		CHECK(p);
		unix_ns = p->start_unix_ns;
		CHECK_INT(unix_ns, >, 0);
		outside.start_ns = p->start_time_ns;
		outside.n_infos = 0;
		p = host_process_get(h, pid, pid, time);
		CHECK_INT(outside.n_infos, >, 0);
		CHECK_INT(p->start_unix_ns, ==, unix_ns);
	}
	host_free(h);
}

static void test_pid_reuse(void)
{
	_cleanup_(host_freep) struct host *h = new_host();
	struct host_process *old, *new;

	outside.maps = MAPS;
	outside.start_ns = 100;
	old = host_process_get(h, 10, 10, 1000);
	CHECK_STR(path_at(h, old, 0x400000, 1000), "/bin/a");
	/* The number is given out again. */
	host_on_fork(h, 10, 10, 1, 1, 2000);
	outside.start_ns = 2000;
	outside.maps = "400000-402000 r-xp 00001000 08:01 101    /bin/b\n";
	new = host_process_get(h, 10, 10, 2100);
	CHECK(new != old);
	CHECK(old->exited);
	CHECK_STR(path_at(h, new, 0x400000, 2100), "/bin/b");
	CHECK_STR(old->mappings[0].file->path, "/bin/a");

	/* And again, with exit and fork lost. */
	outside.start_ns = 3000;
	outside.maps = "400000-402000 r-xp 00001000 08:01 102    /bin/c\n";
	CHECK(host_process_get(h, 10, 10, 3100) == new);
	host_on_lost(h);
	old = new;
	new = host_process_get(h, 10, 10, 3200);
	CHECK(new != old);
	CHECK_STR(path_at(h, new, 0x400000, 3200), "/bin/c");
	CHECK_INT(host_stats(h)->reused_pids, ==, 1);
	host_collect(h);
	host_collect(h);
	CHECK_INT(host_stats(h)->processes, ==, 1);
}

/* The process behind a sample is gone when we look, and its number taken. */
static void test_pid_reused_before_first_sight(void)
{
	struct host *h;
	struct host_process *p;
	uint64_t offset = clock_get_ns(CLOCK_BOOTTIME) - clock_monotonic_ns();

	source.now = now;
	h = new_host();
	source.now = NULL;
	outside.maps = MAPS;
	outside.start_ns = offset + 20 * NSEC_PER_SEC;
	outside.now = 21 * NSEC_PER_SEC;
	p = host_process_get(h, 10, 10, 19 * NSEC_PER_SEC);
	CHECK_STR(p->comm, "");
	CHECK_STR(path_at(h, p, 0x400000, 19 * NSEC_PER_SEC), "none");
	CHECK_INT(outside.n_maps, ==, 0);
	CHECK_INT(host_stats(h)->reused_pids, ==, 1);
	/* A sample of the later one. */
	p = host_process_get(h, 10, 10, 20 * NSEC_PER_SEC + 1);
	CHECK_STR(p->comm, "outside");
	CHECK_STR(path_at(h, p, 0x400000, 20 * NSEC_PER_SEC + 1), "/bin/a");
	host_free(h);
}

static void test_lost_is_lazy(void)
{
	_cleanup_(host_freep) struct host *h = new_host();
	struct host_process *p;

	outside.maps = MAPS;
	p = host_process_get(h, 10, 10, NSEC_PER_SEC);
	CHECK_STR(path_at(h, p, 0x400000, NSEC_PER_SEC), "/bin/a");
	outside.maps = "400000-402000 r-xp 00001000 08:01 101    /bin/b\n";
	outside.comm = "b";
	outside.exe = "/bin/b";
	host_on_lost(h);
	CHECK_INT(outside.n_maps, ==, 1);
	CHECK_STR(p->comm, "outside");
	p = host_process_get(h, 10, 10, NSEC_PER_SEC + 1);
	CHECK_STR(p->comm, "b");
	CHECK_STR(p->executable_path, "/bin/b");
	CHECK_STR(path_at(h, p, 0x400000, NSEC_PER_SEC + 1), "/bin/b");
	CHECK_INT(outside.n_maps, ==, 2);
	/* It exits unseen: the collection asks after the doubtful. */
	host_on_lost(h);
	outside.no_process = true;
	for (int i = 0; i < 3; i++)
		host_collect(h);
	CHECK_INT(host_stats(h)->processes, ==, 0);
}

static void test_main_thread_leaves_first(void)
{
	_cleanup_(host_freep) struct host *h = new_host();
	struct host_process *p;

	outside.maps = MAPS;
	p = host_process_get(h, 10, 10, 1000);
	host_on_exit(h, 10, 10, 2000);
	CHECK(p->exited);
	CHECK(host_process_get(h, 10, 11, 3000) == p);
	CHECK(!p->exited);
	host_collect(h);
	host_collect(h);
	CHECK(host_process_get(h, 10, 11, 4000) == p);
	host_on_exit(h, 10, 11, 5000);
	CHECK(p->exited);
	host_collect(h);
	host_collect(h);
	CHECK_INT(host_stats(h)->processes, ==, 0);
}

/* What it does after its exit record is the end of it, not another life. */
static void test_samples_after_exit(void)
{
	_cleanup_(host_freep) struct host *h = new_host();
	struct host_process *p;

	outside.maps = MAPS;
	p = host_process_get(h, 10, 10, 1000);
	CHECK_STR(path_at(h, p, 0x400000, 1000), "/bin/a");
	host_on_exit(h, 10, 10, 2000);
	/* However long it lasts, it is found with all that was known. */
	for (uint64_t t = 2001; t < 2005; t++) {
		CHECK(host_process_get(h, 10, 10, t) == p);
		CHECK(p->exited);
		CHECK_STR(path_at(h, p, 0x400000, t), "/bin/a");
		host_collect(h);
	}
	host_collect(h);
	CHECK_INT(host_stats(h)->processes, ==, 0);

	/* All threads of a process, the main one first. */
	p = host_process_get(h, 20, 20, 3000);
	(void)host_thread_name(h, p, 21);
	host_on_exit(h, 20, 20, 3100);
	CHECK(host_process_get(h, 20, 21, 3200) == p);
	CHECK(!p->exited);
	host_on_exit(h, 20, 21, 3300);
	CHECK(host_process_get(h, 20, 21, 3400) == p);
	CHECK(p->exited);
	host_collect(h);
	host_collect(h);
	CHECK_INT(host_stats(h)->processes, ==, 0);

	/* A thread that nobody knew when it exited seems to live, until it is asked about. */
	p = host_process_get(h, 30, 30, 4000);
	host_on_exit(h, 30, 30, 4100);
	host_on_exit(h, 30, 31, 4200);
	CHECK(!host_process_get(h, 30, 31, 4300)->exited);
	host_collect(h);
	host_collect(h);
	CHECK_INT(host_stats(h)->processes, ==, 1);
	outside.no_process = true;
	for (int i = 0; i < 3; i++)
		host_collect(h);
	CHECK_INT(host_stats(h)->processes, ==, 0);
}

/* Of a capture of tasks: what they fork and what executes a program, as long as it lives. */
static void test_targets(void)
{
	_cleanup_(host_freep) struct host *h = new_host();

	outside.maps = MAPS;
	CHECK(!host_is_target(h, 10, 10, 1000));
	(void)host_process_get(h, 10, 10, 1000);
	CHECK(!host_is_target(h, 10, 10, 1000));
	host_add_target(h, 10);
	host_add_target(h, 20); /* before anything is known of it */
	CHECK(host_is_target(h, 10, 10, 1000) && host_is_target(h, 10, 11, 1000));
	CHECK(host_is_target(h, 20, 20, 1000));
	host_on_fork(h, 30, 30, 10, 10, 2000);
	CHECK(host_is_target(h, 30, 30, 2000) && !host_is_target(h, 31, 31, 2000));
	host_on_comm(h, 40, 40, "renamed", false, 2000);
	CHECK(!host_is_target(h, 40, 40, 2000));
	host_on_comm(h, 40, 40, "prog", true, 2000);
	CHECK(host_is_target(h, 40, 40, 2000));

	/* It frees its memory behind its exit; later it is another one with its number. */
	host_on_exit(h, 30, 30, 3000);
	CHECK(host_is_target(h, 30, 30, 3000 + NSEC_PER_SEC / 2));
	CHECK(!host_is_target(h, 30, 30, 3000 + 2 * NSEC_PER_SEC));
	/* Its other threads go on without the main one, however long. */
	host_on_exit(h, 10, 10, 3000);
	CHECK(host_is_target(h, 10, 11, 3000 + 2 * NSEC_PER_SEC));
	host_collect(h);
	host_collect(h);
	CHECK(!host_is_target(h, 30, 30, 4000));
}

/* The main thread's exit is recorded, and its number goes on as the thread that called exec. */
static void test_exec_by_another_thread(void)
{
	_cleanup_(host_freep) struct host *h = new_host();
	struct host_process *p;

	outside.maps = MAPS;
	p = host_process_get(h, 10, 10, 1000);
	host_on_exit(h, 10, 10, 2000);
	CHECK(host_process_get(h, 10, 10, 2100) == p);
	host_on_comm(h, 10, 10, "prog", true, 2200);
	CHECK(!p->exited);
	for (int i = 0; i < 3; i++)
		host_collect(h);
	CHECK(host_process_peek(h, 10) == p);
	host_on_exit(h, 10, 10, 3000);
	CHECK(p->exited);
	host_collect(h);
	host_collect(h);
	CHECK_INT(host_stats(h)->processes, ==, 0);
}

static void test_threads(void)
{
	_cleanup_(host_freep) struct host *h = new_host();
	struct host_process *p;

	outside.comm = "main";
	p = host_process_get(h, 10, 10, 1000);
	CHECK_STR(host_thread_name(h, p, 10), "main");
	host_on_fork(h, 10, 11, 10, 10, 1100);
	CHECK_STR(host_thread_name(h, p, 11), "main");
	host_on_comm(h, 10, 11, "worker\n\xff", false, 1200);
	CHECK_STR(host_thread_name(h, p, 11), "worker??");
	CHECK_STR(p->comm, "main");
	/* Made by the worker: has its name. */
	host_on_fork(h, 10, 12, 10, 11, 1300);
	CHECK_STR(host_thread_name(h, p, 12), "worker??");
	/* From before our time: asked for once. */
	outside.comm = "old one";
	outside.n_infos = 0;
	CHECK_STR(host_thread_name(h, p, 13), "old one");
	CHECK_STR(host_thread_name(h, p, 13), "old one");
	CHECK_INT(outside.n_infos, ==, 1);
	CHECK_INT(host_stats(h)->threads, ==, 3);
	host_on_exit(h, 10, 11, 1400);
	CHECK_STR(host_thread_name(h, p, 11), "worker??");
	host_collect(h);
	host_collect(h);
	CHECK_INT(host_stats(h)->threads, ==, 2);
	/* The number of a thread whose exit was lost, in another process. */
	outside.comm = "other";
	p = host_process_get(h, 20, 20, 1500);
	CHECK_STR(host_thread_name(h, p, 12), "other");
}

static void test_kernel_threads(void)
{
	_cleanup_(host_freep) struct host *h = new_host();
	struct host_process *p;

	outside.is_kernel = true;
	outside.comm = "kthreadd";
	p = host_process_get(h, 2, 2, 1000);
	CHECK(p->is_kernel);
	CHECK(!host_mapping_find(h, p, 0x1000, 1000));
	CHECK_INT(outside.n_maps, ==, 0);
}

static void test_files(void)
{
	_cleanup_(host_freep) struct host *h = new_host();
	static const struct host_file_key next = {8, 1, 100, 8}, bare = {8, 1, 100, 0};
	struct host_file *a = file_get(h, &bare, "/bin/a"), *b, *c;
	uint64_t uid = a->uid;

	/* maps do not know the generation: the path decides, and the generation is learnt. */
	CHECK(file_get(h, &key_a, "/bin/a") == a);
	CHECK_INT(a->key.generation, ==, 7);
	CHECK(file_get(h, &key_a, "/bin/link") == a);
	CHECK(file_get(h, &bare, "/bin/a") == a);
	b = file_get(h, &bare, "/bin/other");
	CHECK(b != a);
	/* The inode was used again. */
	c = file_get(h, &next, "/bin/a");
	CHECK(c != a && c != b);
	CHECK(file_get(h, &bare, "/bin/a") == c);
	/* Without an inode nobody shares. */
	CHECK(file_get(h, NULL, "/bin/a") != file_get(h, NULL, "/bin/a"));
	CHECK_INT(a->n_refs, ==, 4);
	CHECK_INT(uid, ==, a->uid);
	CHECK_INT(host_stats(h)->files, ==, 5);
}

static void test_plain_mmap_records(void)
{
	_cleanup_(host_freep) struct host *h = new_host();
	struct host_process *p, *q;

	/* 3.10: no inode in the record. maps has it, while the process lives. */
	host_on_comm(h, 10, 10, "prog", true, 1000);
	host_on_mmap(h, 10, 0x400000, 0x2000, 0x1000, NULL, "/bin/a", 1100);
	p = host_process_get(h, 10, 10, 1200);
	outside.maps = MAPS;
	CHECK_STR(path_at(h, p, 0x400000, 1200), "/bin/a");
	CHECK_INT(host_mapping_find(h, p, 0x400000, 1200)->file->key.inode, ==, 100);
	outside.maps = NULL;
	host_on_comm(h, 11, 11, "prog", true, 2000);
	host_on_mmap(h, 11, 0x400000, 0x2000, 0x1000, NULL, "/bin/a", 2100);
	q = host_process_get(h, 11, 11, 2200);
	CHECK_STR(path_at(h, q, 0x400000, 2200), "/bin/a");
	CHECK(q->mappings[0].file != p->mappings[0].file);
}

static void test_file_opening(void)
{
	_cleanup_(host_freep) struct host *h = NULL;
	struct host_process *p, *q;
	struct host_mapping *m;

	limits.max_open_files = 2;
	h = new_host();
	limits.max_open_files = 0;
	p = host_process_get(h, 10, 10, 1000);
	q = host_process_get(h, 11, 11, 1000);
	host_on_mmap(h, 10, 0x1000, 0x1000, 0, &key_a, "/bin/a", 1000);
	host_on_mmap(h, 11, 0x1000, 0x1000, 0, &key_a, "/bin/a", 1000);
	m = &p->mappings[0];
	/* Not through this process, but through another one. */
	outside.no_file = true;
	CHECK_INT(host_file_open(h, p, m), ==, -1);
	CHECK_INT(host_file_open(h, p, m), ==, -1);
	CHECK_INT(outside.n_files, ==, 1);
	/* Unless it is said that it may be otherwise now. */
	host_files_retry(h);
	CHECK_INT(host_file_open(h, p, m), ==, -1);
	CHECK_INT(outside.n_files, ==, 2);
	outside.n_files = 1;
	outside.no_file = false;
	CHECK_INT(host_file_open(h, q, &q->mappings[0]), >=, 0);
	CHECK_INT(outside.file_pid, ==, 11);
	CHECK_INT(host_file_open(h, p, m), >=, 0);
	CHECK_INT(outside.n_files, ==, 2);
	/* Two descriptors at most: the least recently used goes. */
	for (uint32_t i = 0; i < 10; i++) {
		struct host_file_key key = {8, 2, 1000 + i, 1};

		host_on_mmap(h, 10, 0x10000 + i * 0x1000u, 0x1000, 0, &key, "/lib/x", 2000);
		CHECK_INT(host_file_open(h, p, &p->mappings[1 + i]), >=, 0);
		CHECK_INT(host_file_open(h, p, &p->mappings[0]), >=, 0);
		CHECK_INT(host_stats(h)->open_files, <=, 2);
	}
	CHECK_INT(outside.n_files, ==, 12); /* the file in use was never closed */
	CHECK_INT(p->mappings[1].file->fd, ==, -1);
	CHECK_INT(host_file_open(h, p, &p->mappings[1]), >=, 0);
}

static void test_file_put_off(void)
{
	_cleanup_(host_freep) struct host *h = new_host();
	struct host_process *p;

	outside.maps = MAPS;
	p = host_process_get(h, 10, 10, 1000);
	outside.file_later = true;
	for (int i = 0; i < 20; i++)
		CHECK_INT(host_file_open(h, p, host_mapping_find(h, p, 0x400000, 1000)), ==, -1);
	CHECK_INT(host_stats(h)->file_open_failed, ==, 0);
	outside.file_later = false;
	CHECK_INT(host_file_open(h, p, host_mapping_find(h, p, 0x400000, 1000)), >=, 0);
}

/* What is behind the most that is read of a table is missing, and that is counted. */
static void test_maps_without_an_end(void)
{
	static const char line[] = "00001000-00002000 rw-p 00000000 00:00 0\n";
	size_t n = sizeof(line) - 1, n_lines = (33u << 20) / n;
	_cleanup_(host_freep) struct host *h = new_host();
	char *text = malloc(n * n_lines + 1);
	struct host_process *p;

	CHECK(text);
	for (size_t i = 0; i < n_lines; i++)
		memcpy(text + i * n, line, n + 1);
	outside.maps = MAPS;
	p = host_process_get(h, 10, 10, 1000);
	CHECK(host_mapping_find(h, p, 0x400000, 1000));
	CHECK_INT(host_stats(h)->refused_mappings, ==, 0);
	outside.maps = text;
	p = host_process_get(h, 11, 11, 1000);
	CHECK(!host_mapping_find(h, p, 0x400000, 1000));
	CHECK_INT(host_stats(h)->refused_mappings, ==, 1);
	free(text);
	outside.maps = NULL;
}

/* A filesystem that does not answer says nothing of a file that is on another. It is tried again,
 * ever more rarely, as long as it is mapped. */
static void test_file_of_a_stuck_opener(void)
{
	static const int errors[] = {-ETIMEDOUT, -EBUSY};
	_cleanup_(host_freep) struct host *h = new_host();
	uint64_t now = 1000;

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		const struct host_file_key key = {8, 3, 2000 + i, 1};
		uint32_t before = outside.n_files, pid = 20 + (uint32_t)i;
		struct host_process *p = host_process_get(h, pid, pid, now);

		host_on_mmap(h, pid, 0x10000, 0x1000, 0, &key, "/lib/x", now);
		outside.file_error = errors[i];
		/* Ten minutes, a sample each second. */
		for (int second = 0; second < 600; second++) {
			now += NSEC_PER_SEC;
			host_see_time(h, now);
			CHECK_INT(host_file_open(h, p, &p->mappings[0]), ==, -1);
		}
		CHECK_INT(outside.n_files - before, >=, 8);
		CHECK_INT(outside.n_files - before, <=, 20);
		outside.file_error = 0;
		for (int second = 0; second < 70; second++) {
			now += NSEC_PER_SEC;
			host_see_time(h, now);
			if (host_file_open(h, p, &p->mappings[0]) >= 0)
				break;
		}
		CHECK_INT(p->mappings[0].file->fd, >=, 0);
	}
	CHECK_INT(host_stats(h)->file_open_failed, ==, 0);
}

static void test_files_are_forgotten(void)
{
	_cleanup_(host_freep) struct host *h = new_host();
	struct host_process *p = host_process_get(h, 10, 10, 1000);

	host_on_mmap(h, 10, 0x1000, 0x1000, 0, &key_a, "/bin/a", 1000);
	p->mappings[0].file->user = h;
	CHECK_INT(host_file_open(h, p, &p->mappings[0]), >=, 0);
	host_on_exit(h, 10, 10, 2000);
	for (int i = 0; i < 4; i++)
		host_collect(h);
	/* The next process of the program finds it still. */
	CHECK_INT(host_stats(h)->processes, ==, 0);
	CHECK_INT(host_stats(h)->files, ==, 1);
	CHECK_INT(host_stats(h)->open_files, ==, 1);
	for (int i = 0; i < 20; i++)
		host_collect(h);
	CHECK_INT(host_stats(h)->files, ==, 0);
	CHECK_INT(host_stats(h)->open_files, ==, 0);
	CHECK_INT(outside.n_freed, ==, 1);
}

static void write_file(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	CHECK(f && fputs(text, f) >= 0);
	CHECK_INT(fclose(f), ==, 0);
}

/* Programs are copied over others: the inode stays, and is another file for who runs it then. */
static void test_a_file_is_rewritten(void)
{
	_cleanup_(host_freep) struct host *h = new_host();
	struct host_process *p = host_process_get(h, 10, 10, 1000), *q;
	char name[] = "/tmp/test-host.XXXXXX";
	struct host_file *old;
	int fd = mkstemp(name);

	CHECK_INT(fd, >=, 0);
	write_file(name, "one");
	outside.file = name;
	host_on_mmap(h, 10, 0x1000, 0x1000, 0, &key_a, "/bin/a", 1000);
	old = p->mappings[0].file;
	CHECK_INT(host_file_open(h, p, &p->mappings[0]), >=, 0);
	CHECK(file_get(h, &key_a, "/bin/a") == old);
	write_file(name, "another");
	host_begin(h);
	q = host_process_get(h, 11, 11, 2000);
	host_on_mmap(h, 11, 0x1000, 0x1000, 0, &key_a, "/bin/a", 2000);
	CHECK(host_mapping_find(h, q, 0x1000, 2000)->file != old);
	CHECK(file_get(h, &key_a, "/bin/a") == q->mappings[0].file);
	CHECK(host_process_get(h, 10, 10, 2000)->mappings[0].file == old);
	outside.file = NULL;
	(void)close(fd);
	(void)unlink(name);
}

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void test_cgroups(void)
{
	_cleanup_(host_freep) struct host *h = new_host();
	struct host_process *p = host_process_get(h, 10, 10, 1000);
	const struct host_cgroup *cg;

	/* By the id of the sample, asked for once. */
	outside.cgroup_path = "/docker/" ID;
	cg = host_cgroup_get(h, p, 10, 55);
	CHECK_STR(cg->container_id, ID);
	CHECK_INT(cg->id, ==, 55);
	CHECK(p->cgroup == cg);
	CHECK(host_cgroup_get(h, p, 10, 55) == cg);
	CHECK_INT(outside.n_cgroups, ==, 1);
	/* Told by a record. */
	host_on_cgroup(h, 56, "/system.slice/a.service");
	CHECK_STR(host_cgroup_get(h, p, 10, 56)->unit, "a.service");
	CHECK_INT(outside.n_cgroups, ==, 1);
	/* The id was given to another cgroup. */
	host_on_cgroup(h, 56, "/system.slice/b.service");
	CHECK_STR(host_cgroup_get(h, p, 10, 56)->unit, "b.service");
	/* An id that says nothing: the file. */
	outside.cgroup_path = "/";
	outside.cgroup = "3:cpu:/\n1:name=systemd:/system.slice/c.service\n";
	CHECK_STR(host_cgroup_get(h, p, 10, 1)->unit, "c.service");
	CHECK_STR(host_cgroup_get(h, p, 10, 1)->unit, "c.service");
	CHECK_INT(outside.n_cgroups, ==, 3);
	/* And back: what the sample says counts. */
	CHECK_STR(host_cgroup_get(h, p, 10, 55)->container_id, ID);
	/* No id. */
	CHECK_STR(host_cgroup_get(h, p, 10, 0)->unit, "c.service");
	/* An id nobody knows is not asked for at each sample. */
	outside.cgroup_path = NULL;
	outside.n_cgroups = 0;
	for (int i = 0; i < 100; i++)
		CHECK_STR(host_cgroup_get(h, p, 10, 999)->unit, "c.service");
	CHECK_INT(outside.n_cgroups, ==, 1);
}

/* More containers than there is room for, a few hundred in each window: those that nobody runs in
 * any more make room. */
static void test_many_cgroups(void)
{
	_cleanup_(host_freep) struct host *h = new_host();
	uint64_t id = 100, most = 0;
	char path[96];

	for (int window = 0; window < 80; window++) {
		for (int i = 0; i < 300; i++, id++) {
			(void)snprintf(path, sizeof(path), "/docker/%064llx",
				       (unsigned long long)id);
			host_on_cgroup(h, id, path);
		}
		host_collect(h);
		if (host_stats(h)->cgroups > most)
			most = host_stats(h)->cgroups;
	}
	CHECK_INT(id, >, 16384);
	CHECK_INT(most, <, 16384 / 2);
	CHECK_INT(host_stats(h)->refused_cgroups, ==, 0);
}

static void test_cgroup_v2_alone(void)
{
	_cleanup_(host_freep) struct host *h = new_host();

	/* Once the file shows that there is no other hierarchy, ids are enough. */
	outside.cgroup = "0::/user.slice\n";
	host_on_cgroup(h, 77, "/user.slice");
	for (uint32_t pid = 10; pid < 100; pid++) {
		struct host_process *p = host_process_get(h, pid, pid, 1000);

		CHECK_STR(host_cgroup_get(h, p, pid, 77)->path, "/user.slice");
	}
	CHECK_INT(outside.n_cgroups, ==, 1);
}

static void test_cgroup_of_a_child(void)
{
	_cleanup_(host_freep) struct host *h = new_host();
	struct host_process *p = host_process_get(h, 10, 10, 1000);

	outside.cgroup = "0::/system.slice/shim.service\n";
	CHECK_STR(host_cgroup_get(h, p, 10, 0)->unit, "shim.service");
	host_on_fork(h, 11, 11, 10, 10, 2000);
	p = host_process_get(h, 11, 11, 2000);
	outside.cgroup = NULL;
	outside.n_cgroups = 0;
	CHECK_STR(host_cgroup_get(h, p, 11, 0)->unit, "shim.service");
	CHECK_INT(outside.n_cgroups, ==, 0);
	/* exec comes after the move to a cgroup of its own. */
	host_on_comm(h, 11, 11, "app", true, 3000);
	outside.cgroup = "0::/docker/" ID "\n";
	CHECK_STR(host_cgroup_get(h, p, 11, 0)->container_id, ID);
}

/* A zombie's file, as Linux 6.18 has it: "/" in the hierarchies of version 1. */
static void test_cgroup_of_a_zombie(void)
{
	_cleanup_(host_freep) struct host *h = new_host();
	struct host_process *p = host_process_get(h, 10, 10, 1000);

	outside.exe = "/bin/a";
	outside.cgroup = "9:name=systemd:/docker/" ID "\n8:pids:/docker/" ID "\n0::/\n";
	CHECK_STR(host_cgroup_get(h, p, 10, 0)->container_id, ID);
	for (int i = 0; i < 11; i++)
		host_collect(h);
	outside.cgroup = "9:name=systemd:/\n8:pids:/\n0::/\n";
	outside.exe = NULL;
	CHECK_STR(host_cgroup_get(h, p, 10, 0)->container_id, ID);
	/* One that lives has left the container. */
	for (int i = 0; i < 11; i++)
		host_collect(h);
	outside.exe = "/bin/a";
	CHECK_STR(host_cgroup_get(h, p, 10, 0)->container_id, "");
	CHECK_INT(host_stats(h)->cgroup_reads, ==, 3);
}

static size_t count_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	CHECK(d);
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n;
}

/* A storm of forks in one window: few of its processes are sampled, some after their exit. */
static void test_storm_of_forks(void)
{
	_cleanup_(host_freep) struct host *h = NULL;
	struct host_process *sampled[200], *late;
	uint64_t t = NSEC_PER_SEC;

	limits.max_processes = 1000;
	h = new_host();
	limits.max_processes = 0;
	CHECK(host_process_get(h, 2, 2, t));
	host_on_comm(h, 2, 2, "make", true, t);
	outside.no_process = true;
	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t pid = 100 + i;

		t += 4 * NSEC_PER_MSEC;
		host_on_fork(h, pid, pid, 2, 2, t);
		if (i % 100 == 0) {
			sampled[i / 100] = host_process_get(h, pid, pid, t);
			CHECK(sampled[i / 100]);
		}
		host_on_exit(h, pid, pid, t);
		if (i % 100 == 90) {
			late = host_process_get(h, pid - 80, pid - 80, t);
			CHECK(late && late->exited);
			CHECK_STR(late->comm, "make");
		}
	}
	CHECK_INT(host_stats(h)->refused_processes, ==, 0);
	/* What was sampled is the window's, and goes with it. */
	for (uint32_t i = 0; i < 200; i++)
		CHECK(host_process_peek(h, 100 + i * 100) == sampled[i]);
	host_collect(h);
	host_collect(h);
	CHECK_INT(host_stats(h)->processes, ==, 1);
	outside.no_process = false;
}

/* 100 000 processes come, map, are sampled and go. */
static void test_churn_is_bounded(void)
{
	struct host *h;
	size_t before = count_descriptors();
	uint64_t most_processes = 0, most_files = 0, most_threads = 0, t = NSEC_PER_SEC;

	limits.max_processes = 5000;
	limits.max_files = 600;
	limits.max_threads = 2000;
	limits.max_open_files = 50;
	h = new_host();
	limits.max_processes = limits.max_files = limits.max_threads = limits.max_open_files = 0;
	for (uint32_t i = 0; i < 100000; i++) {
		/* Numbers come again every 32 768, some exits are never told. */
		uint32_t pid = 2 + i % 32768;
		struct host_file_key key = {8, 1, 1 + i % 3000, 1};
		struct host_process *p;

		t += 100 * NSEC_PER_USEC;
		host_on_fork(h, pid, pid, 1, 1, t);
		host_on_comm(h, pid, pid, "prog", true, t);
		host_on_mmap(h, pid, 0x400000, 0x1000, 0, &key, "/bin/prog", t);
		host_on_mmap(h, pid, 0x500000, 0x1000, 0, &key_a, "/lib/libc", t);
		host_on_fork(h, pid, pid + 100000, pid, pid, t);
		p = host_process_get(h, pid, pid, t);
		if (p) {
			struct host_mapping *m = host_mapping_find(h, p, 0x400000, t);

			if (m)
				(void)host_file_open(h, p, m);
			(void)host_thread_name(h, p, pid + 100000);
			(void)host_cgroup_get(h, p, pid, i % 20000);
		}
		if (i % 7)
			host_on_exit(h, pid, pid + 100000, t);
		if (i % 5)
			host_on_exit(h, pid, pid, t);
		if (i % 1000 == 0) {
			outside.no_process = true;
			host_on_lost(h);
			host_collect(h);
			outside.no_process = false;
		}
		most_processes = host_stats(h)->processes > most_processes
					 ? host_stats(h)->processes
					 : most_processes;
		most_files = host_stats(h)->files > most_files ? host_stats(h)->files : most_files;
		most_threads = host_stats(h)->threads > most_threads ? host_stats(h)->threads
								     : most_threads;
		if (i % 997 == 0)
			CHECK_INT(count_descriptors(), <=, before + 60);
	}
	CHECK_INT(most_processes, <=, 5000);
	CHECK_INT(most_files, <=, 600);
	CHECK_INT(most_threads, <=, 2000);
	CHECK_INT(host_stats(h)->refused_processes, >, 0);
	CHECK_INT(host_stats(h)->refused_files, >, 0);
	/* When it is over, the tables empty themselves. */
	outside.no_process = true;
	for (int i = 0; i < 200; i++) {
		host_on_lost(h);
		host_collect(h);
	}
	CHECK_INT(host_stats(h)->processes, ==, 0);
	CHECK_INT(host_stats(h)->files, ==, 0);
	CHECK_INT(host_stats(h)->open_files, ==, 0);
	host_free(h);
	CHECK_INT(count_descriptors(), ==, before);
}

static void test_many_mappings(void)
{
	_cleanup_(host_freep) struct host *h = NULL;
	struct host_process *p;

	limits.max_mappings = 100;
	h = new_host();
	limits.max_mappings = 0;
	outside.maps = "";
	p = host_process_get(h, 10, 10, 1000);
	for (uint32_t i = 0; i < 200; i++)
		host_on_mmap(h, 10, 0x10000 + i * 0x2000u, 0x1000, 0, &key_a, "/bin/a", 1000);
	CHECK_INT(p->n_mappings, ==, 100);
	CHECK_INT(host_stats(h)->refused_mappings, ==, 100);
	CHECK_INT(p->mappings[0].file->n_refs, ==, 100);
}

int main(void)
{
	RUN(test_first_sight);
	RUN(test_miss_policy);
	RUN(test_maps_have_a_share_of_the_time);
	RUN(test_many_mappings_are_read_seldom);
	RUN(test_fork_exec_exit);
	RUN(test_exec_of_an_unknown_process);
	RUN(test_short_lived_child_of_an_unknown_parent);
	RUN(test_unmarked_exec);
	RUN(test_stale_records_after_maps);
	RUN(test_one_start);
	RUN(test_pid_reuse);
	RUN(test_pid_reused_before_first_sight);
	RUN(test_lost_is_lazy);
	RUN(test_main_thread_leaves_first);
	RUN(test_samples_after_exit);
	RUN(test_targets);
	RUN(test_exec_by_another_thread);
	RUN(test_threads);
	RUN(test_kernel_threads);
	RUN(test_files);
	RUN(test_plain_mmap_records);
	RUN(test_file_opening);
	RUN(test_maps_without_an_end);
	RUN(test_file_put_off);
	RUN(test_file_of_a_stuck_opener);
	RUN(test_files_are_forgotten);
	RUN(test_a_file_is_rewritten);
	RUN(test_cgroups);
	RUN(test_many_cgroups);
	RUN(test_cgroup_v2_alone);
	RUN(test_cgroup_of_a_child);
	RUN(test_cgroup_of_a_zombie);
	RUN(test_storm_of_forks);
	RUN(test_churn_is_bounded);
	RUN(test_many_mappings);
	return 0;
}
