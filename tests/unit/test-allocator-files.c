/* SPDX-License-Identifier: Apache-2.0 */
/* Which files the broker takes for those of runtimes, also beside a program that lies where nobody
 * answers. */
#include "tests/unit/fuse-file.h"
#include "tests/unit/test.h"

#include <elf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "src/opener/allocators.h"
#include "util/cleanup.h"

#define PATIENCE_TURNS 60000 /* of a millisecond */

static int open_own(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	CHECK_INT(fd, >=, 0);
	return fd;
}

static void test_names(void)
{
	char dir[] = "/tmp/perfwalk-allocators.XXXXXX", path[64];
	int own = open_own(), fd;

	CHECK(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/libjvm.so", dir);
	fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	CHECK_INT(fd, >=, 0);
	CHECK_INT(allocator_of_file(fd, (uint32_t)getpid()), ==, ALLOCATOR_JAVA);
	CHECK_INT(unlink(path), ==, 0);
	CHECK_INT(allocator_of_file(fd, (uint32_t)getpid()), ==, ALLOCATOR_JAVA);
	CHECK_INT(allocator_of_file(own, (uint32_t)getpid()), ==, ALLOCATOR_GO);
	(void)close(fd);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CHECK_INT(allocator_of_file(fd, (uint32_t)getpid()), ==, ALLOCATOR_NONE);
	(void)close(fd);
	(void)close(own);
	CHECK_INT(rmdir(dir), ==, 0);
}

/* A file of a processor with this code there. */
static bool may_begin_at(uint16_t machine, enum allocator of, const char *code, off_t at)
{
	const Elf64_Ehdr header = {.e_ident = ELFMAG, .e_machine = machine};
	int fd = memfd_create("begins", MFD_CLOEXEC);
	bool may;

	CHECK_INT(fd, >=, 0);
	CHECK_INT(pwrite(fd, &header, sizeof(header), 0), ==, sizeof(header));
	CHECK_INT(pwrite(fd, code, 4, at), ==, 4);
	may = allocator_may_begin(of, fd, (uint64_t)at);
	(void)close(fd);
	return may;
}

static bool may_begin(uint16_t machine, enum allocator of, const char *code)
{
	return may_begin_at(machine, of, code, 64);
}

/* Instructions are those of the file's own processor. */
static void test_beginnings(void)
{
	static const char compares[] = "\x49\x3b\x66\x10"; /* cmp 0x10(%r14),%rsp */
	static const char loads[] = "\x90\x0b\x40\xf9";	   /* ldr x16, [x28, #16] */
	/* stp x29, x30, [sp, #-128]!, as version 17 has it; [sp, #128]! */
	static const char stores[] = "\xfd\x7b\xb8\xa9", stores_higher[] = "\xfd\x7b\x88\xa9";

	CHECK(may_begin(EM_X86_64, ALLOCATOR_GO, compares));
	CHECK(may_begin(EM_AARCH64, ALLOCATOR_GO, loads));
	CHECK(!may_begin(EM_X86_64, ALLOCATOR_GO, loads));
	CHECK(!may_begin(EM_AARCH64, ALLOCATOR_GO, compares));
	CHECK(!may_begin(EM_AARCH64, ALLOCATOR_JAVA, loads));
	CHECK(may_begin(EM_AARCH64, ALLOCATOR_JAVA, stores));
	CHECK(!may_begin(EM_AARCH64, ALLOCATOR_JAVA, stores_higher));
	CHECK(!may_begin(EM_AARCH64, ALLOCATOR_GO, stores));
	/* Not where functions begin. */
	CHECK(!may_begin_at(EM_X86_64, ALLOCATOR_GO, compares, 68));
	CHECK(!may_begin_at(EM_AARCH64, ALLOCATOR_GO, loads, 68));
	CHECK(may_begin_at(EM_AARCH64, ALLOCATOR_JAVA, stores, 68));
	CHECK(!may_begin_at(EM_AARCH64, ALLOCATOR_JAVA, stores, 66));
	CHECK(!may_begin(EM_RISCV, ALLOCATOR_GO, compares));
}

/* As before Linux 4.11. Of the test's own process: it stays. */
static void refuse_statx(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_statx, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = {ARRAY_SIZE(code), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
		SKIP("no filter of system calls");
}

static void test_without_statx(void)
{
	int own = open_own(), other = open("/dev/null", O_RDONLY | O_CLOEXEC);

	refuse_statx();
	CHECK_INT(syscall(SYS_statx, own, "", AT_EMPTY_PATH, 0, NULL), ==, -1);
	CHECK_INT(errno, ==, ENOSYS);
	CHECK_INT(allocator_of_file(own, (uint32_t)getpid()), ==, ALLOCATOR_GO);
	CHECK_INT(allocator_of_file(other, (uint32_t)getpid()), ==, ALLOCATOR_NONE);
	(void)close(own);
	(void)close(other);
}

/* This program again, from the file of the filesystem: it says that it runs, and stays. */
static pid_t start_there(const char *point)
{
	char path[128], said;
	int ends[2];
	pid_t pid;

	(void)snprintf(path, sizeof(path), "%s/file", point);
	CHECK_INT(pipe(ends), ==, 0);
	pid = fork();
	CHECK_INT(pid, >=, 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)dup2(ends[1], STDOUT_FILENO);
		(void)execl(path, path, "stay", NULL);
		_exit(127);
	}
	(void)close(ends[1]);
	CHECK_INT(read(ends[0], &said, 1), ==, 1);
	(void)close(ends[0]);
	return pid;
}

/* Its exit status; -1: the filesystem was asked, or it does not end. */
static int wait_while_silent(pid_t asker, const struct fuse_file *file)
{
	const struct timespec turn = {.tv_nsec = 1000000};
	int status = 0;

	for (int i = 0; i < PATIENCE_TURNS; i++) {
		if (waitpid(asker, &status, WNOHANG) == asker)
			return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
		if (__atomic_load_n(&file->n_not_answered, __ATOMIC_SEQ_CST))
			return -1;
		(void)nanosleep(&turn, NULL);
	}
	return -1;
}

/* stat() of the program would wait for ever. */
static void test_silent(void)
{
	char dir[] = "/tmp/perfwalk-allocators.XXXXXX", point[64];
	struct fuse_file *file = mmap(NULL, sizeof(*file), PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t server, there, asker;
	struct stat st;
	int status = 0;

	CHECK(file != MAP_FAILED && mkdtemp(dir));
	(void)snprintf(point, sizeof(point), "%s/mounted", dir);
	file->fd = open_own();
	CHECK_INT(fstat(file->fd, &st), ==, 0);
	file->size = (uint64_t)st.st_size;
	server = unshare(CLONE_NEWNS) == 0 &&
				 mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0
			 ? fuse_mount(point, fuse_serve_file, file)
			 : 0;
	if (server) {
		there = start_there(point);
		__atomic_store_n(&file->is_silent, true, __ATOMIC_SEQ_CST);
		asker = fork();
		CHECK_INT(asker, >=, 0);
		if (asker == 0)
			_exit((int)allocator_of_file(file->fd, (uint32_t)there));
		status = wait_while_silent(asker, file);
		(void)kill(server, SIGKILL);
		(void)kill(there, SIGKILL);
		(void)umount2(point, MNT_DETACH);
	}
	(void)rmdir(point);
	(void)rmdir(dir);
	if (!server)
		SKIP("no filesystem can be mounted here");
	CHECK_INT(status, ==, ALLOCATOR_NONE);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "stay") == 0) {
		(void)!write(STDOUT_FILENO, "x", 1);
		for (;;)
			(void)pause();
	}
	RUN(test_names);
	RUN(test_beginnings);
	RUN(test_silent);
	RUN(test_without_statx); /* the last one */
	return 0;
}
