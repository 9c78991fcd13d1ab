/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process says of itself: the variables of its environment that are named here, and the
 * process context that an OpenTelemetry SDK publishes (OTEP 4719): a mapping of that name with a
 * header, which says where in its memory the text is and when it was written. Nothing else of the
 * environment or of the memory leaves this process. The bytes are a stranger's, and are not looked
 * at here.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "src/opener/internal.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/memory-file.h"

#define MAX_VARIABLE_BYTES    8192
#define MAX_ENVIRONMENT_BYTES (256 * 1024)
#define START_TOLERANCE_NS    (50 * NSEC_PER_MSEC) /* it may come from a fork record */
#define MAX_TRIES	      3			   /* the process may be writing it */
#define VERSION		      2

/* As OTEP 4719 has it, in the byte order of the host. */
struct context_header {
	char signature[8];
	uint32_t version, n_payload;
	uint64_t published_ns; /* 0: it is being written */
	uint64_t payload;
};

static const char signature[8] = {'O', 'T', 'E', 'L', '_', 'C', 'T', 'X'};

/* ---- The environment ---- */

/* The names of OpenTelemetry, and those that manifests for Kubernetes give the downward API. */
static bool is_wanted(const char *variable)
{
	static const char *const names[] = {
		"OTEL_SERVICE_NAME=",
		"OTEL_RESOURCE_ATTRIBUTES=",
		"OTEL_RESOURCE_ATTRIBUTES_NODE_NAME=",
		"OTEL_RESOURCE_ATTRIBUTES_POD_NAME=",
		"K8S_NODE_NAME=",
		"K8S_POD_NAME=",
		"K8S_NAMESPACE_NAME=",
		"K8S_CONTAINER_NAME=",
		"NODE_NAME=",
		"POD_NAME=",
		"POD_NAMESPACE=",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	}
	return false;
}

/* Keeps the wanted ones of variables that end with a 0, in place. Returns their bytes. */
static size_t pick_variables(char *text, size_t n)
{
	size_t kept = 0;

	for (size_t at = 0; at < n;) {
		size_t bytes = strnlen(text + at, n - at) + 1;

		/* The last one may be cut. */
		if (at + bytes <= n && bytes <= MAX_VARIABLE_BYTES &&
		    kept + bytes <= CONTEXT_MAX_ENVIRONMENT && is_wanted(text + at)) {
			memmove(text + kept, text + at, bytes);
			kept += bytes;
		}
		at += bytes;
	}
	return kept;
}

static size_t read_environment(int dir, char *text)
{
	_cleanup_close_ int fd = openat(dir, "environ", O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got = fd < 0 ? 0 : 1;

	while (got > 0 && n < MAX_ENVIRONMENT_BYTES) {
		got = read(fd, text + n, MAX_ENVIRONMENT_BYTES - n);
		n += got > 0 ? (size_t)got : 0;
	}
	return pick_variables(text, n);
}

/* ---- The process context ---- */

/* "START-END rw-p OFFSET DEVICE INODE   NAME", of that name and not of code. */
bool opener_is_context(const char *line, size_t n, void *ctx)
{
	static const char *const names[] = {"/memfd:OTEL_CTX", "[anon:OTEL_CTX]",
					    "[anon_shmem:OTEL_CTX]"};
	const char *permissions = memchr(line, ' ', n), *end = line + n, *name = NULL;
	uint64_t *address = ctx;

	if (!permissions || !memmem(line, n, "OTEL_CTX", 8) || permissions + 5 > end ||
	    permissions[3] == 'x')
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(names) && !name; i++)
		name = memmem(permissions, (size_t)(end - permissions), names[i], strlen(names[i]));
	/* A file of such a name has directories before it. */
	if (!name || name[-1] != ' ')
		return false;
	*address = strtoull(line, NULL, 16);
	return true;
}

struct context_target {
	int dir, memory;    /* its directory in /proc and its memory */
	dev_t memory_files; /* where files in memory lie, for all processes */
};

struct context_place {
	uint64_t address;
	size_t n;
	dev_t memory_files;
};

/* Anonymous memory, that of memory files, and that of a disk: a filesystem without one may wait for
 * a stranger, and nobody could end who reads there. */
static bool holds_place(const char *line, size_t n, void *ctx)
{
	const struct context_place *p = ctx;
	unsigned long long start, end, inode;
	unsigned int major, minor;
	char text[128];

	(void)snprintf(text, sizeof(text), "%.*s", (int)(n < sizeof(text) ? n : sizeof(text)),
		       line);
	if (sscanf(text, "%llx-%llx %*s %*s %x:%x %llu", &start, &end, &major, &minor, &inode) != 5)
		return false;
	return p->address >= start && p->address < end && p->n <= end - p->address &&
	       (!inode || major || makedev(major, minor) == p->memory_files);
}

static bool read_memory(const struct context_target *t, uint64_t address, void *ret, size_t n)
{
	_cleanup_close_ int maps = openat(t->dir, "maps", O_RDONLY | O_CLOEXEC);
	struct context_place place = {address, n, t->memory_files};

	if (n == 0)
		return true;
	return maps >= 0 && opener_find_line(maps, holds_place, &place) == 0 &&
	       pread(t->memory, ret, n, (off_t)address) == (ssize_t)n;
}

/* 0; -EAGAIN: it is being written; -EBADMSG: it is none; -EALREADY: it is the one of known_ns. */
static int try_context(const struct context_target *t, uint64_t address, uint64_t known_ns,
		       uint8_t *payload, struct context_file *ret)
{
	struct context_header h, again;

	if (!read_memory(t, address, &h, sizeof(h)) ||
	    memcmp(h.signature, signature, sizeof(signature)) != 0 || h.version != VERSION ||
	    h.n_payload > CONTEXT_MAX_PAYLOAD)
		return -EBADMSG;
	if (h.published_ns == 0)
		return -EAGAIN;
	if (h.published_ns == known_ns)
		return -EALREADY;
	if (!read_memory(t, h.payload, payload, h.n_payload) ||
	    !read_memory(t, address, &again, sizeof(again)) || memcmp(&h, &again, sizeof(h)) != 0)
		return -EAGAIN;
	ret->published_ns = h.published_ns;
	ret->n_payload = h.n_payload;
	return 0;
}

/* The place always comes from the maps: the child that asks could name any other. */
static int find_context(int dir, uint64_t *ret_address)
{
	_cleanup_close_ int maps = openat(dir, "maps", O_RDONLY | O_CLOEXEC);

	return maps < 0 ? -errno : opener_find_line(maps, opener_is_context, ret_address);
}

static int read_context(int dir, uint64_t address, uint64_t known_ns, uint8_t *payload,
			struct context_file *ret)
{
	_cleanup_close_ int memory = openat(dir, "mem", O_RDONLY | O_CLOEXEC);
	struct context_target t = {dir, memory, memory_file_device()};
	int r = memory < 0 ? -errno : -EAGAIN;

	for (int i = 0; i < MAX_TRIES && r == -EAGAIN; i++)
		r = try_context(&t, address, known_ns, payload, ret);
	return r;
}

/* ---- Both ---- */

/*
 * The directory stays that of one process, even if its pid is reused. The process that was meant is
 * older than the question: if it has the pid when its directory has been read, that was its.
 */
int opener_check_start(uint32_t pid, uint64_t start_time_ns)
{
	struct message facts;
	uint64_t start;
	int r = opener_process(pid, &facts);

	if (r < 0)
		return r;
	start = facts.answer_process.start_time_ns;
	if (facts.answer_process.is_kernel)
		return -ENOENT;
	return !start_time_ns || (start <= start_time_ns + START_TOLERANCE_NS &&
				  start_time_ns <= start + START_TOLERANCE_NS)
		       ? 0
		       : -ESRCH;
}

static int write_file(const struct context_file *head, const char *environment,
		      const uint8_t *payload)
{
	_cleanup_close_ int fd = memory_file_new("perfwalk-context");

	if (fd < 0)
		return fd;
	if (write(fd, head, sizeof(*head)) != sizeof(*head) ||
	    write(fd, environment, head->n_environment) != (ssize_t)head->n_environment ||
	    write(fd, payload, head->n_payload) != (ssize_t)head->n_payload)
		return -EIO;
	return TAKE_FD(fd);
}

/* Most processes say nothing, and are asked again and again: that costs two files of theirs. */
int opener_context(const struct message *ask)
{
	_cleanup_close_ int dir = opener_open_proc(ask->ask_context.pid, "", O_PATH | O_DIRECTORY);
	_cleanup_free_ char *environment = NULL;
	_cleanup_free_ uint8_t *payload = NULL;
	struct context_file head = {0};
	uint64_t address = 0;
	int r;

	if (dir < 0)
		return dir;
	head.error = find_context(dir, &address);
	if (ask->ask_context.environment) {
		environment = malloc(MAX_ENVIRONMENT_BYTES);
		if (!environment)
			return -ENOMEM;
		head.n_environment = (uint32_t)read_environment(dir, environment);
	}
	if (head.error == -ENOENT && head.n_environment == 0)
		return -ENOENT;
	payload = head.error == 0 ? malloc(CONTEXT_MAX_PAYLOAD) : NULL;
	if (head.error == 0 && !payload)
		return -ENOMEM;
	r = opener_check_start(ask->ask_context.pid, ask->ask_context.start_time_ns);
	if (r < 0)
		return r;
	if (payload)
		head.error =
			read_context(dir, address, ask->ask_context.published_ns, payload, &head);
	return head.error < 0 && !ask->ask_context.environment
		       ? head.error
		       : write_file(&head, environment, payload);
}
