/* SPDX-License-Identifier: Apache-2.0 */
/* perfwalk check: what this user may, by capabilities, settings, filters and namespaces. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/broker/limits.h"
#include "src/cmd/check.h"
#include "src/config/config.h"
#include "src/process/privileges.h"
#include "src/process/sandbox.h"
#include "util/cleanup.h"

/* The inode number is fixed in the kernel (include/linux/proc_ns.h). */
#define FIRST_USER_NAMESPACE 0xEFFFFFFDu

bool check_in_user_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/user", &st) == 0 && st.st_ino != FIRST_USER_NAMESPACE;
}

bool check_has_capability(const struct check *c, int capability)
{
	return sample_has_capability(&c->circumstances, capability) && !check_in_user_namespace();
}

#define PARANOID "kernel.perf_event_paranoid"

/* Root with few capabilities, in a container or in the unit. */
static void say_refusal(struct check *c)
{
	int level = sample_paranoid_remedy(&c->circumstances, -1);
	char text[256];

	(void)snprintf(text, sizeof(text),
		       "give it CAP_SYS_ADMIN (in a container: --cap-add=SYS_ADMIN; in the systemd "
		       "unit: " SAMPLE_UNIT_ANEW "), or: sysctl " PARANOID "=%d",
		       level);
	check_say_fix(text);
	if (level > 0)
		check_add_sysctl(c, PARANOID, level);
}

void check_say_paranoid(struct check *c)
{
	long paranoid = c->circumstances.paranoid;
	bool admin = check_has_capability(c, SAMPLE_CAP_SYS_ADMIN);
	bool perfmon = check_has_capability(c, SAMPLE_CAP_PERFMON);

	if (paranoid == LONG_MIN && (c->host == 0 || c->own == 0)) {
		check_say(CHECK_NOTE, "paranoid",
			  "kernel.perf_event_paranoid cannot be read (/proc/sys)");
		return;
	}
	if (paranoid == LONG_MIN) {
		check_say(CHECK_BAD, "perf events",
			  "this kernel has no perf events (no kernel.perf_event_paranoid)");
		check_say_fix("boot a kernel with CONFIG_PERF_EVENTS");
		return;
	}
	/* Level 3 is Debian's, 4 Ubuntu's; the trial decides, not the number. */
	if (admin || (perfmon && (paranoid < 3 || c->host == 0)))
		check_say(CHECK_OK, "paranoid",
			  "kernel.perf_event_paranoid is %ld, which %s overrides", paranoid,
			  admin ? "CAP_SYS_ADMIN" : "CAP_PERFMON");
	else if (paranoid <= 0)
		check_say(CHECK_OK, "paranoid",
			  "kernel.perf_event_paranoid is %ld: everybody may sample", paranoid);
	else {
		check_say(CHECK_BAD, "paranoid", "kernel.perf_event_paranoid is %ld: %s", paranoid,
			  c->own < 0 && !c->circumstances.seccomp_refusal
				  ? "nothing without CAP_SYS_ADMIN"
			  : paranoid > 1 ? "own processes only, and no kernel frames"
					 : "own processes only");
		if (paranoid > 2)
			check_say_fix("a value of Debian's and Ubuntu's kernels, set in "
				      "/etc/sysctl.d or built in");
		if (c->circumstances.paranoid_refusal && geteuid() == 0)
			say_refusal(c);
		else
			check_say_fix(geteuid() != 0 ? "run as root, or: sysctl " PARANOID "=0"
				      : c->circumstances.has_perfmon
					      ? "give it CAP_PERFMON or CAP_SYS_ADMIN (in a "
						"container: --privileged, or "
						"--cap-add), or: sysctl " PARANOID "=0"
					      : "give it CAP_SYS_ADMIN (in a container: "
						"--cap-add=SYS_ADMIN), or: sysctl " PARANOID "=0");
		if (geteuid() != 0 && !c->circumstances.seccomp_refusal)
			check_add_command(c, "perfwalk record -a");
	}
}

void check_say_capabilities(const struct check *c)
{
	static const struct {
		int number;
		const char *name, *without;
	} wanted[] = {
		{SAMPLE_CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "no mappings of other users' processes"},
		{SAMPLE_CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", "no files of other users"},
		{SAMPLE_CAP_IPC_LOCK, "CAP_IPC_LOCK", "rings count against a quota"},
	};
	char text[256] = "";

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		size_t n = strlen(text);

		if (!check_has_capability(c, wanted[i].number))
			(void)snprintf(text + n, sizeof(text) - n, "%s%s (%s)", n ? ", " : "",
				       wanted[i].name, wanted[i].without);
	}
	if (!*text) {
		check_say(CHECK_OK, "capabilities", "all that help");
		return;
	}
	check_say(CHECK_NOTE, "capabilities", "without %s", text);
	check_say_fix(c->circumstances.manager
			      ? "run as root; what this container lacks is at the end"
			      : "run as root; in a container: --privileged, or --cap-add for each");
}

void check_say_seccomp(const struct check *c)
{
	int e = c->circumstances.seccomp_refusal;

	if (e) {
		check_say(CHECK_BAD, "seccomp", "a filter refuses perf_event_open (%s)",
			  strerror(e));
		check_say_fix(c->circumstances.manager
				      ? "allow perf_event_open in the container's filter"
				      : "allow perf_event_open in the container's profile: "
					"--security-opt seccomp=FILE or unconfined, or "
					"--privileged");
	} else if (c->circumstances.seccomp > 0)
		check_say(CHECK_OK, "seccomp", "a filter is in force, but allows perf_event_open");
	else
		check_say(CHECK_OK, "seccomp", "no filter");
}

static void add_name(char *list, size_t size, enum peer who)
{
	size_t n = strlen(list);

	(void)snprintf(list + n, size - n, "%s%s", n ? ", " : "", sandbox_name(who));
}

/* version: or -errno. */
static void say_landlock(int version)
{
	if (version < 0) {
		check_say(CHECK_NOTE, "sandbox",
			  "no Landlock (%s): files are limited by the filters and the user alone",
			  strerror(-version));
		check_say_fix(
			version == -EOPNOTSUPP ? "boot with landlock in lsm= besides what "
						 "/sys/kernel/security/lsm has"
			: version == -ENOSYS
				? "boot Linux 5.13 or later with CONFIG_SECURITY_LANDLOCK"
				: "in a container, its own filter has to allow the system calls "
				  "landlock_*");
	} else
		check_say(CHECK_OK, "sandbox", "Landlock (version %d) limits what each may open",
			  version);
}

/* Not deduced: each role is taken on by a process that then tries to get out. */
void check_say_sandbox(const struct check *c)
{
	struct sandbox_tried t;
	int landlock = -ENOSYS;
	char roles[128] = "", without[64] = "";

	if (sandbox_choose_mode(SANDBOX_ERRNO) == SANDBOX_NO) {
		check_say(CHECK_NOTE, "sandbox", "no system call filters: %s",
			  sandbox_choose_mode(SANDBOX_KILL) == SANDBOX_NO &&
					  !getenv("PERFWALK_SECCOMP")
				  ? "this build has sanitizers, which do not work under them"
				  : "PERFWALK_SECCOMP says no");
		return;
	}
	if (c->circumstances.emulated) {
		check_say(CHECK_NOTE, "sandbox", "no system call filters: an emulator has none");
		check_say_fix("run perfwalk outside of it");
		return;
	}
	for (int who = 0; who < SANDBOX_N; who++) {
		int r;

		if (sandbox_makes_files((enum peer)who)) {
			add_name(without, sizeof(without), (enum peer)who);
			continue;
		}
		r = sandbox_try((enum peer)who, &t);
		if (r == 0)
			r = t.seccomp_error;
		if (r < 0) {
			check_say(CHECK_NOTE, "sandbox", "no system call filter for the %s: %s",
				  sandbox_name((enum peer)who), strerror(-r));
			check_say_fix(
				"boot a kernel with CONFIG_SECCOMP_FILTER; in a container, its own "
				"filter has to allow seccomp and prctl");
			return;
		}
		if (t.passed) {
			check_say(CHECK_BAD, "sandbox", "the filter of the %s lets %s through",
				  sandbox_name((enum peer)who), sandbox_tried_name(t.passed));
			check_say_fix("report this kernel");
			return;
		}
		add_name(roles, sizeof(roles), (enum peer)who);
		if (who != SANDBOX_OPENER)
			landlock = t.landlock;
	}
	check_say(CHECK_OK, "sandbox", "filters hold in %s", roles);
	if (*without)
		check_say(CHECK_NOTE, "sandbox",
			  "no filter in %s: before Linux 3.17 they make files in /dev/shm by name",
			  without);
	say_landlock(landlock);
	if (geteuid() != 0)
		check_say(CHECK_NOTE, "sandbox",
			  "not root: all processes run as this user, none is without the network");
}

/* The daemon's config, or where it has none, or none that this user may read, the default one. */
static struct config *load_config(void)
{
	FILE *quiet = fopen("/dev/null", "we");
	struct config *c = NULL;

	if (quiet && (!config_exists(CONFIG_DEFAULT_FILE) ||
		      config_load(&c, CONFIG_DEFAULT_FILE, false, quiet) < 0))
		(void)config_load(&c, NULL, false, quiet);
	if (quiet)
		(void)fclose(quiet);
	return c;
}

static bool user_exists(const char *name)
{
	const char *found = NULL;
	uint32_t uid, gid;

	return privileges_find_user(name, &uid, &gid, &found) == 0 && strcmp(name, found) == 0;
}

/* A package makes them; an archive and make install cannot. A capture needs neither. */
void check_say_users(struct check *c)
{
	_cleanup_(config_freep) struct config *config = load_config();
	bool has_user, has_network_user;

	if (!config || geteuid() != 0)
		return;
	has_user = user_exists(config->user);
	has_network_user = user_exists(config->network_user);
	if (has_user && has_network_user) {
		check_say(CHECK_OK, "users", "the daemon's processes run as %s and %s",
			  config->user, config->network_user);
		return;
	}
	if (!has_user)
		check_say(CHECK_NOTE, "users",
			  "%s does not exist: processes of the daemon run as nobody, as other "
			  "programs may",
			  config->user);
	else
		check_say(CHECK_NOTE, "users",
			  "%s does not exist: processes with the network run as %s, who may read "
			  "stacks",
			  config->network_user, config->user);
	check_say_fix("systemd-sysusers, or useradd --system for each");
	if (!has_user)
		check_add_command(c, "useradd --system %s", config->user);
	if (!has_network_user)
		check_add_command(c, "useradd --system %s", config->network_user);
}

static void list_limits(const struct limits_basis *basis, char *ret, size_t size)
{
	*ret = '\0';
	for (int who = 0; who < SANDBOX_N; who++) {
		struct privileges p = {.max_data = 0};
		size_t n = strlen(ret);

		limits_set(&p, (enum limits_role)who, basis);
		if (p.max_data && who != PEER_SCREEN) /* the daemon has none */
			(void)snprintf(ret + n, size - n, "%s%s %llu", n ? ", " : "",
				       sandbox_name((enum peer)who),
				       (unsigned long long)(p.max_data >> 20));
	}
}

void check_say_limits(const struct check *c)
{
	_cleanup_(config_freep) struct config *config = load_config();
	uint32_t n_cpus = c->n_cpus > 0 ? (uint32_t)c->n_cpus : 1;
	struct limits_basis basis;
	char roles[256], fix[128];
	unsigned long long bytes, mib;

	if (!config)
		return;
	basis = limits_basis_of(config, n_cpus, n_cpus);
	bytes = limits_memory_of_all(&basis, n_cpus);
	mib = (bytes >> 20) + (bytes % (1 << 20) != 0);
	list_limits(&basis, roles, sizeof(roles));
	if (!*roles) {
		check_say(CHECK_NOTE, "limits", "none: this build has sanitizers");
	} else if (bytes <= LIMITS_UNIT_BYTES) {
		check_say(CHECK_OK, "limits",
			  "memory in MiB: %s; at most %llu together, with %zu destinations", roles,
			  mib, config->n_exports);
	} else {
		check_say(CHECK_NOTE, "limits",
			  "at most %llu MiB of memory together, with %zu destinations and a reader "
			  "on each of %u CPUs: more than the unit's %llu",
			  mib, config->n_exports, n_cpus, LIMITS_UNIT_BYTES >> 20);
		(void)snprintf(fix, sizeof(fix),
			       "systemctl edit perfwalk, and there: [Service] MemoryMax=%lluM",
			       mib);
		check_say_fix(fix);
	}
}

void check_say_lockdown(void)
{
	_cleanup_close_ int fd = open("/sys/kernel/security/lockdown", O_RDONLY | O_CLOEXEC);
	char text[128];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0) {
		check_say(CHECK_OK, "lockdown", "%s",
			  access("/sys/kernel/security/lockdown", F_OK) == 0
				  ? "this user cannot read it"
				  : "not visible (/sys/kernel/security)");
		return;
	}
	text[n] = '\0';
	if (tracefs_is_locked_down()) {
		check_say(CHECK_NOTE, "lockdown",
			  "confidentiality: no tracefs, and so no tracepoints");
		check_say_fix("boot with lockdown=integrity for what needs them");
	} else
		check_say(CHECK_OK, "lockdown", "%s",
			  strstr(text, "[integrity]") ? "integrity" : "none");
}

void check_say_namespaces(const struct check *c)
{
	if (check_in_user_namespace()) {
		check_say(CHECK_NOTE, "user namespace",
			  "not the host's: capabilities in it have no effect");
		check_say_fix("run as root of the host, not in a rootless container");
	}
	if (!sample_sees_all_processes()) {
		check_say(CHECK_NOTE, "pid namespace",
			  "not the host's: processes outside have no names");
		check_say_fix(sample_processes_remedy(&c->circumstances));
	} else
		check_say(CHECK_OK, "pid namespace", "the host's");
}

void check_say_kernel_names(struct check *c)
{
	bool syslog = sample_has_capability(&c->circumstances, SAMPLE_CAP_SYSLOG);
	FILE *f = fopen("/proc/kallsyms", "re");
	unsigned long long address = 0;
	char text[512];
	long restriction;

	for (int i = 0; f && i < 64 && !address && fgets(text, sizeof(text), f); i++)
		address = strtoull(text, NULL, 16);
	if (f)
		(void)fclose(f);
	if (address) {
		check_say(CHECK_OK, "kernel names", "/proc/kallsyms has addresses");
		return;
	}
	restriction = check_read_number("/proc/sys/kernel/kptr_restrict", -1);
	check_say(CHECK_NOTE, "kernel names",
		  "/proc/kallsyms is hidden (kernel.kptr_restrict is %ld, " PARANOID " %ld)",
		  restriction, check_read_number("/proc/sys/kernel/perf_event_paranoid", -1));
	/* At 0 the kernel also shows it to those who may sample the kernel without a capability. */
	(void)snprintf(text, sizeof(text), "%s%s%s",
		       syslog		? ""
		       : geteuid() == 0 ? "give it CAP_SYSLOG"
					: "run as root or with CAP_SYSLOG",
		       syslog		  ? ""
		       : restriction > 1  ? ", and: "
		       : restriction == 0 ? ", or: sysctl kernel.perf_event_paranoid=1"
					  : "",
		       restriction > 1 ? "sysctl kernel.kptr_restrict=1" : "");
	if (*text)
		check_say_fix(text);
	if (restriction > 1)
		check_add_sysctl(c, "kernel.kptr_restrict", 1);
}
