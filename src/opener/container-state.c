/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where container engines store the name of a container. We do not ask the engine: access to its
 * socket is as good as root, and it may be busy. We open files only in the engines' own
 * directories, which belong to root, by an id of digits. Another process reads the files, since
 * users choose the labels and environments in them.
 *
 *	docker		/var/lib/docker/containers/ID/config.v2.json
 *	containerd	/run/containerd/io.containerd.runtime.v2.task/NAMESPACE/ID/config.json (also
 *			under a kubelet)
 *	cri-o		/run/containers/storage/DRIVER-containers/ID/userdata/config.json
 *	podman		the command line of the container's conmon; conmon.pid there has its pid
 *			(podman's own config.json has no name in it)
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/opener/opener.h"
#include "util/cleanup.h"
#include "util/text.h"

#define DOCKER	   "/var/lib/docker/containers"
#define CONTAINERD "/run/containerd/io.containerd.runtime.v2.task"
#define STORAGE	   "/run/containers/storage"

#define MAX_ID_BYTES   64
#define MAX_NAMESPACES 256 /* of containerd */

static bool is_id(const char *id)
{
	size_t n = strspn(id, "0123456789abcdef-");

	return n >= 32 && n <= MAX_ID_BYTES && !id[n] && id[0] != '-';
}

static int open_containerd(const char *id)
{
	const struct dirent *entry;
	int fd = -ENOENT;
	DIR *d = opendir(CONTAINERD);

	for (int i = 0; d && fd < 0 && i < MAX_NAMESPACES && (entry = readdir(d)); i++) {
		char path[512];

		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), CONTAINERD "/%s/%s/config.json", entry->d_name,
			       id);
		fd = opener_regular_file(path);
	}
	if (d)
		(void)closedir(d);
	return fd;
}

/* Opens the command line of the process with the pid in that file. */
static int open_command_line(const char *pid_file)
{
	_cleanup_close_ int fd = opener_regular_file(pid_file);
	char text[32], path[64];
	uint64_t pid;
	ssize_t n;

	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return fd < 0 ? fd : -ENODATA;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (text_parse_u64(text, 1, UINT32_MAX, &pid) < 0)
		return -EBADMSG;
	(void)snprintf(path, sizeof(path), "/proc/%u/cmdline", (unsigned int)pid);
	fd = close_fd(fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : TAKE_FD(fd);
}

static int open_conmon(const char *id)
{
	static const char *const drivers[] = {"overlay", "vfs", "btrfs", "zfs"};
	int fd = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(drivers) && fd < 0; i++) {
		char path[256];

		/* cri-o's has pod and name; podman has the name elsewhere. */
		(void)snprintf(path, sizeof(path), STORAGE "/%s-containers/%s/userdata/config.json",
			       drivers[i], id);
		fd = opener_regular_file(path);
		if (fd >= 0)
			break;
		(void)snprintf(path, sizeof(path), STORAGE "/%s-containers/%s/userdata/conmon.pid",
			       drivers[i], id);
		fd = open_command_line(path);
	}
	return fd;
}

int opener_container_state(const char *id)
{
	char path[256];
	int fd;

	if (!is_id(id))
		return -EINVAL;
	(void)snprintf(path, sizeof(path), DOCKER "/%s/config.v2.json", id);
	fd = opener_regular_file(path);
	if (fd < 0)
		fd = open_containerd(id);
	return fd < 0 ? open_conmon(id) : fd;
}
