/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files with the same contents share one table of symbols: a library in the images of a hundred
 * containers has a hundred uids, but one table. A build id is only a claim. Files with the same one
 * are compared to the last byte, once, so that no file can name the frames of another. Comparing
 * has a share of the time; beyond it, each file gets a table of its own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/process/ask.h"
#include "src/process/role.h"
#include "src/symbolizer/file-compare.h"
#include "src/symbolizer/file-names.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file-identity.h"
#include "util/hash.h"
#include "util/time-share.h"

#define MAX_AWAITED	1024
#define COST_PERCENT	10 /* of the time, for the names of one file */
#define COST_SAVE_NS	(60 * NSEC_PER_SEC)
#define COMPARE_PERCENT 5    /* of the time, for files that claim to be the same */
#define MAX_COMPARED	4    /* with one file */
#define LINES_EMPTY	4096 /* a file that has let go of its lines keeps less */

/* The tables that files with the same contents share. */
struct contents {
	struct symbol_file_id id;
	struct symbol_file *file; /* NULL: not open */
	uint64_t read_from;	  /* uid of the module whose file that reads */
	bool broken;
	uint32_t n_modules;
	uint64_t used;
	struct time_share cost;
};

struct module {
	uint64_t uid, used;
	uint32_t pid; /* of a process that had it mapped; 0: not known */
	char *path;
	int fd;
	struct file_identity identity; /* all 0: not known */
	uint64_t looked;	       /* the turn in which that was compared last */
	bool changed;		       /* nobody has the bytes any more that ran */
	struct contents *contents;     /* NULL: not identified */
	bool renamed;		       /* its frames are to be named anew */
};

/* A debug file that is being fetched. */
struct awaited {
	uint64_t uid; /* of the module that it is for */
	bool late;    /* not available so far; nobody waits for it, but it may arrive */
	uint32_t n_build_id;
	uint8_t build_id[64];
};

struct file_names {
	struct role *role;
	struct ask *ask;
	const struct symbol_limits *limits;
	file_names_closed_fn closed;
	void *ctx;
	uint64_t turn;
	const struct module *reading;
	struct time_share compare_share;
	ARRAY(struct module) modules;
	struct hash_index module_index;
	ARRAY(struct contents *) contents;
	ARRAY(struct awaited) awaited;
};

int file_names_new(struct file_names **ret, struct role *role, struct ask *ask,
		   const struct symbol_limits *limits, uint32_t max_files,
		   file_names_closed_fn closed, void *ctx)
{
	struct file_names *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->role = role;
	n->ask = ask;
	n->limits = limits;
	n->closed = closed;
	n->ctx = ctx;
	n->turn = 1;
	n->modules.max = n->contents.max = max_files;
	n->awaited.max = MAX_AWAITED;
	n->compare_share.percent = COMPARE_PERCENT;
	*ret = n;
	return 0;
}

static void contents_release(struct file_names *n, struct contents *c)
{
	if (!c || --c->n_modules > 0)
		return;
	for (uint32_t i = 0; i < n->contents.n; i++) {
		if (n->contents.items[i] == c) {
			n->contents.items[i] = n->contents.items[--n->contents.n];
			break;
		}
	}
	symbol_file_free(c->file);
	free(c);
}

static void module_clear(struct file_names *n, struct module *m)
{
	contents_release(n, m->contents);
	(void)close_fd(m->fd);
	free(m->path);
	m->contents = NULL;
	m->path = NULL;
	m->fd = -EBADF;
}

struct file_names *file_names_free(struct file_names *n)
{
	if (!n)
		return NULL;
	for (uint32_t i = 0; i < n->modules.n; i++)
		module_clear(n, &n->modules.items[i]);
	array_deinit(&n->modules);
	array_deinit(&n->contents);
	array_deinit(&n->awaited);
	hash_index_deinit(&n->module_index);
	free(n);
	return NULL;
}

static struct module *find_module(struct file_names *n, uint64_t uid)
{
	uint64_t hash = hash_u64(uid);
	uint32_t slot = hash_index_first(&n->module_index, hash), row;

	while ((row = hash_index_row(&n->module_index, slot)) != HASH_INDEX_NONE) {
		if (n->modules.items[row].uid == uid)
			return &n->modules.items[row];
		slot = hash_index_next(&n->module_index, slot);
	}
	return NULL;
}

/* The place of the module that was not used for longest. */
static struct module *evict_module(struct file_names *n)
{
	struct module *oldest = NULL;

	for (uint32_t i = 0; i < n->modules.n; i++) {
		if (!oldest || n->modules.items[i].used < oldest->used)
			oldest = &n->modules.items[i];
	}
	if (oldest) {
		n->closed(n->ctx, oldest->uid);
		(void)hash_index_remove(&n->module_index, hash_u64(oldest->uid),
					(uint32_t)(oldest - n->modules.items));
		module_clear(n, oldest);
	}
	return oldest;
}

void file_names_add(struct file_names *n, uint64_t uid, uint32_t pid, const char *path, int fd)
{
	struct module *m = find_module(n, uid);

	if (m) {
		module_clear(n, m);
	} else {
		m = array_push(&n->modules);
		if (!m)
			m = evict_module(n);
		if (m)
			m->fd = -EBADF;
		if (!m || hash_index_add(&n->module_index, hash_u64(uid),
					 (uint32_t)(m - n->modules.items)) < 0) {
			(void)close_fd(fd);
			return;
		}
	}
	*m = (struct module){
		.uid = uid, .used = n->turn, .pid = pid, .fd = fd, .path = strdup(path)};
	(void)file_identity_get(fd, &m->identity);
}

void file_names_point(struct file_names *n, uint64_t uid)
{
	const struct module *m = find_module(n, uid);

	if (m && m->identity.ino)
		role_job_read(n->role, &m->identity, m->path ? m->path : "");
}

/*
 * The path below the directory of debug files. A debuglink is a name, of a file in the program's
 * own directory there. The link to a file of dwz is a path as the package was built: absolute, or
 * relative to where the debug file would be; what counts is from .dwz on.
 */
static void debug_path(const struct module *m, const char *link, char *ret, size_t size)
{
	const char *dwz = strstr(link, "/.dwz/"), *slash = m->path ? strrchr(m->path, '/') : NULL;

	ret[0] = '\0';
	if (dwz)
		(void)snprintf(ret, size, "%s", dwz + 1);
	else if (slash && !strchr(link, '/'))
		(void)snprintf(ret, size, "%.*s/%s", (int)(slash - m->path), m->path, link);
}

static bool is_awaited(const struct awaited *a, const uint8_t *build_id, size_t n_build_id)
{
	return a->n_build_id == n_build_id && memcmp(a->build_id, build_id, n_build_id) == 0;
}

/* What is late gives way when there are too many. */
static void await(struct file_names *n, uint64_t uid, const uint8_t *build_id, size_t n_build_id)
{
	struct awaited *place = NULL, *late = NULL;

	for (uint32_t i = 0; i < n->awaited.n && !place; i++) {
		struct awaited *a = &n->awaited.items[i];

		if (a->uid == uid && is_awaited(a, build_id, n_build_id))
			place = a;
		else if (a->late)
			late = a;
	}
	if (!place)
		place = n->awaited.n < n->awaited.max ? array_push(&n->awaited) : late;
	if (!place)
		return;
	*place = (struct awaited){.uid = uid, .n_build_id = (uint32_t)n_build_id};
	memcpy(place->build_id, build_id, n_build_id);
}

static int open_debug(void *ctx, const uint8_t *build_id, size_t n_build_id, const char *link,
		      uint32_t crc)
{
	struct file_names *n = ctx;
	struct message m = {.type = MESSAGE_ASK_DEBUG_FILE};
	int fd;

	if (n_build_id > sizeof(m.ask_debug_file.build_id))
		return -1;
	m.ask_debug_file.pid = n->reading->pid;
	m.ask_debug_file.n_build_id = (uint32_t)n_build_id;
	if (n_build_id)
		memcpy(m.ask_debug_file.build_id, build_id, n_build_id);
	if (link)
		debug_path(n->reading, link, m.ask_debug_file.path, sizeof(m.ask_debug_file.path));
	m.ask_debug_file.fetch = n_build_id > 0;
	fd = ask_descriptor(n->ask, &m);
	if (fd == -EINPROGRESS)
		await(n, n->reading->uid, build_id, n_build_id);
	return fd;
}

/* Opens it again for the next address. Its frames get new names, and so do those of files with
 * the same contents. */
static void reopen_module(struct file_names *n, struct module *m)
{
	struct contents *c = m->contents;

	m->renamed = true;
	if (!c)
		return;
	c->file = symbol_file_free(c->file);
	for (uint32_t i = 0; c->n_modules > 1 && i < n->modules.n; i++)
		n->modules.items[i].renamed |= n->modules.items[i].contents == c;
}

void file_names_debug_file_came(struct file_names *n, const uint8_t *build_id, size_t n_build_id,
				bool found)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < n->awaited.n; i++) {
		struct awaited *a = &n->awaited.items[i];
		bool same = is_awaited(a, build_id, n_build_id);
		struct module *m = same && found ? find_module(n, a->uid) : NULL;

		a->late |= same;
		if (m)
			reopen_module(n, m);
		if (!same || !found)
			n->awaited.items[left++] = *a;
	}
	n->awaited.n = left;
}

void file_names_ask_again(struct file_names *n, bool all)
{
	for (uint32_t i = 0; all && i < n->modules.n; i++)
		reopen_module(n, &n->modules.items[i]);
	for (uint32_t i = 0; i < n->awaited.n; i++) {
		struct module *m = find_module(n, n->awaited.items[i].uid);

		if (m)
			reopen_module(n, m);
	}
	array_clear(&n->awaited);
}

uint32_t file_names_n_awaited(const struct file_names *n)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < n->awaited.n; i++)
		count += !n->awaited.items[i].late;
	return count;
}

static int ask_split(struct file_names *n, const char *path)
{
	struct message m = {.type = MESSAGE_ASK_SPLIT_FILE};

	message_set_text(m.ask_split_file.path, sizeof(m.ask_split_file.path), path);
	return ask_descriptor(n->ask, &m);
}

/* Where the compiler wrote it, else beside the program, where it may have been copied to. */
static int open_split(void *ctx, const char *path)
{
	struct file_names *n = ctx;
	const char *program = n->reading->path ? n->reading->path : "";
	const char *slash = strrchr(program, '/'), *base = path ? strrchr(path, '/') : NULL;
	int n_dir = slash ? (int)(slash - program) : 0, fd = -1;
	char other[PROTOCOL_PATH_MAX];

	if (!path) {
		(void)snprintf(other, sizeof(other), "%s.dwp", program);
		return ask_split(n, other);
	}
	if (*path == '/') {
		fd = ask_split(n, path);
	} else if (slash) {
		(void)snprintf(other, sizeof(other), "%.*s/%s", n_dir, program, path);
		fd = ask_split(n, other);
	}
	if (fd >= 0 || !slash || !base)
		return fd;
	(void)snprintf(other, sizeof(other), "%.*s%s", n_dir, program, base);
	return ask_split(n, other);
}

static bool same_id(const struct symbol_file_id *a, const struct symbol_file_id *b)
{
	return a->n_gnu > 0 && a->n_gnu == b->n_gnu && memcmp(a->gnu, b->gnu, a->n_gnu) == 0 &&
	       strcmp(a->htlhash, b->htlhash) == 0;
}

/* A module that has these contents; NULL: none that can be looked at. */
static const struct module *example_of(const struct file_names *n, const struct contents *c)
{
	for (uint32_t i = 0; i < n->modules.n; i++) {
		if (n->modules.items[i].contents == c && n->modules.items[i].fd >= 0)
			return &n->modules.items[i];
	}
	return NULL;
}

/* false: there is no time for it. */
static bool compare_bytes(struct file_names *n, const struct module *a, const struct module *b,
			  bool *ret_same)
{
	if (!time_share_begin(&n->compare_share, clock_monotonic_ns()))
		return false;
	*ret_same = file_bytes_equal(a->fd, b->fd);
	time_share_end(&n->compare_share, clock_monotonic_ns());
	return true;
}

static bool same_bytes(struct file_names *n, const struct module *a, const struct module *b)
{
	bool same = false;

	return (a->identity.ino && file_identity_equal(&a->identity, &b->identity)) ||
	       (compare_bytes(n, a, b, &same) && same);
}

static struct contents *find_contents(struct file_names *n, const struct module *m,
				      const struct symbol_file_id *id)
{
	uint32_t n_compared = 0;

	for (uint32_t i = 0; i < n->contents.n && n_compared < MAX_COMPARED; i++) {
		struct contents *c = n->contents.items[i];
		const struct module *example = same_id(&c->id, id) ? example_of(n, c) : NULL;

		if (!example)
			continue;
		n_compared++;
		if (same_bytes(n, m, example))
			return c;
	}
	return NULL;
}

static struct contents *add_contents(struct file_names *n, const struct symbol_file_id *id)
{
	struct contents *c = calloc(1, sizeof(*c)), **place = c ? array_push(&n->contents) : NULL;

	if (!place) {
		free(c);
		return NULL;
	}
	c->id = *id;
	c->cost = (struct time_share){.percent = COST_PERCENT, .save_ns = COST_SAVE_NS};
	*place = c;
	return c;
}

static bool is_unchanged(const struct module *m)
{
	struct file_identity now;

	return file_identity_get(m->fd, &now) == 0 && file_identity_equal(&now, &m->identity);
}

/* Another module that had the same bytes, and still has them; NULL: there is none. */
static const struct module *twin_of(const struct file_names *n, const struct module *m)
{
	for (uint32_t i = 0; m->contents->n_modules > 1 && i < n->modules.n; i++) {
		const struct module *other = &n->modules.items[i];

		if (other != m && other->contents == m->contents && is_unchanged(other))
			return other;
	}
	return NULL;
}

/*
 * Only its time is another: its ids are those that it had, and so are its bytes as far as another
 * file shows. Without time to compare them it gets a table of its own.
 */
static bool is_touched(struct file_names *n, struct module *m, const struct file_identity *now)
{
	const struct module *twin;
	struct symbol_file_id id;
	bool same;

	if (!m->contents || !file_identity_may_be_touched(&m->identity, now) ||
	    symbol_file_identify(m->fd, &id) < 0 || !same_id(&id, &m->contents->id))
		return false;
	m->identity = *now;
	twin = twin_of(n, m);
	if (twin && compare_bytes(n, m, twin, &same))
		return same;
	if (m->contents->n_modules > 1) {
		contents_release(n, m->contents);
		m->contents = NULL;
	}
	return true;
}

/* Whether it was written to since: nobody has the bytes any more that ran. */
static bool look(struct file_names *n, struct module *m)
{
	struct file_identity now;

	m->looked = n->turn;
	if (!m->changed && m->identity.ino && file_identity_get(m->fd, &now) == 0 &&
	    !file_identity_equal(&now, &m->identity))
		m->changed = !is_touched(n, m, &now);
	return m->changed;
}

bool file_names_changed(struct file_names *n, uint64_t uid)
{
	struct module *m = find_module(n, uid), *from = NULL;

	if (m && m->contents && m->contents->file && m->contents->read_from != uid)
		from = find_module(n, m->contents->read_from);
	return m && (look(n, m) || (from && (look(n, from) || from->contents != m->contents)));
}

/* The same, unless that was looked at in this turn. */
static bool has_changed(struct file_names *n, struct module *m)
{
	return m->changed || (m->looked != n->turn && look(n, m));
}

/* NULL: no memory, or it was written over. */
static struct contents *module_identify(struct file_names *n, struct module *m)
{
	struct symbol_file_id id = {0};

	if (has_changed(n, m))
		return NULL;
	if (m->contents)
		return m->contents;
	if (symbol_file_identify(m->fd, &id) < 0)
		id = (struct symbol_file_id){0};
	m->contents = find_contents(n, m, &id);
	if (!m->contents)
		m->contents = add_contents(n, &id);
	if (m->contents)
		m->contents->n_modules++;
	return m->contents;
}

/* What is not read yet of the table must not come from what was written over it. */
static void close_changed(struct file_names *n, struct contents *c)
{
	struct module *from = c->file ? find_module(n, c->read_from) : NULL;

	if (c->file && (!from || has_changed(n, from) || from->contents != c))
		c->file = symbol_file_free(c->file);
}

struct symbol_file *file_names_symbols(struct file_names *n, uint64_t uid)
{
	struct module *m = find_module(n, uid);
	struct contents *c = m ? module_identify(n, m) : NULL;
	int r;

	if (!c)
		return NULL;
	n->reading = m;
	if (c->read_from != uid)
		close_changed(n, c);
	if (c->file || c->broken)
		return c->file;
	c->read_from = uid;
	r = symbol_file_new_fd(&c->file, m->fd, n->limits, open_debug, n);
	if (r == 0)
		symbol_file_set_open_split(c->file, open_split, n);
	else
		c->broken = r != -ENOMEM;
	return c->file;
}

void file_names_begin(struct file_names *n)
{
	n->turn++;
}

void file_names_close(struct file_names *n)
{
	for (uint32_t i = 0; i < n->contents.n; i++)
		n->contents.items[i]->file = symbol_file_free(n->contents.items[i]->file);
}

const struct symbol_file_id *file_names_identify(struct file_names *n, uint64_t uid)
{
	struct module *m = find_module(n, uid);
	struct contents *c = m ? module_identify(n, m) : NULL;

	if (!c)
		return NULL;
	m->used = c->used = n->turn;
	return &c->id;
}

bool file_names_take_renamed(struct file_names *n, uint64_t uid)
{
	struct module *m = find_module(n, uid);
	bool renamed = m && m->renamed;

	if (m)
		m->renamed = false;
	return renamed;
}

int file_names_data(struct file_names *n, uint64_t uid, uint64_t vaddr, char *name, size_t n_name,
		    uint64_t *ret_start)
{
	const struct module *m = find_module(n, uid);

	return m && m->fd >= 0 ? symbol_find_data(m->fd, n->limits, vaddr, name, n_name, ret_start)
			       : 1;
}

const char *file_names_path(struct file_names *n, uint64_t uid)
{
	const struct module *m = find_module(n, uid);

	return m && m->path ? m->path : "";
}

struct time_share *file_names_cost(struct file_names *n, uint64_t uid)
{
	struct module *m = find_module(n, uid);

	return m && m->contents ? &m->contents->cost : NULL;
}

void file_names_trim_file(struct file_names *n, uint64_t uid)
{
	struct module *m = find_module(n, uid);

	if (m && m->contents && m->contents->file)
		symbol_file_trim(m->contents->file);
}

uint64_t file_names_refused(struct file_names *n, uint64_t uid)
{
	struct module *m = find_module(n, uid);
	const struct symbol_file *file = m && m->contents ? m->contents->file : NULL;

	return file ? symbol_file_refused(file) : 0;
}

uint64_t file_names_bytes(const struct file_names *n)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < n->contents.n; i++) {
		if (n->contents.items[i]->file)
			total += symbol_file_bytes(n->contents.items[i]->file);
	}
	return total;
}

/* The least recently used one, of those that have lines, or of all. */
static struct contents *oldest_contents(const struct file_names *n, bool with_lines)
{
	struct contents *oldest = NULL;

	for (uint32_t i = 0; i < n->contents.n; i++) {
		struct contents *c = n->contents.items[i];

		if (c->file && (!with_lines || symbol_file_line_bytes(c->file) > LINES_EMPTY) &&
		    (!oldest || c->used < oldest->used))
			oldest = c;
	}
	return oldest;
}

void file_names_trim(struct file_names *n, uint64_t max_bytes)
{
	uint64_t total = file_names_bytes(n);
	struct contents *c;

	while (total > max_bytes && (c = oldest_contents(n, true))) {
		total -= symbol_file_bytes(c->file);
		symbol_file_forget_lines(c->file);
		total += symbol_file_bytes(c->file);
	}
	while (total > max_bytes && (c = oldest_contents(n, false))) {
		total -= symbol_file_bytes(c->file);
		c->file = symbol_file_free(c->file);
	}
}
