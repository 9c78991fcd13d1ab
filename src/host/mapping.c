/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mappings of processes: told by mmap records, read from /proc/PID/maps at first sight of a
 * process, after lost records, and on a miss. A read speaks of the moment it is made: mmap records
 * older than that are already in it and are ignored.
 *
 * Misses can be had in any number (a program that jumps into unmapped memory, a JIT that hides its
 * mappings), so a fruitless read doubles the delay before the next of that process, a fruitful one
 * resets it; and all processes together have a budget a second.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "src/host/internal.h"
#include "util/clock.h"

#define READS_PER_SECOND  128
#define MIN_READ_DELAY_NS (100 * NSEC_PER_MSEC)
#define MAX_READ_DELAY_NS (60 * NSEC_PER_SEC)
#define MAX_MAPS_BYTES	  (UINT64_C(32) << 20) /* 65530 mappings of 500 bytes */
#define MAPS_CHUNK_BYTES  65536
#define MANY_MAPPINGS	  4096

static bool starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

enum host_mapping_kind mapping_kind(const char *path, bool has_inode)
{
	/* Files of the kernel's own making that back anonymous memory. */
	static const char *const anonymous[] = {"//anon", "/dev/zero", "/SYSV", "/anon_hugepage",
						"/[aio]"};

	if (strcmp(path, "[vdso]") == 0)
		return HOST_MAPPING_VDSO;
	if (path[0] != '/' || !has_inode)
		return HOST_MAPPING_ANON;
	for (size_t i = 0; i < ARRAY_SIZE(anonymous); i++) {
		if (starts_with(path, anonymous[i]))
			return HOST_MAPPING_ANON;
	}
	return HOST_MAPPING_FILE;
}

/* Adds one mapping to an unshared set; a file that the table refuses leaves it anonymous. */
static void add_mapping(struct host *h, struct mapset *set, const struct host_mapping *range,
			const struct host_file_key *key, const char *path)
{
	struct host_mapping m = *range;

	if (m.kind == HOST_MAPPING_FILE) {
		m.file = file_get(h, key, path);
		if (!m.file)
			m.kind = HOST_MAPPING_ANON;
	}
	(void)mapset_insert(h, set, &m);
}

/* ---- Reading maps ---- */

static void add_line(struct host *h, struct mapset *set, char *line, size_t n)
{
	struct host_maps_line l;
	struct host_mapping m = {0};
	struct host_file_key key;

	if (!host_parse_maps_line(line, n, &l) || !l.executable)
		return;
	key = (struct host_file_key){l.major, l.minor, l.inode, 0};
	m.start = l.start;
	m.end = l.end;
	m.file_offset = l.file_offset;
	m.kind = mapping_kind(l.path, l.inode != 0);
	add_mapping(h, set, &m, &key, l.path);
}

/* Whole lines of buffer go into set; returns what is left of the last, moved to the front. */
static size_t add_lines(struct host *h, struct mapset *set, char *buffer, size_t n)
{
	size_t from = 0;
	char *end;

	while ((end = memchr(buffer + from, '\n', n - from))) {
		size_t length = (size_t)(end - buffer) - from;

		add_line(h, set, buffer + from, length);
		from += length + 1;
	}
	memmove(buffer, buffer + from, n - from);
	return n - from;
}

static int read_maps_text(struct host *h, int fd, struct mapset *set)
{
	_cleanup_free_ char *buffer = malloc(MAPS_CHUNK_BYTES);
	uint64_t total = 0;
	size_t n = 0;

	if (!buffer)
		return -ENOMEM;
	while (total < MAX_MAPS_BYTES) {
		ssize_t got = read(fd, buffer + n, MAPS_CHUNK_BYTES - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			/* A process without memory has no lines: it exits, or is a kernel thread.
			 */
			return total ? 0 : -ESRCH;
		total += (uint64_t)got;
		n = add_lines(h, set, buffer, n + (size_t)got);
		/* No kernel writes a line that long. */
		if (n == MAPS_CHUNK_BYTES)
			n = 0;
	}
	return 0;
}

/* What the caller found out about a mapping holds as long as the mapping is the same. */
static void keep_biases(struct mapset *set, const struct mapset *old)
{
	for (uint32_t i = 0; i < set->maps.n; i++) {
		struct host_mapping *m = &set->maps.items[i];
		uint32_t k = mapset_find(old, m->start);
		const struct host_mapping *o = k == UINT32_MAX ? NULL : &old->maps.items[k];

		if (o && o->file == m->file && o->kind == m->kind && o->start == m->start &&
		    o->file_offset == m->file_offset) {
			m->bias = o->bias;
			m->bias_state = o->bias_state;
		}
	}
}

static int read_maps(struct host *h, struct process *p)
{
	_cleanup_close_ int fd = -EBADF;
	struct mapset *set;
	uint64_t now = host_now(h);
	int r;

	fd = h->source.open_maps ? h->source.open_maps(h->source.ctx, p->pub.pid) : -ENOSYS;
	if (fd < 0)
		return fd;
	set = mapset_new(h->limits.max_mappings);
	if (!set)
		return -ENOMEM;
	r = read_maps_text(h, fd, set);
	/* The pid may have passed on between our knowing it and the open. */
	if (r >= 0 && p->pub.start_time_ns && info_check_identity(h, p) != INFO_SAME)
		r = -ESRCH;
	if (r < 0) {
		mapset_unref(h, set);
		return r;
	}
	keep_biases(set, p->set);
	mapset_unref(h, p->set);
	process_set_maps(p, set);
	p->maps_time_ns = now;
	return 0;
}

/* Reads the maps again if back-off and budget allow. true: the mappings are new. */
bool mapping_refresh(struct host *h, struct process *p)
{
	if (p->pub.exited || p->pub.is_kernel || h->time_ns < p->next_read_ns ||
	    !host_budget_take(h, &h->maps_budget, READS_PER_SECOND))
		return false;
	h->stats.maps_reads++;
	p->read_delay_ns = p->read_delay_ns ? p->read_delay_ns * 2 : MIN_READ_DELAY_NS;
	if (p->read_delay_ns > MAX_READ_DELAY_NS)
		p->read_delay_ns = MAX_READ_DELAY_NS;
	p->next_read_ns = h->time_ns + p->read_delay_ns;
	if (read_maps(h, p) < 0) {
		h->stats.maps_failed++;
		return false;
	}
	p->pub.mappings_known = true;
	p->doubtful = false;
	p->generation = h->generation;
	return true;
}

/* ---- Records and look-up ---- */

void host_on_mmap(struct host *h, uint32_t pid, uint64_t start, uint64_t length,
		  uint64_t file_offset, const struct host_file_key *key, const char *path,
		  uint64_t time_ns)
{
	struct process *p = process_of_record(h, pid);
	struct host_mapping m = {.start = start, .end = start + length, .file_offset = file_offset};
	static const char deleted[] = " (deleted)";
	_cleanup_free_ char *cut = NULL;
	size_t n = strlen(path);
	struct mapset *set;

	host_see_time(h, time_ns);
	/* Not known yet: all is read at its first sample. */
	if (!p || m.end <= m.start || (p->maps_time_ns && time_ns <= p->maps_time_ns))
		return;
	/* To move thousands of entries for each record is a way to be kept busy: read them once. */
	if (p->pub.n_mappings >= MANY_MAPPINGS && !h->limits.recorded) {
		p->doubtful = true;
		return;
	}
	set = p->set ? mapset_own(h, p->set) : mapset_new(h->limits.max_mappings);
	process_set_maps(p, set);
	if (!set) {
		p->doubtful = true;
		return;
	}
	if (path[0] == '/' && n >= sizeof(deleted) && !strcmp(path + n - strlen(deleted), deleted))
		path = cut = strndup(path, n - strlen(deleted));
	m.kind = path ? mapping_kind(path, !key || key->inode != 0) : HOST_MAPPING_ANON;
	add_mapping(h, set, &m, key, path);
	process_set_maps(p, set);
	p->last_hit = UINT32_MAX;
	if (m.kind != HOST_MAPPING_FILE)
		return;
	/* A path without its inode is not an identity; maps has it, if the process lives. */
	if (!key)
		p->doubtful = true;
	if (p->exe_pending) {
		p->exe_pending = false;
		/* "/" is a file on a mount that is gone (runc's copy of itself): no name. */
		info_set_exe(p, strcmp(path, "/") == 0 ? NULL : path);
	}
}

static struct host_mapping *find(struct host *h, struct process *p, uint64_t pc)
{
	struct host_mapping *items = p->pub.mappings;
	uint32_t i = p->last_hit;

	if (i >= p->pub.n_mappings || pc < items[i].start || pc >= items[i].end)
		i = mapset_find(p->set, pc);
	if (i == UINT32_MAX)
		return NULL;
	p->last_hit = i;
	if (items[i].file)
		file_used(h, items[i].file);
	return &items[i];
}

struct host_mapping *host_mapping_find(struct host *h, struct host_process *pub, uint64_t pc,
				       uint64_t time_ns)
{
	struct process *p = (struct process *)pub;
	struct host_mapping *m = NULL;
	bool is_sure = !p->doubtful && pub->mappings_known, is_new = false;

	host_see_time(h, time_ns);
	if (is_sure)
		m = find(h, p, pc);
	if (!m)
		is_new = mapping_refresh(h, p);
	if (!m)
		m = find(h, p, pc);
	if (m && is_new) {
		/* Reading again was worth it: the next miss need not wait long. */
		p->read_delay_ns = 0;
		p->next_read_ns = h->time_ns + MIN_READ_DELAY_NS;
	}
	return m;
}
