/* SPDX-License-Identifier: Apache-2.0 */
#include "src/sample/uprobe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "src/sample/event.h"
#include "src/sample/tracepoint.h"
#include "util/cleanup.h"

#define GROUP_PREFIX	 "perfwalk_"
#define MAX_EVENTS_BYTES (1u << 20)
#define COUNTER_SHIFT	 32 /* in config of the PMU, from Linux 4.20 on */
#define FETCHED_OFFSET	 16 /* in the payload, behind what all have and the address */
#define PMU_TYPE	 "/sys/bus/event_source/devices/uprobe/type"

static const char *const prefixes[] = {"uprobe:", "usdt:"};

static struct sample_uprobe *all;
static char group[48];	  /* of our events in tracefs */
static pid_t owner;	  /* who removes them: not what it forks */
static uint32_t n_placed; /* each time under a new name */

/* ---- Texts ---- */

static const char *find_path(const char *text, bool *ret_marker)
{
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		size_t n = strlen(prefixes[i]);

		*ret_marker = i == 1;
		if (strncmp(text, prefixes[i], n) == 0)
			return text + n;
	}
	return NULL;
}

size_t uprobe_prefix(const char *text)
{
	bool marker;
	const char *path = find_path(text, &marker), *colon;

	if (!path || *path != '/')
		return 0;
	colon = strchr(path, ':');
	return colon ? (size_t)(colon + 1 - text) : 0;
}

/* "libc.so.6:malloc", and of a marker what it is called. */
static void set_name(const struct sample_uprobe *u, struct sample_event *ret)
{
	const char *slash = strrchr(u->path, '/');

	*ret = (struct sample_event){.type = PERF_TYPE_TRACEPOINT, .uprobe = u};
	if (u->marker)
		(void)snprintf(ret->name, sizeof(ret->name), "%s", u->what);
	else
		(void)snprintf(ret->name, sizeof(ret->name), "%s:%s", slash + 1, u->what);
}

static struct sample_uprobe *find_known(const char *path, size_t n_path, const char *what,
					bool marker)
{
	struct sample_uprobe *u = all;

	while (u && (u->marker != marker || strlen(u->path) != n_path ||
		     memcmp(u->path, path, n_path) != 0 || strcmp(u->what, what) != 0))
		u = u->next;
	return u;
}

static struct sample_uprobe *new_probe(const char *path, size_t n_path, const char *what,
				       bool marker)
{
	struct sample_uprobe *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	*u = (struct sample_uprobe){.path = strndup(path, n_path),
				    .what = strdup(what),
				    .marker = marker,
				    .fd = -EBADF,
				    .next = all};
	if (!u->path || !u->what) {
		free(u->path);
		free(u->what);
		free(u);
		return NULL;
	}
	all = u;
	return u;
}

int uprobe_parse(const char *text, struct sample_event *ret, char *error, size_t n_error)
{
	struct sample_uprobe *u;
	const char *path, *what;
	bool marker;
	size_t n;

	path = find_path(text, &marker);
	what = path ? text + uprobe_prefix(text) : NULL;
	n = what > path ? (size_t)(what - path) - 1 : 0;
	if (n < 2 || path[n - 1] == '/' || !*what || (marker && !strchr(what, ':'))) {
		snprintf(error, n_error,
			 marker ? "a marker is usdt:/PATH:PROVIDER:NAME, such as "
				  "usdt:/usr/lib/libx.so:x:begin; perfwalk debug marker FILE lists "
				  "those of a file"
				: "a probe is uprobe:/PATH:FUNCTION, with or without +OFFSET, "
				  "such as uprobe:/usr/lib/libx.so:x_open");
		return -EINVAL;
	}
	u = find_known(path, n, what, marker);
	if (!u)
		u = new_probe(path, n, what, marker);
	if (!u)
		return -ENOMEM;
	set_name(u, ret);
	return 0;
}

/* ---- tracefs ---- */

static int command(const char *text)
{
	_cleanup_close_ int fd = tracefs_open("uprobe_events", O_WRONLY | O_APPEND);

	if (fd < 0)
		return fd;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static void remove_site(const struct sample_uprobe *u, uint32_t site)
{
	char text[96];

	(void)snprintf(text, sizeof(text), "-:%s/p%u_%u", group, u->number, site);
	(void)command(text);
}

/* Numbers of processes tell of them only in their own one. */
static unsigned int pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 ? (unsigned int)st.st_ino : 0;
}

/* Of a process of our pid namespace that is no more? One of another may be about to use it, and the
 * kernel would give the number of the event to the next. */
static bool is_left(const char *name)
{
	unsigned int namespace;
	int pid;

	return sscanf(name, ":" GROUP_PREFIX "%d_%x_", &pid, &namespace) == 2 && pid > 0 &&
	       namespace == pid_namespace() && kill(pid, 0) < 0 && errno == ESRCH;
}

/* "p:perfwalk_PID_NAMESPACE_XXXXXXXX/p0_0 ...": ours, or one that is left. One that is in use the
 * kernel keeps. */
static void remove_line(char *line, bool ours)
{
	char *name = strstr(line, ":" GROUP_PREFIX), text[128];
	size_t n = strlen(group);

	if (!name ||
	    (ours ? strncmp(name + 1, group, n) != 0 || name[1 + n] != '/' : !is_left(name)))
		return;
	name[strcspn(name, " \n")] = '\0';
	if ((size_t)snprintf(text, sizeof(text), "-%s", name) < sizeof(text))
		(void)command(text);
}

static void remove_events(bool ours)
{
	_cleanup_close_ int fd = tracefs_open("uprobe_events", O_RDONLY);
	_cleanup_free_ char *text = fd >= 0 ? malloc(MAX_EVENTS_BYTES) : NULL;
	char *state = NULL;
	size_t n = 0;
	ssize_t got = 1;

	while (text && got > 0 && n < MAX_EVENTS_BYTES - 1) {
		got = read(fd, text + n, MAX_EVENTS_BYTES - 1 - n);
		n += got > 0 ? (size_t)got : 0;
	}
	if (!text)
		return;
	text[n] = '\0';
	for (char *line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state))
		remove_line(line, ours);
}

static void close_keepers(struct sample_uprobe *u)
{
	for (uint32_t i = 0; i < u->n_sites; i++)
		u->sites[i].keeper_fd = close_fd(u->sites[i].keeper_fd);
}

static void at_exit(void)
{
	for (struct sample_uprobe *u = all; u; u = u->next)
		close_keepers(u);
	if (getpid() == owner)
		remove_events(true);
}

/* Numbers of processes are not the only ones of a host that has pid namespaces. */
static int name_group(void)
{
	struct timespec now;

	if (owner)
		return 0;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)snprintf(group, sizeof(group), GROUP_PREFIX "%d_%x_%08x", (int)getpid(),
		       pid_namespace(), (unsigned int)now.tv_nsec ^ (unsigned int)now.tv_sec << 20);
	owner = getpid();
	remove_events(false);
	return atexit(at_exit) == 0 ? 0 : -ENOMEM;
}

static int add_site(struct sample_uprobe *u, uint32_t i)
{
	struct uprobe_site *s = &u->sites[i];
	char text[256], counter[32] = "", fetched[48] = "", name[64], id[32];
	int r;

	if (s->counter)
		(void)snprintf(counter, sizeof(counter), "(0x%" PRIx64 ")", s->counter);
	if (s->fetched)
		(void)snprintf(fetched, sizeof(fetched), " fetched=@+0x%" PRIx64 ":u64",
			       s->fetched);
	(void)snprintf(text, sizeof(text), "p:%s/p%u_%u %s:0x%" PRIx64 "%s%s", group, u->number, i,
		       u->fd_path, s->offset, counter, fetched);
	r = command(text);
	if (r < 0)
		return r;
	(void)snprintf(name, sizeof(name), "%s:p%u_%u", group, u->number, i);
	r = tracepoint_read(name, "id", id, sizeof(id));
	if (r <= 0) {
		remove_site(u, i);
		return r < 0 ? r : -EIO;
	}
	s->config = strtoull(id, NULL, 10);
	return 0;
}

static int add_to_tracefs(struct sample_uprobe *u)
{
	int r = name_group();

	u->number = n_placed++;
	for (uint32_t i = 0; i < u->n_sites && r == 0; i++) {
		r = add_site(u, i);
		while (r < 0 && i > 0)
			remove_site(u, --i);
	}
	if (r < 0)
		return r;
	u->perf_type = PERF_TYPE_TRACEPOINT;
	u->by_path = false;
	return 0;
}

/* ---- perf itself ---- */

static int use_pmu(struct sample_uprobe *u)
{
	long type = event_read_number(PMU_TYPE, -1);

	if (type < 0)
		return -ENODEV;
	for (uint32_t i = 0; i < u->n_sites; i++) {
		if (u->sites[i].counter > UINT32_MAX)
			return -EFBIG;
		u->sites[i].config = u->sites[i].counter << COUNTER_SHIFT;
	}
	u->perf_type = (uint32_t)type;
	u->by_path = true;
	return 0;
}

void uprobe_attr(const struct sample_uprobe *u, uint32_t site, struct perf_event_attr *attr)
{
	attr->type = u->perf_type;
	attr->config = u->sites[site].config;
	if (!u->by_path)
		return;
	attr->config1 = (uintptr_t)u->fd_path;
	attr->config2 = u->sites[site].offset;
}

/* ---- Placing ---- */

static bool same_places(const struct sample_uprobe *u, int fd, const struct uprobe_site *sites,
			uint32_t n)
{
	struct stat before, now;

	if (!u->placed || u->n_sites != n || fstat(u->fd, &before) < 0 || fstat(fd, &now) < 0 ||
	    before.st_dev != now.st_dev || before.st_ino != now.st_ino)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		if (u->sites[i].offset != sites[i].offset ||
		    u->sites[i].counter != sites[i].counter)
			return false;
	}
	return true;
}

static int check_places(int fd, const struct uprobe_site *sites, uint32_t n)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || n == 0 || n > UPROBE_MAX_SITES)
		return -EINVAL;
	for (uint32_t i = 0; i < n; i++) {
		if (sites[i].offset >= (uint64_t)st.st_size ||
		    sites[i].counter >= (uint64_t)st.st_size)
			return -ERANGE;
	}
	return 0;
}

static bool has_counter(const struct sample_uprobe *u)
{
	for (uint32_t i = 0; i < u->n_sites; i++)
		if (u->sites[i].counter)
			return true;
	return false;
}

static void explain_placing(const struct sample_uprobe *u, int error, char *buf, size_t size)
{
	if (error == -ENODEV || error == -ENOENT || error == -EROFS)
		snprintf(buf, size,
			 "probes of user code need tracefs, which must be writable, or Linux 4.17: "
			 "mount -t tracefs none /sys/kernel/tracing, and run as root");
	else if (error == -EACCES || error == -EPERM)
		snprintf(buf, size,
			 "this user may not set probes in user code: run as root (with "
			 "CAP_SYS_ADMIN)");
	else if (error == -EINVAL && has_counter(u))
		snprintf(buf, size,
			 "the kernel refuses the place: markers that count who watches them need "
			 "Linux 4.20");
	else
		snprintf(buf, size, "the kernel refuses the place: %s", strerror(-error));
}

int uprobe_place(struct sample_uprobe *u, int fd, const struct uprobe_site *sites, uint32_t n,
		 char *error, size_t n_error)
{
	_cleanup_close_ int file = fd;
	int r = check_places(file, sites, n), r_pmu;

	if (r == 0 && same_places(u, file, sites, n))
		return 0;
	if (r == 0) {
		/* What is open keeps its events of before: they go when this process ends. */
		close_keepers(u);
		(void)close_fd(u->fd);
		u->fd = TAKE_FD(file);
		(void)snprintf(u->fd_path, sizeof(u->fd_path), "/proc/self/fd/%d", u->fd);
		memcpy(u->sites, sites, n * sizeof(*sites));
		u->n_sites = n;
		for (uint32_t i = 0; i < n; i++)
			u->sites[i].keeper_fd = -EBADF;
		r = add_to_tracefs(u);
		if (r == -ENODEV || r == -ENOENT || r == -EACCES || r == -EPERM || r == -EROFS) {
			r_pmu = use_pmu(u);
			r = r_pmu == 0 ? 0 : r;
		}
	}
	if (r < 0)
		explain_placing(u, r, error, n_error);
	u->placed = r == 0;
	return r;
}

int uprobe_new_copy(struct sample_uprobe **ret, const struct sample_uprobe *of, int fd,
		    const struct uprobe_site *sites, uint32_t n, char *error, size_t n_error)
{
	struct sample_uprobe *u = calloc(1, sizeof(*u));
	int r;

	if (!u) {
		(void)close_fd(fd);
		(void)snprintf(error, n_error, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	u->path = of->path;
	u->what = of->what;
	u->marker = of->marker;
	u->fd = -EBADF;
	r = uprobe_place(u, fd, sites, n, error, n_error);
	if (r < 0)
		(void)uprobe_free_copy(u);
	else
		*ret = u;
	return r;
}

struct sample_uprobe *uprobe_free_copy(struct sample_uprobe *u)
{
	if (!u)
		return NULL;
	close_keepers(u);
	for (uint32_t i = 0; u->placed && !u->by_path && i < u->n_sites; i++)
		remove_site(u, i);
	(void)close_fd(u->fd);
	free(u);
	return NULL;
}

bool sample_fetched(const struct record *r, uint64_t *ret)
{
	static const struct tracepoint_field fetched = {.offset = FETCHED_OFFSET,
							.size = sizeof(*ret)};
	int64_t value;

	/* The kernel pads it, with the size before it, to 8 bytes. */
	if (r->sample.n_raw != FETCHED_OFFSET + sizeof(value) + sizeof(uint32_t) ||
	    !tracepoint_get(&fetched, r->sample.raw, r->sample.n_raw, &value))
		return false;
	*ret = (uint64_t)value;
	return true;
}

void uprobe_explain(const struct sample_uprobe *u, int error, char *buf, size_t size)
{
	if (error == -EACCES || error == -EPERM)
		explain_placing(u, error, buf, size);
	else
		snprintf(buf, size,
			 "the kernel sets no probe at %#" PRIx64
			 " of %s (%s): the instruction there cannot be probed, or the "
			 "filesystem does not allow it",
			 u->sites[0].offset, u->path, strerror(-error));
}

const char *uprobe_tracefs_remedy(void)
{
	return tracefs_is_locked_down()
		       ? "probes of user code follow a process and its children only with tracefs, "
			 "which this kernel forbids (it is locked down, confidentiality): sample "
			 "the whole host"
		       : "probes of user code follow a process and its children only with tracefs: "
			 "mount -t tracefs none /sys/kernel/tracing; or sample the whole host";
}
