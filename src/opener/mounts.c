/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the mounts of a process that have a server in its mount table; reading that asks no server.
 * A container can have 100 000 mounts, so we read at most some thousand mounts of another
 * namespace, at most once a second for all its processes; mounts beyond that count as blocking.
 * Only root can add mounts to our own namespace.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/opener/internal.h"
#include "src/opener/mount-line.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define KEPT	       16
#define KEEP_NS	       NSEC_PER_SEC
#define MAX_BYTES      (256u << 10)
#define MAX_OWN_BYTES  (16u << 20)
#define MAX_LINE_BYTES 65536

struct mount_point {
	unsigned int major, minor;
	char *path;
	enum { FUSE, VIRTIOFS, REMOTE } kind;
};

/* The table of a namespace and a root. */
struct mounts {
	char ns[64], root[256];
	uint64_t until_ns;
	bool gone;	/* the process is gone */
	bool too_long;	/* there may be more */
	bool root_fuse; /* of the process */
	ARRAY(struct mount_point) points;
};

static struct {
	struct mounts items[KEPT];
	uint32_t next;
} kept;

/* Is it a network filesystem, or one that is mounted on access? */
static bool is_remote(const char *type)
{
	static const char *const types[] = {"autofs ", "nfs ",	"nfs4 ", "cifs ",  "smb3 ",
					    "9p ",     "ceph ", "afs ",	 "lustre "};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (strncmp(type, types[i], strlen(types[i])) == 0)
			return true;
	}
	return false;
}

static void add_line(struct mounts *m, const char *line)
{
	struct mount_line l;
	struct mount_point *p;
	bool fuse, virtiofs;

	if (!mount_line_parse(line, &l))
		return;
	fuse = strncmp(l.type, "fuse", 4) == 0;
	virtiofs = strncmp(l.type, "virtiofs ", 9) == 0;
	/* A later mount on / hides an earlier one. */
	if (l.n_point == 1 && *l.point == '/')
		m->root_fuse = fuse;
	if (!fuse && !virtiofs && !is_remote(l.type))
		return;
	p = array_push(&m->points);
	if (p)
		*p = (struct mount_point){l.major, l.minor, strndup(l.point, l.n_point),
					  fuse	     ? FUSE
					  : virtiofs ? VIRTIOFS
						     : REMOTE};
	if (!p || !p->path) {
		m->points.n -= p != NULL;
		m->too_long = true;
		return;
	}
	mount_line_unescape(p->path);
}

/* Adds complete lines; moves the rest to the front and returns its length. */
static size_t add_lines(struct mounts *m, char *text, size_t n)
{
	char *from = text, *end;

	while ((end = memchr(from, '\n', n - (size_t)(from - text)))) {
		*end = '\0';
		add_line(m, from);
		from = end + 1;
	}
	n -= (size_t)(from - text);
	memmove(text, from, n);
	return n;
}

static void read_table(struct mounts *m, uint32_t pid, size_t max_bytes)
{
	_cleanup_close_ int fd = opener_open_proc(pid, "mountinfo", O_RDONLY);
	_cleanup_free_ char *text = malloc(MAX_LINE_BYTES);
	size_t n = 0, total = 0;
	ssize_t got;

	m->gone = fd < 0;
	m->too_long = !text;
	while (!m->gone && !m->too_long) {
		got = read(fd, text + n, MAX_LINE_BYTES - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			m->gone = total == 0;
			return;
		}
		total += (size_t)got;
		n = add_lines(m, text, n + (size_t)got);
		m->too_long |= total >= max_bytes || n == MAX_LINE_BYTES;
	}
}

static void read_link(uint32_t pid, const char *name, char *ret, size_t size)
{
	char path[64];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	n = readlink(path, ret, size);
	ret[n > 0 && (size_t)n < size ? n : 0] = '\0';
}

static void forget(struct mounts *m)
{
	for (uint32_t i = 0; i < m->points.n; i++)
		free(m->points.items[i].path);
	array_deinit(&m->points);
	*m = (struct mounts){.points.max = UINT16_MAX};
}

/* The mounts of a process, valid until the next call. pid 0: ours. */
static const struct mounts *mounts_of(uint32_t pid)
{
	uint64_t now = clock_monotonic_ns();
	char ns[64], root[256], ours[64];
	struct mounts *m;

	pid = pid ? pid : (uint32_t)getpid();
	read_link(pid, "ns/mnt", ns, sizeof(ns));
	read_link(pid, "root", root, sizeof(root));
	for (uint32_t i = 0; i < KEPT && *ns && *root; i++) {
		m = &kept.items[i];
		if (m->until_ns > now && strcmp(m->ns, ns) == 0 && strcmp(m->root, root) == 0)
			return m;
	}
	read_link((uint32_t)getpid(), "ns/mnt", ours, sizeof(ours));
	m = &kept.items[kept.next++ % KEPT];
	forget(m);
	(void)strcpy(m->ns, ns);
	(void)strcpy(m->root, root);
	read_table(m, pid, *ns && strcmp(ns, ours) == 0 ? MAX_OWN_BYTES : MAX_BYTES);
	m->until_ns = m->gone ? 0 : clock_monotonic_ns() + KEEP_NS;
	return m;
}

bool opener_device_blocks(uint32_t pid, uint32_t major, uint32_t minor)
{
	const struct mounts *m;

	/* Disks have a major number. Requests by build id have 0:0, where no mount is. */
	if (major || !minor)
		return false;
	m = mounts_of(pid);
	for (uint32_t i = 0; i < m->points.n; i++) {
		if (m->points.items[i].kind == FUSE && m->points.items[i].major == major &&
		    m->points.items[i].minor == minor)
			return true;
	}
	return m->too_long;
}

static bool has_virtiofs(uint32_t pid, uint32_t major, uint32_t minor)
{
	const struct mounts *m = mounts_of(pid);

	for (uint32_t i = 0; i < m->points.n; i++) {
		if (m->points.items[i].kind == VIRTIOFS && m->points.items[i].major == major &&
		    m->points.items[i].minor == minor)
			return true;
	}
	return false;
}

bool opener_is_virtiofs(uint32_t major, uint32_t minor)
{
	/* In a container our own table may lack the host's. */
	return has_virtiofs(0, major, minor) || has_virtiofs(1, major, minor);
}

static bool lies_below(const char *path, const char *point)
{
	size_t n = strlen(point);

	return strncmp(path, point, n) == 0 &&
	       (path[n] == '/' || path[n] == '\0' || point[n - 1] == '/');
}

bool opener_path_blocks(uint32_t pid, const char *path)
{
	const struct mounts *m = mounts_of(pid);

	for (uint32_t i = 0; i < m->points.n; i++) {
		if (m->points.items[i].kind == FUSE && lies_below(path, m->points.items[i].path))
			return true;
	}
	return m->gone || m->too_long;
}

bool opener_path_may_wait(const char *path)
{
	const struct mounts *m = mounts_of(0);

	for (uint32_t i = 0; i < m->points.n; i++) {
		/* The root of a diskless host is one. */
		if (m->points.items[i].kind != VIRTIOFS &&
		    strcmp(m->points.items[i].path, "/") != 0 &&
		    lies_below(path, m->points.items[i].path))
			return true;
	}
	return m->gone || m->too_long;
}

bool opener_root_blocks(uint32_t pid)
{
	const struct mounts *m = mounts_of(pid);

	return m->root_fuse || m->gone || m->too_long;
}

bool opener_mounts_are_ours(uint32_t pid)
{
	char theirs[64], ours[64];

	read_link(pid, "ns/mnt", theirs, sizeof(theirs));
	read_link((uint32_t)getpid(), "ns/mnt", ours, sizeof(ours));
	return *theirs && strcmp(theirs, ours) == 0;
}

void opener_forget_mounts(void)
{
	for (uint32_t i = 0; i < KEPT; i++)
		forget(&kept.items[i]);
}
