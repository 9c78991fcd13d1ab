/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mappings of processes, from mmap records, and from /proc/PID/maps at first sight of a process,
 * after lost records, and on a miss. A read includes all older mmap records, so these are ignored.
 *
 * A process can cause any number of misses (it jumps into unmapped memory, or its JIT hides
 * mappings), so a read without a result doubles the delay before the next read of that process, and
 * a useful one resets it. And all processes together get a share of the wall clock, since a process
 * decides how long a read takes. The maps of a process with very many mappings are read at most
 * every 10 s. In between we ask the kernel for the mapping at one address, if it supports that
 * (Linux 6.11).
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "src/host/internal.h"
#include "util/clock.h"

#define MIN_READ_DELAY_NS (100 * NSEC_PER_MSEC)
#define MAX_READ_DELAY_NS (60 * NSEC_PER_SEC)
#define MAX_MAPS_BYTES	  (UINT64_C(32) << 20) /* 65530 mappings of 500 bytes */
#define MAPS_CHUNK_BYTES  65536
#define MANY_MAPPINGS	  4096
#define WHOLE_READ_NS	  (10 * NSEC_PER_SEC) /* between two reads of many mappings */

/* struct procmap_query of <linux/fs.h>, since Linux 6.11. */
struct maps_query {
	uint64_t size, flags, address;
	uint64_t start, end, vma_flags, page_size, file_offset, inode;
	uint32_t major, minor, n_name, n_build_id;
	uint64_t name, build_id; /* addresses of our buffers */
};
#define MAPS_QUERY	      _IOWR('f', 17, struct maps_query)
#define MAPS_QUERY_EXECUTABLE 0x04
_Static_assert(sizeof(struct maps_query) == 104, "as the kernel has it");

static bool starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

static enum host_mapping_kind kind_of(const char *path, bool has_inode)
{
	/* Files that the kernel makes for anonymous memory. */
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

/* Adds one mapping to an unshared set, as anonymous if the table refuses its file. */
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

static void add_read(struct host *h, struct mapset *set, const struct host_maps_line *l)
{
	struct host_file_key key = {l->major, l->minor, l->inode, 0};
	struct host_mapping m = {.start = l->start, .end = l->end, .file_offset = l->file_offset};

	m.kind = kind_of(l->path, l->inode != 0);
	add_mapping(h, set, &m, &key, l->path);
}

static void add_line(struct host *h, struct mapset *set, char *line, size_t n)
{
	struct host_maps_line l;

	if (host_parse_maps_line(line, n, &l) && l.executable)
		add_read(h, set, &l);
}

/* Adds the complete lines of buffer to set, and moves the rest to the front; returns its length. */
static size_t add_lines(struct host *h, struct mapset *set, char *buffer, size_t n,
			uint64_t *n_lines)
{
	size_t from = 0;
	char *end;

	while ((end = memchr(buffer + from, '\n', n - from))) {
		size_t length = (size_t)(end - buffer) - from;

		add_line(h, set, buffer + from, length);
		(*n_lines)++;
		from += length + 1;
	}
	memmove(buffer, buffer + from, n - from);
	return n - from;
}

static int read_maps_text(struct host *h, int fd, struct mapset *set, uint64_t *ret_lines)
{
	_cleanup_free_ char *buffer = malloc(MAPS_CHUNK_BYTES);
	uint64_t total = 0;
	size_t n = 0;

	*ret_lines = 0;
	if (!buffer)
		return -ENOMEM;
	while (total < MAX_MAPS_BYTES) {
		ssize_t got = read(fd, buffer + n, MAPS_CHUNK_BYTES - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			/* A process without memory has no lines: it is exiting, or a kernel thread.
			 */
			return total ? 0 : -ESRCH;
		total += (uint64_t)got;
		n = add_lines(h, set, buffer, n + (size_t)got, ret_lines);
		/* No kernel writes a line that long. */
		if (n == MAPS_CHUNK_BYTES)
			n = 0;
	}
	h->stats.refused_mappings++; /* how many more there are is not known */
	return 0;
}

/* Keeps what the caller knows about mappings that are still the same. */
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

static int open_maps(struct host *h, const struct process *p)
{
	return h->source.open_maps ? h->source.open_maps(h->source.ctx, p->pub.pid) : -ENOSYS;
}

/* The pid may belong to another process by the time of the open. */
static bool is_another(struct host *h, const struct process *p)
{
	return p->pub.start_time_ns && info_check_identity(h, p) != INFO_SAME;
}

static int read_maps(struct host *h, struct process *p)
{
	_cleanup_close_ int fd = -EBADF;
	struct mapset *set;
	uint64_t now = host_now(h), n_lines;
	int r;

	fd = open_maps(h, p);
	if (fd < 0)
		return fd;
	set = mapset_new(h->limits.max_mappings);
	if (!set)
		return -ENOMEM;
	h->round++;
	r = read_maps_text(h, fd, set, &n_lines);
	if (n_lines >= MANY_MAPPINGS)
		p->next_whole_ns = host_wall_ns(h) + WHOLE_READ_NS;
	if (r >= 0 && is_another(h, p))
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

/* Asks the kernel for the executable mapping at pc. name: PATH_MAX bytes. */
static int query_maps(int fd, uint64_t pc, struct host_maps_line *ret, char *name)
{
	static const char deleted[] = " (deleted)";
	struct maps_query q = {.size = sizeof(q),
			       .flags = MAPS_QUERY_EXECUTABLE,
			       .address = pc,
			       .n_name = PATH_MAX,
			       .name = (uintptr_t)name};
	size_t n;

	name[0] = '\0';
	if (ioctl(fd, MAPS_QUERY, &q) < 0)
		return -errno;
	if (pc < q.start || pc >= q.end)
		return -ENOENT;
	name[q.n_name ? PATH_MAX - 1 : 0] = '\0';
	n = strlen(name);
	if (name[0] == '/' && n >= sizeof(deleted) && !strcmp(name + n - strlen(deleted), deleted))
		name[n - strlen(deleted)] = '\0';
	*ret = (struct host_maps_line){.start = q.start,
				       .end = q.end,
				       .file_offset = q.file_offset,
				       .inode = q.inode,
				       .major = q.major,
				       .minor = q.minor,
				       .executable = true,
				       .path = name};
	return 0;
}

/* Adds the mapping, unless it is the one we know already. */
static int add_queried(struct host *h, struct process *p, const struct host_maps_line *l)
{
	uint32_t i = p->set ? mapset_find(p->set, l->start) : UINT32_MAX;
	const struct host_mapping *m = i == UINT32_MAX ? NULL : &p->set->maps.items[i];
	struct mapset *set;

	if (m && m->start == l->start && m->end == l->end && m->file_offset == l->file_offset &&
	    (m->file ? m->file->key.inode == l->inode && m->file->key.major == l->major &&
			       m->file->key.minor == l->minor
		     : kind_of(l->path, l->inode != 0) == m->kind))
		return 0;
	set = p->set ? mapset_own(h, p->set) : mapset_new(h->limits.max_mappings);
	process_set_maps(p, set);
	if (!set)
		return -ENOMEM;
	h->round++;
	add_read(h, set, l);
	process_set_maps(p, set);
	p->last_hit = UINT32_MAX;
	return mapset_find(set, l->start) == UINT32_MAX ? -ENOSPC : 0;
}

/* Asks for the mapping at pc and adds it to the process. */
static int query_mapping(struct host *h, struct process *p, uint64_t pc)
{
	_cleanup_close_ int fd = open_maps(h, p);
	struct host_maps_line line;
	char name[PATH_MAX];
	int r;

	if (fd < 0)
		return fd;
	r = query_maps(fd, pc, &line, name);
	if (r == 0 && is_another(h, p))
		r = -ESRCH;
	if (r < 0)
		return r;
	return add_queried(h, p, &line);
}

/* May we ask about the mappings of p now? */
static bool may_ask(struct host *h, const struct process *p)
{
	return !p->pub.exited && !p->pub.is_kernel && h->time_ns >= p->next_read_ns &&
	       host_share_begin(h, &h->maps_share);
}

/* Doubles the delay before the next question, unless this one brings something. */
static void back_off(struct host *h, struct process *p)
{
	p->read_delay_ns = p->read_delay_ns ? p->read_delay_ns * 2 : MIN_READ_DELAY_NS;
	if (p->read_delay_ns > MAX_READ_DELAY_NS)
		p->read_delay_ns = MAX_READ_DELAY_NS;
	p->next_read_ns = h->time_ns + p->read_delay_ns;
}

static bool read_again(struct host *h, struct process *p)
{
	h->stats.maps_reads++;
	back_off(h, p);
	if (read_maps(h, p) < 0) {
		h->stats.maps_failed++;
		return false;
	}
	p->pub.mappings_known = true;
	p->doubtful = false;
	p->generation = h->generation;
	return true;
}

/* Does p have many mappings that were all read recently? */
static bool is_read_enough(struct host *h, const struct process *p)
{
	return p->next_whole_ns && host_wall_ns(h) < p->next_whole_ns;
}

/* Reads the maps again if back-off and share allow. true: the mappings are new. */
bool mapping_refresh(struct host *h, struct process *p)
{
	bool is_new;

	if (is_read_enough(h, p) || !may_ask(h, p))
		return false;
	is_new = read_again(h, p);
	host_share_end(h, &h->maps_share);
	return is_new;
}

/* The same for one address. */
static bool refresh_at(struct host *h, struct process *p, uint64_t pc)
{
	bool is_new;

	if (!is_read_enough(h, p))
		return mapping_refresh(h, p);
	if (!may_ask(h, p))
		return false;
	h->stats.maps_queries++;
	is_new = query_mapping(h, p, pc) == 0;
	if (!is_new)
		back_off(h, p);
	host_share_end(h, &h->maps_share);
	return is_new;
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
	/* Unknown yet: its first sample reads all mappings. */
	if (!p || m.end <= m.start || (p->maps_time_ns && time_ns <= p->maps_time_ns))
		return;
	/*
	 * Each record would move thousands of entries, which an attacker could use: read them once.
	 */
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
	m.kind = path ? kind_of(path, !key || key->inode != 0) : HOST_MAPPING_ANON;
	add_mapping(h, set, &m, key, path);
	process_set_maps(p, set);
	p->last_hit = UINT32_MAX;
	if (m.kind != HOST_MAPPING_FILE)
		return;
	/* A path without its inode is not an identity; maps has the inode, if the process lives. */
	if (!key)
		p->doubtful = true;
	if (p->exe_pending) {
		p->exe_pending = false;
		/* "/" is a file on a mount that is gone (runc's copy of itself): it has no name. */
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
		file_check(h, &items[i]);
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
		is_new = refresh_at(h, p, pc);
	if (!m)
		m = find(h, p, pc);
	if (m && is_new) {
		/* It brought something: the next miss waits only briefly, or not at all after a
		 * query.
		 */
		p->read_delay_ns = 0;
		p->next_read_ns = is_read_enough(h, p) ? 0 : h->time_ns + MIN_READ_DELAY_NS;
	}
	return m;
}
