/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock: which files a process may open by name, whatever their modes are, and to which TCP
 * ports it may connect. Linux 5.13 and later; each later version has more rights, and we use only
 * those that the kernel has. System calls and flags are numbers here, because headers may be older
 * than the kernel.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/process/sandbox-internal.h"
#include "util/cleanup.h"
#include "util/text.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule	    445
#define SYS_landlock_restrict_self  446
#endif

#define CREATE_RULESET_VERSION 1
#define RULE_PATH_BENEATH      1
#define RULE_NET_PORT	       2 /* version 4 */

#define ACCESS_EXECUTE	    (UINT64_C(1) << 0)
#define ACCESS_WRITE_FILE   (UINT64_C(1) << 1)
#define ACCESS_READ_FILE    (UINT64_C(1) << 2)
#define ACCESS_READ_DIR	    (UINT64_C(1) << 3)
#define ACCESS_REMOVE_FILE  (UINT64_C(1) << 5)
#define ACCESS_MAKE_REG	    (UINT64_C(1) << 8)
#define ACCESS_OF_VERSION_1 ((UINT64_C(1) << 13) - 1)
#define ACCESS_REFER	    (UINT64_C(1) << 13) /* version 2 */
#define ACCESS_TRUNCATE	    (UINT64_C(1) << 14) /* 3 */
#define ACCESS_IOCTL_DEVICE (UINT64_C(1) << 15) /* 5 */
#define NET_BIND_TCP	    (UINT64_C(1) << 0)	/* 4 */
#define NET_CONNECT_TCP	    (UINT64_C(1) << 1)
#define DNS_PORT	    53
#define SCOPE_ABSTRACT_UNIX (UINT64_C(1) << 0) /* 6 */
#define SCOPE_SIGNAL	    (UINT64_C(1) << 1)

struct ruleset {
	uint64_t fs, net, scoped;
};

struct path_rule {
	uint64_t access;
	int32_t fd;
} __attribute__((packed));

struct port_rule {
	uint64_t access, port;
};

/* Files of the resolver and the TLS library, in the places of all distributions. */
static const char *const system_paths[] = {
	"/etc",
	"/usr",
	"/lib",
	"/lib64",
	"/nix/store",
	"/gnu/store",
	"/var/lib/ca-certificates",
	"/run/systemd/resolve",
	"/run/resolvconf",
	"/run/NetworkManager",
	"/dev/null",
	"/dev/random",
	"/dev/urandom",
	"/proc/sys",
	"/sys/devices/system/cpu",
};

int sandbox_files_version(void)
{
#ifdef WITH_SANITIZERS /* the check for leaks reads /proc/self at the end */
	return -EOPNOTSUPP;
#else
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, CREATE_RULESET_VERSION);

	return version < 0 ? -errno : (int)version;
#endif
}

/* All rights that this kernel knows. */
static uint64_t all_of(int version)
{
	return ACCESS_OF_VERSION_1 | (version >= 2 ? ACCESS_REFER : 0) |
	       (version >= 3 ? ACCESS_TRUNCATE : 0) | (version >= 5 ? ACCESS_IOCTL_DEVICE : 0);
}

static int add(int rules, int fd, uint64_t access)
{
	struct path_rule rule = {.access = access, .fd = fd};
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode)) /* other rights are refused for a file */
		rule.access &= ACCESS_EXECUTE | ACCESS_READ_FILE | ACCESS_WRITE_FILE;
	return syscall(SYS_landlock_add_rule, rules, RULE_PATH_BENEATH, &rule, 0) < 0 ? -errno : 0;
}

static int add_path(int rules, const char *path)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);

	return fd < 0 ? -errno
		      : add(rules, fd, ACCESS_EXECUTE | ACCESS_READ_FILE | ACCESS_READ_DIR);
}

int sandbox_files_read(int rules, const char *path)
{
	_cleanup_free_ char *real = realpath(path, NULL), *parent = strdup(path);
	const char *names[] = {parent, real};

	if (rules < 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char *slash = names[i] ? strrchr(names[i], '/') : NULL;

		/* The directory, because another file may replace this one. */
		if (slash && slash != names[i])
			*slash = '\0';
		if (slash)
			(void)add_path(rules, names[i]);
	}
	return real ? 0 : -ENOENT;
}

int sandbox_files_keep(int rules, int directory)
{
	int version = sandbox_files_version();

	if (rules < 0 || directory < 0)
		return 0;
	return add(rules, directory,
		   (ACCESS_READ_FILE | ACCESS_WRITE_FILE | ACCESS_READ_DIR | ACCESS_REMOVE_FILE |
		    ACCESS_MAKE_REG | ACCESS_REFER | ACCESS_TRUNCATE) &
			   all_of(version));
}

int sandbox_files_connect(int rules, uint16_t port)
{
	struct port_rule rule = {.access = NET_CONNECT_TCP, .port = port};

	if (rules < 0 || sandbox_files_version() < 4)
		return 0;
	return syscall(SYS_landlock_add_rule, rules, RULE_NET_PORT, &rule, 0) < 0 ? -errno : 0;
}

static uint16_t port_of(const char *url, uint16_t otherwise)
{
	uint16_t port = text_url_port(url);

	return port ? port : strncasecmp(url, "https:", 6) == 0 ? 443 : otherwise;
}

uint16_t sandbox_server_port(const char *url)
{
	return port_of(url, 80);
}

uint16_t sandbox_proxy_port(const char *url)
{
	return port_of(url, 1080);
}

/* Those that libcurl reads. */
void sandbox_files_use_proxies(int rules)
{
	static const char *const variables[] = {"http_proxy", "https_proxy", "HTTPS_PROXY",
						"all_proxy", "ALL_PROXY"};

	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		const char *url = getenv(variables[i]);

		if (url && *url)
			(void)sandbox_files_connect(rules, sandbox_proxy_port(url));
	}
}

static void add_system(int rules)
{
	static const char *const variables[] = {"SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE"};

	for (size_t i = 0; i < ARRAY_SIZE(system_paths); i++)
		(void)add_path(rules, system_paths[i]);
	/* Often a link to a file that is rewritten. */
	(void)sandbox_files_read(rules, "/etc/resolv.conf");
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		const char *path = getenv(variables[i]);

		if (path && *path == '/') {
			(void)add_path(rules, path);
			(void)sandbox_files_read(rules, path);
		}
	}
}

int sandbox_files_new(enum peer who)
{
	bool network = sandbox_uses_network(who);
	int version = sandbox_files_version(), rules;
	struct ruleset r = {
		.fs = all_of(version),
		.net = version < 4 ? 0 : NET_BIND_TCP | NET_CONNECT_TCP,
		.scoped = version < 6 ? 0 : SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL,
	};

	if (version < 0 || sandbox_makes_files(who))
		return version < 0 ? version : -ENOSYS;
	rules = (int)syscall(SYS_landlock_create_ruleset, &r,
			     version >= 6   ? sizeof(r)
			     : version >= 4 ? offsetof(struct ruleset, scoped)
					    : offsetof(struct ruleset, net),
			     0);
	if (rules < 0)
		return -errno;
	if (network) {
		add_system(rules);
		/* For DNS answers that are too long for UDP. */
		(void)sandbox_files_connect(rules, DNS_PORT);
	}
	return rules;
}

int sandbox_files_enforce(int rules)
{
	int version = sandbox_files_version();

	if (rules < 0)
		return rules;
	return syscall(SYS_landlock_restrict_self, rules, 0) < 0 ? -errno : version;
}
