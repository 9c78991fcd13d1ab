/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls of each role after its set-up, found by running all system tests in the mode
 * "trap". Each row is needed; where the reason is not obvious, the row gives it.
 *
 * The roles that read hostile files or draw on a terminal have no call that opens, connects,
 * starts, signals or traces. The two that use the network open files and sockets, because the
 * resolver and the TLS library do, and start threads, because names are resolved in one. The opener
 * opens the requested files, but only to read. The judge reads one open file.
 */
#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/fiemap.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "src/process/sandbox-internal.h"
#include "util/cleanup.h"

/* Calls that may be newer than the headers. */
#ifndef SYS_rseq
#ifdef __x86_64__
#define SYS_rseq 334
#else
#define SYS_rseq 293
#endif
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#define F_GET_SEALS 1034
#endif
#ifndef SYS_memfd_create
#ifdef __x86_64__
#define SYS_getrandom	 318
#define SYS_memfd_create 319
#else
#define SYS_getrandom	 278
#define SYS_memfd_create 279
#endif
#endif

#define P   (1u << PEER_PROFILER)
#define S   (1u << PEER_SYMBOLIZER)
#define E   (1u << PEER_EXPORTER)
#define F   (1u << PEER_FETCHER)
#define M   (1u << PEER_METRICS)
#define V   (1u << PEER_SCREEN)
#define R   (1u << PEER_READER)
#define O   (1u << SANDBOX_OPENER)
#define J   (1u << SANDBOX_JUDGE)
#define NET (E | F)
#define ALL (P | S | E | F | M | V | R)

#define CALL(roles, name)                                                                          \
	{                                                                                          \
		SYS_##name, roles, 0,                                                              \
		{                                                                                  \
			{0, 0, 0},                                                                 \
			{                                                                          \
				0, 0, 0                                                            \
			}                                                                          \
		}                                                                                  \
	}
#define FAIL(roles, name, error)                                                                   \
	{                                                                                          \
		SYS_##name, roles, error,                                                          \
		{                                                                                  \
			{0, 0, 0},                                                                 \
			{                                                                          \
				0, 0, 0                                                            \
			}                                                                          \
		}                                                                                  \
	}
/* An argument that the kernel takes as an int. */
#define ONLY(roles, name, argument, value)                                                         \
	{                                                                                          \
		SYS_##name, roles, 0,                                                              \
		{                                                                                  \
			{argument, UINT32_MAX, (uint32_t)(value)},                                 \
			{                                                                          \
				0, 0, 0                                                            \
			}                                                                          \
		}                                                                                  \
	}
/* Bits of an argument. */
#define BITS(roles, name, argument, mask, value)                                                   \
	{                                                                                          \
		SYS_##name, roles, 0,                                                              \
		{                                                                                  \
			{argument, mask, value},                                                   \
			{                                                                          \
				0, 0, 0                                                            \
			}                                                                          \
		}                                                                                  \
	}

/* A new thread, and none of the flags that make a process or a namespace. */
#define THREAD_MASK                                                                                \
	((uint32_t)(CLONE_THREAD | CLONE_VM | CLONE_SIGHAND | CLONE_NEWNS | CLONE_NEWUTS |         \
		    CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET |                   \
		    0x02000000u /* CLONE_NEWCGROUP */))
#define THREAD_VALUE ((uint32_t)(CLONE_THREAD | CLONE_VM | CLONE_SIGHAND))

/* The flags of an open that write, create or truncate a file. */
#define OPEN_MASK ((uint32_t)(O_ACCMODE | O_CREAT | O_TRUNC | 020000000u /* __O_TMPFILE */))

/* One mapping of /proc/PID/maps; in <linux/fs.h> since Linux 6.11. */
#ifndef PROCMAP_QUERY
#define PROCMAP_QUERY _IOC(_IOC_READ | _IOC_WRITE, 'f', 17, 104)
#endif

static const struct sandbox_call calls[] = {
	/* ---- All: the event loop, messages, memory, the log ---- */
	CALL(ALL, epoll_ctl),
	CALL(ALL, epoll_pwait),
	CALL(ALL, epoll_pwait2),
	CALL(ALL, ppoll),
	CALL(ALL, recvmsg),
	CALL(ALL, sendmsg),
	CALL(ALL, read),
	CALL(ALL, write),
	CALL(ALL, readv), /* musl's stdio */
	CALL(ALL, writev),
	CALL(ALL, pread64),
	CALL(ALL, close),
	CALL(ALL, fstat),
	BITS(ALL, newfstatat, 3, AT_EMPTY_PATH, AT_EMPTY_PATH), /* fstat() of older libraries */
	/* An open file's identity, without a wait for its server. */
	BITS(ALL, statx, 2, AT_EMPTY_PATH, AT_EMPTY_PATH),
	CALL(ALL, lseek),
	BITS(ALL, mmap, 2, PROT_EXEC, 0),
	BITS(ALL, mprotect, 2, PROT_EXEC, 0),
	CALL(ALL, munmap),
	CALL(ALL, mremap),
	CALL(ALL, madvise),
	CALL(ALL, brk),
	/* Not F_SETOWN, which makes the kernel send signals. */
	ONLY(ALL, fcntl, 1, F_DUPFD_CLOEXEC),
	ONLY(ALL, fcntl, 1, F_GETFD),
	ONLY(ALL, fcntl, 1, F_SETFD),
	ONLY(ALL, fcntl, 1, F_GETFL),
	ONLY(ALL, fcntl, 1, F_SETFL),
	ONLY(ALL, fcntl, 1, F_ADD_SEALS),
	ONLY(ALL, fcntl, 1, F_GET_SEALS),
	CALL(ALL, memfd_create),
	CALL(ALL, ftruncate),
	CALL(ALL, clock_gettime), /* where the vDSO has no clock */
	CALL(ALL, gettimeofday),
	CALL(ALL, nanosleep),
	CALL(ALL, clock_nanosleep),
	CALL(ALL, getrandom),
	CALL(ALL, futex),
	CALL(ALL, sched_yield),
	CALL(ALL, rt_sigaction),
	CALL(ALL, rt_sigprocmask),
	CALL(ALL, rt_sigreturn),
	CALL(ALL, restart_syscall),
	CALL(ALL, getpid),
	CALL(ALL, getppid),
	CALL(ALL, gettid),
	CALL(ALL, uname),
	CALL(ALL, sysinfo), /* qsort() asks how much memory there is */
	/* Reading limits, of ourselves. */
	{SYS_prlimit64, ALL, 0, {{0, UINT32_MAX, 0}, {2, UINT64_MAX, 0}}},
	CALL(ALL, getrlimit),
	/* musl's stdio checks whether a file that it writes is a terminal. */
	ONLY(ALL, ioctl, 1, TIOCGWINSZ),
	CALL(ALL, exit),
	CALL(ALL, exit_group),
#ifdef __x86_64__
	CALL(ALL, epoll_wait),
	CALL(ALL, poll),
	CALL(ALL, time),
#endif

	/* ---- Those that read hostile files ---- */
	ONLY(P, ioctl, 1, PERF_EVENT_IOC_ID), /* of a new event, to know its records */
	ONLY(P, ioctl, 1, PROCMAP_QUERY),
	ONLY(R, ioctl, 1, PERF_EVENT_IOC_PERIOD), /* when its CPU is sampled next */
	CALL(R, getrusage), /* how often the kernel took it off its CPU */
	CALL(S, pwrite64),
	CALL(S, dup), /* compressed files are read through a copy of their descriptor */

	/* ---- For roles that print: is standard output a terminal? ---- */
	ONLY(S | V, ioctl, 1, TCGETS),
	ONLY(V, ioctl, 1, TCSETS),
	ONLY(V, ioctl, 1, TCSETSW),
	ONLY(V, ioctl, 1, TCSETSF),
	CALL(V, pselect6),
#ifdef __x86_64__
	CALL(V, select),
#endif

	/* ---- Those with sockets ---- */
	CALL(M | NET, getsockopt),
	CALL(M | NET, setsockopt),
	CALL(M | NET, getsockname),
	CALL(M | NET, recvfrom),
	CALL(M | NET, sendto),
	CALL(M | NET, shutdown),
	CALL(M, accept4),

	/* ---- Those with the network: libcurl, the resolver, TLS, and their directories ---- */
	ONLY(NET, socket, 0, AF_INET),
	ONLY(NET, socket, 0, AF_INET6),
	/* The resolver tries to ask the kernel for this host's addresses, and name caches. */
	FAIL(NET, socket, EAFNOSUPPORT),
	CALL(NET, socketpair), /* of the threads that resolve */
	CALL(NET, connect),
	CALL(NET, bind),
	CALL(NET, getpeername),
	CALL(NET, sendmmsg),
	CALL(NET, recvmmsg),
	ONLY(NET, ioctl, 1, FIONBIO),
	ONLY(NET, ioctl, 1, FIONREAD),
	CALL(NET, timerfd_create),
	CALL(NET, timerfd_settime),
	CALL(NET, eventfd2),
	CALL(NET, pipe2),
	BITS(NET, clone, 0, THREAD_MASK, THREAD_VALUE),
	/* a filter cannot see its flags; libraries fall back to clone() */
	FAIL(NET, clone3, ENOSYS),
	CALL(NET, set_robust_list),
	CALL(NET, membarrier), /* musl, when a module with thread-local variables is loaded */
	CALL(NET, rseq),
	CALL(NET, sched_getaffinity),
	CALL(NET, getuid),
	CALL(NET, geteuid),
	CALL(NET, getgid),
	CALL(NET, getegid),
	CALL(NET, openat),
	FAIL(NET, openat2, ENOSYS),
	CALL(NET, newfstatat),
	CALL(NET, faccessat),
	CALL(NET, faccessat2),
	CALL(NET, readlinkat),
	CALL(NET, getdents64),
	CALL(NET, statfs),
	CALL(NET, fstatfs),
	CALL(NET, unlinkat),
#ifdef SYS_renameat
	CALL(NET, renameat),
#else
	CALL(NET, renameat2),
#endif
	CALL(NET, fsync),
	CALL(NET, fdatasync),
	CALL(NET, fallocate),
	/*
	 * The resolver loads modules when it looks up a name; writable memory is never executable.
	 */
	{SYS_mmap, NET, 0, {{2, PROT_EXEC | PROT_WRITE, PROT_EXEC}, {3, MAP_ANONYMOUS, 0}}},
	CALL(F, flock),
	CALL(F, utimensat),
	CALL(F, linkat),
#ifdef __x86_64__
	CALL(NET, open),
	CALL(NET, stat),
	CALL(NET, lstat),
	CALL(NET, access),
	CALL(NET, readlink),
	CALL(NET, pipe),
	CALL(NET, rename),
	CALL(NET, unlink),
#endif

	/*
	 * ---- The opener's, from its first request on: looks, opens to read, passes on ----
	 *
	 * The arguments of openat2() are in memory, where a filter cannot see them: without that
	 * call the opener walks from directory to directory by itself.
	 */
	BITS(O, openat, 2, OPEN_MASK, O_RDONLY),
	FAIL(O, openat2, ENOSYS),
	CALL(O, recvmsg),
	CALL(O, sendmsg),
	CALL(O, read),
	CALL(O | J, pread64),
	CALL(O | J, write), /* the log; what a blocked thread's stack holds */
	CALL(O, memfd_create),
	CALL(O, lseek), /* back to the beginning of a copy */
	CALL(O | J, close),
	CALL(O, fstat),
	CALL(O, statx),
	CALL(O, newfstatat),
	CALL(O, fstatfs),
	ONLY(O, ioctl, 1, FS_IOC_FIEMAP), /* without flags it changes nothing */
	CALL(O, readlinkat),
	ONLY(O, fcntl, 1, F_DUPFD_CLOEXEC),
	ONLY(O, fcntl, 1, F_GETFD), /* these two: musl, at each open and fstat */
	ONLY(O, fcntl, 1, F_SETFD),
	BITS(O | J, mmap, 2, PROT_EXEC, 0),
	BITS(O, mprotect, 2, PROT_EXEC, 0), /* memory of musl's malloc */
	CALL(O | J, munmap),
	CALL(O, mremap),
	CALL(O, madvise), /* freed memory is given back */
	CALL(O | J, brk),
	CALL(O | J, getrandom), /* glibc's malloc, when it begins */
	CALL(O, clock_gettime), /* where the vDSO has no clock */
	CALL(O, getpid),
	CALL(O, getppid),
	CALL(O, geteuid), /* does the kernel itself refuse what our user may not read? */
	CALL(O | J, rt_sigreturn),
	CALL(O | J, restart_syscall),
	CALL(O | J, exit_group),
#ifdef __x86_64__
	BITS(O, open, 1, OPEN_MASK, O_RDONLY),
	CALL(O, readlink),
	CALL(O, stat), /* of older libraries */
#endif
};

const struct sandbox_call *sandbox_calls(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(calls);
	return calls;
}
