/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/capability.h>

#include "src/process/privileges.h"
#include "util/cleanup.h"

#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40 /* Linux 5.9 */
#endif

#ifndef PR_CAP_AMBIENT
#define PR_CAP_AMBIENT		 47 /* Linux 4.3 */
#define PR_CAP_AMBIENT_CLEAR_ALL 4
#endif

int privileges_find_user(const char *name, uint32_t *ret_uid, uint32_t *ret_gid,
			 const char **ret_name)
{
	const char *const names[] = {name, "nobody"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct passwd *pw = names[i] ? getpwnam(names[i]) : NULL;

		if (pw && pw->pw_uid != 0) {
			*ret_uid = pw->pw_uid;
			*ret_gid = pw->pw_gid;
			*ret_name = names[i];
			return 0;
		}
	}
	return -ENOENT;
}

static int set_limit(int resource, uint64_t value)
{
	struct rlimit have, want = {.rlim_cur = value, .rlim_max = value};

	if (getrlimit((__rlimit_resource_t)resource, &have) < 0)
		return -errno;
	/* Only lowers limits: raising needs CAP_SYS_RESOURCE, which root in a container lacks. */
	if (have.rlim_max != RLIM_INFINITY && value > have.rlim_max)
		want.rlim_cur = want.rlim_max = have.rlim_max;
	return setrlimit((__rlimit_resource_t)resource, &want) < 0 ? -errno : 0;
}

/* The first addresses may be 0 (per-CPU variables), but not all of so many bytes. */
#define KALLSYMS_LOOK_BYTES 4096

bool privileges_kallsyms_need_them(int fd)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct have[2] = {{0}, {0}}, less[2];
	char with[KALLSYMS_LOOK_BYTES], without[KALLSYMS_LOOK_BYTES];
	ssize_t n = pread(fd, with, sizeof(with), 0), m;

	if (n <= 0 || syscall(SYS_capget, &header, have) < 0)
		return false;
	memcpy(less, have, sizeof(less));
	less[CAP_TO_INDEX(CAP_SYSLOG)].effective &= ~CAP_TO_MASK(CAP_SYSLOG);
	if (syscall(SYS_capset, &header, less) < 0)
		return false;
	m = pread(fd, without, sizeof(without), 0);
	/* Restoring is always allowed. */
	(void)syscall(SYS_capset, &header, have);
	return m != n || memcmp(with, without, (size_t)n) != 0;
}

int privileges_leave_network(void)
{
	return unshare(CLONE_NEWNET) < 0 ? -errno : 0;
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}, {0}};

	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0,
		    0); /* EINVAL before Linux 4.3 */
	return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

static bool has(const struct __user_cap_data_struct *have, int capability)
{
	return (have[CAP_TO_INDEX(capability)].permitted & CAP_TO_MASK(capability)) != 0;
}

int privileges_keep_opening(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct have[2] = {{0}, {0}}, keep[2] = {{0}, {0}};
	/* The last is for /proc/PID/map_files; before Linux 5.9 that was CAP_SYS_ADMIN. */
	int wanted[] = {CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE};

	if (syscall(SYS_capget, &header, have) < 0)
		return -errno;
	if (!has(have, CAP_CHECKPOINT_RESTORE))
		wanted[2] = CAP_SYS_ADMIN;
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		if (has(have, wanted[i]))
			keep[CAP_TO_INDEX(wanted[i])].permitted |= CAP_TO_MASK(wanted[i]);
	}
	keep[0].effective = keep[0].permitted;
	keep[1].effective = keep[1].permitted;
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capset, &header, keep) < 0)
		return -errno;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

/* A log file may be larger than any limit: it has grown before, or other programs write to it. */
static bool logs_to_file(void)
{
	struct stat out, err;

	return (fstat(STDOUT_FILENO, &out) == 0 && S_ISREG(out.st_mode)) ||
	       (fstat(STDERR_FILENO, &err) == 0 && S_ISREG(err.st_mode));
}

int privileges_set_limits(const struct privileges *p)
{
	int r;

	if (p->max_open_files)
		(void)set_limit(RLIMIT_NOFILE, p->max_open_files);
	if (p->max_file_bytes && !logs_to_file())
		(void)set_limit(RLIMIT_FSIZE, p->max_file_bytes);
	if (p->max_data) {
		r = set_limit(RLIMIT_DATA, p->max_data);
		if (r < 0)
			return r;
	}
	if (p->max_address_space) {
		r = set_limit(RLIMIT_AS, p->max_address_space);
		if (r < 0)
			return r;
	}
	return p->no_tasks ? set_limit(RLIMIT_NPROC, 0) : 0;
}

int privileges_read_limits(pid_t pid, struct privileges_limits *ret)
{
	const struct {
		int resource;
		uint64_t *to;
	} all[] = {
		{RLIMIT_DATA, &ret->data_bytes},  {RLIMIT_AS, &ret->address_space_bytes},
		{RLIMIT_FSIZE, &ret->file_bytes}, {RLIMIT_NOFILE, &ret->open_files},
		{RLIMIT_NPROC, &ret->tasks},
	};
	struct rlimit limits[ARRAY_SIZE(all)];

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (prlimit(pid, (__rlimit_resource_t)all[i].resource, NULL, &limits[i]) < 0)
			return -errno;
	}
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		*all[i].to = limits[i].rlim_cur == RLIM_INFINITY ? UINT64_MAX : limits[i].rlim_cur;
	return 0;
}

int privileges_drop(const struct privileges *p)
{
	int r;

	(void)set_limit(RLIMIT_CORE, 0);
	r = privileges_set_limits(p);
	if (r < 0)
		return r;
	if (p->uid != (uint32_t)-1) {
		/* The bounding set needs CAP_SETPCAP, so it comes first; EINVAL ends the list. */
		for (unsigned long cap = 0; prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0; cap++)
			;
		if (setgroups(0, NULL) < 0 || setresgid(p->gid, p->gid, p->gid) < 0 ||
		    setresuid(p->uid, p->uid, p->uid) < 0)
			return -errno;
		if (setresuid(0, 0, 0) == 0)
			return -EPERM; /* we could become root again: refuse to run */
	}
	r = drop_capabilities();
	if (r < 0)
		return r;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);

	/* Changing credentials clears this, so it comes last; the parent may be gone already. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return -errno;
	if ((uint32_t)getppid() != p->parent_pid)
		return -ESRCH;
	return 0;
}

void privileges_hide_memory(void)
{
	(void)set_limit(RLIMIT_CORE, 0);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

void privileges_raise_open_files(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &l);
	}
}

void privileges_limit_data(uint64_t bytes)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_DATA, &l) < 0 || l.rlim_cur < bytes)
		return;
	l.rlim_cur = bytes;
	(void)setrlimit(RLIMIT_DATA, &l);
}
