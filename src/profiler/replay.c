/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a host when a perf.data file was recorded. The processes are long gone, so nothing
 * is looked up through /proc/PID. Three rules keep names right:
 *
 * - A file is the one that was mapped if it has the recorded build id. perf records build ids only
 *   of files with samples; for others the inode must be the recorded one, and the file must not be
 *   younger than the recording.
 * - A kernel address needs a kallsyms with the kernel's text at the same address: perf's own copy,
 *   made at the recording, or that of this host if it runs the same kernel in the same boot. The
 *   copy is tried first, because the kernel takes five times as long to print its own.
 * - A perf map is used if it was last written before the recording, as that of a process that has
 *   ended; a later process with the same pid has written a younger one.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "src/profiler/replay.h"
#include "symbolize/symbolize.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/file-identity.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/mapped-file.h"
#include "util/notes.h"

#define MAX_KEYS	65536
#define KALLSYMS_BYTES	65536 /* _text is among the first */
#define NOTES_BYTES	4096
#define KEY_BY_BUILD_ID UINT32_MAX /* "device" of files known by build id, or by path alone */
#define KEY_BY_PATH	(UINT32_MAX - 1)
#define ERROR_BYTES	256

struct replay {
	struct ask *ask;
	const char *path;
	struct mapped_file *file;
	const void *bytes;
	size_t n_bytes;
	struct perf_data *data;
	uint64_t written_ns;
	int kallsyms; /* this host's */
	struct perf_data_build_id kernel_build_id;
	int kernel_is_known; /* -1: not found out yet */
	int kallsyms_copy;   /* perf's; -1: none */
	uint64_t max_time_ns, n_refused_files;
	/* Build ids that came in mmap records; the row + 1 is the "inode". */
	ARRAY(struct perf_data_build_id) ids;
	struct hash_index id_index;
};

/* ---- This host's kernel ---- */

static ssize_t read_fd(int fd, char *buffer, size_t size)
{
	size_t n = 0;

	while (n < size) {
		ssize_t got = read(fd, buffer + n, size - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	return (ssize_t)n;
}

/* Where the kernel's text begins, by kallsyms; 0: not known. */
static uint64_t read_kernel_text(int fd)
{
	_cleanup_free_ char *text = fd < 0 ? NULL : malloc(KALLSYMS_BYTES);
	char *at;

	if (!text)
		return 0;
	text[read_fd(fd, text, KALLSYMS_BYTES - 1)] = '\0';
	at = strstr(text, " _text\n");
	while (at && at > text && at[-1] != '\n')
		at--;
	return at ? strtoull(at, NULL, 16) : 0;
}

static void read_kernel_notes(struct replay *r, int fd)
{
	uint8_t bytes[NOTES_BYTES];
	const uint8_t *id;
	size_t n;

	if (fd < 0)
		return;
	n = (size_t)read_fd(fd, (char *)bytes, sizeof(bytes));
	n = notes_find_build_id(bytes, n, 4, PERF_DATA_MAX_BUILD_ID, &id);
	if (n == 0)
		return;
	r->kernel_build_id.n = (uint8_t)n;
	memcpy(r->kernel_build_id.bytes, id, n);
}

static bool same_id(const struct perf_data_build_id *a, const uint8_t *bytes, size_t n)
{
	return a->n == n && memcmp(a->bytes, bytes, n) == 0;
}

static bool same_release(const struct perf_data_host *host)
{
	struct utsname u;

	return uname(&u) == 0 && strcmp(u.release, host->release) == 0;
}

static bool is_running_kernel(const struct replay *r)
{
	const struct perf_data_host *host = perf_data_host(r->data);
	const struct perf_data_build_id *id = &host->kernel_build_id;

	if (id->n ? !same_id(id, r->kernel_build_id.bytes, r->kernel_build_id.n)
		  : !same_release(host))
		return false;
	return host->kernel_text && host->kernel_text == read_kernel_text(r->kallsyms);
}

/* There is one a build id: another boot of the same kernel may have overwritten it. */
static bool find_kallsyms_copy(struct replay *r)
{
	const struct perf_data_host *host = perf_data_host(r->data);
	struct message m = {.type = MESSAGE_ASK_RECORDED_FILE};
	_cleanup_close_ int fd = -EBADF;

	if (!host->kernel_text || !host->kernel_build_id.n)
		return false;
	m.ask_recorded_file.place = RECORDED_KALLSYMS;
	m.ask_recorded_file.n_build_id = host->kernel_build_id.n;
	memcpy(m.ask_recorded_file.build_id, host->kernel_build_id.bytes, host->kernel_build_id.n);
	fd = ask_descriptor(r->ask, &m);
	if (read_kernel_text(fd) != host->kernel_text)
		return false;
	r->kallsyms_copy = TAKE_FD(fd);
	return true;
}

bool replay_kernel_is_known(struct replay *r)
{
	if (r->kernel_is_known < 0) {
		r->kernel_is_known = find_kallsyms_copy(r) || is_running_kernel(r);
		if (!r->kernel_is_known)
			log_info("%s: probably recorded in another boot, and perf's copy of "
				 "kallsyms is not in ~/.debug: kernel frames are addresses",
				 r->path);
	}
	return r->kernel_is_known;
}

int replay_kallsyms_copy(const struct replay *r)
{
	return r->kallsyms_copy;
}

bool replay_vdso_is_ours(const struct replay *r, const uint8_t *build_id, size_t n)
{
	const struct perf_data_host *host = perf_data_host(r->data);

	return host->vdso_build_id.n ? same_id(&host->vdso_build_id, build_id, n)
				     : same_release(host);
}

/* ---- Life ---- */

static int map_file(struct replay *r, int fd)
{
	struct stat st;
	int e;

	if (fstat(fd, &st) < 0)
		return -errno;
	r->written_ns = (uint64_t)st.st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
	r->n_bytes = (size_t)st.st_size;
	if (!r->n_bytes)
		return 0;
	e = mapped_file_new(&r->file, fd, 0, r->n_bytes);
	if (e == 0)
		r->bytes = mapped_file_bytes(r->file);
	return e;
}

int replay_new(struct replay **ret, const struct replay_options *o)
{
	_cleanup_close_ int fd = o->fd, kallsyms = o->kallsyms_fd, notes = o->kernel_notes_fd;
	_cleanup_(replay_freep) struct replay *r = calloc(1, sizeof(*r));
	char error[ERROR_BYTES] = "";
	int e;

	if (!r)
		return -ENOMEM;
	r->ask = o->ask;
	r->path = o->path;
	r->kernel_is_known = -1;
	r->kallsyms = TAKE_FD(kallsyms);
	r->kallsyms_copy = -EBADF;
	r->ids.max = MAX_KEYS;
	e = map_file(r, fd);
	if (e == 0)
		e = perf_data_new(&r->data, r->bytes, r->n_bytes, o->event, error, sizeof(error));
	if (e < 0) {
		log_error("%s cannot be converted: %s", r->path, error[0] ? error : strerror(-e));
		return e;
	}
	read_kernel_notes(r, notes);
	*ret = TAKE_PTR(r);
	return 0;
}

struct replay *replay_free(struct replay *r)
{
	if (r) {
		perf_data_free(r->data);
		(void)close_fd(r->kallsyms);
		(void)close_fd(r->kallsyms_copy);
		mapped_file_free(r->file);
		array_deinit(&r->ids);
		hash_index_deinit(&r->id_index);
		free(r);
	}
	return NULL;
}

int replay_next(struct replay *r, struct record *ret)
{
	char error[ERROR_BYTES] = "";
	uint64_t n_short = mapped_file_n_short();
	int e = perf_data_next(r->data, ret, error, sizeof(error));

	if (mapped_file_n_short() != n_short) {
		log_error("%s was cut short while it was read", r->path);
		return -EIO;
	}
	if (e < 0)
		log_error("%s cannot be converted: %s", r->path, error[0] ? error : strerror(-e));
	else if (e > 0 && ret->time_ns > r->max_time_ns)
		r->max_time_ns = ret->time_ns;
	return e;
}

void replay_report(const struct replay *r)
{
	const struct perf_data_stats *s = perf_data_stats(r->data);
	const struct perf_data_event *e = perf_data_event(r->data);

	if (s->cut_bytes)
		log_warning("%s is truncated: its last %llu bytes are missing, with the build ids; "
			    "the rest was converted",
			    r->path, (unsigned long long)s->cut_bytes);
	if (s->bad_at)
		log_warning("%s is damaged: there is no valid record at byte %llu; the rest was "
			    "not read",
			    r->path, (unsigned long long)s->bad_at);
	if (!s->samples)
		log_warning("%s: it has no samples%s", r->path,
			    s->bad_at || s->cut_bytes ? " that can be read" : "");
	if (e->n_others)
		log_info("%s: only the samples of \"%s\" are in the result, not %llu of %u other "
			 "events: --event chooses",
			 r->path, e->name, (unsigned long long)s->other_samples, e->n_others);
	if (!e->stacks && !e->callchains)
		log_info("%s was recorded without call graphs: use perf record --call-graph dwarf",
			 r->path);
	if (r->n_refused_files)
		log_info("%s: %llu mapped files are not on this host with the recorded build id or "
			 "inode: their frames have addresses",
			 r->path, (unsigned long long)r->n_refused_files);
	if (s->late)
		log_debug("%s: %llu records out of order", r->path, (unsigned long long)s->late);
}

const struct perf_data_event *replay_event(const struct replay *r)
{
	return perf_data_event(r->data);
}

const struct perf_data_host *replay_host(const struct replay *r)
{
	return perf_data_host(r->data);
}

const struct perf_data_stats *replay_stats(const struct replay *r)
{
	return perf_data_stats(r->data);
}

uint64_t replay_clock_offset_ns(const struct replay *r)
{
	const struct perf_data_host *host = perf_data_host(r->data);
	uint64_t last = host->last_time_ns > r->max_time_ns ? host->last_time_ns : r->max_time_ns;

	/* perf's own clock counts from somewhere near the boot: the last sample is taken to be as
	 * old as the file. */
	if (host->clock_offset_ns)
		return host->clock_offset_ns;
	return r->written_ns > last ? r->written_ns - last : 0;
}

/* ---- Files ---- */

static uint32_t find_build_id(struct replay *r, const struct perf_data_build_id *id)
{
	uint64_t hash = hash_bytes(id, sizeof(*id), 0);
	uint32_t slot = hash_index_first(&r->id_index, hash), row;
	struct perf_data_build_id *item;

	for (; (row = hash_index_row(&r->id_index, slot)) != HASH_INDEX_NONE;
	     slot = hash_index_next(&r->id_index, slot)) {
		if (memcmp(&r->ids.items[row], id, sizeof(*id)) == 0)
			return row;
	}
	item = array_push(&r->ids);
	if (!item)
		return UINT32_MAX;
	*item = *id;
	if (hash_index_add(&r->id_index, hash, r->ids.n - 1) < 0) {
		r->ids.n--;
		return UINT32_MAX;
	}
	return r->ids.n - 1;
}

void replay_file_key(struct replay *r, const struct record *record, struct host_file_key *ret)
{
	struct perf_data_build_id id = {.n = (uint8_t)record->mmap.n_build_id};
	uint32_t row = UINT32_MAX;

	*ret = (struct host_file_key){record->mmap.major, record->mmap.minor, record->mmap.inode,
				      record->mmap.generation};
	/* A device that no kernel has would pass for a key of ours: it is as good as none. */
	if (record->mmap.has_inode && record->mmap.major < KEY_BY_PATH)
		return;
	if (record->mmap.build_id && id.n <= sizeof(id.bytes)) {
		memcpy(id.bytes, record->mmap.build_id, id.n);
		row = find_build_id(r, &id);
	}
	if (row != UINT32_MAX)
		*ret = (struct host_file_key){.major = KEY_BY_BUILD_ID, .inode = row + 1};
	else
		*ret = (struct host_file_key){
			.major = KEY_BY_PATH,
			.inode = hash_bytes(record->mmap.path, strlen(record->mmap.path), 0) | 1};
}

static int ask_file(struct replay *r, enum recorded_place place, const struct host_file_key *key,
		    const struct perf_data_build_id *id, const char *path)
{
	struct message m = {.type = MESSAGE_ASK_RECORDED_FILE};

	m.ask_recorded_file.place = place;
	if (id) {
		m.ask_recorded_file.n_build_id = id->n;
		memcpy(m.ask_recorded_file.build_id, id->bytes, id->n);
	} else {
		m.ask_recorded_file.major = key->major;
		m.ask_recorded_file.minor = key->minor;
		m.ask_recorded_file.inode = key->inode;
	}
	message_set_text(m.ask_recorded_file.path, sizeof(m.ask_recorded_file.path), path);
	return ask_descriptor(r->ask, &m);
}

static bool is_that_file(int fd, const struct perf_data_build_id *id)
{
	uint8_t found[64];
	size_t n;

	return symbol_file_build_id(fd, found, &n) == 0 && same_id(id, found, n);
}

static bool is_older(const struct replay *r, int fd)
{
	struct file_identity id;

	return file_identity_get(fd, &id) == 0 && id.mtime_ns <= r->written_ns;
}

static const struct perf_data_build_id *
recorded_id(const struct replay *r, const struct host_file_key *key, const char *path)
{
	if (key->major != KEY_BY_BUILD_ID)
		return perf_data_build_id(r->data, path);
	return key->inode - 1 < r->ids.n ? &r->ids.items[key->inode - 1] : NULL;
}

static int find_file(struct replay *r, const struct host_file_key *key, const char *path)
{
	const struct perf_data_build_id *id = recorded_id(r, key, path);
	int fd;

	if (!id && key->major >= KEY_BY_PATH)
		return -ESTALE;
	fd = ask_file(r, RECORDED_PATH, key, id, path);
	if (fd >= 0 && (id ? is_that_file(fd, id) : is_older(r, fd)))
		return fd;
	(void)close_fd(fd);
	if (!id)
		return -ESTALE;
	fd = ask_file(r, RECORDED_CACHE, key, id, path);
	if (fd >= 0 && is_that_file(fd, id))
		return fd;
	(void)close_fd(fd);
	return -ESTALE;
}

static int open_file(void *ctx, uint32_t pid, uint32_t alternate_pid, uint64_t start, uint64_t end,
		     const struct host_file_key *key, const char *path)
{
	struct replay *r = ctx;
	int fd = find_file(r, key, path);

	if (fd < 0) {
		r->n_refused_files++;
		log_debug("%s: not there as recorded", path);
	}
	return fd;
}

struct host_source replay_source(struct replay *r)
{
	return (struct host_source){.ctx = r, .open_file = open_file};
}

int replay_open_perf_map(struct replay *r, uint32_t pid)
{
	struct message m = {.type = MESSAGE_ASK_RECORDED_FILE};
	_cleanup_close_ int fd = -EBADF;

	m.ask_recorded_file.place = RECORDED_PERF_MAP;
	m.ask_recorded_file.pid = pid;
	fd = ask_descriptor(r->ask, &m);
	if (fd < 0)
		return fd;
	return is_older(r, fd) ? TAKE_FD(fd) : -ESTALE;
}
