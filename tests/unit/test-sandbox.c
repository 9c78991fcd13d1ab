/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter says what the table says: a model of the kernel's machine runs it over all numbers of
 * calls and many arguments. And the kernel obeys it: what a process that was taken over would try
 * fails in each role.
 */
#include "config.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdbool.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "src/process/sandbox-internal.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"

#define REFUSED UINT32_C(0x12345678)

/* What the kernel's machine does with the few instructions that the filter has. */
static uint32_t run_filter(const struct sock_filter *code, size_t n,
			   const struct seccomp_data *data)
{
	uint32_t a = 0;

	for (size_t pc = 0; pc < n; pc++) {
		const struct sock_filter *i = &code[pc];

		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			CHECK(i->k % 4 == 0 && i->k + 4 <= sizeof(*data));
			memcpy(&a, (const char *)data + i->k, 4);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			pc += a > i->k ? i->jt : i->jf;
			break;
		case BPF_RET | BPF_K:
			return i->k;
		default:
			CHECK(!"a known instruction");
		}
	}
	CHECK(!"a filter ends in an answer");
	return 0;
}

/* The same, read off the table row by row. */
static uint32_t look_up(const struct sandbox_call *calls, size_t n, enum peer who,
			const struct seccomp_data *data)
{
	if (data->arch != SANDBOX_ARCH || (uint32_t)data->nr >= SANDBOX_FIRST_FOREIGN)
		return REFUSED;
	if (data->nr > SANDBOX_NEWEST_CALL)
		return SECCOMP_RET_ERRNO | ENOSYS;
	for (size_t i = 0; i < n; i++) {
		bool fits = calls[i].number == data->nr && (calls[i].roles & (1u << who));

		for (int j = 0; j < SANDBOX_MAX_CHECKS; j++) {
			const struct sandbox_check *c = &calls[i].checks[j];

			fits &= (data->args[c->argument] & c->mask) == c->value;
		}
		if (fits)
			return calls[i].error ? SECCOMP_RET_ERRNO | (uint32_t)calls[i].error
					      : SECCOMP_RET_ALLOW;
	}
	return REFUSED;
}

static void compare(const struct sandbox_call *calls, size_t n_calls, enum peer who,
		    uint64_t *ret_n)
{
	static const uint64_t values[] = {0,
					  1,
					  2,
					  3,
					  4,
					  5,
					  10,
					  16,
					  PROT_READ | PROT_EXEC,
					  7,
					  MAP_PRIVATE | MAP_ANONYMOUS,
					  AT_EMPTY_PATH,
					  F_DUPFD_CLOEXEC,
					  TCGETS,
					  TIOCSTI,
					  FIONBIO,
					  CLONE_THREAD | CLONE_VM | CLONE_SIGHAND,
					  CLONE_THREAD | CLONE_VM | CLONE_SIGHAND | CLONE_NEWUSER,
					  UINT32_MAX,
					  UINT64_C(1) << 32,
					  UINT64_C(0x100000002),
					  UINT64_MAX};
	static struct sock_filter code[4096];
	int n = sandbox_program(calls, n_calls, who, REFUSED, code, ARRAY_SIZE(code));

	CHECK_INT(n, >, 0);
	for (uint32_t nr = 0; nr < 1100; nr++) {
		/* The last ones are calls of the x32 ABI. */
		uint32_t number = nr < 600 ? nr : nr < 1099 ? 0x40000000u + nr - 600 : UINT32_MAX;

		for (size_t i = 0; i < ARRAY_SIZE(values) * 6; i++) {
			struct seccomp_data d = {.nr = (int)number, .arch = SANDBOX_ARCH};
			uint32_t said;

			d.args[i % 6] = values[i / 6];
			d.args[(i + 1) % 6] = values[(i / 6 + nr) % ARRAY_SIZE(values)];
			said = run_filter(code, (size_t)n, &d);
			CHECK_INT(said, ==, look_up(calls, n_calls, who, &d));
			d.arch = AUDIT_ARCH_I386;
			CHECK_INT(run_filter(code, (size_t)n, &d), ==, REFUSED);
			++*ret_n;
		}
	}
}

static void test_program_is_table(void)
{
	size_t n;
	const struct sandbox_call *calls = sandbox_calls(&n);
	uint64_t compared = 0;

	for (int who = 0; who < SANDBOX_N; who++)
		compare(calls, n, (enum peer)who, &compared);
	CHECK_INT(compared, >, 500000);
}

/* Trees of all sizes: none, one, rows of one call only, many calls. */
static void test_program_of_any_table(void)
{
	struct sandbox_call calls[24];
	uint64_t compared = 0;

	for (unsigned int seed = 1; seed < 60; seed++) {
		size_t n = seed % ARRAY_SIZE(calls);

		srand(seed);
		for (size_t i = 0; i < n; i++) {
			calls[i] = (struct sandbox_call){.number = rand() % (seed % 3 ? 300 : 4),
							 .roles = (1u << PEER_PROFILER) |
								  (uint32_t)rand(),
							 .error = rand() % 3 ? 0 : ENOSYS};
			if (rand() % 2)
				calls[i].checks[0] = (struct sandbox_check){
					(uint32_t)rand() % 6, UINT32_MAX, (uint32_t)rand() % 6};
			if (rand() % 2)
				calls[i].checks[1] = (struct sandbox_check){
					(uint32_t)rand() % 6, UINT64_MAX, (uint64_t)rand() % 6};
		}
		compare(calls, n, PEER_PROFILER, &compared);
	}
}

static void test_too_long(void)
{
	size_t n;
	const struct sandbox_call *calls = sandbox_calls(&n);
	struct sock_filter code[16];

	CHECK_INT(sandbox_program(calls, n, PEER_PROFILER, REFUSED, code, ARRAY_SIZE(code)), ==,
		  -E2BIG);
}

/* ---- The kernel ---- */

struct attempt {
	const char *name;
	long (*make)(void);
	uint32_t may; /* the roles that need it */
};

static long try_open(void)
{
	return syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY, 0);
}
static long try_open_to_write(void)
{
	return syscall(SYS_openat, AT_FDCWD, "/dev/null", O_WRONLY, 0);
}
static long try_open_to_make(void)
{
	return syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY | O_CREAT, 0600);
}
static long try_openat2(void)
{
	return syscall(437, AT_FDCWD, "/dev/null", NULL, 0);
}
static long try_socket(void)
{
	return syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
}
static long try_unix_socket(void)
{
	return syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0);
}
static long try_packet_socket(void)
{
	return syscall(SYS_socket, AF_PACKET, SOCK_RAW, 0);
}
static long try_connect(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(1)};

	return syscall(SYS_connect, 0, &a, sizeof(a));
}
static long try_execve(void)
{
	return syscall(SYS_execve, "/bin/true", NULL, NULL);
}
static long try_fork(void)
{
	long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	return pid;
}
static long try_clone3(void)
{
	return syscall(SYS_clone3, NULL, 0);
}
static long try_ptrace(void)
{
	return syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0);
}
static long try_read_memory(void)
{
	return syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0);
}
static long try_kill(void)
{
	return syscall(SYS_kill, getppid(), 0);
}
static long try_tgkill(void)
{
	return syscall(SYS_tgkill, getppid(), getppid(), 0);
}
static long try_mount(void)
{
	return syscall(SYS_mount, "none", "/", "tmpfs", MS_RDONLY, NULL);
}
static long try_bpf(void)
{
	return syscall(SYS_bpf, 0, NULL, 0);
}
static long try_perf_event_open(void)
{
	return syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0);
}
static long try_unshare(void)
{
	return syscall(SYS_unshare, 0);
}
static long try_setuid(void)
{
	return syscall(SYS_setresuid, -1, -1, -1);
}
static long try_executable_memory(void)
{
	return (long)mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
static long try_make_executable(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? 0 : mprotect(p, 4096, PROT_READ | PROT_EXEC);
}
static long try_type_keys(void)
{
	return ioctl(0, TIOCSTI, "x");
}
static long try_signal_by_owner(void)
{
	return fcntl(0, F_SETOWN, getppid());
}

#define NETWORK (1u << PEER_EXPORTER | 1u << PEER_FETCHER)

/* Each would succeed, or fail in another way, without a filter. */
static const struct attempt attempts[] = {
	{"openat", try_open, NETWORK | 1u << SANDBOX_OPENER},
	{"openat to write", try_open_to_write, NETWORK},
	{"openat to make a file", try_open_to_make, NETWORK},
	{"open with flags that a filter cannot see", try_openat2, 0},
	{"socket", try_socket, NETWORK},
	{"socket of AF_UNIX", try_unix_socket, 0},
	{"socket of AF_PACKET", try_packet_socket, 0},
	{"connect", try_connect, NETWORK},
	{"execve", try_execve, 0},
	{"fork", try_fork, 0},
	{"clone3", try_clone3, 0},
	{"ptrace", try_ptrace, 0},
	{"process_vm_readv", try_read_memory, 0},
	{"kill", try_kill, 0},
	{"tgkill", try_tgkill, 0},
	{"mount", try_mount, 0},
	{"bpf", try_bpf, 0},
	{"perf_event_open", try_perf_event_open, 0},
	{"unshare", try_unshare, 0},
	{"setresuid", try_setuid, 0},
	{"mmap of memory to be run", try_executable_memory, 0},
	{"mprotect of memory to be run", try_make_executable, 0},
	{"ioctl TIOCSTI", try_type_keys, 0},
	{"fcntl F_SETOWN", try_signal_by_owner, 0},
};

/* In a child with the filter: 0: refused; 1: not; 2: no filter here; 3: the name of a killer. */
static int outcome(enum peer who, enum sandbox_mode mode, const struct attempt *a)
{
	pid_t pid = fork();
	int status;

	CHECK_INT(pid, >=, 0);
	if (pid == 0) {
		int r;

		(void)close(0);
		(void)open("/dev/null", O_RDWR);
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
			_exit(2);
		r = sandbox_filter_calls(who, mode);
		if (r < 0)
			_exit(r == -EINVAL || r == -ENOSYS ? 2 : 4);
		errno = 0;
		r = a->make() < 0 && (errno == EPERM || errno == EAFNOSUPPORT || errno == ENOSYS);
		_exit(!r);
	}
	CHECK_INT(waitpid(pid, &status, 0), ==, pid);
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGSYS ? 3 : 5;
	return WEXITSTATUS(status);
}

static bool there_are_filters(void)
{
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
}

static void test_kernel_refuses(void)
{
	for (int who = 0; who < SANDBOX_N; who++) {
		for (size_t i = 0; i < ARRAY_SIZE(attempts); i++) {
			int was = outcome((enum peer)who, SANDBOX_ERRNO, &attempts[i]);
			bool may = attempts[i].may & (1u << who);

			if (was != may)
				fprintf(stderr, "%s: %s: %d\n", sandbox_name((enum peer)who),
					attempts[i].name, was);
			CHECK_INT(was, ==, may);
		}
	}
}

/* In the mode kill: each role, at what it would never call. */
static void test_kernel_kills(void)
{
	static const struct attempt never[] = {
		{"kill", try_kill, 0},	      {"execve", try_execve, 0},
		{"ptrace", try_ptrace, 0},    {"mount", try_mount, 0},
		{"bpf", try_bpf, 0},	      {"perf_event_open", try_perf_event_open, 0},
		{"setresuid", try_setuid, 0},
	};

	for (int who = 0; who < SANDBOX_N; who++) {
		for (size_t i = 0; i < ARRAY_SIZE(never); i++)
			CHECK_INT(outcome((enum peer)who, SANDBOX_KILL, &never[i]), ==, 3);
	}
}

/* ---- Files by name ---- */

static int can_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600), e = errno;

	(void)close_fd(fd);
	return fd >= 0 ? 0 : -e;
}

/* In a child: which files of the test's directory, and of the host, it can open. */
static void open_as(enum peer who, const char *directory)
{
	char own[64], cert[64], other[64], outside[64], made[64];
	int rules = sandbox_files_new(who), fd;
	bool network = sandbox_uses_network(who);

	(void)snprintf(own, sizeof(own), "%s/own", directory);
	(void)snprintf(cert, sizeof(cert), "%s/cert", directory);
	(void)snprintf(other, sizeof(other), "%s/other/file", directory);
	(void)snprintf(outside, sizeof(outside), "%s/new", directory);
	(void)snprintf(made, sizeof(made), "%s/own/file", directory);
	CHECK_INT(rules, >=, 0);
	fd = open(own, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(fd, >=, 0);
	(void)strcat(cert, "/ca.pem");
	if (network) {
		CHECK_INT(sandbox_files_keep(rules, fd), ==, 0);
		CHECK_INT(sandbox_files_read(rules, cert), ==, 0);
	}
	CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), ==, 0);
	CHECK_INT(sandbox_files_enforce(rules), >=, 1);

	CHECK_INT(can_open("/etc/passwd", O_RDONLY), ==, network ? 0 : -EACCES);
	CHECK_INT(can_open("/etc/passwd", O_RDWR), ==, -EACCES);
	CHECK_INT(can_open(other, O_RDONLY), ==, -EACCES);
	CHECK_INT(can_open(outside, O_WRONLY | O_CREAT), ==, -EACCES);
	CHECK_INT(can_open("/proc/self/status", O_RDONLY), ==, -EACCES);
	CHECK_INT(can_open(cert, O_RDONLY), ==, network ? 0 : -EACCES);
	CHECK_INT(can_open(cert, O_RDWR), ==, -EACCES);
	CHECK_INT(can_open(made, O_WRONLY | O_CREAT), ==, network ? 0 : -EACCES);
	if (network) {
		CHECK_INT(renameat(fd, "file", fd, "renamed"), ==, 0);
		CHECK_INT(can_open(made, O_RDONLY), ==, -ENOENT);
		CHECK_INT(unlinkat(fd, "renamed", 0), ==, 0);
	}
	_exit(0);
}

static void make_files(char *directory)
{
	char path[64];
	static const char *const directories[] = {"own", "cert", "other"};
	static const char *const files[] = {"cert/ca.pem", "other/file"};

	CHECK(mkdtemp(directory));
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", directory, directories[i]);
		CHECK_INT(mkdir(path, 0700), ==, 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", directory, files[i]);
		CHECK_INT(can_open(path, O_WRONLY | O_CREAT), ==, 0);
	}
}

static void test_files(void)
{
	char directory[32] = "/tmp/test-sandbox-XXXXXX", command[64];

	if (sandbox_files_version() < 0) {
		fprintf(stderr, "left out: this kernel has no Landlock\n");
		return;
	}
	make_files(directory);
	for (int who = 0; who < PEER_N; who++) {
		int status;
		pid_t pid = fork();

		CHECK_INT(pid, >=, 0);
		if (pid == 0)
			open_as((enum peer)who, directory);
		CHECK_INT(waitpid(pid, &status, 0), ==, pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	(void)snprintf(command, sizeof(command), "rm -r %s", directory);
	CHECK_INT(system(command), ==, 0);
}

/* ---- Ports ---- */

/* A server at a port of its own. */
static int listen_somewhere(struct sockaddr_in *ret)
{
	socklen_t n = sizeof(*ret);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*ret = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	CHECK_INT(bind(fd, (const struct sockaddr *)ret, sizeof(*ret)), ==, 0);
	CHECK_INT(listen(fd, 16), ==, 0);
	CHECK_INT(getsockname(fd, (struct sockaddr *)ret, &n), ==, 0);
	return fd;
}

static int can_connect(const struct sockaddr_in *to)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r = connect(fd, (const struct sockaddr *)to, sizeof(*to)) < 0 ? -errno : 0;

	(void)close(fd);
	return r;
}

static int can_wait(void)
{
	const struct sockaddr_in a = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r = bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 ? -errno : 0;

	(void)close(fd);
	return r;
}

static void connect_as(enum peer who, const struct sockaddr_in servers[4])
{
	bool network = sandbox_uses_network(who);
	char proxy[64];
	int rules;

	(void)snprintf(proxy, sizeof(proxy), "http://user:1@127.0.0.1:%u",
		       ntohs(servers[2].sin_port));
	CHECK_INT(setenv("https_proxy", proxy, 1), ==, 0);
	rules = sandbox_files_new(who);
	CHECK_INT(rules, >=, 0);
	if (network) {
		sandbox_files_use_proxies(rules);
		CHECK_INT(sandbox_files_connect(rules, ntohs(servers[0].sin_port)), ==, 0);
		CHECK_INT(sandbox_files_connect(rules, ntohs(servers[1].sin_port)), ==, 0);
	}
	CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), ==, 0);
	CHECK_INT(sandbox_files_enforce(rules), >=, 4);
	for (int i = 0; i < 4; i++)
		CHECK_INT(can_connect(&servers[i]), ==, network && i < 3 ? 0 : -EACCES);
	CHECK_INT(can_wait(), ==, -EACCES);
	_exit(0);
}

static void test_ports(void)
{
	struct sockaddr_in servers[4];
	int fds[4];

	CHECK_INT(sandbox_server_port("https://a/b:1"), ==, 443);
	CHECK_INT(sandbox_server_port("http://a"), ==, 80);
	CHECK_INT(sandbox_server_port("HTTPS://a:4318/"), ==, 4318);
	CHECK_INT(sandbox_proxy_port("a"), ==, 1080);
	CHECK_INT(sandbox_proxy_port("socks5h://a"), ==, 1080);
	CHECK_INT(sandbox_proxy_port("https://a"), ==, 443);
	if (sandbox_files_version() < 4) {
		fprintf(stderr, "left out: this kernel's Landlock knows no ports (Linux 6.7)\n");
		return;
	}
	for (int i = 0; i < 4; i++)
		fds[i] = listen_somewhere(&servers[i]);
	for (int who = 0; who < PEER_N; who++) {
		int status;
		pid_t pid = fork();

		CHECK_INT(pid, >=, 0);
		if (pid == 0)
			connect_as((enum peer)who, servers);
		CHECK_INT(waitpid(pid, &status, 0), ==, pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	for (int i = 0; i < 4; i++)
		(void)close(fds[i]);
}

/* What perfwalk check does. */
static void test_try(void)
{
	struct sandbox_tried t;

	for (int who = 0; who < SANDBOX_N; who++) {
		CHECK_INT(sandbox_try((enum peer)who, &t), ==, 0);
		CHECK_INT(t.seccomp_error, ==, 0);
		CHECK(sandbox_tried_name(t.passed) == NULL);
	}
	CHECK_STR(sandbox_tried_name(1), "open");
}

/* The mode for tests: the log has the name. */
static void test_trap_names(void)
{
	char text[512] = "";
	int status, out[2];
	ssize_t n;
	pid_t pid;

	CHECK_INT(pipe(out), ==, 0);
	pid = fork();
	CHECK_INT(pid, >=, 0);
	if (pid == 0) {
		(void)dup2(out[1], STDERR_FILENO);
		(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		(void)sandbox_filter_calls(PEER_PROFILER, SANDBOX_TRAP);
		(void)try_perf_event_open();
		_exit(0);
	}
	(void)close(out[1]);
	CHECK_INT(waitpid(pid, &status, 0), ==, pid);
	n = read(out[0], text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	(void)close(out[0]);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 159);
	CHECK(strstr(text, "sandbox: the call perf_event_open ("));
}

int main(void)
{
	RUN(test_program_is_table);
	RUN(test_program_of_any_table);
	RUN(test_too_long);
	RUN(test_files);
	RUN(test_ports);
#ifdef WITH_SANITIZERS
	/* Their run-time library makes calls of its own, at the end of a process at the latest. */
	fprintf(stderr, "left out: builds with sanitizers have no filters\n");
	return 0;
#endif
	if (!there_are_filters())
		SKIP("this kernel has no seccomp");
	if (outcome(PEER_METRICS, SANDBOX_ERRNO, &attempts[0]) == 2)
		SKIP("a process may not have a filter here");
	RUN(test_kernel_refuses);
	RUN(test_kernel_kills);
	RUN(test_try);
	RUN(test_trap_names);
	return 0;
}
