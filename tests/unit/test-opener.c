/* SPDX-License-Identifier: Apache-2.0 */
/* The privileged side: what it accepts as a message, and what it refuses to open. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "src/opener/internal.h"
#include "src/opener/state-dir.h"
#include "src/process/message.h"
#include "src/process/status-page.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"
#include "util/fdmsg.h"

static char dir[] = "/tmp/perfwalk-opener.XXXXXX";

static void path_in(char *buf, size_t size, const char *name)
{
	(void)snprintf(buf, size, "%s/%s", dir, name);
}

static void test_messages_of_the_wrong_form(void)
{
	struct message m = {.type = MESSAGE_WINDOW_DONE}, got;
	int pair[2], fds[2];

	CHECK_INT(fdmsg_pair(pair, 1), ==, 0);
	m.item.id = 7;
	CHECK_INT(message_send(pair[0], &m, NULL, 0), ==, 0);
	CHECK_INT(message_recv(pair[1], &got, fds, 0), ==, 1);
	CHECK_INT(got.item.id, ==, 7);
	CHECK_INT(fds[0], ==, -1);
	/* A descriptor where none belongs, none where one must be, a wrong size, an unknown type.
	 */
	CHECK_INT(message_send(pair[0], &m, &pair[0], 1), ==, 0);
	CHECK_INT(message_recv(pair[1], &got, fds, 0), ==, -EBADMSG);
	m.type = MESSAGE_WINDOW;
	CHECK_INT(message_send(pair[0], &m, NULL, 0), ==, 0);
	CHECK_INT(message_recv(pair[1], &got, fds, 0), ==, -EBADMSG);
	CHECK_INT(fdmsg_send(pair[0], &m, 8, NULL, 0, 0), ==, 0);
	CHECK_INT(message_recv(pair[1], &got, fds, 0), ==, -EBADMSG);
	CHECK_INT(fdmsg_send(pair[0], &m, 3, NULL, 0, 0), ==, 0);
	CHECK_INT(message_recv(pair[1], &got, fds, 0), ==, -EBADMSG);
	m.type = 4711;
	CHECK_INT(fdmsg_send(pair[0], &m, sizeof(m), NULL, 0, 0), ==, 0);
	CHECK_INT(message_recv(pair[1], &got, fds, 0), ==, -EBADMSG);
	close(pair[0]);
	CHECK_INT(message_recv(pair[1], &got, fds, 0), ==, 0);
	close(pair[1]);
}

/* It looks like the end of the connection, and nobody else closes what it brings. */
static void test_an_empty_message_with_descriptors(void)
{
	int pair[2], fds[2], before, after;
	struct message got;

	CHECK_INT(fdmsg_pair(pair, 1), ==, 0);
	before = dup(pair[0]);
	CHECK_INT(close(before), ==, 0);
	CHECK_INT(fdmsg_send(pair[0], "", 0, pair, 2, 0), ==, 0);
	CHECK_INT(message_recv(pair[1], &got, fds, 0), ==, 0);
	after = dup(pair[0]);
	CHECK_INT(after, ==, before);
	close(after);
	close(pair[0]);
	close(pair[1]);
}

static void test_a_full_socket_is_not_waited_for(void)
{
	struct message m = {.type = MESSAGE_TEXT};
	int pair[2], r, n = 0;

	CHECK_INT(fdmsg_pair(pair, 0), ==, 0);
	while ((r = message_try_send(pair[0], &m, NULL, 0)) == 0)
		n++;
	CHECK_INT(r, ==, -EAGAIN);
	CHECK_INT(n, >, 4);
	close(pair[0]);
	close(pair[1]);
}

/* A child that makes its page shorter would be a SIGBUS of the broker. */
static void test_the_status_page_keeps_its_size(void)
{
	struct status_page *page;
	int fd = status_page_new(&page);

	CHECK_INT(fd, >=, 0);
	CHECK_INT(ftruncate(fd, 0), ==, -1);
	CHECK_INT(page->counts.samples, ==, 0);
	close(fd);
	(void)munmap(page, sizeof(*page));
}

static void test_every_type_has_a_size(void)
{
	for (uint32_t t = 0; t < MESSAGE_N_TYPES; t++) {
		CHECK_INT(message_size(t), >=, 8);
		CHECK_INT(message_size(t), <=, sizeof(struct message));
	}
	CHECK_INT(message_size(MESSAGE_N_TYPES), ==, 0);
}

static void ask_about(struct message *m, const char *path)
{
	struct stat st;

	CHECK_INT(stat(path, &st), ==, 0);
	memset(m, 0, sizeof(*m));
	m->type = MESSAGE_ASK_FILE;
	m->ask_file.pid = (uint32_t)getpid();
	/* No such mapping: the path is what is left. */
	m->ask_file.start = 0x1000;
	m->ask_file.end = 0x2000;
	m->ask_file.inode = st.st_ino;
	m->ask_file.major = major(st.st_dev);
	m->ask_file.minor = minor(st.st_dev);
	message_set_text(m->ask_file.path, sizeof(m->ask_file.path), path);
}

/* The head of an ELF file of that type. */
static void write_elf(int fd, uint8_t type)
{
	uint8_t head[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, [16] = type, [18] = 62};

	CHECK_INT(pwrite(fd, head, sizeof(head), 0), ==, sizeof(head));
}

static void write_file(const char *path, const void *bytes, size_t n)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);

	CHECK_INT(write(fd, bytes, n), ==, n);
	(void)close(fd);
}

/* As root: a program's file that only its owner may reach. */
static void test_files_that_nobody_has_mapped(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct file_identity id;
	struct message m;
	char path[256];
	pid_t gone;
	void *map;
	int fd;

	if (geteuid() != 0)
		return; /* the kernel decides */
	path_in(path, sizeof(path), "file");
	fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	CHECK_INT(ftruncate(fd, (off_t)page), ==, 0);
	write_elf(fd, 3);
	gone = fork();
	if (gone == 0)
		_exit(0);
	CHECK_INT(waitpid(gone, NULL, 0), ==, gone);

	/* A range that is not there, of us; of a process that never was, with our root or with
	 * another's. */
	CHECK_INT(chmod(dir, 0755), ==, 0);
	ask_about(&m, path);
	CHECK_INT(opener_mapped_file(&m, &id), ==, -EACCES);
	m.ask_file.pid = (uint32_t)gone;
	CHECK_INT(opener_mapped_file(&m, &id), ==, -EACCES);
	m.ask_file.alternate_pid = (uint32_t)getpid();
	CHECK_INT(opener_mapped_file(&m, &id), ==, -EACCES);
	/* Everybody may read it, but not get there. */
	CHECK_INT(chmod(path, 0644), ==, 0);
	CHECK_INT(chmod(dir, 0750), ==, 0);
	CHECK_INT(opener_mapped_file(&m, &id), ==, -EACCES);
	CHECK_INT(chmod(dir, 0755), ==, 0);
	CHECK_INT(close(opener_mapped_file(&m, &id)), ==, 0);

	/* Only the broker can say that it was mapped; then the inode must be right nevertheless. */
	CHECK_INT(chmod(path, 0600) | chmod(dir, 0700), ==, 0);
	m.type = MESSAGE_ASK_SEEN_FILE;
	CHECK_INT(close(opener_mapped_file(&m, &id)), ==, 0);
	m.ask_file.inode++;
	CHECK_INT(opener_mapped_file(&m, &id), <, 0);

	/* It is mapped elsewhere than is said, by us or by the parent. */
	map = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(map != MAP_FAILED);
	ask_about(&m, path);
	CHECK_INT(close(opener_mapped_file(&m, &id)), ==, 0);
	m.ask_file.pid = (uint32_t)gone;
	CHECK_INT(opener_mapped_file(&m, &id), ==, -EACCES);
	m.ask_file.alternate_pid = (uint32_t)getpid();
	CHECK_INT(close(opener_mapped_file(&m, &id)), ==, 0);
	CHECK_INT(id.ino, ==, m.ask_file.inode);
	(void)munmap(map, page);
	(void)close(fd);
	CHECK_INT(unlink(path), ==, 0);
}

static void test_files_by_path(void)
{
	struct file_identity id;
	struct message m;
	struct stat st;
	char path[256], link[256];
	int fd;

	path_in(path, sizeof(path), "file");
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	write_elf(fd, 3);
	close(fd);
	CHECK_INT(chmod(dir, 0755), ==, 0);

	ask_about(&m, path);
	fd = opener_mapped_file(&m, &id);
	CHECK_INT(fd, >=, 0);
	CHECK_INT(id.size, ==, 64);
	CHECK_INT(fcntl(fd, F_GETFL) & O_ACCMODE, ==, O_RDONLY);
	close(fd);

	/* Another file stands there now. */
	m.ask_file.inode++;
	CHECK_INT(opener_mapped_file(&m, &id), ==, -ESTALE);
	m.ask_file.inode--;
	m.ask_file.minor++;
	CHECK_INT(opener_mapped_file(&m, &id), <, 0);

	/* A link within the root is followed, to the same file. */
	path_in(link, sizeof(link), "link");
	CHECK_INT(symlink(path, link), ==, 0);
	ask_about(&m, link);
	fd = opener_mapped_file(&m, &id);
	CHECK_INT(fd, >=, 0);
	CHECK_INT(fstat(fd, &st), ==, 0);
	CHECK_INT(st.st_ino, ==, m.ask_file.inode);
	close(fd);

	/* A path without its end. */
	memset(m.ask_file.path, 'x', sizeof(m.ask_file.path));
	CHECK_INT(opener_mapped_file(&m, &id), ==, -EBADMSG);
}

static int mapped_file_at(const char *path)
{
	struct file_identity id;
	struct message m;

	ask_about(&m, path);
	return opener_mapped_file(&m, &id);
}

/* A child that was taken over names what it likes, with an inode that stat() told it. */
static void test_only_code_is_handed_out(void)
{
	static const uint32_t jitdump = 0x4A695444;
	char path[256], link[256];
	struct file_identity id;
	struct message m;
	int fd;

	/* No profile is of process 0, and the kernel writes no "..". */
	path_in(path, sizeof(path), "file");
	ask_about(&m, path);
	m.ask_file.pid = 0;
	CHECK_INT(opener_mapped_file(&m, &id), ==, -EINVAL);
	CHECK_INT(close(mapped_file_at(path)), ==, 0);
	path_in(link, sizeof(link), "../..");
	(void)strcat(link, dir);
	(void)strcat(link, "/file");
	CHECK_INT(mapped_file_at(link), ==, -EINVAL);
	CHECK_INT(mapped_file_at("/etc/passwd"), ==, -ENOEXEC);

	path_in(path, sizeof(path), "other");
	write_file(path, "\177ELF", 4);
	CHECK_INT(mapped_file_at(path), ==, -ENOEXEC);
	write_file(path, "", 0);
	CHECK_INT(mapped_file_at(path), ==, -ENOEXEC);
	write_file(path, &jitdump, sizeof(jitdump));
	CHECK_INT(close(mapped_file_at(path)), ==, 0);
	/* The memory of a process. */
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	write_elf(fd, 4);
	(void)close(fd);
	CHECK_INT(mapped_file_at(path), ==, -ENOEXEC);
	CHECK_INT(unlink(path), ==, 0);

	/* Nothing was written to it yet; a link with such a name is not it. */
	path_in(path, sizeof(path), "jit-12.dump");
	write_file(path, "", 0);
	CHECK_INT(close(mapped_file_at(path)), ==, 0);
	CHECK_INT(unlink(path), ==, 0);
	path_in(link, sizeof(link), "other");
	write_file(link, "", 0);
	CHECK_INT(symlink(link, path), ==, 0);
	CHECK_INT(mapped_file_at(path), ==, -ENOEXEC);
	CHECK_INT(unlink(link) | unlink(path), ==, 0);
}

/* A build id without a file of it lets any path be named. */
static void test_only_code_of_recordings(void)
{
	struct message m = {.type = MESSAGE_ASK_RECORDED_FILE};
	struct file_identity id;
	int fd;

	m.ask_recorded_file.place = RECORDED_PATH;
	m.ask_recorded_file.n_build_id = 20;
	message_set_text(m.ask_recorded_file.path, PROTOCOL_PATH_MAX, "/etc/passwd");
	CHECK_INT(opener_recorded_file(&m, &id), ==, -ENOEXEC);
	message_set_text(m.ask_recorded_file.path, PROTOCOL_PATH_MAX, "/proc/../proc/self/exe");
	CHECK_INT(opener_recorded_file(&m, &id), ==, -EINVAL);
	message_set_text(m.ask_recorded_file.path, PROTOCOL_PATH_MAX, "/proc/self/exe");
	fd = opener_recorded_file(&m, &id);
	CHECK_INT(fd, >=, 0);
	(void)close(fd);
}

/* Opening these would block, or do things. */
static void test_what_is_no_file_is_not_opened(void)
{
	static const char *const others[] = {"/dev/null", "/dev/zero", "/tmp"};
	struct file_identity id;
	struct message m;
	char path[256];

	path_in(path, sizeof(path), "fifo");
	CHECK_INT(mkfifo(path, 0600), ==, 0);
	ask_about(&m, path);
	CHECK_INT(opener_mapped_file(&m, &id), ==, -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		ask_about(&m, others[i]);
		CHECK_INT(opener_mapped_file(&m, &id), ==, -EINVAL);
	}
}

/* A mapped file is the mapped file whatever became of its name. */
static void test_deleted_and_replaced(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct file_identity id;
	struct message m;
	char path[256];
	struct stat st;
	int fd, got;
	void *map;

	if (geteuid() != 0)
		return; /* map_files needs a capability; what is left are the paths tested above */
	path_in(path, sizeof(path), "mapped");
	fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0700);
	CHECK_INT(ftruncate(fd, (off_t)page), ==, 0);
	write_elf(fd, 3);
	map = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(map != MAP_FAILED);
	CHECK_INT(fstat(fd, &st), ==, 0);
	ask_about(&m, path);
	m.ask_file.start = (uint64_t)(uintptr_t)map;
	m.ask_file.end = m.ask_file.start + page;
	CHECK_INT(unlink(path), ==, 0);
	close(fd);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
	close(fd);

	got = opener_mapped_file(&m, &id);
	CHECK_INT(got, >=, 0);
	CHECK_INT(id.ino, ==, st.st_ino);
	CHECK_INT(id.size, ==, page);
	close(got);
	(void)munmap(map, page);
}

static void test_a_hostile_name_in_stat(void)
{
	struct message m = {.type = MESSAGE_ANSWER_PROCESS};
	int gate[2], status;
	char byte;
	pid_t pid;

	CHECK_INT(pipe2(gate, O_CLOEXEC), ==, 0);
	pid = fork();
	CHECK_INT(pid, >=, 0);
	if (pid == 0) {
		(void)prctl(PR_SET_NAME, "x) R 1 (y", 0, 0, 0);
		(void)!write(gate[1], "", 1);
		(void)pause();
		_exit(0);
	}
	CHECK_INT(read(gate[0], &byte, 1), ==, 1);
	CHECK_INT(opener_process((uint32_t)pid, &m), ==, 0);
	CHECK_STR(m.answer_process.comm, "x) R 1 (y");
	CHECK_INT(m.answer_process.parent_pid, ==, getpid());
	CHECK_INT(m.answer_process.is_kernel, ==, 0);
	CHECK_INT(m.answer_process.start_time_ns, >, 0);
	CHECK(strstr(m.answer_process.executable_path, "test-opener"));
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, &status, 0);
	CHECK_INT(opener_process((uint32_t)pid, &m), <, 0);
}

static void *wait_for_a_byte(void *fd)
{
	char byte;

	(void)!read(*(const int *)fd, &byte, 1);
	_exit(0); /* and nothing that the test does at its exit */
}

static bool is_zombie(pid_t pid)
{
	char text[512];

	CHECK_INT(opener_read_proc((uint32_t)pid, "stat", text, sizeof(text)), ==, 0);
	return strstr(text, ") Z ");
}

/* A main thread that has ended is a zombie as its process is, but others go on. */
static void test_the_main_thread_ends_first(void)
{
	struct message m = {.type = MESSAGE_ANSWER_PROCESS};
	siginfo_t info;
	pthread_t thread;
	int gate[2];
	pid_t pid;

	CHECK_INT(pipe2(gate, O_CLOEXEC), ==, 0);
	pid = fork();
	CHECK_INT(pid, >=, 0);
	if (pid == 0) {
		(void)pthread_create(&thread, NULL, wait_for_a_byte, &gate[0]);
		pthread_exit(NULL);
	}
	while (!is_zombie(pid))
		(void)usleep(1000);
	CHECK_INT(opener_process((uint32_t)pid, &m), ==, 0);
	CHECK_INT(m.answer_process.has_ended, ==, 0);
	CHECK_INT(write(gate[1], "", 1), ==, 1);
	CHECK_INT(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), ==, 0);
	CHECK_INT(opener_process((uint32_t)pid, &m), ==, 0);
	CHECK_INT(m.answer_process.has_ended, ==, 1);
	CHECK_INT(waitpid(pid, NULL, 0), ==, pid);
	(void)close(gate[0]);
	(void)close(gate[1]);
}

static void test_perf_maps_of_others_are_refused(void)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	(void)unlink(path); /* of one that had this pid before us */
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
	CHECK_INT(fd, >=, 0);
	close(fd);
	fd = opener_perf_map((uint32_t)getpid());
	CHECK_INT(fd, >=, 0);
	close(fd);
	write_file(path, "root:*:19000:0:99999:7:::", 25);
	CHECK_INT(opener_perf_map((uint32_t)getpid()), ==, -ENOEXEC);
	write_file(path, "7f00 10 f", 9);
	CHECK_INT(close(opener_perf_map((uint32_t)getpid())), ==, 0);
	if (geteuid() == 0) {
		CHECK_INT(chown(path, 12345, 12345), ==, 0);
		CHECK_INT(opener_perf_map((uint32_t)getpid()), ==, -EACCES);
	}
	CHECK_INT(unlink(path), ==, 0);
	CHECK_INT(symlink("/etc/passwd", path), ==, 0);
	CHECK_INT(opener_perf_map((uint32_t)getpid()), ==, -ELOOP);
	CHECK_INT(unlink(path), ==, 0);
	CHECK_INT(mkfifo(path, 0600), ==, 0);
	CHECK_INT(opener_perf_map((uint32_t)getpid()), ==, -EINVAL);
	CHECK_INT(unlink(path), ==, 0);
	CHECK_INT(opener_perf_map((uint32_t)getpid()), ==, -ENOENT);
}

/* A process with mounts of its own and a map of root's, which it may have mounted there. */
static int perf_map_of_a_stranger(bool mounted)
{
	int ready[2], r = -ENODEV;
	char path[64], c;
	pid_t pid;

	CHECK_INT(pipe2(ready, O_CLOEXEC), ==, 0);
	pid = fork();
	if (pid == 0) {
		(void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
		(void)unlink(path);
		if (unshare(CLONE_NEWNS) == 0 &&
		    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		    close(open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644)) == 0 &&
		    (!mounted || mount("/etc/passwd", path, NULL, MS_BIND, NULL) == 0) &&
		    setresuid(12345, 12345, 12345) == 0)
			(void)!write(ready[1], "", 1);
		(void)close(ready[1]);
		(void)pause();
		_exit(0);
	}
	(void)close(ready[1]);
	if (read(ready[0], &c, 1) == 1)
		r = opener_perf_map((uint32_t)pid);
	(void)close(ready[0]);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	(void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)pid);
	(void)unlink(path);
	return r;
}

static void test_perf_maps_of_root(void)
{
	int fd = geteuid() == 0 ? perf_map_of_a_stranger(false) : -ENODEV;

	if (fd == -ENODEV) {
		fprintf(stderr, "no mount namespace can be made: not tested\n");
		return;
	}
	CHECK_INT(fd, >=, 0);
	(void)close(fd);
	CHECK_INT(perf_map_of_a_stranger(true), ==, -EACCES);
}

static void test_debug_file_names(void)
{
	static const uint8_t id[64] = {0xab, 0xcd};

	CHECK_INT(opener_debug_file(0, id, 0, ""), ==, -EINVAL);
	CHECK_INT(opener_debug_file(0, id, 1, ""), ==, -EINVAL);
	CHECK_INT(opener_debug_file(0, id, 65, ""), ==, -EINVAL);
	CHECK_INT(opener_debug_file(0, id, 64, ""), ==, -ENOENT);
	/* No path leads out of the directory of debug files. */
	CHECK_INT(opener_debug_file(0, id, 64, "../../../etc/passwd"), ==, -EINVAL);
	CHECK_INT(opener_debug_file((uint32_t)getppid(), id, 64, "a/../b"), ==, -EINVAL);
	CHECK_INT(opener_debug_file(0, id, 0, "/etc/passwd"), <, 0);
}

/* The directory is a process's to fill that may turn against us. */
static void test_cached_debug_files(void)
{
	static const uint8_t id[] = {0xab, 0xcd};
	char path[128], other[128];
	int dir_fd, fd;

	path_in(path, sizeof(path), "");
	dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(dir_fd, >=, 0);
	CHECK_INT(opener_cached_debug_file(dir_fd, id, 0), ==, -EINVAL);
	CHECK_INT(opener_cached_debug_file(dir_fd, id, 65), ==, -EINVAL);
	CHECK_INT(opener_cached_debug_file(dir_fd, id, 2), ==, -ENOENT);
	path_in(path, sizeof(path), "abcd.debug");
	CHECK_INT(mkfifo(path, 0600), ==, 0);
	CHECK_INT(opener_cached_debug_file(dir_fd, id, 2), ==, -EINVAL);
	CHECK_INT(unlink(path), ==, 0);
	CHECK_INT(symlink("/etc/passwd", path), ==, 0);
	CHECK_INT(opener_cached_debug_file(dir_fd, id, 2), <, 0);
	CHECK_INT(unlink(path), ==, 0);
	CHECK_INT(close(open(path, O_CREAT | O_WRONLY, 0600)), ==, 0);
	CHECK_INT(opener_cached_debug_file(dir_fd, id, 2), ==, -ENOEXEC);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	write_elf(fd, 3);
	(void)close(fd);
	fd = opener_cached_debug_file(dir_fd, id, 2);
	CHECK_INT(fd, >=, 0);
	(void)close(fd);
	path_in(other, sizeof(other), "another-name");
	CHECK_INT(link(path, other), ==, 0);
	CHECK_INT(opener_cached_debug_file(dir_fd, id, 2), ==, -EACCES);
	CHECK_INT(unlink(other), ==, 0);
	if (geteuid() == 0) {
		CHECK_INT(chown(path, 65534, 65534), ==, 0);
		CHECK_INT(opener_cached_debug_file(dir_fd, id, 2), ==, -EACCES);
	}
	CHECK_INT(unlink(path), ==, 0);
	(void)close(dir_fd);
}

static void expect_refusal(const char *path, uint32_t uid, int r, const char *reason)
{
	char error[256] = "";

	CHECK_INT(state_dir_open(path, &(struct state_owner){uid, uid, -1u, false}, false, error,
				 sizeof(error)),
		  ==, r);
	if (!strstr(error, reason))
		CHECK_STR(error, reason);
}

/* By hand as by openat2: every way to write a path, and every way to get out. */
static void test_paths_inside_a_root(void)
{
	static const struct {
		const char *target, *name;
	} links[] = {
		{"/a/b/file", "absolute"}, {"a/b", "relative"},		{"../../../a/b/file", "up"},
		{"loop", "loop"},	   {"../a/b/file", "a/back"},	{"/etc/passwd", "outside"},
		{"/proc/self", "self"},	   {"/absolute", "a/b/twice"},	{"a/b/file/", "slash"},
		{"..", "a/b/parent"},	   {"/a/b/../b/file", "round"}, {"/", "top"},
	};
	static const char *const paths[] = {
		"a/b/file",
		"/a/b/file",
		"//a/./b//file",
		"a/../a/b/file",
		"../../a/b/file",
		"absolute",
		"relative/file",
		"relative/../file",
		"up",
		"loop",
		"a/back",
		"outside",
		"self",
		"a/b/twice",
		"slash",
		"a/b/parent/b/file",
		"a/b/parent/parent",
		"round",
		"top/top/a/b/file",
		"a/b/file/x",
		"nothing",
		"a/nothing/../b/file",
		".",
		"/",
		"..",
		"a/b/../../../../a/b/file",
	};
	static const uint64_t modes[] = {
		RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
		RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS,
		RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
	};
	char path[256];
	int root, n_found = 0;

	path_in(path, sizeof(path), "inside");
	CHECK_INT(mkdir(path, 0700), ==, 0);
	root = open(path, O_PATH | O_DIRECTORY);
	CHECK_INT(root, >=, 0);
	CHECK_INT(mkdirat(root, "a", 0700) | mkdirat(root, "a/b", 0700), ==, 0);
	CHECK_INT(close(openat(root, "a/b/file", O_CREAT | O_WRONLY, 0600)), ==, 0);
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		CHECK_INT(symlinkat(links[i].target, root, links[i].name), ==, 0);
	for (size_t i = 0; i < ARRAY_SIZE(paths) * ARRAY_SIZE(modes); i++) {
		const char *which = paths[i / ARRAY_SIZE(modes)];
		uint64_t mode = modes[i % ARRAY_SIZE(modes)];
		int a = opener_resolve(root, which, mode);
		int b = opener_resolve_by_hand(root, which, mode);
		struct stat sa, sb;

		if ((a < 0 ? a : 0) != (b < 0 ? b : 0))
			fprintf(stderr, "%s, mode %zu\n", which, i % ARRAY_SIZE(modes));
		CHECK_INT(a < 0 ? a : 0, ==, b < 0 ? b : 0);
		if (a >= 0) {
			CHECK_INT(fstat(a, &sa) | fstat(b, &sb), ==, 0);
			CHECK(sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino);
			n_found++;
		}
		(void)close_fd(a);
		(void)close_fd(b);
	}
	CHECK_INT(n_found, >, 30);
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		CHECK_INT(unlinkat(root, links[i].name, 0), ==, 0);
	CHECK_INT(unlinkat(root, "a/b/file", 0), ==, 0);
	CHECK_INT(unlinkat(root, "a/b", AT_REMOVEDIR) | unlinkat(root, "a", AT_REMOVEDIR), ==, 0);
	CHECK_INT(rmdir(path), ==, 0);
	/* Another filesystem. */
	(void)close(root);
	root = open("/", O_PATH | O_DIRECTORY);
	CHECK_INT(opener_resolve_by_hand(root, "proc/self", RESOLVE_IN_ROOT | RESOLVE_NO_XDEV), ==,
		  -EXDEV);
	(void)close(root);
}

static uint32_t owner_of(const char *directory, const char *name)
{
	char path[256];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	CHECK_INT(lstat(path, &st), ==, 0);
	return st.st_uid;
}

/* Files of root change their owner in a directory that systemd made for us, and nowhere else. */
static void hand_back(const char *path)
{
	struct state_owner owner = {65534, 65534, -1u, true};
	char name[192], error[256];
	int fd;

	(void)snprintf(name, sizeof(name), "%s/of-root", path);
	CHECK_INT(close(open(name, O_CREAT | O_WRONLY, 0600)), ==, 0);
	CHECK_INT(chown(path, 0, 0), ==, 0);
	expect_refusal(path, 65534, -EPERM, "it belongs to user 0");
	CHECK_INT(owner_of(path, "of-root"), ==, 0);
	fd = state_dir_open(path, &owner, false, error, sizeof(error));
	CHECK_INT(fd, >=, 0);
	(void)close(fd);
	CHECK_INT(owner_of(path, "."), ==, 65534);
	CHECK_INT(owner_of(path, "of-root"), ==, 65534);
	/* Of others they stay there, too. */
	CHECK_INT(chown(path, 65532, 65532), ==, 0);
	CHECK_INT(state_dir_open(path, &owner, false, error, sizeof(error)), ==, -EPERM);
	CHECK_INT(chown(path, 65534, 65534), ==, 0);
	CHECK_INT(unlink(name), ==, 0);
}

/* To another user than before: what was the former one's, and nothing else. */
static void hand_over(const char *path)
{
	static const char *const names[] = {"file", "root", "link", "linked", "other"};
	const struct state_owner owner = {65533, 65533, 65534, false};
	char name[192], other[192], error[256];
	int fd;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		(void)snprintf(name, sizeof(name), "%s/%s", path, names[i]);
		if (strcmp(names[i], "link") == 0)
			CHECK_INT(symlink("/etc/passwd", name), ==, 0);
		else
			CHECK_INT(close(open(name, O_CREAT | O_WRONLY, 0600)), ==, 0);
		CHECK_INT(lchown(name, i == 1 ? 0 : 65534, 65534), ==, 0);
	}
	(void)snprintf(other, sizeof(other), "%s/linked", path);
	path_in(name, sizeof(name), "hard-link");
	CHECK_INT(link(other, name), ==, 0);

	fd = state_dir_open(path, &owner, false, error, sizeof(error));
	CHECK_INT(fd, >=, 0);
	(void)close(fd);
	CHECK_INT(owner_of(path, "."), ==, 65533);
	CHECK_INT(owner_of(path, "file"), ==, 65533);
	CHECK_INT(owner_of(path, "other"), ==, 65533);
	CHECK_INT(owner_of(path, "root"), ==, 0);
	CHECK_INT(owner_of(path, "linked"), ==, 65534);
	CHECK_INT(owner_of("/etc", "passwd"), ==, 0);
	/* Not from one user to the next without being told so. */
	expect_refusal(path, 65532, -EPERM, "it belongs to user 65533");
	expect_refusal(path, 65532, -EPERM, "or chown -R 65532 this one");
	CHECK_INT(unlink(name), ==, 0);
	for (size_t i = 1; i < ARRAY_SIZE(names); i++) {
		(void)snprintf(name, sizeof(name), "%s/%s", path, names[i]);
		CHECK_INT(unlink(name), ==, 0);
	}
}

static void test_state_directory(void)
{
	bool root = geteuid() == 0;
	uint32_t uid = root ? 65534 : geteuid();
	char path[128], link[160], file[160], error[256];
	struct stat st;
	int fd;

	path_in(path, sizeof(path), "state/of/it");
	fd = state_dir_open(path, &(struct state_owner){uid, uid, -1u, false}, false, error,
			    sizeof(error));
	CHECK_INT(fd, >=, 0);
	CHECK_INT(fstat(fd, &st), ==, 0);
	CHECK_INT(st.st_uid, ==, uid);
	CHECK_INT(st.st_mode & 07777, ==, 0700);
	/* One at a time. */
	expect_refusal(path, uid, -EWOULDBLOCK, "another perfwalk uses it");
	(void)close(fd);
	/* Or several, if all say so. */
	fd = state_dir_open(path, &(struct state_owner){uid, uid, -1u, false}, true, error,
			    sizeof(error));
	CHECK_INT(fd, >=, 0);
	CHECK_INT(close(state_dir_open(path, &(struct state_owner){uid, uid, -1u, false}, true,
				       error, sizeof(error))),
		  ==, 0);
	expect_refusal(path, uid, -EWOULDBLOCK, "another perfwalk uses it");
	(void)close(fd);

	/* It is there by now, with something in it, and open to others. */
	(void)snprintf(file, sizeof(file), "%s/file", path);
	CHECK_INT(close(open(file, O_CREAT | O_WRONLY, 0600)), ==, 0);
	CHECK_INT(chmod(path, 0755), ==, 0);
	(void)snprintf(link, sizeof(link), "%s///", path);
	fd = state_dir_open(link, &(struct state_owner){uid, uid, -1u, false}, false, error,
			    sizeof(error));
	CHECK_INT(fd, >=, 0);
	CHECK_INT(fstat(fd, &st), ==, 0);
	CHECK_INT(st.st_mode & 07777, ==, 0700);
	(void)close(fd);

	expect_refusal(file, uid, -ENOTDIR, "it cannot be opened");
	path_in(link, sizeof(link), "to-state");
	CHECK_INT(symlink(path, link), ==, 0);
	expect_refusal(link, uid, -ENOTDIR, "it cannot be opened");
	path_in(link, sizeof(link), "to-state/");
	expect_refusal(link, uid, -ENOTDIR, "it cannot be opened");
	expect_refusal("/proc/1/perfwalk", uid, -ENOENT, "it cannot be created");
	/* Of root with files in it, or of another user. */
	expect_refusal("/usr", uid, -EPERM, "it belongs to user 0");
	if (root)
		expect_refusal(path, 65533, -EPERM, "it belongs to user 65534");
	CHECK_INT(stat("/usr", &st), ==, 0);
	CHECK_INT(st.st_uid, ==, 0);
	if (root) {
		hand_back(path);
		hand_over(path);
	}

	path_in(link, sizeof(link), "to-state");
	(void)unlink(link);
	(void)unlink(file);
	for (const char *const *p = (const char *const[]){"state/of/it", "state/of", "state", NULL};
	     *p; p++) {
		path_in(path, sizeof(path), *p);
		CHECK_INT(rmdir(path), ==, 0);
	}
}

static void remove_all(void)
{
	static const char *const names[] = {"file", "link", "fifo", "mapped"};
	char path[256];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		path_in(path, sizeof(path), names[i]);
		(void)unlink(path);
	}
	(void)rmdir(dir);
}

/* ---- Blocked threads ---- */

#define MARK "what only the stack of the child holds"

/* Waits for a byte, with something to be found again on its stack. */
static pid_t start_reader(int *ret_feed)
{
	int feed[2];
	pid_t pid;

	CHECK_INT(pipe(feed), ==, 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		char text[sizeof(MARK)], c;

		memcpy(text, MARK, sizeof(MARK));
		__asm__ volatile("" : : "r"(text) : "memory"); /* it is really there */
		(void)close(feed[1]);
		_exit(read(feed[0], &c, 1) == 1 ? 0 : 1);
	}
	(void)close(feed[0]);
	*ret_feed = feed[1];
	return pid;
}

/* Where the kernel says that it stands in read(2); false: it cannot be told here. */
static bool find_place(pid_t pid, struct message *ask)
{
	unsigned long long call, a[6], sp, ip;
	char text[256];

	*ask = (struct message){.type = MESSAGE_ASK_BLOCKED};
	ask->ask_blocked.pid = ask->ask_blocked.tid = (uint32_t)pid;
	ask->ask_blocked.n_bytes = BLOCKED_MAX_BYTES;
	for (;;) {
		if (opener_read_proc((uint32_t)pid, "syscall", text, sizeof(text)) < 0)
			return false;
		if (sscanf(text, "%llu %llx %llx %llx %llx %llx %llx %llx %llx", &call, &a[0],
			   &a[1], &a[2], &a[3], &a[4], &a[5], &sp, &ip) == 9 &&
		    call == SYS_read)
			break;
		(void)usleep(1000);
	}
	ask->ask_blocked.sp = sp;
	ask->ask_blocked.ip = ip;
	return true;
}

static void test_stacks_of_blocked_threads(void)
{
	struct message ask, other;
	struct blocked_thread t;
	static char stack[BLOCKED_MAX_BYTES]; /* not on top of the mark */
	int feed, fd, status;
	pid_t pid = start_reader(&feed);

	if (!find_place(pid, &ask)) {
		SKIP("/proc/PID/syscall cannot be read");
		(void)close(feed);
		return;
	}
	fd = opener_blocked(&ask);
	CHECK_INT(fd, >=, 0);
	CHECK_INT(pread(fd, &t, sizeof(t), 0), ==, (long long)sizeof(t));
	CHECK(t.n_bytes > 0 && t.n_bytes <= sizeof(stack));
	CHECK_INT(pread(fd, stack, t.n_bytes, sizeof(t)), ==, (long long)t.n_bytes);
	CHECK(memmem(stack, t.n_bytes, MARK, sizeof(MARK)));
	CHECK_INT(t.args[2], ==, 1);
	CHECK_INT(t.own_tid, ==, pid);
	(void)close(fd);
	/* Nobody gets at other memory than that. */
	other = ask;
	other.ask_blocked.sp -= 8;
	CHECK_INT(opener_blocked(&other), ==, -ESTALE);
	other = ask;
	other.ask_blocked.ip += 1;
	CHECK_INT(opener_blocked(&other), ==, -ESTALE);
	other = ask;
	other.ask_blocked.n_bytes = BLOCKED_MAX_BYTES + 1;
	CHECK_INT(opener_blocked(&other), ==, -EINVAL);
	other = ask;
	other.ask_blocked.tid = (uint32_t)getpid();
	CHECK_INT(opener_blocked(&other), <, 0);
	CHECK_INT(write(feed, "", 1), ==, 1);
	CHECK_INT(waitpid(pid, &status, 0), ==, pid);
	CHECK_INT(opener_blocked(&ask), <, 0);
	(void)close(feed);
}

int main(void)
{
	(void)umask(022);
	CHECK(mkdtemp(dir));
	(void)atexit(remove_all);
	RUN(test_messages_of_the_wrong_form);
	RUN(test_an_empty_message_with_descriptors);
	RUN(test_a_full_socket_is_not_waited_for);
	RUN(test_the_status_page_keeps_its_size);
	RUN(test_every_type_has_a_size);
	RUN(test_files_that_nobody_has_mapped);
	RUN(test_files_by_path);
	RUN(test_only_code_is_handed_out);
	RUN(test_only_code_of_recordings);
	RUN(test_what_is_no_file_is_not_opened);
	RUN(test_deleted_and_replaced);
	RUN(test_a_hostile_name_in_stat);
	RUN(test_the_main_thread_ends_first);
	RUN(test_perf_maps_of_others_are_refused);
	RUN(test_perf_maps_of_root);
	RUN(test_debug_file_names);
	RUN(test_cached_debug_files);
	RUN(test_paths_inside_a_root);
	RUN(test_state_directory);
	RUN(test_stacks_of_blocked_threads);
	return 0;
}
